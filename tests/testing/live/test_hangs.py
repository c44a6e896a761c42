"""Calls that wait for ever before they have asked for anything, and tasks that belong to nobody: at once, or at the end, they show."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.testing.live.finding import first_failure
from troth.runtime.backend import ExternalProcess
from troth.runtime.trainer import TrainerSession
from troth.testing.live.stepping import Shuffled, Stepper


async def _waits(_backend: ExternalProcess, **_: Any) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize(
    ("method", "asks"),
    [
        ("_start", "start() was made, and has not asked for start"),
        ("abort", "has not asked for abort"),
        ("finalize", "has not asked for finalize"),
    ],
)
def test_a_call_that_waits_before_it_asks_is_noticed_at_once(method: str, asks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the application's it is: entering, aborting, finalizing."""
    monkeypatch.setattr(ExternalProcess, method, _waits)
    failure = first_failure()

    assert failure.property == "calls"
    assert asks in failure.told.splitlines()[0]


@pytest.mark.parametrize(
    ("hangs", "asks"), [(False, "leave() was made, and has not asked for finalize"), (True, "was made, and has not asked for abort")]
)
def test_an_end_that_waits_before_it_asks_is_noticed_at_once(asks: str, monkeypatch: pytest.MonkeyPatch, *, hangs: bool) -> None:
    """That of a block that is left in order, or of one that was left by an exception or never entered."""
    tear_down = ExternalProcess._tear_down

    async def waits(backend: ExternalProcess, *, at_once: bool) -> None:
        if at_once is hangs:
            await trio.sleep_forever()
        await tear_down(backend, at_once=at_once)

    monkeypatch.setattr(ExternalProcess, "_tear_down", waits)
    failure = first_failure()

    assert failure.property == "calls"
    assert asks in failure.told.splitlines()[0]


def test_one_that_aborts_and_finalizes_has_to_ask_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left by an exception is aborted first; the second wait is as bad as the first."""
    finalize = ExternalProcess.finalize

    async def late(backend: ExternalProcess) -> bool:
        if backend._calls is not None and backend._core.state("gate").value == "shut":
            await trio.sleep_forever()
        return await finalize(backend)

    monkeypatch.setattr(ExternalProcess, "finalize", late)
    failure = first_failure()

    assert failure.property == "calls"
    assert "has not asked for finalize" in failure.told.splitlines()[0]


def test_a_task_that_belongs_to_nobody_is_noticed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a session waits for the tasks of its own blocks only."""
    run = TrainerSession.run

    async def leaks(session: TrainerSession, **options: Any) -> None:
        trio.lowlevel.spawn_system_task(trio.sleep_forever, name="a leak")
        await run(session, **options)

    monkeypatch.setattr(TrainerSession, "run", leaks)
    failure = first_failure()

    assert failure.property == "left behind"
    assert "a leak runs on as a task of nobody" in failure.told


def test_tasks_of_blocks_are_nobody_elses_business() -> None:
    """Neither those of the program nor trio's own are strays."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 5)
            trio.lowlevel.spawn_system_task(trio.sleep, 3, name="stray")

    stepper = Stepper(main, Shuffled())
    assert stepper.strays == ["stray"]
    stepper.pass_time(4.0)
    assert stepper.strays == []
    assert stepper.finish()
