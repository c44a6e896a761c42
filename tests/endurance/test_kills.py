"""Whoever is killed in the middle of round 2, the job ends in bounded time, says who it was, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.endurance.crew import started

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process table with pidfds")]

TIMES = pytest.mark.parametrize("time_in_a_row", range(20))
CREW = ["plain", "stubborn", "gil", "daemon"]
GONE_S = 5.0
BOUND_S = 15.0
"""From a death to the end of the run: TERM, a grace of one second, KILL, for all trainers at the same time."""


@TIMES
def test_a_killed_trainer_ends_the_job_which_names_it_its_task_and_the_signal(tmp_path: Path, time_in_a_row: int) -> None:
    with started(tmp_path, ["hang", "plain", "stubborn"]) as run:
        pids = run.heard(3)
        began = time.monotonic()
        os.kill(pids[0], signal.SIGKILL)
        code, report, _ = run.finish()

        assert code == 1
        assert time.monotonic() - began < BOUND_S
        said = " ".join(report["errors"])
        assert "trainer-1" in said
        assert "train" in said
        assert "SIGKILL" in said
        assert run.left(GONE_S) == []


@TIMES
def test_a_job_that_may_goes_on_without_a_killed_trainer(tmp_path: Path, time_in_a_row: int) -> None:
    with started(tmp_path, ["hang", "plain", "plain"], on_trainer_lost="continue") as run:
        os.kill(run.heard(3)[0], signal.SIGKILL)
        code, report, _ = run.finish()

        assert code == 0
        assert len(report["accuracy"]) == 3
        assert "SIGKILL" in " ".join(report["errors"])
        assert run.left(GONE_S) == []


@TIMES
def test_a_killed_host_leaves_no_trainer_no_descendant_no_socket_and_no_file(tmp_path: Path, time_in_a_row: int) -> None:
    """Trainers that heed TERM, ignore it, or hold the interpreter, and one with a child in a session of its own that closed all it had."""
    with started(tmp_path, CREW) as run:
        run.heard(4)
        assert len(run.files()) > len(CREW), "there are sockets and bootstrap files while it runs"
        run.process.kill()

        assert run.left(GONE_S) == []


@TIMES
def test_a_killed_guardian_fails_the_job_cleanly(tmp_path: Path, time_in_a_row: int) -> None:
    with started(tmp_path, CREW) as run:
        run.heard(4)
        run.guardian().kill()
        code, report, _ = run.finish()

        assert code == 1
        assert report["errors"]
        assert run.left(GONE_S) == []


@TIMES
def test_an_interrupt_ends_everything_in_order(tmp_path: Path, time_in_a_row: int) -> None:
    with started(tmp_path, ["plain", "stubborn", "daemon"]) as run:
        run.heard(3)
        run.process.send_signal(signal.SIGINT)
        code, report, _ = run.finish()

        assert code == 130
        assert report["interrupted"]
        assert run.left(GONE_S) == []


def test_the_zombie_of_a_trainer_is_not_kept(tmp_path: Path) -> None:
    """While the job runs on without it, its process table entry is gone."""
    with started(tmp_path, ["hang", "hang"], on_trainer_lost="continue") as run:
        first, second = run.heard(2)
        os.kill(first, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(first)] if psutil.pid_exists(first) else [], timeout=GONE_S)

        assert not psutil.pid_exists(first)
        os.kill(second, signal.SIGKILL)
        run.finish()
