"""What fairness speaks of.

The edges of a fair action are not all one thing: a link that is fair delivers *this* message in the end, not just some message, and a
fair clock fires *this* timer. On the other hand nobody schedules what comes of a delivery: where a party may answer in two ways, or
crash in between, fairness does not force either. So fairness speaks of *turns*: an action and, for the network and the clock, the
message or the timer it acts on. All outcomes of a turn are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from attrs import frozen

from troth.models.canonical import spelled
from troth.models.properties import Property
from troth.models.system import ActionKind, Label, System

_BY_MESSAGE = frozenset({ActionKind.DELIVER, ActionKind.LOSE, ActionKind.DUPLICATE})
_TIMER_PARTS = 3
"""``(timer or stale, name, key)``: how a party names the firing of a timer, before it names what came of it."""


class Turn(NamedTuple):
    """One thing that fairness can give its turn: the action's index, and what it acts on (``()`` where there is no choice)."""

    action: int
    about: tuple[Hashable, ...] = ()


def turn_of(system: System, label: Label) -> Turn:
    """The turn that an edge with this label takes."""
    kind = system.actions[label.action].kind
    if kind in _BY_MESSAGE:
        return Turn(label.action, label.variants[:1])
    if kind is ActionKind.TIMER and label.variants and isinstance(label.variants[0], tuple):
        return Turn(label.action, label.variants[0][:_TIMER_PARTS])
    return Turn(label.action)


@frozen
class Demands:
    """What a run must do to be fair: numbers of turns. Each of ``weak`` is disabled again and again, or taken again and again; each

    of ``strong`` is disabled from some point on, or taken again and again.
    """

    weak: frozenset[int] = frozenset()
    strong: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """Both."""
        return self.weak | self.strong


class Turns:
    """The turns of a system by number, in the order in which its labels were first seen."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.known: list[Turn] = []
        self._numbers: dict[Turn, int] = {}
        self._of_label: dict[int, int] = {}

    def of(self, label: int) -> int:
        """The turn of label number ``label``."""
        found = self._of_label.get(label)
        if found is None:
            found = self._of_label[label] = self.named(self.system.labels[label])
        return found

    def named(self, label: Label) -> int:
        """The turn of a label."""
        turn = turn_of(self.system, label)
        if turn not in self._numbers:
            self._numbers[turn] = len(self.known)
            self.known.append(turn)
        return self._numbers[turn]

    def key(self, turn: int) -> tuple[int, str]:
        """To put turns in an order that depends on no numbering."""
        return self.known[turn].action, spelled(self.known[turn].about)

    def demands(self, claim: Property) -> Demands:
        """What ``claim`` assumes of a run, in turns seen so far: call it when the whole graph is known."""
        weak = (f.actions for f in claim.fair if not f.strong)
        strong = (f.actions for f in claim.fair if f.strong)
        return Demands(self._of_actions(weak), self._of_actions(strong))

    def _of_actions(self, groups: Iterable[frozenset[int]]) -> frozenset[int]:
        actions = frozenset().union(*groups)
        return frozenset(number for number, turn in enumerate(self.known) if turn.action in actions)
