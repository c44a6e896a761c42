"""What the checklist says of a backend: what a task comes to, launches that fail or are given up, and the end of a run."""

from __future__ import annotations

import pytest

from tests.statemachines.backend_bench import (
    called,
    done,
    draining,
    draining_with_a_task,
    ended,
    forcing,
    hear,
    launched,
    launching,
    over,
    queued,
    retained,
    returned,
    running,
    said,
    started,
    starting,
)
from troth.spec import core
from troth.spec import messages as m

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
    made = running() if persistent else launched()
    done(made, outcome)

    assert made.outcomes("backend", "execute") == [OUTCOMES[outcome]]
    step = called(made, "execute")
    assert step.refusal is None


def test_an_execute_that_was_given_up_stops_its_task() -> None:
    """K52: the host is told; its trainer is kept, and the late outcome is told to nobody."""
    made = running()
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
    made = launching()
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
    made = queued()
    made.give("backend", core.CallCancelled("execute", 3))
    ended(made)

    assert len(said(made, m.StartSession)) == 1
    assert made.cores["backend"].observe()["launches"] == 0


def test_a_launch_that_fails_while_another_is_retained_leaves_that_one_alone() -> None:
    """K55, K57, D1."""
    made = launched()
    done(made)
    called(made, "execute")
    ended(made, m.Verdict.TIMEOUT, 2)

    assert returned(made) == ["failed"]
    assert made.cores["backend"].observe()["retained"] == 1
    assert said(made, m.CloseSession) == said(made, m.AbortSession) == []


def test_a_start_that_failed_may_be_tried_again() -> None:
    """K46, K51: no trainer came; the next start() launches anew."""
    made = starting()
    ended(made, m.Verdict.TIMEOUT)

    assert made.outcomes("backend", "start") == ["failed"]
    called(made, "start")
    started(made)

    assert returned(made) == ["ok"]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_finalize_while_a_trainer_starts_waits_for_its_end() -> None:
    """K51, R26: nothing of the launch is left when finalize() returns, and no task was begun."""
    made = launching()
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
    made = draining_with_a_task()

    assert returned(made, 2) == []
    done(made)
    ended(made)

    assert returned(made, 2) == ["result"]
    assert returned(made, 4) == ["ok"]


def test_a_task_without_an_outcome_is_closed_with_its_trainer() -> None:
    """K65: finalize() unblocks a wait that nothing else ends."""
    made = draining_with_a_task()
    ended(made)

    assert returned(made, 2) == ["closed"]


def test_finalize_is_idempotent() -> None:
    """K56: as often as one likes, and nothing is said twice."""
    made = over()
    sent = list(made.sent)
    for number in (20, 21):
        called(made, "finalize", number)

    assert (returned(made, 20), returned(made, 21)) == (["ok"], ["ok"])
    assert made.sent == sent


def test_the_budgets_bound_a_teardown_that_nothing_answers() -> None:
    """K55, K56: one budget for the orderly end, one for the forced one; both are named limits."""
    made = draining()

    assert made.armed["backend", "teardown", None][1] == "finalize_budget_s"
    made.fire("backend", "teardown")
    assert made.armed["backend", "teardown", None][1] == "force_budget_s"
    assert said(made, m.AbortSession) == [m.AbortSession(launch=1)]
    made.fire("backend", "teardown")

    assert returned(made, 4) == ["forced"]
    assert made.armed == {}


def test_an_abort_cuts_a_teardown_short() -> None:
    """K56: abort() skips the waits; the forced budget bounds what is left, and the first intent stays."""
    made = draining()
    called(made, "abort")

    assert said(made, m.AbortSession) == [m.AbortSession(launch=1)]
    assert made.armed["backend", "teardown", None][1] == "force_budget_s"
    assert made.cores["backend"].data("teardown").intent is m.Verdict.STOPPED


def test_a_lost_result_fails_the_run_once() -> None:
    """K54: two losses, one RUN_FAILED, and the abort that follows is not the first intent."""
    made = retained()
    for _ in range(2):
        hear(made, m.ResultLost(launch=1))
    called(made, "abort")

    assert said(made, m.RunFailed) == [m.RunFailed()]
    assert made.cores["backend"].data("teardown").intent is m.Verdict.LOST


@pytest.mark.parametrize("first", ["abort", "finalize"])
def test_a_result_that_is_lost_because_the_run_ends_fails_nothing(first: str) -> None:
    """K54, R24: whoever asked for the end has the first word."""
    made = retained()
    called(made, first)
    hear(made, m.ResultLost(launch=1))

    assert said(made, m.RunFailed) == []


def test_a_teardown_that_was_forced_and_then_came_to_an_end_says_that_it_was_forced() -> None:
    """K56: the last trainer is gone within the forced budget; nothing runs any more."""
    made = forcing()
    ended(made)

    assert returned(made, 4) == ["forced"]
    assert made.armed == {}
