"""`troth trace` on the command line: exit codes, the object, the words for a reader, and runs that are drawn."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.testing.traces.recorded import Run, read, recorded
from tests.testing.traces.test_tampering import RUNS, WAYS, Tampered, move_a_timer
from troth import cli

JOB = """
[job]
name = "short"
trainers = 2
rounds = 3

[trainer]
command = [{python}, "train.py"]

[limits]
heartbeat_interval_s = 0.1
lease_timeout_s = 11.0
"""
SCRIPT = """
import os, signal, time
import numpy as np
import troth.client as flare

flare.init()
while flare.is_running():
    model = flare.receive()
    if flare.is_submit_model():
        flare.send(flare.FLModel(params={"w": np.zeros(3)}))
        continue
    time.sleep(0.15)
    flare.send(flare.FLModel(params={"w": model.params["w"] + 1}, metrics={"num_examples": 1}))
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of `troth trace`."""
    code = cli.run(["trace", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


@lru_cache(1)
def real() -> Run:
    """What `troth run --trace` writes of a job with two trainer processes."""
    folder = Path(mkdtemp())
    (folder / "train.py").write_text(SCRIPT)
    (folder / "job.toml").write_text(JOB.format(python=json.dumps(sys.executable)))
    command = [sys.executable, "-m", "troth", "run", "job.toml", "--trace", "traces", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return read("real", folder / "traces")


def test_a_real_run_is_accepted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its processes have clocks of their own, and nobody knows in which order they did what."""
    found = real()
    code, out, _ = run(capsys, "check", "--json", *found.write(tmp_path))

    steps = sum(len(found.steps(file)) for file in found.files)
    assert (code, json.loads(out)) == (0, {"verdict": "accepted", "steps": steps, "partial": False, "missing": [], "first_bad": None})
    assert len(found.files) == 10


@pytest.mark.parametrize("way", [*WAYS, move_a_timer], ids=lambda way: str(way.__name__))
def test_a_real_run_that_was_tampered_with_is_rejected_at_that_line(way: Any) -> None:
    """In the same nine ways."""
    tampered: Tampered = way(real().copy())
    assert tampered.rejected().nearest


def test_a_rejected_run_exits_with_1_and_says_where_and_what_could_stand_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In one object, or in words."""
    tampered = WAYS[RUNS.index("pulled")](recorded("plain").copy())
    paths = tampered.run.write(tmp_path)
    code, out, _ = run(capsys, "check", "--json", *paths)
    data = json.loads(out)

    assert (code, data["verdict"]) == (1, "rejected")
    bad = data["first_bad"]
    assert (bad["file"], bad["line"]) == (str(tmp_path / tampered.file), tampered.line)
    assert bad["reason"]
    assert bad["nearest"][0].keys() == {"event", "rows", "why"}
    code, out, _ = run(capsys, "check", *paths)
    assert code == 1
    assert out.startswith(f"rejected  {tmp_path / tampered.file}, line {tampered.line}\n")
    assert "nearest legal rows:" in out
    assert " ".join(bad["nearest"][0]["rows"]) in out


def test_a_part_of_a_run_is_said_to_be_partial(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With what is missing."""
    paths = [path for path in recorded("plain").write(tmp_path) if "host" not in path.name]
    code, out, _ = run(capsys, "check", *paths)

    assert code == 0
    assert ", partial\n" in out
    assert "the file of host-1 is not here" in out
    assert json.loads(run(capsys, "check", "--json", *paths)[1])["partial"] is True


def test_what_is_no_trace_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Exit code 2, and one line that names the file."""
    path = tmp_path / "diary.txt"
    path.write_text("Dear diary,\n")
    for command in ("check", "show"):
        code, out, err = run(capsys, command, path)
        assert (code, out) == (2, "")
        assert err.startswith(f"troth: {path}: is not a trace")
        assert err.count("\n") == 1
    assert run(capsys, "check", tmp_path / "missing")[0] == 2
    assert run(capsys, "check")[0] == 2
    assert "is a directory without a trace" in run(capsys, "check", tmp_path)[2]


def test_a_run_is_drawn_as_the_story_of_its_parties(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Who took what, which rows, what was said to whom."""
    code, out, _ = run(capsys, "show", *recorded("plain").write(tmp_path))

    assert code == 0
    assert "session H3: launching → greeted" in out
    assert "→ site-1.trainer: HelloAccepted(epoch 1)" in out
    assert "execute() returns result" in out
    steps = sum(len(recorded("plain").steps(file)) for file in recorded("plain").files)
    assert out.endswith(f"{steps} of {steps} steps\n")


def test_a_directory_stands_for_the_files_in_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whether its run is checked or drawn."""
    paths = recorded("plain").write(tmp_path)
    code, out, _ = run(capsys, "check", tmp_path)

    assert code == 0
    assert f"in {len(paths)} files, the whole run" in out
    assert run(capsys, "show", tmp_path) == run(capsys, "show", *paths)


def test_a_run_is_shown_on_one_clock(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The clock of a trainer's process stands somewhere else; its first message sets it."""
    shifted = recorded("plain").copy()
    for name, lines in shifted.files.items():
        for line in lines[1:] if ".trainer-" in name else ():
            line["t_ns"] = line.get("t_ns", 0) + 158_000_000_000_000
    (tmp_path / "traces").mkdir()
    shown = run(capsys, "show", *shifted.write(tmp_path / "traces"))[1]
    times = [float(line.split()[1]) for line in shown.splitlines() if line[:3].strip() and " s  " in line]

    assert len(times) == 50
    assert times == sorted(times)
    assert times[-1] < 60


def test_a_long_run_is_shown_in_parts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """From a step to another, up to a number, or what is about a task."""
    paths = recorded("plain").write(tmp_path)
    numbers = [line.split()[0] for line in run(capsys, "show", "--from", "5", "--to", "7", *paths)[1].splitlines() if line[:3].strip()]
    assert numbers == ["5", "6", "7", "3"]
    out = run(capsys, "show", "--limit", "4", *paths)[1]
    assert "and 4" in out
    assert "go on with --from 5, or raise --limit" in out
    second = run(capsys, "show", "--task", "2", *paths)[1]
    assert "ResultReady(epoch 1, seq 2" in second
    assert "seq 1" not in second.replace("seq 1, attempt 1, floor", "")
    assert "no step of the" in run(capsys, "show", "--from", "9999", *paths)[1]


def test_a_run_makes_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With a drawing that loads nothing, and every message an arrow."""
    page = tmp_path / "run.html"
    (tmp_path / "traces").mkdir()
    code, out, _ = run(capsys, "show", "--html", page, *recorded("redialled").write(tmp_path / "traces"))
    found = page.read_text(encoding="utf-8")

    assert (code, out) == (0, f"wrote {page}\n")
    assert found.count("<svg") == 1
    assert "HelloAccepted" in found
    assert "http" not in found.replace("http-equiv", "")


def test_a_rejected_run_is_drawn_up_to_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """And then it is said what is wrong."""
    tampered = WAYS[0](recorded("plain").copy())
    code, out, _ = run(capsys, "show", *tampered.run.write(tmp_path))

    assert code == 1
    assert "→ site-1.trainer: HelloAccepted(epoch 1)" in out
    assert f"{tampered.file}, line {tampered.line}" in out
