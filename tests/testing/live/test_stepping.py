"""A trio program that is run by hand: what of trio is relied on, and what is promised."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import trio
from trio._core import _run

from troth.testing.live.inside import SUPPORTED, trio_inside
from troth.testing.live.stepping import Shuffled, Stepper, Unsettled


def test_what_is_relied_on_of_trio_is_there() -> None:
    """Its loop is a generator that is resumed with what came from the system, and asks these two in which order to run."""
    assert trio_inside() is _run


@pytest.mark.parametrize("name", ["setup_runner", "unrolled_run", "_r", "_ALLOW_DETERMINISTIC_SCHEDULING", "Runner", "Deadlines", "Task"])
def test_a_trio_that_is_made_otherwise_is_one_clear_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what is missing, the trio that there is, and those that do."""
    monkeypatch.delattr(_run, name)
    with pytest.raises(
        ImportError, match=rf"trio {re.escape(trio.__version__)} has no {name}\b.*: it works with trio {re.escape(SUPPORTED)}"
    ):
        trio_inside()


def test_a_function_that_takes_something_else_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be called wrongly; so is a class that is none of attrs, and a module that is gone."""
    monkeypatch.setattr(_run, "setup_runner", lambda clock: clock)
    monkeypatch.setattr(_run, "Runner", object)
    with pytest.raises(ImportError, match=r"has setup_runner\(clock\) where .*; no Runner\.deadlines; "):
        trio_inside()
    with pytest.raises(ImportError, match=r"has no trio\._core\._gone: "):
        trio_inside("trio._core._gone")


def test_a_trio_that_is_made_otherwise_is_said_where_it_is_first_used() -> None:
    """On the command line, in one line; what needs no live runtime goes on."""
    script = (
        "import sys; from trio._core import _run; del _run.unrolled_run\n"
        "from troth import cli; sys.exit(cli.run(['fuzz', '--sessions', '1', '--seed', '1', '--no-keep', *sys.argv[1:]]))"
    )
    live, core = (
        subprocess.run([sys.executable, "-c", script, *options], capture_output=True, text=True, check=False)
        for options in (["--target", "runtime"], ["receiver"])
    )
    assert live.returncode == 3
    assert "has no unrolled_run(): it works with trio" in live.stderr.splitlines()[-1]
    assert core.returncode == 0


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
