"""Replay tokens: the program of a session in a few letters.

A program is a list of moves, each a rule by its number and what was chosen within it. The token holds them, and a fingerprint of the rules
of its world: a program of another world, or of a version with other rules, does not fit and says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from troth.models.letters import packed, spelled, unpacked, unspelled
from troth.testing.session import Move
from troth.testing.stage import Stage
from troth.testing.targets import BadToken

PREFIX = "core."
VERSION = 1
CHECK_BYTES = 3
BITS = 63
MOVES_LIMIT = 1 << 16


def token(stage: Stage, moves: Sequence[Move]) -> str:
    """The token of a program."""
    return PREFIX + spelled(bytes([VERSION]) + packed(_spread(moves)) + fingerprint(stage))


def program(stage: Stage, text: str) -> tuple[Move, ...]:
    """The program of a token. Raises ``BadToken`` where it does not fit the world."""
    if not text.startswith(PREFIX):
        raise BadToken(f"{text!r} is no token of the core target: those begin with {PREFIX!r}")
    body = text.removeprefix(PREFIX)
    try:
        raw = unspelled(body)
        moves = tuple(_gathered(list(unpacked(raw[1:-CHECK_BYTES], BITS))))
    except (ValueError, IndexError) as error:
        why = "it is cut off" if isinstance(error, IndexError) else error
        raise BadToken(f"{text!r} is no replay token ({why}); copy it whole from the line that troth fuzz printed") from error
    if len(raw) < 1 + CHECK_BYTES or raw[0] != VERSION or spelled(raw) != body:
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
