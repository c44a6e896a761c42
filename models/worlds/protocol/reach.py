"""Reach: that a world contains the races it is about, as ``sometimes`` claims. A world in which nothing happens proves nothing.

The interleavings R1 to R30 of the reference's digest, where Troth has a counterpart. What can come after what is in ``order``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from troth.models.expressions import Expr, lift
from troth.models.handles import LinkHandle, jointly
from troth.models.worlds.protocol.session import Session
from troth.models.worlds.protocol.watched import Seen, Watch
from troth.spec import messages as m
from troth.statemachines.host.acceptance import TAKEN, AcceptanceState
from troth.statemachines.host.delivery import ACTIVE, UNANSWERED
from troth.statemachines.host.process import ProcessState
from troth.statemachines.host.states import HostSessionState as H
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.shared.source import SourceState
from troth.statemachines.trainer.intake import IntakeState
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import OPEN, PublicationState
from troth.statemachines.trainer.states import TrainerSessionState as T

SAID = "acceptances"
"""The observation how often the host said RESULT_ACCEPTED, up to two."""

P = PublicationState
A = AcceptanceState


def acceptances() -> Watch:
    """For ``ACCEPTED lost``: an acceptance that was said, did not arrive and is not on its way."""
    return Watch(SAID, 0, lambda memory, seen: min(2, memory + _said(seen)), {SAID: lambda memory: memory})


def _said(seen: Seen) -> int:
    return len(seen.sent(m.ResultAccepted))


def first(link: LinkHandle, kind: type[Any], **fields: Any) -> Expr:
    """The first message on the link is of this kind, with these fields: it comes next."""

    def asked(messages: tuple[Any, ...]) -> bool:
        head = messages[0] if messages else None
        return isinstance(head, kind) and all(getattr(head, name) == value for name, value in fields.items())

    shown = ", ".join(f"{name}={value}" for name, value in fields.items())
    return jointly(asked, link, text=f"{kind.__name__}({shown}) comes next on {link.name}")


def on_its_way(link: LinkHandle, kind: type[Any], **fields: Any) -> Expr:
    """A message of this kind is on the link."""

    def asked(message: Any) -> bool:
        return isinstance(message, kind) and all(getattr(message, name) == value for name, value in fields.items())

    return link.carries(asked, f"{kind.__name__} is on {link.name}")


def acceptance_lost(s: Session) -> Expr:
    """Of the acceptances that were said, one is neither on its way nor heard; no copy was made, so they can be counted."""

    def missing(messages: tuple[Any, ...]) -> int:
        return sum(isinstance(one, m.ResultAccepted) for one in messages)

    flying = jointly(missing, s.to_trainer, text="acceptances on their way")
    uncopied = s.duplicates.left == s.deal.duplicates if s.duplicates is not None else lift(True)
    unheard = s.trainer.some("publication", *OPEN)
    return unheard & uncopied & (s.host.handle.see(SAID) > flying)


# -- races -------------------------------------------------------------------------------------------------------------

Race = Callable[[Session], Expr]


def _lost_something(s: Session) -> Expr:
    """The network has lost a message. Without it, an answer that is not here yet may only be late."""
    return lift(False) if s.losses is None else s.losses.left < s.deal.losses


def _stopped(s: Session) -> Expr:
    return s.trainer.data("session", "verdict", m.Verdict.STOPPED)


RACES: dict[str, tuple[str, Race]] = {
    "R01": (
        "SHUTDOWN comes before send() is called for the task that the user holds",
        lambda s: _stopped(s) & s.trainer.at("intake", IntakeState.WORKING) & s.trainer.at("ledger", LedgerState.CANCELLED, key=1)
        & ~s.trainer.some("publication"),
    ),
    "R02": (
        "SHUTDOWN comes after send() was called and before its result is accepted",
        lambda s: s.trainer.at("session", T.DRAINING) & s.trainer.some("publication", *OPEN),
    ),
    "R03": (
        "SHUTDOWN comes while the settlement is being noted",
        lambda s: first(s.to_trainer, m.Shutdown) & s.trainer.at("session", T.READY) & s.trainer.some("publication", P.SETTLING),
    ),
    "R04": (
        "SHUTDOWN comes after the result was settled, and before the next call",
        lambda s: first(s.to_trainer, m.Shutdown) & s.trainer.at("session", T.READY) & s.trainer.some("publication", P.SETTLED),
    ),
    "R05": (
        "the user's shutdown() comes during a send() from another thread",
        lambda s: s.trainer.at("session", T.DRAINING) & s.host.at("session", H.READY) & s.trainer.some("calls"),
    ),
    "R06": (
        "ABORT comes while send() waits for an acceptance that the host has said",
        lambda s: first(s.to_trainer, m.Abort) & s.trainer.some("publication", *OPEN) & s.host.some("acceptance", *TAKEN),
    ),
    "R07": (
        "ABORT comes after the acceptance and before the receivers are done",
        lambda s: first(s.to_trainer, m.Abort) & s.trainer.some("publication", P.ACCEPTED),
    ),
    "R08": (
        "an acceptance is lost, and the answer to a question brings it again",
        lambda s: s.trainer.some("publication", P.ASKING) & first(s.to_trainer, m.ResultAccepted) & (s.host.handle.see(SAID) == 2)
        & acceptance_lost(s),
    ),
    "R09": (
        "the receivers hold the payload although no acceptance was heard",
        lambda s: s.trainer.some("publication", P.ASKING) & s.trainer.some("source", SourceState.HELD),
    ),
    "R10": ("the acceptance of a launched trainer's result is lost", acceptance_lost),
    "R12": (
        "the settlement of a task arrives after the acceptance of the next one's result",
        lambda s: on_its_way(s.to_host, m.ResultSourceSettled, seq=1) & s.host.at("acceptance", *TAKEN, key=2),
    ),
    "R13": (
        "the answer to a settlement is lost, and the notice is given again",
        lambda s: s.trainer.some("publication", P.SETTLING) & s.host.some("acceptance", A.SETTLED)
        & first(s.to_host, m.ResultSourceSettled) & ~on_its_way(s.to_trainer, m.ResultSourceReleased) & _lost_something(s),
    ),
    "R15": (
        "a task arrives just when the trainer's lease is about to expire",
        lambda s: first(s.to_trainer, m.TaskReady) & s.trainer.at("lease", LeaseState.SUSPECT),
    ),
    "R16": (
        "the trainer's lease is about to expire while send() waits for the acceptance",
        lambda s: s.trainer.some("publication", *OPEN) & s.trainer.at("lease", LeaseState.SUSPECT),
    ),
    "R21": (
        "the result arrives before the answer to the offer",
        lambda s: s.host.at("delivery", *UNANSWERED) & first(s.to_host, m.ResultReady),
    ),
    "R22": ("the trainer dies with a task", lambda s: s.trainer.handle.is_down & s.host.at("delivery", *ACTIVE)),
    "R23": (
        "the trainer dies after the acceptance and before the settlement",
        lambda s: s.trainer.handle.is_down & s.host.some("acceptance", A.ACCEPTED),
    ),
    "R24": ("the trainer dies while it is being aborted", lambda s: s.trainer.handle.is_down & s.host.at("session", H.ABORTING)),
    "R26": (
        "the end is ordered while the process is being started",
        lambda s: s.host.at("process", ProcessState.DOOMED) & s.host.at("session", H.CLOSING),
    ),
    "R28": (
        "the cancel of a task arrives while the next one runs",
        lambda s: first(s.to_trainer, m.CancelTask, seq=1) & s.trainer.at("ledger", LedgerState.QUEUED, LedgerState.DELIVERED, key=2),
    ),
    "R29": (
        "another host opens a trainer that is in a session",
        lambda s: first(s.to_trainer, m.SessionOpen, instance=1) & s.trainer.at("session", T.READY)
        & s.trainer.data("session", "instance", 0),
    ),
    "R30": (
        "a host opens above the session that its trainer is still in",
        lambda s: first(s.to_trainer, m.SessionOpen, epoch=2) & s.trainer.at("session", T.READY) & s.trainer.data("session", "epoch", 1),
    ),
}  # fmt: skip
"""What each race comes to here, and the state that shows it. R08 counts acceptances: see ``acceptances``."""


NO_COUNTERPART = {
    "R11": "an attempt is published again only after UNKNOWN, which is a promise not to take the one before (P76): an "
    "acceptance of an attempt that was superseded cannot exist",
    "R14": "a beat says nothing about sources, so a late one cannot clear anything",
    "R27": "a step is atomic: nothing comes between the check of a result and its acceptance",
}
"""Races that cannot be run here, and why."""


def races(s: Session, ids: Iterable[str]) -> None:
    """Claim that the world contains these races."""
    for id_ in ids:
        what, state = RACES[id_]
        s.world.sometimes(id_, what, state(s))


__all__ = ["NO_COUNTERPART", "RACES", "acceptance_lost", "acceptances", "races"]
