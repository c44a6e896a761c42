"""Races about one task, one process or two hosts: repetitions that come late, and ends that come in the middle."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready, session
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import Trainer, TrainerConfig

TERM = core.SignalProcess(core.ProcessSignal.TERM)
KILL = core.SignalProcess(core.ProcessSignal.KILL)


def offer(seq: int, *, attempt: int = 1) -> core.Received:
    """TASK_READY, by hand."""
    message = m.TaskReady(epoch=1, seq=seq, attempt=attempt, floor=1, content=0, receivers=1, inline=True)
    return core.Received("control", message)


def test_a_second_attempt_of_an_accepted_result_is_answered_with_the_first() -> None:
    """R11, K13: one attempt is canonical; nothing is fetched twice, and the task has one outcome."""
    made = ready()
    made.working()
    made.send(3, inline=False)
    made.settle()
    message = m.ResultReady(epoch=1, seq=1, attempt=2, content=0, inline=False)
    made.give("host", core.Received("control", message))
    made.run()

    assert made.said("host", m.ResultAccepted) == [m.ResultAccepted(epoch=1, seq=1, attempt=1)] * 2
    assert len(made.said("host", m.FetchPayload)) == 1
    assert made.ended == ["result"]
    assert made.outcomes("trainer", "send") == ["accepted"]


def test_an_answer_about_the_first_attempt_ends_the_second() -> None:
    """R11: the trainer has sent attempt 2 when it hears that attempt 1 was taken; that is its result."""
    made = ready()
    made.working()
    made.send(3)
    made.lose(TO_HOST)
    made.fire("trainer", "result", 1)
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)
    made.lose(TO_HOST)
    assert [said.attempt for said in made.said("trainer", m.ResultReady)] == [1, 2]
    for _ in range(2):
        made.give("trainer", core.Received("control", m.ResultAccepted(epoch=1, seq=1, attempt=1)))

    assert made.where("trainer", "publication", 1) == "settling"
    assert made.said("trainer", m.ResultSourceSettled) == [m.ResultSourceSettled(epoch=1, seq=1, delivered=True)]
    assert len(made.said("trainer", m.ResultReady)) == 2


def test_an_offer_that_comes_again_while_the_payload_does_fetches_it_once() -> None:
    """R18, K11: RESERVED is not ACCEPTED; the host asks again later, and the task is queued once."""
    made = ready()
    made.execute(inline=False)
    made.settle()
    made.give("trainer", offer(1))

    assert made.said("trainer", m.TaskReserved) == [m.TaskReserved(epoch=1, seq=1)]
    assert len(made.said("trainer", m.FetchPayload)) == 1
    made.settle()
    assert made.where("host", "delivery") == "asking"
    made.run()

    assert made.said("trainer", m.TaskAccepted) == [m.TaskAccepted(epoch=1, seq=1)]
    assert made.where("trainer", "ledger", 1) == "queued"


@pytest.mark.parametrize("at", ["queued", "delivered", "publishing", "complete"])
def test_an_offer_of_a_task_that_is_known_is_accepted_again_and_changes_nothing(at: str) -> None:
    """R19, K10: however far the task is; it is not run again."""
    made = ready()
    made.execute()
    made.run()
    if at != "queued":
        made.take(2)
    if at in ("publishing", "complete"):
        made.send(3)
    if at == "publishing":
        made.lose(TO_HOST)
    made.run()
    assert made.where("trainer", "ledger", 1) == at
    said = len(made.said("trainer", m.TaskAccepted))
    made.give("trainer", offer(1, attempt=2))

    assert len(made.said("trainer", m.TaskAccepted)) == said + 1
    assert made.where("trainer", "ledger", 1) == at


def test_an_offer_of_a_task_that_was_forgotten_is_stale() -> None:
    """R19, K16: its entry was evicted, so nothing is known of it but that it is past."""
    made = ready(limits=Limits(ledger_limit=1))
    for number in (2, 4):
        made.working(number)
        made.send(number + 1)
        made.run()
    made.give("trainer", offer(1))

    assert [said.reason for said in made.said("trainer", m.TaskFailed)] == [m.FailReason.STALE]
    assert made.cores["trainer"].members("ledger") == (2,)


def test_a_trainer_that_closed_and_whose_workers_live_gets_its_natural_exit_and_then_signals() -> None:
    """R25, K56: the session is over, but not all of the process; only when nothing is left is the launch over."""
    made = ready()
    made.call("trainer", "shutdown", 9)
    made.run()
    assert made.where("host", "process") == "leaving"
    assert made.to_supervisor(m.SessionEnded) == []

    assert TERM in made.fire("host", "process").effects
    assert KILL in made.fire("host", "process").effects
    made.give("host", core.ProcessExited())
    assert len(made.to_supervisor(m.SessionEnded)) == 1


@pytest.mark.parametrize("order", [m.CloseSession(launch=1), m.AbortSession(launch=1)], ids=["closed", "aborted"])
def test_a_process_that_is_being_started_when_the_end_comes_is_waited_for_and_ended(order: core.Message) -> None:
    """R26, K51: it was asked for, so the launch is not over before it has come and gone."""
    made = session()
    made.order(m.StartSession(launch=1))
    made.order(order)

    assert made.to_supervisor(m.SessionEnded) == []
    assert TERM in made.give("host", core.ProcessStarted()).effects
    made.give("host", core.ProcessExited())
    assert len(made.to_supervisor(m.SessionEnded)) == 1


@pytest.mark.parametrize("order", [m.CloseSession(launch=1), m.AbortSession(launch=1), m.StopTask(launch=1)])
@pytest.mark.parametrize("result_first", [True, False], ids=["result first", "end first"])
def test_a_result_and_an_end_are_decided_in_one_order_or_the_other(order: core.Message, result_first: bool) -> None:
    """R27, K53: taking a result is one step, so an end is before or after it, and both sides are told the same."""
    made = ready()
    made.working()
    made.send(3)
    if result_first:
        made.deliver(TO_HOST)
    made.order(order)
    made.run()
    taken = result_first or isinstance(order, m.CloseSession)

    assert made.ended == (["result"] if taken else ["aborted" if isinstance(order, m.AbortSession) else "cancelled"])
    state = made.where("host", "acceptance", 1)
    assert (state in ("safe", "settled")) == taken
    told = made.outcomes("trainer", "send")
    assert told in (["accepted"], ["aborted"], ["cancelled"])
    assert told != ["accepted"] or taken, "accepted means taken"
    if isinstance(order, m.CloseSession):
        assert told == ["accepted"]


@pytest.mark.parametrize("instance", [0, 1], ids=["the same host", "another host"])
def test_an_open_that_is_not_above_the_session_leaves_it_as_it_is(instance: int) -> None:
    """R29, K5: the first one has the trainer; whoever opens at or below its epoch is told which one it is in."""
    made = ready(launched=False)
    made.working()
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=3, instance=0, resume=False)))
    before = made.cores["trainer"].snapshot()
    made.lose(TO_HOST)
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=2, instance=instance, resume=False)))

    assert made.cores["trainer"].snapshot() == before
    assert made.said("trainer", m.SessionRejected) == [m.SessionRejected(opened=2, epoch=3, retry=True)]


def lost_link() -> Session:
    """A result was sent, and the link is lost with it."""
    made = ready()
    made.working()
    made.send(3)
    for name in ("trainer", "host"):
        made.give(name, core.LinkLost("control"))
    made.lose(TO_HOST)
    made.lose(TO_TRAINER)
    return made


def test_a_link_that_is_lost_with_a_result_costs_one_question() -> None:
    """R8, K62: redialled within the lease, what was unanswered is asked for, and the session is the same."""
    made = lost_link()
    made.redial()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.cores["host"].data("session").epoch == 1
    assert made.ended == ["result"]
    assert made.refusals == []


def test_a_task_that_was_interrupted_is_not_run_again() -> None:
    """K62: the lease ends the session; its task is lost, and the host does not offer it anew by itself."""
    made = lost_link()
    made.give("host", core.ProcessExited())

    assert made.ended == ["trainer lost"]
    assert len(made.said("host", m.TaskReady)) == 1


@pytest.mark.parametrize("epoch", [1, 2], ids=["the same epoch", "a higher one"])
def test_a_session_that_this_process_was_never_in_is_not_resumed(epoch: int) -> None:
    """D4, R30: another instance says that it resumes; only its own trainer could, and this one is told that it cannot."""
    made = ready(launched=False)
    before = made.cores["trainer"].snapshot()
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=epoch, instance=1, resume=True)))

    assert made.cores["trainer"].snapshot() == before
    assert made.said("trainer", m.SessionRejected) == [m.SessionRejected(opened=epoch, epoch=1, retry=False)]


def test_whether_an_attempt_was_the_last_is_said_by_who_counts_them() -> None:
    """D8: the trainer may publish once, its host would hear eight attempts; the last question is answered for good."""
    made = session()
    made.cores["trainer"] = Trainer(TrainerConfig(limits=Limits(result_attempts=1)))
    made.order(m.StartSession(launch=1))
    made.give("host", core.ProcessStarted())
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.redial()
    made.working()
    made.send(3)
    made.lose(TO_HOST)
    made.fire("trainer", "result", 1)
    made.run()

    assert [said.last for said in made.said("trainer", m.ResultStatus)] == [True]
    assert made.outcomes("trainer", "send") == ["rejected"]
    assert made.ended == ["result lost"]
