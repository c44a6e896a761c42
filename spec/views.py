"""What a guard may look at: the party as it was before the step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, final

from attrs import define

from troth.spec.core import Key
from troth.spec.errors import UnreadMachine

if TYPE_CHECKING:
    from troth.spec.party import Party


@define
class Slot:
    """One machine instance: where it is, and its data. Never changed; it is not frozen because that costs more than all it holds."""

    state: Enum
    data: Any


_SCANNED = 8
"""Instances up to which a family is looked through one by one; a larger one keeps an index by state."""


@final
class Members(Mapping[Any, Slot]):
    """The instances of a family by key, lowest first. An instance that does not exist reads as the initial one."""

    __slots__ = ("_absent", "_by_state", "_slots")

    def __init__(self, slots: Mapping[Any, Slot], absent: Slot, by_state: dict[int, tuple[Any, ...]] | None = None) -> None:
        self._slots = slots
        self._absent = absent
        self._by_state = by_state

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
        return Members({**self._slots, key: slot}, self._absent, self._moved(key, slot.state))

    def without(self, key: Key) -> Members:
        """The same family with one instance absent."""
        slots = dict(self._slots)
        slots.pop(key, None)
        return Members(slots, self._absent, self._moved(key, None))

    def count(self, *states: Enum) -> int:
        """How many instances are in one of ``states``."""
        if len(self._slots) <= _SCANNED:
            return sum(slot.state in states for slot in self._slots.values())
        index = self._index()
        return sum(len(index.get(id(state), ())) for state in states)

    def first(self, *states: Enum) -> Any:
        """The lowest key whose instance is in one of ``states``; ``None`` if there is none."""
        if len(self._slots) <= _SCANNED:
            return min((key for key, slot in self._slots.items() if slot.state in states), default=None)
        index = self._index()
        return min((index[id(state)][0] for state in states if index.get(id(state))), default=None)

    def within(self, *states: Enum) -> tuple[Any, ...]:
        """The keys of the instances in one of ``states``, lowest first."""
        if len(self._slots) <= _SCANNED:
            return tuple(sorted(key for key, slot in self._slots.items() if slot.state in states))
        index = self._index()
        return tuple(sorted(key for state in states for key in index.get(id(state), ())))

    def _index(self) -> dict[int, tuple[Any, ...]]:
        """Keys by the identity of their state: a member of an enum is one object, and asking it for its hash is slow."""
        if self._by_state is None:
            by_state: dict[int, tuple[Any, ...]] = {}
            for key in self:
                state = id(self._slots[key].state)
                by_state[state] = (*by_state.get(state, ()), key)
            self._by_state = by_state
        return self._by_state

    def _moved(self, key: Any, target: Enum | None) -> dict[int, tuple[Any, ...]] | None:
        """The index, if there is one, once the instance is in ``target``."""
        if self._by_state is None:
            return None
        old = self._slots.get(key)
        source = None if old is None else old.state
        if source is target:
            return self._by_state
        index = dict(self._by_state)
        if source is not None:
            keys = index[id(source)]
            place = bisect_left(keys, key)
            index[id(source)] = keys[:place] + keys[place + 1 :]
        if target is not None:
            keys = index.get(id(target), ())
            place = bisect_left(keys, key)
            index[id(target)] = (*keys[:place], key, *keys[place:])
        return index


class View:
    """A party at one moment. Machines are attributes: a ``Slot``, or ``Members`` where the machine is a family."""

    __slots__ = ("__dict__", "config", "key", "own")

    def __init__(self, slots: dict[str, Slot | Members], config: Any, key: Key = None, own: Slot | None = None) -> None:
        self.__dict__ = slots  # shared, not copied: the store never changes a mapping of slots, and nobody sets attributes here
        self.config = config
        self.key = key
        self.own: Any = own

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    else:

        def __getattr__(self, name: str) -> Any:
            raise UnreadMachine(f"there is no machine {name!r}; the party has {', '.join(self.__dict__)}")

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
        slots = dict(self.__dict__)
        slots[machine] = Members({key: own}, own) if isinstance(slots[machine], Members) else own
        return View(slots, self.config, key, own)


class Reader:
    """A view that gives an atom only what it said it reads."""

    __slots__ = ("_allowed", "_name", "_slots", "_view", "config", "key", "own")

    def __init__(self, view: View, allowed: Container[str], name: str) -> None:
        self._view = view
        self._slots = view.__dict__
        self.config = view.config
        self.key = view.key
        self.own = view.own
        self.asks(allowed, name)

    def asks(self, allowed: Container[str], name: str) -> None:
        """From now on it is this atom that looks."""
        self._allowed = allowed
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name not in self._allowed:
            raise UnreadMachine(f"atom {self._name} looks at {name!r} without saying so; add it to reads=")
        return self._slots[name] if name in self._slots else getattr(self._view, name)
