"""Defects of the reference that live below the client API: each check holds, and fails once a patch brings the defect back.

The numbers are those of the conformance page.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from tests.runtime.sessions.stage import staged
from troth.runtime import control
from troth.runtime.errors import ChallengeFailed, LinkDown, SessionLost
from troth.runtime.payloads import link
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire import accepting
from troth.runtime.wire.challenge import CALL, CONFIRMED, ROLES, Authenticated, Token
from troth.runtime.wire.challenge import check as real_check
from troth.runtime.wire.codec import decode, encode
from troth.runtime.wire.kinds import CONTROL, DATA, PayloadKind, Pull, Role
from troth.spec import messages as m

Patch = Callable[[pytest.MonkeyPatch], None]


def run(main: Callable[[], Any]) -> None:
    """Run in virtual time."""
    trio.run(main, clock=MockClock(autojump_threshold=0))


# -- D19: nothing is decoded before its sender is authenticated for this session's epoch -------------------------------


async def intrude(session: TrainerSession, role: Role, epoch: int, token: Token, frames: bytes) -> None:
    """Dial the host of a session, claim what one likes, and send frames without waiting for anything."""
    given = session.bootstrap
    stream = await session.network.dial(given.endpoint)
    code = next(code for code, name in ROLES.items() if name == role)
    call = CALL.pack(b"TROTH", 1, code, given.launch, epoch, bytes(32))
    with suppress(LinkDown):  # it was closed before all of it was taken
        await stream.send_all(call + token.proof(b"trainer" + call + bytes(32)) + frames)
    await trio.sleep(10)
    stream.close()


def check_nothing_is_decoded_of_who_did_not_show_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """On control and data links, with a token that is none, and on a data link of another epoch."""
    decoded: list[int] = []

    def counted(code: int, epoch: int, body: Any) -> Any:
        decoded.append(code)
        return decode(code, epoch, body)

    monkeypatch.setattr(control, "decode", counted)
    monkeypatch.setattr(link, "decode", counted)
    pull = Pull(epoch=1, request=1, kind=PayloadKind.TASK, seq=1, receiver=0, offset=0)

    async def main() -> None:
        async def joined(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            await session.receive()

        async with staged() as stage:
            stage.trainer(joined)
            async with stage.backend():
                await trio.sleep(1)
                session, before = stage.sessions[0], len(decoded)
                attempts: list[tuple[Role, bytes]] = [(CONTROL, encode(m.TaskAccepted(epoch=1, seq=1))), (DATA, encode(pull))]
                for role, frames in attempts:
                    for epoch in (0, 1, 2):
                        await intrude(session, role, epoch, Token.new(), frames)
                beats = sum(code == 30 for code in decoded[before:])
                assert len(decoded) - before == beats, "only the heartbeats of the trainer itself were decoded"

    run(main)


def let_anybody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the reference, where a streamed reply never came by the guard."""

    async def check(stream: Any, **_: Any) -> Authenticated:
        call = bytearray(CALL.size + 32)
        got = 0
        while got < len(call):
            more = await stream.receive_into(memoryview(call)[got:])
            if not more:
                raise ChallengeFailed("gone")
            got += more
        _, _, code, launch, epoch, _ = CALL.unpack(bytes(call[: CALL.size]))
        await stream.send_all(bytes(64) + CONFIRMED)
        return Authenticated(stream, ROLES[code], launch, max(epoch, 1), bytes(64))

    real = real_check

    async def either(stream: Any, **options: Any) -> Authenticated:
        return await (check(stream) if started else real(stream, **options))

    started: list[bool] = []
    monkeypatch.setattr(accepting, "check", either)
    original = intrude

    async def marked(*arguments: Any) -> None:
        started.append(True)
        await original(*arguments)

    monkeypatch.setattr(f"{__name__}.intrude", marked)


# -- D24: the death of the owner is seen by an end of file, never by a pid ---------------------------------------------


def check_the_end_of_the_owner_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's pid may live on as somebody else's; the pipe cannot."""
    del monkeypatch
    told: list[str] = []

    async def main() -> None:
        here, there = os.pipe()

        async def wait(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            os.close(there)
            with trio.move_on_after(5):
                try:
                    await session.receive()
                except SessionLost:
                    told.append("lost")

        async with staged() as stage:
            stage.trainer(wait, change=lambda bootstrap: evolve(bootstrap, name="owned"))
            stage.owner_fd = here
            async with stage.backend():
                await trio.sleep(10)
        os.close(here)

    run(main)
    assert told == ["lost"]


def watch_a_pid(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the reference: a pid that somebody has is an owner that lives."""

    async def watch(session: TrainerSession, fd: int) -> None:
        while os.path.exists(f"/proc/{os.getpid()}"):  # a pid that was given away again
            await trio.sleep(0.5)

    monkeypatch.setattr(TrainerSession, "_watch_owner", watch)


Check = Callable[[pytest.MonkeyPatch], None]

CASES: list[tuple[str, Check, Patch, str]] = [
    ("D19", check_nothing_is_decoded_of_who_did_not_show_who_it_is, let_anybody_in, "only the heartbeats"),
    ("D24", check_the_end_of_the_owner_ends_the_session, watch_a_pid, "lost"),
]
named = pytest.mark.parametrize(("check", "patch", "finds"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])


@named
def test_the_defect_is_not_there(check: Check, patch: Patch, finds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch)


@named
def test_the_defect_would_be_found(check: Check, patch: Patch, finds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch)
    with pytest.raises(AssertionError, match=finds):
        check(monkeypatch)
