"""The reference's checklist, where it is about getting a session: HELLO, READY, OPEN, the process, and what comes too late."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready, session
from troth.spec import core
from troth.spec import messages as m


def launching() -> Session:
    """A host whose trainer's process runs."""
    made = session()
    made.order(m.StartSession(launch=1))
    made.give("host", core.ProcessStarted())
    return made


def hello(made: Session, *, claim: m.Claim = m.Claim.MATCHING, epoch: int = 0) -> core.Step:
    """A HELLO, by hand."""
    return made.give("host", core.Received("control", m.Hello(epoch=epoch, claim=claim)))


def test_a_wrong_rank_is_refused_and_the_right_one_still_accepted() -> None:
    """K46: rank 1 is told that another may come; rank 0 then has the session."""
    made = launching()
    hello(made, claim=m.Claim.WRONG_RANK)

    assert made.said("host", m.HelloRejected) == [m.HelloRejected(epoch=0, retry=True)]
    assert made.where("host", "session") == "launching"
    hello(made)

    assert made.said("host", m.HelloAccepted) == [m.HelloAccepted(epoch=1)]


def test_a_wrong_identity_fails_the_launch_and_stops_the_process() -> None:
    """K46: it proved the launch's token but is not what was launched, so no other will come."""
    made = launching()
    hello(made, claim=m.Claim.WRONG_IDENTITY)

    assert made.said("host", m.HelloRejected) == [m.HelloRejected(epoch=0, retry=False)]
    assert made.process["host"] == "term"
    made.give("host", core.ProcessExited())

    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.REFUSED]


def test_a_hello_said_twice_is_answered_twice_with_one_epoch() -> None:
    """K46: duplicate HELLO, same session."""
    made = launching()
    hello(made)
    hello(made)

    assert made.said("host", m.HelloAccepted) == [m.HelloAccepted(epoch=1)] * 2
    assert made.where("host", "session") == "greeted"


@pytest.mark.parametrize("stage", ["idle", "closed"])
def test_a_hello_without_a_launch_is_refused_and_changes_nothing(stage: str) -> None:
    """K46: before the launch and after the end."""
    made = session()
    if stage == "closed":
        made.order(m.CloseSession(launch=1))
    before = made.snapshot()
    hello(made)

    assert made.said("host", m.HelloRejected) == [m.HelloRejected(epoch=0, retry=False)]
    assert made.snapshot() == before


def test_no_trainer_within_the_bound_kills_the_launch() -> None:
    """K46: no HELLO in time."""
    made = launching()
    made.fire("host", "session")

    assert made.process["host"] == "term"
    made.fire("host", "process")

    assert made.process["host"] == "kill"
    made.give("host", core.ProcessExited())

    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.TIMEOUT]
    assert {where for where in made.armed if where[0] == "host"} == set()


def test_an_early_exit_fails_the_launch_at_once() -> None:
    """K46: nobody waits for a process that is gone."""
    made = launching()
    made.give("host", core.ProcessExited())

    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.LOST]
    assert {where for where in made.armed if where[0] == "host"} == set()


def test_no_task_is_released_before_the_trainer_is_ready() -> None:
    """K47: greeted is not ready."""
    made = launching()
    hello(made)
    made.execute()

    assert made.said("host", m.TaskReady) == []
    assert made.to_supervisor(m.SessionStarted) == []


def test_credentials_that_did_not_arrive_end_the_launch() -> None:
    """K47, K23: SESSION_READY without the proof."""
    made = launching()
    hello(made)
    made.give("host", core.Received("control", m.SessionReady(epoch=1, proven=False)))

    assert made.said("host", m.SessionConfirmed) == []
    assert made.where("host", "session") == "closing"
    assert made.process["host"] == "term"


def test_ready_said_twice_is_confirmed_twice() -> None:
    """K47: the confirmation was lost; the trainer asks again, and the supervisor hears of one start."""
    made = launching()
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)
    made.deliver(TO_HOST)
    made.lose(TO_TRAINER)
    made.fire("trainer", "hello")
    made.run()

    assert made.outcomes("trainer", "init") == ["ok"]
    assert len(made.to_supervisor(m.SessionStarted)) == 1


def test_a_refused_hello_fails_init_and_leaves_nothing_behind() -> None:
    """K22: init() raises, the link is closed, no timer runs, and init() may be tried again."""
    made = session()
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.give("trainer", core.Received("control", m.HelloRejected(epoch=0, retry=False)))

    assert made.outcomes("trainer", "init") == ["refused"]
    assert made.links["trainer", "control"] is False
    assert made.armed == {}
    made.call("trainer", "init", 2, m.InitArguments(control_rank=True))

    assert made.where("trainer", "session") == "joining"


def test_the_deadline_bounds_the_retries_of_a_hello() -> None:
    """K21, K22: HELLO is repeated until the deadline, then init() returns."""
    made = session()
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.fire("trainer", "hello")
    made.fire("trainer", "join")

    assert len(made.said("trainer", m.Hello)) == 2
    assert made.outcomes("trainer", "init") == ["timeout"]
    assert made.armed == {}


def test_a_passive_rank_is_silent_and_its_calls_say_so() -> None:
    """K25: no link, init again returns the same, receive and send return."""
    made = session()
    made.call("trainer", "init", 1, m.InitArguments(control_rank=False))
    made.call("trainer", "init", 2, m.InitArguments(control_rank=True))
    made.call("trainer", "receive", 3)
    made.send(4)

    assert made.outcomes("trainer", "init") == ["passive", "passive"]
    assert (made.outcomes("trainer", "receive"), made.outcomes("trainer", "send")) == (["passive"], ["passive"])
    assert (made.links, made.sent) == ({}, [])


def test_a_repeated_init_finds_the_session() -> None:
    """K25: nothing is begun twice."""
    made = ready()
    before = made.snapshot()
    made.call("trainer", "init", 2, m.InitArguments(control_rank=True))

    assert made.outcomes("trainer", "init") == ["ok", "ok"]
    assert made.snapshot() == before


def test_an_open_said_twice_is_accepted_twice() -> None:
    """K5: the binding is unchanged."""
    made = ready(launched=False)
    before = made.cores["trainer"].data("session")
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=1, instance=0, resume=False)))

    assert made.said("trainer", m.SessionAccepted) == [m.SessionAccepted(epoch=1)] * 2
    assert made.cores["trainer"].data("session") == before


def test_an_open_is_repeated_until_it_is_answered() -> None:
    """K60: the first ones are lost."""
    made = session(launched=False)
    made.order(m.StartSession(launch=1))
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.give("host", core.LinkUp("control"))
    made.lose(TO_TRAINER)
    made.fire("host", "again")
    made.run()

    assert made.outcomes("trainer", "init") == ["ok"]
    assert made.where("host", "session") == "ready"


def test_nobody_attaches_in_time() -> None:
    """K60: the host's attach timeout ends the launch, and nothing is signalled."""
    made = session(launched=False)
    made.order(m.StartSession(launch=1))
    made.fire("host", "session")

    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.TIMEOUT]
    assert made.process == {}
    assert made.armed == {}


STALE = [
    m.TaskReady(epoch=7, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=True),
    m.CancelTask(epoch=7, seq=1),
    m.ResultAccepted(epoch=7, seq=1, attempt=1),
    m.ResultRejected(epoch=7, seq=1, reason=m.RejectReason.STALE),
    m.Heartbeat(epoch=7),
    m.Shutdown(epoch=7),
    m.Abort(epoch=7),
]


@pytest.mark.parametrize("message", STALE, ids=lambda message: type(message).__name__)
def test_another_sessions_message_changes_nothing_at_the_trainer(message: core.Message) -> None:
    """K41: and it re-arms no lease."""
    made = ready()
    made.working()
    made.send(3)
    before = made.snapshot()
    step = made.give("trainer", core.Received("control", message))

    assert (step.effects, step.refusal, made.snapshot()) == ((), None, before)


@pytest.mark.parametrize("stage", ["new", "joining"])
def test_a_task_before_the_session_is_not_taken(stage: str) -> None:
    """K41: the host will say it again."""
    made = session()
    if stage == "joining":
        made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    before = made.snapshot()
    message = m.TaskReady(epoch=1, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=True)
    made.give("trainer", core.Received("control", message))

    assert made.snapshot() == before


@pytest.mark.parametrize("ending", [m.Abort(epoch=1), m.Shutdown(epoch=1)], ids=["aborted", "stopped"])
def test_a_task_after_the_end_is_not_taken(ending: core.Message) -> None:
    """K41: TASK_FAILED from an aborted session, nothing from a closed one; no task is reserved."""
    made = ready()
    made.give("trainer", core.Received("control", ending))
    message = m.TaskReady(epoch=1, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=True)
    made.give("trainer", core.Received("control", message))

    assert made.cores["trainer"].members("ledger") == ()
    assert [said.reason for said in made.said("trainer", m.TaskFailed)] in ([m.FailReason.ENDED], [])
