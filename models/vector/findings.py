"""Looking for findings in chunks of packed states, and keeping the canonical one of each level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from troth.models.exploration import Ending, Exploration, Failure, Finding, of_kind, questions
from troth.models.expressions import Expr
from troth.models.places import said
from troth.models.properties import Property, PropertyKind
from troth.models.system import State, System
from troth.models.vector.layout import Ints, Layout, Words, taken
from troth.models.vector.predicates import Columns, Digests, compiled, least

Rank = tuple[int, int]
Hits = dict[str, tuple[Rank, State, State | None]]


class Watch:
    """Everything that is still looked for."""

    def __init__(self, system: System, properties: Sequence[Property]) -> None:
        self.system = system
        self.digests = Digests(system)
        self.claims = {p.id: p for p in properties}
        self.pending = [(q, compiled(q.expr, system)) for q in questions(properties)]
        self.steps = [(p, compiled(p.expr, system)) for p in of_kind(properties, PropertyKind.STEP)]
        self.deadlocks = [(p, compiled(p.then, system)) for p in of_kind(properties, PropertyKind.NO_DEADLOCK) if p.then is not None]
        self.hits: Hits = {}
        self.failures: Hits = {}
        self.witness = {q.name for q, _ in self.pending if q.witness}

    def look(self, layout: Layout, states: Words) -> None:
        """Evaluate what is asked of single states."""
        if not self.pending:
            return
        columns = Columns(layout, states)
        for question, node in self.pending:
            columns.failed = None
            values = node.values(columns)
            hit = values if question.wanted else ~values
            self._keep(question.name, question.property.id, layout, columns, hit)

    def look_at_steps(self, layout: Layout, before: Words, after: Words) -> None:
        """Evaluate the step properties, where something that they look at changes."""
        for claim, node in self.steps:
            changed = np.zeros(len(before[0]), np.bool_)
            for word in range(layout.words):
                mask = 0
                for component in claim.expr.components:
                    if layout.word[component] == word:
                        mask |= (1 << layout.width[component]) - 1 << layout.shift[component]
                if mask:
                    changed |= ((before[word] ^ after[word]) & np.uint64(mask)) != 0
            rows = np.flatnonzero(changed)
            if len(rows):
                columns = Columns(layout, taken(before, rows), taken(after, rows))
                self._keep(claim.id, claim.id, layout, columns, ~node.values(columns), steps=True)

    def look_at_ends(self, layout: Layout, states: Words, degree: Ints) -> None:
        """Evaluate whether the states without an edge may be ends."""
        ends = np.flatnonzero(degree == 0)
        if not len(ends):
            return
        columns = Columns(layout, taken(states, ends))
        for claim, node in self.deadlocks:
            columns.failed = None
            self._keep(claim.id, claim.id, layout, columns, ~node.values(columns))

    def _keep(self, name: str, claim: str, layout: Layout, columns: Columns, hit: NDArray[np.bool_], *, steps: bool = False) -> None:
        if columns.failed is not None:
            hit = hit & ~columns.failed
            self._best(self.failures, claim, layout, columns, columns.failed, steps=steps)
        if hit.any():
            self._best(self.hits, name, layout, columns, hit, steps=steps)

    def _best(
        self,
        where: Hits,
        name: str,
        layout: Layout,
        columns: Columns,
        rows: NDArray[np.bool_],
        *,
        steps: bool,
    ) -> None:
        places = np.flatnonzero(rows)
        after = taken(columns.sides[1], places) if steps else None
        found = least(layout, self.digests, taken(columns.sides[0], places), after)
        if name not in where or found[0] < where[name][0]:
            where[name] = found

    def settle(self, found: Exploration, depth: int, *, stop: bool) -> Ending | None:
        """At the end of a level: record what was found, and stop looking for it."""
        if self.failures:
            claim, (_, state, after) = min(self.failures.items(), key=lambda f: (f[0], f[1][0]))
            found.failure = Failure(claim, self._message(claim, state, after), depth, state)
            return Ending.FAILED
        for name, (_, state, after) in sorted(self.hits.items()):
            target = found.witnesses if name in self.witness else found.violations
            target[name] = Finding(depth, state, after)
        if self.hits:
            self.pending = [(q, n) for q, n in self.pending if q.name not in self.hits]
            self.steps = [s for s in self.steps if s[0].id not in self.hits]
            self.deadlocks = [d for d in self.deadlocks if d[0].id not in self.hits]
            self.hits = {}
        return Ending.VIOLATED if found.violations and stop else None

    def forget_edges(self) -> None:
        """Drop what was found on edges of this level: not all of them were looked at, so which finding is the least is not known."""
        of_edges = {claim.id for claim, _ in (*self.steps, *self.deadlocks)}
        self.hits = {name: hit for name, hit in self.hits.items() if name not in of_edges}
        self.failures = {claim: failure for claim, failure in self.failures.items() if claim not in of_edges}

    def _message(self, claim: str, state: State, after: State | None) -> str:
        """What went wrong, in the words of the plain evaluator."""
        kept = self.claims[claim]
        expr: Expr = kept.expr if kept.kind is not PropertyKind.NO_DEADLOCK or kept.then is None else kept.then
        try:
            value = expr.compiled(self.system)(state, after or state)
        except Exception as error:
            return said(error, kept.declared)
        return kept.not_a_bool(value)

    def merge(self, other: Hits, failures: Hits) -> None:
        """Take in what another worker found at this level."""
        for mine, theirs in ((self.hits, other), (self.failures, failures)):
            for name, found in theirs.items():
                if name not in mine or found[0] < mine[name][0]:
                    mine[name] = found

    @property
    def wants_steps(self) -> bool:
        """Whether step properties are still open."""
        return bool(self.steps)

    @property
    def wants_ends(self) -> bool:
        """Whether deadlock properties are still open."""
        return bool(self.deadlocks)
