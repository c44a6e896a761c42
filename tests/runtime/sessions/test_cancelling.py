"""A cancel at every checkpoint of every call: what was asked for is undone or goes on, and everything else is as ever.

Each call of a short run is counted once, and then cancelled at each of its checkpoints, in a run of its own. Whoever was cancelled
asks again, so each run must come to the same end: every result right, nothing left, all properties kept, every core's steps replayed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio

from tests.runtime.sessions.cancelling import Canceller
from tests.runtime.sessions.oversight import Oversight, check_nothing_is_left
from tests.runtime.sessions.scheduling import Chooser
from tests.runtime.sessions.stage import Stage, run, staged
from troth.runtime.errors import CallCancelled, ResultUndelivered, SessionClosed, SessionError, TrainerLost
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import Task, TrainerSession

LONG_S = 3600
BIG = {"w": np.arange(50_000, dtype="<f8")}
"""Too much to ride in a message, and too little to be encoded in a thread: a virtual clock does not wait for threads."""

Play = Callable[[Stage, Canceller, bool], Awaitable[None]]


async def until_done(canceller: Canceller, call: str, make: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a call that is made again if it was cancelled."""
    for _ in range(2):
        with canceller.calling(call):
            return await make()
    raise AssertionError(f"{call} was cancelled twice")


async def script(canceller: Canceller, ends: bool, stage: Stage, session: TrainerSession, process: SimProcess) -> None:
    """The trainer: send back what comes, or end by itself after the second task."""
    assert await until_done(canceller, "init", session.init)
    for number in range(1, 100):
        task: Task | None = await until_done(canceller, f"receive {number}", session.receive)
        if task is None:
            break
        stage.seen.append(task)
        try:
            await until_done(canceller, f"send {number}", partial(session.send, task.payload))
        except (CallCancelled, ResultUndelivered):
            continue  # its caller gave it up, before the result was accepted or after
        if ends and task.name == "last":
            break
    await until_done(canceller, "shutdown", session.shutdown)
    await until_done(canceller, "wait_closed", session.wait_closed)


async def ask(canceller: Canceller, trainer: Any, name: str, payload: dict[str, Any]) -> None:
    """A task, and once more if its caller was cancelled: the trainer may have begun it, but this result is the second's."""
    result = await until_done(canceller, name, partial(trainer.execute, name, payload))
    assert set(result.payload) == set(payload)
    for key, value in payload.items():
        np.testing.assert_array_equal(result.payload[key], value)


async def orderly(stage: Stage, canceller: Canceller, persistent: bool) -> None:
    """Two tasks, then the host ends it."""
    stage.trainer(partial(script, canceller, False, stage), takes_term=True)
    with trio.CancelScope() as scope:
        made = stage.backend(persistent=persistent)
        with canceller.counting("enter", scope):
            await made.__aenter__()
        try:
            await ask(canceller, made, "small", {"x": 1})
            await ask(canceller, made, "last", BIG)
            made.status()
            assert await until_done(canceller, "finalize", made.finalize)
            with pytest.raises(SessionClosed):
                await made.execute("late", {})
        finally:
            with canceller.counting("leave", scope):
                await made.__aexit__(None, None, None)


async def ended_by_the_script(stage: Stage, canceller: Canceller, persistent: bool) -> None:
    """Two tasks, then the trainer ends it."""
    stage.trainer(partial(script, canceller, True, stage), takes_term=True)
    async with stage.backend(persistent=persistent) as made:
        await ask(canceller, made, "small", {"x": 1})
        await ask(canceller, made, "last", BIG)
        with trio.move_on_after(LONG_S):
            while stage.processes.snapshot():
                await trio.sleep(1)


async def aborted(stage: Stage, canceller: Canceller, persistent: bool) -> None:
    """A task that is under way when all is aborted."""
    stage.trainer(partial(script, canceller, False, stage), takes_term=True)
    async with stage.backend(persistent=persistent) as made:
        await ask(canceller, made, "small", {"x": 1})

        async def execute() -> None:
            with pytest.raises(SessionError):
                await made.execute("last", BIG)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(execute)
            while len(stage.seen) < 2:
                await trio.lowlevel.checkpoint()
            await until_done(canceller, "abort", made.abort)
        await until_done(canceller, "finalize", made.finalize)


def played(play: Play, persistent: bool, call: str = "", at: int = 0) -> Canceller:
    """One run, from the first task to the last, and everything that must be so afterwards."""
    canceller = Canceller(call, at)

    async def main() -> None:
        async with staged() as stage:
            tasks = trio.lowlevel.current_statistics().tasks_living
            trio.lowlevel.add_instrument(canceller)
            with trio.fail_after(LONG_S):
                try:
                    await play(stage, canceller, persistent)
                except TrainerLost:
                    # The one thing that a cancel can cost: an init() that is given up after the host was told that it is ready, and has
                    # sent a task, cannot be taken back. The task may not come a second time.
                    assert call == "init"
                    assert stage.ended.count("JoinFailed") == 1
                    assert "session.H25" in {row for party in oversight.parties for taken in party.steps for row in taken.step.rows}
            check_nothing_is_left(stage, oversight, tasks)

    with pytest.MonkeyPatch.context() as monkeypatch:
        Chooser().install(monkeypatch)
        oversight = Oversight.installed(monkeypatch)
        run(main)
    oversight.check()
    return canceller


def cancel_at_every_moment(play: Play, persistent: bool, call: str) -> None:
    """A run for each moment of the call."""
    moments = played(play, persistent).counts
    assert call in moments, f"the call is not made; there are {sorted(moments)}"
    for at in range(moments[call] + 1):
        try:
            assert played(play, persistent, call, at).struck
        except Exception as error:
            error.add_note(f"{call} was cancelled at moment {at} of {moments[call]}")
            raise


TRAINERS = ("init", "receive 1", "receive 2", "receive 3", "send 1", "send 2", "shutdown", "wait_closed")


@pytest.mark.parametrize("call", ["enter", "small", "last", "finalize", "leave", *TRAINERS])
def test_a_call_that_is_cancelled_anywhere_can_be_made_again(call: str) -> None:
    """Of the host: entering and leaving the block, execute() with a small and with a large payload, finalize(); of the trainer: all."""
    cancel_at_every_moment(orderly, True, call)


@pytest.mark.parametrize("call", ["abort", "finalize", "receive 2", "send 2"])
def test_during_an_abort_a_call_that_is_cancelled_changes_nothing(call: str) -> None:
    cancel_at_every_moment(aborted, True, call)


@pytest.mark.parametrize("call", ["shutdown", "wait_closed"])
def test_a_script_that_is_cancelled_while_it_ends_its_session_can_still_end_it(call: str) -> None:
    cancel_at_every_moment(ended_by_the_script, True, call)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["enter", "small", "last", "finalize", "leave", "init", "receive 1", "send 1", "receive 2", "shutdown"])
def test_a_call_that_is_cancelled_anywhere_can_be_made_again_with_a_launch_a_task(call: str) -> None:
    cancel_at_every_moment(orderly, False, call)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["abort", "finalize", "small", "receive 1", "send 1", "wait_closed"])
def test_during_an_abort_a_call_that_is_cancelled_changes_nothing_with_a_launch_a_task(call: str) -> None:
    cancel_at_every_moment(aborted, False, call)
