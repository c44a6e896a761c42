"""``troth run`` with real trainer processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

LIMIT_S = 120
"""Only a broken run takes as long."""

TRAINER = """
import os, signal, sys
import numpy as np
import troth.client as flare

flare.init()
print(f"{flare.get_site_name()} of {flare.get_job_id()} is here", file=sys.stderr)
while flare.is_running():
    model = flare.receive()
    if flare.is_submit_model():
        result = flare.FLModel(params={"w": np.zeros(3)})
    elif flare.is_evaluate():
        result = flare.FLModel(metrics={"accuracy": float(model.params["w"].mean()), "num_examples": 2})
    else:
        if os.environ.get("STOPS") == os.environ["TROTH_JOB_INDEX"] and model.current_round == 1:
            with open(os.environ["FIFO"], "w") as fifo:
                fifo.write(str(os.getpid()))
            signal.pause()
        result = flare.FLModel(params={"w": np.ones(3)}, params_type="DIFF", metrics={"num_examples": 1})
    flare.send(result)
"""

JOB = """
[job]
name = "toy"
trainers = 2
rounds = 3
evaluate_rounds = true
{job}

[trainer]
command = ["{{python}}", "train.py"]
{trainer}

[trainer.environment]
FIFO = "fifo"
STOPS = "{stops}"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a training script, to work in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINER)
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def write_job(home: Path, *, job: str = "", trainer: str = "", stops: str = "") -> None:
    """The job of this folder; the trainer whose number is ``stops`` says its pid in the second round, and stops."""
    (home / "job.toml").write_text(JOB.format(job=job, trainer=trainer, stops=stops))


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """``troth run`` in a session of its own, as in a terminal of its own."""
    command = [sys.executable, "-m", "troth", "run", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the object that was printed, stderr."""
    with started(*arguments, "--json") as process:
        out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, json.loads(out or "{}"), err


def stopped(home: Path) -> psutil.Process:
    """The trainer that has stopped in the middle of its task; waits for it."""
    with (home / "fifo").open() as fifo:  # opens when somebody writes
        return psutil.Process(int(fifo.read()))


def test_the_built_in_job_learns_and_the_same_seed_gives_the_same_accuracies(home: Path) -> None:
    """Two trainers and two rounds, twice; from a directory that has nothing to do with it."""
    (home / "troth").mkdir()
    (home / "troth" / "__init__.py").write_text("raise RuntimeError('not this one')")
    command = [sys.executable, "-P", "-m", "troth", "run", "--trainers", "2", "--rounds", "2", "--seed", "7", "--json"]
    found = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        found.append(json.loads(done.stdout))

    assert (found[0]["trainers"], found[0]["rounds"], found[0]["accepted"], found[0]["settled"]) == (2, 2, 4, 4)
    assert found[0]["accuracy"][-1] >= 0.9
    assert found[0]["accuracy"] == found[1]["accuracy"]
    assert found[0]["errors"] == []
    assert [one["exit"] for one in found[0]["by_trainer"].values()] == ["exit 0", "exit 0"]


@pytest.mark.parametrize(
    "trainer",
    [
        'transport = "tcp"\ncredentials = "credentials.toml"',
        "persistent = false",
    ],
)
def test_a_job_of_ones_own(home: Path, trainer: str) -> None:
    """First model, differences, evaluation, saved model, logs; whichever way the trainers are run."""
    (home / "credentials.toml").write_text('token = "a"\nsignature = "b"\n')
    (home / "credentials.toml").chmod(0o600)
    write_job(home, job='save = "end.npz"', trainer=f'logs = "logs"\n{trainer}')
    code, data, err = run("job.toml", "--rounds", "2")

    assert (code, err, data["errors"]) == (0, "", [])
    assert data["accuracy"] == [1.0, 2.0]
    assert (data["accepted"], data["settled"]) == (9, 9)
    with np.load(home / "end.npz") as model:
        assert model["w"].tolist() == [2.0, 2.0, 2.0]
    assert (home / "logs" / "trainer-1.log").read_text().startswith("trainer-1 of toy is here\n")


def test_a_trainer_that_is_killed_ends_the_job_by_name(home: Path) -> None:
    """The trainer, the task and the signal; what it printed last comes before."""
    write_job(home, stops="1")
    with started("job.toml", "--json") as process:
        stopped(home).kill()
        out, err = process.communicate(timeout=LIMIT_S)
    said = "round-2: trainer 'trainer-2' (task 'train') was lost with the task: killed by SIGKILL"

    assert process.returncode == 1
    assert json.loads(out)["errors"] == [said]
    assert len(json.loads(out)["accuracy"]) == 1
    assert err == f"trainer-2: trainer-2 of toy is here\ntroth: {said}\n"


def test_a_job_goes_on_without_a_trainer_that_is_killed(home: Path) -> None:
    """Where the file says so."""
    write_job(home, job='on_trainer_lost = "continue"', stops="1")
    with started("job.toml", "--json") as process:
        stopped(home).kill()
        out, _ = process.communicate(timeout=LIMIT_S)
    data = json.loads(out)

    assert process.returncode == 0
    assert data["errors"] == ["round-2: trainer 'trainer-2' (task 'train') was lost with the task: killed by SIGKILL"]
    assert data["accuracy"] == [1.0, 2.0, 3.0]
    assert data["by_trainer"]["trainer-2"]["exit"] == "killed by SIGKILL"
    assert data["by_trainer"]["trainer-1"]["exit"] == "exit 0"


def test_an_interrupt_ends_the_trainers_first_and_exits_with_130(home: Path) -> None:
    """As from a terminal, which signals the whole group."""
    write_job(home, stops="0")
    with started("job.toml", "--json") as process:
        trainer = stopped(home)
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert json.loads(out)["interrupted"] is True
    assert err == "troth: interrupted; the trainers are being ended, interrupt again to leave at once\n"
    assert trainer in family
    assert not [one for one in family if one.is_running()]


def test_a_second_interrupt_leaves_nobody_behind(home: Path) -> None:
    """The host goes at once, and the guardian ends what is left."""
    write_job(home, stops="0")
    with started("job.toml", "--json") as process:
        stopped(home)
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


def test_the_job_of_the_how_to_guide_runs(home: Path) -> None:
    """The two files of the page, as they stand there."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "run-a-job.md").read_text(encoding="utf-8")
    for name, body in re.findall(r"^```(?:py|toml)\n# (\S+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        (home / name).write_text(body)
    code, data, err = run("job.toml")

    assert (code, err, data["job"], data["trainers"]) == (0, "", "regression", 3)
    assert data["accepted"] == 16
    assert data["accuracy"] == sorted(data["accuracy"])
    assert data["accuracy"][-1] > 0.9
