"""The components' tables as arrays: (symbol, local state) to what may come of it, filled on demand from ``System.resolve``.

Entries are kept in *planes*: plane ``k`` holds the ``k``-th alternative of every pair, so that the common case of one answer is one
gather. Target states are kept as numbers, not as packed differences, so that the tables survive every change of layout.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from troth.models.system import NOWHERE, System
from troth.models.vector.groups import MOST, too_many
from troth.models.vector.layout import Ints

UNKNOWN = -1

_T = TypeVar("_T", bound=np.generic)


class Stage:
    """Everything tabulated about one component. Rows are symbols whose head it is, columns its local states."""

    def __init__(self, system: System, component: int) -> None:
        self.system = system
        self.component = component
        self.rows: list[int] = []
        """Row to symbol."""
        self.row_of = np.full(64, UNKNOWN, np.int64)
        """Symbol to row."""
        self.columns = 8
        self.capacity = 8
        self.count = np.full(self.capacity * self.columns, UNKNOWN, np.int16)
        self.target: list[NDArray[np.int32]] = []
        self.after: list[NDArray[np.int32]] = []

    def keys(self, symbols: NDArray[np.int32], locals_: Ints) -> Ints:
        """Places in the planes for pairs; unknown pairs are tabulated, where that needs no new number while numbering is frozen."""
        self._widen(int(locals_.max()) + 1)
        rows = self._rows(symbols)
        keys = rows * self.columns + locals_
        found = np.take(self.count, keys)
        if found.min() == UNKNOWN:
            for key in np.unique(keys[found == UNKNOWN]).tolist():
                self._fill(key)
        return keys

    def _rows(self, symbols: NDArray[np.int32]) -> Ints:
        highest = int(symbols.max())
        if highest >= len(self.row_of):
            wider = np.full(2 * (highest + 1), UNKNOWN, np.int64)
            wider[: len(self.row_of)] = self.row_of
            self.row_of = wider
        rows = np.take(self.row_of, symbols)
        if rows.min() == UNKNOWN:
            for symbol in np.unique(symbols[rows == UNKNOWN]).tolist():
                self.row_of[symbol] = len(self.rows)
                self.rows.append(symbol)
            self._reshape(max(self.capacity, len(self.rows)), self.columns)
            rows = np.take(self.row_of, symbols)
        return rows

    def _widen(self, columns: int) -> None:
        if columns > self.columns:
            self._reshape(self.capacity, max(columns, 2 * self.columns))

    def _reshape(self, capacity: int, columns: int) -> None:
        if capacity == self.capacity and columns == self.columns:
            return
        if capacity > self.capacity:
            capacity = max(capacity, 2 * self.capacity)
        old = (self.capacity, self.columns)

        def moved(plane: NDArray[_T], empty: int) -> NDArray[_T]:
            wider: NDArray[_T] = np.full((capacity, columns), empty, plane.dtype)
            wider[: old[0], : old[1]] = plane.reshape(old)
            return wider.reshape(-1)

        self.count = moved(self.count, UNKNOWN)
        self.target = [moved(p, 0) for p in self.target]
        self.after = [moved(p, 0) for p in self.after]
        self.capacity, self.columns = capacity, columns

    def _fill(self, key: int) -> None:
        row, local = divmod(key, self.columns)
        found = self.system.resolve(self.rows[row], local)
        if any(target == NOWHERE for target, _ in found):
            return  # numbering is frozen: the pair stays unknown until all workers agree on the new states' numbers
        if len(found) > MOST:
            raise too_many(self.system, [self.component])
        while len(self.target) < len(found):
            self.target.append(np.zeros(self.capacity * self.columns, np.int32))
            self.after.append(np.zeros(self.capacity * self.columns, np.int32))
        for place, (target, after) in enumerate(found):
            self.target[place][key] = target
            self.after[place][key] = after
        self.count[key] = len(found)

    @property
    def bytes(self) -> int:
        """Memory that the table takes."""
        return len(self.count) * (2 + 8 * len(self.target))

    @property
    def entries(self) -> int:
        """Pairs that were tabulated."""
        return int((self.count != UNKNOWN).sum())
