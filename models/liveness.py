"""Liveness: ``always eventually`` and ``leads to``, on the whole graph, under weak and strong fairness.

A *run* is an infinite path of real edges, or a path after which nothing happens any more: standing still for ever is a run wherever
fairness permits it. ``p leads to q`` is violated by a fair run that reaches ``p`` without ``q`` and from there on never sees ``q``;
``always eventually q`` is the same with a ``p`` that is always true. So what is looked for is a part of the graph without ``q`` in
which a fair run can stay for ever:

* A strong component, of the graph without ``q``, contains every such run's tail. A single node counts, for standing still.
* Weak fairness of a turn is possible in a component if the turn is impossible at one of its nodes or taken by one of its edges. If
  not, then neither in any part of it, and the component is discarded.
* Strong fairness is possible if the turn is possible nowhere in the component or taken by one of its edges. If not, a run must avoid
  the nodes where it is possible: those are removed, and what remains is split into components again.

What is left are exactly the components with fair runs. The one that is nearest to the initial state gives the counterexample.

The graph is held in memory, labelled: some ten times what the search needs for a state. Where that is more than there is, the answer
is "unknown".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from troth.models.check import PropertyResult, Verdict
from troth.models.exploration import Exploration, Limits, Progress, Reporter
from troth.models.expressions import Const, Expr, Implies
from troth.models.lasso import lasso, walked_back, way_to
from troth.models.live_graph import During, LiveGraph, Marks, PlainGraph, Raised
from troth.models.properties import Property, PropertyKind
from troth.models.system import System
from troth.models.trace import trace_along
from troth.models.world import World

PLAIN_STATE_BYTES = 400
PLAIN_EDGE_BYTES = 160
ARRAY_STATE_BYTES = 120
ARRAY_EDGE_BYTES = 64
"""What the two forms of the graph take for a state and an edge, temporaries included: measured, and rounded up."""
COMPONENTS_PART = 0.5
"""Of the time that the graph took, what one round of looking for components takes at most: 0.4 were measured on 7.5 million edges."""
FREELY_BYTES = 256 << 20
"""Up to here nobody is asked how much memory there is."""


def decide(
    world: World, found: Exploration, claims: Sequence[Property], limits: Limits, report: Reporter | None = None
) -> Sequence[PropertyResult]:
    """Decide the liveness properties ``claims`` of a world whose search is complete. The default of ``check(liveness=)``."""
    system = world.system()
    plain = found.engine == "scalar"
    reason = _too_large(found, limits, len(system.components), plain=plain)
    if reason:
        return [PropertyResult(claim, Verdict.UNKNOWN, reason=reason) for claim in claims]
    phases = Phases(report, found)
    try:
        phases.enter("graph")
        graph = _graph(system, report, found.edges, plain=plain)
        phases.built(graph.edges)
        if (graph.size, graph.edges) != (found.states, found.edges):
            raise AssertionError(
                f"the liveness graph has {graph.size:,} states and {graph.edges:,} edges, the search {found.states:,} and {found.edges:,}"
            )
        return [_decided(graph, claim, phases) for claim in claims]
    except MemoryError:
        return [PropertyResult(claim, Verdict.UNKNOWN, reason="memory ran out while liveness was checked") for claim in claims]


class Phases:
    """Says which phase begins, so that a long one is not taken for a hang. The graph's own progress says how far it is."""

    def __init__(self, report: Reporter | None, found: Exploration) -> None:
        self.report = report
        self.found = found
        self.started = perf_counter()
        self.pace_s = 0.0
        """Seconds that looking for strong components takes an edge: at first a bound, then as measured the last time."""

    def enter(self, phase: str, of: int | None = None, edges: int | None = None, remaining_s: float | None = None) -> None:
        """A phase begins, on ``of`` states."""
        if self.report is not None:
            states = self.found.states if of is None else of
            elapsed = perf_counter() - self.started
            edges = self.found.edges if edges is None else edges
            self.report(Progress(f"liveness {phase}", states, edges, 0, self.found.depth, 0.0, elapsed, remaining_s))

    def built(self, edges: int) -> None:
        """The graph is there. How long that took, here and now, bounds what comes next."""
        self.pace_s = COMPONENTS_PART * (perf_counter() - self.started) / max(edges, 1)

    def components(self, claim: str) -> During:
        """For the rounds of looking for components: size and remainder before, the time that has passed after."""

        @contextmanager
        def during(states: int, edges: int) -> Iterator[None]:
            self.enter(f"components of {claim}", states, edges, self.pace_s * edges)
            started = perf_counter()
            yield
            if edges:
                self.pace_s = (perf_counter() - started) / edges
            self.enter(f"components of {claim}", states, edges, 0.0)

        return during


def estimated_bytes(found: Exploration, components: int, *, plain: bool) -> int:
    """Memory that the graph of this search will take."""
    if plain:
        return found.states * (PLAIN_STATE_BYTES + 8 * components) + found.edges * PLAIN_EDGE_BYTES
    return found.states * ARRAY_STATE_BYTES + found.edges * ARRAY_EDGE_BYTES


def _too_large(found: Exploration, limits: Limits, components: int, *, plain: bool) -> str:
    """Why the graph would not fit, or nothing."""
    needed = estimated_bytes(found, components, plain=plain)
    most = limits.max_bytes
    if most is None:
        if needed <= FREELY_BYTES:
            return ""
        from troth.models.vector.memory import SHARE, available_bytes  # noqa: PLC0415 - it imports numpy

        most = int(available_bytes() * SHARE)
    if needed <= most:
        return ""
    return (
        f"the liveness graph of {found.states:,} states and {found.edges:,} edges needs about {needed / 2**20:,.0f} MB, "
        f"and there are {most / 2**20:,.0f} MB; give smaller bounds or more memory"
    )


def _graph(system: System, report: Reporter | None, edges: int, *, plain: bool) -> LiveGraph:
    if plain:
        return PlainGraph(system, report, edges)
    from troth.models.live_arrays import ArrayGraph  # noqa: PLC0415 - numpy and scipy are imported only where they pay

    return ArrayGraph(system, report, edges)


def _decided(graph: LiveGraph, claim: Property, phases: Phases) -> PropertyResult:
    try:
        premise, wanted = _sides(claim)
        outside = graph.without(graph.marks(wanted))
        pending = graph.both(graph.marks(premise), outside)
        vacuous = _vacuous(graph, claim)
    except Raised as error:
        trace = trace_along(graph.system, [graph.state(node) for node in way_to(graph, error.node)])
        place = "" if error.placed or not claim.declared else f"{claim.declared}: "
        return PropertyResult(claim, Verdict.ERROR, trace, place + error.message)
    demands = graph.turns.demands(claim)
    regions = graph.regions(outside, demands, phases.components(claim.id))
    phases.enter(f"fairness of {claim.id}", _count(regions.marks))
    entry = graph.entries(pending)
    reach = graph.nearest(entry, outside, regions.marks)
    if not len(reach.hits):
        return PropertyResult(claim, Verdict.HOLDS, vacuous=vacuous)
    phases.enter(f"counterexample to {claim.id}")
    node = graph.least(reach.hits)
    tail = walked_back(graph, node, reach.levels, outside, entry)
    way = [*way_to(graph, tail[0]), *tail[1:]]
    return PropertyResult(claim, Verdict.VIOLATED, lasso(graph, way, regions.around(node), demands))


def _sides(claim: Property) -> tuple[Expr, Expr]:
    """Premise and consequence: ``always eventually q`` is ``true leads to q``."""
    if claim.kind is PropertyKind.ALWAYS_EVENTUALLY:
        return Const(value=True), claim.expr
    if claim.then is None:
        raise AssertionError(f"{claim.id} leads to nothing")
    return claim.expr, claim.then


def _vacuous(graph: LiveGraph, claim: Property) -> bool:
    """Whether the property speaks of what never happens: the premise of ``leads to``, the left side of an implication."""
    if claim.kind is PropertyKind.LEADS_TO:
        return not _count(graph.marks(claim.expr))
    return isinstance(claim.expr, Implies) and not _count(graph.marks(claim.expr.left))


def _count(marks: Marks) -> int:
    return marks.count(1) if isinstance(marks, bytearray) else int(marks.sum())
