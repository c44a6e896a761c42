"""The receiver: one download of one payload, from being told to fetch it until its source may let go.

Rule 1.  Whoever holds the whole payload says so, and says it again until the source has heard, a limited number of times: that is
         what settles a transfer.
Rule 2.  A transfer that fails or stalls is taken up again where it stopped, after a pause and a limited number of times.
Rule 3.  A loss that is announced stops the download, also before it has begun; to a receiver that holds the payload already it
         means nothing.
Rule 4.  A payload that rides in its message has no source: it is only decoded.

Whoever drives a party makes one a FETCH_PAYLOAD: a host for a result that it wants itself, a trainer for a task that is coming in.
Other receivers of a result have their own.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec import core
from troth.spec import messages as m
from troth.spec.core import CancelTransfer, Pull, TransferOutcome
from troth.spec.data import evolve
from troth.spec.emits import Firing, cancel_timer, effect, send, set_timer
from troth.spec.engine import PartyCore
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Ignore, Machine, Row, keep
from troth.spec.party import Party, To, happened, received, timer
from troth.statemachines.shared.words import DATA, Deployment, own, sets

PARTY = "party"
"""The local link from a receiver to the party that it fetches for."""


class DownloadState(Enum):
    """How far the download is."""

    IDLE = "idle"
    PULLING = "pulling"
    HELD = "held"
    DONE = "done"
    LOST = "lost"
    DROPPED = "dropped"


S = DownloadState
OVER = (S.DONE, S.LOST, S.DROPPED)


@frozen(kw_only=True)
class ReceiverConfig(Deployment):
    """Which of the payload's receivers this is. A party's own receiver is number 0."""

    receiver: int = 0


@frozen
class DownloadData:
    """The task whose payload it is, and how often it was tried, or said to be held."""

    epoch: int = 0
    seq: int = 0
    inline: bool = False
    attempt: int = 0


def begin(data: DownloadData, event: Any) -> DownloadData:  # noqa: ARG001
    """The first try."""
    return DownloadData(event.epoch, event.seq, event.inline, 1)


def resume(data: DownloadData, event: Any) -> DownloadData:  # noqa: ARG001
    """Rule 2."""
    return evolve(data, attempt=data.attempt + 1)


hold = sets("hold", attempt=1)
"""Rule 1: said once."""


def note(data: DownloadData, event: Any) -> DownloadData:
    """Rule 3: remember what must not be begun any more."""
    return evolve(data, epoch=event.epoch, seq=event.seq)


inline = atom("inline", of=lambda view, event: view.own.data.inline)
complete = atom("complete", of=lambda view, event: event.outcome is TransferOutcome.COMPLETE)
attempts_left = atom("attempts_left", of=lambda view, event: view.own.data.attempt < view.config.limits.pull_attempts)
mine = atom(
    "mine",
    of=lambda view, event: (event.epoch, event.seq) == (view.own.data.epoch, view.own.data.seq),
)
addressed = atom("addressed", of=lambda view, event: event.receiver == view.config.receiver)
lost = atom("lost", of=lambda view, event: event.lost)


def _receiver(firing: Firing) -> int:
    return int(firing.view.config.receiver)


def _key(firing: Firing) -> tuple[int, int]:
    return firing.data.seq, _receiver(firing)


HOLD = send(DATA, m.PayloadHeld, epoch=own("epoch"), seq=own("seq"), receiver=_receiver)
ABANDON = send(DATA, m.PayloadAbandoned, epoch=own("epoch"), seq=own("seq"), receiver=_receiver)
ARRIVED = send(PARTY, m.PayloadArrived, epoch=own("epoch"), seq=own("seq"), receiver=_receiver)
MISSING = send(PARTY, m.PayloadLost, epoch=own("epoch"), seq=own("seq"), receiver=_receiver)

pull = effect("pull", lambda f: Pull("payload", _key(f)))
cut = effect("cancel transfer", lambda f: CancelTransfer("payload", _key(f)))
stall = set_timer("stall", "transfer_stall_s")
pause = set_timer("stall", "pull_pause_s")
repeat = set_timer("stall", "result_retry_s")
quiet = cancel_timer("stall")

# fmt: off
DOWNLOAD = Machine(
    "download", DownloadState, initial=S.IDLE, final=OVER, data=DownloadData, timers=("stall",),
    live={S.HELD: ("epoch", "seq", "attempt"), S.DONE: (), S.LOST: (), S.DROPPED: ()},
    rows=[
    Row("R1",  S.IDLE,    "fetch",    always, S.PULLING, begin, [pull, stall], "told to fetch"),
    Row("R2",  S.PULLING, "progress", always, SAME, keep, [stall], "bytes move"),
    Row("R3",  S.PULLING, "ended", complete & inline,  S.DONE, keep, [quiet, ARRIVED], "Rule 4"),
    Row("R4",  S.PULLING, "ended", complete & ~inline, S.HELD, hold, [HOLD, ARRIVED, repeat], "Rule 1"),
    Row("R5",  S.PULLING, "ended", ~complete & ~inline & attempts_left, SAME, keep, [pause], "Rule 2"),
    Row("R6",  S.PULLING, "ended", ~complete & ~inline & ~attempts_left, S.LOST, keep, [quiet, ABANDON, MISSING], "Rule 2: tried often enough"),
    Row("R7",  S.PULLING, "ended", ~complete & inline, S.LOST, keep, [quiet, MISSING], "Rule 4: it cannot be decoded, and will not be better next time"),
    Row("R8",  S.PULLING, "silence", attempts_left & ~inline,  SAME, resume, [cut, pull, stall], "Rule 2"),
    Row("R9",  S.PULLING, "silence", ~attempts_left & ~inline, S.LOST, keep, [cut, ABANDON, MISSING], "Rule 2: tried often enough"),
    Row("R10", S.PULLING, "silence", inline, S.LOST, keep, [cut, MISSING], "Rule 4: decoding does not end"),
    Row("R11", S.PULLING, "unable", ~inline & attempts_left, SAME, keep, [pause], "Rule 2"),
    Row("R12", S.PULLING, "unable", ~inline & ~attempts_left, S.LOST, keep, [quiet, ABANDON, MISSING], "Rule 2: tried often enough"),
    Row("R13", S.PULLING, "unable", inline, S.LOST, keep, [quiet, MISSING], "Rule 4"),
    Row("R14", S.PULLING, "gone", mine & addressed, S.LOST, keep, [cut, quiet, MISSING], "the source offers it no more"),
    Row("R15", S.PULLING, "drop", mine & lost & ~inline,  S.LOST, keep, [cut, quiet, MISSING], "Rule 3"),
    Row("R16", S.PULLING, "drop", mine & ~lost & ~inline, S.DROPPED, keep, [cut, quiet, ABANDON], "nobody needs it any more"),
    Row("R17", S.PULLING, "drop", mine & inline, S.DROPPED, keep, [cut, quiet], "nobody needs it any more"),
    Row("R18", S.IDLE,    "drop", lost,  S.LOST, note, [MISSING], "Rule 3: it must not be begun any more"),
    Row("R19", S.IDLE,    "drop", ~lost, S.DROPPED, note, [], "Rule 3: it must not be begun any more"),
    Row("R20", S.HELD,    "silence", attempts_left, SAME, resume, [HOLD, repeat], "Rule 1"),
    Row("R21", S.HELD,    "silence", ~attempts_left, S.DONE, keep, [], "Rule 1: said often enough; what it holds it holds"),
    Row("R22", S.HELD,    "released", mine & addressed, S.DONE, keep, [quiet], "Rule 1: the source has heard"),
    Row("R23", S.HELD,    "gone", mine & addressed, S.DONE, keep, [quiet], "Rule 3"),
    Row("R24", S.HELD,    "drop", mine, S.DONE, keep, [quiet], "Rule 3"),
    ],
    ignore=[
    Ignore("fetch", (S.PULLING, S.HELD), "told twice"),
    Ignore("fetch", OVER, "Rule 3, or told twice"),
    Ignore(("progress", "ended", "unable"), (S.IDLE, S.HELD, *OVER), "bytes that were still under way"),
    Ignore("gone", (S.PULLING, S.HELD), "another download was meant", ~(mine & addressed)),
    Ignore("released", S.HELD, "another download was meant", ~(mine & addressed)),
    Ignore("drop", (S.PULLING, S.HELD), "another download was meant", ~mine),
    Ignore("unsent", tuple(S), "what was not sent is as good as lost on the way, and said again"),
    Ignore("silence", (S.IDLE, *OVER), "no wait is under way"),
    Ignore(("gone", "released"), (S.IDLE, *OVER), "over already, or not begun"),
    Ignore("released", S.PULLING, "an answer to nothing that was said"),
    Ignore("drop", OVER, "over already"),
    ],
)
# fmt: on

RECEIVER = Party(
    "receiver",
    config=ReceiverConfig,
    machines=[DOWNLOAD],
    routes=[
        received(m.FetchPayload, To("download", "fetch"), link=PARTY),
        received(m.DropPayload, To("download", "drop"), link=PARTY),
        received(m.PayloadReleased, To("download", "released"), link=DATA),
        received(m.PayloadGone, To("download", "gone"), link=DATA),
        happened(core.TransferProgressed("payload", (1, 0)), To("download", "progress")),
        happened(core.TransferEnded("payload", (1, 0), TransferOutcome.COMPLETE), To("download", "ended")),
        timer("stall", To("download", "silence")),
        happened(core.EffectFailed(core.Pull("payload", (1, 0))), To("download", "unable")),
        happened(core.EffectFailed(core.Send(DATA, m.PayloadHeld(epoch=1, seq=1, receiver=0))), To("download", "unsent")),
    ],
    observe={
        "pulling": lambda view: view.download.state is DownloadState.PULLING,
        "holds": lambda view: view.download.state in (DownloadState.HELD, DownloadState.DONE),
        "lost": lambda view: view.download.state is DownloadState.LOST,
        "over": lambda view: view.download.state in OVER,
    },
)


class Receiver(PartyCore):
    """One download's core."""

    def __init__(self, config: ReceiverConfig | None = None, **options: Any) -> None:
        super().__init__(RECEIVER, config, **options)
