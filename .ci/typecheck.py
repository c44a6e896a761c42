"""Run mypy and pyright over the package as it is installed: `troth`, not the folders it is made of.

Checked in place, `spec/party.py` would be the module `spec.party` to a type checker and `troth.spec.party` to its siblings: two
copies of every class. So the package and the tests are laid out in a temporary folder first; messages name the files of the checkout.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lay_out(tree: Path, project: dict[str, dict[str, dict[str, object]]]) -> dict[str, str]:
    """Copy the package, the tests and the configuration into ``tree``; return where each copied folder came from."""
    where: dict[str, str] = {}
    folders = project["tool"]["setuptools"]["package-dir"]
    if not isinstance(folders, dict):
        raise TypeError("[tool.setuptools.package-dir] must be a table")
    for package, folder in sorted(folders.items()):
        target = tree.joinpath(*package.split("."))
        shutil.copytree(
            ROOT / folder,
            target,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("_package" if package != "troth" else "", "__pycache__"),
        )
        where["/".join((*package.split("."), ""))] = f"{folder}/"
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    settings = {**project["tool"]["pyright"], "include": ["troth", "tests"]}
    (tree / "pyrightconfig.json").write_text(json.dumps(settings))
    return where


def check(command: list[str], tree: Path, where: dict[str, str]) -> bool:
    """Run one checker in ``tree``; whether it found nothing."""
    print("+", *command, flush=True)
    done = subprocess.run(
        command, cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    said = done.stdout.replace(f"{tree}/", "")
    for copy, original in sorted(where.items(), key=lambda pair: -len(pair[0])):
        said = said.replace(copy, original)
    print(said.rstrip(), flush=True)
    return done.returncode == 0


def main() -> int:
    """Check with both, whatever the first one says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    with tempfile.TemporaryDirectory(prefix="troth-types-") as folder:
        tree = Path(folder).resolve()
        where = lay_out(tree, project)
        python = sys.executable
        commands = [
            [python, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "tree"), "-p", "troth", "-p", "tests"],
            [python, "-m", "pyright", "--pythonpath", python],
        ]
        clean = [check(command, tree, where) for command in commands]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
