"""What a numbered property is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from attrs import field, frozen


class By(Enum):
    """How a property is checked. The first way is the strongest."""

    WORLDS = "worlds"
    """In every reachable state of a closed world around the real cores."""
    WALKS = "walks"
    """At every step of random walks of the cores."""
    SIMULATION = "simulation"
    """In runs of the runtime, simulated or real: it is about bytes, files or processes, which no core sees."""
    LIMITS = "limits"
    """Whenever a configuration is made: one that breaks it is refused."""


class Role(Enum):
    """What it means that a claim is broken."""

    PROMISE = "promise"
    """A user, or a peer, is told or given something else than what they may rely on."""
    CONFORMANCE = "conformance"
    """A step is another one than a second telling of the tables, by hand, has it. That finds slips in a row; what harm they do it does not
    say, so a mutant that nothing else minds is counted apart."""
    REACH = "reach"
    """Nothing is wrong, but a world does not contain what it is there for. Only worlds claim this; no numbered property does."""


def _id(_instance: object, _attribute: object, value: str) -> None:
    if not (3 <= len(value) <= 4 and value[0] == "P" and value[1:].isdigit()):
        raise ValueError(f"property id {value!r}: must be P and two digits, or three")


def _numbered(_instance: object, _attribute: object, value: Role) -> None:
    if value is Role.REACH:
        raise ValueError("a numbered property is a promise or conformance; what a world must reach is the world's own claim")


@frozen(kw_only=True)
class Property:
    """One property: its id, what is said, why a user cares, where it comes from, whose cores it is about, how it is checked.

    Sources: *I1-I9* are invariants that field reports keep breaking, *D1-D31* defects of the reference protocol, *R1-R30* its races,
    *law n* a law of the design; a plain number is the statement of the reference protocol that the property restates for Troth.
    """

    id: str = field(validator=_id)
    statement: str
    why: str
    source: str
    parties: tuple[str, ...]
    by: tuple[By, ...] = (By.WORLDS,)
    role: Role = field(default=Role.PROMISE, validator=_numbered)
    timed: bool = False
    """It speaks of durations, so only a world with a clock can check it."""
    live: bool = False
    """It says that something happens in the end, given that messages, timers and restarts have their turn."""


@frozen(kw_only=True)
class LeftOut:
    """A statement of the sources that has no counterpart in Troth, and why."""

    source: str
    statement: str
    reason: str


def catalogue(groups: Iterable[Iterable[Property]]) -> Mapping[str, Property]:
    """All of them by id, in the order of the ids."""
    listed = [p for group in groups for p in group]
    found = {p.id: p for p in sorted(listed, key=lambda p: int(p.id[1:]))}
    if len(found) != len(listed):
        raise ValueError("two properties have the same id")
    return found


TRAINER, HOST, RECEIVER, SUPERVISOR = "trainer", "host", "receiver", "supervisor"
"""The parties, by the names that their declarations have."""
