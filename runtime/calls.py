"""The calls that wait: from ``Called`` to ``Resolve``.

A call has a number of its own; whatever ``Resolve`` names that number returns from it. A caller that is cancelled says so to the
core, which decides what becomes of what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import trio
from attrs import define, field, frozen

from troth.runtime.errors import Misuse, RuntimeFault
from troth.spec.core import CallCancelled, Called, Event, Resolve, Step

_WRAP = 2**31
"""Numbers start again here. A call that waits for so long that its number comes up again is skipped."""


@frozen
class Resolved:
    """How a call returned."""

    outcome: Enum
    value: int


@define(eq=False)
class _Waiting:
    """A call that has not returned."""

    found: Resolved | None = None
    task: trio.lowlevel.Task | None = None
    """Who sleeps until there is an outcome, or will never be one."""

    def wake(self) -> None:
        """Let the sleeper look."""
        if self.task is not None:
            trio.lowlevel.reschedule(self.task)
            self.task = None

    async def sleep(self) -> None:
        """Until it is woken. No event in between: a round of a task sleeps three times."""
        self.task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._give_up)

    def _give_up(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED


@define(eq=False)
class Calls:
    """The calls of one party. ``give`` hands an event to its core."""

    give: Callable[[Event], Step | None]
    _waiting: dict[int, _Waiting] = field(factory=dict)
    _last: int = 0
    _fault: tuple[str, BaseException] | None = None
    """Why nothing is decided any more."""

    def number(self) -> int:
        """A number that no waiting call has."""
        self._last = self._last % _WRAP + 1
        while self._last in self._waiting:
            self._last += 1
        return self._last

    def break_off(self, why: str, cause: BaseException) -> None:
        """Nothing will be decided any more: who waits is told so, and whoever calls from now on."""
        if self._fault is None:
            self._fault = why, cause
        for waiting in self._waiting.values():
            waiting.wake()

    def _check_fault(self) -> None:
        if self._fault is not None:
            why, cause = self._fault
            raise RuntimeFault(why) from cause

    async def call(self, call: str, payload: Any = None, *, number: int | None = None) -> Resolved:
        """Make a call and wait for its outcome. Raises ``Misuse`` if it may not be made now."""
        self._check_fault()
        number = self.number() if number is None else number
        waiting = self._waiting[number] = _Waiting()
        try:
            self.now(call, payload, number)
            # Decided at once: a caller whose time is up is told so all the same, or a task that is there could not be polled for.
            if waiting.found is None:
                await waiting.sleep()
        except trio.Cancelled:
            # Whatever was decided already is undone by the core's own row (a task that was handed over goes back), never here.
            del self._waiting[number]
            self.give(CallCancelled(call, number))
            raise
        except BaseException:
            self._waiting.pop(number, None)
            raise
        del self._waiting[number]
        if waiting.found is None:
            self._check_fault()
        return self._outcome(waiting, call)

    def at_once(self, call: str, *, number: int) -> Resolved:
        """Make a call that is resolved within its own step."""
        waiting = self._waiting[number] = _Waiting()
        try:
            self.now(call, None, number)
        finally:
            del self._waiting[number]
        return self._outcome(waiting, call)

    def _outcome(self, waiting: _Waiting, call: str) -> Resolved:
        if waiting.found is None:
            raise RuntimeFault(f"{call}() came back without an outcome")
        return waiting.found

    def now(self, call: str, payload: Any = None, number: int = 0) -> None:
        """Make a call that nobody waits for."""
        step = self.give(Called(call, number, payload))
        if step is not None and step.refusal is not None:
            raise Misuse(f"{call}(): {step.refusal.why}")

    def resolve(self, effect: Resolve) -> None:
        """Let a call return. One that was given up meanwhile is not there any more."""
        waiting = self._waiting.get(effect.number)
        if waiting is None or waiting.found is not None:
            return
        waiting.found = Resolved(effect.outcome, effect.value)
        waiting.wake()
