"""A world with one of its parties mutated, made from a world that was explored already: what the mutation does not touch is kept.

A mutation changes some cells of a table. A tabulated call that took no entry of those cells answers as before, and need not be asked
again. Blocked calls record no rows (they changed nothing), so they are asked once, in the original, which entries they met.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping

from attrs import define, frozen

from troth.models.behaviours import CoreBehaviour
from troth.models.mutants.machines import Mutant, changed_entries
from troth.models.parties import Mode, PartyComponent, PartyLocal
from troth.models.system import Branch, System, Tabulated
from troth.models.world import World
from troth.spec import Party, PartyCore, Table
from troth.spec.core import CallCancelled, Called

Call = tuple[int, int]


@frozen(eq=False)
class Known:
    """What the exploration of the original learnt about one declared party: every call, and which calls met which entry."""

    index: int
    party: Party
    calls: Mapping[Call, tuple[Branch, ...]]
    by_entry: Mapping[str, tuple[Call, ...]]


def core_of(table: Tabulated) -> PartyCore | None:
    """The declared core of a component, if it is one."""
    component = table.component
    behaviour = component.behaviour if isinstance(component, PartyComponent) else None
    core = behaviour.core if isinstance(behaviour, CoreBehaviour) else None
    return core if isinstance(core, PartyCore) else None


def declared(world: World) -> dict[int, Party]:
    """The declared parties of a world, by component."""
    found = {table.index: core_of(table) for table in world.system().components}
    return {index: core.party for index, core in found.items() if core is not None}


def known(world: World) -> dict[int, Known]:
    """What is known after an exploration: a snapshot, which later explorations of mutants do not change."""
    return {index: _known(world.system(), index, party) for index, party in declared(world).items()}


def _known(system: System, index: int, party: Party) -> Known:
    table = system.components[index]
    by_entry: dict[str, list[Call]] = {}
    for call, branches in table.calls.items():
        rows = {row for branch in branches for row in branch.rows} or set(_blocked_by(system, table, call))
        for row in rows:
            by_entry.setdefault(row, []).append(call)
    return Known(index, party, dict(table.calls), {row: tuple(calls) for row, calls in by_entry.items()})


def _blocked_by(system: System, table: Tabulated, call: Call) -> Iterator[str]:
    """The entries that a call met which was blocked, because the party refused it as a misuse."""
    local, operation = table.states[call[0]], system.items[call[1]][1]
    core = core_of(table)
    if core is None or not isinstance(local, PartyLocal) or local.mode is not Mode.UP or not isinstance(operation, Called | CallCancelled):
        return
    core.restore(local.state)
    yield from core.handle(operation).rows


def affected(of: Known, mutated: Party) -> tuple[Call, ...] | None:
    """The calls that may answer differently in ``mutated``; ``None`` for all of them."""
    found: dict[Call, None] = {}
    for before, after in zip(of.party.machines, mutated.machines, strict=True):
        if before is after:
            continue
        entries = changed_entries(before, after)
        if entries is None:
            return None
        for entry in sorted(entries):
            found.update(dict.fromkeys(of.by_entry.get(entry, ())))
    return tuple(found)


@define(eq=False)
class Derived:
    """A mutated world, and the calls of each mutated component that must be asked again (``None``: all)."""

    world: World
    affected: dict[int, tuple[Call, ...] | None]


def derived(world: World, of: Mapping[int, Known], mutant: Mutant) -> Derived:
    """``world`` with ``mutant`` in every party it is a mutant of. Numbers of states, items and labels mean the same in both."""
    base = world.system()
    system = copy.copy(base)
    system.doubts = False
    calls: dict[int, tuple[Call, ...] | None] = {}
    tables = list(base.components)
    for index, one in of.items():
        if one.party.name == mutant.party:
            party = mutant.of(one.party)
            calls[index] = affected(one, party)
            tables[index] = _table(base.components[index], one, party, calls[index])
    system.components = tuple(tables)
    # Resolutions are kept for the heads that are still the same components; the others are made again from the calls that were kept.
    kept = {symbol: found for symbol, found in base._resolved.items() if base.heads[symbol] not in calls}  # noqa: SLF001
    system._resolved = defaultdict(dict, kept)  # noqa: SLF001
    made = copy.copy(world)
    made._system = system  # noqa: SLF001
    return Derived(made, calls)


def _table(table: Tabulated, of: Known, party: Party, again: tuple[Call, ...] | None) -> Tabulated:
    core = core_of(table)
    component = table.component
    if core is None or not isinstance(component, PartyComponent):
        raise TypeError(f"{component.name} is not a declared party")
    made = copy.copy(component)
    made.behaviour = CoreBehaviour(component.name, lambda: replaced_core(core, party))
    initial: Hashable = PartyLocal(Mode.UP, made.behaviour.initial)
    made.initial = initial
    fresh = Tabulated(made, table.index)
    if initial != table.states[0]:
        return fresh
    fresh.states, fresh.numbers = list(table.states), dict(table.numbers)
    if again is not None:
        fresh.calls = dict(of.calls)
        for call in again:
            fresh.calls.pop(call, None)
    return fresh


def replaced_core(core: PartyCore, party: Party) -> PartyCore:
    """A core like ``core``, of its own class and configuration, that runs ``party``."""
    made = copy.copy(core)
    PartyCore.__init__(made, party, core.config, interpreter=Table)
    return made
