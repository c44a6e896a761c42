"""The source: a payload that is kept until its receiver holds it. One instance a task and receiver.

Rule 1.  A receiver that holds the whole payload settles its transfer by saying so; bytes that were served prove nothing.
Rule 2.  A receiver that does not come, stalls, or gives up fails its own transfer and nobody else's.
Rule 3.  What was settled stays settled. Every repetition is answered as the first one was.
Rule 4.  A payload that nobody is waiting for any more is let go, and its receiver is told.

The trainer keeps sources for results, the host for task payloads. A payload that rides in its message has no source.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.core import Offer, Release
from troth.spec.data import evolve
from troth.spec.emits import Firing, Forward, Keys, cancel_timer, effect, send, set_timer
from troth.spec.guards import always
from troth.spec.machine import SAME, Family, Ignore, Machine, Row, keep
from troth.spec.messages import PayloadGone, PayloadReleased
from troth.statemachines.shared.words import DATA, event_epoch, own, session_epoch, then


class SourceState(Enum):
    """Where one receiver is with one payload."""

    ABSENT = "absent"
    OFFERED = "offered"
    MOVING = "moving"
    HELD = "held"
    FAILED = "failed"


S = SourceState
LIVE = (S.OFFERED, S.MOVING)
DONE = (S.HELD, S.FAILED)


@frozen
class SourceData:
    """The session that the payload belongs to."""

    epoch: int = 0


@frozen
class Offered:
    """A payload is to be kept, in the session of ``epoch``."""

    epoch: int


def offered(firing: Firing) -> Offered:
    """Offer it in the party's session."""
    return Offered(session_epoch(firing))


def sources_of(seq: Callable[[Firing], Any]) -> Callable[[Firing], Keys]:
    """The sources that the payload of a task has."""

    def found(firing: Firing) -> Keys:
        wanted = seq(firing)
        return Keys(tuple(key for key in firing.view.source if key[0] == wanted))

    found.__name__ = "its_sources"
    return found


def note_epoch(data: SourceData, event: Any) -> SourceData:
    """Remember the session: a later one may have begun when the payload is let go."""
    return evolve(data, epoch=event.epoch)


def _seq(firing: Firing) -> int:
    return int(firing.key[0])  # type: ignore[index]


def _receiver(firing: Firing) -> int:
    return int(firing.key[1])  # type: ignore[index]


def source(kind: str, limit: str, *, report: list[Forward], watched: bool) -> Machine:
    """The sources of one party.

    ``kind`` names its transfers; ``report`` is signalled when a receiver is done; ``watched`` if a receiver that never comes, or that
    says that it gave up, fails its transfer (a result), rather than the delivery that offers the payload (a task).
    """
    released = send(DATA, PayloadReleased, epoch=event_epoch, seq=_seq, receiver=_receiver)
    gone = send(DATA, PayloadGone, epoch=own("epoch"), seq=_seq, receiver=_receiver)
    offer = effect("offer", lambda f: Offer(kind, f.key))
    release = effect("release", lambda f: Release(kind, f.key))
    stall = set_timer("source", "transfer_stall_s", keyed=True)
    quiet = cancel_timer("source", keyed=True)
    idle = set_timer("source", "source_idle_s", keyed=True) if watched else quiet

    # fmt: off
    rows = [
    Row("O1", (S.ABSENT, S.FAILED), "offer", always, S.OFFERED, note_epoch, [offer], "kept from now on"),
    Row("O2", LIVE,      "progress", always,  S.MOVING,  keep, [stall], "the receiver is fetching"),
    Row("O3", S.MOVING,  "ended",    always,  S.OFFERED, keep, [idle], "Rule 1: served is not held; Rule 2: what broke off may be resumed"),
    Row("O4", S.MOVING,  "silence",  always,  S.OFFERED, keep, [idle], "Rule 2: it has stalled, and may be resumed"),
    Row("O5", LIVE,      "held",     always,  S.HELD,    keep, then(released, release, quiet, *report), "Rule 1"),
    Row("O6", S.HELD,    "held",     always,  SAME,      keep, [released], "Rule 3"),
    Row("O7", S.FAILED,  "held",     always,  S.HELD,    keep, then(released, *report), "Rule 1: it came after all, and counts unless the failure was settled"),
    Row("O8", S.ABSENT,  "held",     always,  SAME,      keep, [released], "Rule 3: settled and forgotten is still held"),
    Row("O9", LIVE,      "unable",   always,  S.FAILED,  keep, then(gone, release, quiet, *report), "Rule 2: it cannot be offered"),
    Row("O10", LIVE,     "release",  always,  S.ABSENT,  keep, [gone, release, quiet], "Rule 4"),
    Row("O11", DONE,     "release",  always,  S.ABSENT,  keep, [], "settled, and noted by the other side"),
    ]
    ignore = [
    Ignore(("progress", "ended"), (S.ABSENT, *DONE), "Rule 3: bytes that were still under way"),
    Ignore("ended", S.OFFERED, "the transfer of an earlier try"),
    Ignore(("silence", "abandoned", "unable"), (S.ABSENT, *DONE), "Rule 3"),
    Ignore("offer", (*LIVE, S.HELD), "offered already"),
    Ignore("release", S.ABSENT, "nothing is kept"),
    ]
    if watched:
        rows += [
    Row("O12", S.OFFERED, "silence", always, S.FAILED,  keep, then(gone, release, *report), "Rule 2: it does not come"),
    Row("O13", LIVE,     "abandoned", always, S.FAILED, keep, then(release, quiet, *report), "Rule 2: it gave up"),
    Row("O14", S.OFFERED, "watch",   always, S.OFFERED, keep, [idle], "accepted: from now on the receiver is expected"),
        ]
        ignore += [Ignore("watch", (S.ABSENT, S.MOVING, *DONE), "the receiver came already")]
    else:
        ignore += [
    Ignore("silence", S.OFFERED, "its timer was stopped"),
    Ignore("abandoned", LIVE, "the trainer says on its control link what became of the task"),
        ]
    # fmt: on
    return Machine(
        "source",
        SourceState,
        initial=S.ABSENT,
        data=SourceData,
        live={S.HELD: (), S.FAILED: ()},
        family=Family("(sequence, receiver)", limit),
        timers=("source",),
        rows=rows,
        ignore=ignore,
    )
