# pyright: reportAttributeAccessIssue=false
# (what comes from the reference is known only where it is installed)
"""What trainer and host of NVFlare 2.9.0 do to each other, attached, when messages are lost.

Each test shows one finding; see docs/findings.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nvflare", reason="the reference is not here; pip install 'troth[reference]'")

from tests.reference.sides import ReturnCode, Running, Signal, TrainerSessionError, attached, executing, model, returned
from tests.reference.wire import Fate, MsgKey, Sent, Topic, Transfers, Wire, message, wait_until


def test_d4_a_host_cannot_reconnect_to_its_own_living_trainer(wire: Wire, tmp_path: Path) -> None:
    """D4: heartbeats stall, the host opens anew as it was configured to, the trainer says "already bound", and that is final."""
    with attached(wire, tmp_path, heartbeat_interval=0.05, heartbeat_timeout=0.3, allow_reconnect=True) as (_, host, job):
        first = host._session
        wire.lose(Topic.HEARTBEAT, fate=Fate.LOSE)
        wait_until(lambda: host._session is not first and host._session.error, "the host has opened anew and was refused")
        wire.heal()

        assert len(wire.of(Topic.SESSION_OPEN)) == 2
        assert wire.of(Topic.SESSION_OPEN)[-1].said == Topic.SESSION_REJECTED
        assert returned(executing(host, job)) == ReturnCode.EXECUTION_EXCEPTION
        assert "already bound" in job.errors[-1]
        wait_until(lambda: not host._session_thread.is_alive(), "the host has given up for good")


def test_d6_a_closing_host_denies_the_result_that_it_has_accepted(wire: Wire, tmp_path: Path) -> None:
    """D6: the closed gate is asked before the memory of what was accepted: a retry is rejected although ``execute()`` has returned."""
    with attached(wire, tmp_path, heartbeat_timeout=6.0) as (trainer, host, job):
        call = executing(host, job)
        trainer.receive(timeout=5)
        finalizing: list[Running] = []

        def fate(sent: Sent) -> Fate:
            if sent.topic == Topic.RESULT_READY and len(wire.of(Topic.RESULT_READY)) == 2:
                assert returned(call) == ReturnCode.OK
                host._session.result_source_live.clear()
                finalizing.append(Running(lambda: host.finalize(job)))
                wait_until(lambda: wire.of(Topic.SHUTDOWN), "the host is closing")
                return Fate.DELIVER
            return Fate.LOSE_REPLY if sent.topic in (Topic.RESULT_READY, Topic.RESULT_STATUS) else Fate.DELIVER

        wire.fate = fate
        with pytest.raises(TrainerSessionError, match="result was rejected by the CJ: backend is closed"):
            trainer.send(model())

        assert [one.said for one in wire.of(Topic.RESULT_READY)] == [Topic.RESULT_ACCEPTED, Topic.RESULT_REJECTED]
        finalizing[0].result()


def test_d8_a_rejected_result_is_reported_as_accepted(wire: Wire, transfers: Transfers, tmp_path: Path) -> None:
    """D8: both attempts were fetched and rejected, and RESULT_STATUS says UNKNOWN: ``send()`` returns as if the host had taken one."""
    wire.lazy = True
    with attached(wire, tmp_path, result_wait_timeout=0.05) as (trainer, host, job):
        wire.lose(Topic.ABORT, fate=Fate.LOSE)
        call = executing(host, job)
        trainer.receive(timeout=5)
        assert returned(call) == ReturnCode.EXECUTION_EXCEPTION
        wire.lose(Topic.RESULT_READY)

        trainer.send(model())

        assert [one.said for one in wire.of(Topic.RESULT_READY)] == [Topic.RESULT_REJECTED] * 2
        assert {one.reply.payload[MsgKey.RESULT_STATE] for one in wire.of(Topic.RESULT_STATUS)} == {"UNKNOWN"}


def test_d10_a_second_send_never_mends_the_first(wire: Wire, tmp_path: Path) -> None:
    """D10: the host accepted attempt 1 and says so, but the attempts of the first ``send()`` are forgotten, so every later one fails."""
    with attached(wire, tmp_path) as (trainer, host, job):
        call = executing(host, job)
        trainer.receive(timeout=5)
        result = model()
        wire.lose(Topic.RESULT_READY, Topic.RESULT_STATUS)
        with pytest.raises(TrainerSessionError, match="after status recovery"):
            trainer.send(result, clear_cache=False)
        assert returned(call) == ReturnCode.OK
        wire.heal()

        for _ in range(2):
            with pytest.raises(TrainerSessionError, match="unknown result attempt"):
                trainer.send(result, clear_cache=False)
        assert wire.of(Topic.RESULT_READY)[-1].said == Topic.RESULT_ACCEPTED


def test_d11_a_task_that_the_host_gave_up_is_executed(wire: Wire, tmp_path: Path) -> None:
    """D11: the host stops waiting for TASK_ACCEPTED and reports failure, tells the trainer nothing, and the trainer runs the task."""
    with attached(wire, tmp_path, task_wait_timeout=0.1) as (trainer, host, job):
        wire.lose(Topic.TASK_READY, Topic.TASK_STATUS)
        assert returned(executing(host, job)) == ReturnCode.EXECUTION_EXCEPTION
        wire.heal()

        assert not wire.of(Topic.ABORT)
        assert trainer.receive(timeout=5).params == {"w": 1.0}
        with pytest.raises(TrainerSessionError, match="no current task matching"):
            trainer.send(model())


def test_d12_cancelling_one_task_ends_the_trainer_for_all_later_ones(wire: Wire, tmp_path: Path) -> None:
    """D12: ABORT has no task in it. The host keeps the session for later tasks; the trainer will never take one again."""
    with attached(wire, tmp_path) as (trainer, host, job):
        abort = Signal()
        call = executing(host, job, abort=abort)
        trainer.receive(timeout=5)
        abort.trigger("this task only")
        assert returned(call) == ReturnCode.TASK_ABORTED

        assert host._session.ready.is_set()
        assert not host._session.error
        assert returned(executing(host, job)) == ReturnCode.EXECUTION_EXCEPTION
        assert wire.of(Topic.TASK_READY)[-1].said == Topic.TASK_FAILED
        assert "session aborted" in job.errors[-1]


def test_d13_a_settlement_whose_answer_was_lost_is_an_error_ever_after(wire: Wire, tmp_path: Path) -> None:
    """D13: RESULT_SOURCE_SETTLED was processed; said again, as it must be, it is answered with ERROR until the trainer gives up."""
    with attached(wire, tmp_path) as (trainer, host, job):
        call = executing(host, job)
        trainer.receive(timeout=5)
        wire.fate = lambda sent: (
            Fate.LOSE_REPLY
            if sent.topic == Topic.RESULT_SOURCE_SETTLED and len(wire.of(Topic.RESULT_SOURCE_SETTLED)) == 1
            else Fate.DELIVER
        )
        trainer.send(model())

        assert returned(call) == ReturnCode.OK
        said = [one.said for one in wire.of(Topic.RESULT_SOURCE_SETTLED)]
        assert said == [Topic.RESULT_SOURCE_SETTLED, Topic.ERROR, Topic.ERROR]


def test_d13_a_heartbeat_from_before_the_result_erases_its_source(wire: Wire, transfers: Transfers, tmp_path: Path) -> None:
    """D13: "no live source", sampled before ``send()`` and heard after the acceptance, makes the host forget the source."""
    wire.lazy = True
    transfers.outcome = None
    with attached(wire, tmp_path) as (trainer, host, job):
        call = executing(host, job)
        trainer.receive(timeout=5)
        sending = Running(lambda: trainer.send(model()))
        assert returned(call) == ReturnCode.OK
        assert host._session.result_source_live.is_set()

        late = {MsgKey.SESSION_ID: host._session.session_id, MsgKey.RESULT_SOURCE_LIVE: False}
        wire.lines[trainer._trainer_fqcn].send_request("", Topic.HEARTBEAT, host._cj_fqcn, message(late), timeout=1.0)

        assert not host._session.result_source_live.is_set()
        transfers.outcome = "completed"
        transfers.get_transfer_waiter(wire.made[0])
        sending.result()
        assert {one.said for one in wire.of(Topic.RESULT_SOURCE_SETTLED)} == {Topic.ERROR}


def test_d18_an_accepted_result_fails_because_a_confirmation_was_lost(wire: Wire, transfers: Transfers, tmp_path: Path) -> None:
    """D18: the host holds the result and returned it, but its last word to the download service was lost, so ``send()`` raises."""
    wire.lazy = True
    transfers.outcome = "failed"
    with attached(wire, tmp_path) as (trainer, host, job):
        call = executing(host, job)
        trainer.receive(timeout=5)
        with pytest.raises(TrainerSessionError, match="result transfer tx-1 failed"):
            trainer.send(model())

        assert returned(call) == ReturnCode.OK
        assert wire.of(Topic.RESULT_READY)[0].said == Topic.RESULT_ACCEPTED
