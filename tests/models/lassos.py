"""Checks a lasso without the liveness code: every step an edge, the loop closed, the property missed, every demand of fairness met."""

from __future__ import annotations

from typing import Any

from troth.models.check import CheckResult, Verdict
from troth.models.properties import Property, PropertyKind
from troth.models.system import ActionKind, Label, State, System
from troth.models.trace import Trace, edges


def turn(system: System, label: Label) -> Any:
    """What fairness of this edge speaks of, written down once more: the action, and the message or timer."""
    kind = system.actions[label.action].kind
    if kind in (ActionKind.DELIVER, ActionKind.LOSE, ActionKind.DUPLICATE):
        return label.action, label.variants[0]
    if kind is ActionKind.TIMER:
        return label.action, label.variants[0][:3]  # type: ignore[index]
    return label.action, None


def assert_fair_and_real(result: CheckResult, id_: str) -> Trace:
    """The counterexample to property ``id_`` is what it says it is."""
    (found,) = [r for r in result.properties if r.property.id == id_]
    assert found.verdict is Verdict.VIOLATED
    trace = found.trace
    assert trace is not None
    system, states, loop = trace.system, trace.states, trace.loop
    assert loop is not None
    assert states[0] == system.initial
    for before, step in zip(states, trace.steps, strict=False):
        assert (step.label, step.state) in [(e.label, e.state) for e in edges(system, before)]
    assert states[-1] == states[loop]
    assert_misses(system, found.property, states, loop)
    assert_fair(system, found.property, trace, states[loop:])
    return trace


def assert_misses(system: System, claim: Property, states: tuple[State, ...], loop: int) -> None:
    """The loop never sees the goal; for ``leads to``, neither does the way there from some premise on."""
    goal = claim.expr if claim.kind is PropertyKind.ALWAYS_EVENTUALLY else claim.then
    assert goal is not None
    sees = goal.compiled(system)
    assert not any(sees(s, s) for s in states[loop:])
    if claim.kind is PropertyKind.LEADS_TO:
        starts = claim.expr.compiled(system)
        missed = [not sees(s, s) for s in states]
        assert any(starts(states[i], states[i]) and all(missed[i:]) for i in range(len(states)))


def assert_fair(system: System, claim: Property, trace: Trace, looped: tuple[State, ...]) -> None:
    """Each turn of each fair action is taken in the loop, or impossible: somewhere in it (weak), everywhere in it (strong)."""
    assert trace.loop is not None
    taken = {turn(system, step.label) for step in trace.steps[trace.loop :]}
    possible = [{turn(system, e.label) for e in edges(system, state)} for state in looped]
    for fairness in claim.fair:
        for one in {t for at in possible for t in at if t[0] in fairness.actions}:
            where = [one in at for at in possible]
            assert one in taken or not (any(where) if fairness.strong else all(where)), one
