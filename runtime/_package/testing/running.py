"""Running a target for a time: in this process or in several, with what failed kept and tried first the next time."""

from __future__ import annotations

import json
import multiprocessing
import re
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

from attrs import define, field, frozen

from troth.testing.chance import derived
from troth.testing.choosing import Asked
from troth.testing.coverage import Coverage
from troth.testing.targets import BadToken, Failure, SessionResult, Target

KEPT = Path(".troth") / "fuzz"
"""Where failures are kept, unless another folder is named."""
BATCH_S = 0.5
"""How often a process says what it has done."""


@frozen(kw_only=True)
class Budget:
    """When to stop: after so many seconds, or so many sessions, whichever comes first."""

    seconds: float | None = None
    sessions: int | None = None
    keep_going: bool = False
    """Go on after a failure."""


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


def run(asked: Asked, seed: int, budget: Budget, *, jobs: int = 1, opened: Target | None = None) -> Outcome:
    """Fuzz until the budget is used up, a failure is found, or an interrupt; what was found so far is returned in any case."""
    target = opened or asked.open()
    outcome = Outcome(coverage=target.coverage())
    started = monotonic()
    try:
        if jobs > 1:
            _spread(asked, seed, budget, jobs, outcome)
        else:
            for result in target.fuzz(seed=seed, until=_until(budget, outcome, started), coverage=outcome.coverage):
                outcome.count(result)
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.seconds = monotonic() - started
    return outcome


def _until(budget: Budget, outcome: Outcome, started: float) -> Callable[[], bool]:
    def over() -> bool:
        if outcome.failures and not budget.keep_going:
            return True
        if budget.sessions is not None and outcome.sessions >= budget.sessions:
            return True
        return budget.seconds is not None and monotonic() - started >= budget.seconds

    return over


# -- several processes -------------------------------------------------------------------------------------------------


def _spread(asked: Asked, seed: int, budget: Budget, jobs: int, outcome: Outcome) -> None:
    """Each process with a seed of its own, which comes from the one that was given."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    running: dict[Connection, Any] = {}
    for job in range(jobs):
        here, there = context.Pipe(duplex=False)
        own = seed if job == 0 else derived(seed, "job", job)
        process = context.Process(target=_work, args=(asked, own, budget, stop, there), daemon=True)
        process.start()
        there.close()
        running[here] = process
    try:
        while running:
            for ready in wait(list(running)):
                _heard(ready, running, outcome, budget, stop)  # type: ignore[arg-type]
    finally:
        stop.set()
        for pipe, process in running.items():
            pipe.close()
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()


def _heard(pipe: Connection, running: dict[Connection, Any], outcome: Outcome, budget: Budget, stop: Any) -> None:
    try:
        said = pipe.recv()
    except EOFError:
        process = running.pop(pipe)
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a process of troth fuzz ended with code {process.exitcode}") from None
        return
    if "error" in said:
        raise RuntimeError(f"a process of troth fuzz failed: {said['error']}")
    outcome.steps += said["steps"]
    outcome.sessions += said["sessions"]
    outcome.traces += said["traces"]
    outcome.coverage.add(said["coverage"])
    for failure in said["failures"]:
        outcome.failures.setdefault(failure.property, failure)
    enough = budget.sessions is not None and outcome.sessions >= budget.sessions
    if enough or (outcome.failures and not budget.keep_going):
        stop.set()


def _work(asked: Asked, seed: int, budget: Budget, stop: Any, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this one is told, and says so
    try:
        target = asked.open()
        outcome = Outcome(coverage=target.coverage())
        over = _until(budget, outcome, monotonic())
        said = monotonic()
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
    """What is new; it is counted from nothing again, but for the coverage and the failures."""
    said = {
        "steps": outcome.steps,
        "sessions": outcome.sessions,
        "traces": outcome.traces,
        "coverage": outcome.coverage.data,
        "failures": list(outcome.failures.values()),
    }
    outcome.steps = outcome.sessions = 0
    outcome.traces = []
    return said


# -- what is kept ------------------------------------------------------------------------------------------------------


@frozen
class Kept:
    """Failures in a folder, a file each. What is in it is tried before anything else, and taken out once it does not fail any more."""

    folder: Path

    def files(self, asked: Asked) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Those of this target and these worlds, in order of their names; a file that is none is passed over."""
        for path in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            try:
                said = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                continue
            mine = isinstance(said, dict) and said.get("target") == asked.target and said.get("worlds") == list(asked.worlds)
            if mine and said.get("bounds") == dict(asked.bounds) and isinstance(said.get("token"), str):
                yield path, said

    def keep(self, asked: Asked, failure: Failure, seed: int) -> Path:
        """Write a failure down. Its folder is made if need be."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "-", f"{asked.target} {'-'.join(asked.worlds) or 'all'} {failure.property}").strip("-")
        path = self.folder / f"{name}.json"
        said = {
            "target": asked.target,
            "worlds": list(asked.worlds),
            "bounds": dict(asked.bounds),
            "property": failure.property,
            "token": failure.token,
            "seed": seed,
        }
        path.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        return path

    def tried(self, asked: Asked, target: Target, coverage: Coverage) -> Iterator[tuple[Path, SessionResult | None]]:
        """Each of them, played again. ``None``, and its file is gone, where it fails no more or fits nothing any more."""
        for path, said in self.files(asked):
            try:
                result: SessionResult | None = target.replay(said["token"], coverage=coverage)
            except BadToken:
                result = None
            if result is None or result.failure is None:
                path.unlink()
                yield path, None
            else:
                yield path, result
