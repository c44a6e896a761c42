"""Where everything that is drawn comes from: program, schedule and faults ask one source, one choice at a time.

Rule 1.  A choice is a number below a bound, and 0 is the plainest: a program of zeros is the one in which least happens.
Rule 2.  What was chosen can be chosen again: the list of its choices is a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from attrs import define, field


class Choices(Protocol):
    """A source of choices, all of them noted."""

    taken: list[int]

    def choose(self, bound: int) -> int:
        """A number from 0 below ``bound``, which is at least 1."""
        ...


@define(eq=False)
class Walk:
    """Choices of a seeded random walk."""

    seed: int
    taken: list[int] = field(factory=list)
    _below: Callable[[], float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._below = Random(self.seed).random  # noqa: S311 - a test's program, no secret

    def choose(self, bound: int) -> int:
        """See ``Choices``."""
        found = int(self._below() * bound)
        self.taken.append(found)
        return found


@define(eq=False)
class Listed:
    """Choices that were taken before. One that does not fit is brought below its bound; where the list ends, 0 goes on."""

    given: Sequence[int]
    taken: list[int] = field(factory=list)
    bounds: list[int] = field(factory=list)
    """What each was below."""

    def choose(self, bound: int) -> int:
        """See ``Choices``."""
        at = len(self.taken)
        found = min(self.given[at], bound - 1) if at < len(self.given) else 0
        self.taken.append(found)
        self.bounds.append(bound)
        return found

    @property
    def number(self) -> int:
        """The number of which ``Digits`` makes the same choices."""
        number = 0
        for found, bound in zip(reversed(self.taken), reversed(self.bounds), strict=True):
            number = number * bound + found
        return number


@define(eq=False)
class Digits:
    """Choices of one number, which somebody else draws, Hypothesis say: each takes what is left of it, to its own base."""

    number: int
    taken: list[int] = field(factory=list)

    def choose(self, bound: int) -> int:
        """See ``Choices``."""
        self.number, found = divmod(self.number, bound)
        self.taken.append(found)
        return found
