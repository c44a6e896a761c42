"""The graph that liveness is decided on: what both forms of it can do, and the form in plain Python, for small worlds.

Nodes are the reachable states, 0 the initial one. A *mark* is a set of nodes, as something that is indexed by node; what type it has
is the graph's own business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, TypeAlias

from troth.models.exploration import Progress, Reporter, Ticker
from troth.models.expressions import Expr
from troth.models.fairness import Demands, Turns
from troth.models.places import place_of, said
from troth.models.system import DONE, TRUNCATED, State, System

Marks: TypeAlias = Any
"""``marks[node]`` is true for the nodes that are in the set."""
Levels: TypeAlias = Any
"""``levels[node]`` is a distance; -1 for none."""


During: TypeAlias = Callable[[int, int], AbstractContextManager[None]]
"""Called with numbers of states and edges, it says when work on them begins and ends."""


def unwatched(states: int, edges: int) -> AbstractContextManager[None]:  # noqa: ARG001
    """Nobody listens."""
    return nullcontext()


class Raised(Exception):
    """An expression could not be evaluated at ``node``."""

    def __init__(self, node: int, message: str, *, placed: bool = False) -> None:
        """``placed``: the message says where in the user's code it was."""
        super().__init__(message)
        self.node = node
        self.message = message
        self.placed = placed


class Reach(NamedTuple):
    """How far nodes are, and the goals that are nearest."""

    levels: Levels
    hits: Sequence[int]


class Regions(Protocol):
    """The parts of the graph in which a fair run can stay for ever."""

    marks: Marks
    """All of them together."""

    def around(self, node: int) -> Marks:
        """The one that ``node`` is in."""
        ...


class LiveGraph(Protocol):
    """What the decision needs of a graph. ``depth`` is the distance of each node from the initial state."""

    system: System
    turns: Turns
    size: int
    edges: int
    depth: Levels

    def state(self, node: int) -> State:
        """The global state of a node."""
        ...

    def least(self, nodes: Sequence[int]) -> int:
        """The node with the least digest: a choice that depends on no numbering."""
        ...

    def out(self, node: int) -> Sequence[tuple[int, int]]:
        """Edges out of a node: (target, turn)."""
        ...

    def marks(self, expr: Expr) -> Marks:
        """Where ``expr`` is true. Raises ``Raised`` for the canonical one of the nearest nodes where it cannot be evaluated."""
        ...

    def without(self, marks: Marks) -> Marks:
        """All other nodes."""
        ...

    def both(self, left: Marks, right: Marks) -> Marks:
        """Nodes in both."""
        ...

    def only(self, node: int) -> Marks:
        """One node."""
        ...

    def entries(self, marks: Marks) -> Levels:
        """The depth of these nodes, -1 for the others."""
        ...

    def nearest(self, entry: Levels, allowed: Marks, goal: Marks) -> Reach:
        """Breadth first through ``allowed``, where a node may be entered at level ``entry[node]``, up to the first level with a goal."""
        ...

    def before(self, node: int, levels: Levels, allowed: Marks) -> Sequence[int]:
        """Nodes with an edge to ``node`` that are one level nearer."""
        ...

    def regions(self, allowed: Marks, demands: Demands, during: During = unwatched) -> Regions:
        """Where in ``allowed`` a run that meets ``demands`` can stay for ever, standing still included.

        Each round of looking for strong components is done ``during(states, edges)``, for nothing can be heard from within it.
        """
        ...

    def enabled(self, marks: Marks) -> frozenset[int]:
        """The turns that are possible somewhere in ``marks``."""
        ...

    def chances(self, marks: Marks, weak: frozenset[int], left: frozenset[int]) -> Marks:
        """Nodes of ``marks`` where one of ``weak`` is not possible, or one of ``left`` can be taken without leaving ``marks``."""
        ...


class PlainRegions:
    """Components by number; -1 for nodes that are in none."""

    def __init__(self, number: list[int]) -> None:
        self.number = number
        self.marks: Marks = bytearray(n >= 0 for n in number)

    def around(self, node: int) -> Marks:
        """The component of ``node``."""
        wanted = self.number[node]
        return bytearray(n == wanted for n in self.number)


class PlainGraph:
    """The whole graph in lists."""

    def __init__(self, system: System, report: Reporter | None = None, edges: int = 0) -> None:
        self.system = system
        self.turns = Turns(system)
        self.states: list[State] = [system.initial]
        self.depth: Levels = [0]
        self.edges = 0
        self._out: list[tuple[tuple[int, int], ...]] = []
        self._explore(report, edges)
        self.size = len(self.states)
        self._possible = [frozenset(turn for _, turn in edges) for edges in self._out]
        self._into: list[list[int]] = []

    def _explore(self, report: Reporter | None, expected: int) -> None:
        ticker = Ticker(with_remainder(report, expected))
        system, numbers = self.system, {self.system.initial: 0}
        for node in self._growing():
            edges = []
            for after, symbol in system.successors(self.states[node], labelled=True):
                if symbol in (DONE, TRUNCATED):
                    continue
                target = numbers.setdefault(after, len(numbers))
                if target == len(self.states):
                    self.states.append(after)
                    self.depth.append(self.depth[node] + 1)
                edges.append((target, self.turns.of(system.symbols[symbol][0])))
            self.edges += len(edges)
            self._out.append(tuple(dict.fromkeys(edges)))
            if node & 1023 == 0:
                ticker.tick("liveness graph", len(self.states), self.edges, len(self.states) - node, self.depth[node])

    def _growing(self) -> Any:
        node = 0
        while node < len(self.states):
            yield node
            node += 1

    def state(self, node: int) -> State:
        """The global state of a node."""
        return self.states[node]

    def least(self, nodes: Sequence[int]) -> int:
        """The node with the least digest."""
        return min(nodes, key=lambda node: self.system.digest(self.states[node]))

    def out(self, node: int) -> Sequence[tuple[int, int]]:
        """Edges out of a node: (target, turn)."""
        return self._out[node]

    def marks(self, expr: Expr) -> Marks:
        """Where ``expr`` is true."""
        evaluate = expr.compiled(self.system)
        found = bytearray(self.size)
        failed: list[int] = []
        for node, state in enumerate(self.states):
            try:
                value = evaluate(state, state)
            except Exception:
                failed.append(node)
                continue
            if type(value) is not bool:
                failed.append(node)
            found[node] = value is True
        if failed:
            raise failure(self, expr, failed)
        return found

    def without(self, marks: Marks) -> Marks:
        """All other nodes."""
        return bytearray(not mark for mark in marks)

    def both(self, left: Marks, right: Marks) -> Marks:
        """Nodes in both."""
        return bytearray(a and b for a, b in zip(left, right, strict=True))

    def only(self, node: int) -> Marks:
        """One node."""
        found = bytearray(self.size)
        found[node] = 1
        return found

    def entries(self, marks: Marks) -> Levels:
        """The depth of these nodes, -1 for the others."""
        return [depth if mark else -1 for depth, mark in zip(self.depth, marks, strict=True)]

    def nearest(self, entry: Levels, allowed: Marks, goal: Marks) -> Reach:
        """Breadth first, level by level."""
        waiting: dict[int, list[int]] = {}
        for node, level in enumerate(entry):
            if level >= 0 and allowed[node]:
                waiting.setdefault(level, []).append(node)
        levels = [-1] * self.size
        front: list[int] = []
        level = min(waiting, default=0)
        while front or waiting:
            new = [node for node in dict.fromkeys(front + waiting.pop(level, [])) if levels[node] < 0]
            for node in new:
                levels[node] = level
            hits = [node for node in new if goal[node]]
            if hits:
                return Reach(levels, hits)
            front = [target for node in new for target, _ in self._out[node] if allowed[target] and levels[target] < 0]
            level += 1
        return Reach(levels, [])

    def before(self, node: int, levels: Levels, allowed: Marks) -> Sequence[int]:
        """From the edges turned round, which are made when first needed."""
        if not self._into:
            self._into = [[] for _ in range(self.size)]
            for source, edges in enumerate(self._out):
                for target, _ in edges:
                    self._into[target].append(source)
        return [n for n in self._into[node] if allowed[n] and levels[n] == levels[node] - 1]

    def regions(self, allowed: Marks, demands: Demands, during: During = unwatched) -> Regions:
        """Strong components, less those that are unfair, until nothing changes."""
        alive = bytearray(allowed)
        while True:
            with during(alive.count(1), sum(len(edges) for node, edges in enumerate(self._out) if alive[node])):
                components = strong_components(self._out, alive)
            number = [-1] * self.size
            for index, nodes in enumerate(components):
                for node in nodes:
                    number[node] = index
            shrunk = [self._prune(nodes, number, alive, demands) for nodes in components]
            if not any(shrunk):
                return PlainRegions([n if alive[node] else -1 for node, n in enumerate(number)])

    def _prune(self, nodes: list[int], number: list[int], alive: bytearray, demands: Demands) -> bool:
        """Take away what cannot be part of a fair run; whether something is left that must be looked at again."""
        own = number[nodes[0]]
        taken = {turn for node in nodes for target, turn in self._out[node] if number[target] == own}
        possible = Counter(turn for node in nodes for turn in self._possible[node])
        if any(possible[turn] == len(nodes) and turn not in taken for turn in demands.weak):
            for node in nodes:
                alive[node] = 0
            return False
        starved = {turn for turn in demands.strong if possible[turn] and turn not in taken}
        for node in nodes:
            if self._possible[node] & starved:
                alive[node] = 0
        return bool(starved)

    def enabled(self, marks: Marks) -> frozenset[int]:
        """The turns that are possible somewhere in ``marks``."""
        return frozenset().union(*(self._possible[node] for node in range(self.size) if marks[node]))

    def chances(self, marks: Marks, weak: frozenset[int], left: frozenset[int]) -> Marks:
        """Where a demand can be met."""
        found = bytearray(self.size)
        for node in range(self.size):
            if marks[node]:
                found[node] = not weak <= self._possible[node] or any(turn in left and marks[target] for target, turn in self._out[node])
        return found


def failure(graph: LiveGraph, expr: Expr, nodes: Sequence[int]) -> Raised:
    """``expr`` fails at ``nodes``: of the nearest of them, the canonical one, with what it says there."""
    nearest = min(graph.depth[node] for node in nodes)
    node = graph.least([n for n in nodes if graph.depth[n] == nearest])
    state = graph.state(node)
    try:
        value = expr.compiled(graph.system)(state, state)
    except Exception as error:
        return Raised(node, said(error, ""), placed=bool(place_of(error)))
    return Raised(node, f"`{expr}` gave {value!r}, not a bool")


def with_remainder(report: Reporter | None, edges: int) -> Reporter | None:
    """Names the phase, and says what remains of it: the search has counted the edges already."""
    if report is None:
        return None

    def told(progress: Progress) -> None:
        rate = progress.edges / progress.elapsed_s if progress.elapsed_s > 0 else 0.0
        left = max(0, edges - progress.edges) / rate if rate and edges else None
        report(progress._replace(phase="liveness graph", remaining_s=left))

    return told


def strong_components(out: Sequence[Sequence[tuple[int, int]]], alive: bytearray) -> list[list[int]]:
    """The strongly connected components among ``alive`` nodes, single nodes included: Tarjan's algorithm without recursion."""
    order = [-1] * len(out)
    low = [0] * len(out)
    on_stack = bytearray(len(out))
    stack: list[int] = []
    found: list[list[int]] = []
    count = 0
    for root in range(len(out)):
        if not alive[root] or order[root] >= 0:
            continue
        work = [(root, iter(out[root]))]
        order[root] = low[root] = count
        count += 1
        stack.append(root)
        on_stack[root] = 1
        while work:
            node, edges = work[-1]
            deeper = next((t for t, _ in edges if alive[t] and _seen(t, node, order, low, on_stack)), None)
            if deeper is not None:
                order[deeper] = low[deeper] = count
                count += 1
                stack.append(deeper)
                on_stack[deeper] = 1
                work.append((deeper, iter(out[deeper])))
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == order[node]:
                found.append(_popped(stack, on_stack, node))
    return found


def _seen(target: int, node: int, order: list[int], low: list[int], on_stack: bytearray) -> bool:
    """Whether ``target`` is new. If it is not, and still open, ``node`` can reach back to it."""
    if order[target] < 0:
        return True
    if on_stack[target]:
        low[node] = min(low[node], order[target])
    return False


def _popped(stack: list[int], on_stack: bytearray, last: int) -> list[int]:
    nodes = []
    while True:
        node = stack.pop()
        on_stack[node] = 0
        nodes.append(node)
        if node == last:
            return nodes
