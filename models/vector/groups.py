"""Actions that touch the same few components, as one table from the joint local state to everything those actions can do.

The components' tables say how a symbol moves one component. Where the components of some actions have few joint states, what these
actions do is worked out once for each joint state that is reached, by running the components' tables on it, and kept as a list of
*differences*: packed states are added to. Differences that are equal are kept once, and those that change nothing not at all; both
still count as edges. An entry whose next item is for a component outside the group ends in a *symbol*, and is finished by ``Stage``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from troth.models.system import DONE, NOWHERE, TRUNCATED, System
from troth.models.vector.layout import Ints, Layout, Words, bits, joined, taken
from troth.models.vector.stages import UNKNOWN, Stage

JOINT_BITS = 20
"""Bits of joint local state up to which actions are grouped. Only joint states that are reached take a row."""
MISSING = -1
EDGE_SHIFT = np.uint32(16)
ENTRY_MASK = np.uint32(0xFFFF)
MOST = 0x7FFF

_T = TypeVar("_T", bound=np.generic)


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


def _longer(array: NDArray[_T], size: int) -> NDArray[_T]:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


@define(eq=False)
class Group:
    """The table of one group. ``places`` says where each component's number sits in the joint key."""

    components: tuple[int, ...]
    places: tuple[int, ...]
    masks: tuple[int, ...]
    roots: list[int]
    size: int
    words: int
    index: NDArray[np.int32] = field(init=False)
    """Joint key to row, or ``MISSING``."""
    used: int = 0
    known: list[Ints] = field(factory=list)
    """The keys of the rows, in the order of the rows."""
    info: NDArray[np.uint32] = field(factory=lambda: np.zeros(0, np.uint32))
    """For each row: edges that are complete (high half) and entries (low half)."""
    cut: NDArray[np.uint16] = field(factory=lambda: np.zeros(0, np.uint16))
    """For each row: edges that a bound cut off."""
    has_cut: bool = False
    planes: list[Words] = field(factory=list)
    symbols: list[NDArray[np.int32]] = field(factory=list)
    has_symbols: bool = False

    def __attrs_post_init__(self) -> None:
        self.index = np.full(self.size, MISSING, np.int32)

    def rows(self, keys: Ints) -> Ints:
        """New rows for these joint keys."""
        first, self.used = self.used, self.used + len(keys)
        if self.used > len(self.info):
            room = max(256, 2 * self.used)
            self.info = _longer(self.info, room)
            self.cut = _longer(self.cut, room)
            self.planes = [tuple(_longer(word, room) for word in plane) for plane in self.planes]
            self.symbols = [_longer(plane, room) for plane in self.symbols]
        found = np.arange(first, self.used)
        self.index[keys] = found
        self.known.append(keys)
        return found

    def take_over(self, old: Group) -> None:
        """Use the rows of the same group as it was before components got wider keys; their packed fields must not have moved."""
        for keys in old.known:
            new = np.zeros(len(keys), np.int64)
            for before, mask, after in zip(old.places, old.masks, self.places, strict=True):
                new |= (keys >> before & mask) << after
            self.known.append(new)
        if self.known:
            self.index[np.concatenate(self.known)] = np.arange(old.used)
        self.used, self.info, self.cut, self.has_cut = old.used, old.info, old.cut, old.has_cut
        self.planes, self.symbols, self.has_symbols = old.planes, old.symbols, old.has_symbols

    def keys(self, columns: Sequence[Ints | None]) -> Ints:
        """Joint keys from the columns of the group's components."""
        key: Ints | None = None
        for component, place in zip(self.components, self.places, strict=True):
            column = columns[component]
            if column is None:
                raise AssertionError("a column was not extracted")
            part = column << place if place else column
            key = part if key is None else key | part
        if key is None:
            raise AssertionError("a group without components")
        return key

    def put(self, rows: Ints, place: Ints, differences: Words, symbols: NDArray[np.int32]) -> None:
        """Enter entry number ``place`` of each row."""
        for plane in range(len(self.planes), int(place.max()) + 1 if len(place) else 0):
            self.planes.append(tuple(np.zeros(len(self.info), np.uint64) for _ in range(self.words)))
            self.symbols.append(np.zeros(len(self.info), np.int32))
            if plane > MOST:
                raise AssertionError("too many entries for one joint state")
        for plane in range(len(self.planes)):
            here = np.flatnonzero(place == plane)
            if not len(here):
                continue
            where = rows[here]
            for word in range(self.words):
                self.planes[plane][word][where] = differences[word][here]
            self.symbols[plane][where] = symbols[here]


class Plan(NamedTuple):
    """A group to be: its components, the components its actions begin at, and the symbols of those actions."""

    components: frozenset[int]
    heads: frozenset[int]
    roots: tuple[int, ...]


def plan_groups(system: System, counts: Sequence[int], words: int, roots: Sequence[int]) -> list[Group]:
    """Which actions are grouped: each with as many of the components it is likely to touch as fit, then merged while they fit."""
    width = [key_bits(count) for count in counts]
    found: dict[frozenset[int], Plan] = {}
    for action, root in zip(system.actions, roots, strict=True):
        head = system.heads[root]
        chosen, used = {head}, width[head]
        for component in action.about:
            if component not in chosen and used + width[component] <= JOINT_BITS:
                chosen.add(component)
                used += width[component]
        plan = found.setdefault(frozenset(chosen), Plan(frozenset(chosen), frozenset(), ()))
        found[plan.components] = Plan(plan.components, plan.heads | {head}, (*plan.roots, root))
    groups = []
    for merged in _merged(list(found.values()), width):
        components = tuple(sorted(merged.components))
        places, place = [], 0
        for component in components:
            places.append(place)
            place += width[component]
        masks = tuple((1 << width[c]) - 1 for c in components)
        groups.append(Group(components, tuple(places), masks, list(merged.roots), 1 << place, words))
    return groups


def _merged(plans: list[Plan], width: Sequence[int]) -> list[Plan]:
    """Join groups as long as the union fits, for every group costs time for every state.

    First those where one holds the other, and of these first those whose actions all begin at the same component: losing a message and
    delivering one that is ignored come to the same, and only within one group is that seen. Then the smallest unions.
    """
    while True:
        best: tuple[bool, bool, int, int, int] | None = None
        for i, one in enumerate(plans):
            for j in range(i + 1, len(plans)):
                union = one.components | plans[j].components
                size = sum(width[c] for c in union)
                grows = union not in (one.components, plans[j].components)
                rank = (grows, one.heads != plans[j].heads, size, i, j)
                if (size <= JOINT_BITS or not grows) and (best is None or rank < best):
                    best = rank
        if best is None:
            return plans
        one, other = plans[best[3]], plans[best[4]]
        joined_ = Plan(one.components | other.components, one.heads | other.heads, (*one.roots, *other.roots))
        plans = [*(p for k, p in enumerate(plans) if k not in best[3:]), joined_]


def key_bits(count: int) -> int:
    """Bits for a component in joint keys: one more than needed when it is about to need it."""
    needed = bits(count)
    return needed + 1 if count > 8 and count * 4 > 3 << needed else needed


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
        self.limits = [1 << key_bits(len(table.states)) for table in system.components]

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

    def _states(self, group: Group, keys: Ints) -> Words:
        """States that have these joint states, and local state 0 everywhere else."""
        columns = [np.zeros(len(keys), np.int64) for _ in self.layout.width]
        for component, place, mask in zip(group.components, group.places, group.masks, strict=True):
            columns[component] = keys >> place & mask
        return self.layout.pack(columns)

    def _enter(self, group: Group, keys: Ints, start: Words, over: list[Pending], outside: list[Pending]) -> None:
        words = self.layout.words
        own = group.rows(keys)
        edges = np.zeros(len(keys), np.int64)
        rows = [np.empty(0, np.intp)]
        differences: list[Words] = [tuple(np.empty(0, np.uint64) for _ in range(words))]
        symbols = [np.empty(0, np.int32)]
        for part in (*over, *outside):
            cut = part.symbols == TRUNCATED
            if cut.any():
                group.has_cut = True
                np.add.at(group.cut, own[part.rows[cut]], 1)
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
        if edges.max(initial=0) > MOST or counts.max(initial=0) > MOST:
            raise AssertionError("too many edges for one joint state")
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
