"""Sphinx settings. The build needs no network and treats warnings as errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pygments.lexers.special import TextLexer

import troth

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Troth"
author = "The Troth developers"
release = version = troth.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"Troth {troth.__version__}"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}


class Mermaid(TextLexer):
    """Mermaid as plain text: where the pages are rendered as markdown, it is drawn."""

    name = "mermaid"
    aliases = ("mermaid",)


def list_rules(_app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Show the numbered rules of a docstring as a list: in the source they hang under their numbers, which is not markup."""
    shown: list[str] = []
    for line in lines:
        rule = re.match(r"(Rule \d+\.)\s+(.*)", line)
        if rule:
            shown += ["", f"- **{rule[1]}** {rule[2]}"]
        elif shown and shown[-1].startswith("- **Rule") and line.strip():
            shown[-1] += f" {line.strip()}"
        else:
            shown.append(line)
    lines[:] = shown


def setup(app: Sphinx) -> dict[str, Any]:
    """Make ``mermaid`` a language that Pygments knows, and numbered rules a list."""
    app.add_lexer("mermaid", Mermaid)
    app.connect("autodoc-process-docstring", list_rules)
    return {"parallel_read_safe": True}
