"""Replay tokens: the program of a session in a few letters.

A program is a list of moves, each a rule by its number and what was chosen within it. The token holds them, and a fingerprint of the rules
of its world: a program of another world, or of a version with other rules, does not fit and says so.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Sequence

from troth.testing.session import Move
from troth.testing.stage import Stage
from troth.testing.targets import BadToken

PREFIX = "core."
VERSION = 1
CHECK_BYTES = 3
MOVES_LIMIT = 1 << 16


def token(stage: Stage, moves: Sequence[Move]) -> str:
    """The token of a program."""
    body = bytearray([VERSION])
    for number in _spread(moves):
        body += _varint(number)
    return PREFIX + _text(bytes(body) + fingerprint(stage))


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def program(stage: Stage, text: str) -> tuple[Move, ...]:
    """The program of a token. Raises ``BadToken`` where it does not fit the world."""
    if not text.startswith(PREFIX):
        raise BadToken(f"{text!r} is no token of the core target: those begin with {PREFIX!r}")
    body = text.removeprefix(PREFIX)
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        moves = tuple(_gathered(list(_numbers(raw[1:-CHECK_BYTES]))))
    except (binascii.Error, ValueError, IndexError) as error:
        raise BadToken(f"{text!r} is no replay token ({error}); copy it whole from the line that troth fuzz printed") from error
    if len(raw) < 1 + CHECK_BYTES or raw[0] != VERSION or _text(raw) != body:
        raise BadToken(f"{text!r} is no replay token; copy it whole from the line that troth fuzz printed")
    if raw[-CHECK_BYTES:] != fingerprint(stage) or any(move.rule >= len(stage.rules) for move in moves):
        raise BadToken(f"the token is of another world than {stage.name}, of other bounds, or of a version with other rules")
    return moves


def fingerprint(stage: Stage) -> bytes:
    """What tells the rules of one world from those of another."""
    text = "\n".join([stage.name, *(rule.name for rule in stage.rules)])
    return hashlib.blake2b(text.encode(), digest_size=CHECK_BYTES).digest()


def _spread(moves: Sequence[Move]) -> Iterator[int]:
    for move in moves:
        yield move.rule
        yield len(move.answers)
        yield from move.answers


def _gathered(numbers: list[int]) -> Iterator[Move]:
    place = count = 0
    while place < len(numbers):
        count += 1
        if count > MOVES_LIMIT:
            raise ValueError("it has no end")
        rule, length = numbers[place], numbers[place + 1]
        answers = tuple(numbers[place + 2 : place + 2 + length])
        if len(answers) != length:
            raise ValueError("it is cut off")
        yield Move(rule, answers)
        place += 2 + length


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _numbers(raw: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in raw:
        number |= (byte & 127) << shift
        shift += 7
        if shift > 63:
            raise ValueError("a number without end")
        if not byte & 128:
            yield number
            number = shift = 0
    if shift:
        raise ValueError("it is cut off")
