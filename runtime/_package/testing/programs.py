"""Replay tokens: the program of a session in a few letters.

A program is a list of moves, each a rule by its number and what was chosen within it. The token holds them, and a fingerprint of the rules
of its world: a program of another world, or of a version with other rules, does not fit and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from troth.testing import tokens
from troth.testing.session import Move
from troth.testing.stage import Stage
from troth.testing.targets import BadToken

PREFIX = "core."
VERSION = 1


def token(stage: Stage, moves: Sequence[Move]) -> str:
    """The token of a program."""
    return tokens.sealed(PREFIX, VERSION, tokens.spread((move.rule, move.answers) for move in moves), fingerprint(stage))


def program(stage: Stage, text: str) -> tuple[Move, ...]:
    """The program of a token. Raises ``BadToken`` where it does not fit the world."""
    version, moves, mark = tokens.unsealed(PREFIX, "the core target", text, _gathered)
    if version != VERSION:
        raise tokens.no_token(text)
    if mark != fingerprint(stage) or any(move.rule >= len(stage.rules) for move in moves):
        raise BadToken(f"the token is of another world than {stage.name}, of other bounds, or of a version with other rules")
    return moves


def fingerprint(stage: Stage) -> bytes:
    """What tells the rules of one world from those of another."""
    return tokens.fingerprint([stage.name, *(rule.name for rule in stage.rules)])


def _gathered(numbers: list[int]) -> tuple[Move, ...]:
    return tuple(Move(rule, answers) for rule, answers in tokens.gathered(numbers))
