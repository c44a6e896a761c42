"""From a few ten thousand packed states to all their successors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from troth.models.system import DONE, NOWHERE, TRUNCATED, System
from troth.models.vector.filler import Filler, Pending, Wanted, together
from troth.models.vector.groups import EDGE_SHIFT, ENTRY_MASK, MISSING, Group, plan_groups
from troth.models.vector.layout import Ints, Layout, Words, plan, taken
from troth.models.vector.stages import Stage

Sink = Callable[["NDArray[np.intp] | None", Words, "NDArray[np.int32] | None"], None]
"""Called with the places of the source states (only if asked for), the successors, and (labelled) the symbols."""


class Counts:
    """What one expansion counted. ``degree`` (edges out of each state, cut ones included) only if asked for."""

    def __init__(self) -> None:
        self.edges = 0
        self.cut = 0
        self.degree: Ints | None = None


class Expander:
    """Expands chunks of packed states. ``labelled``: every edge is given, with its label's symbol; else repeated ones are left out."""

    def __init__(self, system: System, *, labelled: bool = False) -> None:
        self.system = system
        self.labelled = labelled
        self.roots = system.labelled_roots if labelled else system.roots
        self.stages = [Stage(system, i) for i in range(len(system.components))]
        self.layout: Layout = self._planned()
        self._plan()

    def counts(self) -> list[int]:
        """Local states of each component so far."""
        return [len(table.states) for table in self.system.components]

    def _planned(self) -> Layout:
        return plan([table.component.name for table in self.system.components], self.counts())

    def _plan(self, kept: Sequence[Group] = ()) -> None:
        counts = self.counts()
        known = {(g.components, tuple(g.roots)): g for g in kept}
        self.groups: list[Group] = plan_groups(self.system, counts, self.layout.words, self.roots)
        for group in self.groups:
            old = known.get((group.components, tuple(group.roots)))
            if old is not None:
                group.take_over(old)
        self.filler = Filler(self.system, self.stages, self.layout, labelled=self.labelled)
        self.used = sorted({c for group in self.groups for c in group.components})

    def relayout(self) -> Layout:
        """Plan fields and groups anew; return the layout as it was, for repacking."""
        old = self.layout
        if old.fits(self.counts()):
            self._plan(self.groups)
        else:
            self.layout = self._planned()
            self._plan()
        return old

    def outgrown(self) -> bool:
        """Whether a component has more local states than was planned for."""
        return any(count > limit for count, limit in zip(self.counts(), self.filler.limits, strict=True))

    def adopt(self, layout: Layout) -> None:
        """Use this layout."""
        self.layout = layout
        self._plan()

    @property
    def bytes(self) -> int:
        """Memory that the tables take."""
        return sum(group.bytes for group in self.groups) + sum(stage.bytes for stage in self.stages)

    def columns(self, states: Words) -> list[Ints | None]:
        """The columns that the groups need."""
        found: list[Ints | None] = [None] * len(self.layout.width)
        for component in self.used:
            found[component] = self.layout.column(states, component)
        return found

    def expand(self, states: Words, sink: Sink, *, rows: bool = False, degree: bool = False) -> Counts:
        """Give every successor of every state to ``sink``. Raises ``Outgrown`` when the layout has become too small."""
        counts = Counts()
        if degree:
            counts.degree = np.zeros(len(states[0]), np.int64)
        columns = self.columns(states)
        left: list[Pending] = []
        for group in self.groups:
            keys = group.keys(columns)
            place = np.take(group.index, keys)
            if place.min() == MISSING:
                lacking = self.filler.fill(group, np.unique(keys[place == MISSING]))
                if len(lacking):
                    raise Wanted(_first_of_each(keys, lacking))
                place = np.take(group.index, keys)
            info = np.take(group.info, place)
            edges = info >> EDGE_SHIFT
            counts.edges += int(edges.sum(dtype=np.int64))
            if counts.degree is not None:
                counts.degree += edges
            if group.has_cut:
                cut = np.take(group.cut, place)
                counts.cut += int(cut.sum(dtype=np.int64))
                if counts.degree is not None:
                    counts.degree += cut
            self._apply(group, states, place, info & ENTRY_MASK, sink, left, rows=rows or degree or group.has_symbols)
        if left:
            self._finish(left, sink, counts, rows=rows)
        return counts

    def _apply(  # noqa: PLR0917 - one inner loop, and these are its operands
        self,
        group: Group,
        states: Words,
        keys: NDArray[np.int32],
        count: NDArray[np.uint32],
        sink: Sink,
        left: list[Pending],
        *,
        rows: bool,
    ) -> None:
        """Every entry of every state's joint state: plane by plane, on the states that still have one."""
        source: NDArray[np.intp] | None = None
        for plane, (differences, symbols) in enumerate(zip(group.planes, group.symbols, strict=True)):
            here = np.flatnonzero(count > plane)
            if not len(here):
                return
            if len(here) < len(count):
                count, keys, states = np.take(count, here), np.take(keys, here), taken(states, here)
                if rows:
                    source = here if source is None else np.take(source, here)
            elif rows and source is None:
                source = here
            moved = tuple(word + np.take(difference, keys) for word, difference in zip(states, differences, strict=True))
            if not group.has_symbols and not self.labelled:
                sink(source, moved, None)
                continue
            self._split(source, moved, np.take(symbols, keys), sink, left)

    def _split(self, source: NDArray[np.intp] | None, moved: Words, symbols: NDArray[np.int32], sink: Sink, left: list[Pending]) -> None:
        """Give what is finished to the sink and keep the rest."""
        over = symbols == DONE if not self.labelled else self.filler.head_of(symbols) == NOWHERE
        done = np.flatnonzero(over)
        if len(done) == len(symbols):
            sink(source, moved, symbols if self.labelled else None)
            return
        if len(done):
            sink(None if source is None else np.take(source, done), taken(moved, done), np.take(symbols, done) if self.labelled else None)
        rest = np.flatnonzero(~over)
        origin = np.take(source, rest) if source is not None else rest
        left.append(Pending(origin, taken(moved, rest), np.take(symbols, rest)))

    def _finish(self, left: Sequence[Pending], sink: Sink, counts: Counts, *, rows: bool) -> None:
        """Run half-done actions to their end."""
        words = self.layout.words
        over, _ = self.filler.run(together(left, words), None)
        lacking = self.filler.lacking()
        if len(lacking):
            raise Wanted(lacking)
        for part in over:
            cut = part.symbols == TRUNCATED
            if counts.degree is not None:
                counts.degree += np.bincount(part.rows, minlength=len(counts.degree))
            if cut.any():
                counts.cut += int(cut.sum())
                kept = np.flatnonzero(~cut)
                part = Pending(np.take(part.rows, kept), taken(part.states, kept), np.take(part.symbols, kept))  # noqa: PLW2901
            counts.edges += len(part.symbols)
            sink(part.rows if rows else None, part.states, part.symbols if self.labelled else None)


def _first_of_each(keys: Ints, wanted: Ints) -> NDArray[np.intp]:
    """For each wanted key the first place where it is."""
    here = np.flatnonzero(np.isin(keys, wanted))
    return here[np.unique(keys[here], return_index=True)[1]]
