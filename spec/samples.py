"""Sample values for declared classes: the smallest instance of a message or payload."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar, get_type_hints

import attrs

from troth.spec.errors import BadRow

T = TypeVar("T")

KEY = 1
"""The key under which a family's instance is probed."""


def sample(cls: type[T]) -> T:
    """An instance of the attrs class ``cls`` in which every field has its smallest value."""
    return cls(**_smallest_values(cls))


def _smallest_values(cls: type) -> dict[str, Any]:
    if not attrs.has(cls):
        raise BadRow(f"{cls.__name__}: a message or payload must be a frozen attrs class")
    hints = get_type_hints(cls)
    return {f.alias or f.name: smallest(cls, hints[f.name], f) for f in attrs.fields(cls) if f.init}


def smallest(cls: type, hint: Any, f: attrs.Attribute[Any]) -> Any:
    """The smallest value a field may have: its lower bound, ``False``, or the first member; else its default."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if hint is bool:
        return False
    if hint is int:
        return int(f.metadata.get("low", 0))
    if f.default is attrs.NOTHING or type(f.default) is type(attrs.Factory(list)):
        raise BadRow(f"{cls.__name__}.{f.name}: no sample of {hint!r} is known; use int, bool or an enum, or give a default")
    return f.default
