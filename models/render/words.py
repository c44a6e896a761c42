"""Values in a reader's words: what a message is called, and what of a state changed.

Nothing here depends on the order of a set, a hash seed or an address: equal values give equal words in every process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import Any

import attrs
from attrs import frozen

from troth.models.canonical import spelled
from troth.models.errors import NotCanonical


@frozen
class Change:
    """One thing that is different after a step. ``what`` is empty where the whole state is one value."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        name = f"{self.what} " if self.what else ""
        return f"{name}{self.before} → {self.after}"


def value(of: Any) -> str:  # noqa: PLR0911
    """``of`` for a reader: ``RESULT(task 0, attempt 1)``. A record whose first field is an enum is called by that."""
    if isinstance(of, Enum):
        return of.name
    if of is None:
        return "none"
    if isinstance(of, str):
        return of if of and of.replace("_", "").replace("-", "").isalnum() else repr(of)
    names = field_names(of)
    if names is not None:
        parts = [(name, getattr(of, name)) for name in names]
        title = type(of).__name__
        if parts and isinstance(parts[0][1], Enum):
            title, parts = parts[0][1].name, parts[1:]
        return title + (f"({', '.join(_named(name, part) for name, part in parts)})" if parts else "")
    if isinstance(of, tuple):
        return f"({', '.join(value(part) for part in of)})"
    if isinstance(of, frozenset):
        return "{" + ", ".join(sorted(value(part) for part in of)) + "}"
    try:
        return spelled(of)
    except NotCanonical:
        return type(of).__name__  # its repr may hold an address


def _named(name: str, part: Any) -> str:
    if isinstance(part, bool):
        return name if part else f"not {name}"
    return f"{name} {value(part)}"


def field_names(of: Any) -> list[str] | None:
    """The fields of a record (attrs, dataclass, named tuple); ``None`` for anything else."""
    if isinstance(of, type):
        return None
    if attrs.has(type(of)):
        return [f.name for f in attrs.fields(type(of))]
    if dataclasses.is_dataclass(of):
        return [f.name for f in dataclasses.fields(of)]
    fields = getattr(of, "_fields", None)
    return list(fields) if isinstance(of, tuple) and isinstance(fields, tuple) else None


def changes(before: Any, after: Any, what: str = "") -> Iterator[Change]:
    """What is different, as deep as the two have the same shape."""
    if before == after and type(before) is type(after):
        return
    names = field_names(after) if type(before) is type(after) else None
    if names:
        for name in names:
            yield from changes(getattr(before, name), getattr(after, name), f"{what}.{name}" if what else name)
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after) and field_names(before) is None:
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from changes(one, other, f"{what}[{place}]")
    else:
        yield Change(what, value(before), value(after))
