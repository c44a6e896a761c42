"""A cancel at every moment of every call of the asynchronous twin: what was asked for can be asked again, and nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.client.simulated import World, do, run
from tests.runtime.sessions.cancelling import Canceller
from tests.runtime.sessions.oversight import Oversight
from tests.runtime.sessions.scheduling import Chooser
from troth.client.aio import FLModel, open_session
from troth.runtime.errors import JoinFailed, SessionClosed, TrainerLost

LONG_S = 3600


async def use(canceller: Canceller, path: Path, seen: list[FLModel]) -> bool:
    """One session, for as long as it is not cancelled while it opens. Whether it was there."""
    with trio.CancelScope() as scope:
        made = open_session(config_file=path)
        with canceller.counting("open", scope):
            session = await made.__aenter__()
        try:
            while True:
                with canceller.calling("receive") as receiving:
                    model = await session.receive()
                if receiving.cancelled_caught:
                    continue
                if model is None:
                    break
                seen.append(model)
                with canceller.calling("send") as sending:
                    await session.send(model, clear_cache=False)
                if sending.cancelled_caught:
                    await session.send(model, clear_cache=False)
        except BaseException as error:
            with canceller.counting("close", scope):
                if not await made.__aexit__(type(error), error, error.__traceback__):
                    raise
        else:
            with canceller.counting("close", scope):
                await made.__aexit__(None, None, None)
        return True
    return False


def played(call: str = "", at: int = 0) -> Canceller:
    """A host with two tasks for a program."""
    canceller = Canceller(call, at)
    seen: list[FLModel] = []

    async def program(path: Path) -> None:
        while not await use(canceller, path, seen) and not seen:
            pass

    async def main() -> None:
        trio.lowlevel.add_instrument(canceller)
        tasks = trio.lowlevel.current_statistics().tasks_living
        with trio.fail_after(LONG_S):
            try:
                async with there.running() as trainer:
                    for each in (1, 2):
                        assert (await do(trainer, metrics={"x": each})).metrics == {"x": each}
            except (TrainerLost, SessionClosed):
                # Only where it was open before it was given up: its host had sent it a task already, which may not come again.
                assert call == "open"
                assert {type(error) for error in there.raised} <= {JoinFailed}
                assert not seen
            else:
                assert not there.raised
                assert [model.metrics for model in seen] == [{"x": 1}, {"x": 2}]
        assert trio.lowlevel.current_statistics().tasks_living == tasks

    with pytest.MonkeyPatch.context() as monkeypatch:
        Chooser().install(monkeypatch)
        oversight = Oversight.installed(monkeypatch)
        there = World(program, monkeypatch)
        run(main)
    oversight.check()
    return canceller


@pytest.mark.parametrize("call", ["open", "receive", "send", "close"])
def test_a_call_that_is_cancelled_anywhere_can_be_made_again(call: str) -> None:
    moments = played().counts
    assert moments[call] > 0
    for at in range(moments[call] + 1):
        try:
            assert played(call, at).struck
        except Exception as error:
            error.add_note(f"{call} was cancelled at moment {at} of {moments[call]}")
            raise
