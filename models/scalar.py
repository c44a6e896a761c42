"""Breadth-first search in plain Python, for small worlds: no numpy is imported, so that it starts at once.

It is also the reference for the vector engine: same counts, same findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

from troth.models.exploration import Ending, Exploration, Failure, Finding, Limits, Reporter, Ticker, of_kind, questions
from troth.models.expressions import Evaluator
from troth.models.places import said
from troth.models.properties import Property, PropertyKind
from troth.models.symmetry import Symmetry
from troth.models.system import TRUNCATED, State, System


class Patience(NamedTuple):
    """How long this engine searches before it says that numpy would be faster. Counted, not timed: the same in every run.

    A thousand states take some 15 ms here, and importing numpy takes as long as 5,000 of them. So up to ``states`` there is nothing to
    decide. Beyond, what counts is what is still to come: where levels grow ``growth`` times from one to the next, far more than was seen.
    ``most`` states and ``edges`` are enough in any case.
    """

    states: int = 3_000
    growth: float = 1.4
    most: int = 25_000
    edges: int = 150_000

    def ends(self, states: int, edges: int, level: int, following: int) -> bool:
        """Whether to give up after a level of so many states, with so many in the ``following`` one."""
        return following > 0 and states > self.states and (following > self.growth * level or edges > self.edges)


class ScalarLevels:
    """The states of each depth, in lists."""

    def __init__(self, system: System, symmetry: Symmetry | None) -> None:
        self.system = system
        self.symmetry = symmetry
        self.levels: list[list[State]] = []

    def predecessors(self, depth: int, target: State) -> list[State]:
        """By expanding the level again."""
        canonical = self.symmetry.canonical if self.symmetry else _same
        return [
            state
            for state in self.levels[depth]
            if any(symbol != TRUNCATED and canonical(after) == target for after, symbol in self.system.successors(state))
        ]


def _same(state: State) -> State:
    return state


class _Search:
    """One search under way."""

    def __init__(
        self,
        system: System,
        properties: Sequence[Property],
        limits: Limits,
        symmetry: Symmetry | None,
        patience: Patience | None,
    ) -> None:
        self.system = system
        self.limits = limits
        self.patience = patience
        self.most = limits.most_states if patience is None else min(limits.most_states, patience.most)
        self.found = Exploration()
        self.levels = ScalarLevels(system, symmetry)
        self.found.levels = self.levels
        self.canonical = symmetry.canonical if symmetry else _same
        self.pending = [(q, q.expr.compiled(system)) for q in questions(properties)]
        self.steps = [(p, p.expr.compiled(system), p.expr.components) for p in of_kind(properties, PropertyKind.STEP)]
        self.deadlocks = [(p, p.then.compiled(system)) for p in of_kind(properties, PropertyKind.NO_DEADLOCK) if p.then is not None]
        self.hits: dict[str, list[tuple[int, int, Finding]]] = {}
        self.failures: list[tuple[str, int, Failure]] = []
        self.depth = 0

    def run(self, report: Reporter | None) -> Exploration | None:
        """Search to the end; ``None`` if patience ends first."""
        started = perf_counter()
        ticker = Ticker(report)
        first = self.canonical(self.system.initial)
        seen = {first}
        level = [first]
        found = self.found
        while level:
            self.levels.levels.append(level)
            found.depth = self.depth
            before = found.edges, found.truncated
            after: list[State] = []
            for place, state in enumerate(level):
                self._look(state)
                if len(seen) <= self.most:
                    self._expand(state, seen, after)
                if place & 1023 == 0:
                    ticker.tick("exploring", len(seen), found.edges, len(level), self.depth)
            found.states = len(seen)
            if len(seen) > self.most:
                if self.most < self.limits.most_states:
                    return None
                found.cut_short(self.most, before)
                self._forget_edges()
            ending = self._settle() or (Ending.STATES if len(seen) > self.most else None)
            if ending is not None:
                found.ending = ending
                break
            if self.patience is not None and self.patience.ends(len(seen), found.edges, len(level), len(after)):
                return None
            level = after
            self.depth += 1
        found.seconds = perf_counter() - started
        return found

    def _forget_edges(self) -> None:
        """Drop what was found on edges of this level: not all of them were looked at, so which finding is the least is not known."""
        of_edges = {step[0].id for step in self.steps} | {end[0].id for end in self.deadlocks}
        self.hits = {name: hits for name, hits in self.hits.items() if name not in of_edges}
        self.failures = [failure for failure in self.failures if failure[0] not in of_edges]

    def _look(self, state: State) -> None:
        for question, evaluate in self.pending:
            value = self._value(question.property, evaluate, state, state)
            if value is question.wanted:
                self._hit(question.name, Finding(self.depth, state))

    def _value(self, claim: Property, evaluate: Evaluator, state: State, after: State) -> bool | None:
        try:
            value = evaluate(state, after)
        except Exception as error:
            self._fail(claim, said(error, claim.declared), state)
            return None
        if type(value) is not bool:
            self._fail(claim, claim.not_a_bool(value), state)
            return None
        return value

    def _fail(self, claim: Property, message: str, state: State) -> None:
        self.failures.append((claim.id, self.system.digest(state), Failure(claim.id, message, self.depth, state)))

    def _hit(self, name: str, finding: Finding) -> None:
        after = self.system.digest(finding.after) if finding.after is not None else 0
        self.hits.setdefault(name, []).append((self.system.digest(finding.state), after, finding))

    def _expand(self, state: State, seen: set[State], after: list[State]) -> None:
        successors = self.system.successors(state)
        taken = 0
        for target, symbol in successors:
            if symbol == TRUNCATED:
                self.found.truncated += 1
                continue
            taken += 1
            reached = self.canonical(target)
            for claim, evaluate, components in self.steps:
                changed = any(state[i] != target[i] for i in components)
                if changed and self._value(claim, evaluate, state, target) is False:
                    self._hit(claim.id, Finding(self.depth, state, target))
            if reached not in seen:
                seen.add(reached)
                after.append(reached)
                if len(seen) > self.most:
                    return
        self.found.edges += taken
        if not successors:
            for claim, may_end in self.deadlocks:
                if self._value(claim, may_end, state, state) is False:
                    self._hit(claim.id, Finding(self.depth, state))

    def _settle(self) -> Ending | None:
        """At the end of a level: choose among the findings, and stop looking for what was found."""
        if self.failures:
            self.found.failure = min(self.failures, key=lambda f: f[:2])[2]
            return Ending.FAILED
        kinds = {q.name: q.witness for q, _ in self.pending}
        for name, hits in sorted(self.hits.items()):
            finding = min(hits, key=lambda h: h[:2])[2]
            if kinds.get(name, False):
                self.found.witnesses[name] = finding
            else:
                self.found.violations[name] = finding
        if self.hits:
            self.pending = [(q, e) for q, e in self.pending if q.name not in self.hits]
            self.steps = [s for s in self.steps if s[0].id not in self.hits]
            self.deadlocks = [d for d in self.deadlocks if d[0].id not in self.hits]
            self.hits = {}
        if self.found.violations and self.limits.stop_at_violation:
            return Ending.VIOLATED
        return None


def explore(
    system: System,
    properties: Sequence[Property],
    limits: Limits | None = None,
    *,
    symmetry: Symmetry | None = None,
    report: Reporter | None = None,
) -> Exploration:
    """Search every reachable state. Raises what the components raise; a property that raises is a ``Failure`` in the result."""
    found = _Search(system, properties, limits or Limits(), symmetry, None).run(report)
    if found is None:
        raise AssertionError("a search without end to its patience gave up")
    return found


def explore_if_small(
    system: System,
    properties: Sequence[Property],
    limits: Limits,
    *,
    symmetry: Symmetry | None = None,
    report: Reporter | None = None,
    patience: Patience | None = None,
) -> Exploration | None:
    """The same, or ``None`` for a world that is better searched with numpy. What its components answered is kept in their tables."""
    return _Search(system, properties, limits, symmetry, patience or Patience()).run(report)
