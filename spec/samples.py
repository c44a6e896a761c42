"""Sample values for declared classes: the smallest instance of a message or payload."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar, cast, get_type_hints

import attrs

T = TypeVar("T")

KEY = 1
"""The key under which a family's instance is probed."""


def sample(cls: type[T]) -> T:
    """An instance of the attrs class ``cls`` in which every field has its smallest value."""
    hints = get_type_hints(cls)
    fields = attrs.fields(cast("type[attrs.AttrsInstance]", cls))
    return cls(**{f.name: smallest(hints[f.name], f) for f in fields if f.init})


def smallest(hint: Any, f: attrs.Attribute[Any]) -> Any:
    """The smallest value a field may have: its lower bound, ``False``, or the first member."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if hint is bool:
        return False
    if hint is int:
        return int(f.metadata.get("low", 0))
    if f.default is not attrs.NOTHING and not isinstance(f.default, attrs.Factory):  # type: ignore[arg-type]
        return f.default
    raise TypeError(f"field {f.name!r}: no sample of {hint!r} is known; use int, bool or an Enum, or give a default")
