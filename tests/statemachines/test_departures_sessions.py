"""Where Troth departs from the reference, about sessions: fences, cancellation, leases, endings and launches."""

from __future__ import annotations

import pytest

from tests.statemachines.bench import Bench
from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, ready, session
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import Supervisor, SupervisorConfig

ARGUMENTS = m.ExecuteArguments(receivers=1, inline=True)
BOTH = pytest.mark.parametrize("launched", [True, False], ids=["launched", "attached"])


def supervisor(*, persistent: bool = False, limits: Limits = Limits()) -> Bench:  # noqa: B008 - frozen
    """A backend alone; its hosts are played by the test."""
    return Bench({"backend": Supervisor(SupervisorConfig(persistent=persistent, limits=limits))}, {})


def from_host(made: Bench, message: core.Message) -> core.Step:
    """A host says something."""
    return made.give("backend", core.Received("hosts", message))


def offer(seq: int, *, attempt: int = 1, epoch: int = 1, content: int = 0) -> core.Received:
    """TASK_READY, by hand."""
    message = m.TaskReady(epoch=epoch, seq=seq, attempt=attempt, floor=seq, content=content, receivers=1, inline=True)
    return core.Received("control", message)


def opening(epoch: int, *, instance: int = 0, resume: bool = False) -> m.SessionOpen:
    """SESSION_OPEN, by hand."""
    return m.SessionOpen(epoch=epoch, instance=instance, resume=resume)


def test_a_failed_launch_fails_itself_and_a_later_source_drains_in_full() -> None:
    """D1: launch 1 fails; launch 2 has a result whose source is live at the end: it is closed, not aborted."""
    made = supervisor()
    made.call("backend", "start", 1)
    made.call("backend", "execute", 2, ARGUMENTS)
    from_host(made, m.SessionEnded(launch=1, verdict=m.Verdict.LOST, stuck=False))
    made.call("backend", "execute", 3, ARGUMENTS)
    from_host(made, m.SessionStarted(launch=1))
    from_host(made, m.TaskEnded(launch=1, outcome=m.TaskOutcome.RESULT))
    made.call("backend", "finalize", 4)

    assert made.outcomes("backend", "execute") == ["failed", "result"]
    assert not [sent for _, sent in made.sent if isinstance(sent, m.AbortSession | m.RunFailed)]
    assert made.outcomes("backend", "finalize") == []
    from_host(made, m.SessionEnded(launch=1, verdict=m.Verdict.STOPPED, stuck=False))

    assert made.outcomes("backend", "finalize") == ["ok"]
    assert made.armed == {}


def test_a_host_may_open_above_the_session_it_had() -> None:
    """D4, R30: a trainer that is bound takes a higher epoch, empty, and says so to whoever waits for the old one."""
    made = ready(launched=False)
    made.working()
    made.send(3)
    made.give("trainer", core.Received("control", opening(2)))

    assert made.outcomes("trainer", "send") == ["superseded"]
    assert made.said("trainer", m.SessionAccepted)[-1].epoch == 2
    assert made.cores["trainer"].members("ledger") == ()
    step = made.give("trainer", offer(1))  # of epoch 1

    assert step.rows == ("session.ready.message[~current]",)
    made.give("trainer", offer(1, epoch=2))

    assert made.where("trainer", "ledger", 1) == "reserved"


def test_an_open_below_the_epoch_is_told_to_open_above_it() -> None:
    """D4: the refusal names the epoch and says that trying again helps; the host then opens above it."""
    made = ready(launched=False)
    made.give("trainer", core.Received("control", opening(4)))
    made.give("trainer", core.Received("control", opening(1, instance=1)))

    refusal = made.said("trainer", m.SessionRejected)[-1]
    assert (refusal.opened, refusal.epoch, refusal.retry) == (1, 4, True)
    other = session(launched=False)
    other.order(m.StartSession(launch=1))
    other.give("host", core.LinkUp("control"))
    other.give("host", core.Received("control", refusal))

    assert [said.epoch for said in other.said("host", m.SessionOpen)] == [1, 5]


@pytest.mark.parametrize("ending", [m.Shutdown(epoch=1), m.Abort(epoch=1)], ids=["draining", "aborted"])
def test_a_trainer_that_is_ending_refuses_every_open_for_good(ending: core.Message) -> None:
    """D22: it says so, says not to try again, and nothing of it changes."""
    made = ready(launched=False)
    made.working()
    made.send(3)
    made.give("trainer", core.Received("control", ending))
    before = made.snapshot()
    made.give("trainer", core.Received("control", opening(2)))

    assert [said.retry for said in made.said("trainer", m.SessionRejected)] == [False]
    assert made.snapshot() == before


@BOTH
def test_a_draining_host_answers_the_heartbeats_that_it_depends_on(launched: bool) -> None:
    """D5: SHUTDOWN was sent and a source is live; beats are answered, and re-arm the lease."""
    made = ready(launched=launched)
    made.working(receivers=2)
    made.send(3, inline=False)
    made.run()
    made.order(m.CloseSession(launch=1))
    made.settle()
    made.fire("host", "lease")

    assert made.where("host", "session") == "draining"
    assert made.where("host", "lease") == "suspect"
    made.fire("trainer", "beat")
    made.settle()

    assert made.where("host", "lease") == "armed"
    assert made.said("host", m.Heartbeat) == [m.Heartbeat(epoch=1)]
    assert made.to_supervisor(m.ResultLost) == []


def test_process_state_only_refines_what_the_lease_says() -> None:
    """D20: a silent trainer whose process lives is waited for; an attached one, of which nothing is known, is lost."""
    outcomes = {}
    for launched in (True, False):
        made = ready(launched=launched)
        made.fire("host", "lease")
        made.fire("host", "lease")
        outcomes[launched] = made.where("host", "lease"), made.where("host", "session")

    assert outcomes == {True: ("unresponsive", "ready"), False: ("expired", "closed")}


def test_a_newer_reservation_ends_the_second_chance_of_an_older_one() -> None:
    """D9, R20: task 1 failed and might come again; task 2 came; a late copy of task 1 is stale."""
    made = ready()
    made.give("trainer", offer(1))
    made.give("trainer", core.Received("receivers", m.PayloadLost(epoch=1, seq=1, receiver=0)))
    made.give("trainer", offer(2))
    made.give("trainer", offer(1, attempt=2))

    assert made.said("trainer", m.TaskFailed)[-1].reason is m.FailReason.STALE
    assert made.where("trainer", "ledger", 1) == "absent"


def test_a_reservation_that_failed_may_be_made_again_while_nothing_newer_came() -> None:
    """D9: the second chance itself works."""
    made = ready()
    made.give("trainer", offer(1))
    made.give("trainer", core.Received("receivers", m.PayloadLost(epoch=1, seq=1, receiver=0)))
    made.give("trainer", offer(1, attempt=2))

    assert made.where("trainer", "ledger", 1) == "reserved"


@BOTH
def test_giving_a_delivery_up_cancels_and_fences_it(launched: bool) -> None:
    """D11: the budget is spent; the trainer is told, is told again, and a late offer of the task is not executed."""
    made = ready(launched=launched)
    made.execute()
    late = made.lose(TO_TRAINER)[0]
    made.fire("host", "budget")
    made.lose(TO_TRAINER)

    assert made.ended == ["undelivered"]
    made.fire("host", "task")
    made.run()

    assert made.where("host", "delivery") == "idle"
    made.give("trainer", core.Received("control", late))

    assert made.said("trainer", m.TaskFailed)[-1].reason is m.FailReason.STALE
    assert made.cores["trainer"].members("ledger") == ()


def test_the_next_offer_drops_what_was_given_up() -> None:
    """D11: CANCEL_TASK is lost for good, but the next task names the lowest sequence that is still wanted."""
    made = ready()
    made.execute()
    made.run()
    made.order(m.StopTask(launch=1))
    made.lose(TO_TRAINER)
    made.execute()
    made.run()

    assert made.where("trainer", "ledger", 1) == "cancelled"
    assert made.where("trainer", "ledger", 2) == "queued"


@BOTH
def test_a_cancel_ends_one_task_and_is_repeated_until_it_is_answered(launched: bool) -> None:
    """D12, R28: CANCEL_TASK names its task; a late copy of it does not touch the next one, nor the session."""
    made = ready(launched=launched)
    made.working()
    made.order(m.StopTask(launch=1))
    cancel = made.lose(TO_TRAINER)[0]
    made.fire("host", "task")
    made.run()

    assert made.said("host", m.CancelTask) == [cancel, cancel]
    assert made.where("host", "delivery") == "idle"
    made.working(4)
    made.give("trainer", core.Received("control", cancel))

    assert made.where("trainer", "ledger", 2) == "delivered"
    made.send(5)
    made.run()

    assert made.ended == ["cancelled", "result"]


@BOTH
def test_an_abort_is_repeated_until_it_is_answered(launched: bool) -> None:
    """D12: ABORT is lost, comes again, and is answered; the answer is lost, and it is answered again."""
    made = ready(launched=launched)
    made.order(m.AbortSession(launch=1))
    made.lose(TO_TRAINER)
    made.fire("host", "again")
    made.deliver(TO_TRAINER)

    assert [type(lost) for lost in made.lose(TO_HOST)] == [m.AbortAccepted]
    made.fire("host", "again")
    made.run()

    assert len(made.said("trainer", m.AbortAccepted)) == 2
    assert made.where("host", "session") in ("closing", "closed")


def test_the_lease_stays_armed_while_the_session_drains() -> None:
    """D14, R5: SHUTDOWN came while a result is out; then the host falls silent, and send() returns all the same."""
    made = ready(launched=False)
    made.working()
    made.send(3)
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))

    assert made.where("trainer", "session") == "draining"
    made.fire("trainer", "lease")
    made.fire("trainer", "lease")

    assert made.outcomes("trainer", "send") == ["lost"]
    assert {timer for name, timer, _ in made.armed if name == "trainer"} == set()


def test_a_trainer_too_many_waits_for_room() -> None:
    """D17: trainers that are kept for their sources are counted, and the next launch waits for one to end."""
    made = supervisor(limits=Limits(retained_limit=1))
    made.call("backend", "start", 1)
    made.call("backend", "execute", 2, ARGUMENTS)
    from_host(made, m.SessionStarted(launch=1))
    from_host(made, m.TaskEnded(launch=1, outcome=m.TaskOutcome.RESULT))
    made.call("backend", "execute", 3, ARGUMENTS)

    assert [sent for _, sent in made.sent if isinstance(sent, m.StartSession)] == [m.StartSession(launch=1)]
    from_host(made, m.SessionEnded(launch=1, verdict=m.Verdict.STOPPED, stuck=False))

    assert len([sent for _, sent in made.sent if isinstance(sent, m.StartSession)]) == 2


def test_a_teardown_ends_all_launches_at_once_and_is_bounded() -> None:
    """D17: three retained trainers are closed together, forced together, and finalize() returns whatever they do."""
    made = supervisor()
    made.call("backend", "start", 1)
    for launch in (1, 2, 3):
        made.call("backend", "execute", launch + 1, ARGUMENTS)
        from_host(made, m.SessionStarted(launch=launch))
        from_host(made, m.TaskEnded(launch=launch, outcome=m.TaskOutcome.RESULT))
    made.call("backend", "finalize", 9)
    forced = made.fire("backend", "teardown")

    assert [effect.message for effect in forced.effects if isinstance(effect, core.Send)] == [m.AbortSession(launch=n) for n in (1, 2, 3)]
    made.fire("backend", "teardown")

    assert made.outcomes("backend", "finalize") == ["forced"]
    assert made.armed == {}


@pytest.mark.parametrize("at", ["sending", "accepted"])
def test_no_send_outlives_an_abort(at: str) -> None:
    """D15, R6, R7: whatever the publication waits for, ABORT ends the call and stops its timers."""
    made = ready()
    made.working()
    made.send(3, inline=False)
    if at == "accepted":
        made.settle()

    assert made.where("trainer", "publication", 1) == at
    made.give("trainer", core.Received("control", m.Abort(epoch=1)))

    assert made.outcomes("trainer", "send") == ["aborted"]
    assert {timer for name, timer, _ in made.armed if name == "trainer"} == {"lease", "beat"}, "it can be asked again"
    assert ("trainer", "result", (1, 0)) not in made.offers


@pytest.mark.parametrize("terminal", ["complete", "cancelled"])
def test_every_terminal_entry_makes_room(terminal: str) -> None:
    """D16: neither a task that was cancelled nor one that is complete can block the ledger; the evicted one is stale."""
    made = ready(limits=Limits(ledger_limit=2))
    for seq in range(1, 8):
        made.working(10 * seq)
        if terminal == "complete":
            made.send(10 * seq + 1)
        else:
            made.order(m.StopTask(launch=1))
        made.run()

        assert len(made.cores["trainer"].members("ledger")) <= 2
    made.give("trainer", offer(1))

    assert made.said("trainer", m.TaskFailed)[-1].reason is m.FailReason.STALE


STAGES = ["new", "joining", "binding", "ready", "draining", "aborted", "closed"]


@pytest.mark.parametrize("stage", STAGES)
def test_shutdown_returns_at_any_time(stage: str) -> None:
    """D23, K24: in every state the call returns in its own step, and so does an init() that is under way."""
    made = session()
    made.order(m.StartSession(launch=1))
    if stage != "new":
        made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    if stage not in ("new", "joining"):
        made.give("trainer", core.Received("control", m.HelloAccepted(epoch=1)))
    if stage in ("ready", "draining", "aborted", "closed"):
        made.give("trainer", core.Received("control", m.SessionConfirmed(epoch=1)))
    if stage == "draining":
        made.give("trainer", offer(1))
        made.give("trainer", core.Received("receivers", m.PayloadArrived(epoch=1, seq=1, receiver=0)))
        made.take(2)
        made.send(3)
        made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    if stage == "aborted":
        made.give("trainer", core.Received("control", m.Abort(epoch=1)))
    if stage == "closed":
        made.call("trainer", "shutdown", 8)

    assert made.where("trainer", "session") == stage
    made.call("trainer", "shutdown", 9)

    assert made.outcomes("trainer", "shutdown")[-1] == ("deferred" if stage == "draining" else "ok")
    assert len(made.outcomes("trainer", "init")) == (0 if stage == "new" else 1)
