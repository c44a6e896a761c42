"""The set of states seen: an open-addressing hash table worked on a few ten thousand keys at a time.

Slots are found by the high bits of a multiplicative hash, scaled to the table's size, and probed linearly. So the table is ordered
by hash, and it can be made larger *where it is*: its pieces are read from the top down and inserted again at positions that are
never below the piece. Growing needs no second table, which is what bounds the memory a search needs.

A batch is inserted in rounds. Each round looks at the slot of every key that is left: an equal key is dropped, a full slot moves the
key on, and of the keys that meet in an empty slot one wins it. What is left after a few rounds waits for the next batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from troth.models.vector.layout import Ints, Words, joined, taken
from troth.models.vector.memory import reserved

FACTOR = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))
LOAD = 0.62
HARD_LOAD = 0.85
FULL_LOAD = 0.95
ROUNDS = 4
PIECE = 1 << 18
PAD = 1 << 14
"""Slots after the last one that a key can hash to, so that no probe wraps around."""
SCRATCH = 1 << 16
FIRST_SLOTS = 1 << 16
HALF = np.uint64(32)


def grown(slots: int) -> int:
    """The next size: fast while it is cheap, then in steps that keep the table at least a third full."""
    if slots < 1 << 20:
        return slots * 4
    return slots * 2 if slots < 1 << 22 else slots * 8 // 5


class Table:
    """A set of packed states. ``most_slots`` bounds it; ``full`` says that the bound was reached."""

    def __init__(self, words: int, most_slots: int, expected: int = 0) -> None:
        """``expected`` states find room without growing: states taken from another table come in the order of their hashes, and would
        all crowd into the same part of a table that is still small."""
        self.words = words
        self.most_slots = max(most_slots, FIRST_SLOTS)
        self.keys = tuple(reserved(self.most_slots + PAD) for _ in range(words))
        slots = FIRST_SLOTS
        while slots * LOAD < 1.1 * expected:
            slots = grown(slots)
        self.slots = min(slots, self.most_slots)
        self.count = 0
        self.full = False
        self._owner = np.zeros(SCRATCH, np.uint32)
        self._order = np.arange(SCRATCH, dtype=np.uint32)
        self._late: tuple[Words, Ints] = (self._none(), np.empty(0, np.int64))

    def _none(self) -> Words:
        return tuple(np.empty(0, np.uint64) for _ in range(self.words))

    @property
    def bytes(self) -> int:
        """Memory that the table takes."""
        return (self.slots + PAD) * 8 * self.words

    def _home(self, states: Words) -> Ints:
        mixed = states[0] * FACTOR[0]
        if self.words == 2:
            mixed ^= states[1]
            mixed *= FACTOR[1]
        mixed >>= HALF
        mixed *= np.uint64(self.slots)
        mixed >>= HALF
        return mixed.view(np.int64)

    def insert(self, states: Words) -> Words:
        """Add states; return those that are new. Some may be returned by a later ``insert`` or ``flush`` only.

        A table that is ``full`` may drop states: whoever searches must stop and say that it did not see everything.
        """
        size = len(states[0])
        out = []
        while self._crowded(size) and not self.full:
            out.append(self.flush())
            self._grow()
        if self.full and self.count + size + len(self._late[1]) > FULL_LOAD * self.slots:
            return joined(out, self.words)
        home = self._home(states)
        late, late_home = self._late
        if len(late_home):
            states, home = joined([late, states], self.words), np.concatenate([late_home, home])
            self._late = self._none(), np.empty(0, np.int64)
        out.append(self._rounds(states, home, ROUNDS))
        return joined(out, self.words)

    def _crowded(self, size: int) -> bool:
        """Whether ``size`` more keys may be too many: as a rule less than half of a batch is new, but all of it must find room."""
        size += len(self._late[1])
        return self.count + 0.4 * size > LOAD * self.slots or self.count + size > HARD_LOAD * self.slots

    def flush(self) -> Words:
        """Finish what is late; return what of it is new."""
        late, home = self._late
        if not len(home):
            return self._none()
        self._late = self._none(), np.empty(0, np.int64)
        return self._rounds(late, home, None)

    def _rounds(self, states: Words, home: Ints, rounds: int | None) -> Words:
        keys, owner = self.keys, self._owner
        if len(home) > len(self._order):
            self._order = np.arange(2 * len(home), dtype=np.uint32)
        new: list[Words] = []
        done = 0
        while len(home):
            if done == rounds:
                self._late = states, home
                break
            done += 1
            there = np.take(keys[0], home)
            differs = there != states[0]
            if self.words == 2:
                differs |= np.take(keys[1], home) != states[1]
            left = np.flatnonzero(differs)
            if not len(left):
                break
            states, home, there = taken(states, left), np.take(home, left), np.take(there, left)
            full = there != 0
            empty = np.flatnonzero(~full)
            if len(empty):
                new.append(self._won(states, home, empty, owner))
            home += full
        count = sum(len(part[0]) for part in new)
        self.count += count
        return joined(new, self.words)

    def _won(self, states: Words, home: Ints, empty: NDArray[np.intp], owner: NDArray[np.uint32]) -> Words:
        """Of the keys at empty slots, one a slot is written; the others look again in the next round."""
        slots = np.take(home, empty)
        lane = slots & (SCRATCH - 1)
        order = self._order[: len(empty)]
        owner[lane] = order
        won = np.flatnonzero(np.take(owner, lane) == order)
        where, slots = np.take(empty, won), np.take(slots, won)
        winners = taken(states, where)
        for word in range(self.words - 1, -1, -1):
            self.keys[word][slots] = winners[word]
        return winners

    def _grow(self) -> None:
        wanted = grown(self.slots)
        if wanted > self.most_slots:
            wanted = self.most_slots
            self.full = wanted == self.slots
            if self.full:
                return
        count, old = self.count, self.slots
        self.slots = wanted
        for low in range((old + PAD - 1) // PIECE * PIECE, -1, -PIECE):
            high = min(low + PIECE, old + PAD)
            piece = tuple(keys[low:high] for keys in self.keys)
            moved = taken(piece, np.flatnonzero(piece[0]))
            for part in piece:
                part[:] = 0
            self._place(moved)
        self.count = count

    def _place(self, states: Words) -> None:
        """Put back a piece of the table, none of whose keys is in it, above everything that is still to be moved.

        With the keys in the order of their homes, linear probing has a closed form: each takes its home or the slot after its
        predecessor, whichever is later. Only where that runs into keys of the piece above must it be probed for.
        """
        home = self._home(states)
        order = np.argsort(home, kind="stable")
        home, states = np.take(home, order), taken(states, order)
        place = np.arange(len(home))
        slots = np.maximum.accumulate(home - place) + place
        free = np.take(self.keys[0], slots) == 0
        if not free.all():
            clash = np.flatnonzero(~free)
            self._put(np.delete(slots, clash), tuple(np.delete(word, clash) for word in states))
            self._rounds(taken(states, clash), np.take(home, clash), None)
        else:
            self._put(slots, states)

    def _put(self, slots: Ints, states: Words) -> None:
        for keys, word in zip(self.keys, states, strict=True):
            keys[slots] = word

    def all(self) -> Words:
        """Every state in the table, in no particular order."""
        self.flush()
        piece = tuple(keys[: self.slots + PAD] for keys in self.keys)
        return taken(piece, np.flatnonzero(piece[0]))
