"""The page of findings is current, and what it points at is there."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from troth.models.mutants import DEFECTS, Patch

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("troth_docs_findings", ROOT / "docs" / "findings.py")
assert spec is not None
assert spec.loader is not None
findings: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(findings)

SLOW = ("D9",)
"""Found in a world of few states, each of which takes long."""
PATCHES = [pytest.param(p, id=p.name, marks=[pytest.mark.slow] if p.name in SLOW else []) for p in DEFECTS]


def test_the_page_is_current() -> None:
    """With the diagrams that it has. ``python docs/findings.py`` writes it."""
    assert findings.page(findings.known()) == findings.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("patch", PATCHES)
def test_the_diagram_is_the_run_that_the_checker_finds(patch: Patch) -> None:
    """Searched anew."""
    assert findings.diagram(findings.counterexample(patch)) == findings.known()[patch.name]


def test_every_defect_is_told_once() -> None:
    """D1 to D31: those that a table shows with their runs, the others in a table."""
    told = json.loads(findings.TOLD.read_text(encoding="utf-8"))
    names = [*told["tables"], *told["runtime"]]

    assert sorted(names, key=lambda name: int(name[1:])) == [f"D{number}" for number in range(1, 32)]


def test_every_test_that_is_named_exists() -> None:
    """No dead links: a file, or a test in it."""
    page = findings.PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)

    assert len(named) > len(DEFECTS)
    for file, name in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text, f"{file} has no {name}"
