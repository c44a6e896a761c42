"""The ledger: one entry a task, from its first offer until nobody can ask about it any more. Keyed by sequence.

Rule 1.  A task is queued once, handed over once and run once, however often it is offered. An offer of a known task is answered
         with what became of it.
Rule 2.  TASK_ACCEPTED says that the task is queued; nothing weaker does.
Rule 3.  A task is delivered when the thread that will run it takes it. Until then a caller that gives up puts it back.
Rule 4.  Whatever was cancelled stays cancelled; a cancel for a task that never came keeps it from coming.
Rule 5.  Every terminal entry can be evicted, so the ledger never grows above its limit; and an evicted sequence is stale for ever.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.core import Key, Resolve
from troth.spec.data import evolve
from troth.spec.emits import Firing, effect, send, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Family, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import DropPayload, FailReason, FetchPayload, Outcome, TaskAccepted, TaskFailed, TaskReserved, TaskUnknown
from troth.statemachines.shared.words import CONTROL, RECEIVERS, done, event_attempt, event_inline, is_, own, own_key, session_epoch
from troth.statemachines.trainer.states import open_


class LedgerState(Enum):
    """What became of a task."""

    ABSENT = "absent"
    RESERVED = "reserved"
    QUEUED = "queued"
    HANDED = "handed"
    DELIVERED = "delivered"
    PUBLISHING = "publishing"
    COMPLETE = "complete"
    CANCELLED = "cancelled"


S = LedgerState
WAITING = (S.QUEUED, S.HANDED, S.DELIVERED)
ACCEPTED = (*WAITING, S.PUBLISHING, S.COMPLETE)
UNPUBLISHED = (S.RESERVED, *WAITING)
TERMINAL = (S.COMPLETE, S.CANCELLED)
PRESENT = tuple(state for state in S if state is not S.ABSENT)


@frozen
class LedgerData:
    """What an entry must remember."""

    attempt: int = 0
    """The last offer that was heard, while the payload is coming in."""
    receivers: int = 0
    """How many receivers the result will have."""
    number: int = 0
    """The caller of receive() that the task was handed to."""


def reserve(data: LedgerData, event: Any) -> LedgerData:
    """Note the offer."""
    return evolve(data, attempt=event.attempt, receivers=event.receivers)


def hear(data: LedgerData, event: Any) -> LedgerData:
    """Note that it was offered again."""
    return evolve(data, attempt=max(data.attempt, event.attempt))


def hand_over(data: LedgerData, event: Any) -> LedgerData:
    """Note the caller."""
    return evolve(data, number=event.number)


mismatch = atom("mismatch", of=lambda view, event: event.content > 0)
room = atom("room", of=lambda view, event: len(view.ledger) < view.config.limits.ledger_limit)
evictable = atom("evictable", of=lambda view, event: view.ledger.first(*TERMINAL) is not None)


def _fresh(view: Any, event: Any) -> bool:
    intake = view.intake.data
    above = event.seq > intake.evicted and event.seq >= intake.floor
    return bool(above and (event.seq > intake.highest or event.seq == intake.retry))


fresh = atom("fresh", reads=["intake"], of=_fresh)


def oldest_terminal(firing: Firing) -> Key:
    """The entry that makes room."""
    found: Key = firing.view.ledger.first(*TERMINAL)
    return found


@frozen
class Sequence:
    """A sequence, for the intake."""

    seq: int


def this(firing: Firing) -> Sequence:
    """The entry's own sequence."""
    return Sequence(int(firing.key))  # type: ignore[arg-type]


def fail(reason: FailReason) -> Any:
    """TASK_FAILED for the offer at hand."""
    return send(CONTROL, TaskFailed, epoch=session_epoch, seq=own_key, attempt=event_attempt, reason=is_(reason))


ACCEPT = send(CONTROL, TaskAccepted, epoch=session_epoch, seq=own_key)
RESERVED = send(CONTROL, TaskReserved, epoch=session_epoch, seq=own_key)
UNKNOWN = send(CONTROL, TaskUnknown, epoch=session_epoch, seq=own_key)
STILL_CANCELLED = send(CONTROL, TaskFailed, epoch=session_epoch, seq=own_key, attempt=is_(0), reason=is_(FailReason.CANCELLED))
NO_PAYLOAD = send(CONTROL, TaskFailed, epoch=session_epoch, seq=own_key, attempt=own("attempt"), reason=is_(FailReason.PAYLOAD))
FETCH = send(RECEIVERS, FetchPayload, epoch=session_epoch, seq=own_key, inline=event_inline)
DROP = send(RECEIVERS, DropPayload, epoch=session_epoch, seq=own_key, lost=is_(False))

evict_oldest = signal("ledger", "evict", key=oldest_terminal)
again = signal("ledger", "task_ready", key=own_key)
handed = done("receive", Outcome.TASK, own_key)
taken = effect("resolve take TASK", lambda f: Resolve("take", f.event.number, Outcome.TASK, int(f.key)))  # type: ignore[arg-type]


def tell_intake(trigger: str) -> Any:
    """Tell the intake about this sequence."""
    return signal("intake", trigger, event=this)


# fmt: off
LEDGER = Machine(
    "ledger", LedgerState, initial=S.ABSENT, data=LedgerData, family=Family("sequence", "ledger_limit"),
    live={
        S.RESERVED: ("attempt", "receivers"), S.QUEUED: ("receivers",), S.HANDED: ("receivers", "number"), S.DELIVERED: ("receivers",),
        S.PUBLISHING: ("receivers",), S.COMPLETE: (), S.CANCELLED: (),
    },
    rows=[
    # an offer
    Row("K1",  S.ABSENT,   "task_ready", open_ & ~mismatch & fresh & room, S.RESERVED, reserve, [FETCH, tell_intake("reserved")], "the payload comes first"),
    Row("K2",  S.ABSENT,   "task_ready", open_ & ~mismatch & fresh & ~room & evictable, SAME, keep, [evict_oldest, again], "Rule 5"),
    Row("K3",  S.ABSENT,   "task_ready", open_ & ~mismatch & fresh & ~room & ~evictable, SAME, keep, [fail(FailReason.BUSY)], "full of live tasks"),
    Row("K4",  S.ABSENT,   "task_ready", open_ & ~mismatch & ~fresh, SAME, keep, [fail(FailReason.STALE)], "Rule 5: passed, fenced or evicted"),
    Row("K5",  S.ABSENT,   "task_ready", open_ & mismatch, SAME, keep, [fail(FailReason.MISMATCH)], "this sequence was another task"),
    Row("K6",  S.ABSENT,   "task_ready", ~open_, SAME, keep, [fail(FailReason.ENDED)], "the session takes no more tasks"),
    Row("K7",  S.RESERVED, "task_ready", ~mismatch, SAME, hear, [RESERVED], "Rule 2: not yet"),
    Row("K8",  ACCEPTED,   "task_ready", ~mismatch, SAME, keep, [ACCEPT], "Rule 1"),
    Row("K9",  S.CANCELLED, "task_ready", ~mismatch, SAME, keep, [fail(FailReason.CANCELLED)], "Rule 4"),
    Row("K10", PRESENT,    "task_ready", mismatch, SAME, keep, [fail(FailReason.MISMATCH)], "this sequence is another task"),
    # its payload
    Row("K11", S.RESERVED, "arrived", always, S.QUEUED, keep, [ACCEPT, tell_intake("queued")], "Rule 2"),
    Row("K12", S.RESERVED, "missing", always, S.ABSENT, keep, [NO_PAYLOAD, tell_intake("failed")], "the host may offer it again"),
    # to the user
    Row("K13", S.QUEUED,   "hand", always, S.HANDED, hand_over, [handed], "Rule 3"),
    Row("K14", S.HANDED,   "take", always, S.DELIVERED, keep, [taken, tell_intake("taken")], "Rule 3"),
    Row("K15", S.HANDED,   "put_back", always, S.QUEUED, keep, [tell_intake("queued")], "Rule 3"),
    Row("K16", S.DELIVERED, "publish", always, S.PUBLISHING, keep, [], "its result is on the way"),
    Row("K17", S.PUBLISHING, "over", always, S.COMPLETE, keep, [], "its result was settled, or will never be taken"),
    # cancelled, stopped, forgotten
    Row("K18", S.ABSENT,   "cancel", always, SAME, keep, [tell_intake("skipped")], "Rule 4"),
    Row("K19", S.RESERVED, "cancel", always, S.CANCELLED, keep, [DROP], "Rule 4"),
    Row("K20", WAITING,    "cancel", always, S.CANCELLED, keep, [], "Rule 4"),
    Row("K21", S.PUBLISHING, "cancel", always, S.CANCELLED, keep, [signal("publication", "cancel", key=own_key)], "Rule 4: its result goes with it"),
    Row("K22", S.RESERVED, "stop", always, S.CANCELLED, keep, [DROP], "no more tasks are begun"),
    Row("K23", WAITING,    "stop", always, S.CANCELLED, keep, [], "no more tasks are begun, and no result of one that is unsent"),
    Row("K24", TERMINAL,   "evict", always, S.ABSENT, keep, [signal("publication", "forget", key=own_key), tell_intake("evicted")], "Rule 5"),
    Row("K25", S.RESERVED, "forget", always, S.ABSENT, keep, [DROP], "a new session starts empty"),
    Row("K26", (*WAITING, S.PUBLISHING, *TERMINAL), "forget", always, S.ABSENT, keep, [], "a new session starts empty"),
    # questions
    Row("K27", S.ABSENT,   "status", always, SAME, keep, [UNKNOWN], "nothing is known of it"),
    Row("K28", S.RESERVED, "status", always, SAME, keep, [RESERVED], "Rule 2"),
    Row("K29", ACCEPTED,   "status", always, SAME, keep, [ACCEPT], "Rule 2"),
    Row("K30", S.CANCELLED, "status", always, SAME, keep, [STILL_CANCELLED], "Rule 4"),
    ],
    ignore=[
    Ignore(("arrived", "missing"), (S.ABSENT, *ACCEPTED, S.CANCELLED), "a fetch that was dropped"),
    Ignore("over", (S.ABSENT, S.RESERVED, *WAITING, *TERMINAL), "Rule 4: it was cancelled before its result was settled"),
    Ignore("cancel", TERMINAL, "Rule 4: over already"),
    Ignore("stop", (S.ABSENT, S.PUBLISHING, *TERMINAL), "a result that is being published goes on"),
    Ignore("forget", S.ABSENT, "nothing is kept"),
    ],
    refuse=[
    Refuse("hand", (S.ABSENT, S.RESERVED, S.HANDED, S.DELIVERED, S.PUBLISHING, *TERMINAL), "only a queued task can be handed over"),
    Refuse(("take", "put_back"), (S.ABSENT, S.RESERVED, S.QUEUED, S.DELIVERED, S.PUBLISHING, *TERMINAL), "only a handed task can be taken"),
    Refuse("publish", (S.ABSENT, S.RESERVED, S.QUEUED, S.HANDED, S.PUBLISHING, *TERMINAL), "only a task that the user holds has a result"),
    Refuse("evict", (S.ABSENT, S.RESERVED, *WAITING, S.PUBLISHING), "only a terminal entry may be evicted"),
    ],
)
# fmt: on
