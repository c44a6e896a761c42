"""The delivery: the one task that the host has out, from ``execute`` to its outcome.

Rule 1.  One task at a time. Its sequence is one above the last, whatever became of that one.
Rule 2.  An answer that did not come is asked for before the task is offered again, and offers are counted.
Rule 3.  An accepted result ends the delivery, whatever became of the answer to the offer.
Rule 4.  A task that the host gives up is cancelled and fenced: CANCEL_TASK until the trainer has confirmed it, and every later offer
         names the lowest sequence that is still wanted.
Rule 5.  Whoever asked is told once, at the moment the host decides; what is left to do about the trainer goes on behind it.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.data import evolve
from troth.spec.emits import Firing, Keys, cancel_timer, send, set_timer, signal
from troth.spec.guards import always, atom
from troth.spec.limits import MAX_SEQUENCE
from troth.spec.machine import SAME, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import CancelTask, FailReason, TaskEnded, TaskOutcome, TaskReady, TaskStatus, Verdict
from troth.statemachines.host.acceptance import OVER as ACCEPTANCE_OVER
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.source import offered, sources_of
from troth.statemachines.shared.words import CONTROL, SUPERVISOR, is_, own, own_launch, session_epoch, then


class DeliveryState(Enum):
    """Where the task is."""

    IDLE = "idle"
    OFFERING = "offering"
    ASKING = "asking"
    DEFERRED = "deferred"
    WAITING = "waiting"
    FETCHING = "fetching"
    CANCELLING = "cancelling"


S = DeliveryState
OFFERED = (S.OFFERING, S.ASKING)
UNANSWERED = (*OFFERED, S.DEFERRED)
OUT = (*UNANSWERED, S.WAITING)
ACTIVE = (*OUT, S.FETCHING)


@frozen
class DeliveryData:
    """The task that is out, or was last."""

    seq: int = 0
    attempt: int = 0
    receivers: int = 0
    inline: bool = False


def begin(data: DeliveryData, event: Any) -> DeliveryData:
    """Rule 1."""
    return DeliveryData(data.seq + 1, 1, event.receivers, event.inline)


def another(data: DeliveryData, event: Any) -> DeliveryData:  # noqa: ARG001
    """Rule 2."""
    return evolve(data, attempt=data.attempt + 1)


this_task = atom("this_task", of=lambda view, event: event.seq == view.own.data.seq)
this_attempt = atom("this_attempt", of=lambda view, event: event.attempt == view.own.data.attempt)
no_payload = atom("no_payload", of=lambda view, event: event.reason is FailReason.PAYLOAD)
busy = atom("busy", of=lambda view, event: event.reason is FailReason.BUSY)
own_receiver = atom("own_receiver", of=lambda view, event: event.receiver == 0)
kept = atom("kept", of=lambda view, event: not view.own.data.inline)
attempts_left = atom("attempts_left", of=lambda view, event: view.own.data.attempt < view.config.limits.task_attempts)
open_ = atom("open", reads=["session"], of=lambda view, event: view.session.state is HostSessionState.READY)
payload_inline = atom("payload_inline", of=lambda view, event: event.inline)
room = atom(
    "room",
    reads=["acceptance"],
    of=lambda view, event: (
        view.own.data.seq < MAX_SEQUENCE
        and (len(view.acceptance) < view.config.limits.acceptance_limit or view.acceptance.first(*ACCEPTANCE_OVER) is not None)
    ),
)
fetches = atom("fetches", of=lambda view, event: view.config.receives and not event.inline)


def seq_of(firing: Firing) -> int:
    """The task that is out."""
    return int(firing.data.seq)


OUTCOMES = {Verdict.ABORTED: TaskOutcome.ABORTED, Verdict.LOST: TaskOutcome.TRAINER_LOST}
"""What a task that ends with its session is said to be; SESSION_OVER where the verdict says no more."""


def by_verdict(firing: Firing) -> TaskOutcome:
    """How a task ends that ends with its session."""
    return OUTCOMES.get(firing.view.session.data.verdict, TaskOutcome.SESSION_OVER)


def _say(outcome: TaskOutcome) -> Any:
    return send(SUPERVISOR, TaskEnded, launch=own_launch, outcome=is_(outcome))


OFFER = send(
    CONTROL, TaskReady, epoch=session_epoch, seq=own("seq"), attempt=own("attempt"), floor=own("seq"), content=is_(0),
    receivers=own("receivers"), inline=own("inline"),
)  # fmt: skip
STATUS = send(CONTROL, TaskStatus, epoch=session_epoch, seq=own("seq"))
CANCEL = send(CONTROL, CancelTask, epoch=session_epoch, seq=own("seq"))
SAY_OVER = send(SUPERVISOR, TaskEnded, launch=own_launch, outcome=by_verdict)
SAY = {outcome: _say(outcome) for outcome in TaskOutcome}

ask_later = set_timer("task", "task_retry_s")
budget = set_timer("budget", "delivery_budget_s")
wait = set_timer("budget", "result_wait_s")
answered = cancel_timer("task")
quiet = [answered, cancel_timer("budget")]
expect = signal("acceptance", "expect", key=seq_of)
forsake = signal("acceptance", "cancel", key=seq_of)
offer_payload = signal("source", "offer", key=lambda f: Keys(((f.data.seq, 0),)), event=offered)
here = signal("acceptance", "arrived", key=seq_of)
let_go = signal("source", "release", key=sources_of(seq_of))


def retract(outcome: TaskOutcome) -> list[Any]:
    """Rules 4 and 5: forsake the result first, then tell whoever asked, then the trainer."""
    return then(forsake, let_go, SAY[outcome], CANCEL, cancel_timer("budget"), ask_later)


# fmt: off
DELIVERY = Machine(
    "delivery", DeliveryState, initial=S.IDLE, data=DeliveryData, timers=("task", "budget"),
    live={S.IDLE: ("seq",), S.WAITING: ("seq",), S.FETCHING: ("seq",), S.CANCELLING: ("seq",)},
    rows=[
    Row("D1",  (S.IDLE, S.CANCELLING), "execute", open_ & room & payload_inline, S.OFFERING, begin, [expect, OFFER, ask_later, budget], "Rules 1 and 4"),
    Row("D2",  (S.IDLE, S.CANCELLING), "execute", open_ & room & ~payload_inline, S.OFFERING, begin, [expect, offer_payload, OFFER, ask_later, budget], "Rules 1 and 4"),
    Row("D3",  (S.IDLE, S.CANCELLING), "execute", ~open_, SAME, keep, [SAY_OVER], "there is no session to run it in"),
    Row("D4",  (S.IDLE, S.CANCELLING), "execute", open_ & ~room, SAME, keep, [SAY[TaskOutcome.REFUSED]], "every result that is remembered is still being served"),
    # the trainer's answers
    Row("D5",  UNANSWERED, "accepted", this_task, S.WAITING, keep, [answered, wait, let_go], "the trainer has it, payload and all"),
    Row("D6",  UNANSWERED, "reserved", this_task, S.ASKING, keep, [ask_later], "its payload is coming in"),
    Row("D7",  S.ASKING,   "unknown", this_task & attempts_left & ~kept, S.OFFERING, another, [OFFER, ask_later], "Rule 2"),
    Row("D8",  S.ASKING,   "unknown", this_task & attempts_left & kept,  S.OFFERING, another, [offer_payload, OFFER, ask_later], "Rule 2"),
    Row("D9",  S.ASKING,   "unknown", this_task & ~attempts_left, S.CANCELLING, keep, retract(TaskOutcome.UNDELIVERED), "Rule 2: offered often enough"),
    Row("D10", UNANSWERED, "failed", this_task & no_payload & this_attempt & attempts_left & ~kept, S.OFFERING, another, [OFFER, ask_later], "Rule 2"),
    Row("D11", UNANSWERED, "failed", this_task & no_payload & this_attempt & attempts_left & kept, S.OFFERING, another, [offer_payload, OFFER, ask_later], "Rule 2"),
    Row("D12", UNANSWERED, "failed", this_task & no_payload & this_attempt & ~attempts_left, S.CANCELLING, keep, retract(TaskOutcome.UNDELIVERED), "Rule 2"),
    Row("D13", UNANSWERED, "failed", this_task & ~no_payload & busy & this_attempt, S.DEFERRED, keep, [ask_later], "it has no room yet; the budget says how long that may last"),
    Row("D14", UNANSWERED, "failed", this_task & ~no_payload & ~busy, S.IDLE, keep, then(forsake, let_go, quiet, SAY[TaskOutcome.REFUSED]), "the trainer will never run it"),
    # its result
    Row("D15", OUT,        "result", ~fetches, S.IDLE, keep, then(quiet, let_go, SAY[TaskOutcome.RESULT]), "Rule 3"),
    Row("D16", OUT,        "result", fetches, S.FETCHING, keep, then(quiet, let_go), "Rule 3; the host is a receiver itself"),
    Row("D17", S.FETCHING, "arrived", this_task & own_receiver, S.IDLE, keep, [here, SAY[TaskOutcome.RESULT]], "the result is here"),
    Row("D18", S.FETCHING, "missing", this_task & own_receiver, S.IDLE, keep, [SAY[TaskOutcome.RESULT_LOST]], "accepted, but it cannot be had"),
    Row("D19", OUT,        "exhausted", always, S.IDLE, keep, then(quiet, let_go, SAY[TaskOutcome.RESULT_LOST]), "the trainer published it as often as it may, and nothing came"),
    # time
    Row("D20", OFFERED,    "retry", always, S.ASKING, keep, [STATUS, ask_later], "Rule 2"),
    Row("D21", S.DEFERRED, "retry", always, S.OFFERING, keep, [OFFER, ask_later], "the same offer: there was no room for it, so it does not count"),
    Row("D22", S.CANCELLING, "retry", always, SAME, keep, [CANCEL, ask_later], "Rule 4"),
    Row("D23", UNANSWERED, "silence", always, S.CANCELLING, keep, retract(TaskOutcome.UNDELIVERED), "Rule 4: the budget is spent"),
    Row("D24", S.WAITING,  "silence", always, S.CANCELLING, keep, retract(TaskOutcome.TIMEOUT), "Rule 4: the result is late"),
    # the end
    Row("D25", ACTIVE,     "stop", always, S.CANCELLING, keep, retract(TaskOutcome.CANCELLED), "Rule 4"),
    Row("D26", S.CANCELLING, "cancelled", this_task, S.IDLE, keep, [answered], "Rule 4: the trainer will not run it"),
    Row("D27", ACTIVE,     "end", always, S.IDLE, keep, then(quiet, forsake, let_go, SAY_OVER), "the session is over"),
    Row("D28", S.CANCELLING, "end", always, S.IDLE, keep, [answered], "the session is over, and the task with it"),
    ],
    ignore=[
    Ignore("accepted", UNANSWERED, "another task's answer", ~this_task),
    Ignore("accepted", (S.IDLE, S.WAITING, S.FETCHING, S.CANCELLING), "known already, or too late"),
    Ignore("reserved", UNANSWERED, "another task's answer", ~this_task),
    Ignore("reserved", (S.IDLE, S.WAITING, S.FETCHING, S.CANCELLING), "known already, or too late"),
    Ignore("unknown", S.ASKING, "another task's answer", ~this_task),
    Ignore("unknown", (S.IDLE, S.OFFERING, S.DEFERRED, S.WAITING, S.FETCHING, S.CANCELLING), "an answer to an earlier question"),
    Ignore("failed", UNANSWERED, "another task's answer, or an earlier offer's", ~this_task | ((no_payload | busy) & ~this_attempt)),
    Ignore("failed", (S.IDLE, S.WAITING, S.FETCHING, S.CANCELLING), "an answer to an earlier offer"),
    Ignore(("arrived", "missing"), S.FETCHING, "another task's result, or another receiver's", ~(this_task & own_receiver)),
    Ignore(("arrived", "missing"), (S.IDLE, *OUT, S.CANCELLING), "nobody is waiting for it"),
    Ignore("retry", (S.IDLE, S.WAITING, S.FETCHING), "nothing is unanswered"),
    Ignore("silence", (S.IDLE, S.FETCHING, S.CANCELLING), "no wait is under way"),
    Ignore("stop", (S.IDLE, S.CANCELLING), "there is nothing to cancel"),
    Ignore("cancelled", S.CANCELLING, "another task's answer", ~this_task),
    Ignore("cancelled", (S.IDLE, *ACTIVE), "an answer to an earlier request"),
    Ignore("end", S.IDLE, "nothing is out"),
    Ignore(("result", "exhausted"), (S.IDLE, S.FETCHING, S.CANCELLING), "Rule 5: whoever asked was told already"),
    ],
    refuse=[Refuse("execute", ACTIVE, "the host has a task out; wait for its outcome, or cancel it")],
)
# fmt: on
