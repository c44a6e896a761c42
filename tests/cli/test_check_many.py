"""What ``troth check`` prints of several worlds: a line for each, then a line for each property with the worlds that it was checked in."""

from __future__ import annotations

import pytest

from tests.cli.test_check import run


def test_each_world_and_each_property_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A property that two worlds claim is named once, with both."""
    code, out, _ = run(capsys, "published/die_hard", "published/peterson", "lease/patience", "lease")

    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines[:4]] == ["published/die_hard", "published/peterson", "lease/patience", "lease"]
    (beat,) = [line for line in lines if line.startswith("P45 ")]
    assert beat.split()[1] == "HOLDS"
    assert beat.endswith("   lease/patience, lease")
    assert lines[-1].endswith("nothing vacuous   exit 0")


def test_what_is_violated_is_told_under_its_world_and_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    """With its trace where it happened; the verdict of the property is the worst one."""
    code, out, _ = run(capsys, "published/peterson", "published/dining_philosophers", "--bound", "FAIR=0")

    lines = out.splitlines()
    assert code == 1
    assert any(line.startswith("  Enters0") and "VIOLATED" in line for line in lines)
    assert any(line.startswith("Enters0") and "VIOLATED" in line for line in lines)
