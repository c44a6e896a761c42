"""Federated averaging (FedAvg, McMahan et al. 2017): the weighted mean of what the trainers send.

A model's parameters are a tree of dicts, lists and tuples whose leaves are arrays or numbers. All trees of one round have the same keys
and shapes, or the one that differs is refused by name.

Rule 1.  The sum runs in the order of ``add`` and in float64 (complex128, or wider for wider leaves), so the same results
         in the same order give the same bits. Whoever adds must add in the order of the trainers, not in the order of arrival.
Rule 2.  Nothing that was given is changed, and nothing that is returned shares memory with it.
Rule 3.  Every leaf keeps its type. Integers are rounded to the nearest, ties to even, and stay within their type's range. What is no
         number (text, bytes, bool, None) must be the same everywhere and is passed on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from troth.jobs.errors import AveragingError

Tree: TypeAlias = Any
"""Dicts with str keys, lists and tuples, of arrays and numbers."""

NUMERIC = "fciu"


def leaves(tree: Tree, path: str = "params") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path, ``params['layer'][0]``, in the order of the tree. An empty container is a leaf."""
    if isinstance(tree, Mapping) and tree:
        for key, part in tree.items():
            yield from leaves(part, f"{path}[{key!r}]")
    elif isinstance(tree, list | tuple) and tree:
        for place, part in enumerate(tree):
            yield from leaves(part, f"{path}[{place}]")
    else:
        yield path, tree


class Average:
    """The weighted mean of one round's results.

    ``base`` is the model that the trainers started from: of FULL results the keys and shapes must be its own, and DIFF results are added to
    it. Without one the first result says what the others must be.
    """

    def __init__(self, base: Tree | None = None, *, diff: bool = False, finite: bool = True) -> None:
        """``finite`` refuses a NaN or an infinity, in a result and in the mean."""
        if diff and base is None:
            raise AveragingError("a DIFF can only be added to a model, and there is none yet")
        self.diff = diff
        self.finite = finite
        self.weight = 0.0
        """The sum of the weights so far."""
        self._base = base
        self._model: dict[str, Any] | None = None if base is None else dict(leaves(base))
        self._model_of = "the global model"
        self._first: Tree = None
        self._likes: dict[str, Any] = {}
        self._first_of = ""
        self._sums: dict[str, NDArray[Any]] = {}

    def add(self, trainer: str, params: Tree, weight: float = 1.0) -> None:
        """Add a trainer's result. Raises ``AveragingError`` and is then as if it had not been called."""
        found = dict(leaves(params))
        check_weight(trainer, weight)
        self._check_keys(trainer, found)
        for path, leaf in found.items():
            self._check_leaf(trainer, path, leaf)
        if not self._likes:
            self._first, self._first_of = _rebuilt(params, lambda _path, leaf: _stand_in(leaf)), trainer
            self._likes = dict(leaves(self._first))
        if self._model is None:
            self._model, self._model_of = self._likes, trainer
        with np.errstate(over="ignore", invalid="ignore"):
            for path, leaf in found.items():
                if _is_number(leaf):
                    part = np.asarray(np.multiply(leaf, weight, dtype=_wide(leaf)))
                    self._sums[path] = np.add(self._sums[path], part, out=self._sums[path]) if path in self._sums else part
        self.weight += float(weight)

    def result(self) -> Tree:
        """The mean, or with DIFF results the model plus their mean: a new tree. Raises ``AveragingError`` if nothing has weight."""
        if not self.weight > 0:
            raise AveragingError("nothing to average: no result has a weight above 0")
        return _rebuilt(self._base if self.diff else self._first, self._leaf)

    def _leaf(self, path: str, like: Any) -> Any:
        if path not in self._sums:
            kept = self._likes[path]
            return kept.copy() if isinstance(kept, np.ndarray) else kept
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self._sums[path] / self.weight
            cast = _cast(np.add(like, mean) if self.diff else mean, like)
        if self.finite and not np.isfinite(cast).all():
            raise AveragingError(f"{path}: the mean is too large for {_said(like)}")
        return cast

    def _check_keys(self, trainer: str, found: dict[str, Any]) -> None:
        if self._model is None:
            return
        for path in found:
            if path not in self._model:
                raise AveragingError(f"{trainer}: {path} is not in {self._model_of}")
        for path in self._model:
            if path not in found:
                raise AveragingError(f"{trainer}: {path} of {self._model_of} is missing")

    def _check_leaf(self, trainer: str, path: str, leaf: Any) -> None:
        number = _is_number(leaf)
        if self._model is not None:
            model, of = self._model[path], self._model_of
            if number != _is_number(model):
                raise AveragingError(f"{trainer}: {path} is {_said(leaf)} where {of} has {_said(model)}")
            if np.shape(leaf) != np.shape(model):
                raise AveragingError(f"{trainer}: {path} has shape {np.shape(leaf)} where {of} has {np.shape(model)}")
        if self._likes and not number and not _same(leaf, self._likes[path]):
            raise AveragingError(f"{trainer}: {path}: {_said(leaf)} cannot be averaged, and differs from that of {self._first_of}")
        if self._likes and number and not self.diff and _type(leaf) != _type(self._likes[path]):
            raise AveragingError(f"{trainer}: {path} is {_said(leaf)} where {self._first_of} has {_said(self._likes[path])}")
        if number and self.finite and not np.isfinite(leaf).all():
            raise AveragingError(f"{trainer}: {path} has NaN or infinity in it")


def check_weight(trainer: str, weight: Any) -> None:
    """Raise ``AveragingError`` for what cannot be a weight."""
    number = isinstance(weight, int | float | np.integer | np.floating) and not isinstance(weight, bool)
    if not number or not math.isfinite(weight) or weight < 0:
        raise AveragingError(f"{trainer}: the weight must be a finite number that is not negative, got {weight!r}")


def _is_number(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in NUMERIC
    if isinstance(leaf, int):
        return not isinstance(leaf, bool) and -(2**63) <= leaf < 2**63
    return isinstance(leaf, float | complex)


def _type(leaf: Any) -> Any:
    return leaf.dtype.newbyteorder("=") if isinstance(leaf, np.ndarray | np.generic) else type(leaf)


def _wide(leaf: Any) -> np.dtype[Any]:
    """What a leaf is summed in: 64 bits of an integer do not fit in a float64."""
    kind = np.asarray(leaf).dtype
    return np.result_type(kind, np.longdouble if kind.kind in "iu" and kind.itemsize == 8 else np.float64)


def _cast(mean: Any, like: Any) -> Any:
    """``mean`` as a leaf of the type of ``like``."""
    if not isinstance(like, np.ndarray | np.generic):
        return int(np.rint(mean)) if isinstance(like, int) else type(like)(mean)
    kind: Any = like.dtype
    cast = np.asarray(np.rint(mean) if kind.kind in "iu" else mean).astype(kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        cast[mean >= info.max] = info.max
        cast[mean <= info.min] = info.min
    return cast if isinstance(like, np.ndarray) else cast[()]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(_type(one) == _type(other) and np.array_equal(one, other))
    return type(one) is type(other) and bool(one == other)


def _stand_in(leaf: Any) -> Any:
    """What is remembered of a leaf: of an array of numbers its type and shape in no memory, of anything else a copy."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape) if _is_number(leaf) else leaf.copy()


def _said(leaf: Any) -> str:
    if isinstance(leaf, np.ndarray):
        return f"an array of {leaf.dtype}"
    if isinstance(leaf, Mapping | list | tuple):
        return f"an empty {type(leaf).__name__}"
    return f"{type(leaf).__name__} {leaf!r}"[:80]


def _rebuilt(tree: Tree, leaf_of: Callable[[str, Any], Any], path: str = "params") -> Tree:
    if isinstance(tree, Mapping) and tree:
        return {key: _rebuilt(part, leaf_of, f"{path}[{key!r}]") for key, part in tree.items()}
    if isinstance(tree, list | tuple) and tree:
        parts = [_rebuilt(part, leaf_of, f"{path}[{place}]") for place, part in enumerate(tree)]
        return parts if isinstance(tree, list) else tuple(parts)
    return leaf_of(path, tree)
