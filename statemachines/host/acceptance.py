"""The acceptance: what the host decided about the result of a task, and goes on saying. Keyed by the task's sequence.

Rule 1.  One attempt is canonical, for ever. Whoever asks again, in whatever way, is told the same.
Rule 2.  What is remembered is looked up before anything else is considered: no gate, no closing, no newer task comes first.
Rule 3.  UNKNOWN is a promise: attempts up to the one asked about will not be taken any more. After the last attempt the answer
         is REJECTED, and remembered.
Rule 4.  An accepted result whose source is still needed is watched. It is settled once, or lost once, or given up by the host
         itself; the receivers are told of a loss once. A result that every receiver holds is safe, whatever becomes of the trainer.
Rule 5.  What the host gives up it gives up itself, first, before it tells the trainer: a cancelled task fails nothing.
Rule 6.  Only what is over may be forgotten, oldest first; a result that was taken, only when the trainer has noted its end or was told
         that its task is cancelled.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.core import Key
from troth.spec.data import evolve
from troth.spec.emits import Firing, send, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Family, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import (
    DropPayload,
    FetchPayload,
    RejectReason,
    ResultAccepted,
    ResultLost,
    ResultRejected,
    ResultSourceReleased,
    ResultUnknown,
)
from troth.statemachines.shared.words import (
    CONTROL,
    RECEIVERS,
    SUPERVISOR,
    event_attempt,
    is_,
    own,
    own_key,
    own_launch,
    session_epoch,
    sets,
)


class AcceptanceState(Enum):
    """What was decided."""

    ABSENT = "absent"
    AWAITING = "awaiting"
    ACCEPTED = "accepted"
    SAFE = "safe"
    SETTLED = "settled"
    LOST = "lost"
    RETIRED = "retired"
    REJECTED = "rejected"


S = AcceptanceState
TAKEN = (S.ACCEPTED, S.SAFE, S.SETTLED, S.LOST, S.RETIRED)
OVER = (S.SETTLED, S.LOST, S.RETIRED, S.REJECTED)
LIVE = (S.AWAITING, S.ACCEPTED, S.SAFE)


@frozen
class AcceptanceData:
    """What must be remembered."""

    receivers: int = 0
    """How many receivers the result has."""
    canonical: int = 0
    """The attempt that was accepted."""
    content: int = 0
    """Its content."""
    fenced: int = 0
    """Attempts up to this one will not be taken (Rule 3)."""
    reason: RejectReason = RejectReason.STALE
    """Why it was rejected."""


def expect(data: AcceptanceData, event: Any) -> AcceptanceData:
    """A task went out."""
    return evolve(data, receivers=event.receivers)


def take(data: AcceptanceData, event: Any) -> AcceptanceData:
    """Rule 1."""
    return evolve(data, canonical=event.attempt, content=event.content)


def fence(data: AcceptanceData, event: Any) -> AcceptanceData:
    """Rule 3."""
    return evolve(data, fenced=max(data.fenced, event.attempt))


exhaust = sets("exhaust", reason=RejectReason.EXHAUSTED)
"""Rule 3: there will be no other attempt."""

give_up = sets("give_up", reason=RejectReason.CANCELLED)
"""Rule 5."""

inline = atom("inline", of=lambda view, event: event.inline)
fenced = atom("fenced", of=lambda view, event: event.attempt <= view.own.data.fenced)
same_content = atom("same_content", of=lambda view, event: event.content == view.own.data.content)
sole = atom("sole", of=lambda view, event: view.config.receives and view.own.data.receivers == 1)
last_attempt = atom("last_attempt", of=lambda view, event: event.last)
delivered = atom("delivered", of=lambda view, event: event.delivered)
room = atom("room", of=lambda view, event: len(view.acceptance) < view.config.limits.acceptance_limit)


def oldest_over(firing: Firing) -> Key:
    """What makes room."""
    found: Key = firing.view.acceptance.first(*OVER)
    return found


def reject(reason: RejectReason) -> Any:
    """RESULT_REJECTED for a reason that needs no memory."""
    return send(CONTROL, ResultRejected, epoch=session_epoch, seq=own_key, reason=is_(reason))


ACCEPTED = send(CONTROL, ResultAccepted, epoch=session_epoch, seq=own_key, attempt=own("canonical"))
REJECTED = send(CONTROL, ResultRejected, epoch=session_epoch, seq=own_key, reason=own("reason"))
UNKNOWN = send(CONTROL, ResultUnknown, epoch=session_epoch, seq=own_key, attempt=event_attempt)
NOTED = send(CONTROL, ResultSourceReleased, epoch=session_epoch, seq=own_key)
FETCH = send(RECEIVERS, FetchPayload, epoch=session_epoch, seq=own_key, inline=is_(False))
LOST = send(RECEIVERS, DropPayload, epoch=session_epoch, seq=own_key, lost=is_(True))
DROP = send(RECEIVERS, DropPayload, epoch=session_epoch, seq=own_key, lost=is_(False))
REPORT = send(SUPERVISOR, ResultLost, launch=own_launch)

result = signal("delivery", "result")
exhausted = signal("delivery", "exhausted")
evict_oldest = signal("acceptance", "evict", key=oldest_over)
again = signal("acceptance", "expect", key=own_key)

# fmt: off
ACCEPTANCE = Machine(
    "acceptance", AcceptanceState, initial=S.ABSENT, data=AcceptanceData, family=Family("sequence", "acceptance_limit"),
    live={
        S.AWAITING: ("receivers", "fenced"), S.ACCEPTED: ("receivers", "canonical", "content"), S.SAFE: ("canonical", "content"),
        S.SETTLED: ("canonical", "content"), S.LOST: ("canonical", "content"), S.RETIRED: ("canonical", "content"), S.REJECTED: ("reason",),
    },
    rows=[
    Row("A1",  S.ABSENT,   "expect", room,  S.AWAITING, expect, [], "a task went out"),
    Row("A2",  S.ABSENT,   "expect", ~room, SAME, keep, [evict_oldest, again], "Rule 6"),
    # a result
    Row("A3",  S.AWAITING, "result_ready", ~fenced & inline,  S.SAFE,  take, [ACCEPTED, result], "Rule 1; a payload that rode along is here"),
    Row("A4",  S.AWAITING, "result_ready", ~fenced & ~inline, S.ACCEPTED, take, [ACCEPTED, FETCH, result], "Rule 1; the receivers may fetch it"),
    Row("A5",  TAKEN,      "result_ready", same_content,  SAME, keep, [ACCEPTED], "Rules 1 and 2"),
    Row("A6",  TAKEN,      "result_ready", ~same_content, SAME, keep, [reject(RejectReason.CONFLICT)], "Rule 1: another content is not the one that was taken"),
    Row("A7",  S.REJECTED, "result_ready", always, SAME, keep, [REJECTED], "Rule 2: rejections are remembered too"),
    Row("A8",  S.ABSENT,   "result_ready", always, SAME, keep, [reject(RejectReason.STALE)], "no such task, or over so long that it was forgotten"),
    # a question
    Row("A9",  S.AWAITING, "result_status", ~last_attempt, SAME, fence, [UNKNOWN], "Rule 3"),
    Row("A10", S.AWAITING, "result_status", last_attempt, S.REJECTED, exhaust, [REJECTED, exhausted], "Rule 3"),
    Row("A11", TAKEN,      "result_status", always, SAME, keep, [ACCEPTED], "Rule 1"),
    Row("A12", S.REJECTED, "result_status", always, SAME, keep, [REJECTED], "Rule 2"),
    Row("A13", S.ABSENT,   "result_status", always, SAME, keep, [reject(RejectReason.STALE)], "no such task, or over so long that it was forgotten"),
    # its source
    Row("A14", S.ACCEPTED, "settled", delivered,  S.SETTLED, keep, [NOTED], "Rule 4"),
    Row("A15", S.ACCEPTED, "arrived", sole, S.SAFE, keep, [], "Rule 4: the host was its only receiver"),
    Row("A16", S.SAFE,     "settled", always, S.SETTLED, keep, [NOTED], "Rule 4"),
    Row("A17", S.SAFE,     "lose",    always, S.SETTLED, keep, [], "Rule 4: nobody needs the trainer for it"),
    Row("A18", S.ACCEPTED, "settled", ~delivered, S.LOST, keep, [NOTED, LOST, REPORT], "Rule 4"),
    Row("A19", (S.ABSENT, *OVER), "settled", always, SAME, keep, [NOTED], "Rule 4: said again, or decided otherwise already"),
    Row("A20", S.ACCEPTED, "lose",   always, S.LOST, keep, [LOST, REPORT], "Rule 4: the trainer is gone, and the source with it"),
    # given up
    Row("A21", S.ACCEPTED, "cancel", always, S.RETIRED, keep, [DROP], "Rule 5"),
    Row("A22", S.AWAITING, "cancel", always, S.REJECTED, give_up, [], "Rule 5: a result that still comes is told so"),
    Row("A23", S.AWAITING, "lose",   always, S.REJECTED, give_up, [], "no result can come any more"),
    Row("A24", OVER,       "evict",  always, S.ABSENT, keep, [], "Rule 6"),
    ],
    ignore=[
    Ignore("result_ready", S.AWAITING, "Rule 3: an attempt that was asked about and not there; the trainer has sent, or will send, another", fenced),
    Ignore(("lose", "cancel"), (S.ABSENT, *OVER), "decided already"),
    Ignore("cancel", S.SAFE, "Rule 4: it is here, and nothing is left to give up"),
    Ignore("arrived", S.ACCEPTED, "Rule 4: others need the source yet", ~sole),
    Ignore("arrived", (S.ABSENT, S.AWAITING, S.SAFE, *OVER), "decided already"),
    ],
    refuse=[
    Refuse("expect", (*LIVE, *OVER), "sequences only move forward"),
    Refuse("settled", S.AWAITING, "only an accepted result can be settled"),
    Refuse("evict", (S.ABSENT, *LIVE), "only what is over may be forgotten"),
    ],
)
# fmt: on
