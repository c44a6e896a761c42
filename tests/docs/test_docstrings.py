"""The examples in docstrings are run, and the public names are those that the page lists."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import troth

ROOT = Path(__file__).resolve().parents[2]


def _modules() -> list[str]:
    """Every module with an example."""
    found = []
    for info in pkgutil.walk_packages(troth.__path__, "troth."):
        if info.name.endswith(("__main__", "guardian_main")) or "._package" in info.name:  # in place it lies there too
            continue
        spec = importlib.util.find_spec(info.name)
        if spec is not None and spec.origin and ">>> " in Path(spec.origin).read_text():
            found.append(info.name)
    return found


@pytest.mark.parametrize("name", _modules())
def test_the_examples_of_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)

    assert result.attempted > 0
    assert result.failed == 0


def test_there_are_examples() -> None:
    assert "troth.runtime.backend" in _modules()
    assert "troth.client.model" in _modules()


def test_the_public_names_are_the_same_in_all_three_lists() -> None:
    """The imports that only tools see, ``__all__``, and the table that a running program uses."""
    source = ast.parse((ROOT / "runtime" / "_package" / "__init__.py").read_text())
    imports = [node for part in source.body if isinstance(part, ast.If) for node in part.body if isinstance(node, ast.ImportFrom)]
    seen = {(node.module, alias.name) for node in imports for alias in node.names}

    assert {name for _, name in seen} == set(troth.__all__) - {"__version__"}
    for module, name in seen:
        assert getattr(troth, name) is getattr(importlib.import_module(str(module)), name)
    assert set(troth.__all__) <= set(dir(troth))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        troth.nothing  # noqa: B018


def test_every_public_name_says_what_it_is_and_is_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "public.md").read_text()
    for name in troth.__all__:
        if name != "__version__":
            assert getattr(troth, name).__doc__, name
        assert f"`{name}`" in page, name
