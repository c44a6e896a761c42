"""Properties on packed states.

An expression becomes a tree of nodes. Whatever one component decides is one table, filled on demand with the plain evaluator; what a
``Joint`` decides is one table over the joint local states; the rest is numpy on whole columns. An entry that cannot be evaluated, or
is a number where a bool is needed, is marked, and every state that has it is a failure: nothing is skipped by short circuits, here or
in the plain engine. Numbers are at most ``LARGEST``, sums too, so that nothing wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from troth.models.expressions import ARITHMETIC, BOOLEAN, LARGEST, Const, Expr, Implies, Joint, Leaf, Op
from troth.models.system import State, System
from troth.models.vector.layout import Ints, Layout, Words, taken

UNKNOWN = -(1 << 62)
FAILED = UNKNOWN + 1
"""Both are beyond ``LARGEST``: no value is mistaken for them."""
DENSE_BITS = 20
KEY_BITS = 63
"""Bits of a joint key that fit a word without touching its sign."""

Mask = NDArray[np.bool_]


class Columns:
    """The columns of one chunk, before and (for step properties) after a step, extracted once."""

    def __init__(self, layout: Layout, states: Words, after: Words | None = None) -> None:
        self.layout = layout
        self.sides = (states, states if after is None else after)
        self._found: dict[tuple[int, int], Ints] = {}
        self.failed: Mask | None = None

    def column(self, component: int, side: int) -> Ints:
        """The local numbers of a component; ``side`` 1 is after the step."""
        found = self._found.get((component, side))
        if found is None:
            found = self._found[component, side] = self.layout.column(self.sides[side], component)
        return found

    def fail(self, where: Mask) -> None:
        """These rows cannot be evaluated."""
        self.failed = where if self.failed is None else self.failed | where


class Node(Protocol):
    """Part of a property: values for a chunk; bools where ``as_bool`` asked for them, else numbers."""

    def values(self, columns: Columns) -> Any:
        """One value a row."""
        ...


class ConstNode:
    """The same value everywhere; a failure everywhere if it is a number where a bool is needed."""

    def __init__(self, value: bool | int, *, as_bool: bool) -> None:
        self.fails = as_bool and type(value) is not bool
        self.value = bool(value) if as_bool else int(value)

    def values(self, columns: Columns) -> Any:
        """The value, one a row."""
        size = len(columns.sides[0][0])
        if self.fails:
            columns.fail(np.ones(size, np.bool_))
        return np.full(size, self.value)


class TableNode:
    """A function of the local states of a few components, tabulated: densely by a joint key while that is small, else by row."""

    def __init__(self, system: System, components: Sequence[int], of: Callable[[Sequence[int]], Any], *, side: int, as_bool: bool) -> None:
        self.system = system
        self.components = tuple(components)
        self.of = of
        self.side = side
        self.as_bool = as_bool
        self.width: tuple[int, ...] = ()
        self.table: NDArray[np.int64] | NDArray[np.int8] = np.empty(0, np.int64)
        self.known: dict[tuple[int, ...], int] = {}

    def _keys(self, columns: Columns) -> Ints:
        """A number a row, equal where the joint local states are. Up to ``KEY_BITS`` it spells them; beyond, it only tells them apart."""
        whole: Ints | None = None
        key = np.zeros(len(columns.sides[0][0]), np.int64)
        place = 0
        for component, width in zip(self.components, self.width, strict=True):
            if place + width > KEY_BITS:
                whole, key, place = _numbered_pairs(whole, key), np.zeros_like(key), 0
            if place + width > KEY_BITS:
                raise AssertionError(f"a component whose numbers take {width} bits")
            key |= columns.column(component, self.side) << place
            place += width
        return key if whole is None else _numbered_pairs(whole, key)

    def _sized(self) -> None:
        """Make the table as large as the components are now."""
        width = tuple(max(1, (len(self.system.components[c].states) - 1).bit_length()) for c in self.components)
        if width == self.width and len(self.table):
            return
        self.width = width
        self.table = np.full(1 << min(sum(width), DENSE_BITS), UNKNOWN, np.int64)
        if sum(width) <= DENSE_BITS:
            for locals_, value in self.known.items():
                self.table[self._key(locals_)] = value

    def _key(self, locals_: Sequence[int]) -> int:
        key = place = 0
        for local, width in zip(locals_, self.width, strict=True):
            key |= local << place
            place += width
        return key

    def values(self, columns: Columns) -> Any:
        """From the table."""
        self._sized()
        keys = self._keys(columns)
        if sum(self.width) <= DENSE_BITS:
            found = np.take(self.table, keys)
            if found.min(initial=0) == UNKNOWN:
                for key in np.unique(keys[found == UNKNOWN]).tolist():
                    self.table[key] = self._value(key)
                found = np.take(self.table, keys)
        else:
            _, first, back = np.unique(keys, return_index=True, return_inverse=True)
            joint = [np.take(columns.column(component, self.side), first).tolist() for component in self.components]
            found = np.array([self._looked_up(locals_) for locals_ in zip(*joint, strict=True)], np.int64)[back]
        if found.min(initial=0) == FAILED:
            failed = found == FAILED
            columns.fail(failed)
            found = np.where(failed, 0, found)
        return found != 0 if self.as_bool else found

    def _value(self, key: int) -> int:
        locals_ = []
        for width in self.width:
            locals_.append(key & (1 << width) - 1)
            key >>= width
        return self._looked_up(tuple(locals_))

    def _looked_up(self, locals_: tuple[int, ...]) -> int:
        found = self.known.get(locals_)
        if found is None:
            found = self.known[locals_] = self._evaluated(locals_)
        return found

    def _evaluated(self, locals_: Sequence[int]) -> int:
        try:
            value = self.of(locals_)
        except Exception:
            return FAILED
        if self.as_bool and type(value) is not bool:
            return FAILED
        return int(value) if abs(value) <= LARGEST else FAILED


def _numbered_pairs(left: Ints | None, right: Ints) -> Ints:
    """A number for each pair, equal where the pairs are: below the square of the number of rows, which is far below the sign bit."""
    numbers: Ints = np.unique(right, return_inverse=True)[1].astype(np.int64)
    if left is None:
        return numbers
    # ``left`` is numbered again, so that many words do not multiply up.
    numbers += np.unique(left, return_inverse=True)[1].astype(np.int64) * (int(numbers.max(initial=0)) + 1)
    return numbers


class OpNode:
    """An operator on whole columns."""

    def __init__(self, name: str, args: Sequence[Node]) -> None:
        self.args = tuple(args)
        self.apply: Callable[..., Any] = UFUNCS[name]

    def values(self, columns: Columns) -> Any:
        """Both sides are always evaluated."""
        return self.apply(*(arg.values(columns) for arg in self.args))


class SumNode(OpNode):
    """``+`` or ``-``: always a number (numpy would add two bools to a bool), and a failure where it is too large, or a bool is needed."""

    def __init__(self, name: str, args: Sequence[Node], *, as_bool: bool) -> None:
        super().__init__(name, args)
        self.as_bool = as_bool

    def values(self, columns: Columns) -> Any:
        """Both operands are at most ``LARGEST``, so this does not wrap."""
        found = self.apply(*(np.asarray(arg.values(columns), np.int64) for arg in self.args))
        failed = np.abs(found) > LARGEST
        if self.as_bool:
            failed[:] = True
        if failed.any():
            columns.fail(failed)
            found = np.where(failed, 0, found)
        return found != 0 if self.as_bool else found


UFUNCS: dict[str, Callable[..., Any]] = {
    "&": np.logical_and,
    "|": np.logical_or,
    "^": np.logical_xor,
    "~": np.logical_not,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "+": np.add,
    "-": np.subtract,
}


def compiled(expr: Expr, system: System, *, as_bool: bool = True) -> Node:
    """The node of an expression."""
    if isinstance(expr, Const):
        return ConstNode(expr.value, as_bool=as_bool)
    if isinstance(expr, Leaf | Joint) or (len(expr.components) == 1 and _sided(expr) is not None):
        return _tabled(expr, system, as_bool=as_bool)
    if isinstance(expr, Implies):
        return OpNode("|", [OpNode("~", [compiled(expr.left, system)]), compiled(expr.right, system)])
    if isinstance(expr, Op) and expr.name in ARITHMETIC:
        return SumNode(expr.name, [compiled(arg, system, as_bool=False) for arg in expr.args], as_bool=as_bool)
    if isinstance(expr, Op):
        inner = expr.name in BOOLEAN
        return OpNode(expr.name, [compiled(arg, system, as_bool=inner) for arg in expr.args])
    raise TypeError(f"{expr!r} is not an expression of this module")


def _sided(expr: Expr) -> int | None:
    """0 if the expression looks before the step only, 1 if after only, ``None`` if at both."""
    if isinstance(expr, Op):
        sides = {_sided(arg) for arg in expr.args if not isinstance(arg, Const)}
        return sides.pop() if len(sides) == 1 else None
    return int(expr.primed)


def _tabled(expr: Expr, system: System, *, as_bool: bool) -> TableNode:
    components = sorted(expr.components)
    evaluate = expr.compiled(system)
    blank = [0] * len(system.components)

    def of(locals_: Sequence[int]) -> Any:
        state = list(blank)
        for component, local in zip(components, locals_, strict=True):
            state[component] = local
        whole: State = tuple(state)
        return evaluate(whole, whole)

    return TableNode(system, components, of, side=_sided(expr) or 0, as_bool=as_bool)


class Digests:
    """Numbering-independent digests of packed states, as ``System.digest`` gives them."""

    def __init__(self, system: System) -> None:
        self.system = system

    def of(self, layout: Layout, states: Words) -> NDArray[np.uint64]:
        """One digest a state. Meant for the few states that are findings."""
        total = np.zeros(len(states[0]), np.uint64)
        for component, table in enumerate(self.system.components):
            distinct, back = np.unique(layout.column(states, component), return_inverse=True)
            total += np.array([table.digest(local) for local in distinct.tolist()], np.uint64)[back]
        return total


def least(layout: Layout, digests: Digests, states: Words, after: Words | None = None) -> tuple[tuple[int, int], State, State | None]:
    """Of these states (or steps) the one with the least digest, and that digest."""
    first = digests.of(layout, states)
    if after is None:
        place = int(first.argmin())
        return (int(first[place]), 0), layout.unpack_one(states, place), None
    ties = np.flatnonzero(first == first.min())
    second = digests.of(layout, taken(after, ties))
    chosen = int(second.argmin())
    place = int(ties[chosen])
    return (int(first[place]), int(second[chosen])), layout.unpack_one(states, place), layout.unpack_one(after, place)
