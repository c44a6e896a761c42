"""A party that was started anew is not the one it was: what it had is lost, once and aloud, and nothing is run twice."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready, session
from troth.spec import core
from troth.spec import messages as m


@pytest.mark.parametrize("heard", [True, False], ids=["the host knows of the task's acceptance", "it does not"])
def test_a_trainer_that_was_started_anew_does_not_run_the_task_again(heard: bool) -> None:
    """P04: the epoch is the same, the process is not; the task that the old one took is lost with it."""
    made = ready(launched=False)
    made.execute()
    if heard:
        made.run()
    else:
        made.deliver(TO_TRAINER)
        made.finish(next(iter(made.pulls)))
        made.lose(TO_HOST)
    made.take(2)
    made.give("host", core.LinkLost("control"))
    made.trainer_anew()

    assert made.ended == ["trainer lost"]
    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.LOST]
    assert made.cores["trainer"].members("ledger") == ()
    assert made.timers("host") == set()
    assert made.where("trainer", "session") == "joining", "it waits for a session of its own"


def test_a_trainer_that_was_started_anew_can_be_opened_anew() -> None:
    """The host's next session finds it, at the same epoch."""
    made = ready(launched=False)
    made.give("host", core.LinkLost("control"))
    made.trainer_anew()
    made.host_anew()

    assert made.outcomes("trainer", "init") == ["ok", "ok"]
    made.working()
    made.send(3)
    made.run()

    assert made.ended == ["result"]
    assert made.refusals == []


def test_a_host_that_was_started_anew_supersedes_the_session_that_it_had() -> None:
    """It counts its epochs anew, so its first open meets an equal epoch: told so, it opens above, and its tasks are new ones."""
    made = ready(launched=False)
    made.working()
    made.send(3)
    made.run()
    made.host_anew()

    assert [said.epoch for said in made.said("trainer", m.SessionAccepted)] == [1, 2]
    assert made.cores["trainer"].members("ledger") == ()
    made.working(4)
    made.send(5)
    made.run()

    assert made.ended == ["result", "result"]
    assert made.outcomes("trainer", "send") == ["accepted", "accepted"]
    assert made.refusals == []


def test_the_same_host_resumes_the_session_that_it_has() -> None:
    """The link was lost, nobody was started anew: nothing is superseded, and the result is taken."""
    made = ready(launched=False)
    made.working()
    made.send(3)
    made.give("trainer", core.LinkLost("control"))
    made.give("host", core.LinkLost("control"))
    made.lose(TO_HOST)
    made.redial()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert {said.epoch for said in made.said("trainer", m.SessionAccepted)} == {1}


def test_a_payload_of_the_session_before_queues_nothing_in_this_one() -> None:
    """PAYLOAD_ARRIVED for task 1 of epoch 1 is not task 1 of epoch 2."""
    made = ready(launched=False)
    made.execute()
    made.deliver(TO_TRAINER)
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=2, instance=1, resume=False)))
    made.lose(("task receiver", "party"))
    made.give(
        "trainer",
        core.Received("control", m.TaskReady(epoch=2, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=True)),
    )
    before = made.snapshot()
    made.give("trainer", core.Received("receivers", m.PayloadArrived(epoch=1, seq=1, receiver=0)))

    assert made.snapshot() == before
    assert made.where("trainer", "ledger", 1) == "reserved"


def unconfirmed() -> Session:
    """The host is ready, and its trainer, to which no confirmation came, has given up and calls init() again."""
    made = session()
    made.order(m.StartSession(launch=1))
    made.give("host", core.ProcessStarted())
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)
    made.deliver(TO_HOST)
    made.lose(TO_TRAINER)
    made.fire("trainer", "join")
    made.call("trainer", "init", 2, m.InitArguments(control_rank=True))
    return made


def test_an_init_that_is_tried_again_finds_a_session_to_which_nothing_was_given() -> None:
    """The host was ready first; as long as no task went out, nothing was lost."""
    made = unconfirmed()
    made.give("trainer", core.LinkUp("control"))
    made.run()

    assert made.outcomes("trainer", "init") == ["timeout", "ok"]
    assert len(made.to_supervisor(m.SessionStarted)) == 1
    made.working(3)
    made.send(4)
    made.run()

    assert made.ended == ["result"]


def test_an_init_that_is_tried_again_after_a_task_went_out_is_refused() -> None:
    """What was given to it is lost, and it must not look as if it were not."""
    made = unconfirmed()
    made.execute()
    made.lose(TO_TRAINER)
    made.give("trainer", core.LinkUp("control"))
    made.run()

    assert made.outcomes("trainer", "init") == ["timeout", "refused"]
    made.give("host", core.ProcessExited())

    assert made.ended == ["trainer lost"]


def test_a_refusal_of_an_earlier_open_is_not_one_of_this() -> None:
    """SESSION_OPEN was repeated and refused twice; the second refusal is of an epoch that the host has left behind."""
    made = session(launched=False)
    made.order(m.StartSession(launch=1))
    made.give("host", core.LinkUp("control"))
    refusal = m.SessionRejected(opened=1, epoch=4, retry=True)
    made.give("host", core.Received("control", refusal))
    made.give("host", core.Received("control", refusal))
    made.give("host", core.Received("control", m.SessionRejected(opened=1, epoch=4, retry=False)))

    assert [said.epoch for said in made.said("host", m.SessionOpen)] == [1, 5]
    assert made.where("host", "session") == "opening"


def test_the_user_of_a_superseded_session_is_told_so() -> None:
    """The task that the user holds has no number in the new session; its result has nowhere to go, and that is no misuse."""
    made = ready(launched=False)
    made.working()
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=2, instance=1, resume=False)))
    made.send(3)

    assert made.outcomes("trainer", "send") == ["superseded"]
    assert made.refusals == []


def test_a_handshake_of_this_session_is_life() -> None:
    """A peer that resumes is not silent: HELLO, SESSION_OPEN and SESSION_ACCEPTED re-arm the lease."""
    launched, attached = ready(), ready(launched=False)
    launched.fire("host", "lease")
    launched.give("host", core.Received("control", m.Hello(epoch=1, claim=m.Claim.MATCHING)))
    attached.fire("trainer", "lease")
    attached.give("trainer", core.Received("control", m.SessionOpen(epoch=1, instance=0, resume=True)))
    attached.fire("host", "lease")
    attached.give("host", core.Received("control", m.SessionAccepted(epoch=1)))

    assert launched.where("host", "lease") == "armed"
    assert (attached.where("trainer", "lease"), attached.where("host", "lease")) == ("armed", "armed")
