"""``troth run``: what it shows, what it prints, and with which code it exits. The trainers here are functions."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from rich.console import Console

from tests.jobs.crews import Fake, FakeCrew, Work
from troth import cli
from troth.cli import running as command
from troth.cli.watching import Output, Watch, conclusion, number, progress, rounds_table
from troth.client import FLModel
from troth.jobs import digits, seats
from troth.jobs.job import Job
from troth.jobs.running import JobRun
from troth.runtime.errors import TrainerLost

LOST = TrainerLost("trainer 'trainer-2' (task 'train') was lost with the task: killed by SIGKILL")
JOB = '[job]\nname = "toy"\ntrainers = 2\nrounds = 3\n[trainer]\ncommand = ["{python}", "train.py"]\n'


async def learns(_trainer: Fake, task: str, model: FLModel) -> FLModel:
    """A trainer that gets better."""
    if task == "submit_model":
        return FLModel(params={"w": np.zeros(2)})
    return FLModel(params={"w": np.full(2, 1.0)}, metrics={"accuracy": 0.51 + (model.current_round or 0) / 100})


async def fails(trainer: Fake, task: str, model: FLModel) -> FLModel:
    """The second trainer is lost in the second round."""
    if trainer.index == 1 and model.current_round == 1:
        logging.getLogger("troth.trainer.trainer-2").info("trainer-2: out of memory")
        raise LOST
    return await learns(trainer, task, model)


async def interrupted(trainer: Fake, task: str, model: FLModel) -> FLModel:
    """Somebody presses Ctrl-C in the second round."""
    if model.current_round == 1:
        os.kill(os.getpid(), signal.SIGINT)
        await trio.sleep_forever()
    return await learns(trainer, task, model)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a job in it, to work in. The log is left as it was."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(JOB)
    log = logging.getLogger("troth")
    before = (log.level, list(log.handlers))
    yield tmp_path
    assert (log.level, log.handlers) == before


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, work: Work, *arguments: str) -> tuple[int, str, str, FakeCrew]:
    """Exit code, stdout, stderr, and the trainers."""
    crew = FakeCrew(work)
    monkeypatch.setattr(command, "external", crew)
    code = cli.run(["run", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err, crew


@pytest.mark.usefixtures("home")
def test_lines_and_tables_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line a round, a table of the rounds, one of the trainers, and a line for the whole."""
    code, out, err, _ = run(capsys, monkeypatch, learns, "job.toml")
    lines = [" ".join(line.split()) for line in out.splitlines()]

    assert (code, err) == (0, "")
    assert lines[0] == "toy 2 trainers 3 rounds seed 0"
    assert lines[1].startswith("round 1/3 accuracy 0.5100 ")
    assert lines[3].startswith("round 3/3 accuracy 0.5300 ")
    assert "3 0.5300" in lines
    assert "trainer-2 3 3 0 2.0 kB 3.0 kB exit 0" in lines
    assert lines[-1].startswith("2 trainers 3 rounds accuracy 0.5300 7 accepted 7 settled 0 retries ")


@pytest.mark.usefixtures("home")
def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the keys that are fixed."""
    code, out, err, _ = run(capsys, monkeypatch, learns, "job.toml", "--json", "--rounds", "2", "--seed", "9")
    data = json.loads(out)

    assert (code, err, out.count("\n")) == (0, "", 1)
    assert {"mode", "trainers", "rounds", "accuracy", "accepted", "settled", "retries", "wall_s", "errors"} <= set(data)
    assert (data["mode"], data["trainers"], data["rounds"], data["seed"], data["errors"]) == ("external", 2, 2, 9, [])
    assert data["accuracy"] == [0.51, 0.52]


@pytest.mark.usefixtures("home")
def test_a_job_that_fails_exits_with_1_and_says_why(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One line on stderr, after the last lines of the trainer that was lost."""
    code, out, err, _ = run(capsys, monkeypatch, fails, "job.toml")
    assert (code, err) == (1, f"trainer-2: out of memory\ntroth: round-2: {LOST}\n")
    assert "1 of 3 rounds" in out

    code, out, err, _ = run(capsys, monkeypatch, fails, "job.toml", "--json")
    assert (code, err) == (1, f"trainer-2: out of memory\ntroth: round-2: {LOST}\n")
    assert json.loads(out)["errors"] == [f"round-2: {LOST}"]


@pytest.mark.usefixtures("home")
def test_what_trainers_print_is_shown_if_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr, as it comes."""
    assert run(capsys, monkeypatch, fails, "job.toml", "-v", "--json")[2] == f"trainer-2: out of memory\ntroth: round-2: {LOST}\n"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_interrupt_ends_everything_and_exits_with_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """What there is until then is told."""
    code, out, err, crew = run(capsys, monkeypatch, interrupted, "job.toml", *more)

    assert code == 130
    assert err == "troth: interrupted; the trainers are being ended, interrupt again to leave at once\n"
    assert [trainer.events[-2:] for trainer in crew.hired] == [["abort", "end"]] * 2
    if more:
        assert json.loads(out)["interrupted"] is True
    else:
        assert "1 of 3 rounds" in out


@pytest.mark.usefixtures("home")
def test_a_second_interrupt_leaves_at_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a trainer does not end."""
    left, gone = [], trio.Event()

    def leave(code: int) -> None:
        left.append(code)
        gone.set()

    async def stubborn(trainer: Fake, task: str, model: FLModel) -> FLModel:
        if model.current_round != 1:
            return await learns(trainer, task, model)
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await trio.sleep_forever()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            with trio.CancelScope(shield=True):
                await gone.wait()
        raise AssertionError

    monkeypatch.setattr(os, "_exit", leave)
    assert run(capsys, monkeypatch, stubborn, "job.toml", "--trainers", "1")[0] == 130
    assert left == [130]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no.toml"], "Invalid value for '[JOB]': File 'no.toml' does not exist."),
        (["bad.toml"], "bad.toml: trainer.heartbeat_timeout_s: must be greater than heartbeat_interval_s (5.0), got 3"),
        (["job.toml", "--trainers", "0"], "Invalid value for '--trainers': 0 is not in the range 1<=x<=256."),
        (["job.toml", "--rounds", "1000001"], "Invalid value for '--rounds': 1000001 is not in the range 1<=x<=1000000."),
        (["job.toml", "--rounds", "nan"], "Invalid value for '--rounds': 'nan' is not a valid integer range."),
        (["job.toml", "--seed", "-1"], "Invalid value for '--seed': -1 is not in the range 0<=x<=9223372036854775807."),
        (["job.toml", "--mode", "magic"], "Invalid value for '--mode': 'magic' is not 'external'."),
        (["job.toml", "--trace", "."], "--trace: {home} is not empty; traces are written to a directory of their own"),
        (["job.toml", "--save", "no/model.npz"], "--save: there is no directory {home}/no"),
        (["job.toml", "more.toml"], "Got unexpected extra argument (more.toml)"),
    ],
)
def test_what_cannot_be_run_is_one_line_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path, arguments: list[str], says: str
) -> None:
    """And no trainer was started."""
    (home / "bad.toml").write_text(JOB + "heartbeat_timeout_s = 3")
    code, out, err, crew = run(capsys, monkeypatch, learns, *arguments)

    assert (code, out, err) == (2, "", f"troth: {says.replace('{home}', str(home))}\n")
    assert crew.hired == []


@pytest.mark.usefixtures("home")
def test_without_scikit_learn_the_built_in_job_names_the_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the only one that needs it."""
    monkeypatch.setattr(digits, "find_spec", lambda _name: None)
    code, out, err, _ = run(capsys, monkeypatch, learns, "--json")

    assert (code, out) == (2, "")
    assert err.startswith("troth: the built-in job trains on the digits that come with scikit-learn, which is not installed: ")
    assert err.endswith("pip install 'troth[demo]'\n")
    assert err.count("\n") == 1
    assert run(capsys, monkeypatch, learns, "job.toml")[0] == 0


@pytest.mark.usefixtures("home")
def test_an_unexpected_error_exits_with_3_and_is_told_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as a group of one."""

    async def broken(_trainer: Fake, _task: str, _model: FLModel) -> FLModel:
        raise ZeroDivisionError("by zero")

    assert run(capsys, monkeypatch, broken, "job.toml", "--json")[:3] == (3, "", "troth: ZeroDivisionError: by zero\n")


@pytest.mark.usefixtures("home")
def test_the_model_is_saved_where_the_command_line_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative to where it is called."""
    assert run(capsys, monkeypatch, learns, "job.toml", "--save", "model.npz")[0] == 0
    with np.load("model.npz") as found:
        assert found["w"].tolist() == [1.0, 1.0]


def test_a_long_object_is_printed_whole() -> None:
    """Though somebody has made the pipe non-blocking: then Python would drop what does not fit, and say nothing."""
    script = "import os; from troth.cli.words import print_whole; os.set_blocking(1, False); print_whole('x' * 1_000_000)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)

    assert (done.returncode, len(done.stdout)) == (0, 1_000_001)


# -- the view ----------------------------------------------------------------------------------------------------------


def drawn(*parts: Any, width: int = 120) -> list[str]:
    """What a terminal would show, blanks squeezed."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines() if line.strip()]


def watched(**more: Any) -> JobRun:
    """A run in its second round."""
    job = Job(command=("{python}",), trainers=3, rounds=5, name="toy", **more)
    job_run = JobRun(job)
    outbox, _ = trio.open_memory_channel[seats.Answer](1)
    for index in range(3):
        job_run.seats.append(seats.Seat(job, index, Fake(index, learns, lambda _key, _value: None), outbox))
    job_run.round = 2
    job_run.accuracy.append(0.75)
    job_run.seats[0].task, job_run.seats[0].round, job_run.seats[0].metrics = "round-2", 2, {"num_examples": 179.0, "[loss]": 0.123456}
    job_run.seats[1].lost = "it was"
    return job_run


def test_the_view_shows_each_trainers_state_round_lease_bytes_and_metrics() -> None:
    """While the job runs; what metrics are called is no markup."""
    lines = drawn(progress(watched(), 3.0))

    assert lines[0] == "toy round 2/5 accuracy 0.7500 3.0 s"
    assert lines[1] == "trainer state round lease age down up metrics"
    assert lines[3] == "trainer-1 round-2 2 0.2 s 2.0 kB 0 bytes num_examples 179 [loss] 0.1235"
    assert lines[4] == "trainer-2 lost – 0.2 s 2.0 kB 0 bytes"
    assert lines[5] == "trainer-3 ready – 0.2 s 2.0 kB 0 bytes"


def test_the_view_is_taken_away_at_the_end_and_lines_go_above_it() -> None:
    """On a terminal."""
    out, err = (Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None) for _ in range(2))
    job_run = watched()
    watch = Watch(job_run, out=out, err=err)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(watch.keep)
            await trio.testing.wait_all_tasks_blocked()
            watch.say("trainer-1: [hello]")
            watch.round_done(1, 0.5)
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert isinstance(out.file, io.StringIO)
    shown = out.file.getvalue()
    assert "trainer-1: [hello]" in shown
    assert "lease age" in shown
    assert "round 1/5" not in shown
    assert shown.endswith("\x1b[2K")


def test_with_json_the_view_leaves_stdout_alone() -> None:
    """It goes to stderr if that is a terminal, and is left out otherwise."""
    out, err = (Console(file=io.StringIO(), width=100, force_terminal=terminal, color_system=None) for terminal in (True, False))
    watch = Watch(watched(), as_json=True, out=out, err=err)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(watch.keep)
            watch.round_done(1, 0.5)
            nursery.cancel_scope.cancel()

    trio.run(main)
    for console in (out, err):
        assert isinstance(console.file, io.StringIO)
        assert console.file.getvalue() == ""


def test_of_many_rounds_the_table_shows_some() -> None:
    """The first, the last, and those between, evenly."""
    lines = drawn(rounds_table(array("d", [place / 1_000_000 for place in range(1_000_000)])))

    assert lines[0] == "round (20 of 1,000,000) accuracy"
    assert len(lines) == 22
    assert lines[2] == "1 0.0000"
    assert lines[-1] == "1,000,000 1.0000"


def test_of_many_rounds_not_every_one_gets_a_line() -> None:
    """A line a second after the first hundred; the last one always."""
    out = Console(file=io.StringIO(), width=100)
    job_run = JobRun(Job(command=("{python}",), rounds=100_000))
    watch = Watch(job_run, out=out)

    async def main() -> None:
        for number_ in range(1, 100_001):
            if number_ % 10_000 == 0:
                await trio.sleep(1)
            watch.round_done(number_, 0.5)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert isinstance(out.file, io.StringIO)
    lines = out.file.getvalue().splitlines()
    assert 105 <= len(lines) <= 112
    assert lines[-1].startswith("round 100,000/100,000 ")


def test_a_job_that_has_not_begun_has_an_end_too() -> None:
    """No empty tables."""
    report = trio.run(JobRun(Job(command=("{python}",), model={"w": 1.0}), crew=FakeCrew(fails)).run)
    assert drawn(*conclusion(report))[-1].startswith("4 trainers 0 of 5 rounds")


def test_numbers_are_short() -> None:
    """Counts as counts, the others with four digits."""
    assert [number(value) for value in (179.0, 12345.0, 0.123456, 1e12, -3.0)] == ["179", "12,345", "0.1235", "1e+12", "-3"]


def test_warnings_of_the_runtime_are_shown_and_the_rest_is_kept() -> None:
    """Twenty lines of each trainer."""
    shown: list[str] = []
    output = Output(shown.append, verbose=False)
    for place in range(30):
        output.handle(logging.LogRecord("troth.trainer.a", logging.INFO, "", 0, "a: %s", (place,), None))
    output.handle(logging.LogRecord("troth.runtime", logging.WARNING, "", 0, "mind", (), None))
    output.handle(logging.LogRecord("troth.runtime", logging.INFO, "", 0, "never mind", (), None))

    output.ending = lambda: True
    output.handle(logging.LogRecord("troth.runtime", logging.WARNING, "", 0, "too late", (), None))
    output.handle(logging.LogRecord("troth.runtime", logging.ERROR, "", 0, "bad", (), None))

    assert shown == ["mind", "bad"]
    assert list(output.last["a"]) == [f"a: {place}" for place in range(10, 30)]
