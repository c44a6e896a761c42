"""The whole reachable graph with labelled edges, as arrays: what the liveness checks work on."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from troth.models.exploration import Reporter, Ticker
from troth.models.system import State, System
from troth.models.vector.expander import Expander
from troth.models.vector.filler import Outgrown
from troth.models.vector.layout import CHUNK, Layout, Words, joined
from troth.models.vector.memory import tune_allocator


@frozen(eq=False)
class StateGraph:
    """States numbered from 0 (the initial one) by depth; the edges of state ``s`` are ``targets[starts[s]:starts[s + 1]]``.

    ``labels`` holds the label number (``System.labels``) of each edge. ``packed`` and ``layout`` give the states back.
    """

    system: System
    layout: Layout
    packed: Words
    starts: NDArray[np.int64]
    targets: NDArray[np.int32]
    labels: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.packed[0])

    def state(self, number: int) -> State:
        """State number ``number``."""
        return self.layout.unpack_one(self.packed, number)


class _Numbered:
    """States by number, found again by binary search among sorted runs."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.runs: list[tuple[NDArray[Any], NDArray[np.int32]]] = []
        self.count = 0
        self.parts: list[Words] = []

    def _key(self, states: Words) -> NDArray[Any]:
        if self.words == 1:
            return states[0]
        both = np.empty((len(states[0]), 2), ">u8")
        both[:, 0], both[:, 1] = states
        return both.view("V16").reshape(-1)

    def numbers(self, states: Words) -> tuple[NDArray[np.int32], Words]:
        """Numbers for states, given on first sight; and the states that were new, in the order of their numbers."""
        distinct, first, back = np.unique(self._key(states), return_index=True, return_inverse=True)
        numbers = np.full(len(distinct), -1, np.int32)
        for keys, known in self.runs:
            place = np.searchsorted(keys, distinct)
            place[place == len(keys)] = 0
            hit = np.flatnonzero(keys[place] == distinct)
            numbers[hit] = known[place[hit]]
        new = np.flatnonzero(numbers < 0)
        numbers[new] = np.arange(self.count, self.count + len(new), dtype=np.int32)
        fresh = tuple(word[first[new]] for word in states)
        if len(new):
            self._add(distinct[new], numbers[new])
            self.parts.append(fresh)
            self.count += len(new)
        return numbers[back], fresh

    def _add(self, keys: NDArray[Any], numbers: NDArray[np.int32]) -> None:
        self.runs.append((keys, numbers))
        while len(self.runs) > 1 and 2 * len(self.runs[-1][0]) >= len(self.runs[-2][0]):
            (a, an), (b, bn) = self.runs.pop(), self.runs.pop()
            both, both_numbers = np.concatenate([a, b]), np.concatenate([an, bn])
            order = np.argsort(both, kind="stable")
            self.runs.append((both[order], both_numbers[order]))


def graph(system: System, report: Reporter | None = None) -> StateGraph:
    """Every reachable state and every labelled edge. Truncated edges are left out; check ``Exploration.truncated`` first."""
    tune_allocator()
    expander = Expander(system, labelled=True)
    while True:
        try:
            return _graph(system, expander, report)
        except Outgrown:
            expander.relayout()


def _graph(system: System, expander: Expander, report: Reporter | None) -> StateGraph:
    layout = expander.layout
    known = _Numbered(layout.words)
    ticker = Ticker(report)
    front = known.numbers(layout.pack_one(system.initial))[1]
    degrees: list[NDArray[np.int64]] = []
    targets: list[NDArray[np.int32]] = []
    labels: list[NDArray[np.int32]] = []
    edges = depth = 0
    while len(front[0]):
        new: list[Words] = []
        for low in range(0, len(front[0]), CHUNK):
            chunk = tuple(word[low : low + CHUNK] for word in front)
            rows, after, symbols = _edges(expander, chunk)
            order = np.argsort(rows, kind="stable")
            numbers, fresh = known.numbers(after)
            new.append(fresh)
            targets.append(numbers[order])
            labels.append(_label_numbers(system, symbols[order]))
            degrees.append(np.bincount(rows, minlength=len(chunk[0])))
            edges += len(rows)
            ticker.tick("numbering edges", known.count, edges, len(front[0]), depth)
        front = joined(new, layout.words)
        depth += 1
    starts = np.zeros(known.count + 1, np.int64)
    np.cumsum(np.concatenate(degrees), out=starts[1:])
    return StateGraph(system, layout, joined(known.parts, layout.words), starts, np.concatenate(targets), np.concatenate(labels))


def _edges(expander: Expander, chunk: Words) -> tuple[NDArray[np.intp], Words, NDArray[np.int32]]:
    rows: list[NDArray[np.intp]] = [np.empty(0, np.intp)]
    after: list[Words] = [tuple(np.empty(0, np.uint64) for _ in chunk)]
    symbols: list[NDArray[np.int32]] = [np.empty(0, np.int32)]

    def sink(source: NDArray[np.intp] | None, states: Words, found: NDArray[np.int32] | None) -> None:
        if source is None or found is None:
            raise AssertionError("labelled edges come with their sources")
        rows.append(source)
        after.append(states)
        symbols.append(found)

    expander.expand(chunk, sink, rows=True)
    return np.concatenate(rows), joined(after, len(chunk)), np.concatenate(symbols)


def _label_numbers(system: System, symbols: NDArray[np.int32]) -> NDArray[np.int32]:
    distinct, back = np.unique(symbols, return_inverse=True)
    found = np.array([system.symbols[symbol][0] for symbol in distinct.tolist()], np.int32)
    return found[back]
