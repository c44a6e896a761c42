"""How a global state is packed: one field a component, in one 64-bit word or in two.

Word 0 has its highest bit always set, so that 0 is never a state and marks an empty slot in the hash table. A field never straddles
words. Bits that are left over are shared out as room to grow; when a component outgrows its field, everything is packed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from troth.models.errors import TooWide
from troth.models.system import State

Words: TypeAlias = tuple[NDArray[np.uint64], ...]
"""Packed states: one array a word, all of the same length."""
Ints: TypeAlias = NDArray[np.int64]

CHUNK = 1 << 15
"""States worked on at a time: their temporaries stay in a core's cache."""
MARK = np.uint64(1 << 63)
WORD_BITS: tuple[int, int] = (63, 64)


@frozen
class Layout:
    """Where each component's field is: which word, at which bit, how wide."""

    word: tuple[int, ...]
    shift: tuple[int, ...]
    width: tuple[int, ...]
    words: int

    def column(self, states: Words, component: int) -> Ints:
        """The local state numbers of one component."""
        field = states[self.word[component]] >> np.uint64(self.shift[component])
        field &= np.uint64((1 << self.width[component]) - 1)
        return field.view(np.int64)

    def pack(self, columns: Sequence[Ints]) -> Words:
        """The states with these local state numbers, one column a component."""
        size = len(columns[0])
        packed = tuple(np.full(size, MARK if w == 0 else 0, np.uint64) for w in range(self.words))
        for i, column in enumerate(columns):
            packed[self.word[i]][:] |= column.view(np.uint64) << np.uint64(self.shift[i])
        return packed

    def pack_one(self, state: State) -> Words:
        """One state, as arrays of length 1."""
        return self.pack([np.array([local], np.int64) for local in state])

    def unpack_one(self, states: Words, place: int) -> State:
        """One state out of many."""
        found = []
        for word, shift, width in zip(self.word, self.shift, self.width, strict=True):
            found.append(int(states[word][place]) >> shift & (1 << width) - 1)
        return tuple(found)

    def repacked(self, states: Words, to: Layout) -> Words:
        """The same states in another layout."""
        return to.pack([self.column(states, i) for i in range(len(self.width))])

    def fits(self, counts: Sequence[int]) -> bool:
        """Whether components with so many local states still fit their fields."""
        return all(count <= 1 << width for count, width in zip(counts, self.width, strict=True))


def bits(count: int) -> int:
    """The bits that number ``count`` things."""
    return max(1, (count - 1).bit_length())


def plan(names: Sequence[str], counts: Sequence[int]) -> Layout:
    """A layout for components with so many local states. Raises ``TooWide``, naming the widest, where two words are too few."""
    needed = [bits(count) for count in counts]
    order = sorted(range(len(needed)), key=lambda i: (-needed[i], i))
    for words in (1, 2):
        room: list[int] = [*WORD_BITS[:words]]
        word = [-1] * len(needed)
        for i in order:
            word[i] = next((w for w in range(words) if room[w] >= needed[i]), -1)
            if word[i] < 0:
                break
            room[word[i]] -= needed[i]
        if min(word) >= 0:
            return _with_room(needed, word, room, order)
    widest = ", ".join(f"{names[i]} ({counts[i]:,} local states, {needed[i]} bits)" for i in order[:3])
    raise TooWide(
        f"a state needs {sum(needed)} bits and two words have {sum(WORD_BITS)}; the widest components are {widest}; "
        "bound them, or split a component whose parts do not depend on each other"
    )


def _with_room(needed: Sequence[int], word: Sequence[int], room: Sequence[int], order: Sequence[int]) -> Layout:
    """Share out the bits that are left, the components with most local states first."""
    width, left = list(needed), list(room)
    changed = True
    while changed:
        changed = False
        for i in order:
            if left[word[i]] > 0 and width[i] < 32:
                width[i] += 1
                left[word[i]] -= 1
                changed = True
    shift, used = [0] * len(width), [0] * len(room)
    for i in range(len(width)):
        shift[i] = used[word[i]]
        used[word[i]] += width[i]
    return Layout(tuple(word), tuple(shift), tuple(width), len(room))


def taken(states: Words, places: NDArray[np.intp]) -> Words:
    """The states at these places."""
    return tuple(np.take(word, places) for word in states)


def joined(parts: Sequence[Words], words: int) -> Words:
    """Several arrays of states as one."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return tuple(np.empty(0, np.uint64) for _ in range(words))
    return tuple(np.concatenate([part[w] for part in parts]) for w in range(words))


def chunks(states: Words, size: int = CHUNK) -> list[Words]:
    """Pieces of at most ``size`` states."""
    return [tuple(word[low : low + size] for word in states) for low in range(0, len(states[0]), size)]
