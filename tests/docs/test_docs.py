"""The documentation is executed, and what is generated is current."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from troth.spec.pages import pages
from troth.statemachines import PARTIES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = DOCS / "reference" / "machines"

WITH_EXAMPLES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "```python" in path.read_text())]
FENCE = re.compile(r"^```(python|text)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_run_and_print_what_the_page_shows(path: Path) -> None:
    """A page's python blocks are one program; a text block is what was printed since the last one. Its tests are run too."""
    names: dict[str, Any] = {"__name__": "example"}
    printed = io.StringIO()
    for language, block in FENCE.findall(path.read_text()):
        if language == "python":
            with redirect_stdout(printed):
                exec(compile(block, str(path), "exec"), names)
        else:
            assert printed.getvalue() == block
            printed = io.StringIO()
    for name, found in list(names.items()):
        if name.startswith("test_"):
            found()


def test_the_first_machine_is_declared_drawn_stepped_and_tested_in_under_thirty_lines() -> None:
    """The promise of the tutorial's first page."""
    block = FENCE.findall((DOCS / "tutorial" / "first-machine.md").read_text())[0][1]

    assert len(block.splitlines()) < 30
    for part in ("Machine(", "mermaid(", ".handle(", "def test_"):
        assert part in block


def test_the_pages_of_the_machines_are_current() -> None:
    """Run docs/generate.py after changing a machine."""
    committed = {path.name: path.read_text() for path in GENERATED.glob("*.md")}
    current = pages(PARTIES)

    assert sorted(current) == sorted(committed)
    for name, text in current.items():
        assert text == committed[name], f"docs/reference/machines/{name} is stale: run docs/generate.py"


def test_a_page_shows_every_row_ignore_and_refusal() -> None:
    """Nothing that the table says is left out."""
    current = pages(PARTIES)
    for party_name, party in PARTIES.items():
        for machine in party.machines:
            text = current[f"{party_name}.{machine.name}.md"]
            for row in machine.rows:
                assert f"\n| {row.id} | " in text
            for why in [rule.why for rule in machine.ignore] + [rule.why for rule in machine.refuse]:
                assert why.replace("|", "\\|") in text


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    """Relative links only; the others would need a network."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), f"{path.name}: {target}"
