"""``troth export tla``: where it writes, and what it says when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from troth import cli
from troth.models.tla import exported
from troth.models.worlds.bench.session import session

SMALL = ["bench/session", *(f"--bound={name}=1" for name in "TRAC")]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = cli.run(["export", "tla", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_module_and_then_its_configuration_are_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration is behind the end of the module, where TLA+ reads no more."""
    export = exported(session(T=1, R=1, A=1, C=1))
    code, out, err = run(capsys, *SMALL)

    assert (code, err) == (0, "")
    assert out.startswith(export.text)
    assert out.endswith(f" BenchSession.cfg {'-' * 32}\n{export.config}")


def test_both_are_written_as_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Named after the module, in a folder that is made if need be."""
    assert run(capsys, *SMALL, "--observations", "--out", str(tmp_path / "new")) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["BenchSession.cfg", "BenchSession.tla"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere"], 2, "troth: there is no world 'nowhere'"),
        (["bench/session", "--bound", "Z=1"], 2, "troth: "),
        ([*SMALL, "--max-states", "10"], 3, "troth: Exhausted: world bench/session: the search stopped at "),
    ],
)
def test_what_cannot_be_exported_is_one_line_on_stderr(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    """With the codes of every command."""
    found, out, err = run(capsys, *arguments)

    assert (found, out) == (code, "")
    assert err.startswith(says)
    assert err.count("\n") == 1
