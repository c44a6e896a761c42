"""What a model adds to another: results as differences.

Rule 1.  The caller's model is never changed, and its arrays are only read.
Rule 2.  What only one of the two models has is left out of the difference; two that have nothing in common have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs
import numpy as np

from troth.client.model import FLModel, ParamsType


class TransferType(StrEnum):
    """How results travel."""

    FULL = "FULL"
    """As the script made them."""
    DIFF = "DIFF"
    """As what they add to the model that was received."""


def remember(params: Any) -> Any:
    """A copy of parameters that training in place does not reach.

    >>> import numpy as np
    >>> weights = {"w": np.zeros(2)}
    >>> kept = remember(weights)
    >>> weights["w"] += 1
    >>> kept["w"].tolist()
    [0.0, 0.0]
    """
    if isinstance(params, Mapping):
        return {name: remember(value) for name, value in params.items()}
    if isinstance(params, list | tuple):
        return type(params)(remember(value) for value in params)
    return params.copy(order="K") if isinstance(params, np.ndarray) else params


def difference(model: FLModel, original: Any) -> FLModel:
    """A new model that holds what ``model`` adds to the parameters ``original``. Raises ``ValueError`` if they have nothing in common.

    >>> import numpy as np
    >>> new = FLModel(params={"w": np.array([3.0, 5.0])})
    >>> found = difference(new, {"w": np.array([1.0, 1.0])})
    >>> found.params["w"].tolist(), found.params_type is ParamsType.DIFF, new.params["w"].tolist()
    ([2.0, 4.0], True, [3.0, 5.0])
    """
    return attrs.evolve(model, params=_minus(model.params, original, "params"), params_type=ParamsType.DIFF)


def _minus(new: Any, old: Any, path: str) -> Any:
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        common = [name for name in new if name in old]
        if not common:
            raise ValueError(f"{path}: no name in common with the model that was received, so there is no difference to send")
        return {name: _minus(new[name], old[name], f"{path}[{name!r}]") for name in common}
    if isinstance(new, list | tuple) and isinstance(old, list | tuple):
        if len(new) != len(old):
            raise ValueError(f"{path}: {len(new)} values, but {len(old)} were received")
        return [_minus(one, other, f"{path}[{index}]") for index, (one, other) in enumerate(zip(new, old, strict=True))]
    return _subtract(new, old, path)


def _subtract(new: Any, old: Any, path: str) -> Any:
    if np.shape(new) != np.shape(old):
        raise ValueError(f"{path}: has the shape {np.shape(new)}, but {np.shape(old)} was received")
    try:
        return np.subtract(new, old) if isinstance(new, np.ndarray) or isinstance(old, np.ndarray) else new - old
    except TypeError as wrong:
        raise ValueError(f"{path}: cannot be subtracted: {wrong}") from None
