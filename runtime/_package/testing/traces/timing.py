"""The timers of one party as the driver must have kept them: an automaton beside the core, which knows generations and no time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import define, field

from troth.spec.core import CancelTimer, Effect, Key, SetTimer, TimerFired
from troth.spec.trace import Number
from troth.testing.traces.verdicts import Wrong

Where: TypeAlias = tuple[str, Key]

SLACK_NS = 1_000
"""How much a firing may seem early: the driver counts in seconds with a fraction, the trace in whole nanoseconds."""


@define(eq=False)
class TimerCheck:
    """What runs, since when it is due, and how what does not run any more came to its end."""

    limits: Mapping[str, Number]
    """The durations. ``unknown`` names those of which only the peer knew how long they are."""
    unknown: frozenset[str] = frozenset()
    running: dict[Where, tuple[int, int | None]] = field(factory=dict)
    """Generation, and the time from which on it may fire; ``None`` where that is not known."""
    _ended: dict[Where, str] = field(factory=dict)

    def did(self, effect: Effect, t_ns: int) -> None:
        """An effect was performed at that time."""
        if isinstance(effect, SetTimer):
            where = effect.timer, effect.key
            duration = self.limits.get(effect.limit)
            self._ended.pop(where, None)
            if effect.limit in self.unknown:
                self.running[where] = effect.generation, None
            elif duration is None:
                self._end(where, f"has no end: {effect.limit} has no value")
            else:
                self.running[where] = effect.generation, t_ns + round(duration * 1e9)
        elif isinstance(effect, CancelTimer):
            self._end((effect.timer, effect.key), "was cancelled")

    def _end(self, where: Where, how: str) -> None:
        if self.running.pop(where, None) is not None or where in self._ended:
            self._ended[where] = how

    def fired(self, event: TimerFired, t_ns: int) -> None:
        """A timer fired. Raises ``Wrong`` if it cannot have."""
        where = event.timer, event.key
        found = self.running.get(where)
        if found is None:
            raise Wrong(f"timer {spelled(where)} fired, but {self._ended.get(where, 'was never armed')}", self.expected())
        generation, due = found
        if generation != event.generation:
            raise Wrong(
                f"timer {spelled(where)} fired as generation {event.generation}, but it was armed as {generation}; "
                "the other one was withdrawn when it was armed again",
                self.expected(),
            )
        if due is not None and t_ns + SLACK_NS < due:
            raise Wrong(f"timer {spelled(where)} fired {seconds(due - t_ns)} before it was due", self.expected())
        del self.running[where]
        self._ended[where] = "had fired already"

    def expected(self) -> tuple[tuple[TimerFired, str], ...]:
        """The firings that could come, the first due first."""
        order = sorted(self.running.items(), key=lambda each: (each[1][1] or 0, repr(each[0])))
        return tuple((TimerFired(timer, key, generation), _when(due)) for (timer, key), (generation, due) in order)

    def first_due(self) -> tuple[int, Where] | None:
        """The timer that is due first, and when."""
        return min(((due, where) for where, (_, due) in self.running.items() if due is not None), default=None, key=lambda each: each[0])


def _when(due: int | None) -> str:
    return "an armed timer" if due is None else f"an armed timer, due at t = {due / 1e9:.6f} s"


def spelled(where: Where) -> str:
    """A timer as people read it."""
    timer, key = where
    return timer if key is None else f"{timer}[{key}]"


def seconds(nanoseconds: int) -> str:
    """A duration as people read it."""
    return f"{nanoseconds / 1e9:.6g} s"
