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
from troth.testing.keeping import Kept
from troth.testing.live.choices import Walk as Drawn
from troth.testing.live.programs import token
from troth.testing.live.recording import Recording
from troth.testing.live.target import SESSIONS
from troth.testing.live.walking import Walk

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


def kept(folder: Path, token: str, **other: Any) -> Path:
    """A failure of the sound world that somebody has kept."""
    folder.mkdir(exist_ok=True)
    said = {"target": "core", "worlds": [f"{TOYS}:sound"], "bounds": {}, "property": "ONCE", "token": token, "seed": 1, **other}
    path = folder / "core-ONCE.json"
    path.write_text(json.dumps(said))
    return path


def test_what_was_kept_and_fails_no_more_is_kept_no_more(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With the line that would play it again, since its file is gone."""
    _, found = data(capsys, f"{TOYS}:world", "--sessions", "500", "--seed", "1", "--no-keep")
    token = found["failures"][0]["replay"].rpartition(" ")[2].replace("world", "sound")  # the same rules, with the bug mended
    kept(tmp_path / "kept", token)
    code, out, _ = run(capsys, f"{TOYS}:sound", "--sessions", "1", "--keep", str(tmp_path / "kept"))

    assert code == 0
    assert "it does not fail any more" in out
    assert f"--replay {token}" in out
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_was_kept_and_cannot_be_played_any_more_is_put_aside(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It may be all that anybody knows of a fault: it is not thrown away, and it is said what can be done. It is not tried again."""
    folder = tmp_path / "kept"
    for number in (1, 2):
        path = kept(folder, f"core.AAA{number}", seed=5)
        text = path.read_text()
        code, out, _ = run(capsys, f"{TOYS}:sound", "--sessions", "1", "--keep", str(folder))
        aside = folder / ("core-ONCE.stale.json" if number == 1 else "core-ONCE-2.stale.json")

        assert code == 0
        assert f"put aside as {aside.name}: look for it with troth fuzz {TOYS}:sound --seed 5, or delete it" in out
        assert not path.exists()
        assert aside.read_text() == text

    assert "put aside" not in run(capsys, f"{TOYS}:sound", "--sessions", "1", "--keep", str(folder))[1]


def test_failures_of_one_world_at_different_bounds_are_kept_beside_each_other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """None is written over another; and each is tried where its bound is asked for."""
    for coins in (2, 3):
        world = (f"{TOYS}:long_fare", "--bound", f"COINS={coins}", "--keep", str(tmp_path / "kept"), "--sessions", "5", "--seed", "1")
        assert run(capsys, *world)[0] == 1
        assert "it was kept, and it fails again" in run(capsys, *world)[1]
    said = [json.loads(path.read_text())["bounds"] for path in sorted((tmp_path / "kept").iterdir())]

    assert said == [{"COINS": 3}, {"COINS": 2}]


def test_a_kept_failure_that_fails_again_stays_what_it_was(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run that goes on may find its property violated in other ways, which is no reason to forget this one."""
    world = (f"{TOYS}:world", "--keep", str(tmp_path / "kept"), "--sessions", "500")
    run(capsys, *world, "--seed", "1")
    (path,) = (tmp_path / "kept").iterdir()
    text = path.read_text()
    code, found = data(capsys, *world, "--seed", "2", "--keep-going")

    assert (code, [one["property"] for one in found["failures"]], found["sessions"]) == (1, ["ONCE"], 500)
    assert [one.read_text() for one in (tmp_path / "kept").iterdir()] == [text]


def test_a_replay_line_plays_the_failure_again(capsys: pytest.CaptureFixture[str]) -> None:
    """1, with the same property; a token that fits nothing is a mistake of the command line."""
    _, found = data(capsys, f"{TOYS}:world", "--sessions", "500", "--seed", "1", "--no-keep")
    line = found["failures"][0]["replay"].split()
    assert line[:2] == ["troth", "fuzz"]

    code, again = data(capsys, *line[2:])
    assert (code, [one["property"] for one in again["failures"]], again["sessions"]) == (1, ["ONCE"], 1)
    assert again["seconds"] > 0
    code, _, err = run(capsys, f"{TOYS}:world", "--replay", "core.nonsense")
    assert code == 2
    assert err.startswith("troth: ")


@pytest.mark.parametrize("bounds", [(), ("--bound", "COINS=2")])
def test_a_replay_heeds_what_can_be_said_of_one_session(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, bounds: tuple[str, ...]
) -> None:
    """Its bounds, its trace, and what nothing fired; its line has no steps, however long sessions were told to be."""
    world = (f"{TOYS}:long_fare", *bounds)
    _, found = data(capsys, *world, "--steps", "20", "--sessions", "5", "--seed", "1", "--no-keep")
    line = shlex.split(found["failures"][0]["replay"])[2:]
    assert line[:-2] == list(world)

    code, out, _ = run(capsys, *line, "--trace", str(tmp_path / "trace"), "--missing")
    assert code == 1
    assert f"{3 if not bounds else 2} steps in 1 session, " in out
    assert len((tmp_path / "trace").read_text().splitlines()) >= 2


def test_a_session_of_the_live_runtime_is_played_again_with_its_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same as when it was run, byte for byte; and its time is said."""
    first, again = tmp_path / "first", tmp_path / "again"
    run(capsys, "--target", "runtime", "--sessions", "1", "--seed", "1", "--no-keep", "--trace", str(first))
    walk = Walk(Drawn(SESSIONS), Recording())  # the first of that seed
    walk.run()
    code, found = data(capsys, "--target", "runtime", "--replay", token(walk.program), "--trace", str(again))

    assert (code, found["sessions"], found["failures"]) == (0, 1, [])
    assert found["seconds"] > 0
    assert again.read_bytes() == first.read_bytes() != b""


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


UNHEEDED = [
    ("--seconds", "--seconds nan"),
    ("--seconds", "--seconds inf"),
    ("--seconds", "--seconds -1"),
    ("WORLD", "--target runtime ledger"),
    ("--bound", "--target runtime --bound TASKS=2"),
    ("--steps", "--target runtime --steps 5"),
    ("--no-keep", "--keep kept --no-keep"),
    ("--bound TASKS=2: our own", "--bound TASKS=2"),
    ("--bound TASKS=2: trainer", "--bound TASKS=2 trainer"),
    ("--bound TASKS=2: wide/attached", "--bound TASKS=2 wide/attached"),
    ("--bound COINS=2", f"--bound COINS=2 {TOYS}:TURNSTILE"),
    ("--bound COINS=2", f"--bound COINS=2 {TOYS}:Greedy"),
    ("--bound COINS=2", f"--bound COINS=2 {TOYS}:greedy"),
    ("'COINS'", f"--bound COINS=2 {TOYS}:sound"),
    ("--bound COINS=2: receiver", f"--bound COINS=2 {TOYS}:long_fare receiver"),
    ("--trace no/such/folder/trace", "--trace no/such/folder/trace"),
    ("--seconds", "--replay core.AAAA --seconds 5"),
    ("--sessions", "--replay core.AAAA --sessions 5"),
    ("--steps", "--replay core.AAAA --steps 5"),
    ("--seed", "--replay core.AAAA --seed 5"),
    ("--jobs", "--replay core.AAAA --jobs 2"),
    ("--keep-going", "--replay core.AAAA --keep-going"),
    ("--keep", "--replay core.AAAA --keep kept"),
    ("--no-keep", "--replay core.AAAA --no-keep"),
]


@pytest.mark.parametrize(("named", "line"), UNHEEDED)
def test_what_cannot_be_heeded_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str, line: str) -> None:
    """Before anything runs, instead of running for ever or as if it had not been said; in a line that names it."""
    code, out, err = run(capsys, *shlex.split(line))
    said = err.splitlines()[-1]

    assert code == 2
    assert "again: " not in out + err  # there is nothing to do again
    assert said.startswith("troth: ")
    assert named in said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_nothing_can_be_kept_in_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Before an hour is spent on what cannot be kept; and where something can be, no folder is made before."""
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "kept"):
        code, out, err = run(capsys, f"{TOYS}:world", "--sessions", "500", "--seed", "1", "--keep", str(folder))

        assert code == 2
        assert out == ""
        assert err.splitlines()[-1].startswith("troth: ")
        assert str(folder) in err
    assert run(capsys, f"{TOYS}:sound", "--sessions", "1", "--keep", str(tmp_path / "deep" / "kept"))[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_to_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The folder itself, or the one that it would be made in."""
    (tmp_path / "closed").mkdir(mode=0o500)
    for folder in (tmp_path / "closed", tmp_path / "closed" / "kept"):
        code, _, err = run(capsys, f"{TOYS}:world", "--sessions", "500", "--keep", str(folder))

        assert code == 2
        assert "cannot be written to" in err


def test_a_folder_that_cannot_be_written_to_any_more_hides_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was found is told first; then comes the error."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(Kept, "hindrance", lambda _self: None)  # the file came later
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


@pytest.mark.parametrize(("sessions", "jobs"), [(40, 2), (7, 3), (2, 3)])
def test_several_processes_share_the_sessions(capsys: pytest.CaptureFixture[str], tmp_path: Path, sessions: int, jobs: int) -> None:
    """Exactly so many in all, and the same ones every time: steps, coverage and traces of all of them, in the order of the processes."""
    runs = set()
    for number in range(2):
        trace = tmp_path / str(number)
        options = ("--sessions", str(sessions), "--seed", "5", "--jobs", str(jobs), "--trace", str(trace))
        code, found = data(capsys, f"{TOYS}:sound", *options)
        runs.add((code, found["sessions"], found["steps"], str(found["coverage"]), trace.read_text()))

    ((code, counted, steps, _, text),) = runs
    assert (code, counted) == (0, sessions)
    assert steps > sessions
    own = data(capsys, f"{TOYS}:sound", "--sessions", str(-(-sessions // jobs)), "--seed", "5", "--trace", str(tmp_path / "own"))
    assert own[0] == 0
    assert text.startswith((tmp_path / "own").read_text())


def test_several_processes_of_the_live_runtime_share_the_sessions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One whole session each, with its trace."""
    options = ("--target", "runtime", "--sessions", "2", "--seed", "1", "--jobs", "2", "--no-keep", "--trace", str(tmp_path / "trace"))
    code, found = data(capsys, *options)

    assert (code, found["sessions"]) == (0, 2)
    assert sum(" trainer.supervisor" in f" {line[:18]}" for line in (tmp_path / "trace").read_text().splitlines()) > 2


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
