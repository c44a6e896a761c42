"""What must not be in the runtime at all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import troth.runtime

RUNTIME = Path(next(iter(troth.runtime.__path__))).resolve()
FILES = sorted(path for path in RUNTIME.rglob("*.py") if "__pycache__" not in path.parts)
CARRY_CODE = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}


def imported(path: Path) -> set[str]:
    """The top-level modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_there_is_something_to_look_at() -> None:
    assert {"codec.py", "network.py", "guardian_main.py", "ports.py"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(RUNTIME)))
def test_no_format_that_carries_code_is_ever_imported(path: Path) -> None:
    assert not imported(path) & CARRY_CODE
    names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
    assert not names & {"eval", "exec", "__import__"}


def test_no_library_is_asked_to_load_objects() -> None:
    for path in FILES:
        assert not [said for said in ("allow_pickle=True", "torch.load", "read_pickle") if said in path.read_text()]


def test_a_stream_is_declared_authenticated_by_the_challenge_alone() -> None:
    made = {
        path.relative_to(RUNTIME)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and "Authenticated" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
    }

    assert made == {Path("wire/challenge.py")}


def test_sockets_are_opened_by_the_network_port_and_by_the_guardian_alone() -> None:
    opened = {str(path.relative_to(RUNTIME).parent) for path in FILES if "socket" in imported(path)}

    assert opened <= {"system", "processes"}


def test_macs_are_compared_in_constant_time() -> None:
    """No ``==`` or ``!=`` on anything that is called a proof or a secret, except on its length."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
                said = " ".join(ast.unparse(part) for part in (node.left, *node.comparators))
                assert "len(" in said or not any(word in said.lower() for word in ("proof", "secret")), f"{path}: {said}"
