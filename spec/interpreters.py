"""Two interpreters of one table.

``Transitions`` is the one that runs: it fires the rows through one shared ``transitions.Machine`` a declaration, in the one way of
using transitions 0.9 that has no trap (no model is registered, nothing is queued, nothing is decorated onto objects, no callback
has an effect). ``Table`` looks the entry up. They must agree on the whole product of states, triggers and valuations, and a test
compares them on it; the first keeps us honest with the library the field knows, the second keeps the first honest.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

import transitions
from attrs import define, field

from troth.spec.errors import Hole
from troth.spec.machine import Cell, Entry, Kind, Machine


class Interpreter(Protocol):
    """Chooses the entry of a machine's table, and the state it leads to."""

    def fire(self, state: Enum, trigger: str, bits: int) -> tuple[Entry, Enum]:
        """The entry for a valuation (bit i is atom i of the cell), and the state after it."""
        ...


class Table:
    """Looks the entry up."""

    def __init__(self, machine: Machine) -> None:
        self._table = machine.table

    def fire(self, state: Enum, trigger: str, bits: int) -> tuple[Entry, Enum]:
        entry = self._table[state, trigger].by_bits.get(bits)
        if entry is None:
            raise Hole(f"{state} has no entry for {trigger!r} under valuation {bits:b}")
        return entry, entry.target


@define
class _Cursor:
    """The only object transitions ever sees: a state, the valuation it must decide under, and the row it chose."""

    place: Any
    valuation: dict[str, bool] = field(factory=dict)
    chosen: Entry | None = None


class Transitions:
    """Fires the rows through a shared ``transitions.Machine``. What it answers depends on nothing but state, trigger and valuation, so
    each question is put to it once."""

    def __init__(self, machine: Machine) -> None:
        self._table = machine.table
        self._known: dict[tuple[Enum, str, int], tuple[Entry, Enum]] = {}
        self._quiet = {where: _quiet(cell) for where, cell in machine.table.items()}
        self._with_rows = {where for where, cell in machine.table.items() if any(e.kind is Kind.ROW for e in cell.entries)}
        rows = [e for cell in machine.table.values() for e in cell.entries if e.kind is Kind.ROW]
        self.machine = transitions.Machine(
            model=None,
            states=machine.states,
            initial=machine.initial,
            transitions=[
                {
                    "trigger": entry.trigger,
                    "source": entry.state,
                    "dest": entry.target,
                    "conditions": _condition(entry),
                    "after": _note(entry),
                }
                for entry in rows
            ],
            send_event=True,
            auto_transitions=False,
            model_attribute="place",  # not "state": transitions refuses a trigger that has the attribute's name
        )

    def fire(self, state: Enum, trigger: str, bits: int) -> tuple[Entry, Enum]:
        known = self._known.get((state, trigger, bits))
        if known is None:
            known = self._known[state, trigger, bits] = self._fire(state, trigger, bits)
        return known

    def _fire(self, state: Enum, trigger: str, bits: int) -> tuple[Entry, Enum]:
        where = state, trigger
        atoms = self._table[where].atoms
        cursor = _Cursor(state, {a.name: bool(bits >> i & 1) for i, a in enumerate(atoms)})
        if where in self._with_rows and self.machine.events[trigger].trigger(cursor):
            if cursor.chosen is None:
                raise AssertionError(f"transitions took {trigger!r} in {state} without saying which row")
            return cursor.chosen, cursor.place
        for entry in self._quiet[where]:
            if entry.guard.holds(cursor.valuation):
                return entry, state
        raise Hole(f"{state} has no entry for {trigger!r} under valuation {bits:b}")


def _quiet(cell: Cell) -> tuple[Entry, ...]:
    return tuple(entry for entry in cell.entries if entry.kind is not Kind.ROW)


def _condition(entry: Entry) -> Callable[[transitions.EventData], bool]:
    guard = entry.guard

    def condition(data: transitions.EventData) -> bool:
        return guard.holds(_cursor(data).valuation)

    return condition


def _note(entry: Entry) -> Callable[[transitions.EventData], None]:
    def note(data: transitions.EventData) -> None:
        _cursor(data).chosen = entry

    return note


def _cursor(data: transitions.EventData) -> _Cursor:
    cursor = data.model
    if not isinstance(cursor, _Cursor):
        raise TypeError(f"transitions fired on {cursor!r}; it may only ever see a cursor")
    return cursor
