"""Payloads: what is lost, stalled, offered again or said twice, on either side of a transfer."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import DATA_TO_RECEIVER, DATA_TO_TRAINER, TO_HOST, TO_TRAINER, Session, ready
from troth.spec import core
from troth.spec import messages as m
from troth.spec.core import TransferOutcome
from troth.spec.limits import Limits
from troth.statemachines import Receiver, ReceiverConfig

SOURCE = ("trainer", "source", (1, 0))


def fetching(*, receivers: int = 1, one_shot: bool = False) -> Session:
    """A large result was accepted, and the host's receiver is fetching it: bytes have moved on both sides."""
    made = ready(one_shot=one_shot)
    made.working(receivers=receivers)
    made.send(3, inline=False)
    made.settle()
    made.give("trainer", core.TransferProgressed("result", (1, 0)))
    made.give("result receiver", core.TransferProgressed("payload", (1, 0)))
    return made


def fail(made: Session) -> None:
    """The transfer that is under way fails."""
    made.finish(next(iter(made.pulls)), TransferOutcome.FAILED)


def test_a_task_whose_payload_was_lost_is_offered_again_with_its_payload() -> None:
    """The receiver gave up for good; the next offer has a source again, and a receiver that begins anew."""
    made = ready()
    made.execute(inline=False)
    made.settle()
    for _ in range(made.limits.pull_attempts - 1):
        fail(made)
        made.fire("task receiver", "stall")
    fail(made)
    made.settle()

    assert [said.reason for said in made.said("trainer", m.TaskFailed)] == [m.FailReason.PAYLOAD]
    assert [said.attempt for said in made.said("host", m.TaskReady)] == [1, 2]
    assert ("host", "task", (1, 0)) in made.offers
    made.run()
    made.take(2)

    assert made.offers == {}


def test_a_receiver_pauses_between_two_tries() -> None:
    """A peer that refuses at once is not asked again at once."""
    made = fetching()
    fail(made)

    assert made.pulls == {}
    assert made.armed["result receiver", "stall", None][1] == "pull_pause_s"
    made.fire("result receiver", "stall")

    assert list(made.pulls) == [("result receiver", "payload", (1, 0))]


def test_a_stall_is_survived() -> None:
    """Both sides see the same silence at the same moment; the receiver comes back, and the source is still there."""
    made = fetching()
    made.fire("trainer", "source", (1, 0))

    assert made.where(*SOURCE) == "offered"
    made.fire("result receiver", "stall")
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.to_supervisor(m.ResultLost) == []


def test_a_payload_that_was_served_and_is_held_survives_two_lost_confirmations() -> None:
    """PAYLOAD_HELD is lost twice, while the source, which has served all bytes, waits; the third one settles."""
    made = fetching()
    made.finish(next(iter(made.pulls)))
    made.give("trainer", core.TransferEnded("result", (1, 0), TransferOutcome.COMPLETE))
    made.lose(DATA_TO_TRAINER)
    made.fire("result receiver", "stall")
    made.lose(DATA_TO_TRAINER)

    assert made.where(*SOURCE) == "offered"
    assert made.armed["trainer", "source", (1, 0)][1] == "source_idle_s"
    made.fire("result receiver", "stall")
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]


def test_a_receiver_that_was_given_up_and_comes_after_all_counts() -> None:
    """Receiver 0 is given up while receiver 1 is fetching; then it says that it holds the payload, so nothing was lost."""
    made = fetching(receivers=2)
    made.finish(next(iter(made.pulls)))
    made.lose(DATA_TO_TRAINER)
    made.fire("trainer", "source", (1, 0))
    made.fire("trainer", "source", (1, 0))

    assert made.where(*SOURCE) == "failed"
    made.lose(DATA_TO_RECEIVER)
    made.fire("result receiver", "stall")
    made.settle()
    made.give("trainer", core.Received("data", m.PayloadHeld(epoch=1, seq=1, receiver=1)))
    made.lose(DATA_TO_RECEIVER)
    made.run()

    assert [said.delivered for said in made.said("trainer", m.ResultSourceSettled)] == [True]
    assert made.outcomes("trainer", "send") == ["accepted"]


def test_holding_is_said_a_limited_number_of_times() -> None:
    """The source is gone for ever; what is held is held, and nobody is told for ever."""
    made = Receiver(ReceiverConfig())
    made.handle(core.Received("party", m.FetchPayload(epoch=1, seq=1, inline=False)))
    steps = [made.handle(core.TransferEnded("payload", (1, 0), TransferOutcome.COMPLETE))]
    while made.armed:
        generation = made.armed["stall", None]
        steps.append(made.handle(core.TimerFired("stall", None, generation)))

    held = [e for step in steps for e in step.effects if isinstance(e, core.Send) and isinstance(e.message, m.PayloadHeld)]
    assert len(held) == made.config.limits.pull_attempts
    assert made.state("download").value == "done"


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "offered"])
def test_send_returns_only_when_the_host_has_noted(inline: bool) -> None:
    """A script that ends after send() has lost nothing: acceptance alone, or the settlement alone, is not enough."""
    made = ready()
    made.working()
    made.send(3, inline=inline)
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)
    if not inline:
        made.finish(next(iter(made.pulls)))
        made.deliver(DATA_TO_TRAINER)

    assert made.where("trainer", "publication", 1) == "settling"
    assert made.outcomes("trainer", "send") == []
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)

    assert made.outcomes("trainer", "send") == ["accepted"]
    made.give("host", core.ProcessExited(0, True))

    assert made.to_supervisor(m.ResultLost) == []
    assert made.ended == ["result"]


def test_a_result_that_is_here_outlives_its_trainer() -> None:
    """The host was its only receiver and holds it; the trainer dies before its settlement was noted: nothing is lost."""
    made = fetching()
    made.finish(next(iter(made.pulls)))
    made.give("host", core.ProcessExited(0, False))

    assert made.ended == ["result"]
    assert made.to_supervisor(m.ResultLost) == []


def test_a_one_shot_trainer_closes_only_after_its_result_is_here() -> None:
    """SESSION_CLOSED cannot overtake PAYLOAD_ARRIVED: the one waits for the host's note, and the other is never on the way."""
    made = fetching(one_shot=True)
    made.run()

    assert made.ended == ["result"]
    assert made.where("trainer", "session") == "closed"
    assert made.to_supervisor(m.ResultLost) == []


def test_another_receivers_arrival_does_not_end_the_hosts_own_fetch() -> None:
    """The host waits for its own receiver, number 0."""
    made = fetching(receivers=2)
    made.give("host", core.Received("receivers", m.PayloadArrived(epoch=1, seq=1, receiver=1)))

    assert made.ended == []
    made.run()

    assert made.ended == ["result"]


def test_an_accepted_result_is_never_reported_as_rejected_for_want_of_memory() -> None:
    """The host remembers one result, which its trainer does not know to be accepted yet: the next task waits, not the truth."""
    made = ready(limits=Limits(acceptance_limit=1))
    made.working()
    made.send(3)
    made.deliver(TO_HOST)
    made.lose(TO_TRAINER)
    made.execute()

    assert made.ended == ["result", "refused"]
    made.fire("trainer", "result", 1)
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    made.working(4)

    assert made.where("host", "acceptance", 1) == "absent", "known to both, so it may be forgotten"


@pytest.mark.parametrize("effect", [core.Pull("payload", (1, 0)), core.Send("data", m.PayloadHeld(epoch=1, seq=1, receiver=0))])
def test_an_effect_that_failed_at_a_receiver_has_a_row(effect: core.Effect) -> None:
    """Rule 5 of the core interface: neither is refused, and the download is tried again or said again."""
    made = Receiver(ReceiverConfig())
    made.handle(core.Received("party", m.FetchPayload(epoch=1, seq=1, inline=False)))
    step = made.handle(core.EffectFailed(effect))

    assert step.refusal is None
    assert made.armed, "something will try again"


@pytest.mark.parametrize("said", [m.PayloadGone(epoch=7, seq=1, receiver=0), m.PayloadGone(epoch=1, seq=1, receiver=5)])
def test_a_payload_that_is_gone_for_another_is_not_gone_for_this_receiver(said: m.PayloadGone) -> None:
    """Another epoch's, or another receiver's."""
    made = Receiver(ReceiverConfig())
    made.handle(core.Received("party", m.FetchPayload(epoch=1, seq=1, inline=False)))
    made.handle(core.Received("data", said))

    assert made.state("download").value == "pulling"


def test_a_result_may_have_as_many_receivers_as_the_limit_says() -> None:
    """MAX_RECEIVERS are served in one step."""
    made = ready()
    made.working(receivers=64)
    made.send(3, inline=False)

    assert len(made.offers) == 64


def test_a_session_may_have_as_many_tasks_as_it_remembers() -> None:
    """A step that concerns every remembered task is still one step: a new offer, ABORT, SHUTDOWN, the end of the process."""
    made = ready(limits=Limits(ledger_limit=80, acceptance_limit=80))
    for task in range(1, 90):
        made.working(2 * task)
        made.send(2 * task + 1)
        made.run()
    made.order(m.AbortSession(launch=1))
    made.run()
    made.give("host", core.ProcessExited())

    assert made.where("host", "session") == "closed"
