"""What is told of a failure of the live runtime: in its words, and where an interrupt comes meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from troth import cli
from troth.testing.live import playing, showing, telling
from troth.testing.live.choices import Listed
from troth.testing.live.parties import Wrong
from troth.testing.live.recording import Recording
from troth.testing.live.stage import Setup
from troth.testing.live.stepping import Shuffled, Stepper, undisturbed
from troth.testing.live.walking import Walk, drawn_setup, opened
from troth.testing.telling import BROKEN_OFF

NEVER = "never"
"""What no runtime keeps: a property of these tests."""


def wrong(_walk: Walk, *_arguments: object) -> None:
    """Whatever is done, it is wrong."""
    raise Wrong(NEVER, "a session has ended")


def test_what_is_plain_about_a_stage_is_not_told() -> None:
    """A bound that there is not is none, however the stage was drawn."""
    plain = drawn_setup(Listed([1]))

    assert plain.most_at_once == Setup().most_at_once
    assert "most_at_once" not in showing.setup(plain)
    assert "most_at_once=7" in showing.setup(drawn_setup(Listed([1, 0, 0, 0, 0, 0, 4])))


def test_a_failure_that_needs_no_step_is_told_so() -> None:
    """Instead of an example that has none."""
    walk = opened(telling.Told, (), Recording())
    found = playing.play(walk, []).found
    told, _ = telling.story(playing.Found(property=NEVER, what="it is wrong"), walk)

    assert found is None
    assert told.splitlines()[1] == "no step is needed: a session that begins and ends is enough:"
    assert "0 steps" not in told


def interrupt(*_arguments: object, **_options: object) -> Any:
    """Somebody has waited for long enough."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["shorter", "the checker"])
def test_an_interrupt_loses_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, where: str, tmp_path: Any
) -> None:
    """It is told as far as it is known, kept, and can be played again; the run is over, with 130."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Walk, "finish", wrong)
    monkeypatch.setattr(Walk, "run", wrong)
    if where == "shorter":
        monkeypatch.setattr(playing, "played", interrupt)
    else:
        monkeypatch.setattr(telling, "checked", interrupt)
    code = cli.run(["fuzz", "--target", "runtime", "--sessions", "5", "--seed", "1", "--keep-going"])
    out = capsys.readouterr().out

    assert code == 130
    assert "FAILED never: a session has ended" in out
    assert "the example" in out or "no step is needed" in out
    assert BROKEN_OFF in out
    assert "--replay runtime." in out
    assert out.endswith("; interrupted\n")
    assert len(list((tmp_path / ".troth" / "fuzz").iterdir())) == 1


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Interrupts are raised, also where the tests run in the background of a shell, which lets them be passed over."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts")
def test_an_interrupt_waits_for_the_tasks_that_run() -> None:
    """It ends none of them, which would look like a fault of the runtime."""
    done = []

    async def main() -> None:
        await trio.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)
        done.append("first")
        await trio.sleep(1)
        done.append("second")

    stepper = Stepper(main, Shuffled())
    with pytest.raises(KeyboardInterrupt):
        stepper.pass_time()
    assert done == ["first"]
    assert stepper.finish()
    assert done == ["first", "second"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("_interrupts")
def test_a_second_interrupt_waits_for_nothing() -> None:
    """What runs may be what never ends."""
    done = []

    def twice() -> None:
        with undisturbed():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("first")
            os.kill(os.getpid(), signal.SIGINT)
            done.append("second")

    with pytest.raises(KeyboardInterrupt):
        twice()

    assert done == ["first"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
