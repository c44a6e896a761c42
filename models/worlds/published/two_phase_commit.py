"""Two-phase commit, after Gray and Lamport, "Consensus on Transaction Commit" (ACM TODS 31(1), 2006), module TwoPhase.

A message once sent can be received for ever, so the messages are a set that only grows. Published counts: 288 distinct states for
three resource managers (manifest of the repository tlaplus/Examples, ``specifications/transaction_commit``); 8,832 for five (Stateright,
``examples/2pc.rs``). Under the exact symmetry of the resource managers TLC finds 80 and 314 representatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from attrs import frozen

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.closing import Give
from troth.models.expressions import any_of, every
from troth.models.handles import PartyHandle
from troth.models.world import World


class Rm(Enum):
    """A resource manager."""

    WORKING = "working"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Decision(Enum):
    """What the transaction manager has decided, and the messages that say so."""

    OPEN = "open"
    COMMIT = "commit"
    ABORT = "abort"


class Manager(NamedTuple):
    """The transaction manager: its decision, and of whom it heard that they are prepared."""

    decision: Decision = Decision.OPEN
    prepared: frozenset[int] = frozenset()


class Network(NamedTuple):
    """Everything that was ever sent: who said "prepared", and the decision."""

    prepared: frozenset[int] = frozenset()
    decision: Decision = Decision.OPEN


@frozen
class Said:
    """Resource manager ``rm`` says that it is prepared."""

    rm: int


@frozen
class Deliver:
    """The network gives the decision ``what`` to resource manager ``rm``, or what that one said to the transaction manager."""

    rm: int
    what: Decision = Decision.OPEN


def resource_manager(number: int) -> Any:
    """A resource manager: it prepares or aborts while it works, and follows any decision it hears of."""

    def step(state: Rm, event: Any) -> tuple[Rm, tuple[Give, ...]] | None:
        if event in (Decision.COMMIT, Decision.ABORT):
            return (Rm.COMMITTED if event is Decision.COMMIT else Rm.ABORTED), ()
        if state is not Rm.WORKING:
            return None
        return (Rm.PREPARED, (Give("network", Said(number)),)) if event.call == "prepare" else (Rm.ABORTED, ())

    return step


def transaction_manager(size: int) -> Any:
    """The transaction manager: it commits when all are prepared, and may abort at any time before."""

    def step(state: Manager, event: Any) -> tuple[Manager, tuple[Give, ...]] | None:
        if state.decision is not Decision.OPEN:
            return None
        if isinstance(event, Said):
            return state._replace(prepared=state.prepared | {event.rm}), ()
        if event.call == "commit" and len(state.prepared) < size:
            return None
        decision = Decision.COMMIT if event.call == "commit" else Decision.ABORT
        return state._replace(decision=decision), (Give("network", decision),)

    return step


def network(state: Network, event: Any) -> tuple[Network, tuple[Give, ...]] | None:
    """A set of messages: what is given to it is kept; what is in it may be delivered."""
    if isinstance(event, Said):
        return state._replace(prepared=state.prepared | {event.rm}), ()
    if isinstance(event, Decision):
        return state._replace(decision=event), ()
    if event.what is Decision.OPEN:
        return (state, (Give("manager", Said(event.rm)),)) if event.rm in state.prepared else None
    return (state, (Give(f"rm{event.rm}", event.what),)) if event.what is state.decision else None


def _renamed(state: Any, places: Mapping[int, int]) -> Any:
    return state._replace(prepared=frozenset(places[rm] for rm in state.prepared))


@blueprint(
    "published/two_phase_commit",
    RMS=Bound(3, "resource managers", 1, 6),
    SYMMETRY=Bound(0, "1: resource managers that are exchanged count once", 0, 1),
)
def two_phase_commit(bounds: Bounds) -> World:
    """Two-phase commit as Gray and Lamport specify it: a decision is one for all."""
    world = World("published/two_phase_commit", "two-phase commit as Gray and Lamport specify it: a decision is one for all")
    rms = [world.party(f"rm{i}", resource_manager(i), initial=Rm.WORKING, observe=_shown) for i in range(bounds.RMS)]
    manager = world.party("manager", transaction_manager(bounds.RMS), initial=Manager())
    messages = world.party("network", network, initial=Network())
    world.may(manager, "commit")
    world.may(manager, "abort")
    for i, rm in enumerate(rms):
        world.may(rm, "prepare")
        world.may(rm, "abort")
        world.may(messages, Deliver(i), name=f"tell manager of {i}")
        world.may(messages, Deliver(i, Decision.COMMIT), name=f"tell {i} to commit")
        world.may(messages, Deliver(i, Decision.ABORT), name=f"tell {i} to abort")
    if bounds.SYMMETRY and len(rms) > 1:
        world.symmetric(rms, {manager: _renamed, messages: _renamed})
    _claims(world, rms)
    return world


def _shown(state: Rm) -> dict[str, bool]:
    return {"committed": state is Rm.COMMITTED, "aborted": state is Rm.ABORTED}


def _claims(world: World, rms: list[PartyHandle]) -> None:
    world.never(
        "Consistent",
        "no resource manager has aborted while another has committed",
        any_of(*(rm.aborted for rm in rms)) & any_of(*(rm.committed for rm in rms)),
    )
    world.sometimes("AllCommit", "all may commit", every(*(rm.committed for rm in rms)))
    world.sometimes("AllAbort", "all may abort", every(*(rm.aborted for rm in rms)))
