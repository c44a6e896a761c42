# pyright: reportAttributeAccessIssue=false
# (what comes from the reference is known only where it is installed)
"""What a host of NVFlare 2.9.0 does with a trainer that it launched: a real process that does nothing, spoken for by hand.

Each test shows one finding; see docs/findings.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare", reason="the reference is not here; pip install 'troth[reference]'")

from tests.reference.sides import (
    CHANNEL,
    HOST,
    Job,
    LazyDownloadRef,
    ReturnCode,
    Running,
    Shareable,
    Signal,
    executing,
    external_host,
    returned,
)
from tests.reference.wire import CellReturnCode, Line, MsgKey, Topic, Transfers, Wire, make_reply, message, wait_until

pytestmark = pytest.mark.usefixtures("processes")

IDLE = [sys.executable, "-c", "import time; time.sleep(60)"]
"""A trainer's process; what it says is said for it."""


class Trainer:
    """The trainer of launch ``number``, written by hand: says what it is told to, in the name of the process that was launched."""

    def __init__(self, wire: Wire, folder: Path, number: int = 1) -> None:
        self.name = f"{HOST}.client_api_trainer_{number}"
        self.line = Line(wire, self.name)
        self.line.register_request_cb(CHANNEL, Topic.TASK_READY, self.take)
        self.line.register_request_cb(CHANNEL, Topic.SHUTDOWN, lambda request: self.reply("", result_source_live=self.live))
        self.profile = folder / f"client_api_bootstrap_{number}.json"
        self.live = False
        self.session = self.task = ""

    def reply(self, topic: str, **fields: Any) -> Any:
        return make_reply(CellReturnCode.OK, body={MsgKey.REPLY_TOPIC: topic, **fields})

    def take(self, request: Any) -> Any:
        """TASK_ACCEPTED."""
        self.task = request.payload[MsgKey.TASK_ID]
        return self.reply(Topic.TASK_ACCEPTED)

    def say(self, topic: str, **fields: Any) -> dict[str, Any]:
        reply = self.line.send_request(CHANNEL, topic, HOST, message({MsgKey.SESSION_ID: self.session, **fields}), timeout=1.0)
        said: dict[str, Any] = reply.payload or {}
        return said

    def join(self) -> None:
        """HELLO and SESSION_READY, with the token of the launch."""
        wait_until(self.profile.exists, "the profile of the launch is written")
        profile = json.loads(self.profile.read_text())
        about = {name: profile[name] for name in ("trainer_fqcn", "job_id", "site_name")}
        said = self.say(Topic.HELLO, proof=profile["launch_token"], protocol_version=1, rank="0", **about)
        self.session = said[MsgKey.SESSION_ID]
        self.say(Topic.SESSION_READY)

    def publish(self) -> str:
        """RESULT_READY with a payload that is still here; the topic of the answer."""
        self.live = True
        lazy = Shareable({"w": LazyDownloadRef(fqcn=self.name, ref_id="ref-1", item_id="w")})
        said: str = self.say(Topic.RESULT_READY, task_id=self.task, result=lazy)[MsgKey.REPLY_TOPIC]
        return said


@contextmanager
def launched(wire: Wire, folder: Path, **settings: Any) -> Iterator[tuple[Trainer, Any, Job]]:
    """A host with its one trainer, which has joined."""
    job, trainer = Job(wire, folder), Trainer(wire, folder)
    starting = Running(lambda: external_host(job, IDLE, **settings))
    trainer.join()
    host = starting.result()
    process = host._active_launch.process
    try:
        yield trainer, host, job
    finally:
        process.kill()
        host.finalize(job)


def test_d2_a_result_that_was_accepted_is_not_returned(wire: Wire, tmp_path: Path) -> None:
    """D2: TASK_ACCEPTED was lost. The host has the result, its wait for it is bounded by 0.1 s, and ``execute()`` does not return."""
    with launched(wire, tmp_path, result_wait_timeout=0.1, heartbeat_timeout=0.0) as (trainer, host, job):
        wire.lose(Topic.TASK_READY)
        call = executing(host, job)
        wait_until(lambda: trainer.task, "the task is delivered")

        assert trainer.publish() == Topic.RESULT_ACCEPTED
        assert call.hangs(10 * 0.1)
        host.abort(job)
        assert returned(call) == ReturnCode.TASK_ABORTED


def test_d3_cancelling_a_task_fails_the_whole_job(wire: Wire, transfers: Transfers, tmp_path: Path) -> None:
    """D3: accepted and cancelled at the same moment: the host throws the result away, then fails the run because its source is gone."""
    with launched(wire, tmp_path, heartbeat_timeout=0.0) as (trainer, host, job):
        abort = Signal()

        def accepted_and_cancelled(request: Any) -> Any:
            reply = trainer.take(request)
            assert trainer.publish() == Topic.RESULT_ACCEPTED
            abort.trigger("this task only")
            return reply

        trainer.line.register_request_cb(CHANNEL, Topic.TASK_READY, accepted_and_cancelled)
        assert returned(executing(host, job, abort=abort)) == ReturnCode.TASK_ABORTED
        assert wire.of(Topic.ABORT)
        host._active_launch.process.kill()  # the script ends, as it must after ABORT
        wait_until(lambda: job.panics, "the job is failed")

        assert len(job.panics) == 1
        assert "accepted external result source died" in job.panics[0]
        assert job.run_abort.triggered
        assert transfers.failed_sources == [("server.job-1",)]


def test_d5_a_host_that_drains_kills_the_trainer_whose_heartbeats_it_refuses(wire: Wire, transfers: Transfers, tmp_path: Path) -> None:
    """D5: the trainer beats, the host is closing and does not listen, and after the lease it declares the healthy source dead."""
    with launched(wire, tmp_path, heartbeat_interval=0.1, heartbeat_timeout=0.5) as (trainer, host, job):
        call = executing(host, job)
        wait_until(lambda: trainer.task, "the task is delivered")
        trainer.publish()
        assert returned(call) == ReturnCode.OK
        process = host._active_launch.process
        finalizing = Running(lambda: host.finalize(job))

        said: set[str] = set()
        while process.poll() is None:
            said.add(trainer.say(Topic.HEARTBEAT).get(MsgKey.REPLY_TOPIC, ""))
            finalizing.hangs(0.05)
        assert Topic.ERROR in said
        assert transfers.failed_sources == [("server.job-1",)]
        finalizing.result()


@pytest.mark.parametrize("failed_before", [False, True])
def test_d1_one_task_that_failed_makes_the_drain_of_another_be_skipped(
    wire: Wire, transfers: Transfers, tmp_path: Path, *, failed_before: bool
) -> None:
    """D1: a trainer a task. The source of task 2 is served to the end, unless task 1 had timed out: then it is killed at once."""
    job = Job(wire, tmp_path)
    host = external_host(job, IDLE, launch_once=False, result_wait_timeout=0.2, heartbeat_timeout=0.0, stop_grace_period=0.1)
    if failed_before:
        first = Trainer(wire, tmp_path, 1)
        call = executing(host, job)
        first.join()
        assert returned(call) == ReturnCode.EXECUTION_EXCEPTION
    second = Trainer(wire, tmp_path, 1 + failed_before)
    call = executing(host, job)
    second.join()
    wait_until(lambda: second.task, "the task is delivered")
    second.publish()
    assert returned(call) == ReturnCode.OK
    process = host._active_launch.process
    finalizing = Running(lambda: host.finalize(job))

    if failed_before:
        wait_until(lambda: transfers.failed_sources, "the receivers are told that the source failed")
        assert process.poll() is not None
        assert transfers.failed_sources == [("server.job-1",)]
    else:
        assert finalizing.hangs(0.5)
        assert process.poll() is None
        second.live = False
        second.say(Topic.RESULT_SOURCE_SETTLED, task_id=second.task)
        process.kill()
        assert not transfers.failed_sources
    finalizing.result()
