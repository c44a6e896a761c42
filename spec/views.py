"""What a guard may look at: the party as it was before the step."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from attrs import frozen

from troth.spec.core import Key
from troth.spec.errors import UnreadMachine

if TYPE_CHECKING:
    from troth.spec.party import Party


@frozen
class Slot:
    """One machine instance: where it is, and its data."""

    state: Enum
    data: Any


class Members(Mapping[Any, Slot]):
    """The instances of a family by key, lowest first. An instance that does not exist reads as the initial one."""

    __slots__ = ("_absent", "_slots")

    def __init__(self, slots: Mapping[Any, Slot], absent: Slot) -> None:
        self._slots = slots
        self._absent = absent

    def __getitem__(self, key: Key) -> Slot:
        return self._slots.get(key, self._absent)

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self._slots) if len(self._slots) > 1 else tuple(self._slots))

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    def having(self, key: Key, slot: Slot) -> Members:
        """The same family with one instance as given."""
        return Members({**self._slots, key: slot}, self._absent)

    def without(self, key: Key) -> Members:
        """The same family with one instance absent."""
        return Members({k: slot for k, slot in self._slots.items() if k != key}, self._absent)

    def count(self, *states: Enum) -> int:
        """How many instances are in one of ``states``."""
        return sum(slot.state in states for slot in self._slots.values())

    def first(self, *states: Enum) -> Any:
        """The lowest key whose instance is in one of ``states``; ``None`` if there is none."""
        return min((key for key, slot in self._slots.items() if slot.state in states), default=None)


class View:
    """A party at one moment. Machines are attributes: a ``Slot``, or ``Members`` where the machine is a family."""

    __slots__ = ("_slots", "config", "key", "own")

    def __init__(self, slots: Mapping[str, Slot | Members], config: Any, key: Key = None, own: Slot | None = None) -> None:
        self._slots = slots
        self.config = config
        self.key = key
        self.own: Any = own

    def __getattr__(self, name: str) -> Any:
        try:
            return self._slots[name]
        except KeyError:
            raise UnreadMachine(f"there is no machine {name!r}; the party has {', '.join(self._slots)}") from None

    @classmethod
    def initial(cls, party: Party) -> View:
        """The party before its first event."""
        slots: dict[str, Slot | Members] = {}
        for machine in party.machines:
            start = Slot(machine.initial, machine.data())
            slots[machine.name] = Members({}, start) if machine.family else start
        return cls(slots, party.config())

    def at(self, machine: str, key: Key, state: Enum, data: Any) -> View:
        """The same moment, looked at from one instance, with that instance as given."""
        own = Slot(state, data)
        slots = dict(self._slots)
        slots[machine] = Members({key: own}, own) if isinstance(slots[machine], Members) else own
        return View(slots, self.config, key, own)


class Reader:
    """A view that gives an atom only what it said it reads."""

    __slots__ = ("_allowed", "_name", "_view", "config", "key", "own")

    def __init__(self, view: View, allowed: Container[str], name: str) -> None:
        self._view = view
        self._allowed = allowed
        self._name = name
        self.config = view.config
        self.key = view.key
        self.own = view.own

    def __getattr__(self, name: str) -> Any:
        if name not in self._allowed:
            raise UnreadMachine(f"atom {self._name} looks at {name!r} without saying so; add it to reads=")
        return getattr(self._view, name)
