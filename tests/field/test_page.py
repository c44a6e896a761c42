"""The page of field reports: none is missing, each is shown or said to be impossible, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "field-reports.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\| (\d-[A-Z]) \| (.*?) \| (.*?) \| (.*) \|$", PAGE, flags=re.MULTILINE)
LAST = {1: "Q", 2: "O", 3: "M", 4: "L", 5: "I", 6: "G", 7: "J", 8: "H", 9: "M"}
"""The last report of each class."""
TRIED = (1, 2, 3, 5, 8, 9)
"""The classes whose reports are tried in ``tests/field``."""


def letters(last: str) -> list[str]:
    return [chr(code) for code in range(ord("A"), ord(last) + 1)]


def named_in(path: Path) -> set[str]:
    """The test functions of a module, in classes or not."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")}


def test_every_report_has_its_line() -> None:
    """Once, in order."""
    assert [id_ for id_, *_ in LINES] == [f"{number}-{letter}" for number, last in LAST.items() for letter in letters(last)]
    assert f"{len(LINES)} of\nthem" in PAGE


def test_every_report_is_shown_by_a_test_or_says_why_it_cannot_occur() -> None:
    assert [id_ for id_, _, _, text in LINES if not re.search(r"`test_|cannot occur: ", text)] == []


def test_every_report_has_its_public_thread() -> None:
    """By repository and number, or its own tests where it has no number."""
    for id_, thread, _, _ in LINES:
        for part in thread.split(", "):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+(#\d+| \(its own [\w ]+\))", part), (id_, part)


def test_every_test_that_is_named_exists() -> None:
    there = {name for path in (ROOT / "tests").rglob("test_*.py") for name in named_in(path)}
    named = set(re.findall(r"`(\w+)`", " ".join(text for *_, text in LINES)))

    assert named - there == set()


@pytest.mark.parametrize("number", TRIED)
def test_every_test_of_a_report_is_named_on_the_page(number: int) -> None:
    """What is in ``tests/field`` for a class is on its lines, slow variants apart; and each class of tests cites its report and thread."""
    (path,) = (ROOT / "tests" / "field").glob(f"test_class_{number}_*.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    threads = {id_: thread.split(", ") for id_, thread, _, _ in LINES}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            said = ast.get_docstring(node) or ""
            cited = re.findall(r"\b(\d-[A-Z]),", said)
            assert f"{number}-{node.name.removeprefix('Test')}" in cited, node.name
            for id_ in cited:
                assert any(thread.split("#")[0] in said for thread in threads[id_]), (node.name, id_)
            assert any(name in PAGE for name in re.findall(r"def (test_\w+)", ast.unparse(node))), node.name
