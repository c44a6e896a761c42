"""Ends and waits: who is told what, which verdict wins, and that no wait, process or session is left over."""

from __future__ import annotations

import pytest

from tests.statemachines.bench import Bench
from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready, session
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import Supervisor, SupervisorConfig

ARGUMENTS = m.ExecuteArguments(receivers=1, inline=True)
KILL = core.SignalProcess(core.ProcessSignal.KILL)
TERM = core.SignalProcess(core.ProcessSignal.TERM)


def launching() -> Session:
    """A process was asked for, and is not heard to run yet."""
    made = session()
    made.order(m.StartSession(launch=1))
    return made


def expired(made: Session, name: str) -> None:
    """Silence, suspicion, and patience to its end."""
    while (name, "lease", None) in made.armed:
        made.fire(name, "lease")


# -- what a call is told -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (core.Received("control", m.Abort(epoch=1)), "aborted"),
        (core.Received("control", m.Shutdown(epoch=1)), "stopped"),
        (core.Received("control", m.HelloRejected(epoch=1, retry=False)), "lost"),
        (core.OwnerLost(), "lost"),
        (core.Called("shutdown", 9), "stopped"),
    ],
    ids=["abort", "shutdown", "no such session", "owner lost", "leave"],
)
def test_a_receive_that_waits_is_told_how_the_session_ended(event: core.Event, outcome: str) -> None:
    """And a receive() that comes later is told the same."""
    made = ready()
    made.call("trainer", "receive", 2)
    made.give("trainer", event)
    made.call("trainer", "receive", 3)

    assert made.outcomes("trainer", "receive") == [outcome, outcome]


def test_the_task_that_the_user_holds_can_be_read_again() -> None:
    """receive() says that there is a task, and take() gives it: the same one, and nothing new was delivered."""
    made = ready()
    made.working()
    made.take(3)

    taken = [effect.value for name, effect in made.resolved if effect.call == "take"]
    assert taken == [1, 1]
    made.send(4)
    made.call("trainer", "receive", 5)
    made.call("trainer", "take", 5)

    assert made.outcomes("trainer", "take")[-1] == "nothing", "what was sent is not run again"


@pytest.mark.parametrize("evicted", [True, False])
def test_a_result_of_a_task_that_the_host_gave_up_is_no_misuse(evicted: bool) -> None:
    """The user could not know; send() says cancelled, also where the ledger has forgotten the task since."""
    made = ready(limits=Limits(ledger_limit=1))
    made.working()
    made.order(m.StopTask(launch=1))
    made.run()
    if evicted:
        made.execute()
        made.run()
    made.send(3)

    assert made.outcomes("trainer", "send") == ["cancelled"]
    assert made.refusals == []


# -- cancels and offers ------------------------------------------------------------------------------------------------


def test_a_cancel_of_an_old_task_that_comes_twice_leaves_a_newer_ones_second_chance() -> None:
    """CANCEL_TASK(1) comes late; task 3, whose payload was lost, may still be offered again."""
    made = ready()
    offer = m.TaskReady(epoch=1, seq=3, attempt=1, floor=3, content=0, receivers=1, inline=True)
    made.give("trainer", core.Received("control", offer))
    made.give("trainer", core.Received("receivers", m.PayloadLost(epoch=1, seq=3, receiver=0)))
    made.give("trainer", core.Received("control", m.CancelTask(epoch=1, seq=1)))
    made.give("trainer", core.Received("control", offer))

    assert made.where("trainer", "ledger", 3) == "reserved"


def busy() -> Session:
    """The trainer's ledger is full of a result that a receiver is fetching; the next task is refused as BUSY."""
    made = ready(limits=Limits(ledger_limit=1))
    made.working(receivers=2)
    made.send(3, inline=False)
    made.run()
    made.execute()
    made.settle()

    assert [said.reason for said in made.said("trainer", m.TaskFailed)] == [m.FailReason.BUSY]
    return made


def test_a_busy_trainer_is_asked_later_and_then_has_the_task() -> None:
    """Nothing is offered at once; the same offer comes again after a while, and when there is room the task is taken."""
    made = busy()

    assert made.where("host", "delivery") == "deferred"
    assert made.timers("host") >= {"task", "budget"}
    assert len(made.said("host", m.TaskReady)) == 2
    made.give("trainer", core.Received("data", m.PayloadHeld(epoch=1, seq=1, receiver=1)))
    made.run()
    made.fire("host", "task")
    made.run()

    assert [(said.seq, said.attempt) for said in made.said("host", m.TaskReady)] == [(1, 1), (2, 1), (2, 1)]
    assert made.where("trainer", "ledger", 2) == "queued"


def test_a_busy_trainer_costs_no_attempts() -> None:
    """Only the budget says how long that may last."""
    made = busy()
    for _ in range(2 * made.limits.task_attempts):
        if "task" in made.timers("host"):
            made.fire("host", "task")
            made.settle()

    assert made.ended == ["result"]
    assert made.timers("host") >= {"task", "budget"}


# -- which verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("over", [True, False])
def test_a_loss_overrides_an_orderly_end_that_is_not_over(over: bool) -> None:
    """SHUTDOWN came while a result is out, then the owner is gone; once closed, the verdict stays."""
    made = ready()
    made.working()
    made.send(3)
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    if over:
        made.run()
    made.give("trainer", core.OwnerLost())

    assert made.cores["trainer"].data("session").verdict is (m.Verdict.STOPPED if over else m.Verdict.LOST)
    assert made.outcomes("trainer", "send") == (["accepted"] if over else ["lost"])


@pytest.mark.parametrize("how", ["lost", "aborted"])
def test_a_host_that_drains_and_is_cut_short_says_so(how: str) -> None:
    """The same on the host's side."""
    made = ready(launched=False)
    made.working()
    made.order(m.CloseSession(launch=1))
    if how == "lost":
        expired(made, "host")
    else:
        made.order(m.AbortSession(launch=1))
        made.run()

    assert [said.verdict.value for said in made.to_supervisor(m.SessionEnded)] == [how]
    assert made.ended == ["trainer lost" if how == "lost" else "aborted"]


def test_a_script_that_ends_while_a_cancelled_task_is_being_retracted_has_lost_nothing() -> None:
    """CANCEL_TASK is not answered yet, but whoever asked was told: no task is out."""
    made = ready()
    made.working()
    made.order(m.StopTask(launch=1))
    made.lose(TO_TRAINER)

    assert made.where("host", "delivery") == "cancelling"
    made.give("host", core.ProcessExited(0, True))

    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.ENDED]
    assert made.ended == ["cancelled"]


def test_a_trainer_whose_lease_expired_says_so() -> None:
    """If the host hears it, it need not wait for a lease of its own."""
    made = ready()
    made.working()
    expired(made, "trainer")
    made.run()

    assert made.said("trainer", m.SessionClosed) == [m.SessionClosed(epoch=1)]
    assert made.where("host", "session") == "closing"
    assert len(made.ended) == 1


@pytest.mark.parametrize("how", ["left", "expired", "owner lost"])
def test_an_aborted_trainer_hangs_up_in_the_end(how: str) -> None:
    """It stays to answer ABORT again, until the user leaves or nobody can ask any more; then nothing runs."""
    made = ready()
    made.give("trainer", core.Received("control", m.Abort(epoch=1)))

    assert made.links["trainer", "control"] is True
    if how == "left":
        made.call("trainer", "shutdown", 9)
    elif how == "expired":
        expired(made, "trainer")
    else:
        made.give("trainer", core.OwnerLost())

    assert made.links["trainer", "control"] is False
    assert made.timers("trainer") == set()
    assert made.cores["trainer"].data("session").verdict is m.Verdict.ABORTED


# -- the process -------------------------------------------------------------------------------------------------------


def test_a_process_that_was_given_up_before_it_ran_is_waited_for_a_limited_time() -> None:
    """Whether there is a process is not known, and the end says so."""
    made = launching()
    made.fire("host", "session")

    assert made.where("host", "process") == "doomed"
    made.fire("host", "process")

    assert made.to_supervisor(m.SessionEnded) == [m.SessionEnded(launch=1, verdict=m.Verdict.TIMEOUT, stuck=True)]
    assert made.timers("host") == set()


def test_a_process_that_was_given_up_and_then_runs_is_ended() -> None:
    """TERM, its grace, KILL."""
    made = launching()
    made.fire("host", "session")
    step = made.give("host", core.ProcessStarted())

    assert TERM in step.effects
    assert KILL in made.fire("host", "process").effects


def test_a_process_that_starts_after_its_guardian_died_is_killed() -> None:
    """The launch is lost, and what still comes of it is not left alone."""
    made = launching()
    made.give("host", core.OwnerLost())
    step = made.give("host", core.ProcessStarted())

    assert KILL in step.effects
    assert made.where("host", "session") == "closing"
    made.give("host", core.ProcessExited())

    assert made.to_supervisor(m.SessionEnded) == [m.SessionEnded(launch=1, verdict=m.Verdict.LOST, stuck=False)]


def test_a_process_that_starts_after_it_was_given_up_as_stuck_is_asked_first() -> None:
    """P16: TERM comes before KILL while there is a guardian."""
    made = launching()
    made.fire("host", "session")
    made.fire("host", "process")
    step = made.give("host", core.ProcessStarted())

    assert KILL not in step.effects


@pytest.mark.parametrize("working", [True, False], ids=["with a task", "idle"])
def test_the_death_of_a_guardian_fails_its_session(working: bool) -> None:
    """The process is killed, the task lost; and after that nothing is begun."""
    made = ready()
    if working:
        made.working()
    step = made.give("host", core.OwnerLost())
    made.execute()

    assert KILL in step.effects
    assert made.said("host", m.TaskReady)[1:] == []
    made.give("host", core.ProcessExited())

    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.LOST]
    assert made.ended == (["trainer lost"] * (2 if working else 1))


def test_a_trainer_that_closed_before_it_was_heard_to_run_may_leave_by_itself() -> None:
    """Its HELLO was faster than the guardian's report; its natural exit is not cut short."""
    made = launching()
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    made.run()
    made.call("trainer", "shutdown", 2)
    made.run()
    step = made.give("host", core.ProcessStarted())

    assert step.effects == ()
    assert made.where("host", "process") == "leaving"
    made.give("host", core.ProcessExited(0, True))

    assert made.to_supervisor(m.SessionEnded) == [m.SessionEnded(launch=1, verdict=m.Verdict.ENDED, stuck=False)]


def test_a_wrong_rank_after_the_right_one_is_told_to_be_patient() -> None:
    """It is one of ours, only not the one that speaks."""
    made = launching()
    made.give("host", core.Received("control", m.Hello(epoch=0, claim=m.Claim.MATCHING)))
    made.give("host", core.Received("control", m.Hello(epoch=0, claim=m.Claim.WRONG_RANK)))

    assert made.said("host", m.HelloRejected) == [m.HelloRejected(epoch=0, retry=True)]
    assert made.where("host", "session") == "greeted"


def test_an_init_that_is_tried_again_must_prove_its_credentials_again() -> None:
    """H51 lets a fresh HELLO in while nothing was given; its READY is judged like the first one."""
    made = ready()
    made.give("host", core.Received("control", m.Hello(epoch=0, claim=m.Claim.MATCHING)))
    made.lose(TO_TRAINER)
    made.give("host", core.Received("control", m.SessionReady(epoch=1, proven=False)))
    made.lose(TO_HOST)

    assert len(made.said("host", m.SessionConfirmed)) == 1


# -- the backend -------------------------------------------------------------------------------------------------------


def backend(*, persistent: bool) -> Bench:
    """A backend alone, started, with its first trainer ready where it has one for all tasks."""
    made = Bench({"backend": Supervisor(SupervisorConfig(persistent=persistent))}, {})
    made.call("backend", "start", 1)
    if persistent:
        made.give("backend", core.Received("hosts", m.SessionStarted(launch=1)))
    return made


def test_a_backend_whose_trainer_was_lost_is_not_started_again() -> None:
    """start() says so, instead of OK."""
    made = backend(persistent=True)
    made.give("backend", core.Received("hosts", m.SessionEnded(launch=1, verdict=m.Verdict.LOST, stuck=False)))
    made.call("backend", "start", 2)
    made.call("backend", "execute", 3, ARGUMENTS)

    assert made.outcomes("backend", "start") == ["ok", "lost"]
    assert made.outcomes("backend", "execute") == ["lost"]


def test_a_trainer_with_a_slow_receiver_is_not_closed_in_the_middle_of_a_run() -> None:
    """Launched for one task, it closes by itself; CLOSE, and with it the drain limit, comes only when the run ends."""
    made = backend(persistent=False)
    made.call("backend", "execute", 2, ARGUMENTS)
    made.give("backend", core.Received("hosts", m.SessionStarted(launch=1)))
    made.give("backend", core.Received("hosts", m.TaskEnded(launch=1, outcome=m.TaskOutcome.RESULT)))

    assert [message for _, message in made.sent if isinstance(message, m.CloseSession)] == []
    assert made.cores["backend"].observe()["retained"] == 1
    made.call("backend", "finalize", 3)

    assert [message for _, message in made.sent if isinstance(message, m.CloseSession)] == [m.CloseSession(launch=1)]


def test_a_trainer_without_a_result_is_closed_at_once() -> None:
    """There is nothing to keep it for."""
    made = backend(persistent=False)
    made.call("backend", "execute", 2, ARGUMENTS)
    made.give("backend", core.Received("hosts", m.SessionStarted(launch=1)))
    made.give("backend", core.Received("hosts", m.TaskEnded(launch=1, outcome=m.TaskOutcome.REFUSED)))

    assert [message for _, message in made.sent if isinstance(message, m.CloseSession)] == [m.CloseSession(launch=1)]
