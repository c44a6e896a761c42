"""The house: what setuptools ships, what may import what, and how long anything may be."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
CODE = ("spec", "statemachines", "models", "runtime")

MODULE_LINES = 400
FUNCTION_LINES = 70
CATALOGUES = {"spec/messages.py"}
"""One short class after another: to split such a list would only hide half of it."""

THIRD_PARTY = {
    "spec": {"attrs", "attr", "transitions"},
    "statemachines": {"attrs", "attr"},
    "models": {"attrs", "attr", "numpy", "scipy", "hypothesis"},
    "runtime": {"attrs", "attr", "numpy", "trio", "msgspec", "xxhash"},
}
SIBLINGS = {
    "spec": {"troth.spec"},
    "statemachines": {"troth.spec", "troth.statemachines"},
    "models": {"troth.spec", "troth.statemachines", "troth.models"},
    "runtime": {"troth.spec", "troth.statemachines", "troth.runtime"},
}
WORLDLY = {
    *("asyncio", "concurrent", "datetime", "http", "multiprocessing", "os", "pathlib", "pickle", "queue", "random", "secrets", "select"),
    *(
        "selectors",
        "shelve",
        "signal",
        "socket",
        "socketserver",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
    ),
}
"""Standard modules through which a core could see a clock, chance, the system or another thread."""

SEES_MODELS_AND_RUNTIME = {"cli", "testing"}


def packages_of_the_folders() -> dict[str, str]:
    """Every folder with code in it: the package name it must have, and where it is."""
    found = {"troth": "runtime/_package"}
    for top in CODE:
        for init in sorted((ROOT / top).rglob("__init__.py")):
            folder = init.parent.relative_to(ROOT)
            parts = folder.parts[2:] if folder.parts[:2] == ("runtime", "_package") else folder.parts
            found[".".join(("troth", *parts))] = folder.as_posix()
    return found


def modules_of(top: str) -> Iterator[Path]:
    """The modules of one folder; the outermost layer, which lies in ``runtime/_package``, is not the runtime's."""
    for path in sorted((ROOT / top).rglob("*.py")):
        if "_package" not in path.parts:
            yield path


def imports_of(path: Path) -> set[str]:
    """What a module imports, by dotted name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; the folders are laid out only when they are installed"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "troth" else {str(node.module)}
    return found


def test_setuptools_ships_every_folder_that_has_code() -> None:
    """The list in pyproject.toml goes stale silently: a package that is missing from it works from a checkout only."""
    assert sorted(packages_of_the_folders()) == sorted(SETUPTOOLS["packages"])


def test_setuptools_finds_each_package_where_it_lies() -> None:
    """``package-dir`` needs an entry a subpackage wherever the folders are not nested like the names."""
    known = SETUPTOOLS["package-dir"]
    for package, folder in packages_of_the_folders().items():
        parent, _, last = package.rpartition(".")
        inherited = f"{packages_of_the_folders()[parent]}/{last}" if parent else None
        assert folder == known.get(package, inherited), package


@pytest.mark.parametrize("top", CODE)
def test_each_folder_imports_only_what_the_design_allows(top: str) -> None:
    """Import-linter can forbid what it is told of; this is the list of what is allowed, the standard library aside."""
    for path in modules_of(top):
        for name in imports_of(path):
            first = name.split(".")[0]
            if first == "troth":
                assert any(f"{name}.".startswith(f"{sibling}.") for sibling in SIBLINGS[top]), f"{path} imports {name}"
            else:
                assert first in sys.stdlib_module_names or first in THIRD_PARTY[top], f"{path} imports {name}"


@pytest.mark.parametrize("top", ["spec", "statemachines"])
def test_no_core_can_reach_the_world(top: str) -> None:
    """Time, chance, files, sockets and threads reach a core as events or not at all."""
    for path in modules_of(top):
        assert not {name.split(".")[0] for name in imports_of(path)} & WORLDLY, path


def test_only_the_command_line_and_the_testing_tools_see_both_models_and_runtime() -> None:
    """A training script must not load the checker, and nothing but these two may join them."""
    outer = ROOT / "runtime" / "_package"
    for path in sorted(outer.rglob("*.py")):
        if path.relative_to(outer).parts[0].removesuffix(".py") not in SEES_MODELS_AND_RUNTIME:
            assert not any(f"{name}.".startswith("troth.models.") for name in imports_of(path)), path


def test_no_folder_at_the_root_shadows_the_package() -> None:
    """``import troth`` in the checkout must find the installed package."""
    assert not (ROOT / "troth").exists()
    assert not (ROOT / "troth.py").exists()


def test_the_version_is_said_once_and_the_same() -> None:
    """The package and its metadata agree."""
    import troth

    assert PROJECT["project"]["version"] == troth.__version__


@pytest.mark.parametrize("top", [*CODE, "tests"])
def test_modules_and_functions_stay_readable(top: str) -> None:
    """A module fits in one sitting and a function on one screen."""
    for path in sorted((ROOT / top).rglob("*.py")):
        source = path.read_text()
        assert len(source.splitlines()) <= MODULE_LINES or path.relative_to(ROOT).as_posix() in CATALOGUES, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                assert node.end_lineno - node.lineno < FUNCTION_LINES, f"{path}: {node.name}"


@pytest.mark.parametrize("top", ["spec", "runtime/_package"])
def test_every_public_thing_says_what_it_is(top: str) -> None:
    """Modules, public classes and public functions have a docstring."""
    for path in sorted((ROOT / top).rglob("*.py")):
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), path
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path}: {node.name}"


def test_ci_runs_what_the_readme_tells_a_reader_to_run() -> None:
    """The tests by the README's own command; the slow ones by hand; every standard world through the command line."""
    readme = (ROOT / "README.md").read_text()
    ran = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if not line.lstrip().startswith("#")]
    (command,) = [line for line in readme.splitlines() if line.endswith("python -m pytest")]

    assert [line for line in ran if "pytest" in line.lower()] == [
        'export PYTEST_ADDOPTS="-n 2" # else exactly as README.md says; the slow tests are run by hand',
        f"check {command.split(' && ')[1]}",
    ]
    assert f"run {command.split(' && ')[0]}" in ran
    assert "check troth check" in ran
    assert [line.split()[4] for line in ran if line.startswith("check troth fuzz --target ")] == ["core", "runtime"]
