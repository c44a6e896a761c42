"""Running a target for a time, in this process or in several. What failed is kept by ``troth.testing.keeping``."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

from attrs import define, evolve, field, frozen

from troth.testing.chance import derived
from troth.testing.choosing import Asked
from troth.testing.coverage import Coverage
from troth.testing.targets import Failure, SessionResult, Target

BATCH_S = 0.5
"""How often a process says what it has done."""
END_S = 5.0
"""What one of several processes is given to tell of its last session, and to end, once there was an interrupt."""


@frozen(kw_only=True)
class Budget:
    """When to stop: after so many seconds, or so many sessions, whichever comes first."""

    seconds: float | None = None
    sessions: int | None = None
    keep_going: bool = False
    """Go on after a failure."""

    def share(self, job: int, jobs: int) -> Budget:
        """What one of several processes has of it: all of the time, and its part of the sessions, the same in every run."""
        if self.sessions is None:
            return self
        return evolve(self, sessions=self.sessions // jobs + (job < self.sessions % jobs))


@define(kw_only=True)
class Outcome:
    """What a run did."""

    coverage: Coverage
    steps: int = 0
    sessions: int = 0
    seconds: float = 0.0
    failures: dict[str, Failure] = field(factory=dict)
    """By property: its first."""
    traces: list[str] = field(factory=list)
    interrupted: bool = False

    def count(self, result: SessionResult) -> None:
        """One session more."""
        self.steps += result.steps
        self.sessions += 1
        self.traces += result.trace
        if result.failure is not None:
            self.failures.setdefault(result.failure.property, result.failure)
        self.interrupted = self.interrupted or result.interrupted

    def add(self, other: Outcome) -> None:
        """What another process has done, too. Its coverage is counted already."""
        self.steps += other.steps
        self.sessions += other.sessions
        self.traces += other.traces
        self.failures = {**other.failures, **self.failures}


def run(asked: Asked, seed: int, budget: Budget, *, jobs: int = 1, opened: Target | None = None) -> Outcome:
    """Fuzz until the budget is used up, a failure is found, or an interrupt; what was found so far is returned in any case."""
    target = opened or asked.open()
    outcome = Outcome(coverage=target.coverage())
    started = monotonic()
    try:
        if jobs > 1:
            _spread(asked, seed, budget, jobs, outcome)
        else:
            with _uncollected():
                for result in target.fuzz(seed=seed, until=_until(budget, outcome, started), coverage=outcome.coverage):
                    outcome.count(result)
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.seconds = monotonic() - started
    return outcome


@contextmanager
def _uncollected() -> Iterator[None]:
    """What is there now, which is modules and tables, stays as long as the run: the collector need not look through it again and again."""
    mine = gc.get_freeze_count() == 0
    if mine:
        gc.freeze()
    try:
        yield
    finally:
        if mine:
            gc.unfreeze()


def _until(budget: Budget, outcome: Outcome, started: float) -> Callable[[], bool]:
    def over() -> bool:
        if outcome.interrupted:
            return True
        if outcome.failures and not budget.keep_going:
            return True
        if budget.sessions is not None and outcome.sessions >= budget.sessions:
            return True
        return budget.seconds is not None and monotonic() - started >= budget.seconds

    return over


# -- several processes -------------------------------------------------------------------------------------------------


@define(eq=False)
class Job:
    """One of several processes, and what it has done so far."""

    process: Any
    done: Outcome

    def heard(self, pipe: Connection) -> bool:
        """Take in what it says; false once it has ended. Raises ``RuntimeError`` if it did not end well."""
        try:
            said = pipe.recv()
        except EOFError:
            self.process.join()
            if self.process.exitcode:
                raise RuntimeError(f"a process of troth fuzz ended with code {self.process.exitcode}") from None
            return False
        if "error" in said:
            raise RuntimeError(f"a process of troth fuzz failed: {said['error']}")
        done = self.done
        done.steps, done.sessions = said["steps"], said["sessions"]
        done.traces += said["traces"]
        done.coverage.add(said["coverage"])
        for failure in said["failures"]:
            done.failures.setdefault(failure.property, failure)
        return True


def _spread(asked: Asked, seed: int, budget: Budget, jobs: int, outcome: Outcome) -> None:
    """Each process has a seed of its own, which comes from the one that was given, and its share of the sessions.

    What they have done is put together in their order, however long each took: the same sessions, and the same traces, every time.
    """
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    running: dict[Connection, Job] = {}
    for number in range(jobs):
        share = budget.share(number, jobs)
        if share.sessions == 0:
            break
        here, there = context.Pipe(duplex=False)
        own = seed if number == 0 else derived(seed, "job", number)
        process = context.Process(target=_work, args=(asked, own, share, stop, there), daemon=True)
        process.start()
        there.close()
        running[here] = Job(process, Outcome(coverage=outcome.coverage))
    started = dict(running)
    try:
        _heard(running, stop, budget)
    except KeyboardInterrupt:
        stop.set()
        _heard(running, stop, budget, END_S)  # one of them may have a failure that it has not told of yet
        raise
    finally:
        stop.set()
        for pipe, job in started.items():
            pipe.close()
            job.process.join(END_S)
            if job.process.is_alive():
                job.process.kill()
                job.process.join()
            outcome.add(job.done)


def _heard(running: dict[Connection, Job], stop: Any, budget: Budget, most_s: float | None = None) -> None:
    """Take in what they say until all have ended, or for so long."""
    until = None if most_s is None else monotonic() + most_s
    while running:
        heard = wait(list(running), None if until is None else max(0.0, until - monotonic()))
        if not heard:
            return
        for ready in heard:
            job = running[ready]  # type: ignore[index]
            if not job.heard(ready):  # type: ignore[arg-type]
                del running[ready]  # type: ignore[arg-type]
            elif job.done.failures and not budget.keep_going:
                stop.set()


def _work(asked: Asked, seed: int, budget: Budget, stop: Any, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this one is told, and says so
    try:
        target = asked.open()
        outcome = Outcome(coverage=target.coverage())
        over = _until(budget, outcome, monotonic())
        said = monotonic()
        with _uncollected():
            for result in target.fuzz(seed=seed, until=lambda: over() or stop.is_set(), coverage=outcome.coverage):
                outcome.count(result)
                if monotonic() - said >= BATCH_S or outcome.failures:
                    said = monotonic()
                    pipe.send(_batch(outcome))
        pipe.send(_batch(outcome))
    except BrokenPipeError:
        return
    except Exception as error:
        pipe.send({"error": f"{type(error).__name__}: {error}"})


def _batch(outcome: Outcome) -> dict[str, Any]:
    """What it has done so far; of its traces what is new. The counts go on, because the budget is judged by them."""
    said = {
        "steps": outcome.steps,
        "sessions": outcome.sessions,
        "traces": outcome.traces,
        "coverage": outcome.coverage.data,
        "failures": list(outcome.failures.values()),
    }
    outcome.traces = []
    return said
