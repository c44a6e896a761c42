"""Every call of a backend's user in every state: it returns once, with the right outcome, whatever else happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.statemachines.backend_bench import (
    CALLS,
    NUMBER,
    aborted,
    backend,
    called,
    draining,
    draining_with_a_task,
    ended,
    forced,
    forcing,
    idle,
    launched,
    launching,
    lost,
    opened,
    over,
    queued,
    retained,
    returned,
    running,
    said,
    started,
    starting,
)
from tests.statemachines.bench import Bench
from troth.spec import core
from troth.spec import messages as m

STAGES: dict[str, Callable[[], Bench]] = {
    "new": backend,
    "starting": starting,
    "idle": idle,
    "running": running,
    "lost": lost,
    "opened": opened,
    "launching": launching,
    "launched": launched,
    "queued": queued,
    "retained": retained,
    "draining": draining,
    "draining_with_a_task": draining_with_a_task,
    "forcing": forcing,
    "over": over,
    "forced": forced,
    "aborted": aborted,
}

# What each call comes to. `waits`: it has not returned yet; `refused`: a misuse, and nothing changed.
EXPECTED = """
stage                 start    execute  abort  finalize
new                   waits    refused  ok     ok
starting              refused  refused  ok     waits
idle                  ok       waits    ok     waits
running               ok       refused  ok     waits
lost                  lost     lost     ok     ok
opened                ok       waits    ok     ok
launching             ok       refused  ok     waits
launched              ok       refused  ok     waits
queued                ok       refused  ok     waits
retained              ok       waits    ok     waits
draining              closed   closed   ok     refused
draining_with_a_task  closed   refused  ok     refused
forcing               closed   closed   ok     refused
over                  closed   closed   ok     ok
forced                closed   closed   ok     ok
aborted               closed   closed   ok     waits
"""
CASES = [
    (words[0], call, words[1 + place])
    for line in EXPECTED.strip().splitlines()[1:]
    for words in [line.split()]
    for place, call in enumerate(CALLS)
]
WAITING = [(stage, call) for stage, call, outcome in CASES if outcome == "waits"]


@pytest.mark.parametrize(("stage", "call", "outcome"), CASES)
def test_a_backends_call_comes_to_what_the_table_says(stage: str, call: str, outcome: str) -> None:
    """K50: at once or by waiting; a refusal names its reason and changes nothing."""
    made = STAGES[stage]()
    before = made.snapshot()
    step = called(made, call)
    found = returned(made)

    if outcome == "refused":
        assert step.refusal is not None
        assert step.refusal.kind is core.RefusalKind.MISUSE
        assert step.refusal.why
        assert made.snapshot() == before
    else:
        assert step.refusal is None
        assert found == ([] if outcome == "waits" else [outcome])


def test_the_backends_table_has_every_stage_and_every_call() -> None:
    """Nothing was left out by a typing error."""
    assert [stage for stage, call, _ in CASES if call == "start"] == list(STAGES)
    assert EXPECTED.split()[1 : 1 + len(CALLS)] == list(CALLS)


def abort(made: Bench) -> None:
    """abort(), from anywhere."""
    called(made, "abort", 77)


def finalize(made: Bench) -> None:
    """finalize() from another thread, until its budgets are spent."""
    called(made, "finalize", 78)
    while ("backend", "teardown", None) in made.armed:
        made.fire("backend", "teardown")


def cancelled(made: Bench) -> None:
    """The caller gives up, whatever it is that it waits in."""
    for call in ("start", "execute", "finalize"):
        made.give("backend", core.CallCancelled(call, NUMBER))


def all_ended(made: Bench) -> None:
    """Every trainer is gone."""
    for launch in made.cores["backend"].members("launches"):
        assert isinstance(launch, int)
        ended(made, m.Verdict.LOST, launch)


ENDS = (abort, finalize, cancelled, all_ended)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize(("stage", "call"), WAITING)
def test_a_backends_call_that_waits_returns_once_whatever_ends_it(stage: str, call: str, end: Callable[[Bench], None]) -> None:
    """P15: each end, and then every other one too; the trainers are gone last, for a task that is out has an outcome yet."""
    made = STAGES[stage]()
    called(made, call)
    end(made)
    first = returned(made)
    for other in (*ENDS, all_ended):
        other(made)

    assert returned(made)[: len(first)] == first
    assert len(returned(made)) == 1, "however many ends there are"


@pytest.mark.parametrize(("stage", "call"), WAITING)
def test_nothing_waits_longer_than_the_teardown(stage: str, call: str) -> None:
    """K65: hosts that say nothing any more hold nobody; when the budgets of finalize() are spent, every call has returned."""
    made = STAGES[stage]()
    called(made, call)
    finalize(made)

    assert len(returned(made)) == 1
    assert made.cores["backend"].members("calls") == ()


@pytest.mark.parametrize(("stage", "call"), WAITING)
def test_a_second_thread_at_a_backend_is_told_so_and_the_first_is_not_disturbed(stage: str, call: str) -> None:
    """K50: the second call is refused, the first waits on and is told what it would have been told."""
    alone, made = STAGES[stage](), STAGES[stage]()
    called(alone, call)
    called(made, call)
    before = made.snapshot()
    step = called(made, call, 98)

    assert step.refusal is not None
    assert made.snapshot() == before
    for one in (alone, made):
        finalize(one)
        all_ended(one)
    assert returned(made) == returned(alone) != []
    assert returned(made, 98) == []


@pytest.mark.parametrize(("stage", "call", "outcome"), [case for case in CASES if case[1] != "abort"])
def test_giving_up_a_backends_call_that_has_returned_or_never_waited_says_nothing(stage: str, call: str, outcome: str) -> None:
    """P15: the call returned first; what it returned stays, and no other caller is disturbed."""
    made = STAGES[stage]()
    called(made, call)
    if outcome == "waits":
        made.give("backend", core.CallCancelled(call, NUMBER))

        assert returned(made) == ["cancelled"]
    told, sent = list(made.resolved), list(made.sent)
    waiting = made.cores["backend"].members("calls")
    made.give("backend", core.CallCancelled(call, NUMBER))

    assert made.resolved == told
    assert {type(message) for _, message in made.sent[len(sent) :]} <= {m.StopTask}, "said again of the same task, at most"
    assert made.cores["backend"].members("calls") == waiting


def test_whoever_gives_up_a_start_may_join_it_again() -> None:
    """Nothing is launched twice, and the new caller is told when the trainer is ready."""
    made = starting()
    made.give("backend", core.CallCancelled("start", 1))
    called(made, "start")

    assert returned(made) == []
    started(made)
    assert returned(made) == ["ok"]
    assert len(said(made, m.StartSession)) == 1
