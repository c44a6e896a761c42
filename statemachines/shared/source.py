"""The source: a payload that is kept until its receiver holds it. One instance a task and receiver.

Rule 1.  A receiver that holds the whole payload settles its transfer by saying so; bytes that were served prove nothing.
Rule 2.  A receiver that does not come, stalls, or gives up fails its own transfer and nobody else's.
Rule 3.  A terminal state is written once. Every repetition is answered as the first one was.
Rule 4.  A payload that nobody is waiting for any more is let go, and its receiver is told.

The trainer keeps sources for results, the host for task payloads. A payload that rides in its message has no source.
"""

from __future__ import annotations

from enum import Enum

from troth.spec.core import Offer, Release, TransferOutcome
from troth.spec.emits import Emit, Firing, Forward, cancel_timer, effect, send, set_timer
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Family, Ignore, Machine, Row, keep
from troth.spec.messages import PayloadGone, PayloadReleased
from troth.statemachines.shared.words import DATA, session_epoch, then


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

broken = atom("broken", of=lambda view, event: event.outcome is TransferOutcome.FAILED)


def _seq(firing: Firing) -> int:
    return int(firing.key[0])  # type: ignore[index]


def _receiver(firing: Firing) -> int:
    return int(firing.key[1])  # type: ignore[index]


def source(kind: str, limit: str, *, report: list[Forward], watched: bool) -> Machine:
    """The sources of one party.

    ``kind`` names its transfers; ``report`` is signalled when a receiver is done; ``watched`` if a receiver that never comes is to
    fail after a while (a result), rather than with the delivery that offers the payload (a task).
    """
    released = send(DATA, PayloadReleased, epoch=session_epoch, seq=_seq, receiver=_receiver)
    gone = send(DATA, PayloadGone, epoch=session_epoch, seq=_seq, receiver=_receiver)
    offer = effect("offer", lambda f: Offer(kind, f.key))
    release = effect("release", lambda f: Release(kind, f.key))
    idle: list[Emit | Forward] = [set_timer("source", "source_idle_s", keyed=True)] if watched else []
    stall = set_timer("source", "transfer_stall_s", keyed=True)
    quiet = cancel_timer("source", keyed=True)

    # fmt: off
    rows = [
    Row("O1", S.ABSENT,  "offer",    always,  S.OFFERED, keep, [offer], "kept from now on"),
    Row("O2", LIVE,      "progress", always,  S.MOVING,  keep, [stall], "the receiver is fetching"),
    Row("O3", S.MOVING,  "ended",    ~broken, S.MOVING,  keep, [stall], "Rule 1: served is not held"),
    Row("O4", S.MOVING,  "ended",    broken,  S.OFFERED, keep, then(quiet, idle), "Rule 2: the receiver may resume"),
    Row("O5", LIVE,      "held",     always,  S.HELD,    keep, then(released, release, quiet, *report), "Rule 1"),
    Row("O6", DONE,      "held",     always,  SAME,      keep, [released], "Rule 3"),
    Row("O7", S.ABSENT,  "held",     always,  S.ABSENT,  keep, [released], "Rule 3: settled and forgotten is still held"),
    Row("O8", LIVE,      "abandoned", always, S.FAILED,  keep, then(release, quiet, *report), "Rule 2"),
    Row("O9", LIVE,      "silence",  always,  S.FAILED,  keep, then(gone, release, *report), "Rule 2: it does not come, or it has stalled"),
    Row("O10", LIVE,     "unable",   always,  S.FAILED,  keep, then(gone, release, quiet, *report), "Rule 2: it cannot be offered"),
    Row("O11", LIVE,     "release",  always,  S.ABSENT,  keep, [gone, release, quiet], "Rule 4"),
    Row("O12", DONE,     "release",  always,  S.ABSENT,  keep, [], "settled, and noted by the other side"),
    ]
    if watched:
        rows += [Row("O13", S.OFFERED, "watch", always, S.OFFERED, keep, idle, "accepted: from now on the receiver is expected")]
    ignore = [
    Ignore(("progress", "ended"), (S.ABSENT, *DONE), "Rule 3: bytes that were still under way"),
    Ignore("ended", S.OFFERED, "the transfer of an earlier try"),
    Ignore(("abandoned", "silence", "unable"), (S.ABSENT, *DONE), "Rule 3"),
    Ignore("offer", (*LIVE, *DONE), "offered already"),
    Ignore("release", S.ABSENT, "nothing is kept"),
    ]
    if watched:
        ignore += [Ignore("watch", (S.ABSENT, S.MOVING, *DONE), "the receiver came already")]
    # fmt: on
    family = Family("(sequence, receiver)", limit)
    return Machine("source", SourceState, initial=S.ABSENT, family=family, timers=("source",), rows=rows, ignore=ignore)
