"""Messages followed from their sending to their end, through the links of a trace.

A link's state says which messages are in it, not which is which. Here each message of a trace gets a life of its own: who sent it at
which step, whether it is a copy that the network made, and what became of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from enum import Enum

from attrs import define, field

from troth.models.closing import Asked
from troth.models.links import LinkComponent, LinkLocal, LinkOp, Status
from troth.models.parties import PartyComponent, Push
from troth.models.render.words import value
from troth.models.system import System
from troth.models.trace import Reaction, Trace
from troth.spec.core import Received


class Fate(Enum):
    """What became of a message."""

    DELIVERED = "delivered"
    LOST = "lost"
    FULL = "found no room"
    MERGED = "on its way already"
    IN_FLIGHT = "in flight"


@define
class Flight:
    """One message. Steps count from 1; ``died`` is ``None`` while it is in flight, ``link`` empty for what takes no time."""

    number: int
    message: str
    link: str
    source: str
    target: str
    born: int
    raw: Hashable = field(repr=False)
    copy: bool = False
    """The network made it, of another message."""
    died: int | None = None
    fate: Fate = Fate.IN_FLIGHT


class Tracker:
    """Follows the messages of a trace, reaction by reaction."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.flights: list[Flight] = []
        self.inside: dict[int, list[Flight]] = {}
        self.labels = link_labels(system)

    def step(self, number: int, reactions: tuple[Reaction, ...]) -> None:
        """One step of the trace."""
        pushed: dict[int, list[str]] = {}
        for reaction in reactions:
            component = self.system.components[reaction.component].component
            if isinstance(component, LinkComponent):
                self._link(number, reaction, component, pushed)
            elif isinstance(component, PartyComponent):
                self._party(number, reaction, pushed)

    def _party(self, number: int, reaction: Reaction, pushed: dict[int, list[str]]) -> None:
        for index, operation in reaction.emits:
            if isinstance(operation, Push):
                pushed.setdefault(index, []).append(reaction.name)
            elif isinstance(operation, Received | Asked):
                message = operation.message if isinstance(operation, Received) else operation.effect
                flight = self._born(number, message, "", reaction.name, self.system.name(index))
                flight.died, flight.fate = number, Fate.DELIVERED

    def _link(self, number: int, reaction: Reaction, link: LinkComponent, pushed: dict[int, list[str]]) -> None:
        before, after = reaction.before, reaction.after
        if not isinstance(before, LinkLocal) or not isinstance(after, LinkLocal):
            raise TypeError(f"{reaction.name} is a link without a link's state")
        inside = self.inside.setdefault(reaction.component, [])
        match reaction.operation:
            case Push(messages=messages):
                self._pushed(number, reaction, link, messages, pushed[reaction.component].pop(0))
            case LinkOp.DELIVER | LinkOp.LOSE if reaction.variant != "closed" or before.messages:
                flight = inside[_gone(before.messages, after.messages)] if link.ordered else self._first(inside, reaction.variant)
                inside.remove(flight)
                flight.died = number
                flight.fate = Fate.DELIVERED if reaction.operation is LinkOp.DELIVER else Fate.LOST
            case LinkOp.DUPLICATE:
                first = self._first(inside, reaction.variant)
                copy = self._born(number, first.raw, first.link, first.source, first.target)
                copy.copy = True
                inside.append(copy)
            case LinkOp.CUT | LinkOp.DROP:
                for flight in inside:
                    flight.died, flight.fate = number, Fate.LOST
                inside.clear()
            case _:
                pass

    def _pushed(self, number: int, reaction: Reaction, link: LinkComponent, messages: tuple[Hashable, ...], source: str) -> None:
        before, after = reaction.before, reaction.after
        if not isinstance(before, LinkLocal) or not isinstance(after, LinkLocal):
            raise TypeError(f"{reaction.name} is a link without a link's state")
        fresh, room = list(link.fresh(before, messages)), len(after.messages) - len(before.messages)
        for message in messages:
            flight = self._born(number, message, self.labels[reaction.component], source, self.system.name(link.target))
            flight.died = number
            if before.status is not Status.UP:
                flight.fate = Fate.LOST
            elif message not in fresh:
                flight.fate = Fate.MERGED
            elif not room:
                flight.fate = Fate.FULL
            else:
                flight.died = None
                self.inside[reaction.component].append(flight)
                room -= 1
                fresh.remove(message)

    def _born(self, number: int, message: Hashable, link: str, source: str, target: str) -> Flight:
        flight = Flight(len(self.flights), value(message), link, source, target, number, message)
        self.flights.append(flight)
        return flight

    def _first(self, inside: list[Flight], message: Hashable) -> Flight:
        """The oldest of the messages that say this: on an ordered link the oldest of all."""
        return next(flight for flight in inside if flight.raw == message)

    def in_flight(self) -> dict[str, tuple[str, ...]]:
        """Link to messages, the oldest first, for the links that carry any."""
        found = {self.labels[index]: tuple(f.message for f in inside) for index, inside in sorted(self.inside.items())}
        return {name: messages for name, messages in found.items() if messages}


def _gone(before: tuple[Hashable, ...], after: tuple[Hashable, ...]) -> int:
    """The first place from which a message may have been taken."""
    return next(i for i in range(len(before)) if before[:i] + before[i + 1 :] == after)


def link_labels(system: System) -> dict[int, str]:
    """What each link is called: by its ends, and by its name too where two links have the same ends."""
    names = {t.index: t.component.name for t in system.components if isinstance(t.component, LinkComponent)}
    ends = [name.partition(":")[0] for name in names.values()]
    return {index: name if ends.count(name.partition(":")[0]) > 1 else name.partition(":")[0] for index, name in names.items()}


def flights(trace: Trace) -> Iterator[Flight]:
    """Every message of a trace, in the order of sending."""
    tracker = Tracker(trace.system)
    for number, step in enumerate(trace.steps, start=1):
        tracker.step(number, step.reactions)
    yield from tracker.flights
