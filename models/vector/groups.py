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

from troth.models.errors import WorldError
from troth.models.system import System
from troth.models.vector.layout import Ints, Words, bits

JOINT_BITS = 20
"""Bits of joint local state up to which actions are grouped. Only joint states that are reached take a row."""
MISSING = -1
EDGE_SHIFT = np.uint32(16)
ENTRY_MASK = np.uint32(0xFFFF)
MOST = 0x7FFF
"""Edges, and entries, of one joint state."""

_T = TypeVar("_T", bound=np.generic)


def _longer(array: NDArray[_T], size: int) -> NDArray[_T]:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


def too_many(system: System, components: Sequence[int]) -> WorldError:
    """More alternatives than a table's fields can count."""
    names = " and ".join(system.name(component) for component in components)
    return WorldError(f"{names}: more than {MOST:,} alternatives in one state; choose in several steps, or bound the choice")


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

    @property
    def bytes(self) -> int:
        """Memory that the table takes."""
        return 4 * self.size + len(self.info) * (6 + len(self.planes) * (8 * self.words + 4))

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

    def put_one(self, row: int, entries: Sequence[tuple[tuple[int, ...], int]]) -> None:
        """Enter all entries of one row: differences, and symbols."""
        for plane, (differences, symbol) in enumerate(entries):
            if plane == len(self.planes):
                self.planes.append(tuple(np.zeros(len(self.info), np.uint64) for _ in range(self.words)))
                self.symbols.append(np.zeros(len(self.info), np.int32))
            for word, difference in zip(self.planes[plane], differences, strict=True):
                word[row] = difference
            self.symbols[plane][row] = symbol

    def put(self, rows: Ints, place: Ints, differences: Words, symbols: NDArray[np.int32]) -> None:
        """Enter entry number ``place`` of each row."""
        for _ in range(len(self.planes), int(place.max()) + 1 if len(place) else 0):
            self.planes.append(tuple(np.zeros(len(self.info), np.uint64) for _ in range(self.words)))
            self.symbols.append(np.zeros(len(self.info), np.int32))
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
