"""The timers of every party of one driver, on trio's clock.

Rule 1.  A timer is set and cancelled at once, within the step that says so.
Rule 2.  A timer that was set again or cancelled does not fire. (The core would drop it, by its generation; here it is not even told.)
Rule 3.  Memory follows the timers that run, not those that ever ran.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TypeAlias

import trio
from attrs import define, field

from troth.spec.core import Key, TimerFired

Where: TypeAlias = tuple[str, str, Key]
"""Party, timer and key."""

_SLACK = 64
"""Entries of timers that no longer run that the heap may hold beside those that do."""


@define(eq=False)
class Timers:
    """What is due when. ``fire`` gets the party and its event."""

    fire: Callable[[str, TimerFired], object]
    _running: dict[Where, tuple[float, int, int]] = field(factory=dict)
    """Deadline in trio's seconds, order of setting, generation."""
    _looked_for: dict[Where, float] = field(factory=dict)
    """When the heap has a timer looked at next. One that is set anew for later, as a lease is with every message, is left there until
    then."""
    _heap: list[tuple[float, int, Where]] = field(factory=list)
    _order: int = 0
    _sleep_until: float = math.inf
    _earlier: trio.Event = field(factory=trio.Event)

    def set(self, party: str, timer: str, key: Key, generation: int, duration_s: float | None, *, now: float | None = None) -> None:
        """(Re)start a timer. Without a duration it never fires, but it is no longer what it was. ``now`` saves looking at the clock."""
        where = party, timer, key
        if duration_s is None:
            self._running.pop(where, None)
            return
        self._order += 1
        deadline = (trio.current_time() if now is None else now) + duration_s
        self._running[where] = deadline, self._order, generation
        looked_for = self._looked_for.get(where)
        if looked_for is None or looked_for > deadline:
            self._look(where, deadline)

    def _look(self, where: Where, deadline: float) -> None:
        """Have a timer looked at when it is due."""
        self._looked_for[where] = deadline
        heapq.heappush(self._heap, (deadline, self._running[where][1], where))
        if len(self._heap) > 2 * len(self._running) + _SLACK:
            self._heap = [(due, order, where) for where, (due, order, _) in self._running.items()]
            self._looked_for = {where: due for due, _, where in self._heap}
            heapq.heapify(self._heap)
        if deadline < self._sleep_until:
            self._earlier.set()

    def cancel(self, party: str, timer: str, key: Key) -> None:
        """Stop a timer, if it runs."""
        self._running.pop((party, timer, key), None)

    def forget(self, party: str) -> None:
        """Stop every timer of a party that is no more."""
        for where in [where for where in self._running if where[0] == party]:
            del self._running[where]

    @property
    def running(self) -> int:
        """How many timers run."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Entries that are kept for them, those of timers that were set anew or stopped too."""
        return len(self._heap)

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            self._earlier = trio.Event()
            self._fire_due()
            self._sleep_until = self._heap[0][0] if self._heap else math.inf
            with trio.move_on_at(self._sleep_until):
                await self._earlier.wait()
            await trio.lowlevel.checkpoint_if_cancelled()
            self._sleep_until = -math.inf

    def _fire_due(self) -> None:
        """Fire what is due now, in the order of deadlines. What a firing sets for the same moment waits for the next look."""
        now = trio.current_time()
        due: list[tuple[float, int, Where]] = []
        while self._heap and self._heap[0][0] <= now:
            looked_at, _, where = heapq.heappop(self._heap)
            if self._looked_for.get(where) != looked_at:
                continue  # it is looked for at another time
            del self._looked_for[where]
            running = self._running.get(where)
            if running is None:
                continue
            if running[0] > now:
                self._look(where, running[0])
            else:
                due.append((running[0], running[1], where))
        for _, order, where in sorted(due):
            if self._is(where, order):
                _, _, generation = self._running.pop(where)
                party, timer, key = where
                self.fire(party, TimerFired(timer, key, generation))

    def _is(self, where: Where, order: int) -> bool:
        found = self._running.get(where)
        return found is not None and found[1] == order
