"""Looking into a declared party's state: for properties that relate its machines to each other.

A party's own ``observe`` says what users may see. Properties also say things such as "whoever waits has a timer that ends the wait",
which need the machines themselves. Nothing here decides anything: a snapshot is read, by the names of the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any

from troth.models.expressions import Expr
from troth.models.handles import PartyHandle
from troth.models.worlds.protocol.reading import layout
from troth.spec import Party
from troth.spec.core import Key


class Snapshot:
    """One state of one party, by the names of its machines."""

    def __init__(self, party: Party, raw: Any) -> None:
        known = layout(party)
        self.slots = {name: raw[place] for name, place in known.places.items()}
        self._layout = known
        self.armed = frozenset(timer for timer, _ in raw[-2])
        """The timers that run: (name, key)."""

    def keys(self, machine: str, *states: Enum) -> tuple[Any, ...]:
        """The instances of a family; those in one of ``states``, if any are given."""
        names = {state.name for state in states}
        return tuple(part[0] for part in self.slots[machine] if not names or part[1] in names)

    def at(self, machine: str, *states: Enum, key: Key = None) -> bool:
        """Whether the machine, or its instance ``key``, is in one of ``states``."""
        return self.name(machine, key) in {state.name for state in states}

    def count(self, machine: str, *states: Enum) -> int:
        """How many instances are in one of ``states``."""
        return len(self.keys(machine, *states))

    def data(self, machine: str, name: str, key: Key = None) -> Any:
        """One field of the data; ``None`` where there is no such instance."""
        slot = self.slots[machine]
        if machine in self._layout.families:
            slot = next((part[1:] for part in slot if part[0] == key), None)
        return None if slot is None else slot[1 + self._layout.fields[machine].index(name)]

    def runs(self, timer: str, key: Key = None) -> bool:
        """Whether the timer is armed."""
        return (timer, key) in self.armed

    def timers(self, name: str) -> frozenset[Any]:
        """The keys for which the timer of that name is armed."""
        return frozenset(key for timer, key in self.armed if timer == name)

    def name(self, machine: str, key: Key = None) -> str:
        """The state's name."""
        slot = self.slots[machine]
        if machine not in self._layout.families:
            return str(slot[0])
        return next((str(part[1]) for part in slot if part[0] == key), self._layout.initial[machine])


def seen(handle: PartyHandle, party: Party, fn: Callable[[Snapshot], bool | int], *, down: bool | int = True) -> Expr:
    """``fn`` of the party's snapshot; ``down`` while it has crashed."""

    def of(raw: Hashable) -> bool | int:
        found = snapshot(party, raw)
        return down if found is None else fn(found)

    return handle.where(of, f"{handle.name} {fn.__name__.strip('_').replace('_', ' ')}")


def snapshot(party: Party, raw: Any) -> Snapshot | None:
    """What ``jointly`` shows of a watched party; ``None`` while it has crashed."""
    return Snapshot(party, raw[0]) if isinstance(raw, tuple) else None
