"""A side that is stopped, or that holds its interpreter, for three leases is waited for; or is failed on time where the policy says so."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.endurance.crew import LEASE_S, started, stop_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process table with pidfds")]

PAUSE_S = 3 * LEASE_S + 0.5


def test_a_stopped_host_expires_nobody_and_kills_nobody(tmp_path: Path) -> None:
    with started(tmp_path, ["plain", "plain"], work_s=1.0) as run:
        run.heard(2)
        stop_for(run.process.pid, PAUSE_S)
        code, report, _ = run.finish()

        assert (code, report["errors"]) == (0, [])
        assert report["accepted"] == 7
        assert run.left(5) == []


def test_a_stopped_trainer_is_waited_for(tmp_path: Path) -> None:
    with started(tmp_path, ["plain", "plain"], work_s=1.0) as run:
        stop_for(run.heard(2)[0], PAUSE_S)
        code, report, _ = run.finish()

        assert (code, report["errors"]) == (0, [])
        assert report["accepted"] == 7


def test_a_stopped_host_and_a_stopped_trainer_find_each_other_again(tmp_path: Path) -> None:
    """Both at the same time, one waking before the other."""
    with started(tmp_path, ["plain", "plain"], work_s=1.0) as run:
        pid = run.heard(2)[0]
        os.kill(pid, signal.SIGSTOP)
        stop_for(run.process.pid, PAUSE_S)
        time.sleep(LEASE_S)
        os.kill(pid, signal.SIGCONT)
        code, report, _ = run.finish()

        assert (code, report["errors"]) == (0, [])


def test_a_trainer_that_holds_its_interpreter_is_waited_for(tmp_path: Path) -> None:
    with started(tmp_path, ["gil", "plain"], hold_s=int(PAUSE_S + 1)) as run:
        run.heard(2)
        code, report, _ = run.finish()

        assert (code, report["errors"]) == (0, [])
        assert report["accepted"] == 7


def test_a_trainer_that_holds_its_interpreter_is_failed_on_time_where_the_policy_says_so(tmp_path: Path) -> None:
    """Timeout, two intervals, and the teardown: not the whole time that it holds it."""
    with started(tmp_path, ["gil", "plain"], hold_s=1000, on_unresponsive="fail") as run:
        run.heard(2)
        began = time.monotonic()
        code, report, _ = run.finish()

        assert code == 1
        assert "trainer-1" in " ".join(report["errors"])
        assert time.monotonic() - began < LEASE_S + 2 * 0.2 + 6
        assert run.left(5) == []
