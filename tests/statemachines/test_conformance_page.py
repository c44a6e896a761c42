"""The page that says how Troth conforms: no item is missing, and what it cites exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from troth.spec.properties import PROPERTIES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "conformance.md").read_text(encoding="utf-8")
ITEMS = re.findall(r"^\| ([KRD]\d+) \| (.*) \|$", PAGE, flags=re.MULTILINE)
PARTS = re.findall(r"\*later: ([\w -]+)\*", PAGE)


@pytest.mark.parametrize(("letter", "count"), [("K", 70), ("R", 30), ("D", 31)])
def test_every_item_has_its_line(letter: str, count: int) -> None:
    """Once, and in order."""
    assert [id_ for id_, _ in ITEMS if id_[0] == letter] == [f"{letter}{number}" for number in range(1, count + 1)]


def test_every_test_that_is_cited_exists() -> None:
    """By its name, anywhere under tests/."""
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }

    assert set(re.findall(r"`(test_\w+)`", PAGE)) - there == set()


def test_every_item_is_shown_or_says_why_not() -> None:
    """By a test, by the part that it belongs to, or by what makes it have no counterpart."""
    assert [id_ for id_, text in ITEMS if not re.search(r"`test_|later: |no counterpart: ", text)] == []


def test_every_part_that_is_named_is_introduced() -> None:
    """One name a part, and no part that nothing belongs to."""
    named = {part for _, text in ITEMS for part in re.findall(r"later: ([^;|,]+?)(?= *(?:;|\||$))", text)}

    assert named == set(PARTS)


def test_every_property_that_is_cited_exists() -> None:
    """A defect breaks a promise of the catalogue, one that something happens, or one of a part that is to come."""
    for id_, text in ITEMS:
        if id_[0] == "D":
            cited = text.split(" | ")[1].split(", ")
            assert all(name in PROPERTIES or name in ("waits", "-") for name in cited), (id_, cited)
