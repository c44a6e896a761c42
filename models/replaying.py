"""What a single run shows: whether it violates a property, or is the witness that one asks for.

A run decides nothing about the runs that were not looked at, so a property that a run does not violate is not said to hold.
"""

from __future__ import annotations

from troth.models.expressions import Const, Expr, boolean
from troth.models.properties import Property, PropertyKind
from troth.models.system import State
from troth.models.trace import Trace


def violated_by(trace: Trace, claim: Property) -> bool:
    """Whether ``trace`` is a counterexample to ``claim``. Whether a lasso is fair is not judged again: its search saw to that."""
    match claim.kind:
        case PropertyKind.ALWAYS:
            return any(not _true(trace, claim.expr, state) for state in trace.states)
        case PropertyKind.STEP:
            return any(_broken(trace, claim, before, after) for before, after in zip(trace.states, trace.states[1:], strict=False))
        case PropertyKind.NO_DEADLOCK:
            last = trace.states[-1]
            return not trace.system.successors(last) and not _true(trace, Const(value=False) if claim.then is None else claim.then, last)
        case PropertyKind.ALWAYS_EVENTUALLY:
            return trace.loop is not None and not any(_true(trace, claim.expr, state) for state in trace.states[trace.loop :])
        case PropertyKind.LEADS_TO:
            return _never_led_to(trace, claim)
        case PropertyKind.SOMETIMES:
            return False  # no single run can show that something never happens


def witnessed_by(trace: Trace, claim: Property) -> bool:
    """Whether ``trace`` shows what a ``sometimes`` asks for."""
    return claim.kind is PropertyKind.SOMETIMES and any(_true(trace, claim.expr, state) for state in trace.states)


def _true(trace: Trace, expr: Expr, state: State, after: State | None = None) -> bool:
    return boolean(expr.compiled(trace.system)(state, state if after is None else after), expr)


def _broken(trace: Trace, claim: Property, before: State, after: State) -> bool:
    changed = any(before[i] != after[i] for i in claim.expr.components)
    return changed and not _true(trace, claim.expr, before, after)


def _never_led_to(trace: Trace, claim: Property) -> bool:
    if trace.loop is None:
        return False
    waiting = False
    for place, state in enumerate(trace.states):
        if claim.then is not None and _true(trace, claim.then, state):
            if place >= trace.loop:
                return False
            waiting = False
        elif _true(trace, claim.expr, state):
            waiting = True
    return waiting
