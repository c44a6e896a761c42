"""What a backend may be told, checked when it is made: nothing is started, and nothing waited for, on account of a mistake.

Each error names the option, what it must be and what it was; the values of an environment are shown to nobody.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from troth.runtime.wire.bounds import MAX_TEXT

Attribute: TypeAlias = "attrs.Attribute[Any]"


def words(command: Any) -> tuple[str, ...]:
    """The program and its arguments, each a word of its own; paths are taken, too. Raises ``TypeError``, ``ValueError``."""
    if isinstance(command, str):
        raise TypeError("command: must be a list of the program and its arguments, not one text; shlex.split() takes one apart")
    if not isinstance(command, Sequence) or isinstance(command, bytes):
        raise TypeError(f"command: must be a list of the program and its arguments, not {type(command).__name__}")
    if not command or not command[0]:
        raise ValueError("command: must begin with the program to run, and is empty")
    return tuple(_word(place, word) for place, word in enumerate(command))


def _word(place: int, word: Any) -> str:
    found = os.fspath(word) if isinstance(word, os.PathLike) else word
    if not isinstance(found, str):
        raise TypeError(f"command[{place}]: must be a text or a path, not {type(word).__name__}")
    return found


def path(value: Any) -> Path | None:
    """A path from what ``Path`` takes; ``None`` stays."""
    return None if value is None else Path(value)


def goal(value: Any) -> Any:
    """Where traces go: a path, or somebody who takes them as they come; ``None`` stays."""
    if value is None or isinstance(value, str | os.PathLike):
        return path(value)
    if not callable(getattr(value, "begin", None)):
        raise TypeError(f"trace: must be a directory, or somebody with begin(name, header), not {type(value).__name__}")
    return value


def text(_instance: Any, attribute: Attribute, value: Any) -> None:
    """What can stand in messages, logs and the bootstrap file."""
    check_text(attribute.name, value)


def check_text(what: str, value: Any) -> None:
    """Raises ``TypeError``, ``ValueError``, with ``what`` the value is for."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: must be a text, not {type(value).__name__}")
    if not 1 <= len(value) <= MAX_TEXT or not value.strip() or not value.isprintable():
        raise ValueError(f"{what}: must be 1 to {MAX_TEXT} printable characters, got {value[:MAX_TEXT]!r}")


def one_of(*allowed: str) -> Any:
    """One of some words."""

    def check(_instance: Any, attribute: Attribute, value: Any) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{attribute.name}: must be {' or '.join(map(repr, allowed))}, got {value!r}")

    return check


def variables(_instance: Any, attribute: Attribute, value: Any) -> None:
    """Environment variables by name, or ``None``."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise TypeError(f"{attribute.name}: must be a mapping of texts, not {type(value).__name__}")
    for name, held in value.items():
        if not isinstance(name, str):
            raise TypeError(f"{attribute.name}: the name of a variable must be a text, got {name!r}")
        if not isinstance(held, str):
            raise TypeError(f"{attribute.name}[{name!r}]: must be a text, not {type(held).__name__}")


def instance(kind: type, *, optional: bool = False) -> Any:
    """An instance of a class."""

    def check(_instance: Any, attribute: Attribute, value: Any) -> None:
        if not isinstance(value, kind) and not (optional and value is None):
            raise TypeError(f"{attribute.name}: must be {kind.__name__}{' or None' if optional else ''}, not {type(value).__name__}")

    return check


def ignore(_name: str, _record: object) -> None:
    """For whoever does not want to hear."""


def function(_instance: Any, attribute: Attribute, value: Any) -> None:
    """Something to call."""
    if not callable(value):
        raise TypeError(f"{attribute.name}: must be a function, not {type(value).__name__}")
