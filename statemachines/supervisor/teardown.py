"""The teardown: how a backend ends, within a bounded time, and who ended it.

Rule 1.  The first terminal intent stays: an abort that was asked for is not reported as a failure, a failure is not turned into an
         orderly end.
Rule 2.  All launches end at the same time, so the budget does not grow with their number. What is not over when it is spent is
         forced; the forced part is bounded too.
Rule 3.  A result that is lost fails the run once, unless the run was ending anyway.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from troth.spec.emits import cancel_timer, each, send, set_timer, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Ignore, Machine, Row, keep
from troth.spec.messages import Outcome, RunFailed, Verdict
from troth.statemachines.shared.words import done, sets

JOB = "job"
"""The local link from a supervisor to its job."""


class TeardownState(Enum):
    """How far the end is."""

    OPEN = "open"
    DRAINING = "draining"
    FORCING = "forcing"
    DONE = "done"


S = TeardownState
ENDING = (S.DRAINING, S.FORCING)


@frozen
class TeardownData:
    """Who ended it."""

    intent: Verdict = Verdict.NONE


claim_stopped = sets("claim_stopped", intent=Verdict.STOPPED)
claim_aborted = sets("claim_aborted", intent=Verdict.ABORTED)
claim_lost = sets("claim_lost", intent=Verdict.LOST)

left = atom("left", reads=["launches"], of=lambda view, event: len(view.launches) > 0)
unclaimed = atom("unclaimed", of=lambda view, event: view.own.data.intent is Verdict.NONE)

shut = signal("gate", "shut")
close_all = signal("launches", "close", key=each)
abort_all = signal("launches", "abort", key=each)
drain = [shut, close_all, set_timer("teardown", "finalize_budget_s")]
force = [abort_all, set_timer("teardown", "force_budget_s")]

# fmt: off
TEARDOWN = Machine(
    "teardown", TeardownState, initial=S.OPEN, data=TeardownData, timers=("teardown",),
    rows=[
    Row("W1",  S.OPEN,     "finalize", left & unclaimed,   S.DRAINING, claim_stopped, drain, "Rule 2"),
    Row("W2",  S.OPEN,     "finalize", left & ~unclaimed,  S.DRAINING, keep, drain, "Rules 1 and 2"),
    Row("W3",  S.OPEN,     "finalize", ~left & unclaimed,  S.DONE, claim_stopped, [shut, done("finalize", Outcome.OK)], "nothing is left"),
    Row("W4",  S.OPEN,     "finalize", ~left & ~unclaimed, S.DONE, keep, [shut, done("finalize", Outcome.OK)], "Rule 1; nothing is left"),
    Row("W5",  S.DONE,     "finalize", always, SAME, keep, [done("finalize", Outcome.OK)], "as often as one likes"),
    Row("W6",  S.OPEN,     "abort", unclaimed,  SAME, claim_aborted, [shut, abort_all, done("abort", Outcome.OK)], "Rule 1"),
    Row("W7",  S.OPEN,     "abort", ~unclaimed, SAME, keep, [shut, abort_all, done("abort", Outcome.OK)], "Rule 1: at once, but the intent stays"),
    Row("W8",  S.DRAINING, "abort", always, S.FORCING, keep, [*force, done("abort", Outcome.OK)], "Rule 1: at once, but the intent stays"),
    Row("W9",  (S.FORCING, S.DONE), "abort", always, SAME, keep, [done("abort", Outcome.OK)], "it is ending as fast as it can"),
    Row("W10", S.OPEN,     "result_lost", unclaimed, SAME, claim_lost, [send(JOB, RunFailed)], "Rule 3"),
    Row("W11", S.DRAINING, "silence", always, S.FORCING, keep, force, "Rule 2: the budget is spent"),
    Row("W12", S.FORCING,  "silence", always, S.DONE, keep, [done("finalize", Outcome.FORCED), done("execute", Outcome.CLOSED)], "Rule 2: this one too, for whoever waits"),
    Row("W13", S.DRAINING, "check", ~left, S.DONE, keep, [cancel_timer("teardown"), done("finalize", Outcome.OK)], "nothing is left"),
    Row("W14", S.FORCING,  "check", ~left, S.DONE, keep, [cancel_timer("teardown"), done("finalize", Outcome.FORCED)], "nothing is left"),
    ],
    ignore=[
    Ignore("finalize", ENDING, "the caller waits"),
    Ignore("result_lost", S.OPEN, "Rule 1", ~unclaimed),
    Ignore("result_lost", (*ENDING, S.DONE), "Rule 3"),
    Ignore("check", ENDING, "some launch is not over yet", left),
    Ignore("check", (S.OPEN, S.DONE), "nobody is waiting for the end"),
    Ignore("silence", (S.OPEN, S.DONE), "no wait is under way"),
    ],
)
# fmt: on
