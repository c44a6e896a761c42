"""``troth fuzz``: what it prints, with which code it exits, and what it keeps."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from troth import cli
from troth.testing import Cores, SessionResult

TOYS = str(Path(__file__).with_name("toys.py"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is kept in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = cli.run(["fuzz", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the object."""
    code, out, _ = run(capsys, *arguments, "--json")
    found: dict[str, Any] = json.loads(out)
    return code, found


def test_the_seed_and_how_to_repeat_the_run_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything that may take long, or fail."""
    code, out, _ = run(capsys, f"{TOYS}:sound", "--sessions", "3", "--seed", "5")

    assert code == 0
    assert out.splitlines()[0] == f"seed 5  again: troth fuzz {TOYS}:sound --sessions 3 --seed 5"
    assert "no failure; " in out.splitlines()[-1]


def test_the_object_has_the_keys_that_are_promised(capsys: pytest.CaptureFixture[str]) -> None:
    """One object on stdout and nothing else; the seed is on stderr beside."""
    code, found = data(capsys, "ledger", "--sessions", "2", "--seed", "5", "--steps", "50")

    assert code == 0
    assert {"seed", "target", "steps", "sessions", "seconds", "failures", "coverage"} <= set(found)
    assert (found["seed"], found["target"], found["steps"], found["sessions"], found["failures"]) == (5, "core", 100, 2, [])
    assert {"rows", "guards", "pairs"} <= set(found["coverage"])
    assert 0 < found["coverage"]["rows"] < 1
    assert "trainer.calls.C1" not in found["missing"]["rows"]


def test_a_failure_is_told_kept_and_tried_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """1; and the next run, of another seed, begins with it."""
    world = f"{TOYS}:world"
    code, out, _ = run(capsys, world, "--sessions", "500", "--seed", "1")
    kept = list((tmp_path / ".troth" / "fuzz").iterdir())

    assert code == 1
    assert "FAILED ONCE: one coin, one passage" in out
    assert "the checker's shortest trace to it, 4 steps:" in out
    assert "state.slot_pay(choice=0)" in out
    assert len(kept) == 1
    token = json.loads(kept[0].read_text())["token"]
    assert f"replay: troth fuzz {world} --replay {token}" in out

    code, out, _ = run(capsys, world, "--sessions", "1", "--seed", "2")
    assert code == 1
    assert "it was kept, and it fails again" in out
    assert "0 steps in 0 sessions" in out


def test_what_was_kept_and_fails_no_more_is_kept_no_more(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """And a token that fits nothing any more is no failure either."""
    folder = tmp_path / "kept"
    folder.mkdir()
    said = {"target": "core", "worlds": [f"{TOYS}:sound"], "bounds": {}, "property": "ONCE", "token": "core.AAAA", "seed": 1}
    (folder / "core.json").write_text(json.dumps(said))
    code, out, _ = run(capsys, f"{TOYS}:sound", "--sessions", "1", "--keep", str(folder))

    assert code == 0
    assert "it does not fail any more" in out
    assert list(folder.iterdir()) == []


def test_a_replay_line_plays_the_failure_again(capsys: pytest.CaptureFixture[str]) -> None:
    """1, with the same property; a token that fits nothing is a mistake of the command line."""
    _, found = data(capsys, f"{TOYS}:world", "--sessions", "500", "--seed", "1", "--no-keep")
    line = found["failures"][0]["replay"].split()
    assert line[:2] == ["troth", "fuzz"]

    code, again = data(capsys, *line[2:])
    assert (code, [one["property"] for one in again["failures"]], again["sessions"]) == (1, ["ONCE"], 1)
    code, _, err = run(capsys, f"{TOYS}:world", "--replay", "core.nonsense")
    assert code == 2
    assert err.startswith("troth: ")


def test_parties_cores_and_bounds_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """A declaration, a class of cores, one of our own parties, a blueprint at other bounds; and a name that is none."""
    once = ("--sessions", "1", "--steps", "20", "--seed", "1", "--no-keep")

    assert run(capsys, f"{TOYS}:TURNSTILE", *once)[0] == 0
    assert run(capsys, "receiver", *once)[0] == 0
    assert run(capsys, f"{TOYS}:Greedy", "--sessions", "20", "--seed", "1", "--no-keep")[0] == 1
    assert run(capsys, f"{TOYS}:long_fare", "--bound", "COINS=30", *once)[0] == 0  # it takes thirty steps
    assert run(capsys, f"{TOYS}:long_fare", "--bound", "COINS=3", *once)[0] == 1
    code, _, err = run(capsys, "no/such/world")
    assert code == 2
    assert "there is no world" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seconds", "nan"),
        ("--seconds", "inf"),
        ("--seconds", "-1"),
        ("--target", "runtime", "ledger"),
        ("--target", "runtime", "--bound", "TASKS=2"),
        ("--target", "runtime", "--steps", "5"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_heeded_is_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    """Before anything runs, instead of running for ever or as if it had not been said."""
    code, _, err = run(capsys, *arguments)

    assert code == 2
    assert err.splitlines()[-1].startswith("troth: ")


def test_a_folder_that_cannot_be_written_to_hides_no_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What was found is told first; then comes the error."""
    (tmp_path / "file").write_text("in the way")
    code, out, err = run(capsys, f"{TOYS}:world", "--sessions", "500", "--seed", "1", "--keep", str(tmp_path / "file" / "kept"))

    assert code == 3
    assert "FAILED ONCE" in out
    assert "--replay" in out
    assert "Error" in err


def test_the_replay_line_of_a_world_in_a_folder_with_a_space_is_one_for_a_shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As it stands there, it plays the failure again."""
    folder = tmp_path / "my worlds"
    folder.mkdir()
    shutil.copy(TOYS, folder)
    _, found = data(capsys, f"{folder}/toys.py:world", "--sessions", "500", "--seed", "1", "--no-keep")
    line = shlex.split(found["failures"][0]["replay"])

    assert line[:2] == ["troth", "fuzz"]
    assert data(capsys, *line[2:])[0] == 1


def test_the_live_runtime_gives_its_traces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of every session what was done, what the parties did, and what was on the wire: the same for the same seed."""
    texts = set()
    for name in ("one", "other"):
        options = ("--sessions", "3", "--seed", "1", "--no-keep", "--trace", str(tmp_path / name))
        assert run(capsys, "--target", "runtime", *options)[0] == 0
        texts.add((tmp_path / name).read_text())

    assert len(texts) == 1
    assert {line.partition(" ")[0] for line in texts.pop().splitlines()} >= {"rule", "trainer.supervisor", "wire"}


def test_several_processes_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Steps, sessions and coverage of all of them."""
    code, found = data(capsys, f"{TOYS}:sound", "--sessions", "40", "--seed", "5", "--jobs", "2")

    assert code == 0
    assert found["sessions"] >= 40
    assert found["steps"] > found["sessions"]


def test_several_processes_find_what_one_finds(capsys: pytest.CaptureFixture[str]) -> None:
    """A failure in any of them ends all."""
    code, found = data(capsys, f"{TOYS}:long_fare", "--seed", "1", "--jobs", "2", "--no-keep")

    assert code == 1
    assert [one["property"] for one in found["failures"]] == ["KEPT"]


FROM_THE_SAME_SEED = ("receiver", "external/tasks", f"{TOYS}:sound")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_gives_the_same_trace_in_any_process(seed: int, tmp_path: Path) -> None:
    """Byte for byte, whatever the seed of hashes."""
    traces = set()
    for hashes in ("0", "1", "4242"):
        file = tmp_path / f"{hashes}.txt"
        command = [sys.executable, "-m", "troth", "fuzz", *FROM_THE_SAME_SEED, "--sessions", "12", "--steps", "60"]
        done = subprocess.run(
            [*command, "--seed", str(seed), "--trace", str(file), "--no-keep"],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        traces.add(file.read_bytes())

    assert len(traces) == 1
    assert len(next(iter(traces))) > 10_000


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_prints_what_was_found_so_far(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    """130, with the steps until then."""
    real = Cores.fuzz

    def interrupted(self: Cores, **options: Any) -> Iterator[SessionResult]:
        for number, result in enumerate(real(self, **options)):
            if number == 2:
                raise KeyboardInterrupt
            yield result

    monkeypatch.setattr(Cores, "fuzz", interrupted)
    code, out, _ = run(capsys, f"{TOYS}:TURNSTILE", "--seconds", "600", "--steps", "30", *(["--json"] if as_json else []))

    assert code == 130
    said = ['"interrupted": true', '"steps": 60'] if as_json else ["60 steps in 2 sessions", "; interrupted"]
    assert [word in out for word in said] == [True, True]
