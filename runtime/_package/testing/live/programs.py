"""Programs of the live runtime: how its stage was set, what was done on it, one move after the other, and both as a token.

A walk decides by chance which rule comes next. What it did is a program, which chance has no part in any more: it can be shortened,
written down and played again. A token holds the whole of it, and a fingerprint of the rules: one of a version with other rules does not
fit, and says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from troth.models.letters import packed, spelled, unpacked, unspelled
from troth.testing.live.rules import RULES
from troth.testing.targets import BadToken

PREFIX = "runtime."
VERSION = 1
CHECK_BYTES = 3
BITS = 63
MOVES_LIMIT = 1 << 16


def plain(numbers: Sequence[int]) -> tuple[int, ...]:
    """Without the zeros at its end, which go on there by themselves."""
    length = len(numbers)
    while length and not numbers[length - 1]:
        length -= 1
    return tuple(numbers[:length])


class Move(NamedTuple):
    """One step. A program of small numbers is a plain one."""

    rule: int
    """Its place among the rules; ``END`` for what brings a session to its end."""
    where: int = 0
    """Which of the places where it can be used."""
    order: int = 0
    """In which order tasks take their turns after it."""
    answers: tuple[int, ...] = ()
    """What else was drawn."""

    @classmethod
    def of(cls, rule: int, numbers: Sequence[int]) -> Move:
        """A move with these numbers, the last of which may be left out where they are 0."""
        where, order, *answers = [*numbers, 0, 0][: max(2, len(numbers))]
        return cls(rule, where, order, plain(answers))

    @property
    def numbers(self) -> tuple[int, ...]:
        """All that was chosen, without the zeros at its end."""
        return plain((self.where, self.order, *self.answers))


END = len(RULES)
"""From then on nothing new is begun and nothing goes wrong any more: there is nothing but the way out."""


class Program(NamedTuple):
    """A session. Where its moves end it is brought to its end, by what is plainest."""

    opening: tuple[int, ...]
    """Whether all payloads are large, and what was drawn to set the stage."""
    moves: tuple[Move, ...]


def token(program: Program) -> str:
    """The token of a program."""
    return PREFIX + spelled(bytes([VERSION]) + packed(_spread(program)) + fingerprint())


def program(text: str) -> Program:
    """The program of a token. Raises ``BadToken`` where it fits nothing."""
    if not text.startswith(PREFIX):
        raise BadToken(f"{text!r} is no token of the live runtime: those begin with {PREFIX!r}")
    body = text.removeprefix(PREFIX)
    try:
        raw = unspelled(body)
        found = _gathered(list(unpacked(raw[1:-CHECK_BYTES], BITS)))
    except (ValueError, IndexError) as error:
        why = "it is cut off" if isinstance(error, IndexError) else error
        raise BadToken(f"{text!r} is no replay token ({why}); copy it whole from the line that troth fuzz printed") from error
    if len(raw) < 1 + CHECK_BYTES or spelled(raw) != body:
        raise BadToken(f"{text!r} is no replay token; copy it whole from the line that troth fuzz printed")
    if raw[0] != VERSION or raw[-CHECK_BYTES:] != fingerprint() or any(move.rule > END for move in found.moves):
        raise BadToken(f"{text!r} is of a version with other rules, and fits no more")
    return found


def name(move: Move) -> str:
    """What a step is called."""
    return "end" if move.rule == END else RULES[move.rule].name


def fingerprint() -> bytes:
    """What tells these rules from those of another version."""
    return hashlib.blake2b("\n".join(rule.name for rule in RULES).encode(), digest_size=CHECK_BYTES).digest()


def _spread(program: Program) -> Iterator[int]:
    yield len(program.opening)
    yield from program.opening
    for move in program.moves:
        yield move.rule
        yield len(move.numbers)
        yield from move.numbers


def _gathered(numbers: list[int]) -> Program:
    place = 1 + numbers[0]
    opening = tuple(numbers[1:place])
    moves: list[Move] = []
    while place < len(numbers):
        rule, length = numbers[place], numbers[place + 1]
        chosen = numbers[place + 2 : place + 2 + length]
        if len(chosen) != length or len(moves) == MOVES_LIMIT:
            raise ValueError("it is cut off, or has no end")
        moves.append(Move.of(rule, chosen))
        place += 2 + length
    if len(opening) != numbers[0]:
        raise ValueError("it is cut off")
    return Program(opening, tuple(moves))
