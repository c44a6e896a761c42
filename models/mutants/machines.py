"""The mutants of one machine: every small way in which a row could be wrong.

Drop a row (its cases are ignored then), let it stay where it is, send it elsewhere, negate each atom of its guard, drop the guard,
drop each of its emissions, drop its update. A mutated table need not be total or free of overlaps: the first entry in declaration
order wins, and a case that nothing answers any more is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import reduce

from attrs import evolve, field, frozen

from troth.spec import Atom, Guard, Ignore, Machine, Party, Row, always, keep
from troth.spec.guards import And, Not, Or
from troth.spec.machine import SAME, Cell

WHY = "a mutant: nothing answers this case any more"

Change = Callable[[Machine], Machine]


@frozen(eq=False)
class Mutant:
    """A party with something changed in one of its machines, or in several. ``what`` says it in a line."""

    name: str
    what: str
    party: str
    machines: tuple[str, ...]
    change: Change = field(repr=False)

    def of(self, party: Party) -> Party:
        """``party``, mutated. Not validated: a broken table is what mutants are for."""
        for name in self.machines:
            machine = party.by_name[name]
            party = party.replaced(filled(self.change(machine), machine))
        return party


def mutants(party: Party) -> Iterator[Mutant]:
    """Every generic mutant of a party, machine by machine and row by row."""
    for machine in party.machines:
        for row in machine.rows:
            for short, what, mutated in _of_row(machine, row):
                name = f"{party.name}.{machine.name}:{row.id}:{short}"
                yield Mutant(name, f"{row.id} {what}", party.name, (machine.name,), _replacing(row, mutated))


def _of_row(machine: Machine, row: Row) -> Iterator[tuple[str, str, Row | None]]:
    yield "drop", "is gone: its cases are ignored", None
    if any(row.goes_to(source) is not source for source in row.sources):
        yield "stay", "stays where it is", evolve(row, target=SAME)
    elsewhere = _elsewhere(machine, row)
    if elsewhere is not None:
        yield f"to-{elsewhere.name}", f"goes to {elsewhere.name}", evolve(row, target=elsewhere)
    for atom in row.guard.atoms():
        yield f"not-{atom.name}", f"asks the opposite of {atom.name}", evolve(row, guard=negated(row.guard, atom))
    if row.guard is not always:
        yield "unguarded", "asks nothing", evolve(row, guard=always)
    for place, emission in enumerate(row.emit):
        rest = (*row.emit[:place], *row.emit[place + 1 :])
        yield f"silent-{place + 1}", f"does not `{emission}`", evolve(row, emit=rest)
    if not row.keeps:
        yield "no-update", f"does not {getattr(row.update, '__name__', 'update')}", evolve(row, update=keep)


def _elsewhere(machine: Machine, row: Row) -> Enum | None:
    """The next state, in declaration order, that is neither where the row goes nor where it comes from."""
    states = list(machine.states)
    taken = {*row.sources, *(row.goes_to(source) for source in row.sources)}
    start = states.index(row.goes_to(row.sources[0]))
    return next((s for s in (*states[start:], *states[:start]) if s not in taken), None)


def _replacing(row: Row, mutated: Row | None) -> Change:
    def change(machine: Machine) -> Machine:
        rows = [mutated if r is row else r for r in machine.rows]
        return evolve(machine, rows=[r for r in rows if r is not None], validate=False)

    return change


def negated(guard: Guard, atom: Atom) -> Guard:
    """``guard`` with ``atom`` negated wherever it stands."""
    match guard:
        case Not():
            return Not(negated(guard.inner, atom))
        case And():
            return And(negated(guard.left, atom), negated(guard.right, atom))
        case Or():
            return Or(negated(guard.left, atom), negated(guard.right, atom))
        case _:
            return Not(guard) if guard == atom else guard


def filled(machine: Machine, original: Machine) -> Machine:
    """``machine`` with an ignore for every case that ``original`` answered and it does not."""
    fills = []
    for state, trigger in original.table:
        cell = machine.table.get((state, trigger))
        if cell is None:
            fills.append(Ignore(trigger, state, WHY))
        elif len(cell.by_bits) < 1 << len(cell.atoms):
            guards = [entry.guard for entry in cell.entries]
            fills.append(Ignore(trigger, state, WHY, Not(reduce(Or, guards)) if guards else always))
    return evolve(machine, ignore=(*machine.ignore, *fills), validate=False) if fills else machine


def changed_entries(before: Machine, after: Machine) -> frozenset[str] | None:
    """The ids of ``before``'s entries in the cells that ``after`` answers differently; ``None`` where more than cells changed.

    Rows are compared by identity: atoms compare by name alone, and a patch may well give an atom of the same name another meaning.
    """
    parts = ("states", "initial", "final", "data", "live", "family", "timers")
    if any(getattr(before, part) != getattr(after, part) for part in parts):
        return None
    found: set[str] = set()
    for where, cell in before.table.items():
        other = after.table.get(where)
        if other is None or not _same(cell, other):
            found |= {entry.id for entry in cell.entries}
    return frozenset(found)


def _same(cell: Cell, other: Cell) -> bool:
    return len(cell.entries) == len(other.entries) and all(
        one.id == two.id and one.kind is two.kind and one.row is two.row and one.guard is two.guard and one.target is two.target
        for one, two in zip(cell.entries, other.entries, strict=True)
    )
