"""Traces and results as plain data for ``json.dumps``: the keys that the design fixes, and a few more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troth.models.check import CheckResult, PropertyResult, Verdict
from troth.models.render.flights import Flight
from troth.models.render.story import StoryStep, Told, story
from troth.models.tokens import token
from troth.models.trace import Trace


def trace_data(trace: Trace) -> dict[str, Any]:
    """A trace. ``loop``: the number of the last step before the part that repeats for ever, or ``None``."""
    told = story(trace)
    return {
        "length": len(told.steps),
        "loop": told.loop,
        "replay": token(trace),
        "start": trace.system.spelled(trace.start),
        "steps": [_step(step) for step in told.steps],
        "end": trace.system.spelled(trace.states[-1]),
    }


def _step(step: StoryStep) -> dict[str, Any]:
    found: dict[str, Any] = {
        "n": step.number,
        "who": step.who,
        "event": step.event,
        "kind": step.kind.value,
        "action": step.action,
        "party": step.about or None,
        "did": [_told(told) for told in step.told],
        "sent": [_flight(flight) for flight in step.sent],
        "ended": [_flight(flight) for flight in step.ended],
    }
    if step.notes:
        found["notes"] = list(step.notes)
    if step.in_flight is not None:
        found["in_flight"] = {name: list(messages) for name, messages in step.in_flight}
    return found


def _told(told: Told) -> dict[str, Any]:
    return {
        "party": told.party,
        "rows": [fired.id for part in told.parts for fired in part.fired],
        "changes": [
            {"machine": part.machine or None, "what": change.what, "before": change.before, "after": change.after}
            for part in told.parts
            for change in part.changes
        ],
        "notes": list(told.notes),
    }


def _flight(flight: Flight) -> dict[str, Any]:
    return {
        "id": flight.number,
        "message": flight.message,
        "link": flight.link or None,
        "from": flight.source,
        "to": flight.target,
        "copy": flight.copy,
        "fate": flight.fate.value,
    }


def property_data(result: PropertyResult) -> dict[str, Any]:
    """One property: ``trace`` where it is violated or could not be evaluated, ``witness`` where something was to be shown possible."""
    found: dict[str, Any] = {
        "id": result.property.id,
        "statement": result.property.statement,
        "kind": result.property.kind.value,
        "role": result.property.role.value,
        "verdict": result.verdict.value,
    }
    if result.reason:
        found["reason"] = result.reason
    if result.vacuous:
        found["vacuous"] = True
    if result.trace is not None:
        found["witness" if result.verdict is Verdict.HOLDS else "trace"] = trace_data(result.trace)
    return found


def result_data(result: CheckResult) -> dict[str, Any]:
    """One world, checked."""
    return {
        "world": result.world,
        "bounds": dict(result.bounds),
        "verdict": result.verdict.value,
        "reason": result.reason,
        "states": result.states,
        "edges": result.edges,
        "depth": result.depth,
        "seconds": result.seconds,
        "tabulation_s": result.tabulation_s,
        "components": {name: {"local_states": c.local_states, "calls": c.calls} for name, c in result.components.items()},
        "truncated": result.truncated,
        "properties": [property_data(p) for p in result.properties],
        "vacuous": list(result.vacuous),
        "engine": result.engine,
    }


def steady(data: Mapping[str, Any]) -> dict[str, Any]:
    """``data`` without what differs between two runs of the same check: times, and how much of the tables was filled in."""
    return {name: part for name, part in data.items() if name not in ("seconds", "tabulation_s", "components", "engine")}
