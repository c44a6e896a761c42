"""A trio program that is run by hand: what of trio is relied on, and what is promised."""

from __future__ import annotations

import pytest
import trio
from trio._core import _run

from troth.testing.live.stepping import Shuffled, Stepper, Unsettled


def test_what_is_relied_on_of_trio_is_there() -> None:
    """Its loop is a generator that is resumed with what came from the system, and asks these two in which order to run."""
    for name in ("setup_runner", "unrolled_run", "_r", "_ALLOW_DETERMINISTIC_SCHEDULING"):
        assert hasattr(_run, name), f"trio {trio.__version__} has no {name}: the stepper must be written anew for it"


def test_time_passes_only_when_nothing_can_run_and_somebody_says_so() -> None:
    """And then to the moment in which something is due."""
    seen: list[float] = []

    async def main() -> None:
        for pause_s in (0, 2, 3):
            await trio.sleep(pause_s)
            seen.append(trio.current_time())

    stepper = Stepper(main, Shuffled())
    assert (seen, stepper.next_s) == ([0.0], 2.0)
    assert stepper.pass_time(1.0)
    assert seen == [0.0]
    stepper.pass_time()
    assert (seen, stepper.next_s) == ([0.0, 2.0], 5.0)
    assert stepper.finish()
    assert seen == [0.0, 2.0, 5.0]


def _order(state: int) -> list[int]:
    seen: list[int] = []

    async def one(number: int) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            seen.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(one, number)

    stepper = Stepper(main, Shuffled(state))
    assert stepper.finish()
    return seen


def test_one_number_is_one_order_of_tasks() -> None:
    """The same again and again, and another for most other numbers."""
    assert all(_order(state) == _order(state) for state in range(5))
    assert len({tuple(_order(state)) for state in range(20)}) > 10


def test_the_order_of_other_programs_is_left_alone() -> None:
    """What trio asks in between is its own again."""
    before = _run._r
    _order(7)
    assert _run._r is before


def test_what_never_settles_is_said() -> None:
    """Instead of going on for ever."""

    async def main() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    with pytest.raises(Unsettled):
        Stepper(main, Shuffled())

    assert Stepper(trio.lowlevel.checkpoint, Shuffled()).finish()
