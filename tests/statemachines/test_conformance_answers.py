"""What is said again is answered again; what comes too early, too late, or breaks on the way has an answer too."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready, session
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import MAX_EPOCH, Limits

TERM = core.SignalProcess(core.ProcessSignal.TERM)


def hear(made: Session, name: str, message: core.Message, link: str = "control") -> core.Step:
    """A message, by hand."""
    return made.give(name, core.Received(link, message))


def offer(seq: int = 1, *, content: int = 0, attempt: int = 1) -> m.TaskReady:
    """TASK_READY, by hand."""
    return m.TaskReady(epoch=1, seq=seq, attempt=attempt, floor=1, content=content, receivers=1, inline=True)


def binding() -> Session:
    """The trainer was accepted and has said READY; the host has not heard it."""
    made = session()
    made.order(m.StartSession(launch=1))
    made.give("host", core.ProcessStarted())
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)
    made.lose(TO_HOST)

    assert made.where("trainer", "session") == "binding"
    return made


def aborting(*, launched: bool = True) -> Session:
    """ABORT was sent and lost."""
    made = ready(launched=launched)
    made.order(m.AbortSession(launch=1))
    made.lose(TO_TRAINER)
    return made


def verdicts(made: Session) -> list[str]:
    """What the supervisor was told of the end."""
    return [said.verdict.value for said in made.to_supervisor(m.SessionEnded)]


# -- the handshake -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["accepted again", "link lost"])
def test_a_handshake_that_broke_off_goes_on(how: str) -> None:
    """K22: READY is said again, whatever of the first was lost; a new link begins with the epoch that is known."""
    made = binding()
    if how == "accepted again":
        hear(made, "trainer", m.HelloAccepted(epoch=1))
    else:
        made.give("trainer", core.LinkUp("control"))
        assert made.said("trainer", m.Hello)[-1].epoch == 1
    made.run()

    assert made.outcomes("trainer", "init") == ["ok"]
    assert made.where("host", "session") == "ready"


@pytest.mark.parametrize(("order", "outcome"), [(m.Shutdown(epoch=1), "stopped"), (m.Abort(epoch=1), "aborted")])
def test_an_end_in_the_middle_of_a_handshake_fails_init(order: core.Message, outcome: str) -> None:
    """K24: nothing was begun, so nothing is left."""
    made = binding()
    hear(made, "trainer", order)

    assert made.outcomes("trainer", "init") == [outcome]
    assert made.links["trainer", "control"] is False
    assert made.timers("trainer") == set()


@pytest.mark.parametrize("greeted", [True, False])
def test_a_hello_that_wants_back_into_another_session_is_refused(greeted: bool) -> None:
    """K46: the launch goes on, for its own trainer."""
    made = session()
    made.order(m.StartSession(launch=1))
    if greeted:
        hear(made, "host", m.Hello(epoch=0, claim=m.Claim.MATCHING))
    before = made.where("host", "session")
    hear(made, "host", m.Hello(epoch=5, claim=m.Claim.MATCHING))

    assert made.said("host", m.HelloRejected) == [m.HelloRejected(epoch=5, retry=False)]
    assert made.where("host", "session") == before


@pytest.mark.parametrize(
    "answer",
    [m.SessionRejected(opened=1, epoch=3, retry=False), m.SessionRejected(opened=1, epoch=MAX_EPOCH, retry=True)],
    ids=["ending", "no epoch above"],
)
def test_an_open_that_cannot_succeed_ends_the_launch(answer: m.SessionRejected) -> None:
    """D4, K62: the trainer says that trying again does not help, or there is no number left to try."""
    made = session(launched=False)
    made.order(m.StartSession(launch=1))
    hear(made, "host", answer)

    assert verdicts(made) == ["refused"]
    assert made.timers("host") == set()


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_one_sequence_is_one_task() -> None:
    """K10: another content under a number that is taken, or was, is a mismatch, and changes nothing."""
    made = ready()
    hear(made, "trainer", offer(content=1))
    assert made.cores["trainer"].members("ledger") == ()
    hear(made, "trainer", offer())
    hear(made, "trainer", offer(content=1))

    assert [said.reason for said in made.said("trainer", m.TaskFailed)] == [m.FailReason.MISMATCH] * 2
    assert made.where("trainer", "ledger", 1) == "reserved"


def test_an_offer_of_a_task_that_was_cancelled_is_told_so() -> None:
    """R19, K61: for good, and for this offer."""
    made = ready()
    hear(made, "trainer", m.CancelTask(epoch=1, seq=1))
    hear(made, "trainer", offer(seq=2))
    hear(made, "trainer", m.CancelTask(epoch=1, seq=2))
    hear(made, "trainer", offer(seq=2, attempt=3))

    assert made.said("trainer", m.TaskFailed)[-1] == m.TaskFailed(epoch=1, seq=2, attempt=3, reason=m.FailReason.CANCELLED)


def test_a_payload_that_is_coming_in_is_dropped_when_the_session_stops() -> None:
    """K41: SHUTDOWN, while a result keeps the session; what was not queued yet is not begun."""
    made = ready()
    made.working()
    made.send(3)
    made.lose(TO_HOST)
    hear(made, "trainer", offer(seq=2))
    hear(made, "trainer", m.Shutdown(epoch=1))

    assert made.said("trainer", m.DropPayload) == [m.DropPayload(epoch=1, seq=2, lost=False)]
    assert made.where("trainer", "ledger", 2) == "cancelled"


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("lost", ["offer", "payload"])
def test_a_task_is_offered_as_often_as_its_limit_says(inline: bool, lost: str) -> None:
    """K61, D11: whether the offers or their payloads do not arrive; then it is given up, and the trainer is told."""
    made = ready(limits=Limits(task_attempts=3))
    made.execute(inline=inline)
    for attempt in (1, 2, 3):
        if lost == "offer":
            made.lose(TO_TRAINER)
            made.fire("host", "task")
            made.lose(TO_TRAINER)
            hear(made, "host", m.TaskUnknown(epoch=1, seq=1))
        else:
            hear(made, "host", m.TaskFailed(epoch=1, seq=1, attempt=attempt, reason=m.FailReason.PAYLOAD))

    assert [said.attempt for said in made.said("host", m.TaskReady)] == [1, 2, 3]
    assert made.ended == ["undelivered"]
    assert made.said("host", m.CancelTask) == [m.CancelTask(epoch=1, seq=1)]
    assert [where for where in made.offers if where[0] == "host"] == []


# -- results -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("became", "outcome"), [("undelivered", "undelivered"), ("rejected", "rejected"), ("cancelled", "cancelled"), ("aborted", "aborted")]
)
def test_a_result_that_is_sent_again_is_told_what_became_of_it(became: str, outcome: str) -> None:
    """D10, K15: the same outcome as the first time, and nothing is sent."""
    made = ready()
    made.working()
    made.send(3, inline=False)
    made.lose(TO_HOST)
    if became == "undelivered":
        hear(made, "trainer", m.ResultAccepted(epoch=1, seq=1, attempt=1))
        hear(made, "trainer", m.PayloadAbandoned(epoch=1, seq=1, receiver=0), "data")
        hear(made, "trainer", m.ResultSourceReleased(epoch=1, seq=1))
    elif became == "rejected":
        hear(made, "trainer", m.ResultRejected(epoch=1, seq=1, reason=m.RejectReason.EXHAUSTED))
    elif became == "cancelled":
        hear(made, "trainer", m.CancelTask(epoch=1, seq=1))
    else:
        hear(made, "trainer", m.Abort(epoch=1))
    sent = list(made.sent)
    made.send(4, inline=False)

    assert made.outcomes("trainer", "send") == [outcome, outcome]
    assert made.sent == sent


@pytest.mark.parametrize("delivered", [True, False])
@pytest.mark.parametrize("end", ["aborted", "superseded"])
def test_a_result_whose_receivers_are_done_is_told_as_it_is_when_the_session_goes(end: str, delivered: bool) -> None:
    """R7: the host has accepted it and its receivers are done; that its note did not come changes neither."""
    made = ready(launched=False)
    made.working()
    made.send(3, inline=False)
    made.lose(TO_HOST)
    hear(made, "trainer", m.ResultAccepted(epoch=1, seq=1, attempt=1))
    done = m.PayloadHeld(epoch=1, seq=1, receiver=0) if delivered else m.PayloadAbandoned(epoch=1, seq=1, receiver=0)
    hear(made, "trainer", done, "data")
    assert made.where("trainer", "publication", 1) == "settling"
    hear(made, "trainer", m.Abort(epoch=1) if end == "aborted" else m.SessionOpen(epoch=2, instance=0, resume=False))

    assert made.outcomes("trainer", "send") == ["accepted" if delivered else "undelivered"]
    assert "result" not in made.timers("trainer")


def test_holding_that_is_said_again_is_answered_again() -> None:
    """D18: while the result is settled, and after it was forgotten."""
    made = ready()
    made.working(receivers=2)
    made.send(3, inline=False)
    made.lose(TO_HOST)
    held = m.PayloadHeld(epoch=1, seq=1, receiver=1)
    for _ in range(2):
        hear(made, "trainer", held, "data")
    hear(made, "trainer", m.CancelTask(epoch=1, seq=1))
    hear(made, "trainer", held, "data")

    assert made.said("trainer", m.PayloadReleased) == [m.PayloadReleased(epoch=1, seq=1, receiver=1)] * 3


def test_a_source_that_cannot_be_offered_fails_its_transfer_only() -> None:
    """Rule 5 of the core interface: the result is accepted, one receiver does not get it, and that is what is said."""
    made = ready()
    made.working(receivers=2)
    made.send(3, inline=False)
    made.give("trainer", core.EffectFailed(core.Offer("result", (1, 1))))
    assert made.said("trainer", m.PayloadGone) == [m.PayloadGone(epoch=1, seq=1, receiver=1)]
    made.run()

    assert made.outcomes("trainer", "send") == ["undelivered"]


@pytest.mark.parametrize("kind", ["result", "question"])
def test_a_result_of_no_known_task_is_stale(kind: str) -> None:
    """K53: of one that was never given, or was forgotten."""
    made = ready()
    message = (
        m.ResultReady(epoch=1, seq=9, attempt=1, content=0, inline=True)
        if kind == "result"
        else m.ResultStatus(epoch=1, seq=9, attempt=1, last=False)
    )
    hear(made, "host", message)

    assert made.said("host", m.ResultRejected) == [m.ResultRejected(epoch=1, seq=9, reason=m.RejectReason.STALE)]


def test_another_content_for_a_result_that_was_taken_is_a_conflict() -> None:
    """K53, D10: at the host; what was taken stays."""
    made = ready()
    made.working()
    made.send(3)
    made.deliver(TO_HOST)
    hear(made, "host", m.ResultReady(epoch=1, seq=1, attempt=2, content=1, inline=True))

    assert made.said("host", m.ResultRejected) == [m.ResultRejected(epoch=1, seq=1, reason=m.RejectReason.CONFLICT)]
    assert made.where("host", "acceptance", 1) == "safe"


# -- ends --------------------------------------------------------------------------------------------------------------


def test_a_trainer_that_comes_back_while_it_is_being_aborted_is_told_at_once() -> None:
    """D12: it has not heard yet; another session's HELLO is refused."""
    made = aborting()
    hear(made, "host", m.Hello(epoch=1, claim=m.Claim.MATCHING))
    assert made.said("host", m.Abort) == [m.Abort(epoch=1)] * 2
    hear(made, "host", m.Hello(epoch=0, claim=m.Claim.MATCHING))

    assert made.said("host", m.HelloRejected) == [m.HelloRejected(epoch=0, retry=False)]
    attached = aborting(launched=False)
    attached.give("host", core.LinkUp("control"))
    assert attached.said("host", m.Abort) == [m.Abort(epoch=1)] * 2


@pytest.mark.parametrize("timer", ["session", "lease"])
def test_an_abort_that_is_not_answered_ends_all_the_same(timer: str) -> None:
    """D12, K56: after its limit, or when the trainer is as good as gone."""
    made = aborting(launched=False)
    while timer in made.timers("host"):
        made.fire("host", timer)

    assert verdicts(made) == ["aborted"]
    assert made.timers("host") == set()


def test_an_abort_before_anything_was_begun_is_the_end() -> None:
    """K52."""
    made = session()
    made.order(m.AbortSession(launch=1))

    assert verdicts(made) == ["aborted"]
    assert made.links == {}


def test_a_script_that_ends_while_its_session_is_closed_is_closed_in_order() -> None:
    """K56: it was asked to end, and did; that it said nothing more is no loss and no other verdict."""
    made = ready()
    made.order(m.CloseSession(launch=1))
    made.lose(TO_TRAINER)
    made.give("host", core.ProcessExited(0, True))

    assert verdicts(made) == ["stopped"]


def test_an_abort_after_a_trainer_closed_by_itself_hurries_the_end_and_keeps_the_verdict() -> None:
    """P11, R24."""
    made = ready()
    made.call("trainer", "shutdown", 9)
    made.run()
    assert made.where("host", "process") == "leaving"
    step = made.order(m.AbortSession(launch=1))
    made.give("host", core.ProcessExited())

    assert TERM in step.effects
    assert verdicts(made) == ["ended"], "it had closed by itself before"


@pytest.mark.parametrize("given_up", [True, False])
@pytest.mark.parametrize("event", [core.ProcessExited(), core.EffectFailed(core.Spawn())], ids=["exited", "not started"])
def test_a_process_that_was_never_heard_to_run_may_end(event: core.Event, given_up: bool) -> None:
    """K46, R26: nothing is left of it, given up or not."""
    made = session()
    made.order(m.StartSession(launch=1))
    if given_up:
        made.order(m.AbortSession(launch=1))
    made.give("host", event)

    assert verdicts(made) == ["aborted" if given_up else "lost"]
    assert made.timers("host") == set()


def test_a_process_that_was_asked_to_go_before_it_ran_is_asked_again() -> None:
    """R26: the TERM may have come before there was anybody to hear it."""
    made = session()
    made.order(m.StartSession(launch=1))
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.run()
    made.call("trainer", "shutdown", 9)
    made.run()
    assert TERM in made.fire("host", "process").effects

    assert TERM in made.give("host", core.ProcessStarted()).effects
    assert made.where("host", "process") == "terminating"


def test_an_order_that_comes_over_the_trainers_link_is_refused() -> None:
    """Only its supervisor may order a host about: the same message over another link has no route, and changes nothing."""
    made = ready()
    before = made.snapshot()
    step = made.give("host", core.Received("control", m.AbortSession(launch=1)))

    assert step.refusal is not None
    assert step.refusal.kind is core.RefusalKind.VIOLATION
    assert (step.effects, made.snapshot()) == ((), before)
