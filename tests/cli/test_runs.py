"""Single runs on the command line: replayed, drawn as a page, shown where a property cannot be evaluated; and the line of progress."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from troth import cli
from troth.cli import report
from troth.models.exploration import Progress

LOCK = "tests.models.toys:lock"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of `troth check`."""
    code = cli.run(["check", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


CANNOT = """
    @blueprint("m")
    def mine(bounds):
        world = World("m")
        a = world.party("a", lambda s, e: ((s + 1) % 4, []), initial=0, observe={"n": lambda s: s})
        world.may(a, "go")
        world.always("P", "it can be divided by", a.where(
            lambda s: 6 // (2 - s) > 0))
        world.always("Q", "a number where a bool is needed", a.n)
        world.leads_to("L", "it can be told in the end", a.n == 3,
            a.where(lambda s: 6 // (2 - s) > 1))
        return world
"""


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ("P", "mine.py:9: ZeroDivisionError: integer division or modulo by zero"),
        ("Q", "mine.py:10: `a.n` gave 0, not a bool"),
        ("L", "mine.py:12: ZeroDivisionError: integer division or modulo by zero"),
    ],
)
def test_a_property_that_cannot_be_evaluated_names_the_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: str, says: str
) -> None:
    """Where it raised, or else where the property is declared; the state is shown, and shown again with the same words."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("from troth.models import *\n" + dedent(CANNOT))
    code, out, _ = run(capsys, "mine.py:mine", "--property", claim)
    (line,) = [line for line in out.splitlines() if line.startswith(f"  {claim}  ERROR")]
    (replay,) = [line for line in out.splitlines() if "replay:" in line]

    assert code == 3
    assert f"({says})" in line
    assert f"{0 if claim == 'Q' else 2} steps" in line
    again, shown, _ = run(capsys, *replay.split("replay: ")[1].split("   ")[0].split()[2:])
    assert again == 3
    assert claim == "L" or f"ERROR     {claim}" in shown
    assert claim != "P" or f"({says})" in shown


def test_a_page_is_written_beside_the_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With a drawing, and the line that replays it."""
    file = tmp_path / "report.html"
    code, out, _ = run(capsys, LOCK, "--html", str(file))
    found = file.read_text(encoding="utf-8")

    assert code == 1
    assert "--html FILE" not in out
    assert "<svg" in found
    assert f"troth check {LOCK} --property MUTEX --replay " in found


def test_one_run_makes_a_page_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With what it shows, its drawing, and the line that replays it."""
    _, out, _ = run(capsys, LOCK, "--bound", "LOSS=0", "--property", "MUTEX")
    (replay,) = [line.split("replay: ")[1].split("   ")[0] for line in out.splitlines() if "replay:" in line]
    file = tmp_path / "run.html"
    code, _, _ = run(capsys, *replay.split()[2:], "--html", str(file))
    found = file.read_text(encoding="utf-8")

    assert code == 1
    assert "one run of lock" in found
    assert found.count("<svg") == 1
    assert '<td>MUTEX</td><td><span class="verdict violated">VIOLATED</span></td>' in found
    assert f"<code>{replay}</code>" in found


def test_a_run_that_violates_nothing_decides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3: of other runs it says nothing. The witness of a `sometimes` is what was asked for."""
    data = json.loads(run(capsys, LOCK, "--json")[1])
    properties = data["properties"]
    token = properties[1]["witness"]["replay"]

    assert run(capsys, LOCK, "--property", "MUTEX", "--replay", token)[0] == 3
    assert run(capsys, LOCK, "--property", "HELD", "--replay", token)[0] == 0


def test_the_line_of_progress_tells_a_search_from_a_phase_that_is_one_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rate and a frontier where there are any; else the size of what is worked on, and what remains of it."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    line = report.ProgressLine()
    assert line.reporter is not None
    line.reporter(Progress("exploring", 1_000, 5_000, 300, 7, 20_000.0, 0.5))
    line.reporter(Progress("liveness components of L", 1_000, 5_000, 0, 9, 0.0, 2.0, 3.0))
    said = capsys.readouterr().err.split("\r\x1b[K")

    assert said[1:] == [
        "exploring   1,000 states   frontier 300   depth 7   20,000/s   0.50 s",
        "liveness components of L   1,000 states   5,000 edges   2.0 s   about 3.0 s left",
    ]
