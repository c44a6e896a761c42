"""The events of a party's alphabet, with whatever their fields may say: also far beyond what a world would give.

A route of a declaration has a sample event; every other event of that route differs from it in the values of its fields. Numbers are
drawn near what the party has in its state already, near their lower bound, and now and then anywhere up to their upper one: ids,
attempts and sizes are not kept small.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any

import attrs

from troth.spec import Party
from troth.spec.core import Event, TimerFired
from troth.testing.chance import Chance

PLAIN_HIGH = 9
"""How far a number goes that has no bounds of its own: the number of a call, the parts of a key."""
NEAR = 3
"""How far from its lower bound a number is drawn that is not near another."""
SEEN_LIMIT = 64


class Alphabet:
    """Every event that a party has a route for, but for timers: those fire as they were set."""

    def __init__(self, party: Party) -> None:
        self.samples: tuple[Event, ...] = tuple(r.sample for r in party.routes if not isinstance(r.sample, TimerFired))
        self.timers: tuple[str, ...] = tuple(r.sample.timer for r in party.routes if isinstance(r.sample, TimerFired))
        self.names: tuple[str, ...] = tuple(str(r) for r in party.routes if not isinstance(r.sample, TimerFired))

    def event(self, place: int, chance: Chance, seen: Sequence[int]) -> Event:
        """An event of route number ``place``; ``seen`` are numbers that mean something at the moment."""
        found: Event = varied(self.samples[place], chance, seen)
        return found


def varied(value: Any, chance: Chance, seen: Sequence[int], low: int = 0, high: int = PLAIN_HIGH) -> Any:
    """A value like ``value`` that says something else: other numbers, members and flags, in the same shape."""
    if isinstance(value, bool):
        return chance.below(2) == 1
    if isinstance(value, Enum):
        members = list(type(value))
        return members[chance.below(len(members))]
    if isinstance(value, int):
        return _number(chance, seen, low, high)
    if type(value) is tuple:
        return tuple(varied(part, chance, seen) for part in value)
    if attrs.has(type(value)):
        fields = [f for f in attrs.fields(type(value)) if f.init]
        return attrs.evolve(value, **{(f.alias or f.name): _field(f, getattr(value, f.name), chance, seen) for f in fields})
    return value


def _field(f: attrs.Attribute[Any], value: Any, chance: Chance, seen: Sequence[int]) -> Any:
    return varied(value, chance, seen, f.metadata.get("low", 0), f.metadata.get("high", PLAIN_HIGH))


def _number(chance: Chance, seen: Sequence[int], low: int, high: int) -> int:
    how = chance.below(16)
    if how < 9 and seen:
        found = seen[chance.below(len(seen))] + (0, 0, 0, 1, -1)[chance.below(5)]
    elif how < 15:
        found = low + chance.below(min(NEAR, high - low) + 1)
    else:
        found = (high, high - 1, low + chance.below(high - low + 1))[chance.below(3)]
    return min(max(found, low), high)


def numbers_in(snapshot: Hashable) -> tuple[int, ...]:
    """The numbers in a snapshot, each once, as they come: what is known to the party at this moment."""
    found: dict[int, None] = {}
    left: list[Any] = [snapshot]
    while left and len(found) < SEEN_LIMIT:
        value = left.pop()
        if type(value) is tuple:
            left.extend(reversed(value))
        elif type(value) is int:
            found[value] = None
    return tuple(found)
