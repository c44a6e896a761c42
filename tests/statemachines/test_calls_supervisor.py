"""Every call of a backend's user in every state: it returns once, with the right outcome; and what a backend does at its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.statemachines.bench import Bench
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import Supervisor, SupervisorConfig

CALLS = ("start", "execute", "abort", "finalize")
NUMBER = 99
"""The call under test. The calls that led to its stage have small numbers."""
ARGUMENTS = m.ExecuteArguments(receivers=1, inline=True)


def backend(*, persistent: bool = True, retained: int = 4) -> Bench:
    """A backend alone; its hosts are played by the test."""
    config = SupervisorConfig(persistent=persistent, limits=Limits(retained_limit=retained))
    return Bench({"backend": Supervisor(config)}, {})


def per_task() -> Bench:
    """One trainer a task."""
    return backend(persistent=False)


def hear(made: Bench, message: core.Message) -> core.Step:
    """A host says something."""
    return made.give("backend", core.Received("hosts", message))


def started(made: Bench, launch: int = 1) -> None:
    """The launch's trainer is ready."""
    hear(made, m.SessionStarted(launch=launch))


def done(made: Bench, outcome: m.TaskOutcome = m.TaskOutcome.RESULT, launch: int = 1) -> None:
    """The launch's task is over."""
    hear(made, m.TaskEnded(launch=launch, outcome=outcome))


def ended(made: Bench, verdict: m.Verdict = m.Verdict.ENDED, launch: int = 1) -> None:
    """Nothing is left of the launch."""
    hear(made, m.SessionEnded(launch=launch, verdict=verdict, stuck=False))


def called(made: Bench, call: str, number: int = NUMBER) -> core.Step:
    """A call."""
    return made.call("backend", call, number, ARGUMENTS if call == "execute" else None)


def returned(made: Bench, number: int = NUMBER) -> list[str]:
    """How the call of that number returned."""
    return [effect.outcome.value for _, effect in made.resolved if effect.number == number]


def said(made: Bench, kind: type[core.Message]) -> list[core.Message]:
    """What the hosts were told, of one kind."""
    return [message for _, message in made.sent if isinstance(message, kind)]


def _starting() -> Bench:
    made = backend()
    called(made, "start", 1)
    return made


def _idle() -> Bench:
    made = _starting()
    started(made)
    return made


def _running() -> Bench:
    made = _idle()
    called(made, "execute", 2)
    return made


def _lost() -> Bench:
    made = _idle()
    ended(made, m.Verdict.LOST)
    return made


def _opened() -> Bench:
    made = per_task()
    called(made, "start", 1)
    return made


def _launching() -> Bench:
    made = _opened()
    called(made, "execute", 2)
    return made


def _launched() -> Bench:
    made = _launching()
    started(made)
    return made


def _retained() -> Bench:
    made = backend(persistent=False, retained=1)
    called(made, "start", 1)
    called(made, "execute", 2)
    started(made)
    done(made)
    return made


def _queued() -> Bench:
    made = _retained()
    called(made, "execute", 3)
    return made


def _draining() -> Bench:
    made = _idle()
    called(made, "finalize", 4)
    return made


def _draining_with_a_task() -> Bench:
    made = _running()
    called(made, "finalize", 4)
    return made


def _forcing() -> Bench:
    made = _draining()
    made.fire("backend", "teardown")
    return made


def _over() -> Bench:
    made = _draining()
    ended(made)
    return made


def _forced() -> Bench:
    made = _forcing()
    made.fire("backend", "teardown")
    return made


def _aborted() -> Bench:
    made = _idle()
    called(made, "abort", 5)
    return made


STAGES: dict[str, Callable[[], Bench]] = {
    "new": backend,
    "starting": _starting,
    "idle": _idle,
    "running": _running,
    "lost": _lost,
    "opened": _opened,
    "launching": _launching,
    "launched": _launched,
    "queued": _queued,
    "retained": _retained,
    "draining": _draining,
    "draining_with_a_task": _draining_with_a_task,
    "forcing": _forcing,
    "over": _over,
    "forced": _forced,
    "aborted": _aborted,
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
    made = _starting()
    made.give("backend", core.CallCancelled("start", 1))
    called(made, "start")

    assert returned(made) == []
    started(made)
    assert returned(made) == ["ok"]
    assert len(said(made, m.StartSession)) == 1


# -- what a task comes to ----------------------------------------------------------------------------------------------

OUTCOMES = {
    m.TaskOutcome.RESULT: "result",
    m.TaskOutcome.REFUSED: "refused",
    m.TaskOutcome.UNDELIVERED: "failed",
    m.TaskOutcome.TIMEOUT: "timeout",
    m.TaskOutcome.RESULT_LOST: "lost",
    m.TaskOutcome.CANCELLED: "cancelled",
    m.TaskOutcome.ABORTED: "aborted",
    m.TaskOutcome.TRAINER_LOST: "lost",
    m.TaskOutcome.SESSION_OVER: "closed",
}


@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "per task"])
@pytest.mark.parametrize("outcome", list(m.TaskOutcome), ids=lambda outcome: outcome.value)
def test_a_task_comes_to_what_its_host_said(outcome: m.TaskOutcome, persistent: bool) -> None:
    """K50, K57: and the next task may follow, whatever became of this one."""
    made = _running() if persistent else _launched()
    done(made, outcome)

    assert made.outcomes("backend", "execute") == [OUTCOMES[outcome]]
    step = called(made, "execute")
    assert step.refusal is None


def test_an_execute_that_was_given_up_stops_its_task() -> None:
    """K52: the host is told; its trainer is kept, and the late outcome is told to nobody."""
    made = _running()
    made.give("backend", core.CallCancelled("execute", 2))

    assert said(made, m.StopTask) == [m.StopTask(launch=1)]
    assert said(made, m.AbortSession) == []
    assert called(made, "execute").refusal is not None, "the host has not said yet what became of it"
    done(made, m.TaskOutcome.CANCELLED)
    called(made, "execute", 98)

    assert made.outcomes("backend", "execute") == ["cancelled"]
    assert len(said(made, m.ExecuteTask)) == 2


def test_an_execute_that_was_given_up_while_its_trainer_starts_closes_the_launch() -> None:
    """K52, K55: the launch has no task any more; the next task has a launch of its own."""
    made = _launching()
    made.give("backend", core.CallCancelled("execute", 2))

    assert said(made, m.CloseSession) == [m.CloseSession(launch=1)]
    called(made, "execute")
    started(made)

    assert [message.launch for message in said(made, m.StartSession) if isinstance(message, m.StartSession)] == [1, 2]
    assert said(made, m.ExecuteTask) == [], "launch 1 came too late"
    started(made, 2)
    assert said(made, m.ExecuteTask) == [m.ExecuteTask(launch=2, receivers=1, inline=True)]


def test_an_execute_that_was_given_up_in_the_queue_leaves_nothing() -> None:
    """D17: nothing was begun, and when there is room nothing is."""
    made = _queued()
    made.give("backend", core.CallCancelled("execute", 3))
    ended(made)

    assert len(said(made, m.StartSession)) == 1
    assert made.cores["backend"].observe()["launches"] == 0


def test_a_launch_that_fails_while_another_is_retained_leaves_that_one_alone() -> None:
    """K55, K57, D1."""
    made = _launched()
    done(made)
    called(made, "execute")
    ended(made, m.Verdict.TIMEOUT, 2)

    assert returned(made) == ["failed"]
    assert made.cores["backend"].observe()["retained"] == 1
    assert said(made, m.CloseSession) == said(made, m.AbortSession) == []


def test_a_start_that_failed_may_be_tried_again() -> None:
    """K46, K51: no trainer came; the next start() launches anew."""
    made = _starting()
    ended(made, m.Verdict.TIMEOUT)

    assert made.outcomes("backend", "start") == ["failed"]
    called(made, "start")
    started(made)

    assert returned(made) == ["ok"]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_finalize_while_a_trainer_starts_waits_for_its_end() -> None:
    """K51, R26: nothing of the launch is left when finalize() returns, and no task was begun."""
    made = _launching()
    called(made, "finalize")

    assert returned(made, 2) == ["closed"]
    assert said(made, m.CloseSession) == [m.CloseSession(launch=1)]
    started(made)
    assert returned(made) == []
    ended(made)

    assert returned(made) == ["ok"]
    assert said(made, m.ExecuteTask) == []


def test_finalize_with_a_task_out_lets_it_have_its_outcome() -> None:
    """K65, R27: the result was accepted before the session ended, so execute() returns with it."""
    made = _draining_with_a_task()

    assert returned(made, 2) == []
    done(made)
    ended(made)

    assert returned(made, 2) == ["result"]
    assert returned(made, 4) == ["ok"]


def test_a_task_without_an_outcome_is_closed_with_its_trainer() -> None:
    """K65: finalize() unblocks a wait that nothing else ends."""
    made = _draining_with_a_task()
    ended(made)

    assert returned(made, 2) == ["closed"]


def test_finalize_is_idempotent() -> None:
    """K56: as often as one likes, and nothing is said twice."""
    made = _over()
    sent = list(made.sent)
    for number in (20, 21):
        called(made, "finalize", number)

    assert (returned(made, 20), returned(made, 21)) == (["ok"], ["ok"])
    assert made.sent == sent


def test_the_budgets_bound_a_teardown_that_nothing_answers() -> None:
    """K55, K56: one budget for the orderly end, one for the forced one; both are named limits."""
    made = _draining()

    assert made.armed["backend", "teardown", None][1] == "finalize_budget_s"
    made.fire("backend", "teardown")
    assert made.armed["backend", "teardown", None][1] == "force_budget_s"
    assert said(made, m.AbortSession) == [m.AbortSession(launch=1)]
    made.fire("backend", "teardown")

    assert returned(made, 4) == ["forced"]
    assert made.armed == {}


def test_an_abort_cuts_a_teardown_short() -> None:
    """K56: abort() skips the waits; the forced budget bounds what is left, and the first intent stays."""
    made = _draining()
    called(made, "abort")

    assert said(made, m.AbortSession) == [m.AbortSession(launch=1)]
    assert made.armed["backend", "teardown", None][1] == "force_budget_s"
    assert made.cores["backend"].data("teardown").intent is m.Verdict.STOPPED


def test_a_lost_result_fails_the_run_once() -> None:
    """K54: two losses, one RUN_FAILED, and the abort that follows is not the first intent."""
    made = _retained()
    for _ in range(2):
        hear(made, m.ResultLost(launch=1))
    called(made, "abort")

    assert said(made, m.RunFailed) == [m.RunFailed()]
    assert made.cores["backend"].data("teardown").intent is m.Verdict.LOST


@pytest.mark.parametrize("first", ["abort", "finalize"])
def test_a_result_that_is_lost_because_the_run_ends_fails_nothing(first: str) -> None:
    """K54, R24: whoever asked for the end has the first word."""
    made = _retained()
    called(made, first)
    hear(made, m.ResultLost(launch=1))

    assert said(made, m.RunFailed) == []


def test_a_teardown_that_was_forced_and_then_came_to_an_end_says_that_it_was_forced() -> None:
    """K56: the last trainer is gone within the forced budget; nothing runs any more."""
    made = _forcing()
    ended(made)

    assert returned(made, 4) == ["forced"]
    assert made.armed == {}
