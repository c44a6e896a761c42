# pyright: reportAttributeAccessIssue=false
# (what comes from the reference is known only where it is installed)
"""What a trainer of NVFlare 2.9.0 does, with a host written by hand. Each test shows one finding; see docs/findings.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare", reason="the reference is not here; pip install 'troth[reference]'")

from tests.reference.sides import (
    HOST,
    TRAINER,
    FLModel,
    Host,
    Running,
    TaskState,
    TrainerSessionError,
    TransferType,
    attach_trainer,
    launched_trainer,
    model,
    opening,
)
from tests.reference.wire import CellReturnCode, Fate, Line, MsgKey, Sent, Topic, Transfers, Wire, make_reply, wait_until

SCARCELY_S = 0.3
"""How long a test looks at something that never happens."""


def opened(wire: Wire, folder: Path, **settings: Any) -> tuple[Any, Host]:
    """A trainer in a session with a host written by hand."""
    trainer, host = attach_trainer(folder), Host(wire)
    host.open(trainer, **settings)
    return trainer, host


def test_d7_a_launched_trainer_throws_away_a_result_that_was_delivered(wire: Wire, transfers: Transfers, tmp_path: Path) -> None:
    """D7: accepted and fetched by every receiver, only the answer is lost: ``send()`` fails, and the host is never told of the end."""
    host = Host(wire)
    host.answer(Topic.HELLO, Topic.HELLO_ACCEPTED, session_id="s1", heartbeat_interval=5.0, heartbeat_timeout=0.0, secure_mode=False)
    host.answer(Topic.SESSION_READY, Topic.SESSION_READY)
    trainer = launched_trainer(tmp_path)
    trainer.init()
    host.task(1, target=trainer._trainer_fqcn)
    trainer.receive(timeout=5)
    wire.lazy = True
    wire.lose(Topic.RESULT_READY)
    with pytest.raises(TrainerSessionError, match="cell-level failure on RESULT_READY"):
        trainer.send(model())

    assert [waiter.outcome.status for waiter in transfers.waiters.values()] == ["completed"]
    assert transfers.deleted == ["tx-1"]
    assert wire.of(Topic.RESULT_READY)[0].said == Topic.RESULT_ACCEPTED
    assert not wire.of(Topic.RESULT_SOURCE_SETTLED)


def test_d9_a_task_that_was_passed_is_executed_after_its_successor(wire: Wire, tmp_path: Path) -> None:
    """D9: task 1 failed to come in and was given up, task 2 is queued; a late copy of the offer of task 1 is queued behind it."""
    trainer, host = opened(wire, tmp_path)

    assert host.task(1, payload="cannot be read") == Topic.TASK_FAILED
    assert host.task(2) == Topic.TASK_ACCEPTED
    assert host.task(1) == Topic.TASK_ACCEPTED
    order = []
    for _ in range(2):
        order.append(trainer.receive(timeout=5).params["w"])
        trainer.send(model())
    assert order == [2.0, 1.0]


def test_d14_a_trainer_that_drains_never_gives_up_a_dead_host(wire: Wire, tmp_path: Path) -> None:
    """D14: with a lease of 0.1 s, a silent host ends a pending ``send()``; after SHUTDOWN the same silence ends nothing."""

    def publishing(folder: Path, *, stop_first: bool) -> tuple[Running, Sent]:
        folder.mkdir()
        wire.lines.clear()
        wire.sent.clear()
        trainer, host = opened(wire, folder, heartbeat_interval=0.02, heartbeat_timeout=0.1)
        host.task(1)
        trainer.receive(timeout=5)

        def dead(request: Any) -> Any:
            sent = wire.of(Topic.RESULT_READY)[-1]
            while not sent.abort_signal.triggered and not released:
                wait_until(lambda: True, "now")
            return make_reply(CellReturnCode.TIMEOUT)

        host.line.register_request_cb("", Topic.RESULT_READY, dead)
        sending = Running(lambda: trainer.send(model()))
        wait_until(lambda: wire.of(Topic.RESULT_READY), "the result is on the way")
        if stop_first:
            host.say(Topic.SHUTDOWN)
        wire.lose(Topic.HEARTBEAT, Topic.RESULT_STATUS, fate=Fate.LOSE)
        return sending, wire.of(Topic.RESULT_READY)[-1]

    released: list[bool] = []
    sending, request = publishing(tmp_path / "one", stop_first=False)
    with pytest.raises(TrainerSessionError, match="heartbeat timed out"):
        sending.result()
    assert request.abort_signal.triggered
    wire.heal()

    sending, request = publishing(tmp_path / "two", stop_first=True)
    assert sending.hangs(10 * 0.1)
    assert not request.abort_signal.triggered
    released.append(True)
    with pytest.raises(TrainerSessionError):
        sending.result()


def test_d15_abort_does_not_end_the_settlement(wire: Wire, tmp_path: Path) -> None:
    """D15: aborted while it says that its source is settled, ``send()`` asks twice more, half a minute each, with no way to stop."""
    trainer, host = opened(wire, tmp_path)
    host.task(1)
    trainer.receive(timeout=5)

    def fate(sent: Sent) -> Fate:
        if sent.topic == Topic.RESULT_SOURCE_SETTLED and len(wire.of(sent.topic)) == 1:
            host.say(Topic.ABORT, reason="all is lost")
        return Fate.LOSE if sent.topic == Topic.RESULT_SOURCE_SETTLED else Fate.DELIVER

    wire.fate = fate
    trainer.send(model())

    asked = [(one.timeout, one.abort_signal) for one in wire.of(Topic.RESULT_SOURCE_SETTLED)]
    assert asked == [(30.0, None)] * 3


def test_d16_one_skipped_task_keeps_every_later_one_in_memory(wire: Wire, tmp_path: Path) -> None:
    """D16: the ledger is to hold 256 tasks; behind one that the user skipped nothing is ever forgotten."""
    trainer, host = opened(wire, tmp_path)
    host.task(1)
    trainer.receive(timeout=5)
    trainer.clear()
    for seq in range(2, 400):
        host.task(seq)
        trainer.receive(timeout=5)
        trainer.send(model())

    states = {host.say(Topic.TASK_STATUS, task_id=f"t{seq}")[MsgKey.TASK_STATE] for seq in range(2, 400)}
    assert states == {TaskState.COMPLETE}


def test_d21_an_init_that_failed_cannot_be_tried_again(wire: Wire, tmp_path: Path) -> None:
    """D21: opened, and then its start failed; the next ``init()`` does not wait to be opened but fails at once."""
    trainer, host = attach_trainer(tmp_path), Host(wire)
    line = Line(wire, TRAINER)

    def fail() -> None:
        host.say(Topic.SESSION_OPEN, **opening())
        raise OSError("the listener did not come up")

    line.on_start = fail
    with pytest.raises(OSError, match="did not come up"):
        trainer.init()
    line.on_start = lambda: None
    with pytest.raises(TrainerSessionError, match="SESSION_OPEN wait was interrupted"):
        trainer.init()


def test_d22_a_trainer_that_is_shutting_down_accepts_a_session(wire: Wire, tmp_path: Path) -> None:
    """D22: a host that opens at that moment is told SESSION_ACCEPTED by a trainer that will take no task."""
    trainer, host = attach_trainer(tmp_path), Host(wire)
    joining = Running(trainer.init)
    wait_until(lambda: TRAINER in wire.lines and wire.lines[TRAINER].started.is_set(), "the trainer listens")
    said: list[str] = []
    wire.lines[TRAINER].on_stop = lambda: said.append(host.say(Topic.SESSION_OPEN, **opening())[MsgKey.REPLY_TOPIC])
    trainer.shutdown()

    with pytest.raises(TrainerSessionError):
        joining.result()
    assert said[0] == Topic.SESSION_ACCEPTED
    assert host.task(1) == Topic.TASK_FAILED


def test_d23_shutdown_within_init_hangs(wire: Wire, tmp_path: Path) -> None:
    """D23: called on the thread that is inside ``init()``, as a signal handler is, ``shutdown()`` waits for itself."""
    trainer = attach_trainer(tmp_path)
    line = Line(wire, TRAINER)
    line.on_start = trainer.shutdown
    joining = Running(trainer.init)

    assert joining.hangs(SCARCELY_S)
    assert not line.started.is_set()


def test_d26_a_failed_transfer_makes_receive_return_the_old_task_for_ever(wire: Wire, transfers: Transfers, tmp_path: Path) -> None:
    """D26: the next task waits in the queue, ``receive()`` returns the old model, and ``send()`` says that there is no task."""
    wire.lazy = True
    transfers.outcome = "failed"
    trainer, host = opened(wire, tmp_path)
    host.task(1)
    trainer.receive(timeout=5)
    with pytest.raises(TrainerSessionError, match="result transfer"):
        trainer.send(model())
    assert host.task(2) == Topic.TASK_ACCEPTED

    for _ in range(3):
        assert trainer.is_running()
        assert trainer.receive(timeout=5).params == {"w": 1.0}
        with pytest.raises(TrainerSessionError, match="no current task"):
            trainer.send(model())
    assert host.say(Topic.TASK_STATUS, task_id="t2")[MsgKey.TASK_STATE] == TaskState.QUEUED


def test_d27_keeping_the_cache_hides_the_next_task(wire: Wire, tmp_path: Path) -> None:
    """D27: after ``send(clear_cache=False)``, ``receive()`` returns the model of the task that is done, not the one that waits."""
    trainer, host = opened(wire, tmp_path)
    host.task(1)
    trainer.receive(timeout=5)
    trainer.send(model(), clear_cache=False)
    host.task(2)

    assert trainer.receive(timeout=5).params == {"w": 1.0}


def test_d28_send_on_a_closed_session_looks_like_success(wire: Wire, tmp_path: Path) -> None:
    """D28: nothing is sent, and nothing is raised."""
    trainer, host = opened(wire, tmp_path)
    host.task(1)
    trainer.receive(timeout=5)
    trainer.shutdown()

    assert trainer.send(model()) is None
    assert not wire.of(Topic.RESULT_READY)


def test_d29_a_difference_is_written_into_the_callers_model(wire: Wire, tmp_path: Path) -> None:
    """D29: what ``send(clear_cache=False)`` leaves in the model is no longer what the caller trained."""
    trainer, host = opened(wire, tmp_path, task_exchange={"transfer_type": TransferType.DIFF})
    host.task(1)
    trainer.receive(timeout=5)
    trained = FLModel(params={"w": 5.0})
    trainer.send(trained, clear_cache=False)

    assert trained.params == {"w": 4.0}
    assert HOST in wire.lines
