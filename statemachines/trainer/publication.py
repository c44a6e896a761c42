"""The publication: one result, from ``send()`` until the host has noted that its receivers are done. Keyed by the task's sequence.

Rule 1.  Attempts belong to the result, not to a call. Sending the same content again joins or repeats the outcome; other content
         for the same task is a conflict.
Rule 2.  An answer that did not come is asked for before anything is sent again. UNKNOWN means that no earlier attempt will be taken
         any more, so the next one may be sent; after the last one the host says REJECTED instead.
Rule 3.  Acceptance is what the host says, in answer to a result or to a question. That bytes were fetched proves nothing.
Rule 4.  An accepted result is served until every receiver is done, then settled with its outcome; the notice is repeated until the
         host has noted it. Only then does send() return, so that a script that ends after it has lost nothing.
Rule 5.  ABORT ends everything at once, the notice too; a result whose receivers are done is accepted all the same. A cancel ends
         what is not settled yet.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.data import evolve
from troth.spec.emits import Firing, Forward, Keys, cancel_timer, send, set_timer, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Family, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import Outcome, ResultReady, ResultSourceSettled, ResultStatus
from troth.statemachines.shared.source import DONE as SOURCE_DONE
from troth.statemachines.shared.source import SourceState, offered, sources_of
from troth.statemachines.shared.words import CONTROL, done, is_, own, own_key, session_epoch, sets
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.states import ENDED, verdict_outcome


class PublicationState(Enum):
    """Where a result is."""

    ABSENT = "absent"
    SENDING = "sending"
    ASKING = "asking"
    ACCEPTED = "accepted"
    SETTLING = "settling"
    SETTLED = "settled"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


S = PublicationState
OPEN = (S.SENDING, S.ASKING)
BUSY = (*OPEN, S.ACCEPTED, S.SETTLING)
TERMINAL = (S.SETTLED, S.REJECTED, S.CANCELLED)


@frozen
class PublicationData:
    """What must be remembered of a result."""

    attempt: int = 0
    """The last attempt that was sent."""
    inline: bool = False
    """The payload rides in the message."""
    delivered: bool = False
    """Every receiver holds it."""
    aborted: bool = False
    """It was the end of the session that cancelled it."""


def first(data: PublicationData, event: Any) -> PublicationData:
    """The first attempt."""
    return evolve(data, attempt=1, inline=event.payload.inline)


def another(data: PublicationData, event: Any) -> PublicationData:  # noqa: ARG001
    """Rule 2."""
    return evolve(data, attempt=data.attempt + 1)


deliver_all = sets("deliver_all", delivered=True)
"""Every receiver holds it."""

end_with_session = sets("end_with_session", aborted=True)
"""Rule 5."""


def receivers(firing: Firing) -> Keys:
    """The sources of this result."""
    count = firing.view.ledger[firing.key].data.receivers
    return Keys(tuple((firing.key, receiver) for receiver in range(count)))  # type: ignore[misc]


def _all(view: Any, *states: SourceState) -> bool:
    return all(slot.state in states for key, slot in view.source.items() if key[0] == view.key)


held = atom("held", reads=["ledger"], of=lambda view, event: view.ledger[view.key].state is LedgerState.DELIVERED)
revoked = atom(
    "revoked",
    reads=["ledger"],
    of=lambda view, event: view.key > 0 and view.ledger[view.key].state in (LedgerState.CANCELLED, LedgerState.ABSENT),
)
superseded = atom("superseded", reads=["intake"], of=lambda view, event: view.intake.data.superseded)
over = atom("over", reads=["session"], of=lambda view, event: view.session.state in ENDED)
inline = atom("inline", of=lambda view, event: event.payload.inline)
same_content = atom("same_content", of=lambda view, event: event.payload.content == 0)
this_attempt = atom("this_attempt", of=lambda view, event: event.attempt == view.own.data.attempt)
attempts_left = atom("attempts_left", of=lambda view, event: view.own.data.attempt < view.config.limits.result_attempts)
sources_done = atom("sources_done", reads=["source"], of=lambda view, event: _all(view, *SOURCE_DONE))
all_held = atom("all_held", reads=["source"], of=lambda view, event: _all(view, SourceState.HELD))
delivered = atom("delivered", of=lambda view, event: view.own.data.delivered)
aborted = atom("aborted", of=lambda view, event: view.own.data.aborted)

READY = send(CONTROL, ResultReady, epoch=session_epoch, seq=own_key, attempt=own("attempt"), content=is_(0), inline=own("inline"))


def is_last(firing: Firing) -> bool:
    """Whether no other attempt would follow."""
    return bool(firing.data.attempt >= firing.view.config.limits.result_attempts)


STATUS = send(CONTROL, ResultStatus, epoch=session_epoch, seq=own_key, attempt=own("attempt"), last=is_last)
SETTLED = send(CONTROL, ResultSourceSettled, epoch=session_epoch, seq=own_key, delivered=own("delivered"))


def its_caller(firing: Firing) -> str:
    """The call that waits for this task's result, among the calls."""
    return f"send/{firing.key}"


def answer(outcome: Outcome | Callable[[Firing], Outcome]) -> Forward:
    """Let whoever waits in send() for this task return; the value is the task's sequence."""
    return done("send", outcome, own_key, key=its_caller)


SAY_ACCEPTED = answer(Outcome.ACCEPTED)
SAY_UNDELIVERED = answer(Outcome.UNDELIVERED)

wait = set_timer("result", "result_retry_s", keyed=True)
quiet = cancel_timer("result", keyed=True)
its_sources = sources_of(own_key)
publish = signal("ledger", "publish", key=own_key)
offer = signal("source", "offer", key=receivers, event=offered)
let_go = signal("source", "release", key=its_sources)
check = signal("publication", "check", key=own_key)
task_over = signal("ledger", "over", key=own_key)
settled = signal("session", "settled")
watch = signal("source", "watch", key=its_sources)


# fmt: off
PUBLICATION = Machine(
    "publication", PublicationState, initial=S.ABSENT, data=PublicationData, family=Family("sequence", "ledger_limit"), timers=("result",),
    live={
        S.SENDING: ("attempt", "inline"), S.ASKING: ("attempt", "inline"), S.ACCEPTED: (), S.SETTLING: ("delivered",),
        S.SETTLED: ("delivered",), S.REJECTED: (), S.CANCELLED: ("aborted",),
    },
    rows=[
    # send()
    Row("N1",  S.ABSENT, "send", held & inline,  S.SENDING, first, [READY, wait, publish], "a small payload rides along"),
    Row("N2",  S.ABSENT, "send", held & ~inline, S.SENDING, first, [READY, wait, offer, publish], "a large one waits at its sources"),
    Row("N3",  S.ABSENT, "send", ~held & over,   SAME, keep, [answer(verdict_outcome)], "the session is over, so the result has nowhere to go"),
    Row("N4",  S.ABSENT, "send", ~held & ~over & revoked, SAME, keep, [answer(Outcome.CANCELLED)], "the host gave the task up"),
    Row("N5",  S.ABSENT, "send", ~held & ~over & ~revoked & superseded, SAME, keep, [answer(Outcome.SUPERSEDED)], "its session is gone"),
    Row("N6",  BUSY,     "send", ~same_content,  SAME, keep, [answer(Outcome.CONFLICT)], "Rule 1"),
    Row("N7",  S.SETTLED, "send", ~same_content, SAME, keep, [answer(Outcome.CONFLICT)], "Rule 1"),
    Row("N8",  S.SETTLED, "send", same_content & delivered,  SAME, keep, [SAY_ACCEPTED], "Rule 1"),
    Row("N9",  S.SETTLED, "send", same_content & ~delivered, SAME, keep, [SAY_UNDELIVERED], "Rule 1"),
    Row("N10", S.REJECTED, "send", always, SAME, keep, [answer(Outcome.REJECTED)], "Rule 1"),
    Row("N11", S.CANCELLED, "send", ~aborted, SAME, keep, [answer(Outcome.CANCELLED)], "Rule 1"),
    Row("N12", S.CANCELLED, "send", aborted,  SAME, keep, [answer(verdict_outcome)], "Rule 1"),
    # what became of it
    Row("N13", OPEN,     "retry", always, S.ASKING, keep, [STATUS, wait], "Rule 2"),
    Row("N14", S.ASKING, "unknown", this_attempt & attempts_left, S.SENDING, another, [READY, wait], "Rule 2"),
    Row("N15", OPEN,     "accepted", always, S.ACCEPTED, keep, [quiet, watch, check], "Rule 3"),
    Row("N16", OPEN,     "rejected", always, S.REJECTED, keep, [quiet, let_go, task_over, answer(Outcome.REJECTED), settled], "the host will never take it"),
    # its receivers
    Row("N17", S.ACCEPTED, "check", sources_done & all_held,  S.SETTLING, deliver_all, [SETTLED, wait], "Rule 4"),
    Row("N18", S.ACCEPTED, "check", sources_done & ~all_held, S.SETTLING, keep, [SETTLED, wait], "Rule 4: and a receiver is missing it"),
    Row("N19", S.SETTLING, "retry", always, SAME, keep, [SETTLED, wait], "Rule 4"),
    Row("N20", S.SETTLING, "noted", delivered,  S.SETTLED, keep, [quiet, let_go, task_over, SAY_ACCEPTED, settled], "Rule 4"),
    Row("N21", S.SETTLING, "noted", ~delivered, S.SETTLED, keep, [quiet, let_go, task_over, SAY_UNDELIVERED, settled], "Rule 4"),
    # cut short
    Row("N22", (*OPEN, S.ACCEPTED), "cancel", always, S.CANCELLED, keep, [quiet, let_go, answer(Outcome.CANCELLED), settled], "Rule 5"),
    Row("N23", (*OPEN, S.ACCEPTED), "abort", always, S.CANCELLED, end_with_session, [quiet, let_go, answer(verdict_outcome)], "Rule 5"),
    Row("N24", S.SETTLING, "abort", delivered,  S.SETTLED, keep, [quiet, let_go, SAY_ACCEPTED], "Rule 5"),
    Row("N25", S.SETTLING, "abort", ~delivered, S.SETTLED, keep, [quiet, let_go, SAY_UNDELIVERED], "Rule 5"),
    Row("N26", (*OPEN, S.ACCEPTED), "forget", always, S.ABSENT, keep, [quiet, let_go, answer(Outcome.SUPERSEDED)], "a new session starts empty"),
    Row("N27", S.SETTLING, "forget", delivered,  S.ABSENT, keep, [quiet, let_go, SAY_ACCEPTED], "a new session starts empty"),
    Row("N28", S.SETTLING, "forget", ~delivered, S.ABSENT, keep, [quiet, let_go, SAY_UNDELIVERED], "a new session starts empty"),
    Row("N29", TERMINAL, "forget", always, S.ABSENT, keep, [], "its task is forgotten"),
    ],
    ignore=[
    Ignore("send", BUSY, "Rule 1: the call joins the one under way", same_content),
    Ignore("retry", (S.ABSENT, S.ACCEPTED, *TERMINAL), "nothing is unanswered"),
    Ignore("unknown", S.ASKING, "an answer about an earlier attempt", ~this_attempt),
    Ignore("unknown", (S.ABSENT, S.SENDING, S.ACCEPTED, S.SETTLING, *TERMINAL), "an answer to an earlier question"),
    Ignore("accepted", (S.ABSENT, S.ACCEPTED, S.SETTLING, S.SETTLED, S.CANCELLED), "known already, or too late to matter"),
    Ignore("rejected", (S.ABSENT, S.ACCEPTED, S.SETTLING, *TERMINAL), "known already, or a repetition that outlived the host's memory"),
    Ignore("check", (S.ABSENT, *OPEN, S.SETTLING, *TERMINAL), "Rule 3: nothing to settle before it is accepted, nor twice"),
    Ignore("check", S.ACCEPTED, "Rule 4: a receiver is still fetching", ~sources_done),
    Ignore("noted", (S.ABSENT, *OPEN, S.ACCEPTED, *TERMINAL), "an answer to an earlier notice"),
    Ignore("cancel", (S.ABSENT, S.SETTLING, *TERMINAL), "Rule 5: settled already"),
    Ignore("abort", (S.ABSENT, *TERMINAL), "nothing is under way"),
    Ignore("forget", S.ABSENT, "nothing is kept"),
    ],
    refuse=[
    Refuse("send", S.ABSENT, "there is no task to answer; receive() one first", ~held & ~over & ~revoked & ~superseded),
    Refuse("unknown", S.ASKING, "after the last attempt the host says REJECTED, not UNKNOWN", this_attempt & ~attempts_left),
    Refuse("accepted", S.REJECTED, "the host rejected this result before"),
    ],
)
# fmt: on
