"""A counterexample to a liveness property: a way to a loop, and a loop that is fair. Every step is a real edge.

The loop meets each demand of fairness where that is nearest: it visits a state where the turn is not possible, or takes it. Where a
run may stand still for ever, the loop has no steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from attrs import define

from troth.models.fairness import Demands
from troth.models.live_graph import Levels, LiveGraph, Marks
from troth.models.trace import Trace, TraceStep, edges


def walked_back(graph: LiveGraph, node: int, levels: Levels, allowed: Marks, entry: Levels) -> list[int]:
    """The nodes from one that may be entered at its level to ``node``, each the canonical one of those that could come before."""
    path = [node]
    while entry[path[-1]] != levels[path[-1]]:
        path.append(graph.least(graph.before(path[-1], levels, allowed)))
    path.reverse()
    return path


def way_to(graph: LiveGraph, node: int) -> list[int]:
    """A shortest path from the initial state to ``node``."""
    start = graph.entries(graph.only(0))
    return walked_back(graph, node, graph.depth, graph.without(graph.only(node)), start)


@define(eq=False)
class _Loop:
    """A loop under construction, in ``region``. ``weak`` and ``strong``: the demands that it does not meet yet."""

    graph: LiveGraph
    region: Marks
    start: int
    weak: frozenset[int]
    strong: frozenset[int]
    here: int
    steps: list[TraceStep]

    @property
    def left(self) -> frozenset[int]:
        return self.weak | self.strong

    def close(self) -> list[TraceStep]:
        """Meet every demand, nearest first, and come back."""
        while self.left:
            before = self.left
            self._go(self.graph.chances(self.region, self.weak, self.left))
            if self.left == before:
                self._take()
            if self.left == before:
                raise AssertionError("a demand of fairness cannot be met in its region")
        self._go(self.graph.only(self.start))
        return self.steps

    def _go(self, goal: Marks) -> None:
        graph = self.graph
        # A level of its own for the start, so that the distance to everything else is counted from there.
        entry = graph.entries(graph.only(self.here))
        reach = graph.nearest(entry, self.region, goal)
        if not len(reach.hits):
            raise AssertionError("a region is not strongly connected")
        path = walked_back(graph, graph.least(reach.hits), reach.levels, self.region, entry)
        for node in path[1:]:
            self._step(node, None)

    def _take(self) -> None:
        """Take one of the turns that are left, without leaving the region."""
        graph = self.graph
        found = [(t, turn) for t, turn in graph.out(self.here) if turn in self.left and self.region[t]]
        turn = min((turn for _, turn in found), key=graph.turns.key)
        self._step(graph.least([t for t, taken in found if taken == turn]), turn)

    def _step(self, node: int, turn: int | None) -> None:
        """The first edge to ``node`` that takes ``turn``, or one that is left, or any."""
        turns = self.graph.turns
        wanted = self.left if turn is None else {turn}
        after = self.graph.state(node)
        among = [e for e in edges(self.graph.system, self.graph.state(self.here)) if e.state == after]
        step = next((e for e in among if turns.named(e.label) in wanted), among[0])
        self.steps.append(step)
        self.here = node
        taken = turns.named(step.label)
        possible = frozenset(t for _, t in self.graph.out(node))
        self.weak = (self.weak & possible) - {taken}
        self.strong -= {taken}


def loop_from(graph: LiveGraph, start: int, region: Marks, demands: Demands) -> list[TraceStep]:
    """A loop at ``start`` within ``region`` that meets ``demands``; empty where standing still meets them."""
    possible = frozenset(turn for _, turn in graph.out(start))
    in_place = frozenset(turn for target, turn in graph.out(start) if target == start)
    if demands.all & possible <= in_place:
        region = graph.only(start)
    weak = demands.weak & possible
    strong = demands.strong & graph.enabled(region)
    return _Loop(graph, region, start, weak, strong, start, []).close()


def lasso(graph: LiveGraph, way: Sequence[int], region: Marks, demands: Demands) -> Trace:
    """The run along ``way`` and then for ever round a fair loop. ``Trace.loop`` is the last state where it stands still for ever."""
    system = graph.system
    steps: list[TraceStep] = []
    for before, after in pairwise(way):
        wanted = graph.state(after)
        steps.append(next(e for e in edges(system, graph.state(before)) if e.state == wanted))
    loop = loop_from(graph, way[-1], region, demands)
    return Trace(system, graph.state(way[0]), (*steps, *loop), len(steps))
