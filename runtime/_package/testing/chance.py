"""Where a generated run gets its choices from: a seed, a recording, or whatever draws for it.

Everything that a run decides by chance it asks for as ``below(n)``: a whole number from 0, below n. So a run is its list of answers,
which can be kept, shortened and played again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from random import Random
from typing import Protocol


class Chance(Protocol):
    """What chooses."""

    def below(self, n: int) -> int:
        """A whole number from 0, below ``n``, which is at least 1."""
        ...


class Dice:
    """Chance from a seed: the same answers in every process."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random  # noqa: S311 - a test is to be repeated, not to be unforeseeable

    def below(self, n: int) -> int:
        """By the generator's next number."""
        return int(self.random() * n)


class Recorded:
    """Answers that were written down. One that does not fit is reduced until it does; past the end they are 0."""

    def __init__(self, answers: Iterable[int]) -> None:
        self.answers = iter(answers)

    def below(self, n: int) -> int:
        """The next of them."""
        return next(self.answers, 0) % n


class Noted:
    """Another chance, whose answers are written down in ``answers``."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.answers: list[int] = []

    def below(self, n: int) -> int:
        """What the other one says."""
        found = self.chance.below(n)
        self.answers.append(found)
        return found


def derived(seed: int, *parts: object) -> int:
    """A seed of its own for a part of what ``seed`` is the seed of: 62 bits, the same everywhere."""
    text = "\0".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 2
