"""Faults to seed in a table: a row with other parts, with a signal more or less, a family without its limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from attrs import evolve

from troth.spec.emits import Forward
from troth.spec.machine import Family, Ignore, Machine, Refuse
from troth.statemachines.shared.lease import LeaseState

Change = Callable[[Machine], Machine]


def _row(id_: str, of: Callable[[Any], dict[str, Any]]) -> Change:
    def change(machine: Machine) -> Machine:
        rows = [evolve(row, **of(row)) if row.id == id_ else row for row in machine.rows]
        machine.row(id_)
        return _rebuilt(machine, rows=rows)

    return change


def _rebuilt(machine: Machine, **changes: Any) -> Machine:
    kept = {a.name: getattr(machine, a.name) for a in attrs.fields(Machine) if a.init}
    return Machine(**{**kept, **changes, "validate": False})


def row(id_: str, **changes: Any) -> Change:
    """The row with other parts. Rows come before ignores and refusals, so a wider guard takes what was ignored or refused."""
    return _row(id_, lambda _row: changes)


def unsaid(id_: str, machine: str, trigger: str) -> Change:
    """The row without one of its signals."""

    def kept(emission: Any) -> bool:
        return not (isinstance(emission, Forward) and (emission.machine, emission.trigger) == (machine, trigger))

    return _row(id_, lambda row: {"emit": [emission for emission in row.emit if kept(emission)]})


def said_too(id_: str, emission: Any) -> Change:
    """The row with one more emission."""
    return _row(id_, lambda row: {"emit": [emission, *row.emit]})


def as_row(id_: str, model: str, **changes: Any) -> Change:
    """The row with the emissions of another."""

    def change(machine: Machine) -> Machine:
        return row(id_, emit=machine.row(model).emit, **changes)(machine)

    return change


def unbounded(machine: Machine) -> Machine:
    """The family without its limit, so that it is the rows alone that keep it."""
    assert machine.family is not None
    return _rebuilt(machine, family=Family(machine.family.key, 100))


def both(first: Change, second: Change) -> Change:
    """Two faults of one machine."""
    return lambda machine: second(first(machine))


def refusing(trigger: str, states: tuple[Any, ...], *ids: str) -> Change:
    """Without these rows: what they took is refused."""

    def change(machine: Machine) -> Machine:
        rows = [row for row in machine.rows if row.id not in ids]
        return _rebuilt(machine, rows=rows, refuse=[*machine.refuse, Refuse(trigger, states, "seeded")])

    return change


def skip_one(data: Any, event: Any) -> Any:
    """A sequence that rises by two."""
    return evolve(data, seq=data.seq + 2, attempt=1, receivers=event.receivers, inline=event.inline)


def pass_by_only(data: Any, event: Any) -> Any:
    """D9: the sequence is noted, and an older one keeps its second chance."""
    return evolve(data, highest=max(data.highest, event.seq))


def deaf_when_suspect(machine: Machine) -> Machine:
    """A suspect cannot clear itself any more."""
    doubtful = (LeaseState.SUSPECT, LeaseState.UNRESPONSIVE)
    rows = [evolve(row, sources=(LeaseState.ARMED, LeaseState.SUSPENDED)) if row.id == "L2" else row for row in machine.rows]
    return _rebuilt(machine, rows=rows, ignore=[*machine.ignore, Ignore("life", doubtful, "seeded")])
