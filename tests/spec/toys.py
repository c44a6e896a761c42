"""Small protocols for the tests: a turnstile, and what is needed to build one machine or party in a line."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any

import attrs
from attrs import frozen

from troth.spec import Atom, Called, Ignore, Machine, Party, PartyCore, Refuse, Row, To, always, atom, called, keep


class Gate(Enum):
    """Where a turnstile can be."""

    LOCKED = "locked"
    OPEN = "open"


@frozen
class Coins:
    """What a turnstile has been paid."""

    coins: int = 0


def add(data: Coins, event: Any) -> Coins:
    """One coin more."""
    return attrs.evolve(data, coins=data.coins + 1)


def spend(data: Coins, event: Any) -> Coins:
    """One coin less."""
    return attrs.evolve(data, coins=data.coins - 1)


more = atom("more_than_one", of=lambda view, event: view.own.data.coins > 1)

TURNSTILE = Machine(
    "gate",
    Gate,
    initial=Gate.LOCKED,
    data=Coins,
    rows=[
        Row("G1", (Gate.LOCKED, Gate.OPEN), "coin", always, Gate.OPEN, add, [], "a coin opens the gate, or is kept"),
        Row("G2", Gate.OPEN, "push", more, Gate.OPEN, spend, [], "one coin, one passage"),
        Row("G3", Gate.OPEN, "push", ~more, Gate.LOCKED, spend, [], "the last coin is spent"),
    ],
    refuse=[Refuse("push", Gate.LOCKED, "pay first")],
)


@frozen
class Limits:
    """The limits of the toys."""

    SLOTS: int = 2
    WAIT_S: int = 5


@frozen
class Config:
    """The configuration of the toys."""

    limits: Limits = Limits()
    strict: bool = False


TURNSTILE_PARTY = Party(
    "turnstile",
    machines=[TURNSTILE],
    routes=[called("coin", To("gate", "coin")), called("push", To("gate", "push"))],
    config=Config,
    observe={"open": lambda view: view.gate.state is Gate.OPEN, "coins": lambda view: view.gate.data.coins},
)


class Lamp(Enum):
    """The states of most one-machine tests."""

    OFF = "off"
    ON = "on"
    BROKEN = "broken"


@cache
def asks(name: str) -> Atom:
    """An atom that reads the bit of that name from the payload of a call; asked twice for a name, the same atom."""
    return atom(name, of=lambda view, event: name in event.payload)


def row(
    name: str,
    source: Enum | Iterable[Enum],
    trigger: str,
    target: Enum,
    emit: Iterable[Any] = (),
    *,
    guard: Any = always,
    update: Any = keep,
    why: str = "for the test",
) -> Row:
    """A row whose other parts do not matter to the test."""
    return Row(name, source, trigger, guard, target, update, emit, why)


def lamp(*rows: Row, states: type[Enum] = Lamp, initial: Enum = Lamp.OFF, fill: bool = True, **parts: Any) -> Machine:
    """A machine over ``Lamp``; with ``fill`` every case that no row mentions is ignored."""
    ignore = list(parts.pop("ignore", ()))
    if fill:
        triggers = dict.fromkeys([r.trigger for r in rows])
        taken = {(s, r.trigger) for r in rows for s in r.sources}
        for rule in (*ignore, *parts.get("refuse", ())):
            taken |= {(s, t) for s in rule.states for t in rule.triggers}
        ignore += [Ignore(t, s, "for the test") for s in states for t in triggers if (s, t) not in taken]
    return Machine(parts.pop("name", "lamp"), states, initial=initial, rows=rows, ignore=ignore, **parts)


def party(*machines: Machine, routes: Iterable[Any] | None = None, **parts: Any) -> Party:
    """A party; without ``routes`` every trigger of every machine is a call of the same name."""
    if routes is None:
        triggers = dict.fromkeys(t for m in machines for t in m.triggers)
        routes = [called(t, *(To(m.name, t) for m in machines if t in m.triggers)) for t in triggers]
    return Party(parts.pop("name", "toy"), machines=machines, routes=routes, config=parts.pop("config", Config), **parts)


def core(*machines: Machine, routes: Iterable[Any] | None = None, **parts: Any) -> PartyCore:
    """A core of such a party."""
    return PartyCore(party(*machines, routes=routes, **parts))


def call(name: str, *bits: str) -> Called:
    """A call whose payload makes exactly the atoms named ``bits`` true."""
    return Called(name, payload=frozenset(bits))


def everything(subject: PartyCore) -> tuple[Hashable, Mapping[str, bool | int], Mapping[Any, int]]:
    """All that a core will tell about itself."""
    return subject.snapshot(), subject.observe(), subject.armed
