"""Promises about the states of one party, claimed wherever it stands alone; in worlds of two parties ``promises`` says the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from troth.models.expressions import Expr, every
from troth.models.world import World
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.watched import broken
from troth.spec.properties import PROPERTIES
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.host.delivery import ACTIVE
from troth.statemachines.host.process import GONE, ProcessState
from troth.statemachines.host.session import LIVE as HOST_LIVE
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.calls import CallState
from troth.statemachines.shared.lease import WATCHING, LeaseState
from troth.statemachines.shared.source import LIVE as SERVED
from troth.statemachines.trainer.ledger import PRESENT
from troth.statemachines.trainer.publication import BUSY, PublicationState
from troth.statemachines.trainer.session import BOUND, OPENING
from troth.statemachines.trainer.states import TrainerSessionState

T, H = TrainerSessionState, HostSessionState


def waiting(trainer: Reading, call: str) -> Expr:
    """Somebody waits in this call."""
    return trainer.some("calls", CallState.WAITING, where=lambda key: str(key).partition("/")[0] == call)


def unbound_is_empty(trainer: Reading) -> Expr:
    """P01."""
    return trainer.at("session", T.NEW, T.PASSIVE, *OPENING) >> ~trainer.some("ledger", *PRESENT)


def aborted_is_idle(trainer: Reading) -> Expr:
    """P12, beside what is watched: ABORT was heard."""
    idle = ~trainer.some("publication", *BUSY) & ~trainer.some("source", *SERVED)
    quiet = every(*(~waiting(trainer, call) for call in ("init", "receive", "send")))
    return trainer.at("session", T.ABORTED) >> (idle & quiet)


def served_while_up(trainer: Reading) -> Expr:
    """P35, beside what is watched: no source goes away."""
    return trainer.some("publication", PublicationState.ACCEPTED) >> trainer.at("session", *BOUND)


def watched_while_bound(trainer: Reading) -> Expr:
    """P40, of a trainer."""
    return trainer.at("session", *BOUND) >> trainer.at("lease", *WATCHING)


def host_watches_while_live(host: Reading) -> Expr:
    """P40, of a host."""
    return host.at("session", *HOST_LIVE) >> host.at("lease", *WATCHING)


def nothing_left(trainer: Reading) -> Expr:
    """P44, of a trainer."""
    return trainer.at("session", T.CLOSED) >> (~trainer.armed() & ~trainer.some("calls") & ~trainer.some("source", *SERVED))


def host_leaves_nothing(host: Reading) -> Expr:
    """P44, of a host."""
    undecided = host.some("acceptance", AcceptanceState.AWAITING, AcceptanceState.ACCEPTED)
    idle = ~host.armed() & ~undecided & ~host.some("source", *SERVED) & ~host.at("delivery", *ACTIVE)
    return host.at("session", H.CLOSED) >> idle


def ends_when_nothing_is_left(host: Reading) -> Expr:
    """P17, beside what is watched: a session that waits for its process has one."""
    return host.at("session", H.CLOSING) >> ~host.at("process", ProcessState.NONE, *GONE)


def never_in_shutdown(trainer: Reading) -> Expr:
    """P55."""
    return ~waiting(trainer, "shutdown")


def new_is_new(trainer: Reading) -> Expr:
    """P56."""
    clean = ~trainer.armed() & ~trainer.some("calls") & ~trainer.some("ledger") & trainer.at("lease", LeaseState.UNARMED)
    return trainer.at("session", T.NEW) >> (clean & trainer.data("session", "epoch", 0))


def of_trainer(trainer: Reading) -> Mapping[str, Expr]:
    """What is promised of every state of a trainer, whoever its peers are."""
    return {
        "P01": unbound_is_empty(trainer), "P12": aborted_is_idle(trainer), "P35": served_while_up(trainer),
        "P40": watched_while_bound(trainer), "P44": nothing_left(trainer), "P55": never_in_shutdown(trainer), "P56": new_is_new(trainer),
    }  # fmt: skip


def of_host(host: Reading) -> Mapping[str, Expr]:
    """What is promised of every state of a host, whoever its trainer is."""
    return {"P40": host_watches_while_live(host), "P44": host_leaves_nothing(host)}


def of_host_session(host: Reading) -> Mapping[str, Expr]:
    """The same, of a host whose sessions end."""
    return {**of_host(host), "P17": ends_when_nothing_is_left(host)}


def claim(world: World, party: Reading, watched: Iterable[str], states: Mapping[str, Expr]) -> None:
    """Claim what is watched of a party, and what is promised of its states; as one where the id is the same."""
    found = {id_: [~party.handle.see(broken(id_))] for id_ in watched}
    for id_, expr in states.items():
        found.setdefault(id_, []).append(expr)
    for id_, parts in found.items():
        world.always(id_, PROPERTIES[id_].statement, every(*parts) if len(parts) > 1 else parts[0])
