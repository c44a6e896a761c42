"""The graph that liveness is decided on, in numpy arrays: for the worlds that the vector engine explores.

The same answers as ``live_graph.PlainGraph``, by the same rounds; strong components are found by scipy. Both libraries are imported
with this module, so it is imported only for such worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from troth.models.exploration import Reporter
from troth.models.expressions import Expr
from troth.models.fairness import Demands, Turns
from troth.models.live_graph import During, Levels, Marks, Reach, Regions, failure, unwatched, with_remainder
from troth.models.system import State, System
from troth.models.vector.graph import graph
from troth.models.vector.layout import taken
from troth.models.vector.predicates import Columns, Digests, compiled

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
PIECE = 1 << 16
"""States that an expression is evaluated on at a time."""


class ArrayRegions:
    """Components by number; -1 for nodes that are in none."""

    def __init__(self, number: NDArray[np.int32]) -> None:
        self.number = number
        self.marks: Marks = number >= 0

    def around(self, node: int) -> Marks:
        """The component of ``node``."""
        return self.number == self.number[node]


class ArrayGraph:
    """The whole graph in arrays: the edges out of ``node`` are at ``starts[node]`` to ``starts[node + 1]``."""

    def __init__(self, system: System, report: Reporter | None = None, edges: int = 0) -> None:
        self.system = system
        self.turns = Turns(system)
        self.found = graph(system, with_remainder(report, edges))
        self.size = len(self.found)
        self.starts, self.targets = self.found.starts, self.found.targets
        self.edges = len(self.targets)
        self.turn = self._turned(self.found.labels)
        self.sources = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.starts))
        self.digests = Digests(system)
        everywhere = np.ones(self.size, np.bool_)
        first = np.full(self.size, -1, np.int64)
        first[0] = 0
        self.depth: Levels = self.nearest(first, everywhere, ~everywhere).levels

    def _turned(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Labels, which are numbers of the system, as turns."""
        seen = np.flatnonzero(np.bincount(labels, minlength=1))
        table = np.full(int(seen.max(initial=0)) + 1, -1, np.int32)
        for label in seen.tolist():
            table[label] = self.turns.of(label)
        return table[labels]

    def state(self, node: int) -> State:
        """The global state of a node."""
        return self.found.state(node)

    def least(self, nodes: Sequence[int]) -> int:
        """The node with the least digest."""
        chosen = np.asarray(nodes, np.int64)
        digests = self.digests.of(self.found.layout, taken(self.found.packed, chosen))
        return int(chosen[int(digests.argmin())])

    def out(self, node: int) -> Sequence[tuple[int, int]]:
        """Edges out of a node: (target, turn)."""
        span = slice(int(self.starts[node]), int(self.starts[node + 1]))
        return list(zip(self.targets[span].tolist(), self.turn[span].tolist(), strict=True))

    def marks(self, expr: Expr) -> Marks:
        """Where ``expr`` is true."""
        node = compiled(expr, self.system)
        parts: list[Any] = []
        failed: list[Numbers] = []
        for low in range(0, self.size, PIECE):
            columns = Columns(self.found.layout, tuple(word[low : low + PIECE] for word in self.found.packed))
            parts.append(node.values(columns))
            if columns.failed is not None:
                failed.append(low + np.flatnonzero(columns.failed))
        if failed and len(where := np.concatenate(failed)):
            depths = self.depth[where]
            raise failure(self, expr, where[depths == depths.min()].tolist())
        return np.concatenate(parts)

    def without(self, marks: Marks) -> Marks:
        """All other nodes."""
        return ~marks

    def both(self, left: Marks, right: Marks) -> Marks:
        """Nodes in both."""
        return left & right

    def only(self, node: int) -> Marks:
        """One node."""
        found = np.zeros(self.size, np.bool_)
        found[node] = True
        return found

    def entries(self, marks: Marks) -> Levels:
        """The depth of these nodes, -1 for the others."""
        return np.where(marks, self.depth, -1)

    def nearest(self, entry: Levels, allowed: Marks, goal: Marks) -> Reach:
        """Breadth first, level by level."""
        levels = np.full(self.size, -1, np.int64)
        where = np.flatnonzero((entry >= 0) & allowed)
        where = where[np.argsort(entry[where], kind="stable")]
        late = entry[where]
        front = np.empty(0, np.int64)
        place, level = 0, int(late[0]) if len(late) else 0
        while len(front) or place < len(where):
            until = int(np.searchsorted(late, level, side="right"))
            new = np.concatenate([front, where[place:until]])
            place = until
            new = np.unique(new[levels[new] < 0])
            levels[new] = level
            hits = new[goal[new]]
            if len(hits):
                return Reach(levels, hits.tolist())
            after = self._after(new)
            front = np.unique(after[allowed[after] & (levels[after] < 0)]).astype(np.int64)
            level += 1
        return Reach(levels, [])

    def _after(self, nodes: Numbers) -> NDArray[np.int32]:
        """The targets of all edges out of ``nodes``."""
        first, counts = self.starts[nodes], self.starts[nodes + 1] - self.starts[nodes]
        shift = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) if len(nodes) else np.empty(0, np.int64)
        return self.targets[np.arange(len(shift)) + shift]

    def before(self, node: int, levels: Levels, allowed: Marks) -> Sequence[int]:
        """By looking at every edge: it is asked once a step of a counterexample."""
        found = np.unique(self.sources[self.targets == node])
        nearer: list[int] = found[allowed[found] & (levels[found] == levels[node] - 1)].tolist()
        return nearer

    def regions(self, allowed: Marks, demands: Demands, during: During = unwatched) -> Regions:
        """Strong components, less those that are unfair, until nothing changes."""
        alive: Mask = allowed.copy()
        demanded = self._demanded(demands)
        while True:
            number = self._components(alive, during)
            inside = alive[self.sources] & alive[self.targets] & (number[self.sources] == number[self.targets])
            if not self._prune(alive, number, inside, demanded, demands):
                return ArrayRegions(np.where(alive, number, -1).astype(np.int32))

    def _demanded(self, demands: Demands) -> Mask:
        """Which edges take a turn that is demanded."""
        table = np.zeros(len(self.turns.known) + 1, np.bool_)
        table[list(demands.all)] = True
        return table[self.turn]

    def _components(self, alive: Mask, during: During) -> NDArray[np.int32]:
        keep = alive[self.sources] & alive[self.targets]
        rows, columns = self.sources[keep], self.targets[keep]
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=self.size), out=starts[1:])
        matrix = csr_array((np.ones(len(columns), np.int8), columns, starts), shape=(self.size, self.size))
        with during(int(alive.sum()), len(columns)):
            number: NDArray[np.int32] = connected_components(matrix, directed=True, connection="strong")[1]
        return number

    def _prune(self, alive: Mask, number: NDArray[np.int32], inside: Mask, demanded: Mask, demands: Demands) -> bool:
        """Take away what cannot be part of a fair run; whether something is left that must be looked at again."""
        width = len(self.turns.known) + 1
        mine = np.flatnonzero(demanded & alive[self.sources])
        # Pairs (component, turn) and (node, turn), each as one number.
        possible = np.unique(self.sources[mine].astype(np.int64) * width + self.turn[mine])
        node, turn = possible // width, possible % width
        pair = number[node].astype(np.int64) * width + turn
        kept = np.flatnonzero(demanded & inside)
        done = np.unique(number[self.sources[kept]].astype(np.int64) * width + self.turn[kept])
        pairs, counts = np.unique(pair, return_counts=True)
        open_ = ~np.isin(pairs, done)
        sizes = np.bincount(number[alive], minlength=int(number.max(initial=0)) + 1)
        unfair = open_ & (counts == sizes[pairs // width]) & np.isin(pairs % width, list(demands.weak))
        dead = np.zeros(len(sizes), np.bool_)
        dead[pairs[unfair] // width] = True
        alive &= ~dead[number]
        starved = pairs[open_ & np.isin(pairs % width, list(demands.strong))]
        losing = node[np.isin(pair, starved)]
        again = bool(alive[losing].any())
        alive[losing] = False
        return again

    def enabled(self, marks: Marks) -> frozenset[int]:
        """The turns that are possible somewhere in ``marks``."""
        return frozenset(np.flatnonzero(np.bincount(self.turn[marks[self.sources]], minlength=1)).tolist())

    def chances(self, marks: Marks, weak: frozenset[int], left: frozenset[int]) -> Marks:
        """Where a demand can be met."""
        inside = marks[self.sources] & marks[self.targets]
        found = np.zeros(self.size, np.bool_)
        found[self.sources[inside & np.isin(self.turn, list(left))]] = True
        for turn in weak:
            without = marks.copy()
            without[self.sources[self.turn == turn]] = False
            found |= without
        return found
