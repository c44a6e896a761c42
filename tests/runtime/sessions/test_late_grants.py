"""What a host grants to a trainer that does not wait for it any more."""

from __future__ import annotations

import trio

from tests.runtime.sessions.stage import run, staged
from troth.runtime.errors import JoinFailed
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.besides import HelloAcceptedBeside, Terms
from troth.runtime.wire.codec import encode
from troth.runtime.wire.frames import HEADER_BYTES
from troth.runtime.wire.kinds import BY_CLASS
from troth.spec import messages as m
from troth.spec.limits import Limits


def test_a_grant_that_comes_after_init_has_failed_opens_nothing() -> None:
    """A connection that is hung up is still read while something waits to be written on it, so a grant may come late. The session that it
    grants is none that the core is in: a data link that was dialled for it would have none to name."""
    ended: list[str] = []

    async def main() -> None:
        async with staged() as stage:

            async def late(session: TrainerSession, process: SimProcess) -> None:
                try:
                    await session.init()
                except JoinFailed:
                    ended.append("failed")
                stage.faults.refuse_dials(0)
                grant = HelloAcceptedBeside(Terms(5.0, 30.0, 600.0), False, None)
                frame = encode(m.HelloAccepted(epoch=1), grant)
                session._links.control._frame(BY_CLASS[m.HelloAccepted].code, 1, memoryview(frame)[HEADER_BYTES:])
                await trio.sleep(5)
                ended.append("lives")

            stage.trainer(late)
            stage.faults.refuse_dials(10**6)
            try:
                async with stage.backend(limits=Limits(join_timeout_s=10.0, launch_timeout_s=40.0)):
                    pass
            except JoinFailed:
                ended.append("not joined")

    run(main)

    assert ended == ["failed", "lives", "not joined"]
