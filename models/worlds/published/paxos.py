"""Single-decree Paxos, after Leslie Lamport's module Paxos in the repository tlaplus/Examples (``specifications/Paxos``).

Messages are never lost from the set of all that was sent: losing one is never receiving it. The manifest of that repository gives 25
distinct states for one acceptor, one value and two ballots (its model MCPaxos); for three acceptors and two ballots TLC finds 1,681
with one value and 3,921 with two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from attrs import frozen

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.closing import Give
from troth.models.world import World


@frozen(cache_hash=True)
class Ballot:
    """1a: a ballot is opened."""

    number: int


@frozen(cache_hash=True)
class Promise:
    """1b: an acceptor takes no part in lower ballots any more, and says what it accepted last (ballot -1: nothing)."""

    acceptor: int
    number: int
    accepted: int
    value: int


@frozen(cache_hash=True)
class Proposal:
    """2a: the value of a ballot."""

    number: int
    value: int


@frozen(cache_hash=True)
class Vote:
    """2b: an acceptor accepts."""

    acceptor: int
    number: int
    value: int


class Acceptor(NamedTuple):
    """The highest ballot heard of, and the last one voted in, with its value."""

    promised: int = -1
    voted: int = -1
    value: int = -1


@frozen(cache_hash=True)
class Show:
    """The network delivers a message to an acceptor."""

    acceptor: int
    message: Any


Messages = frozenset[Any]


def acceptor(number: int) -> Any:
    """An acceptor: promises, and votes."""

    def step(state: Acceptor, event: Any) -> tuple[Acceptor, tuple[Give, ...]] | None:
        if isinstance(event, Ballot):
            if event.number <= state.promised:
                return None
            said: Any = Promise(number, event.number, state.voted, state.value)
            return state._replace(promised=event.number), (Give("network", said),)
        if event.number < state.promised:
            return None
        return Acceptor(event.number, event.number, event.value), (Give("network", Vote(number, event.number, event.value)),)

    return step


def quorums(acceptors: int) -> Iterator[frozenset[int]]:
    """The least majorities."""
    return (frozenset(chosen) for chosen in combinations(range(acceptors), acceptors // 2 + 1))


def may_propose(messages: Messages, proposal: Proposal, acceptors: int) -> bool:
    """Whether the leader of this ballot may propose this value: nothing is proposed yet, and some quorum's promises allow it."""
    if any(isinstance(m, Proposal) and m.number == proposal.number for m in messages):
        return False
    promises = [m for m in messages if isinstance(m, Promise) and m.number == proposal.number]
    return any(_allows([p for p in promises if p.acceptor in quorum], quorum, proposal.value) for quorum in quorums(acceptors))


def _allows(promises: list[Promise], quorum: frozenset[int], value: int) -> bool:
    if {p.acceptor for p in promises} != quorum:
        return False
    bound = [p for p in promises if p.accepted >= 0]
    last = max((p.accepted for p in bound), default=-1)
    return not bound or any(p.accepted == last and p.value == value for p in bound)


def network(acceptors: int) -> Any:
    """All that was ever sent. The leaders have no state of their own, so they act here."""

    def step(state: Messages, event: Any) -> tuple[Messages, tuple[Give, ...]] | None:
        if isinstance(event, Show):
            return (state, (Give(f"acceptor {event.acceptor}", event.message),)) if event.message in state else None
        if isinstance(event, Proposal) and not may_propose(state, event, acceptors):
            return None
        return state | {event}, ()

    return step


def chosen(messages: Messages, acceptors: int) -> int:
    """How many values are chosen: a quorum voted for each in one ballot."""
    votes = [m for m in messages if isinstance(m, Vote)]
    return len(
        {
            v.value
            for v in votes
            for quorum in quorums(acceptors)
            if quorum <= {w.acceptor for w in votes if (w.number, w.value) == (v.number, v.value)}
        }
    )


@blueprint(
    "published/paxos",
    ACCEPTORS=Bound(3, "acceptors", 1, 5),
    BALLOTS=Bound(2, "ballots", 1, 4),
    VALUES=Bound(2, "values that may be proposed", 1, 4),
)
def paxos(bounds: Bounds) -> World:
    """Single-decree Paxos: never are two values chosen."""
    world = World("published/paxos", "single-decree Paxos: never are two values chosen")
    for i in range(bounds.ACCEPTORS):
        world.party(f"acceptor {i}", acceptor(i), initial=Acceptor())
    empty: Messages = frozenset()
    sent = world.party("network", network(bounds.ACCEPTORS), initial=empty, observe={"chosen": lambda m: chosen(m, bounds.ACCEPTORS)})
    for ballot in range(bounds.BALLOTS):
        world.may(sent, Ballot(ballot), name=f"open ballot {ballot}")
        for value in range(bounds.VALUES):
            world.may(sent, Proposal(ballot, value), name=f"propose {value} in ballot {ballot}")
        for i in range(bounds.ACCEPTORS):
            world.may(sent, Show(i, Ballot(ballot)), name=f"show ballot {ballot} to {i}")
            for value in range(bounds.VALUES):
                shown = Show(i, Proposal(ballot, value))
                world.may(sent, shown, name=f"show proposal {value} of ballot {ballot} to {i}")
    world.always("Agreement", "at most one value is chosen", sent.chosen <= 1)
    world.step("Forever", "what is chosen stays chosen", sent.chosen.next >= sent.chosen)
    world.sometimes("Chosen", "a value can be chosen", sent.chosen == 1)
    return world
