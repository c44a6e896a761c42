"""What the checklist says of tasks: how they are answered for, remembered and given up, on both sides."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits


def asked(made: Session, seq: int = 1) -> list[core.Message]:
    """What the trainer answers to TASK_STATUS."""
    before = len(made.sent)
    made.give("trainer", core.Received("control", m.TaskStatus(epoch=1, seq=seq)))
    return [message for name, message in made.sent[before:] if name == "trainer"]


def test_a_status_says_what_became_of_the_task() -> None:
    """K10, K11: unknown, coming in, accepted (queued, delivered, publishing, complete), cancelled."""
    made = ready()
    accepted: list[core.Message] = [m.TaskAccepted(epoch=1, seq=1)]
    assert asked(made) == [m.TaskUnknown(epoch=1, seq=1)]
    made.execute(inline=False)
    made.settle()
    assert asked(made) == [m.TaskReserved(epoch=1, seq=1)]
    made.run()
    assert asked(made) == accepted
    made.take(2)
    assert asked(made) == accepted
    made.send(3)
    assert asked(made) == accepted
    made.run()
    assert asked(made) == accepted
    made.execute()
    made.order(m.StopTask(launch=1))
    made.run()
    assert asked(made, 2) == [m.TaskFailed(epoch=1, seq=2, attempt=0, reason=m.FailReason.CANCELLED)]


def test_a_payload_that_did_not_come_queues_nothing_and_is_unknown_afterwards() -> None:
    """K11, K26: TASK_FAILED, and the task may be offered again."""
    made = ready()
    made.execute(inline=False)
    made.settle()
    made.give("trainer", core.Received("receivers", m.PayloadLost(epoch=1, seq=1, receiver=0)))

    assert [said.reason for said in made.said("trainer", m.TaskFailed)] == [m.FailReason.PAYLOAD]
    assert made.said("trainer", m.TaskAccepted) == []
    assert asked(made) == [m.TaskUnknown(epoch=1, seq=1)]


def test_a_task_is_accepted_only_when_it_is_queued() -> None:
    """K26: not when it is reserved."""
    made = ready()
    made.execute(inline=False)
    made.settle()
    assert made.said("trainer", m.TaskAccepted) == []
    made.run()

    assert made.said("trainer", m.TaskAccepted) == [m.TaskAccepted(epoch=1, seq=1)]
    assert made.where("trainer", "ledger", 1) == "queued"


def test_an_offer_that_is_repeated_is_life() -> None:
    """K10: the trainer hears its host, so the host is not silent."""
    made = ready()
    made.working()
    made.fire("trainer", "lease")
    assert made.where("trainer", "lease") == "suspect"
    message = m.TaskReady(epoch=1, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=True)
    made.give("trainer", core.Received("control", message))

    assert made.where("trainer", "lease") == "armed"


def test_a_lost_answer_is_asked_for_before_the_task_is_offered_again() -> None:
    """K61: TASK_ACCEPTED is lost; the status brings it, and the task went out once."""
    made = ready()
    made.execute()
    made.deliver(TO_TRAINER)
    made.finish(next(iter(made.pulls)))
    assert made.said("trainer", m.TaskAccepted)
    made.lose(TO_HOST)
    made.fire("host", "task")
    made.run()

    assert made.where("host", "delivery") == "waiting"
    assert len(made.said("host", m.TaskReady)) == 1


def test_a_task_that_never_came_is_offered_again_with_another_attempt() -> None:
    """K61: UNKNOWN is the only reason to."""
    made = ready()
    made.execute()
    made.lose(TO_TRAINER)
    made.fire("host", "task")
    made.run()

    assert [said.attempt for said in made.said("host", m.TaskReady)] == [1, 2]
    assert made.where("trainer", "ledger", 1) == "queued"


@pytest.mark.parametrize("reason", [m.FailReason.STALE, m.FailReason.MISMATCH, m.FailReason.CANCELLED, m.FailReason.ENDED])
def test_a_refused_task_is_not_offered_again(reason: m.FailReason) -> None:
    """K61: the trainer will never run it."""
    made = ready()
    made.execute()
    made.lose(TO_TRAINER)
    made.give("host", core.Received("control", m.TaskFailed(epoch=1, seq=1, attempt=1, reason=reason)))
    made.run()

    assert made.ended == ["refused"]
    assert len(made.said("host", m.TaskReady)) == 1
    assert made.timers("host") == {"lease"}


def test_an_acceptance_that_comes_after_the_budget_changes_nothing() -> None:
    """K49: the delivery was given up, and the late answer does not bring it back."""
    made = ready()
    made.execute()
    made.lose(TO_TRAINER)
    made.fire("host", "budget")
    made.lose(TO_TRAINER)
    before = made.cores["host"].snapshot()
    made.give("host", core.Received("control", m.TaskAccepted(epoch=1, seq=1)))

    assert made.ended == ["undelivered"]
    assert made.where("host", "delivery") == "cancelling"
    assert made.cores["host"].data("delivery").seq == 1
    assert made.cores["host"].snapshot()[1] == before[1]  # type: ignore[index]


@pytest.mark.parametrize("cause", ["cancel", "abort", "death", "guardian"])
def test_a_delivery_is_ended_by_whatever_ends_its_task_or_session(cause: str) -> None:
    """K49, K52: at once, with its own outcome, and its payload is let go."""
    made = ready()
    made.execute(inline=False)
    made.lose(TO_TRAINER)
    assert [where for where in made.offers if where[0] == "host"]
    outcome = {"cancel": "cancelled", "abort": "aborted", "death": "trainer lost", "guardian": "trainer lost"}[cause]
    if cause == "cancel":
        made.order(m.StopTask(launch=1))
    elif cause == "abort":
        made.order(m.AbortSession(launch=1))
    else:
        made.give("host", core.ProcessExited() if cause == "death" else core.OwnerLost())

    assert made.ended == [outcome]
    assert [where for where in made.offers if where[0] == "host"] == []


def test_a_cancelled_task_leaves_its_trainer_to_the_next_one() -> None:
    """K52, K57: nothing is latched; the session, its process and its epoch are the same."""
    made = ready()
    made.working()
    made.order(m.StopTask(launch=1))
    made.run()
    made.working(5)
    made.send(6)
    made.run()

    assert made.ended == ["cancelled", "result"]
    assert made.process["host"] == "spawned"
    assert made.where("host", "session") == "ready"


def test_a_late_result_is_waited_for_as_long_as_its_limit_says() -> None:
    """K52: a result that does not come in time ends its task, not the session."""
    made = ready(limits=Limits(result_wait_s=30.0))
    made.working()
    assert made.armed["host", "budget", None][1] == "result_wait_s"
    made.fire("host", "budget")
    made.run()

    assert made.ended == ["timeout"]
    assert made.where("trainer", "ledger", 1) == "cancelled"
    assert made.where("host", "session") == "ready"


def test_a_second_task_is_refused_while_one_is_out_and_disturbs_nothing() -> None:
    """K50: at the host too."""
    made = ready()
    made.working()
    before = made.snapshot()
    step = made.execute()

    assert step.refusal is not None
    assert made.snapshot() == before


def test_the_first_task_of_a_session_is_number_one_and_each_is_one_above() -> None:
    """K59."""
    made = ready(launched=False)
    for number in (2, 4, 6):
        made.working(number)
        made.send(number + 1)
        made.run()

    assert [said.seq for said in made.said("host", m.TaskReady)] == [1, 2, 3]


def test_what_is_remembered_stays_within_its_limit_however_many_tasks_there_were() -> None:
    """K16: the oldest go first, on both sides, and what was forgotten is stale."""
    made = ready(limits=Limits(ledger_limit=8, acceptance_limit=8))
    for task in range(1, 13):
        made.working(2 * task)
        made.send(2 * task + 1)
        made.run()

    assert made.cores["trainer"].members("ledger") == tuple(range(5, 13))
    assert made.cores["host"].members("acceptance") == tuple(range(5, 13))
    assert made.cores["trainer"].data("intake").evicted == 4
    message = m.TaskReady(epoch=1, seq=4, attempt=1, floor=1, content=0, receivers=1, inline=True)
    made.give("trainer", core.Received("control", message))

    assert made.said("trainer", m.TaskFailed)[-1].reason is m.FailReason.STALE


def test_silence_ends_a_wait_for_a_result_that_has_no_limit() -> None:
    """K48: the lease bounds it; without evidence of life, after the lease, and with it after the limit of patience."""
    made = ready(launched=False)
    made.working()
    assert "budget" in made.timers("host"), "without a value it never fires"
    for _ in range(2):
        made.fire("host", "lease")

    assert made.ended == ["trainer lost"]


def test_a_payload_that_is_coming_in_is_no_silence() -> None:
    """K48, K40: while bytes should move, silence is judged by the transfer's own limit."""
    made = ready()
    made.execute(inline=False)
    made.settle()
    made.fire("trainer", "lease")

    assert made.where("trainer", "lease") == "suspended"
    assert made.armed["trainer", "lease", None][1] == "transfer_stall_s"


def test_a_result_that_rides_along_does_not_suspend_the_lease() -> None:
    """K40, R16: no bytes are expected to move, so the silence of the host counts."""
    made = ready(launched=False)
    made.working()
    made.send(3)
    made.lose(TO_HOST)
    for _ in range(2):
        made.fire("trainer", "lease")

    assert made.outcomes("trainer", "send") == ["lost"]


def test_another_epochs_beat_is_no_life() -> None:
    """K48: a beat counts for its own session."""
    made = ready()
    made.fire("host", "lease")
    made.give("host", core.Received("control", m.Heartbeat(epoch=9)))

    assert made.where("host", "lease") == "suspect"
    assert made.said("host", m.Heartbeat) == []


@pytest.mark.parametrize("over", [True, False])
def test_a_log_record_is_best_effort(over: bool) -> None:
    """K58: dropped where there is no session, and taken without an answer where there is."""
    made = ready()
    if over:
        made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    made.call("trainer", "log", 5)
    said = made.said("trainer", m.Log)
    made.run()

    assert said == ([] if over else [m.Log(epoch=1)])
    assert made.refusals == []
