"""A job of misbehaving trainers under ``troth run``, and what is left of it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from attrs import define, field

from tests.runtime.processes.alive import MARK, alive, described, marked, new_mark

LIMIT_S = 120
"""Only a broken run takes as long."""
LEASE_S = 1.0
"""The lease timeout of these jobs."""

TRAINER = """
import ctypes, os, signal, subprocess, sys, time
import numpy as np
import troth.client as flare

role = os.environ["ROLES"].split(",")[int(os.environ["TROTH_JOB_INDEX"])]
if role == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if role == "daemon":
    code = "import os, signal; os.closerange(0, 1000); signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
flare.init()
while flare.is_running():
    model = flare.receive()
    if flare.is_submit_model():
        result = flare.FLModel(params={"w": np.zeros(3)})
    elif flare.is_evaluate():
        result = flare.FLModel(metrics={"accuracy": 1.0, "num_examples": 1})
    else:
        if model.current_round == 1:
            with open(f"here-{os.environ['TROTH_JOB_INDEX']}", "w") as fifo:
                fifo.write(str(os.getpid()))
            if role == "gil":
                ctypes.PyDLL(None).sleep(int(os.environ["HOLD_S"]))  # holds the interpreter
            elif role in ("stubborn", "daemon", "hang"):
                while True:
                    signal.pause()
            else:
                time.sleep(float(os.environ["WORK_S"]))
        result = flare.FLModel(params={"w": np.ones(3)}, params_type="DIFF", metrics={"num_examples": 1})
    flare.send(result)
"""

JOB = """
[job]
name = "endurance"
trainers = {trainers}
rounds = 3
on_trainer_lost = "{on_trainer_lost}"

[trainer]
command = ["{{python}}", "train.py"]
heartbeat_interval_s = 0.2
heartbeat_timeout_s = {lease_s}
on_unresponsive = "{on_unresponsive}"
inherit_environment = true
stop_grace_period_s = 1.0
shutdown_timeout_s = 1.0

[limits]
result_retry_s = 0.5

[trainer.environment]
ROLES = "{roles}"
WORK_S = "{work_s}"
HOLD_S = "{hold_s}"
"""


@define(eq=False)
class Run:
    """A run under way."""

    home: Path
    temporary: Path
    """What the run has for TMPDIR: a short name, for the sake of the sockets in it."""
    mark: str
    process: subprocess.Popen[str]
    pids: list[int] = field(factory=list)
    """Of the trainers, once all were heard in round 2."""

    def heard(self, trainers: int) -> list[int]:
        """Wait until every trainer is in the middle of its task of round 2; their pids."""
        self.pids += [int(self._said(self.home / f"here-{index}")) for index in range(trainers)]
        return self.pids

    def _said(self, path: Path) -> str:
        """What a trainer writes to its pipe, unless the run ends before that."""
        ended = os.pidfd_open(self.process.pid)
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            while True:
                ready, _, _ = select.select([pipe, ended], [], [])
                if pipe in ready and (text := os.read(pipe, 64)):
                    return text.decode()
                if ended in ready:
                    _, err = self.process.communicate()
                    raise AssertionError(f"the run ended before anybody wrote to {path.name}: {err}")
        finally:
            os.close(pipe)
            os.close(ended)

    def guardian(self) -> psutil.Process:
        """The guardian of the host."""
        [found] = [one for one in psutil.Process(self.process.pid).children() if "guardian_main.py" in " ".join(one.cmdline())]
        return found

    def finish(self) -> tuple[int, dict[str, Any], str]:
        """Wait for the end: exit code, the object that was printed, stderr."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, json.loads(out or "{}"), err

    def files(self) -> list[Path]:
        """Sockets, bootstrap files, and the directories that they are in."""
        # os.walk, because a directory may vanish while it is looked through.
        return [Path(folder) / name for folder, folders, names in os.walk(self.temporary) for name in (*folders, *names)]

    def left(self, within_s: float) -> list[str]:
        """What is left of the run after that time at the latest: processes, sockets, bootstrap files."""
        deadline = time.monotonic() + within_s
        while True:
            pids = alive(self.mark)
            files = [str(path) for path in self.files()]
            if not pids and not files:
                return []
            if time.monotonic() > deadline:
                return described(pids) + files
            time.sleep(0.02)


@contextmanager
def started(home: Path, roles: list[str], **options: Any) -> Iterator[Run]:
    """``troth run`` on a job of these trainers, in a session of its own; whatever it leaves is killed in the end."""
    settings = {"on_trainer_lost": "fail", "on_unresponsive": "wait", "lease_s": LEASE_S, "work_s": 0.0, "hold_s": 1000, **options}
    (home / "train.py").write_text(TRAINER)
    (home / "job.toml").write_text(JOB.format(trainers=len(roles), roles=",".join(roles), **settings))
    for index in range(len(roles)):
        os.mkfifo(home / f"here-{index}")
    mark = new_mark()
    temporary = Path(tempfile.mkdtemp(prefix="tr-"))
    environment = {**os.environ, MARK: mark, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "troth", "run", "job.toml", "--json"]
    with marked(mark):
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            yield Run(home, temporary, mark, process)
        finally:
            process.kill()
            process.communicate()
            shutil.rmtree(temporary, ignore_errors=True)


def stop_for(pid: int, seconds: float) -> None:
    """SIGSTOP, some time, SIGCONT."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
