"""What is checked when a machine is built. Each error names the entry and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs

from troth.spec import errors
from troth.spec.emits import Deliver, Emit, Forward
from troth.spec.guards import Guard, satisfiable, spelled, valuations

if TYPE_CHECKING:
    from troth.spec.machine import Entry, Ignore, Machine, Refuse, Row

MAX_ATOMS_A_CELL = 10
"""Above this a truth table stops being something a person can review."""


def check_parts(machine: Machine) -> None:
    """Check everything that can be seen without the table: names, states, guards, reasons."""
    _check_machine(machine)
    seen: set[str] = set()
    for row in machine.rows:
        if row.id in seen:
            raise errors.BadRow(f"row {machine.name}.{row.id}: the id is used twice; give each row its own")
        seen.add(row.id)
        _check_row(machine, row)
    for rule in (*machine.ignore, *machine.refuse):
        where = f"{machine.name}: {type(rule).__name__.lower()} of {', '.join(rule.triggers)}"
        _check_states(machine, where, rule.states)
        _check_guard(where, rule.guard)
        if not rule.why.strip():
            raise errors.BadRow(f"{where}: no reason is given; say why in one sentence")
    _check_atom_names(machine)


def _check_machine(machine: Machine) -> None:
    _check_states(machine, f"{machine.name}: initial", (machine.initial,))
    _check_states(machine, f"{machine.name}: final", tuple(machine.final))
    _check_states(machine, f"{machine.name}: live", tuple(machine.live))
    try:
        machine.data()
    except TypeError as error:
        raise errors.BadRow(f"{machine.name}: data {machine.data.__name__} needs a default for every field ({error})") from error
    if not attrs.has(machine.data):
        raise errors.BadRow(f"{machine.name}: data {machine.data.__name__} must be a frozen attrs class")
    names = {f.name for f in attrs.fields(machine.data)}
    for state, kept in machine.live.items():
        if unknown := set(kept) - names:
            raise errors.BadRow(
                f"{machine.name}: live[{state.name}] names {sorted(unknown)}, which the data has not; it has {sorted(names)}"
            )


def _check_states(machine: Machine, where: str, states: tuple[Enum, ...]) -> None:
    for state in states:
        if not isinstance(state, machine.states):
            have = ", ".join(s.name for s in machine.states)
            raise errors.UnknownState(f"{where}: {state!r} is not a state of {machine.name}; use one of {have}")


def _check_guard(where: str, guard: Any) -> None:
    if not isinstance(guard, Guard):
        raise errors.BadGuard(
            f"{where}: the guard must be built from atoms (or be `always`), got {guard!r}; name the question with atom(...)"
        )


def _check_row(machine: Machine, row: Row) -> None:
    from troth.spec.machine import SAME  # noqa: PLC0415 - the two modules describe each other

    where = f"row {machine.name}.{row.id}"
    _check_states(machine, f"{where}: source", row.sources)
    if not row.sources:
        raise errors.UnknownState(f"{where}: no source state is given")
    if row.target is not SAME:
        _check_states(machine, f"{where}: target", (row.target,))
    _check_guard(where, row.guard)
    if not row.why.strip():
        raise errors.BadRow(f"{where}: no reason is given; say why in one sentence")
    if getattr(row.update, "__name__", "<lambda>") == "<lambda>":
        raise errors.BadRow(f"{where}: the update must be a named function (data, event) -> data, got {row.update!r}; use def")
    for emission in row.emit:
        if not isinstance(emission, Emit | Forward | Deliver):
            raise errors.BadRow(f"{where}: {emission!r} is not an emission; build it with send, set_timer, resolve, effect or signal")
        if isinstance(emission, Emit) and emission.timer is not None and emission.timer not in machine.timers:
            raise errors.BadRow(f"{where}: timer {emission.timer!r} is not owned by {machine.name}; add it to timers=")
    for source in row.sources:
        if source in machine.final and (row.goes_to(source) is not source or row.update.__name__ != "keep"):
            raise errors.BadRow(f"{where}: {source.name} is final and the row changes it; a final state may only answer")


def _check_atom_names(machine: Machine) -> None:
    known: dict[str, object] = {}
    guards: list[Guard] = [row.guard for row in machine.rows]
    guards += [rule.guard for rule in (*machine.ignore, *machine.refuse)]
    for guard in guards:
        for atom in guard.atoms():
            if known.setdefault(atom.name, atom.of) is not atom.of:
                raise errors.BadGuard(f"{machine.name}: two atoms are called {atom.name!r}; one name, one question")


def check_table(machine: Machine) -> None:
    """Check totality by truth table, then that everything declared can happen."""
    for (state, trigger), cell in machine.table.items():
        where = f"{machine.name}: state {state.name}, trigger {trigger!r}"
        if len(cell.atoms) > MAX_ATOMS_A_CELL:
            raise errors.BadGuard(f"{where}: {len(cell.atoms)} atoms decide here, more than {MAX_ATOMS_A_CELL}; split the machine")
        for valuation in valuations(cell.atoms):
            holding = [entry for entry in cell.entries if entry.guard.holds(valuation)]
            if not holding:
                raise errors.Hole(
                    f"{where} has no entry when {spelled(valuation)}: add a Row, an Ignore or a Refuse{_near(machine, trigger)}"
                )
            if len(holding) > 1:
                names = " and ".join(entry.id for entry in holding)
                raise errors.Overlap(f"{where}: {names} both hold when {spelled(valuation)}; make their guards exclusive")
    _check_reachable(machine)
    _check_dead(machine)


def _near(machine: Machine, trigger: str) -> str:
    rows = [row.id for row in machine.rows if row.trigger == trigger]
    return f" (compare {machine.name}.{rows[0]})" if rows else ""


def _check_reachable(machine: Machine) -> None:
    reached, waiting = {machine.initial}, [machine.initial]
    while waiting:
        for entry in _entries_from(machine, waiting.pop()):
            if entry.target not in reached and satisfiable(entry.guard):
                reached.add(entry.target)
                waiting.append(entry.target)
    for state in machine.states:
        if state not in reached:
            raise errors.UnreachableState(f"{machine.name}: no row leads to {state.name}; add the row that does, or remove the state")


def _entries_from(machine: Machine, state: Enum) -> Iterator[Entry]:
    for trigger in machine.triggers:
        yield from machine.table[state, trigger].entries


def _check_dead(machine: Machine) -> None:
    rules: tuple[Row | Ignore | Refuse, ...] = (*machine.rows, *machine.ignore, *machine.refuse)
    for rule in rules:
        if not satisfiable(rule.guard):
            name = getattr(rule, "id", None) or f"{type(rule).__name__.lower()} of {', '.join(getattr(rule, 'triggers', ()))}"
            raise errors.DeadRow(f"row {machine.name}.{name}: its guard `{rule.guard}` never holds; correct it or remove the row")
