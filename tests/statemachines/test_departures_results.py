"""Where Troth departs from the reference, about results: acceptance, attempts, settlement and cancellation."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import DATA_TO_RECEIVER, DATA_TO_TRAINER, TO_HOST, TO_TRAINER, Session, ready
from troth.spec import core
from troth.spec import messages as m

BOTH = pytest.mark.parametrize("launched", [True, False], ids=["launched", "attached"])


def accepted_and_fetching(*, launched: bool = True) -> Session:
    """A large result was accepted, both sides know, and the host's receiver is fetching it."""
    made = ready(launched=launched)
    made.working()
    made.send(3, inline=False)
    made.settle()

    assert made.where("host", "acceptance", 1) == "accepted"
    assert made.where("trainer", "publication", 1) == "accepted"
    return made


def test_an_accepted_result_ends_the_delivery_whose_acceptance_was_lost() -> None:
    """D2, R21: TASK_ACCEPTED is lost; the result arrives, and that is enough."""
    made = ready()
    made.execute()
    made.deliver(TO_TRAINER)
    made.finish(next(iter(made.pulls)))

    assert [type(lost) for lost in made.lose(TO_HOST)] == [m.TaskAccepted]
    made.take(2)
    made.send(3)
    made.run()

    assert made.ended == ["result"]
    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.where("host", "delivery") == "idle"
    assert made.refusals == []


def test_a_cancel_after_acceptance_retires_the_source_and_fails_nothing() -> None:
    """D3: the host forsakes the result itself, before it tells the trainer; no loss is reported, and the session goes on."""
    made = accepted_and_fetching()
    made.order(m.StopTask(launch=1))

    assert made.where("host", "acceptance", 1) == "retired"
    made.run()

    assert made.ended == ["cancelled"]
    assert made.to_supervisor(m.ResultLost) == []
    assert made.where("trainer", "source", (1, 0)) == "absent"
    assert made.offers == {}
    assert (made.where("trainer", "session"), made.where("host", "session")) == ("ready", "ready")
    made.give("host", core.ProcessExited(0, False))

    assert made.to_supervisor(m.ResultLost) == []


@pytest.mark.parametrize("heard", [True, False], ids=["the trainer knows", "the trainer does not know"])
def test_the_death_of_a_cancelled_tasks_trainer_is_no_loss(heard: bool) -> None:
    """D3, R23: a result that the host gave up itself cannot be lost any more."""
    made = ready()
    made.working()
    made.send(3, inline=False)
    made.deliver(TO_HOST)
    if heard:
        made.settle()
    made.order(m.StopTask(launch=1))
    made.give("host", core.ProcessExited(0, False))

    assert made.to_supervisor(m.ResultLost) == []
    assert made.ended == ["cancelled"]


def test_a_result_that_was_accepted_is_accepted_again_by_a_host_that_closes() -> None:
    """D6: what is remembered is looked up before any gate is."""
    made = ready()
    made.working()
    made.send(3)
    repeated = made.queues[TO_HOST][0]
    made.deliver(TO_HOST)
    made.lose(TO_TRAINER)
    made.order(m.CloseSession(launch=1))
    made.queues[TO_HOST].append(repeated)
    made.deliver(TO_HOST)
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.said("host", m.ResultRejected) == []
    assert made.where("host", "acceptance", 1) == "settled"


@BOTH
@pytest.mark.parametrize("inline", [True, False], ids=["inline", "offered"])
def test_a_lost_acceptance_is_asked_for_in_every_mode(launched: bool, inline: bool) -> None:
    """D7, R8, R10, K12: RESULT_ACCEPTED is lost; the status brings it, nothing is sent twice and nothing let go."""
    made = ready(launched=launched)
    made.working()
    made.send(3, inline=inline)
    made.deliver(TO_HOST)
    made.lose(TO_TRAINER)
    offers = dict(made.offers)
    made.fire("trainer", "result", 1)

    assert made.offers == offers
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert [sent.attempt for sent in made.said("trainer", m.ResultReady)] == [1]
    assert made.ended == ["result"]


@BOTH
def test_bytes_that_were_fetched_do_not_make_an_unaccepted_result_accepted(launched: bool) -> None:
    """D8, R9: every receiver holds the payload, but the host says that it took none."""
    made = ready(launched=launched)
    made.working()
    made.send(3, inline=False)
    made.order(m.StopTask(launch=1))
    made.give("trainer", core.Received("data", m.PayloadHeld(epoch=1, seq=1, receiver=0)))
    made.lose(DATA_TO_RECEIVER)

    assert made.where("trainer", "source", (1, 0)) == "held"
    assert made.outcomes("trainer", "send") == []
    made.deliver(TO_HOST)

    assert [said.reason for said in made.said("host", m.ResultRejected)] == [m.RejectReason.CANCELLED]
    made.lose(TO_TRAINER)
    made.fire("trainer", "result", 1)
    made.run()

    assert made.outcomes("trainer", "send") == ["rejected"]
    assert made.where("trainer", "publication", 1) == "rejected"


def test_unknown_is_no_acceptance_and_fences_what_is_still_on_its_way() -> None:
    """D8: the host never saw attempt 1, says so, and will not take it any more; attempt 2 is taken."""
    made = ready()
    made.working()
    made.send(3)
    late = made.lose(TO_HOST)[0]
    made.fire("trainer", "result", 1)
    made.deliver(TO_HOST)
    made.give("host", core.Received("control", late))

    assert made.where("host", "acceptance", 1) == "awaiting"
    made.run()

    assert [said.attempt for said in made.said("host", m.ResultAccepted)] == [2]
    assert made.outcomes("trainer", "send") == ["accepted"]


@BOTH
def test_a_second_send_of_the_same_content_joins_the_first(launched: bool) -> None:
    """D10: the first caller gave up; the same content again gets the outcome of the same result, without another attempt."""
    made = ready(launched=launched)
    made.working()
    made.send(3)
    made.give("trainer", core.CallCancelled("send", 3))
    made.send(4)
    made.run()

    assert made.outcomes("trainer", "send") == ["cancelled", "accepted"]
    assert len(made.said("trainer", m.ResultReady)) == 1


@pytest.mark.parametrize("settled", [False, True])
def test_another_content_for_the_same_task_is_a_conflict(settled: bool) -> None:
    """D10: one result a task; the first content stays, and nothing of the second is sent."""
    made = ready()
    made.working()
    made.send(3)
    if settled:
        made.run()
    made.give("trainer", core.CallCancelled("send", 3))
    made.send(4, content=1)

    assert made.outcomes("trainer", "send")[-1] == "conflict"
    assert len(made.said("trainer", m.ResultReady)) == 1


def test_a_repeated_settlement_is_noted_again() -> None:
    """D13, R13, K36: the answer is lost; the notice comes again and is answered as the first one was."""
    made = accepted_and_fetching()
    made.finish(next(iter(made.pulls)))
    made.deliver(DATA_TO_TRAINER)
    made.deliver(TO_HOST)

    assert [type(lost) for lost in made.lose(TO_TRAINER)] == [m.ResultSourceReleased]
    before = made.cores["host"].state("acceptance", 1)
    made.fire("trainer", "result", 1)
    made.run()

    assert before is made.cores["host"].state("acceptance", 1)
    assert made.where("trainer", "publication", 1) == "settled"
    assert made.to_supervisor(m.ResultLost) == []


def test_a_late_settlement_of_an_older_task_touches_no_newer_one() -> None:
    """D13, R12: SETTLED of task 1 comes again after task 2 was accepted."""
    made = ready()
    made.working()
    made.send(3)
    made.run()
    made.working(4)
    made.send(5, inline=False)
    made.settle()
    late = m.ResultSourceSettled(epoch=1, seq=1, delivered=True)
    made.give("host", core.Received("control", late))

    assert made.where("host", "acceptance", 2) == "accepted"
    assert made.where("host", "acceptance", 1) == "settled"


def test_a_settlement_carries_its_outcome() -> None:
    """D13, R7: a receiver gave up, so the notice says that the result was not delivered, and the loss is reported once."""
    made = accepted_and_fetching()
    made.give("trainer", core.Received("data", m.PayloadAbandoned(epoch=1, seq=1, receiver=0)))

    assert made.outcomes("trainer", "send") in ([], ["undelivered"])
    made.settle()

    assert [said.delivered for said in made.said("trainer", m.ResultSourceSettled)] == [False]
    assert len(made.to_supervisor(m.ResultLost)) == 1
    assert made.where("host", "acceptance", 1) == "lost"


def test_a_receiver_that_holds_the_payload_settles_by_saying_so() -> None:
    """D18: no word from the serving side is needed."""
    made = accepted_and_fetching()
    made.finish(next(iter(made.pulls)))
    made.run()

    assert made.where("host", "acceptance", 1) == "settled"
    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.offers == {}


def test_a_lost_confirmation_is_said_again() -> None:
    """D18: PAYLOAD_HELD is lost once; the receiver repeats it, and the result is settled as delivered."""
    made = accepted_and_fetching()
    made.finish(next(iter(made.pulls)))
    made.lose(DATA_TO_TRAINER)
    made.run()

    assert made.where("trainer", "publication", 1) == "accepted"
    made.fire("result receiver", "stall")
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.where("host", "acceptance", 1) == "settled"


def test_served_is_not_held() -> None:
    """D18: the source's own end of the transfer settles nothing."""
    made = accepted_and_fetching()
    made.give("trainer", core.TransferProgressed("result", (1, 0)))
    made.give("trainer", core.TransferEnded("result", (1, 0), core.TransferOutcome.COMPLETE))

    assert made.where("trainer", "publication", 1) == "accepted"
    assert made.said("trainer", m.ResultSourceSettled) == []
