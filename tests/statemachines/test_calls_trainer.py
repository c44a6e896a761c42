"""Every call of a trainer's user in every state: it returns once, with the right outcome, whatever else happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.statemachines.session_bench import Session, ready, session
from tests.statemachines.trainer_bench import (
    CALLS,
    NUMBER,
    aborted,
    binding,
    called,
    draining,
    given_up,
    handed,
    joining,
    left,
    lost,
    passive,
    queued,
    returned,
    revoked,
    sending,
    settled,
    stopped,
    superseded,
    working,
)
from troth.spec import core
from troth.spec import messages as m

STAGES: dict[str, Callable[[], Session]] = {
    "new": session,
    "passive": passive,
    "joining": joining,
    "binding": binding,
    "ready": ready,
    "queued": queued,
    "handed": handed,
    "working": working,
    "revoked": revoked,
    "sending": sending,
    "given up": given_up,
    "settled": settled,
    "draining": draining,
    "aborted": aborted,
    "stopped": stopped,
    "left": left,
    "lost": lost,
    "superseded": superseded,
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
