"""Paths through the graph of a world that take each of its edges: what an implementation is to be led along.

A world's graph says what may happen in every state, and ``check`` has gone through all of it. Whoever leads an implementation along these
paths, action by action, and compares its state after each, has seen it do everything that the model can do.

>>> from troth.models import World
>>> from troth.spec import Send
>>> world = World("lamp", "it goes on and off")
>>> lamp = world.party("lamp", lambda on, event: (event.call == "on", ()), initial=False)
>>> _ = world.may(lamp, "on"), world.may(lamp, "off")
>>> graph = Graph.of(world.system())
>>> [[edge.step.action.name for edge in path] for path in graph.cover()]
[['lamp.on', 'lamp.on', 'lamp.off', 'lamp.off']]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from troth.models.system import State, System
from troth.models.trace import TraceStep, edges

Forces: TypeAlias = "Callable[[TraceStep], str | None]"
"""The action that nothing else comes before, once that edge was taken; ``None`` if anything may come."""
Place: TypeAlias = "tuple[State, str | None]"
"""A state, and the action that has to come next, if one has to."""
Bars: TypeAlias = "Callable[[State, TraceStep], str | None]"
"""Why the implementation cannot be led along that edge; ``None`` if it can."""

NO_WAY = "only what cannot be taken leads there"
"""Why an edge cannot be taken that could be, from where it begins."""


class TooLarge(ValueError):
    """The graph has more states than were to be looked at."""


@frozen(eq=False)
class Edge:
    """One edge of the graph. ``number`` is its place among all of them, in the order in which a search meets them."""

    number: int
    source: State
    step: TraceStep

    @property
    def target(self) -> State:
        """Where it leads."""
        return self.step.state


def nothing_forced(_step: TraceStep) -> None:
    """Any action of the world may come at any time."""


def nothing_barred(_state: State, _step: TraceStep) -> None:
    """Any action of the world can be brought about."""


@define(eq=False)
class Graph:
    """Every state that can be reached, and every edge between them."""

    system: System
    out: Mapping[State, Sequence[Edge]]
    count: int
    """How many edges there are."""
    forces: Forces = field(default=nothing_forced)
    """What the implementation cannot be kept from doing at once, although the world lets other things happen before it."""
    bars: Bars = field(default=nothing_barred)
    _onward: dict[Place, Sequence[tuple[Edge, Place]]] = field(factory=dict, init=False)

    @classmethod
    def of(cls, system: System, *, forces: Forces = nothing_forced, bars: Bars = nothing_barred, most: int = 100_000) -> Graph:
        """All of it. Raises ``TooLarge`` above ``most`` states."""
        out: dict[State, list[Edge]] = {}
        waiting = deque([system.initial])
        count = 0
        while waiting:
            state = waiting.popleft()
            if state in out:
                continue
            if len(out) == most:
                raise TooLarge(f"more than {most} states; lower the bounds of the world, or raise `most`")
            out[state] = [Edge(count + place, state, step) for place, step in enumerate(edges(system, state))]
            count += len(out[state])
            waiting.extend(edge.target for edge in out[state] if edge.target not in out)
        return cls(system, out, count, forces, bars)

    def __iter__(self) -> Iterator[Edge]:
        for found in self.out.values():
            yield from found

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.out)

    def onward(self, place: Place) -> Sequence[tuple[Edge, Place]]:
        """The edges that can be taken from there, and where each leads."""
        found = self._onward.get(place)
        if found is None:
            state, forced = place
            free = [edge for edge in self.out[state] if forced is None or edge.step.action.name == forced]
            found = [(edge, (edge.target, self.forces(edge.step))) for edge in free if self.bars(state, edge.step) is None]
            self._onward[place] = found
        return found

    def barred(self) -> dict[int, str]:
        """The edges that cannot be taken, and why: because they are barred, or because every way to them is."""
        possible = self.possible()
        return {e.number: self.bars(e.source, e.step) or NO_WAY for e in self if e.number not in possible}

    def possible(self) -> frozenset[int]:
        """The numbers of the edges that can be taken, with what is forced and barred."""
        start: Place = (self.system.initial, None)
        seen: set[Place] = {start}
        waiting: list[Place] = [start]
        found: set[int] = set()
        while waiting:
            for edge, after in self.onward(waiting.pop()):
                found.add(edge.number)
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return frozenset(found)

    def cover(self, *, longest: int = 400) -> Iterator[list[Edge]]:
        """Paths from the initial state that take every possible edge, each at least once, one path after the other.

        Each goes to the nearest edge that none has taken, and on from there, until there is none left within reach or it has ``longest``
        edges. That is at most a small part more than the shortest cover, and takes no time to find.
        """
        left = set(self.possible())
        spent: set[Place] = set()
        while left:
            place: Place = (self.system.initial, None)
            path: list[Edge] = []
            while (found := self._nearest(place, left, spent)) is not None and (not path or len(path) + len(found[0]) <= longest):
                path += found[0]
                left -= {edge.number for edge in found[0]}
                place = found[1]
            yield self._whole(path, place)

    def _nearest(self, start: Place, wanted: set[int], spent: set[Place]) -> tuple[list[Edge], Place] | None:
        """The shortest way to and over an edge of these. ``spent`` are places from where there is none any more, ever."""
        came: dict[Place, tuple[Edge, Place] | None] = {start: None}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here in spent:
                continue
            for edge, after in self.onward(here):
                if edge.number in wanted:
                    way = [edge]
                    while (before := came[here]) is not None:
                        way.append(before[0])
                        here = before[1]
                    return way[::-1], after
                if after not in came:
                    came[after] = edge, here
                    waiting.append(after)
        spent |= came.keys()
        return None

    def _whole(self, path: list[Edge], place: Place) -> list[Edge]:
        """A path that does not end before what is forced has come."""
        while place[1] is not None:
            edge, place = self.onward(place)[0]
            path.append(edge)
        return path
