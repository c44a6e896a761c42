"""What the replay tokens of both targets are made of: a program as numbers, and a mark of the rules that it is of, in a few letters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from troth.models.letters import packed, spelled, unpacked, unspelled
from troth.testing.targets import BadToken

CHECK_BYTES = 3
BITS = 63
MOVES_LIMIT = 1 << 16

T = TypeVar("T")


def fingerprint(names: Iterable[str]) -> bytes:
    """What tells these rules from those of another world or version."""
    return hashlib.blake2b("\n".join(names).encode(), digest_size=CHECK_BYTES).digest()


def sealed(prefix: str, version: int, numbers: Iterable[int], mark: bytes) -> str:
    """The token of a program."""
    return prefix + spelled(bytes([version]) + packed(numbers) + mark)


def unsealed(prefix: str, whose: str, text: str, gather: Callable[[list[int]], T]) -> tuple[int, T, bytes]:
    """The version of a token, what ``gather`` makes of its numbers, and its mark. Raises ``BadToken`` where it is none."""
    if not text.startswith(prefix):
        raise BadToken(f"{text!r} is no token of {whose}: those begin with {prefix!r}")
    body = text.removeprefix(prefix)
    try:
        raw = unspelled(body)
        found = gather(list(unpacked(raw[1:-CHECK_BYTES], BITS)))
    except IndexError as error:
        raise no_token(text, "it is cut off") from error
    except ValueError as error:
        raise no_token(text, str(error)) from error
    if len(raw) < 1 + CHECK_BYTES or spelled(raw) != body:
        raise no_token(text)
    return raw[0], found, raw[-CHECK_BYTES:]


def no_token(text: str, why: str = "") -> BadToken:
    """What is said of a text that is no token."""
    return BadToken(f"{text!r} is no replay token{f' ({why})' if why else ''}; copy it whole from the line that troth fuzz printed")


def spread(moves: Iterable[tuple[int, Sequence[int]]]) -> Iterator[int]:
    """Moves as numbers: of each its rule, and what was chosen within it."""
    for rule, chosen in moves:
        yield rule
        yield len(chosen)
        yield from chosen


def gathered(numbers: Sequence[int], place: int = 0) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Moves of numbers, from that place on. Raises ``IndexError`` or ``ValueError`` for what is cut off."""
    count = 0
    while place < len(numbers):
        count += 1
        if count > MOVES_LIMIT:
            raise ValueError("it has no end")
        rule, length = numbers[place], numbers[place + 1]
        chosen = tuple(numbers[place + 2 : place + 2 + length])
        if len(chosen) != length:
            raise ValueError("it is cut off")
        yield rule, chosen
        place += 2 + length
