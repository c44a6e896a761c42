"""What the tables of a party can come to at all, whatever is sent to it, under what the runtime promises.

A fixed point, and an estimate from above: machines are looked at one by one, guards may answer as they like, messages may say anything,
and any event comes in any order, but for what is promised. So what is not possible here cannot fire, forged frames and all; what is
possible here need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from attrs import define, field, frozen

from troth.spec import Party
from troth.spec.emits import Deliver, Forward
from troth.spec.guards import valuations
from troth.spec.machine import Cell, Entry, Kind
from troth.spec.party import Route, To
from troth.testing.coverage import guard_name


@frozen(kw_only=True)
class Promise:
    """What the runtime keeps to. Events are named as routes are: ``"Called start"``."""

    answers: Mapping[str, bool] = field(factory=dict)
    """By guard, ``machine.atom``: the only answer that it gives."""
    never: frozenset[str] = frozenset()
    """Events that never come."""
    first: str = ""
    """The event that comes before all others, if it is always the same, and comes only once."""


@define
class Possible:
    """What is possible in one party. Names are those that coverage has."""

    party: Party
    promise: Promise
    states: dict[str, set[Enum]] = field(init=False)
    raised: set[tuple[str, str]] = field(factory=set, init=False)
    """Triggers that come, by machine."""
    rows: set[str] = field(factory=set, init=False)
    others: set[str] = field(factory=set, init=False)
    """Ignores and refusals."""
    guards: set[str] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.states = {machine.name: {machine.initial} for machine in self.party.machines}
        routes = [route for route in self.party.routes if str(route) not in self.promise.never]
        first = [route for route in routes if str(route) == self.promise.first]
        if first:
            self._begin(first[0])
            routes.remove(first[0])
        for route in routes:
            self._come(route)
        while self._grow():
            pass

    def _come(self, route: Route) -> None:
        """It may come."""
        to: Iterable[To] = route.to if route.gate is None else [route.gate]
        self.raised.update((one.machine, one.trigger) for one in to)

    def _begin(self, route: Route) -> None:
        """It comes now, and never again: where it leads away from a state for certain, that state is left."""
        for to in route.to:
            machine = self.party.by_name[to.machine]
            entries = list(self._entries(machine.name, machine.table[machine.initial, to.trigger]))
            for entry in entries:
                self._fires(machine.name, entry)
            if machine.family is None and all(entry.target is not machine.initial for entry in entries):
                self.states[machine.name].discard(machine.initial)

    def _entries(self, machine: str, cell: Cell) -> Iterator[Entry]:
        """What a cell comes to, for any answers that its guards may give."""
        for valuation in valuations(cell.atoms):
            if all(self.promise.answers.get(f"{machine}.{atom}", answer) is answer for atom, answer in valuation.items()):
                self.guards.update(guard_name(self.party.name, f"{machine}.{atom}", value=answer) for atom, answer in valuation.items())
                yield cell.under(valuation)

    def _fires(self, machine: str, entry: Entry) -> None:
        name = f"{self.party.name}.{entry.id}"
        if entry.kind is not Kind.ROW or entry.row is None:
            self.others.add(name)
            return
        self.rows.add(name)
        self.states[machine].add(entry.target)
        for emission in entry.row.emit:
            if isinstance(emission, Forward):
                self.raised.add((emission.machine, emission.trigger))
            elif isinstance(emission, Deliver):
                gated = [route for route in self.party.routes if route.gate == To(machine, entry.trigger)]
                self.raised.update((to.machine, to.trigger) for route in gated for to in route.to)

    def _grow(self) -> bool:
        """One round. False if nothing came of it."""
        before = self._size
        for name, trigger in list(self.raised):
            machine = self.party.by_name[name]
            for state in list(self.states[name]):
                cell = machine.table.get((state, trigger))
                for entry in [] if cell is None else list(self._entries(name, cell)):
                    self._fires(name, entry)
        return self._size != before

    @property
    def _size(self) -> tuple[int, ...]:
        return len(self.raised), len(self.rows), len(self.others), len(self.guards), sum(map(len, self.states.values()))
