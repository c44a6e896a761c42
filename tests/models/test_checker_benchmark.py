"""The benchmark script: what it prints, and that a wrong count is no result. How fast anything is is not for a test to say."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from attrs import evolve

from tests.benchmarks import checker, contenders, speed_page
from tests.benchmarks.measuring import row, run

SCRIPT = Path(checker.__file__)
KEYS = {"name", "n", "median_s", "min_s", "peak_mb", "ratio", "bound", "ok"}


def test_it_prints_one_object_from_any_directory(tmp_path: Path) -> None:
    """Rows for each tool and size, then memory, growth and start-up."""
    command = [sys.executable, str(SCRIPT), "--sizes", "XS", "S", "--tools", "troth", "--runs", "1", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    printed = json.loads(done.stdout)

    assert done.returncode in (0, 1), done.stderr
    assert set(printed) == {"bench", "commit", "cpus", "rows"}
    assert [r["name"] for r in printed["rows"]] == ["XS troth", "S troth", "cost of a state, XS to S", "start-up, 1,002 states"]
    assert all(set(r) >= KEYS for r in printed["rows"])
    assert printed["rows"][1]["peak_mb"] > 10


def test_a_tool_that_is_not_installed_is_a_row_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was measured, so nothing is kept or missed."""
    monkeypatch.setattr("tests.benchmarks.contenders.shutil.which", lambda name: None)
    (found,) = checker.Bench(["S"], ["spin"], 1, io.StringIO()).rows()

    assert (found["name"], found["ok"], found["median_s"]) == ("S spin", None, None)
    assert found["skipped"] == "not installed: apt-get install spin gcc libc6-dev"


def test_a_wrong_count_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast wrong answer is no answer."""
    troth = contenders.TOOLS["troth"]
    monkeypatch.setitem(contenders.TOOLS, "troth", evolve(troth, plan=lambda size, folder: troth.plan("XS", folder)))
    with pytest.raises(checker.WrongCount, match=r"troth on S: counted \(1002, 4190\) states and edges instead of \(10584, 58803\)"):
        checker.Bench(["S"], ["troth"], 1, io.StringIO()).rows()


def test_a_number_in_scientific_notation_agrees_in_the_digits_that_it_has() -> None:
    """SPIN prints no others from a hundred million on; at XL its edges are such."""
    plan = contenders.Plan((), Path(), r"(\S+) states", r"(\S+) transitions", extra=1)

    assert plan.counts("20261286 states 1.3014132e+08 transitions", (20_261_286, 130_141_321)) == (20_261_286, 130_141_321)
    assert plan.counts("7 states 1.3014142e+08 transitions", (7, 130_141_321)) == (7, 130_141_419)
    assert plan.counts("nothing", (7, 8)) == (-1, -2)


def test_memory_is_that_of_all_processes_together(tmp_path: Path) -> None:
    """A child that holds 40 MB is seen beside its parent."""
    child = "x = bytearray(40_000_000); sum(range(5_000_000))"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    alone = run([sys.executable, "-c", "sum(range(5_000_000))"], tmp_path, polled=True).peak_bytes
    together = run([sys.executable, "-c", parent], tmp_path, polled=True).peak_bytes

    assert together > 40_000_000 + 1.5 * alone


def test_what_was_measured_is_drawn_and_written_into_the_page(tmp_path: Path) -> None:
    """One line a tool, in the order of the sizes; rows of other things are passed over, and old tables are replaced."""
    rows = [
        row("M troth", n=3, states=1_000_000, median_s=0.5, min_s=0.4, cpu_s=0.9, peak_mb=100.0),
        row("S troth", n=3, states=10_000, median_s=0.25, min_s=0.2, cpu_s=0.3, peak_mb=40.0),
        row("S spin", states=10_000, ok=None),
        row("start-up, 1,002 states", median_s=0.1),
    ]
    (tmp_path / "measured.json").write_text(json.dumps({"rows": rows}))
    page = tmp_path / "checker-speed.md"
    page.write_text(f"# Speed\n{speed_page.BEGIN}\nold\n{speed_page.END}\nmore\n")

    assert speed_page.series(rows) == {"troth": [(10_000, 25.0), (1_000_000, 0.5)]}
    assert speed_page.main([str(tmp_path / "measured.json")], tmp_path) == 0
    assert ElementTree.fromstring((tmp_path / "checker-cost.svg").read_text()).tag.endswith("svg")
    assert "\n| S | troth | 0.25 | 0.20 | 0.30 | 40 |  | 3 |\n| M | troth |" in page.read_text()
    assert "old" not in page.read_text()
    assert page.read_text().endswith(f"{speed_page.END}\nmore\n")
