"""Every numbered property that no world checks is checked elsewhere under its id, and something is shown that breaks it."""

from __future__ import annotations

import ast
from pathlib import Path

from troth.spec.properties import PROPERTIES, By

TESTS = Path(__file__).resolve().parents[1]


def named() -> set[str]:
    """The names of all tests."""
    found = set()
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_p"):
                found.add(node.name)
    return found


def test_a_property_that_no_world_checks_has_a_check_and_a_patch_that_breaks_it() -> None:
    """``test_p64_holds...`` checks it, ``test_p64_is_violated_by...`` brings the patch."""
    names = named()
    elsewhere = [id_.lower() for id_, found in PROPERTIES.items() if By.WORLDS not in found.by]
    wanted = [f"test_{id_}_{what}" for id_ in elsewhere for what in ("holds", "is_violated_by")]

    assert elsewhere != []
    assert [start for start in wanted if not any(name.startswith(start) for name in names)] == []
