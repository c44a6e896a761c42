"""Worlds and parties small enough to know what is wrong with each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from troth.models import Bound, World, blueprint
from troth.models.bounds import Bounds
from troth.spec import SAME, Called, Machine, Party, PartyCore, Refuse, Row, Send, Step, To, always, called, keep
from troth.spec.core import Event, Refusal, RefusalKind
from troth.spec.data import evolve
from troth.spec.machine import Ignore


def fare(*, sound: bool = False) -> World:
    """A coin is sent once, over a line that may copy it; the gate that is not ``sound`` counts what comes."""
    world = World("fare", "a coin is sent once, over a line that may copy it")
    slot = world.party("slot", lambda state, _event: (state, [Send("line", "coin")]), initial="ready")  # type: ignore[arg-type]
    most = 1 if sound else 2
    gate = world.party("gate", lambda passed, _event: (min(passed + 1, most), []), initial=0, observe={"passed": lambda passed: passed})
    world.link(slot, gate, "line", duplicating=True, capacity=2)
    world.may(slot, "pay", times=1)
    world.always("ONCE", "one coin, one passage", gate.passed <= 1)
    return world


def endless() -> World:
    """The same with a gate that counts without end, as whoever begins writes it: its world has no last state."""
    world = World("endless")
    slot = world.party("slot", lambda state, _event: (state, [Send("line", "coin")]), initial="ready")  # type: ignore[arg-type]
    gate = world.party("gate", lambda passed, _event: (passed + 1, []), initial=0, observe={"passed": lambda passed: passed})
    world.link(slot, gate, "line", duplicating=True, capacity=2)
    world.may(slot, "pay", times=1)
    world.always("ONCE", "one coin, one passage", gate.passed <= 1)
    return world


def broken() -> World:
    """A world that is wrong before anything has happened."""
    world = World("broken")
    purse = world.party("purse", lambda left, _event: (left, []), initial=0, observe={"left": lambda left: left})
    world.may(purse, "pay", times=1)
    world.always("KEPT", "the last coin is kept", purse.left > 0)
    return world


@blueprint("long fare", COINS=Bound(3, "coins", 1, 50))
def long_fare(bounds: Bounds) -> World:
    """The same with more coins, and a purse that loses one in the end."""
    world = World("long fare", "coins that are paid one by one")
    purse = world.party("purse", lambda left, _event: (left - 1, []), initial=bounds.COINS, observe={"left": lambda left: left})
    world.may(purse, "pay", when=purse.left > 0)
    world.always("KEPT", "the last coin is kept", purse.left > 0)
    return world


class Gate(Enum):
    """Where a turnstile is."""

    LOCKED = "locked"
    OPEN = "open"


@frozen
class Fares:
    """What a turnstile counts."""

    coins: int = 0
    passed: int = 0


def coin(data: Fares, _event: object) -> Fares:
    """One more."""
    return evolve(data, coins=min(data.coins + 1, 9))


def passage(data: Fares, _event: object) -> Fares:
    """One more."""
    return evolve(data, passed=min(data.passed + 1, 9))


GATE = Machine(
    "gate",
    Gate,
    initial=Gate.LOCKED,
    data=Fares,
    rows=[
        Row("G1", Gate.LOCKED, "coin", always, Gate.OPEN, coin, [], "a coin opens the gate"),
        Row("G2", Gate.OPEN, "push", always, Gate.LOCKED, passage, [], "one coin, one passage"),
    ],
    ignore=[Ignore("coin", Gate.OPEN, "it is open already; the coin falls through")],
    refuse=[Refuse("push", Gate.LOCKED, "pay first")],
)


def turnstile(machine: Machine = GATE) -> Party:
    """The party of one gate."""
    return Party(
        "turnstile",
        machines=[machine],
        routes=[called("coin", To("gate", "coin")), called("push", To("gate", "push"))],
        config=dict,
        observe={"coins": lambda view: view.gate.data.coins, "passed": lambda view: view.gate.data.passed},
    )


TURNSTILE = turnstile()
GENEROUS = turnstile(
    Machine(
        "gate",
        Gate,
        initial=Gate.LOCKED,
        data=Fares,
        rows=[
            Row("G1", Gate.LOCKED, "coin", always, Gate.OPEN, coin, [], "a coin opens the gate"),
            Row("G2", Gate.OPEN, "push", always, SAME, passage, [], "the bug: it stays open"),
            Row("G3", Gate.OPEN, "coin", always, SAME, keep, [], "the coin falls through"),
        ],
        refuse=[Refuse("push", Gate.LOCKED, "pay first")],
    )
)
"""One coin opens it for good."""


class Greedy(PartyCore):
    """A core that keeps the coin that its table says it ignores."""

    def __init__(self) -> None:
        super().__init__(TURNSTILE)

    def handle(self, event: Event) -> Step:
        """The step that the table says; and, beside it, another state."""
        step = super().handle(event)
        if step.rows == ("gate.open.coin",):
            snapshot: Any = self.snapshot()
            state, coins, passed = snapshot[0]
            self.restore(((state, min(coins + 1, 9), passed), *snapshot[1:]))
        return step


class Forgetful(PartyCore):
    """A core with a memory beside its snapshot: it opens every third time only."""

    def __init__(self) -> None:
        super().__init__(TURNSTILE)
        self.asked = 0

    def handle(self, event: Event) -> Step:
        """Not a function of the snapshot and the event."""
        self.asked += 1
        return Step() if self.asked % 3 == 0 and event == Called("coin") else super().handle(event)


class Turncoat:
    """A core without a declaration: it refuses to open twice, and still counts that it was asked."""

    def __init__(self) -> None:
        self.opened, self.asked = False, 0

    def handle(self, event: Event) -> Step:
        """A refusal that leaves a trace."""
        if event == Called("close"):
            self.opened = False
        elif self.opened:
            self.asked = min(self.asked + 1, 3)
            return Step(refusal=Refusal(RefusalKind.MISUSE, "door.twice", "it is open"))
        else:
            self.opened = True
        return Step(rows=("door.taken",))

    def snapshot(self) -> Hashable:
        """Both."""
        return self.opened, self.asked

    def restore(self, snapshot: Hashable) -> None:
        """Both."""
        self.opened, self.asked = snapshot  # type: ignore[misc]

    def observe(self) -> Mapping[str, bool | int]:
        """Whether it is open."""
        return {"open": self.opened}


def door() -> World:
    """The world of a turncoat."""
    made = World("door", "a door that is opened and closed")
    party = made.party("door", Turncoat)
    made.may(party, "open")
    made.may(party, "close")
    return made


world = fare()
sound = fare(sound=True)
greedy = Greedy()
