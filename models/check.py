"""``check(world)``: search it, decide every property, and say so in one result.

The verdict of a world is ``violated`` if a property is, ``error`` if something could not be evaluated, ``unknown`` if the search stopped
early or a bound cut edges off, else ``holds``. What was not looked at completely never counts as holding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from time import perf_counter

from attrs import evolve, field, frozen

from troth.models import scalar
from troth.models.errors import WorldError
from troth.models.exploration import PREMISE, Ending, Exploration, Finding, Limits, Reporter, path_to
from troth.models.expressions import Implies
from troth.models.properties import LIVENESS, Property, PropertyKind
from troth.models.steadiness import ask_again
from troth.models.symmetry import Symmetry, symmetry_of
from troth.models.system import System
from troth.models.trace import Trace, trace_along
from troth.models.world import World


class Verdict(Enum):
    """What can be said of a property or a world."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    ERROR = "error"


@frozen
class PropertyResult:
    """One property. ``reason`` says why it is unknown or an error; ``trace`` shows a violation, or the witness of a ``sometimes``."""

    property: Property
    verdict: Verdict
    trace: Trace | None = None
    reason: str = ""
    vacuous: bool = False


@frozen
class ComponentStats:
    """How large a component turned out: distinct local states, and calls of its own code."""

    local_states: int
    calls: int


@frozen(kw_only=True)
class CheckResult:
    """One world, checked. ``seconds`` is wall time; ``tabulation_s`` the part spent in the components' own code."""

    world: str
    bounds: Mapping[str, int]
    verdict: Verdict
    states: int
    edges: int
    depth: int
    seconds: float
    tabulation_s: float
    components: Mapping[str, ComponentStats]
    truncated: int
    properties: tuple[PropertyResult, ...]
    vacuous: tuple[str, ...]
    """Properties that hold only because what they speak of never happens."""
    ending: Ending
    reason: str = ""
    engine: str = "scalar"
    system: System = field(eq=False, repr=False)
    exploration: Exploration = field(eq=False, repr=False)


LivenessChecker = Callable[[World, Exploration, Sequence[Property], Limits, Reporter | None], Sequence[PropertyResult]]


def explore(
    system: System,
    properties: Sequence[Property],
    limits: Limits,
    *,
    symmetry: Symmetry | None = None,
    report: Reporter | None = None,
    engine: str = "auto",
) -> Exploration:
    """Search with the plain engine while the world is small, else with the vector engine. ``engine`` forces ``scalar`` or ``vector``."""
    if engine not in ("auto", "scalar", "vector"):
        raise WorldError(f"there is no engine {engine!r}; use auto, scalar or vector")
    if engine == "scalar":
        return scalar.explore(system, properties, limits, symmetry=symmetry, report=report)
    if engine == "auto":
        found = scalar.explore_if_small(system, properties, limits, symmetry=symmetry, report=report)
        if found is not None:
            return found
    from troth.models import vector  # noqa: PLC0415 - numpy is imported only where it pays

    return vector.explore(system, properties, limits, symmetry=symmetry, report=report)


def check(
    world: World,
    *,
    properties: Sequence[str] | None = None,
    limits: Limits | None = None,
    report: Reporter | None = None,
    engine: str = "auto",
    liveness: LivenessChecker | None = None,
) -> CheckResult:
    """Check ``world``; ``properties`` names the ids to check (default: all). Raises ``WorldError`` and the like for a broken world.

    ``liveness`` decides the liveness properties once the search is complete; by default ``troth.models.liveness.decide``.
    """
    started = perf_counter()
    system = world.system()
    claims = _chosen(world, properties)
    limits = limits or Limits()
    symmetry = symmetry_of(world)
    if symmetry is not None and any(p.kind in LIVENESS for p in claims):
        raise WorldError(
            f"world {world.name}: symmetry and liveness do not go together; check the liveness properties without symmetric(...)"
        )
    found = explore(system, claims, limits, symmetry=symmetry, report=report, engine=engine)
    results = {p.id: _decided(system, p, found, symmetry) for p in claims if p.kind not in LIVENESS}
    live = [p for p in claims if p.kind in LIVENESS]
    if live and found.ending is Ending.COMPLETE and not found.truncated:
        from troth.models.liveness import decide  # noqa: PLC0415 - it builds on this module

        results |= {r.property.id: r for r in (liveness or decide)(world, found, live, limits, report)}
    for claim in live:
        if claim.id not in results:
            results[claim.id] = PropertyResult(claim, Verdict.UNKNOWN, reason=_unfinished(found) or "liveness was not checked")
    if system.doubts:
        ask_again(system)
    ordered = tuple(_vacuity(results[p.id], found) for p in claims)
    return CheckResult(
        world=world.name,
        bounds=dict(world.bounds),
        verdict=_overall(ordered, found),
        states=found.states,
        edges=found.edges,
        depth=found.depth,
        seconds=perf_counter() - started,
        tabulation_s=system.tabulation_s,
        components={t.component.name: ComponentStats(len(t.states), len(t.calls)) for t in system.components},
        truncated=found.truncated,
        properties=ordered,
        vacuous=tuple(r.property.id for r in ordered if r.vacuous),
        ending=found.ending,
        reason=_unfinished(found),
        engine=found.engine,
        system=system,
        exploration=found,
    )


def _chosen(world: World, ids: Sequence[str] | None) -> list[Property]:
    if ids is None:
        return list(world.properties)
    known = {p.id: p for p in world.properties}
    for id_ in ids:
        if id_ not in known:
            raise WorldError(f"world {world.name} has no property {id_!r}; it has {', '.join(known) or 'none'}")
    return [known[id_] for id_ in ids]


def _unfinished(found: Exploration) -> str:
    """Why the search did not see everything, or nothing."""
    match found.ending:
        case Ending.STATES:
            return f"stopped at {found.states:,} states, the limit given"
        case Ending.MEMORY:
            return f"stopped at {found.states:,} states, before memory ran out"
        case Ending.VIOLATED:
            return "stopped at the first violation"
        case Ending.FAILED:
            return found.failure.message if found.failure else "a property could not be evaluated"
        case Ending.COMPLETE:
            edges = "1 edge was" if found.truncated == 1 else f"{found.truncated:,} edges were"
            return f"{edges} cut off by a bound of the world" if found.truncated else ""


def _decided(system: System, claim: Property, found: Exploration, symmetry: Symmetry | None) -> PropertyResult:
    if found.failure is not None and found.failure.property == claim.id:
        trace = _traced(system, found, Finding(found.failure.depth, found.failure.state), symmetry)
        return PropertyResult(claim, Verdict.ERROR, trace, found.failure.message)
    if claim.id in found.violations:
        return PropertyResult(claim, Verdict.VIOLATED, _traced(system, found, found.violations[claim.id], symmetry))
    unfinished = _unfinished(found)
    if claim.kind is PropertyKind.SOMETIMES:
        if claim.id in found.witnesses:
            return PropertyResult(claim, Verdict.HOLDS, _traced(system, found, found.witnesses[claim.id], symmetry))
        return PropertyResult(
            claim, Verdict.UNKNOWN if unfinished else Verdict.VIOLATED, None, unfinished or "no reachable state satisfies it"
        )
    return PropertyResult(claim, Verdict.UNKNOWN if unfinished else Verdict.HOLDS, None, unfinished)


def _traced(system: System, found: Exploration, finding: Finding, symmetry: Symmetry | None) -> Trace | None:
    if found.levels is None:
        return None
    path = path_to(system, found.levels, finding)
    return trace_along(system, path, canonical=symmetry.canonical if symmetry else None)


def _vacuity(result: PropertyResult, found: Exploration) -> PropertyResult:
    claim = result.property
    if result.verdict is not Verdict.HOLDS:
        return result
    asked = claim.kind is PropertyKind.LEADS_TO or (claim.kind is PropertyKind.ALWAYS and isinstance(claim.expr, Implies))
    return evolve(result, vacuous=True) if asked and claim.id + PREMISE not in found.witnesses else result


def _overall(results: Sequence[PropertyResult], found: Exploration) -> Verdict:
    verdicts = {r.verdict for r in results}
    if Verdict.VIOLATED in verdicts:
        return Verdict.VIOLATED
    if Verdict.ERROR in verdicts or found.ending is Ending.FAILED:
        return Verdict.ERROR
    if Verdict.UNKNOWN in verdicts or _unfinished(found):
        return Verdict.UNKNOWN
    return Verdict.HOLDS
