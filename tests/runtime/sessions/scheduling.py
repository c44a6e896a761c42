"""Trio's scheduler, played by a script: which of the tasks that can run in one batch runs first.

Trio promises nothing about that order; in fact it takes each batch as it is, or backwards. Where it is asked to be deterministic it
sorts a batch and has it shuffled by one generator of random numbers, and a chooser takes the place of that generator. It leaves the
order alone until it is told to choose; then each batch of n tasks is a choice of one of its n! orders, or of two of them: the first to
the last, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from random import Random
from typing import Any

import pytest
from attrs import define, field


@define(eq=False)
class Chooser:
    """Makes the choices of ``script``, and then always the first, or one that is drawn."""

    script: Sequence[int] = ()
    all_orders: bool = True
    """Whether a batch has all its orders, or two."""
    drawn: Random | None = None
    """Draws what the script does not say."""
    chooses: bool = False
    made: list[tuple[int, int]] = field(factory=list)
    """The choices that were made, and how many there were each time."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Decide for every run of trio from now on."""
        monkeypatch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)
        monkeypatch.setattr("trio._core._run._r", self)

    def shuffle(self, batch: list[Any]) -> None:
        """Put a batch into the order that was chosen."""
        if not self.chooses or len(batch) < 2:
            return
        options = factorial(len(batch)) if self.all_orders else 2
        place = len(self.made)
        choice = self.script[place] if place < len(self.script) else self.drawn.randrange(options) if self.drawn else 0
        assert choice < options, "the run is not the one that the script was made for"
        self.made.append((choice, options))
        if not self.all_orders:
            choice *= factorial(len(batch)) - 1  # the last of its orders is the whole batch backwards
        left = batch[:]
        for size in range(len(batch), 0, -1):
            nth, choice = divmod(choice, factorial(size - 1))
            batch[len(batch) - size] = left.pop(nth)

    def next_script(self) -> list[int] | None:
        """What to choose in the next run, so that in the end every order was had once; ``None`` when that is so."""
        made = list(self.made)
        while made:
            choice, options = made.pop()
            if choice + 1 < options:
                return [chosen for chosen, _ in made] + [choice + 1]
        return None


def every_schedule(once: Callable[[Chooser], None], *, most: int, all_orders: bool = True) -> tuple[int, bool]:
    """Run once for every schedule, at most ``most`` times. How many there were, and whether these were all."""
    script: list[int] | None = []
    runs = 0
    while script is not None and runs < most:
        chooser = Chooser(script, all_orders)
        once(chooser)
        runs += 1
        script = chooser.next_script()
    return runs, script is None
