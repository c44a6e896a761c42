"""A trio program that is run by hand, from code that does not wait: until nothing can run, then as far in time as one likes.

Rule 1.  Time is virtual, and stands still while anything can run.
Rule 2.  The order in which runnable tasks take their turns is asked for, so that a run is its choices and nothing else. Asked for the
         order of nothing in particular, the tasks run newest first.
Rule 3.  Nothing waits for the system. What comes over a descriptor is looked for when somebody says so.

trio's loop is a generator that is resumed after each wait for I/O; that is what guest mode is made of, and what is used here without
its thread. It is no public part of trio: ``inside`` looks whether everything is there.
"""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator, MutableSequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from typing import Any, Protocol

import trio
import trio.abc
from attrs import define

from troth.testing.live.inside import trio_inside

_run = trio_inside()
MIX = 6364136223846793005
WIDTH = 2**64
TURNS_LIMIT = 100_000
"""Turns of the loop within one moment, before a run is said never to settle."""


class Unsettled(AssertionError):
    """Something runs and runs, and time cannot go on."""


@define(eq=False)
class VirtualClock(trio.abc.Clock):
    """Time, as whoever steps says it is. In seconds, from 0."""

    now: float = 0.0

    def start_clock(self) -> None:
        """See ``trio.abc.Clock``."""

    def current_time(self) -> float:
        """See ``trio.abc.Clock``."""
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """See ``trio.abc.Clock``."""
        return deadline - self.now


class Schedule(Protocol):
    """Whose turn it is."""

    def shuffle(self, batch: MutableSequence[Any]) -> None:
        """Bring tasks that can run into an order; the last one is first."""
        ...

    def random(self) -> float:
        """What trio asks instead where it does not shuffle."""
        ...


@define(eq=False)
class Shuffled:
    """An order for each moment from one number: 0 leaves it as it is, any other number mixes it."""

    state: int = 0

    def shuffle(self, batch: MutableSequence[Any]) -> None:
        """See ``Schedule``."""
        if self.state == 0:
            return
        for last in range(len(batch) - 1, 0, -1):
            self.state = (self.state * MIX + 1442695040888963407) % WIDTH
            other = (self.state >> 33) % (last + 1)
            batch[last], batch[other] = batch[other], batch[last]

    def random(self) -> float:
        """See ``Schedule``."""
        return 0.0


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let an interrupt wait until this is over: in the midst of the tasks it would end one of them, and look like a fault of the runtime.

    A second one waits for nothing, since a task may be what never ends. Where somebody else handles interrupts, they go on to do so.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []

    def wait(number: int, _frame: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


class Stepper:
    """Runs ``main`` by hand. Only one can run in a thread at a time, and none beside another trio program."""

    def __init__(self, main: Callable[[], Awaitable[object]], schedule: Schedule, context: Context | None = None) -> None:
        """``context`` is what its tasks are started in."""
        self.schedule = schedule
        self.clock = VirtualClock()
        self.over = False
        self.context = copy_context() if context is None else context
        self._runner = self.context.run(_run.setup_runner, self.clock, (), False, True)
        self._runner.ki_manager.close()  # it would end the main task by an interrupt, as if that were part of the program
        self._loop = _run.unrolled_run(self._runner, main, (), host_uses_signal_set_wakeup_fd=True)
        self._resume: Callable[[Any], float] = self._loop.send
        next(self._loop)
        self._own = frozenset(self._runner.tasks)
        try:
            self.settle()
        except BaseException:
            self.drop()
            raise

    @property
    def next_s(self) -> float:
        """When something is due next."""
        due: float = self._runner.deadlines.next_deadline()
        return due

    def settle(self, *, look: bool = False) -> None:
        """Run until nothing can run at this time. ``look`` for what has come over descriptors first."""
        runner, resume, deadlines, now = self._runner, self._resume, self._runner.deadlines, self.clock.now
        held = _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING
        _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING = self.schedule, True
        turns = 0
        try:
            with undisturbed():
                if look:
                    resume(runner.io_manager.get_events(0))
                while runner.runq or deadlines.next_deadline() <= now:
                    resume(())
                    turns += 1
                    if turns > TURNS_LIMIT:
                        raise Unsettled(f"{turns} turns at {now} s, and it goes on")
        except StopIteration:
            self.over = True
        finally:
            _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING = held

    @property
    def strays(self) -> list[str]:
        """Tasks that belong to no block of the program, so that its end would not wait for them: the names of their functions."""
        nursery = self._runner.system_nursery
        return [] if nursery is None else sorted(task.name for task in nursery.child_tasks if task not in self._own)

    def start(self, function: Callable[..., Awaitable[object]], *arguments: object, nursery: trio.Nursery) -> None:
        """Start a task there; it runs when it settles."""
        self.context.run(nursery.start_soon, function, *arguments)

    def pass_time(self, until: float | None = None) -> bool:
        """Go on to when something is due, at most until then, and settle. False if nothing is due at all."""
        due = min(self.next_s, math.inf if until is None else until)
        if due == math.inf:
            return False
        self.clock.now = max(due, self.clock.now)
        self.settle()
        return True

    def finish(self, limit_s: float = math.inf) -> bool:
        """Let time pass until the program is over, or ``limit_s`` is reached. Whether it is over; what it raised is raised."""
        self.settle()
        while not self.over and self.next_s <= limit_s and self.pass_time():
            pass
        if not self.over:
            self.settle(look=True)  # trio wakes itself through a socket when its last task is done
        if self.over and self._runner.main_task_outcome is not None:
            self._runner.main_task_outcome.unwrap()
        return self.over

    def _unshield(self) -> None:
        """Let those be cancelled, too, who wait behind a shield for what will never come."""
        for task in list(self._runner.tasks):
            status: Any = task._cancel_status
            while status is not None:
                status._scope.shield = False
                status = status._parent

    def drop(self, limit_s: float = math.inf) -> None:
        """Stop it, whatever it does: it is cancelled, given until ``limit_s`` to heed that, for what is shielded has its limits, then
        cancelled behind its shields, and left where it is if it does not heed that. For a run that has failed already."""
        main = self._runner.main_task
        nursery = None if main is None or self.over else main.parent_nursery
        if nursery is not None:
            nursery.cancel_scope.cancel()
            with suppress(BaseException):
                self.finish(limit_s)
            with suppress(BaseException):
                self._unshield()
                self.finish(limit_s)
        if not self.over:
            self.over = True
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # trio says that its loop was left, which is what this is for
                self._loop.close()
