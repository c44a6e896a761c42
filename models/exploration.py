"""What a search is asked, and what it answers: shared by both engines.

Both engines walk the reachable states level by level. At the end of a level, of all the states of that level that violate a property
the one with the least digest is kept, so that the answer depends neither on numbering nor on how the work was shared out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from time import perf_counter
from typing import NamedTuple, Protocol

from attrs import define, field, frozen

from troth.models.expressions import Expr, Implies
from troth.models.properties import Property, PropertyKind
from troth.models.system import State, System


class Finding(NamedTuple):
    """Where a property was first seen violated (or witnessed): ``after`` only for a step property."""

    depth: int
    state: State
    after: State | None = None


class Failure(NamedTuple):
    """A property that could not be evaluated, and where."""

    property: str
    message: str
    depth: int
    state: State


class Ending(Enum):
    """Why a search stopped."""

    COMPLETE = "complete"
    VIOLATED = "violated"
    """Asked to stop at the first violation."""
    STATES = "states"
    """There are more than ``max_states``. The level whose edges led to the last of them counts as looked at, but not its edges."""
    MEMORY = "memory"
    FAILED = "failed"
    """A property raised."""


@frozen(kw_only=True)
class Limits:
    """When a search stops: ``max_states`` (distinct), ``max_bytes`` (all workers together), and whether at the first violation."""

    max_states: int | None = None
    max_bytes: int | None = None
    stop_at_violation: bool = False
    workers: int | None = None
    """Processes that search a large world; ``None``: one for each core this process may use, up to eight."""

    @property
    def most_states(self) -> int:
        """``max_states`` as a number."""
        return sys.maxsize if self.max_states is None else self.max_states

    @property
    def processes(self) -> int:
        """How many processes that is here."""
        if self.workers is not None:
            return self.workers
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(cores, 8)


class Progress(NamedTuple):
    """Where a search is. ``remaining_s`` is ``None`` while nothing honest can be said."""

    phase: str
    states: int
    edges: int
    frontier: int
    depth: int
    rate_per_s: float
    elapsed_s: float
    remaining_s: float | None = None


Reporter = Callable[[Progress], None]


class Levels(Protocol):
    """The states by depth, for walking back from a finding."""

    def predecessors(self, depth: int, target: State) -> list[State]:
        """All states at ``depth`` with an edge to ``target``."""
        ...


@define
class Exploration:
    """What a search found."""

    states: int = 0
    edges: int = 0
    depth: int = 0
    truncated: int = 0
    """Edges that a bound of the world cut off."""
    ending: Ending = Ending.COMPLETE
    violations: dict[str, Finding] = field(factory=dict)
    witnesses: dict[str, Finding] = field(factory=dict)
    """``sometimes`` properties seen true, and, under ``ID premise``, left sides of implications."""
    failure: Failure | None = None
    seconds: float = 0.0
    levels: Levels | None = None
    engine: str = "scalar"
    processes: int = 1
    """As many as searched at once. What others asked the components stayed with them: then the tables here are not complete."""

    def cut_short(self, states: int, before: tuple[int, int]) -> None:
        """The limit on states was passed in this level: say the limit, and count none of the level's edges.

        How many states and edges were seen by then depends on where one begins, and on how many search; this does not. ``before``:
        edges, and edges cut off, when the level began.
        """
        self.states = states
        self.edges, self.truncated = before


PREMISE = " premise"


class Question(NamedTuple):
    """One thing to look for in every state. ``wanted`` is the value that is a finding."""

    name: str
    property: Property
    expr: Expr
    wanted: bool
    witness: bool


def questions(properties: Sequence[Property]) -> list[Question]:
    """What is looked for in single states: violations, witnesses, and the premises that decide vacuity."""
    found = []
    for claim in properties:
        match claim.kind:
            case PropertyKind.ALWAYS:
                found.append(Question(claim.id, claim, claim.expr, wanted=False, witness=False))
                if isinstance(claim.expr, Implies):
                    found.append(Question(claim.id + PREMISE, claim, claim.expr.left, wanted=True, witness=True))
            case PropertyKind.SOMETIMES:
                found.append(Question(claim.id, claim, claim.expr, wanted=True, witness=True))
            case PropertyKind.LEADS_TO:
                found.append(Question(claim.id + PREMISE, claim, claim.expr, wanted=True, witness=True))
            case _:
                pass
    return found


def of_kind(properties: Sequence[Property], kind: PropertyKind) -> list[Property]:
    """The properties of one kind."""
    return [p for p in properties if p.kind is kind]


def path_to(system: System, levels: Levels, finding: Finding) -> list[State]:
    """The states from the initial one to ``finding``, one a level: a shortest path, the same one in every run."""
    path = [finding.state]
    for depth in range(finding.depth - 1, -1, -1):
        before = levels.predecessors(depth, path[-1])
        if not before:
            raise AssertionError(f"no state at depth {depth} leads to {system.spelled(path[-1])}")
        path.append(min(before, key=system.digest))
    path.reverse()
    if finding.after is not None:
        path.append(finding.after)
    return path


class Ticker:
    """Calls a reporter at most once a ``period_s``."""

    def __init__(self, report: Reporter | None, period_s: float = 0.5) -> None:
        self.report = report
        self.period_s = period_s
        self.started = self.last = perf_counter()
        self.last_states = 0
        self.widths: list[int] = []
        """States of the levels so far."""

    def tick(self, phase: str, states: int, edges: int, frontier: int, depth: int) -> None:
        """Report if it is time. The rate is that of the last period, so that a stall shows as a stall."""
        if self.report is None:
            return
        while len(self.widths) <= depth:
            self.widths.append(frontier)
        now = perf_counter()
        if now - self.last < self.period_s:
            return
        rate = (states - self.last_states) / (now - self.last)
        self.last, self.last_states = now, states
        self.report(Progress(phase, states, edges, frontier, depth, rate, now - self.started, self._remaining_s(rate)))

    def _remaining_s(self, rate: float) -> float | None:
        """What is left if levels go on to shrink as the last three did; nothing can be said while they do not, or while nothing moves."""
        last = self.widths[-3:]
        if rate <= 0 or len(last) < 3 or not last[0] > last[1] > last[2]:
            return None
        ratio = last[2] / last[1]
        return last[2] / (1 - ratio) / rate
