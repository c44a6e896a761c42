"""The guardian is small: it loads the standard library and its own modules, and nothing that is installed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from troth.runtime.processes import guardian_main

FOLDER = Path(guardian_main.__file__).parent
OWN = "troth.runtime.processes"


def modules_of_the_guardian() -> dict[str, set[str]]:
    """Its modules, each with the names that it imports."""
    found: dict[str, set[str]] = {}
    left = ["guardian_main"]
    while left:
        name = left.pop()
        if name in found:
            continue
        found[name] = set()
        for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                module = str(node.module)
                found[name] |= {f"{OWN}.{alias.name}" for alias in node.names} if module == OWN else {module}
        left += [module.removeprefix(f"{OWN}.") for module in found[name] if module.startswith(f"{OWN}.")]
    return found


def test_the_modules_of_the_guardian_import_the_standard_library_and_each_other() -> None:
    modules = modules_of_the_guardian()

    assert {"guarding", "wards", "table", "child", "channel", "leftovers"} < set(modules)
    for name, imported in modules.items():
        for module in imported:
            assert module.startswith(f"{OWN}.") or module.split(".")[0] in sys.stdlib_module_names, f"{name} imports {module}"


def test_a_guardian_has_loaded_nothing_of_the_package_but_its_own_modules() -> None:
    """No ``__init__`` of troth is run, so whatever those come to import costs the guardian nothing."""
    script = (
        "import runpy, sys; main = runpy.run_path(sys.argv[1]); main['stand_alone']()\n"
        "from troth.runtime.processes import guarding\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('troth', 'trio', 'attr', 'numpy', 'msgspec')))"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(FOLDER / "guardian_main.py")], capture_output=True, text=True, check=True, cwd="/"
    ).stdout.split()

    assert set(said) == {"troth", "troth.runtime", OWN, *(f"{OWN}.{name}" for name in modules_of_the_guardian() if name != "guardian_main")}
