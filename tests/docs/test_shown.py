"""What the pages say that a command prints is what it prints."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
spec = importlib.util.spec_from_file_location("troth_docs_shown", DOCS / "shown.py")
assert spec is not None
assert spec.loader is not None
shown: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shown)


@pytest.mark.parametrize("path", shown.pages(), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_shows_what_its_commands_print(path: Path) -> None:
    """Run docs/shown.py after changing what a command prints."""
    text = path.read_text(encoding="utf-8")

    assert shown.timeless(shown.shown(text)) == shown.timeless(text)


def test_the_tutorial_finds_a_bug_in_forty_lines_and_fixes_it() -> None:
    """The promise of its first paragraph: violated before, and not after."""
    text = (DOCS / "tutorial" / "check-a-protocol.md").read_text(encoding="utf-8")
    first = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)[0]
    exits = re.findall(r"exit (\d)", text)

    assert len([line for line in first.splitlines() if line]) <= 40
    assert exits == ["1", "0", "0", "1"]
