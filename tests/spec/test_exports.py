"""What ``troth.spec`` gives away, and that nothing is imported before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import troth.spec


def test_every_name_is_found_in_the_module_that_type_checkers_take_it_from() -> None:
    """Three lists say the same: the imports that are seen by tools only, ``__all__``, and the table that a running program uses."""
    tree = ast.parse(Path(troth.spec.__file__ or "").read_text())
    (guarded,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert sorted(seen) == sorted(troth.spec.__all__)
    for name, module in seen.items():
        assert getattr(troth.spec, name) is getattr(import_module(str(module)), name)
    assert set(troth.spec.__all__) <= set(dir(troth.spec))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'troth.spec' has no attribute 'Rwo'"):
        _ = troth.spec.Rwo


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        ("import troth.spec", {"attrs", "transitions", "troth.spec.core"}),
        ("import troth.models", {"transitions", "click", "rich", "numpy", "scipy", "troth.spec.machine", "troth.spec.interpreters"}),
        ("from troth.spec import Called, Send", {"transitions", "troth.spec.machine"}),
        ("from troth.spec import *; PartyCore, always, EACH", {"numpy"}),
    ],
)
def test_only_what_is_used_is_imported(program: str, unwanted: set[str]) -> None:
    """In an interpreter of its own: here everything is imported already."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(sorted({unwanted!r} & set(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
