"""Cancels one call at its nth moment, or counts the moments that each call has.

A moment is the end of a step of any task while the call is under way: of the task that makes it, which is a checkpoint of the call, or
of another, for which the call sleeps. So a call is cancelled at every one of its checkpoints, and there at every time that differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import trio
from attrs import define, field


@define(eq=False)
class Canceller(trio.abc.Instrument):
    """``call`` is the call that is cancelled, at the moment ``at``; 0 is before it begins, and without a call all are counted."""

    call: str = ""
    at: int = 0
    counts: Counter[str] = field(factory=Counter)
    """How many moments each call had."""
    struck: bool = False
    """Whether it has cancelled."""
    _calling: dict[trio.lowlevel.Task, tuple[str, trio.CancelScope]] = field(factory=dict)

    @contextmanager
    def counting(self, call: str, scope: trio.CancelScope) -> Iterator[None]:
        """The task that is in here makes the call; ``scope`` is what cancels it."""
        task = trio.lowlevel.current_task()
        assert task not in self._calling, f"{self._calling[task][0]} is not over, and {call} begins"
        self.counts[call] += 0
        self._calling[task] = call, scope
        self._strike(task, 0)
        try:
            yield
        finally:
            del self._calling[task]

    @contextmanager
    def calling(self, call: str) -> Iterator[trio.CancelScope]:
        """The same, with a scope for this call alone."""
        with trio.CancelScope() as scope, self.counting(call, scope):
            yield scope

    def _strike(self, task: trio.lowlevel.Task, at: int) -> None:
        call, scope = self._calling[task]
        if call == self.call and at == self.at and not self.struck:
            self.struck = True
            scope.cancel()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """A moment of every call that is under way."""
        for caller, (call, _) in list(self._calling.items()):
            self.counts[call] += 1
            self._strike(caller, self.counts[call])
