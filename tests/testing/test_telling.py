"""What is told of a failure: how far the checker looks for its own trace, and what is known when an interrupt comes meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.testing.toys import endless
from troth import cli
from troth.models.check import check as checked
from troth.testing import machine, telling, walker
from troth.testing.telling import searched

TOYS = str(Path(__file__).with_name("toys.py"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is kept in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def test_the_checker_looks_for_its_own_trace_up_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world whose states have no end is not searched for ever, nor for as many states as one is ready to look at."""
    seen = []
    real = checked

    def check(*arguments: Any, **options: Any) -> Any:
        seen.append(real(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(telling, "check", check)

    assert searched("ONCE", endless(), "endless")[0] == "the checker's shortest trace to it, 4 steps:"
    assert seen[0].states < 20
    assert seen[0].engine == "scalar"


def test_a_world_without_end_that_keeps_it_is_looked_at_as_far_as_was_asked_for() -> None:
    """And it is said how far that was."""
    world = endless()
    world.always("COUNTED", "nothing is counted below nothing", world.properties[0].expr | ~world.properties[0].expr)

    assert searched("COUNTED", world, "endless", 500) == ["the checker finds no trace to it among the first 500 states of endless"]


def test_a_failure_that_needs_no_step_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Instead of an example that has none."""
    assert cli.run(["fuzz", f"{TOYS}:broken", "--sessions", "1"]) == 1
    out = capsys.readouterr().out

    assert "FAILED KEPT: the last coin is kept\nno step is needed: it is so from the beginning\n" in out
    assert "0 steps:" not in out.partition("Hypothesis")[0].partition("the checker")[0]


def interrupt(*_arguments: object, **_options: object) -> Any:
    """Somebody has waited for long enough."""
    raise KeyboardInterrupt


class Interrupted:
    """A function that is interrupted the third time."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.count = 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.count += 1
        if self.count == 3:
            raise KeyboardInterrupt
        return self.real(*arguments, **options)


@pytest.mark.parametrize("where", ["shorter", "the checker", "Hypothesis"])
def test_an_interrupt_loses_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    """It is told as far as it is known, kept, and can be played again; the run is over, with 130."""
    with monkeypatch.context() as patched:
        if where == "shorter":
            patched.setattr(walker, "played", Interrupted(walker.played))
        elif where == "the checker":
            patched.setattr(telling, "check", interrupt)
        else:
            patched.setattr(machine, "example_of", interrupt)
        code = cli.run(["fuzz", f"{TOYS}:world", "--sessions", "500", "--seed", "1", "--keep-going"])
    out = capsys.readouterr().out

    assert code == 130
    assert "FAILED ONCE: one coin, one passage\nthe example, " in out
    assert telling.BROKEN_OFF in out
    assert ("the checker's shortest trace" in out) is (where == "Hypothesis")
    assert "1 failure; " in out
    assert out.endswith("; interrupted\n")
    token = json.loads(next((tmp_path / ".troth" / "fuzz").iterdir()).read_text())["token"]
    assert f"--replay {token}" in out

    assert cli.run(["fuzz", f"{TOYS}:world", "--replay", token]) == 1
    assert "the checker's shortest trace to it, 4 steps:" in capsys.readouterr().out


def test_an_interrupt_while_a_failure_is_looked_at_again_loses_nothing_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whether it is one that was kept, which goes on being kept, or one of a token."""
    assert cli.run(["fuzz", f"{TOYS}:world", "--sessions", "500", "--seed", "1"]) == 1
    (kept,) = (tmp_path / ".troth" / "fuzz").iterdir()
    token = json.loads(kept.read_text())["token"]
    monkeypatch.setattr(telling, "check", interrupt)
    for asked in (["--replay", token], ["--sessions", "500", "--keep-going"]):
        capsys.readouterr()

        assert cli.run(["fuzz", f"{TOYS}:world", *asked]) == 130
        out = capsys.readouterr().out
        assert "FAILED ONCE: one coin, one passage\nthe example, 4 steps:" in out
        assert telling.BROKEN_OFF in out
        assert out.endswith("; interrupted\n")
    assert kept.exists()


@pytest.mark.parametrize("target", ["core", "runtime"])
def test_a_token_that_is_cut_off_is_said_to_be(capsys: pytest.CaptureFixture[str], target: str) -> None:
    """In words of whoever copied it, not of how it is read."""
    for text in ("AAAA", "AQEF", "A", ""):
        assert cli.run(["fuzz", "--target", target, "--replay", f"{target}.{text}"]) == 2
        err = capsys.readouterr().err
        assert "is no replay token" in err
        assert "copy it whole" in err
        assert "index" not in err
    cut = {"core": "core.AQEBAQE", "runtime": "runtime.AAAA"}[target]
    assert cli.run(["fuzz", "--target", target, "--replay", cut]) == 2
    assert "(it is cut off)" in capsys.readouterr().err
