"""Every call of a trainer's user in every state: it returns once, with the right outcome, whatever else happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready, session
from troth.spec import core
from troth.spec import messages as m

CALLS = ("init", "receive", "take", "send", "shutdown", "log")
NUMBER = 99
"""The call under test. The calls that led to its stage have small numbers."""


def _joining() -> Session:
    made = session()
    made.order(m.StartSession(launch=1))
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    return made


def _binding() -> Session:
    made = _joining()
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)
    made.lose(TO_HOST)
    return made


def _passive() -> Session:
    made = session()
    made.call("trainer", "init", 1, m.InitArguments(control_rank=False))
    return made


def _queued() -> Session:
    made = ready()
    made.execute()
    made.run()
    return made


def _handed() -> Session:
    made = _queued()
    made.call("trainer", "receive", 2)
    return made


def _working() -> Session:
    made = ready()
    made.working()
    return made


def _revoked() -> Session:
    made = _working()
    made.order(m.StopTask(launch=1))
    made.run()
    return made


def _sending() -> Session:
    made = _working()
    made.send(3)
    made.lose(TO_HOST)
    return made


def _given_up() -> Session:
    made = _sending()
    made.give("trainer", core.CallCancelled("send", 3))
    return made


def _settled() -> Session:
    made = _working()
    made.send(3)
    made.run()
    return made


def _draining() -> Session:
    made = _sending()
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    made.lose(TO_HOST)
    return made


def _aborted() -> Session:
    made = _working()
    made.give("trainer", core.Received("control", m.Abort(epoch=1)))
    return made


def _stopped() -> Session:
    made = ready()
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    return made


def _left() -> Session:
    made = _aborted()
    made.call("trainer", "shutdown", 4)
    return made


def _lost() -> Session:
    made = _working()
    made.give("trainer", core.OwnerLost())
    return made


def _superseded() -> Session:
    made = ready(launched=False)
    made.working()
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=2, instance=0, resume=False)))
    return made


STAGES: dict[str, Callable[[], Session]] = {
    "new": session,
    "passive": _passive,
    "joining": _joining,
    "binding": _binding,
    "ready": ready,
    "queued": _queued,
    "handed": _handed,
    "working": _working,
    "revoked": _revoked,
    "sending": _sending,
    "given up": _given_up,
    "settled": _settled,
    "draining": _draining,
    "aborted": _aborted,
    "stopped": _stopped,
    "left": _left,
    "lost": _lost,
    "superseded": _superseded,
}

# What each call comes to. `waits`: it has not returned yet; `refused`: a misuse, and nothing changed.
EXPECTED = """
stage       init     receive  take     send        shutdown  log
new         waits    refused  nothing  refused     ok        dropped
passive     passive  passive  nothing  passive     ok        dropped
joining     refused  refused  nothing  refused     ok        dropped
binding     refused  refused  nothing  refused     ok        dropped
ready       ok       waits    nothing  refused     ok        said
queued      ok       task     nothing  refused     ok        said
handed      ok       waits    nothing  refused     ok        said
working     ok       task     task     waits       ok        said
revoked     ok       waits    nothing  cancelled   ok        said
sending     ok       waits    nothing  refused     deferred  said
given up    ok       waits    nothing  waits       deferred  said
settled     ok       waits    nothing  accepted    ok        said
draining    ok       stopped  nothing  refused     deferred  said
aborted     aborted  aborted  nothing  aborted     ok        dropped
stopped     stopped  stopped  nothing  stopped     ok        dropped
left        aborted  aborted  nothing  aborted     ok        dropped
lost        lost     lost     nothing  lost        ok        dropped
superseded  ok       waits    nothing  superseded  ok        said
"""
TABLE = [
    (words[0], call, words[1 + place])
    for line in EXPECTED.strip().splitlines()[1:]
    for words in [line.replace("given up", "given_up").split()]
    for place, call in enumerate(CALLS)
]
CASES = [(stage.replace("_", " "), call, outcome) for stage, call, outcome in TABLE]
WAITING = [(stage, call) for stage, call, outcome in CASES if outcome == "waits"]

PAYLOADS = {"init": m.InitArguments(control_rank=True), "send": m.SendArguments(content=0, inline=True)}


def called(made: Session, call: str, number: int = NUMBER) -> core.Step:
    """The call under test."""
    return made.call("trainer", call, number, PAYLOADS.get(call))


def returned(made: Session, number: int = NUMBER) -> list[str]:
    """How the call of that number returned."""
    return [effect.outcome.value for name, effect in made.resolved if name == "trainer" and effect.number == number]


def came_to(made: Session, step: core.Step, call: str) -> str:
    """What became of the call within its own step."""
    if step.refusal is not None:
        assert step.refusal.kind is core.RefusalKind.MISUSE
        return "refused"
    if call == "log":
        return "said" if any(isinstance(e, core.Send) and isinstance(e.message, m.Log) for e in step.effects) else "dropped"
    found = returned(made)
    assert len(found) <= 1
    return found[0] if found else "waits"


@pytest.mark.parametrize(("stage", "call", "outcome"), CASES)
def test_a_call_comes_to_what_the_table_says(stage: str, call: str, outcome: str) -> None:
    """K25, K31, K39: at once or by waiting; a refusal names its reason and changes nothing."""
    made = STAGES[stage]()
    before = made.snapshot()
    step = called(made, call)

    assert came_to(made, step, call) == outcome
    if outcome == "refused":
        assert made.snapshot() == before
        assert step.effects == ()
        assert made.refusals[-1][2].why


def test_the_table_has_every_stage_and_every_call() -> None:
    """Nothing was left out by a typing error."""
    assert [stage for stage, call, _ in CASES if call == "init"] == list(STAGES)
    assert EXPECTED.split()[1 : 1 + len(CALLS)] == list(CALLS)


def epoch(made: Session) -> int:
    """The trainer's, or the one that it will have."""
    return int(made.cores["trainer"].data("session").epoch) or 1


def abort(made: Session) -> None:
    """ABORT."""
    made.give("trainer", core.Received("control", m.Abort(epoch=epoch(made))))


def shutdown(made: Session) -> None:
    """SHUTDOWN."""
    made.give("trainer", core.Received("control", m.Shutdown(epoch=epoch(made))))


def owner_lost(made: Session) -> None:
    """The owner is gone."""
    made.give("trainer", core.OwnerLost())


def leave(made: Session) -> None:
    """shutdown() from another thread, or from a signal handler."""
    called(made, "shutdown", 77)


def cancelled(made: Session) -> None:
    """The caller gives up, whatever it is that it waits in."""
    for call in ("init", "receive", "send", "shutdown"):
        made.give("trainer", core.CallCancelled(call, NUMBER))


def silent(made: Session) -> None:
    """The host says nothing any more, and the join and the lease run out."""
    for timer in ("join", "lease"):
        while timer in made.timers("trainer"):
            made.fire("trainer", timer)


ENDS = (abort, shutdown, owner_lost, leave, cancelled, silent)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize(("stage", "call"), WAITING)
def test_a_call_that_waits_returns_once_whatever_ends_it(stage: str, call: str, end: Callable[[Session], None]) -> None:
    """P15, K24, K39, D15, D23: each end, and then every other one too."""
    made = STAGES[stage]()
    called(made, call)
    end(made)
    first = returned(made)
    for other in ENDS:
        other(made)

    assert returned(made)[: len(first)] == first
    assert len(returned(made)) == 1, "however many ends there are"


# A wait that is not for this end: SHUTDOWN and leaving let a result be published, and before HELLO is answered there is no session.
PATIENT = {("send", "shutdown"), ("send", "leave"), ("init", "abort"), ("init", "shutdown")}


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize(("stage", "call"), WAITING)
def test_an_end_is_heard_at_once(stage: str, call: str, end: Callable[[Session], None]) -> None:
    """D15, D23: in the step of the end itself, unless the call is what the end waits for."""
    made = STAGES[stage]()
    called(made, call)
    end(made)

    assert bool(returned(made)) == ((call, end.__name__) not in PATIENT)


@pytest.mark.parametrize(("stage", "call"), WAITING)
def test_a_second_thread_is_told_so_and_the_first_is_not_disturbed(stage: str, call: str) -> None:
    """P22: the second call is refused, the first waits on and is told what it would have been told."""
    alone, made = STAGES[stage](), STAGES[stage]()
    called(alone, call)
    called(made, call)
    before = made.snapshot()
    step = called(made, call, 98)

    assert step.refusal is not None
    assert step.refusal.kind is core.RefusalKind.MISUSE
    assert made.snapshot() == before
    owner_lost(alone)
    owner_lost(made)
    assert returned(made) == returned(alone) != []
    assert returned(made, 98) == []


@pytest.mark.parametrize(("stage", "call", "outcome"), [case for case in CASES if case[1] != "log" and case[1] != "take"])
def test_giving_up_a_call_that_has_returned_or_never_waited_says_nothing(stage: str, call: str, outcome: str) -> None:
    """P15: the call returned first; what it returned stays, and no other caller is disturbed."""
    made = STAGES[stage]()
    called(made, call)
    if outcome == "waits":
        made.give("trainer", core.CallCancelled(call, NUMBER))

        assert returned(made) == ["cancelled"]
    told = list(made.resolved)
    waiting = made.cores["trainer"].members("calls")
    made.give("trainer", core.CallCancelled(call, NUMBER))

    assert made.resolved == told
    assert made.cores["trainer"].members("calls") == waiting


@pytest.mark.parametrize(("stage", "call"), WAITING)
def test_whoever_gives_up_may_call_again(stage: str, call: str) -> None:
    """Nothing is left behind by a call that was given up: the next one waits as the first one did, or is served."""
    made = STAGES[stage]()
    called(made, call)
    made.give("trainer", core.CallCancelled(call, NUMBER))
    step = called(made, call, 98)

    assert step.refusal is None
    assert returned(made, 98) == []
    owner_lost(made)
    assert len(returned(made, 98)) == 1


def test_a_task_that_was_handed_over_and_not_taken_goes_to_the_next_caller() -> None:
    """K39: the caller gave up between receive() and take(); the task was not begun, and is not lost."""
    made = _handed()
    made.give("trainer", core.CallCancelled("receive", 2))

    assert made.where("trainer", "ledger", 1) == "queued"
    made.take(5)

    assert made.where("trainer", "ledger", 1) == "delivered"
    assert made.outcomes("trainer", "take") == ["task"]


def test_a_task_that_was_cancelled_between_receive_and_take_is_not_taken() -> None:
    """The thread is told that there is nothing, and receives again."""
    made = _handed()
    made.order(m.StopTask(launch=1))
    made.run()
    made.call("trainer", "take", 2)

    assert made.outcomes("trainer", "take") == ["nothing"]
    assert made.where("trainer", "ledger", 1) == "cancelled"


def test_the_thread_that_waits_gets_the_task_that_another_one_gave_back() -> None:
    """One thread has been handed the task, a second waits; the first gives up, and the second has it."""
    made = _handed()
    called(made, "receive")
    made.give("trainer", core.CallCancelled("receive", 2))

    assert returned(made) == ["task"]


def test_an_outcome_is_told_to_whoever_sent_that_task() -> None:
    """K12: send() of task 1 was given up; its late outcome is not told to the send() of task 2."""
    made = _given_up()
    made.fire("trainer", "result", 1)
    made.order(m.StopTask(launch=1))
    made.run()
    made.working(5)
    made.send(NUMBER)
    made.lose(TO_HOST)
    made.give("trainer", core.Received("control", m.ResultRejected(epoch=1, seq=1, reason=m.RejectReason.CANCELLED)))

    assert returned(made) == []


def test_a_new_task_wins_over_the_one_that_the_user_holds() -> None:
    """D26, D27: task 1 was taken and never answered; the host gave it up, and the next receive() gives task 2."""
    made = _working()
    made.order(m.StopTask(launch=1))
    made.execute()
    made.run()
    made.call("trainer", "receive", 5)
    made.call("trainer", "take", 5)

    assert [effect.value for name, effect in made.resolved if effect.call == "take"] == [1, 2]


def test_a_send_on_a_session_that_is_over_says_so() -> None:
    """D28: never in silence, and a second one not as if it had succeeded."""
    made = ready(one_shot=True)
    made.working()
    made.send(3)
    made.run()

    assert made.where("trainer", "session") == "closed"
    made.send(4)
    assert made.outcomes("trainer", "send") == ["accepted", "accepted"], "the same content, so the same outcome again"
    made.send(5, content=1)
    assert made.outcomes("trainer", "send")[-1] == "conflict"


def test_each_caller_takes_the_task_that_it_was_handed() -> None:
    """Two callers were handed a task each; whoever is first takes its own, and giving up puts back its own."""
    made = ready()
    for seq in (1, 2):
        message = m.TaskReady(epoch=1, seq=seq, attempt=1, floor=1, content=0, receivers=1, inline=True)
        made.give("trainer", core.Received("control", message))
        made.give("trainer", core.Received("receivers", m.PayloadArrived(epoch=1, seq=seq, receiver=0)))
        made.call("trainer", "receive", 10 + seq)
    made.give("trainer", core.CallCancelled("receive", 11))
    made.call("trainer", "take", 12)

    assert [effect.value for _, effect in made.resolved if effect.call == "take"] == [2]
    assert made.where("trainer", "ledger", 1) == "queued"
