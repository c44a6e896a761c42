"""Representatives of many packed states at once: the vector form of ``Symmetry.canonical``, with the same choice.

Every renaming is a column of digests for each component that it moves, from a table by local state; the least renaming is the one whose
columns are least, compared component by component.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from troth.models.symmetry import Move, Symmetry
from troth.models.vector.expander import Expander
from troth.models.vector.filler import Outgrown
from troth.models.vector.layout import CHUNK, Ints, Layout, Words, chunks, joined

UNKNOWN = -1


class Renamed:
    """One move as arrays: local number at the source to digest and number at its new place."""

    def __init__(self, symmetry: Symmetry, move: Move) -> None:
        self.symmetry = symmetry
        self.move = move
        self.numbers = np.full(8, UNKNOWN, np.int64)
        self.digests = np.zeros(8, np.uint64)

    def of(self, column: Ints) -> tuple[NDArray[np.uint64], Ints]:
        """Digests and numbers for a column; what is not known yet is worked out."""
        highest = int(column.max(initial=0))
        if highest >= len(self.numbers):
            longer = np.full(2 * (highest + 1), UNKNOWN, np.int64)
            longer[: len(self.numbers)] = self.numbers
            self.digests = np.concatenate([self.digests, np.zeros(len(longer) - len(self.digests), np.uint64)])
            self.numbers = longer
        found = np.take(self.numbers, column)
        if found.min(initial=0) == UNKNOWN:
            for local in np.unique(column[found == UNKNOWN]).tolist():
                self.digests[local], self.numbers[local] = self.symmetry.moved(self.move, local)
            found = np.take(self.numbers, column)
        return np.take(self.digests, column), found


class Canonical:
    """Representatives under a world's symmetry. New local states may get numbers on the way: see to it that they fit the layout."""

    def __init__(self, symmetry: Symmetry) -> None:
        self.plans = [[[Renamed(symmetry, move) for move in plan] for plan in plans] for plans in symmetry.plans]

    def columns(self, layout: Layout, states: Words) -> list[Ints]:
        """The columns of the representatives."""
        found = [layout.column(states, i) for i in range(len(layout.width))]
        for plans in self.plans:
            best: list[tuple[NDArray[np.uint64], Ints]] | None = None
            for plan in plans:
                moved = [renamed.of(found[renamed.move.source]) for renamed in plan]
                best = moved if best is None else _least(best, moved)
            for renamed, (_, numbers) in zip(plans[0], best or (), strict=True):
                found[renamed.move.dest] = numbers
        return found


def _least(
    one: list[tuple[NDArray[np.uint64], Ints]], other: list[tuple[NDArray[np.uint64], Ints]]
) -> list[tuple[NDArray[np.uint64], Ints]]:
    """Row by row the lesser of two lists of columns."""
    less = np.zeros(len(one[0][0]), np.bool_)
    open_ = np.ones(len(one[0][0]), np.bool_)
    for (mine, _), (theirs, _) in zip(one, other, strict=True):
        less |= open_ & (theirs < mine)
        open_ &= theirs == mine
    if not less.any():
        return one
    return [
        (np.where(less, theirs, mine), np.where(less, their_numbers, my_numbers))
        for (mine, my_numbers), (theirs, their_numbers) in zip(one, other, strict=True)
    ]


def representatives(canonical: Canonical, expander: Expander, states: Words) -> Words:
    """The representatives of packed states. Raises ``Outgrown`` when a renamed state does not fit the layout."""
    layout = expander.layout
    pieces = [canonical.columns(layout, piece) for piece in chunks(states, CHUNK)]
    if expander.outgrown():
        raise Outgrown
    return joined([layout.pack(columns) for columns in pieces], layout.words)
