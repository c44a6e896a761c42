"""Expressions over the machines of a watched party: where an instance is, and what its data says.

While a party is down it is in no state at all, so every such expression is false then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

import attrs

from troth.models.expressions import Expr, Value
from troth.models.handles import PartyHandle
from troth.models.worlds.protocol.watched import Kept
from troth.spec.core import Key
from troth.spec.party import Party


@attrs.frozen
class Layout:
    """Where a party's snapshot has what."""

    places: Mapping[str, int]
    families: frozenset[str]
    fields: Mapping[str, tuple[str, ...]]
    initial: Mapping[str, str]


@lru_cache(maxsize=16)
def layout(party: Party) -> Layout:
    """The layout of a party's snapshots: machine by machine in declared order, families as (key, state, data...) each."""
    return Layout(
        {machine.name: place for place, machine in enumerate(party.machines)},
        frozenset(machine.name for machine in party.machines if machine.family),
        {machine.name: tuple(f.name for f in attrs.fields(machine.data)) for machine in party.machines},
        {machine.name: machine.initial.name for machine in party.machines},
    )


@attrs.frozen
class Reading:
    """A party of a world, by the names of its declaration."""

    handle: PartyHandle
    party: Party

    def at(self, machine: str, *states: Enum, key: Key = None) -> Expr:
        """The machine, or its instance ``key``, is in one of these states."""
        names = frozenset(state.name for state in states)
        found = self._slots(machine)
        absent = layout(self.party).initial[machine]

        def asked(snapshot: Any) -> bool:
            if machine not in layout(self.party).families:
                return found(snapshot)[0] in names
            return next((slot[1] for slot in found(snapshot) if slot[0] == key), absent) in names

        return self._where(asked, f"{self._named(machine, key)} in {_or(states)}")

    def some(self, machine: str, *states: Enum, where: Callable[[Any], bool] | None = None) -> Expr:
        """Some instance of a family is in one of these states (in any, if none is given), and its key is as ``where`` says."""
        names = frozenset(state.name for state in states)
        found = self._slots(machine)

        def asked(snapshot: Any) -> bool:
            return any((not names or slot[1] in names) and (where is None or where(slot[0])) for slot in found(snapshot))

        return self._where(asked, f"some {self._named(machine)} in {_or(states)}" if states else f"some {self._named(machine)}")

    def data(self, machine: str, name: str, *values: Any, key: Key = None) -> Expr:
        """The field ``name`` has one of these values."""
        place = 1 + layout(self.party).fields[machine].index(name)
        found = self._slots(machine)

        def asked(snapshot: Any) -> bool:
            if machine not in layout(self.party).families:
                return found(snapshot)[place] in values
            return any(slot[0] == key and slot[1 + place] in values for slot in found(snapshot))

        shown = " or ".join(str(getattr(value, "name", value)) for value in values)
        return self._where(asked, f"{self._named(machine, key)}.{name} is {shown}")

    def armed(self, *timers: str) -> Expr:
        """One of these timers runs (any, if none is given)."""

        def asked(snapshot: Any) -> bool:
            return any(not timers or where[0] in timers for where, _ in snapshot[0][-2])

        return self._where(asked, f"{self.handle.name} runs {' or '.join(timers) or 'a timer'}")

    def _named(self, machine: str, key: Key = None) -> str:
        return f"{self.handle.name}.{machine}" + ("" if key is None else f"[{key}]")

    def _slots(self, machine: str) -> Callable[[Any], Any]:
        place = layout(self.party).places[machine]
        return lambda snapshot: snapshot[0][place]

    def _where(self, asked: Callable[[Any], bool], text: str) -> Expr:
        def up(state: Any) -> Value:
            return not isinstance(state, Kept) and asked(state)

        return self.handle.where(up, text)


def _or(states: tuple[Enum, ...]) -> str:
    return "/".join(state.name for state in states)
