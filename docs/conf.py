"""Sphinx settings. The build needs no network and treats warnings as errors."""

from __future__ import annotations

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


def setup(app: Sphinx) -> dict[str, Any]:
    """Make ``mermaid`` a language that Pygments knows."""
    app.add_lexer("mermaid", Mermaid)
    return {"parallel_read_safe": True}
