"""What is checked when a machine is built. Each error names the entry and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs

from troth.spec import errors
from troth.spec.emits import Deliver, Emit, Forward
from troth.spec.guards import Atom, Guard, satisfiable, spelled, valuations

if TYPE_CHECKING:
    from troth.spec.machine import Entry, Ignore, Machine, Refuse, Row

RESERVED = frozenset({"own", "key", "config", "at", "initial"})
"""What a view has of its own, beside the machines."""

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
    for rule in _quiet_rules(machine):
        where = f"{machine.name}: {type(rule).__name__.lower()} of {', '.join(rule.triggers)}"
        if not rule.triggers or not rule.states:
            raise errors.DeadRow(f"{where}: it names no {'state' if rule.triggers else 'trigger'} and so no case; complete or remove it")
        _check_states(machine, where, rule.states)
        _check_guard(where, rule.guard)
        if not rule.why.strip():
            raise errors.BadRow(f"{where}: no reason is given; say why in one sentence")
    _check_atom_names(machine)


def _quiet_rules(machine: Machine) -> tuple[Ignore | Refuse, ...]:
    return (*machine.ignore, *machine.refuse)


def _check_machine(machine: Machine) -> None:
    if not machine.name.isidentifier() or machine.name in RESERVED:
        raise errors.BadRow(f"machine {machine.name!r}: a view must offer it as an attribute; use an identifier that is not a view's own")
    _check_states(machine, f"{machine.name}: initial", (machine.initial,))
    _check_states(machine, f"{machine.name}: final", tuple(machine.final))
    _check_states(machine, f"{machine.name}: live", tuple(machine.live))
    if len(machine.states.__members__) != len(machine.states):
        raise errors.UnknownState(f"{machine.name}: two states of {machine.states.__name__} have the same value; give each its own")
    _check_data(machine)
    names = {f.name for f in attrs.fields(machine.data)}
    for state, kept in machine.live.items():
        if unknown := set(kept) - names:
            raise errors.BadRow(
                f"{machine.name}: live[{state.name}] names {sorted(unknown)}, which the data has not; it has {sorted(names)}"
            )


def _check_data(machine: Machine) -> None:
    name = machine.data.__name__
    if not attrs.has(machine.data):
        raise errors.BadRow(f"{machine.name}: data {name} must be a frozen attrs class")
    try:
        start = machine.data()
    except TypeError as error:
        raise errors.BadRow(f"{machine.name}: data {name} needs a default for every field ({error})") from error
    for f in attrs.fields(machine.data):
        if not f.init or f.kw_only:
            raise errors.BadRow(f"{machine.name}: data {name}.{f.name} must be a positional field: snapshots are restored by position")
        try:
            setattr(start, f.name, getattr(start, f.name))
        except attrs.exceptions.FrozenInstanceError:
            continue
        raise errors.BadRow(f"{machine.name}: data {name} must be a frozen attrs class; {f.name} can be assigned")
    try:
        hash(start)
    except TypeError as error:
        raise errors.BadRow(f"{machine.name}: data {name} must be hashable: snapshots are made of it ({error})") from error


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
    where = f"row {machine.name}.{row.id}"
    _check_states(machine, f"{where}: source", row.sources)
    if not row.sources:
        raise errors.UnknownState(f"{where}: no source state is given")
    _check_states(machine, f"{where}: target", tuple(row.goes_to(source) for source in row.sources))
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
        if isinstance(emission, Emit) and emission.timer is not None and emission.keyed is (machine.family is None):
            fix = "leave keyed out: there is one instance" if machine.family is None else "say keyed=True: each instance has its own"
            raise errors.BadRow(f"{where}: timer {emission.timer!r} of {machine.name}; {fix}")
    for source in row.sources:
        if source in machine.final and (row.goes_to(source) is not source or not row.keeps):
            raise errors.BadRow(f"{where}: {source.name} is final and the row changes it; a final state may only answer")


def _check_atom_names(machine: Machine) -> None:
    known: dict[str, object] = {}
    guards = [*(row.guard for row in machine.rows), *(rule.guard for rule in _quiet_rules(machine))]
    for guard in guards:
        for atom in guard.atoms():
            if known.setdefault(atom.name, atom.of) is not atom.of:
                raise errors.BadGuard(f"{machine.name}: two atoms are called {atom.name!r}; one name, one question")


def check_width(machine: Machine, state: Enum, trigger: str, atoms: tuple[Atom, ...]) -> None:
    """Check that a cell's truth table is one that a person, and this process, can go through."""
    if len(atoms) > MAX_ATOMS_A_CELL:
        where = f"{machine.name}: state {state.name}, trigger {trigger!r}"
        raise errors.BadGuard(f"{where}: {len(atoms)} atoms decide here, more than {MAX_ATOMS_A_CELL}; split the machine")


def check_table(machine: Machine) -> None:
    """Check totality by truth table, then that everything declared can happen."""
    for (state, trigger), cell in machine.table.items():
        where = f"{machine.name}: state {state.name}, trigger {trigger!r}"
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
    named: list[tuple[str, Guard]] = [(f"row {machine.name}.{row.id}", row.guard) for row in machine.rows]
    named += [
        (f"{machine.name}: {type(rule).__name__.lower()} of {', '.join(rule.triggers)}", rule.guard) for rule in _quiet_rules(machine)
    ]
    for where, guard in named:
        if not satisfiable(guard):
            raise errors.DeadRow(f"{where}: its guard `{guard}` never holds; correct it or remove it")
