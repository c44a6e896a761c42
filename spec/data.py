"""Making new data out of old, quickly: the functions are written once for each class and set of fields, as attrs writes its own.

``attrs.evolve`` looks the class over at every call. A core makes new data some twenty times a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import attrs

T = TypeVar("T")

WRITTEN_LIMIT = 4096
"""Functions that are kept; a protocol has a few hundred."""


def evolve(data: T, **changes: Any) -> T:
    """``attrs.evolve``: the same data with some fields set otherwise. Raises ``TypeError`` for a field that there is not."""
    cls: Any = type(data)
    made: T = _changing(cls, tuple(changes))(data, changes)
    return made


@lru_cache(maxsize=WRITTEN_LIMIT)
def _changing(cls: type, names: tuple[str, ...]) -> Callable[[Any, Mapping[str, Any]], Any]:
    fields = _fields(cls)
    if unknown := sorted(set(names) - set(fields)):
        raise TypeError(f"{cls.__name__} has no field {', '.join(unknown)}; it has {', '.join(fields) or 'none'}")
    return written(cls, [f"changes[{name!r}]" if name in names else f"data.{name}" for name in fields], "data, changes")


@lru_cache(maxsize=WRITTEN_LIMIT)
def keeping(cls: type, kept: tuple[bool, ...]) -> Callable[[Any, Any], Any]:
    """A function of (data, initial) that gives the data with every field that is not kept as it is initially."""
    values = [f"{'data' if keeps else 'initial'}.{name}" for name, keeps in zip(_fields(cls), kept, strict=True)]
    return written(cls, values, "data, initial")


def written(cls: Callable[..., Any], values: Sequence[str], parameters: str, **names: Any) -> Callable[..., Any]:
    """A function of ``parameters`` that calls ``cls`` with these expressions. They are ours: no text from outside comes here."""
    space: dict[str, Any] = {"cls": cls, **names}
    exec(f"def make({parameters}):\n    return cls({', '.join(values)})", space)  # noqa: S102 - as attrs does for __init__
    made: Callable[..., Any] = space["make"]
    return made


def _fields(cls: type) -> tuple[str, ...]:
    found: Any = cls
    return tuple(field.name for field in attrs.fields(found) if field.init)
