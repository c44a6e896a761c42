"""One spelling for every local state, so that nothing a reader sees depends on hash seeds, interning order or workers.

Two runs number the same local states differently. Wherever a choice must be made among global states (which of several shortest
counterexamples to print), it is made on these digests, which depend on the states alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Hashable
from enum import Enum
from functools import cache
from typing import Any

import attrs

from troth.models.errors import NotCanonical


def spelled(value: Any) -> str:  # noqa: PLR0911
    """``value`` as text: equal values give equal text in every process. Raises ``NotCanonical`` for objects that have no such text."""
    if isinstance(value, Enum):  # before the plain types: an IntEnum is an int, too
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, tuple):
        inside = ", ".join(spelled(part) for part in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(spelled(part) for part in value)) + "}"
    if attrs.has(type(value)):
        return _fields(value, [f.name for f in attrs.fields(type(value))])
    if dataclasses.is_dataclass(value):
        return _fields(value, [f.name for f in dataclasses.fields(value)])
    if isinstance(value, type):
        return value.__qualname__
    raise NotCanonical(f"{value!r} ({type(value).__name__}) has no canonical text; keep numbers, strings, enums, tuples and attrs values")


def _fields(value: Any, names: list[str]) -> str:
    return f"{type(value).__name__}({', '.join(f'{n}={spelled(getattr(value, n))}' for n in names)})"


def alike(one: Any, other: Any) -> bool:
    """Whether two equal values are the same all through, in class and in text. Python holds ``True == 1``, ``0.0 == -0.0`` and

    ``Put(3) == Take(3)``, if both are named tuples, and ``frozenset({1}) == frozenset({True})``; a checker that took one for the other
    would check another model than the one that was written. What has no canonical text is like nothing but itself.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    kind: Any = type(one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, frozenset):
        same = {part: part for part in other}
        return len(one) == len(other) and all(part in same and alike(part, same[part]) for part in one)
    if (names := _parts(kind)) is not None:
        return all(alike(getattr(one, name), getattr(other, name)) for name in names)
    return isinstance(one, LEAVES) and repr(one) == repr(other)


LEAVES = (Enum, bool, int, float, str, bytes, type(None), type)
"""Values without parts that have a canonical text."""
_PLAIN = frozenset({bool, int, str, bytes, type(None)})


def admit(value: Any) -> None:
    """Raises ``NotCanonical`` unless ``value`` has a canonical text, and for NaN, which is not equal to itself."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return
    if isinstance(value, tuple | frozenset):
        for part in value:
            admit(part)
    elif isinstance(value, LEAVES):
        if value != value:  # noqa: PLR0124
            raise NotCanonical("a NaN is equal to nothing, so states with it are never seen again; keep another value")
    elif (names := _parts(kind)) is not None:
        for name in names:
            admit(getattr(value, name))
    else:
        spelled(value)


@cache
def _parts(kind: type) -> tuple[str, ...] | None:
    """The fields of an attrs or data class, also those that are left out of comparisons."""
    if attrs.has(kind):
        return tuple(f.name for f in attrs.fields(kind))
    return tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def not_alike(owner: str, one: Any, other: Any) -> NotCanonical:
    """What to raise where two equal values are not ``alike``."""
    return NotCanonical(
        f"{owner}: {one!r} ({type(one).__name__}) and {other!r} ({type(other).__name__}) are equal to Python, so one would be taken for "
        "the other; use frozen attrs classes or enums rather than named tuples, compare all their fields, and not both True and 1"
    )


def digest(component: str, state: Hashable) -> int:
    """A 64-bit number that names one local state of one component, the same in every process."""
    text = f"{component}\x00{spelled(state)}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def by_text(values: Any) -> tuple[Any, ...]:
    """``values`` in the order of their canonical text."""
    return tuple(sorted(values, key=spelled))
