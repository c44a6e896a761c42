"""Programs of the live runtime: how its stage was set, what was done on it, one move after the other, and both as a token.

A walk decides by chance which rule comes next. What it did is a program, which chance has no part in any more: it can be shortened,
written down and played again. A token holds the whole of it, and a fingerprint of the rules: one of a version with other rules does not
fit, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from troth.testing import tokens
from troth.testing.live.rules import RULES
from troth.testing.targets import BadToken

PREFIX = "runtime."
VERSION = 1


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
    return tokens.sealed(PREFIX, VERSION, _spread(program), fingerprint())


def program(text: str) -> Program:
    """The program of a token. Raises ``BadToken`` where it fits nothing."""
    version, found, mark = tokens.unsealed(PREFIX, "the live runtime", text, _gathered)
    if version != VERSION or mark != fingerprint() or any(move.rule > END for move in found.moves):
        raise BadToken(f"{text!r} is of a version with other rules, and fits no more")
    return found


def name(move: Move) -> str:
    """What a step is called."""
    return "end" if move.rule == END else RULES[move.rule].name


def fingerprint() -> bytes:
    """What tells these rules from those of another version."""
    return tokens.fingerprint(rule.name for rule in RULES)


def _spread(program: Program) -> Iterator[int]:
    yield len(program.opening)
    yield from program.opening
    yield from tokens.spread((move.rule, move.numbers) for move in program.moves)


def _gathered(numbers: list[int]) -> Program:
    place = 1 + numbers[0]
    opening = tuple(numbers[1:place])
    moves = tuple(Move.of(rule, chosen) for rule, chosen in tokens.gathered(numbers, place))
    if len(opening) != numbers[0]:
        raise ValueError("it is cut off")
    return Program(opening, moves)
