"""An init() that came to nothing leaves a session that can be joined as if it had never been called, with everything that belongs to it."""

from __future__ import annotations

import numpy as np
import pytest
import trio

from tests.runtime.sessions.stage import Stage, run, staged
from troth.runtime.errors import JoinFailed
from troth.runtime.sim.faults import Drop
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.kinds import KINDS

CODES = {kind.message.__name__: kind.code for kind in KINDS}
LARGE = {"w": np.arange(50_000, dtype="<f8")}
"""It does not ride in its message: it comes over a link of its own."""


async def serve(stage: Stage, session: TrainerSession) -> None:
    """Send back what comes."""
    while (task := await session.receive()) is not None:
        stage.seen.append(task)
        await session.send(task.payload)


async def comes_back(stage: Stage) -> None:
    async with stage.backend() as trainer:
        with trio.fail_after(30):
            result = await trainer.execute("train", LARGE)
        np.testing.assert_array_equal(result.payload["w"], LARGE["w"])


def test_after_an_init_that_was_given_up_a_large_payload_comes() -> None:
    async def main() -> None:
        async def twice(session: TrainerSession, process: SimProcess) -> None:
            with trio.CancelScope() as scope:
                scope.cancel()
                await session.init()
            assert scope.cancelled_caught
            await session.init()
            await serve(stage, session)

        async with staged() as stage:
            stage.trainer(twice)
            await comes_back(stage)

    run(main)


@pytest.mark.parametrize("name", ["HelloAccepted", "SessionReady"])
def test_after_an_init_that_nobody_answered_a_large_payload_comes(name: str) -> None:
    """It has heard of the session before, or has not."""

    async def main() -> None:
        async def twice(session: TrainerSession, process: SimProcess) -> None:
            rule = stage.faults.frame(Drop(), code=CODES[name], times=None)
            with pytest.raises(JoinFailed, match="may be tried again"):
                await session.init()
            rule.times = rule.struck
            await session.init()
            await serve(stage, session)

        async with staged() as stage:
            stage.trainer(twice)
            await comes_back(stage)

    run(main)
