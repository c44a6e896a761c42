"""Working out what the actions of a group do in a joint state, by running the components' tables.

Many joint states at once go through numpy; a few, as they come up in nearly every chunk of a search, through plain Python, which is
faster below some twenty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from troth.models.system import DONE, NOWHERE, TRUNCATED, System
from troth.models.vector.groups import EDGE_SHIFT, MOST, Group, key_bits, too_many
from troth.models.vector.layout import Ints, Layout, Words, joined, taken
from troth.models.vector.stages import UNKNOWN, Stage

FEW = 16
"""Joint states up to which plain Python fills faster."""
WORD = (1 << 64) - 1


class Outgrown(Exception):
    """A component has more local states than was planned for: plan anew and begin the chunk again."""


class Wanted(Exception):
    """New local states came up while numbering is frozen. ``rows``: places in the chunk of states that lead to them."""

    def __init__(self, rows: NDArray[np.intp]) -> None:
        super().__init__()
        self.rows = rows


class Pending(NamedTuple):
    """Half-done actions: where each came from, the state so far, and the symbol that is left."""

    rows: NDArray[np.intp]
    states: Words
    symbols: NDArray[np.int32]


def together(parts: Sequence[Pending], words: int) -> Pending:
    """Several batches as one."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([p.rows for p in parts])
    return Pending(rows, joined([p.states for p in parts], words), np.concatenate([p.symbols for p in parts]))


class Filler:
    """Works out the entries of groups by running the components' tables."""

    def __init__(self, system: System, stages: Sequence[Stage], layout: Layout, *, labelled: bool) -> None:
        self.system = system
        self.stages = stages
        self.layout = layout
        self.labelled = labelled
        self.heads = np.empty(0, np.int32)
        self.unknown: list[NDArray[np.intp]] = []
        """While numbering is frozen: the rows of pending actions that need a new local state."""
        # A joint key may have room where the packed field has none.
        keys = (key_bits(len(table.states)) for table in system.components)
        self.limits = [1 << min(key, width) for key, width in zip(keys, layout.width, strict=True)]

    def check(self) -> None:
        """Raise ``Outgrown`` where a component has more local states than were planned for: before any of them is packed."""
        for table, limit in zip(self.system.components, self.limits, strict=True):
            if len(table.states) > limit:
                raise Outgrown

    def head_of(self, symbols: NDArray[np.int32]) -> NDArray[np.int32]:
        """The component that each symbol is for next."""
        if len(self.heads) < len(self.system.heads):
            self.heads = np.array(self.system.heads, np.int32)
        return np.take(self.heads, symbols)

    def step(self, pending: Pending, component: int) -> list[Pending]:
        """One reaction of ``component`` for every pending action, all of which must be for it."""
        stage, layout = self.stages[component], self.layout
        locals_ = layout.column(pending.states, component)
        keys = stage.keys(pending.symbols, locals_)
        self.check()
        count = np.take(stage.count, keys)
        if self.system.components[component].frozen:
            self.unknown.append(pending.rows[count == UNKNOWN])
        word, shift = layout.word[component], np.uint64(layout.shift[component])
        found = []
        for plane in range(len(stage.target)):
            here = np.flatnonzero(count > plane)
            if not len(here):
                break
            where = np.take(keys, here)
            moved = np.take(stage.target[plane], where) - np.take(locals_, here)
            states = list(taken(pending.states, here))
            states[word] = states[word] + (moved.view(np.uint64) << shift)
            found.append(Pending(np.take(pending.rows, here), tuple(states), np.take(stage.after[plane], where)))
        return found

    def run(self, pending: Pending, within: frozenset[int] | None) -> tuple[list[Pending], list[Pending]]:
        """Work through pending actions; return those that are over, and those whose next component is not ``within``."""
        over: list[Pending] = []
        outside: list[Pending] = []
        todo = [pending]
        while todo:
            batch = together(todo, self.layout.words)
            todo = []
            heads = self.head_of(batch.symbols)
            for head in np.flatnonzero(np.bincount(heads + 1)).tolist():
                component = head - 1
                here = np.flatnonzero(heads == component)
                part = (
                    batch
                    if len(here) == len(heads)
                    else Pending(np.take(batch.rows, here), taken(batch.states, here), np.take(batch.symbols, here))
                )
                if component == NOWHERE:
                    over.append(part)
                elif within is not None and component not in within:
                    outside.append(part)
                else:
                    todo += self.step(part, component)
        return over, outside

    def lacking(self) -> NDArray[np.intp]:
        """The rows that needed a new local state since the last call, each once."""
        found = np.unique(np.concatenate(self.unknown)) if self.unknown else np.empty(0, np.intp)
        self.unknown = []
        return found

    def fill(self, group: Group, keys: Ints) -> Ints:
        """Work out the entries of these joint states (each once); return those that need a new local state while numbering is frozen."""
        if len(keys) <= FEW and not self.labelled:
            lacked = [key for key in keys.tolist() if not self._fill_one(group, key)]
            self.check()
            return np.array(lacked, np.int64)
        start = self._states(group, keys)
        # All roots at once: a fill of few keys costs as many numpy calls as one of many.
        rows = np.repeat(np.arange(len(keys)), len(group.roots))
        symbols = np.tile(np.array(group.roots, np.int32), len(keys))
        over, outside = self.run(Pending(rows, taken(start, rows), symbols), frozenset(group.components))
        lacking = self.lacking()
        if not len(lacking):
            self._enter(group, keys, start, over, outside)
            return lacking
        good = np.setdiff1d(np.arange(len(keys)), lacking)
        if len(good):
            self.fill(group, keys[good])
        return keys[lacking]

    def _fill_one(self, group: Group, key: int) -> bool:
        """The same for one joint state, in plain Python; false if it needs a new local state while numbering is frozen."""
        locals_ = {c: key >> place & mask for c, place, mask in zip(group.components, group.places, group.masks, strict=True)}
        edges = cut = 0
        done: set[tuple[int, ...]] = set()
        half_done: list[tuple[tuple[int, ...], int]] = []
        none: tuple[int, ...] = (0,) * self.layout.words
        todo: list[tuple[dict[int, int], tuple[int, ...], int]] = [(locals_, none, root) for root in group.roots]
        while todo:
            now, moved, symbol = todo.pop()
            head = self.system.heads[symbol]
            if symbol == TRUNCATED:
                cut += 1
            elif head == NOWHERE:
                edges += 1
                done.add(moved)
            elif head not in now:
                half_done.append((moved, symbol))
            else:
                local, word, shift = now[head], self.layout.word[head], self.layout.shift[head]
                for target, after in self.system.resolve(symbol, local):
                    if target == NOWHERE:
                        return False
                    if target == local:
                        todo.append((now, moved, after))
                    else:
                        words: list[int] = [*moved]
                        words[word] = words[word] + (target - local << shift) & WORD
                        todo.append(({**now, head: target}, tuple(words), after))
        done.discard(none)
        if max(edges, cut, len(done) + len(half_done)) > MOST:
            raise too_many(self.system, group.components)
        row = int(group.rows(np.array([key]))[0])
        group.put_one(row, [*((moved, DONE) for moved in sorted(done)), *half_done])
        group.has_cut |= cut > 0
        group.has_symbols |= bool(half_done)
        group.cut[row] = cut
        group.info[row] = edges << int(EDGE_SHIFT) | len(done) + len(half_done)
        return True

    def _states(self, group: Group, keys: Ints) -> Words:
        """States that have these joint states, and local state 0 everywhere else."""
        columns = [np.zeros(len(keys), np.int64) for _ in self.layout.width]
        for component, place, mask in zip(group.components, group.places, group.masks, strict=True):
            columns[component] = keys >> place & mask
        return self.layout.pack(columns)

    def _enter(self, group: Group, keys: Ints, start: Words, over: list[Pending], outside: list[Pending]) -> None:
        words = self.layout.words
        own = group.rows(keys)
        edges, cuts = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        rows = [np.empty(0, np.intp)]
        differences: list[Words] = [tuple(np.empty(0, np.uint64) for _ in range(words))]
        symbols = [np.empty(0, np.int32)]
        for part in (*over, *outside):
            cut = part.symbols == TRUNCATED
            if cut.any():
                group.has_cut = True
                np.add.at(cuts, part.rows[cut], 1)
            kept = np.flatnonzero(~cut)
            rows.append(part.rows[kept])
            moved = taken(part.states, kept)
            differences.append(tuple(moved[w] - start[w][part.rows[kept]] for w in range(words)))
            symbols.append(part.symbols[kept])
        all_rows, all_moved, all_symbols = np.concatenate(rows), joined(differences, words), np.concatenate(symbols)
        complete = all_symbols == DONE if not self.labelled else self.head_of(all_symbols) == NOWHERE
        np.add.at(edges, all_rows[complete], 1)
        if not self.labelled:
            all_rows, all_moved, all_symbols = _distinct(all_rows, all_moved, all_symbols)
        order = np.argsort(all_rows, kind="stable")
        all_rows, all_moved, all_symbols = all_rows[order], taken(all_moved, order), all_symbols[order]
        counts = np.bincount(all_rows, minlength=len(keys))
        place = np.arange(len(all_rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        if max(found.max(initial=0) for found in (edges, cuts, counts)) > MOST:
            raise too_many(self.system, group.components)
        group.cut[own] = cuts
        group.put(own[all_rows], place, all_moved, all_symbols)
        left = all_symbols != DONE if not self.labelled else self.head_of(all_symbols) != NOWHERE
        group.has_symbols |= bool(left.any())
        group.info[own] = (edges.astype(np.uint32) << EDGE_SHIFT) | counts.astype(np.uint32)


def _distinct(rows: NDArray[np.intp], moved: Words, symbols: NDArray[np.int32]) -> tuple[NDArray[np.intp], Words, NDArray[np.int32]]:
    """Drop finished entries that change nothing or that repeat another of the same joint state. Half-done ones are all kept."""
    still = symbols == DONE
    for word in moved:
        still &= word == 0
    open_ = np.flatnonzero(symbols != DONE)
    done = np.flatnonzero((symbols == DONE) & ~still)
    order = done[np.lexsort((*(word[done] for word in moved), rows[done]))]
    first = np.ones(len(order), np.bool_)
    if len(order) > 1:
        same = rows[order[1:]] == rows[order[:-1]]
        for word in moved:
            same &= word[order[1:]] == word[order[:-1]]
        first[1:] = ~same
    kept = np.concatenate([order[first], open_])
    return rows[kept], taken(moved, kept), symbols[kept]
