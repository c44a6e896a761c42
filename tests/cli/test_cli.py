"""The command line: what it prints, where, and with which code it exits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import troth
from tests.spec.test_timers import lease
from tests.spec.toys import TURNSTILE, TURNSTILE_PARTY
from troth import cli
from troth.cli import export
from troth.spec.diagrams import mermaid

PARTIES = {"kiosk": TURNSTILE_PARTY, "tenant": lease().party, "landlord": lease().party}


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line of a protocol of toys."""
    monkeypatch.setattr(export, "parties", lambda: PARTIES)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = cli.run(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_machine_is_drawn_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """The diagram and nothing else."""
    assert run(capsys, "export", "mermaid", "gate") == (0, mermaid(TURNSTILE), "")
    assert run(capsys, "export", "mermaid", "kiosk.gate") == (0, mermaid(TURNSTILE), "")


def test_a_shared_name_draws_both(capsys: pytest.CaptureFixture[str]) -> None:
    """A labelled part each."""
    code, out, err = run(capsys, "export", "mermaid", "lease")

    assert (code, err) == (0, "")
    assert out.index('state "tenant.lease"') < out.index('state "landlord.lease"')


def test_no_name_draws_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Every machine of every party."""
    code, out, _ = run(capsys, "export", "mermaid")

    assert code == 0
    assert [name in out for name in ("kiosk.gate", "tenant.lease", "landlord.lease")] == [True] * 3


def test_diagrams_are_written_as_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One a machine, under its full name, in a folder that is made if need be."""
    assert run(capsys, "export", "mermaid", "--out", str(tmp_path / "new" / "folder")) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "kiosk.gate.mmd",
        "landlord.lease.mmd",
        "tenant.lease.mmd",
    ]
    assert (tmp_path / "new" / "folder" / "kiosk.gate.mmd").read_text() == mermaid(TURNSTILE)


def test_an_unknown_machine_is_a_usage_error_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With the names there are."""
    expected = "troth: there is no machine 'door'; there are gate, lease, kiosk.gate, landlord.lease, tenant.lease\n"

    assert run(capsys, "export", "mermaid", "door") == (2, "", expected)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "troth: Missing command.\n"),
        (["dance"], "troth: No such command 'dance'.\n"),
        (["export", "mermaid", "--zzz"], "troth: No such option"),
        (["export", "mermaid", "a", "b"], "troth: Got unexpected extra argument (b)\n"),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    """Exit code 2."""
    code, out, err = run(capsys, *arguments)

    assert (code, out) == (2, "")
    assert err.startswith(says)
    assert err.count("\n") == 1


def test_help_and_version_are_successes(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists every command without loading it."""
    assert run(capsys, "--version") == (0, f"troth, version {troth.__version__}\n", "")
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for name, (_, line) in cli.COMMANDS.items():
        assert name in out
        assert line in " ".join(out.split())


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_listed_command_is_there(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The table of commands goes stale silently otherwise."""
    assert run(capsys, name, "--help")[0] == 0


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ValueError("two\nlines"), 3, "troth: ValueError: two lines\n"),
        (click.ClickException("no such file"), 3, "troth: no such file\n"),
        (KeyboardInterrupt(), 130, "troth: interrupted\n"),
        (click.Abort(), 130, "troth: interrupted\n"),
    ],
)
def test_whatever_goes_wrong_has_its_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, says: str
) -> None:
    """An error is never taken for a verdict."""

    def fail() -> Any:
        raise error

    monkeypatch.setattr(export, "parties", fail)
    found, out, err = run(capsys, "export", "mermaid")

    assert (found, out, err.lstrip("\n")) == (code, "", says)  # on an interrupt click ends the line that ^C stands on


def test_an_error_can_be_seen_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """For who has to find it."""
    monkeypatch.setenv("TROTH_TRACEBACK", "1")
    monkeypatch.setattr(export, "parties", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        cli.run(["export", "mermaid"])


def test_a_command_may_return_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """How ``check`` says "violated"."""

    @click.command()
    def sad() -> int:
        return 1

    monkeypatch.setitem(cli.cli.commands, "sad", sad)
    assert cli.run(["sad"]) == 1


def test_the_package_runs_as_a_module() -> None:
    """``python -m troth`` is the ``troth`` command."""
    done = subprocess.run([sys.executable, "-m", "troth", "--version"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, f"troth, version {troth.__version__}\n")


def test_a_reader_who_goes_away_is_no_error_message() -> None:
    """``troth export mermaid | head -1``."""
    script = "import sys, troth.cli; sys.exit(troth.cli.run(['--help']))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()
        assert done.stderr.read() == ""


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    """Help and completion must be instant."""
    heavy = "{'numpy', 'scipy', 'trio', 'hypothesis', 'rich'}"
    script = f"import sys, troth.cli; troth.cli.run(['--help']); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
