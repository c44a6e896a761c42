"""The vector search: one process at first, two when the frontier is wide enough to be worth it."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from troth.models.exploration import Ending, Exploration, Limits, Reporter, Ticker
from troth.models.properties import Property
from troth.models.symmetry import Symmetry
from troth.models.system import State, System
from troth.models.vector.expander import Counts, Expander
from troth.models.vector.filler import Outgrown
from troth.models.vector.findings import Watch
from troth.models.vector.layout import CHUNK, Layout, Words, chunks, joined, taken
from troth.models.vector.memory import SHARE, available_bytes, exhausted, tune_allocator
from troth.models.vector.parallel import Team, can_fork
from troth.models.vector.symmetric import Canonical, representatives
from troth.models.vector.table import Table

FORK_FRONTIER = 1 << 15
"""States of a level from which on a second process pays."""
FORK_LEARNT = 64
"""New local states in a level, up to which a team may start: above it, it would meet more often than it searches."""


class VectorLevels:
    """The states of each depth, packed."""

    def __init__(self, expander: Expander, canonical: Canonical | None) -> None:
        self.expander = expander
        self.canonical = canonical
        self.levels: list[list[Words]] = []
        """For each depth, the parts that were found by different workers."""

    def predecessors(self, depth: int, target: State) -> list[State]:
        """By expanding the level again."""
        layout = self.expander.layout
        wanted = [int(word[0]) for word in layout.pack_one(target)]
        found: set[State] = set()
        for part in self.levels[depth]:
            for chunk in chunks(part):
                hits: list[int] = []

                def sink(rows: object, states: Words, symbols: object, hits: list[int] = hits) -> None:  # noqa: ARG001
                    if self.canonical is not None:
                        states = representatives(self.canonical, self.expander, states)
                    same = states[0] == np.uint64(wanted[0])
                    for word in range(1, len(states)):
                        same &= states[word] == np.uint64(wanted[word])
                    if isinstance(rows, np.ndarray):
                        hits += rows[same].tolist()

                self.expander.expand(chunk, sink, rows=True)
                found |= {layout.unpack_one(chunk, row) for row in hits}
        if depth + 1 < len(self.levels) and not found:
            raise AssertionError("a state without a predecessor")
        return sorted(found)

    def repack(self, old: Layout, new: Layout) -> None:
        """Take over a new layout."""
        try:
            self.levels = [[old.repacked(part, new) for part in level] for level in self.levels]
        except MemoryError:
            self.expander.adopt(old)  # what is known so far can still be read
            raise


class Batch:
    """A buffer for the successors of one chunk."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.parts: list[Words] = []
        self.size = 0

    def sink(self, rows: object, states: Words, symbols: object) -> None:  # noqa: ARG002
        """Keep successors."""
        self.parts.append(states)
        self.size += len(states[0])

    def all(self) -> Words:
        """Everything kept."""
        return joined(self.parts, self.words)


class VectorSearch:
    """One search in one process."""

    def __init__(
        self,
        system: System,
        properties: Sequence[Property],
        limits: Limits,
        report: Reporter | None,
        symmetry: Symmetry | None,
    ) -> None:
        tune_allocator()
        self.canonical = Canonical(symmetry) if symmetry is not None else None
        self.start = symmetry.canonical(system.initial) if symmetry is not None else system.initial
        self.system = system
        self.limits = limits
        self.expander = Expander(system)
        self.watch = Watch(system, properties)
        self.found = Exploration(engine="vector")
        self.levels = VectorLevels(self.expander, self.canonical)
        self.found.levels = self.levels
        self.ticker = Ticker(report)
        self.max_bytes = limits.max_bytes or int(available_bytes() * SHARE)
        self.table: Table
        self.depth = 0
        self.alone = False
        """No team can be had: there is not the memory that it would share."""
        self.settled = (0, 0)
        """Edges, and those cut off, up to the last level that was done."""
        self.level_bytes = 0
        self.known = 0
        """Local states of all components when the present level began."""

    def _table(self) -> Table:
        return self.new_table(1, 0)

    def new_table(self, workers: int, expected: int) -> Table:
        """An empty table that may take its share of the memory, with room for ``expected`` states."""
        words = self.expander.layout.words
        return Table(words, self.max_bytes // (8 * words * workers) * 3 // 4, expected)

    def run(self) -> Exploration:
        """Search until everything is seen or a limit is reached."""
        started = perf_counter()
        try:
            self._run()
        except (MemoryError, OSError) as error:
            if not exhausted(error):
                raise
            # What was settled at the ends of levels is as good as ever; of the level under way nothing is said.
            self.found.ending = Ending.MEMORY
            self.found.edges, self.found.truncated = self.settled
        self.found.seconds = perf_counter() - started
        return self.found

    def _run(self) -> None:
        self.table = self._table()
        front = joined([self.table.insert(self.expander.layout.pack_one(self.start)), self.table.flush()], self.expander.layout.words)
        while len(front[0]):
            team = self._team(len(front[0]))
            if team is not None:
                self.found.processes = team.workers
                front, ending = team.run(front)
                if ending is not None:
                    self.found.ending = ending
                    break
                continue
            self.levels.levels.append([front])
            self.level_bytes += len(front[0]) * 8 * len(front)
            self.found.depth = self.depth
            before = self.found.edges, self.found.truncated
            front = self._level(front)
            self.settle_counts(self.table.count, before)
            ending = self.watch.settle(self.found, self.depth, stop=self.limits.stop_at_violation) or self._limit(front)
            if ending is not None:
                self.found.ending = ending
                break
            self.depth += 1

    def _team(self, size: int) -> Team | None:
        """A team, if one pays and there is room for what it shares."""
        if not self._team_pays(size):
            return None
        try:
            return Team(self, self.limits.processes)
        except (MemoryError, OSError):
            self.alone = True
            return None

    def _team_pays(self, size: int) -> bool:
        learnt, self.known = sum(self.expander.counts()) - self.known, sum(self.expander.counts())
        settled = learnt <= max(FORK_LEARNT, size >> 11)
        # A renaming may number new local states at any time, which a team could not agree on.
        return not self.alone and self.limits.processes > 1 and size >= FORK_FRONTIER and settled and can_fork() and self.canonical is None

    def settle_counts(self, states: int, before: tuple[int, int]) -> None:
        """At the end of a level: how many states there are. ``before``: the edges counted, and those cut off, when the level began."""
        self.found.states = states
        if states > self.limits.most_states:
            self.found.cut_short(self.limits.most_states, before)
            self.watch.forget_edges()
        self.settled = self.found.edges, self.found.truncated

    def look_on(self, front: Words, at: int) -> None:
        """Look at the states of a level from ``at`` on that are not expanded any more."""
        for chunk in chunks(tuple(word[at:] for word in front)):
            self.watch.look(self.expander.layout, chunk)

    def _limit(self, front: Words) -> Ending | None:
        if self.table.count > self.limits.most_states:
            return Ending.STATES
        if self.table.full:
            return Ending.MEMORY  # even if nothing is left to expand: the table may have dropped states
        if not len(front[0]):
            return None
        if self.table.bytes + self.level_bytes + self.expander.bytes > self.max_bytes:
            return Ending.MEMORY
        return None

    def _level(self, front: Words) -> Words:
        """Look at and expand one level; return the next."""
        new: list[Words] = []
        at, size = 0, len(front[0])
        while at < size:
            chunk = tuple(word[at : at + CHUNK] for word in front)
            try:
                batch, counts = self.chunk(chunk)
            except Outgrown:
                front, new = self._relayout(new, at, size)
                continue
            at += len(chunk[0])
            self.found.edges += counts.edges
            self.found.truncated += counts.cut
            new.append(self.table.insert(batch))
            self.ticker.tick("exploring", self.table.count, self.found.edges, size, self.depth)
            if self.table.count > self.limits.most_states:
                self.look_on(front, at)
                break
        new.append(self.table.flush())
        return joined(new, self.expander.layout.words)

    def _relayout(self, new: list[Words], at: int, size: int) -> tuple[Words, list[Words]]:  # noqa: ARG002
        """Plan anew, and repack everything if fields moved; return the present level and the part of the next that is known."""
        late = self.table.flush()
        new = [*new, late]
        old = self.expander.relayout()
        layout = self.expander.layout
        if layout is not old:
            self.levels.repack(old, layout)
            new = [old.repacked(part, layout) for part in new]
            seen = self.table.all()
            del self.table  # before there is another: the addresses may not suffice for both
            self.table = self.new_table(1, len(seen[0]))
            for piece in chunks(seen):
                self.table.insert(old.repacked(piece, layout))
            self.table.flush()
        return self.levels.levels[-1][0], new

    def chunk(self, chunk: Words) -> tuple[Words, Counts]:
        """Look at and expand one chunk."""
        layout, watch = self.expander.layout, self.watch
        batch = Batch(layout.words)
        pairs: list[tuple[Words, Words]] = []

        def both(rows: object, states: Words, symbols: object) -> None:
            batch.sink(rows, states, symbols)
            if isinstance(rows, np.ndarray):
                pairs.append((taken(chunk, rows), states))

        wants = watch.wants_steps
        counts = self.expander.expand(chunk, both if wants else batch.sink, rows=wants, degree=watch.wants_ends)
        watch.look(layout, chunk)
        for before, after in pairs:
            watch.look_at_steps(layout, before, after)
        if counts.degree is not None:
            watch.look_at_ends(layout, chunk, counts.degree)
        found = batch.all()
        if self.canonical is not None:
            found = representatives(self.canonical, self.expander, found)
        return found, counts


def explore(
    system: System,
    properties: Sequence[Property],
    limits: Limits,
    *,
    symmetry: Symmetry | None = None,
    report: Reporter | None = None,
) -> Exploration:
    """Search every reachable state with the vector engine. Same counts and findings as ``scalar.explore``."""
    return VectorSearch(system, properties, limits, report, symmetry).run()
