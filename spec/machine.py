"""The declaration of one machine: a table in which every case is answered.

A table is *total*: for every state, every trigger and every valuation of the guards there is exactly one entry, and the entry is a
row (something happens), an *ignore* (nothing happens, and here is why that is right) or a *refusal* (nothing may happen, and here
is whose fault it is). Whether that is so is computed when the table is built; a table that is not total cannot be imported.

One shared ``transitions.Machine`` a declaration interprets the rows: see ``interpreters``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from itertools import product
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from troth.spec import checks
from troth.spec.core import RowId
from troth.spec.emits import Emission
from troth.spec.errors import BadRow
from troth.spec.guards import Atom, Guard, Valuation, always, merged_atoms

State: TypeAlias = Enum
States: TypeAlias = Enum | Iterable[Enum]
Update: TypeAlias = Callable[[Any, Any], Any]


class Same(Enum):
    """The target of a row that stays where it is, from whichever of its sources it fired."""

    SAME = "same"


SAME: Final = Same.SAME


@frozen
class Nothing:
    """The data of a machine that has none."""


def keep(data: Any, event: Any) -> Any:  # noqa: ARG001
    """The update of a row that changes no data."""
    return data


def _states(value: States) -> tuple[Enum, ...]:
    return (value,) if isinstance(value, Enum) else tuple(value)


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _state_set(value: Iterable[Enum]) -> frozenset[Enum]:
    return frozenset(value)


def _emissions(value: Iterable[Emission]) -> tuple[Emission, ...]:
    return tuple(value)


@frozen
class Row:
    """In ``source``, when ``trigger`` comes and ``guard`` holds: apply ``update``, go to ``target``, cause ``emit``; ``why`` says why.

    ``source`` may be several states; ``target`` may be ``SAME``. ``update`` is a named pure function of (data, event).
    """

    id: str
    sources: tuple[Enum, ...] = field(converter=_states)
    trigger: str
    guard: Guard
    target: Enum
    update: Update
    emit: tuple[Emission, ...] = field(converter=_emissions)
    why: str

    @property
    def keeps(self) -> bool:
        """Whether the row leaves the data alone."""
        return self.update is keep

    def goes_to(self, source: Enum) -> Enum:
        """The state after the row, fired in ``source``."""
        return source if self.target is SAME else self.target


@frozen
class Ignore:
    """In ``states``, when any of ``triggers`` comes and ``guard`` holds, nothing changes; ``why`` says why that is right."""

    triggers: tuple[str, ...] = field(converter=_names)
    states: tuple[Enum, ...] = field(converter=_states)
    why: str
    guard: Guard = always


@frozen
class Refuse:
    """In ``states``, none of ``triggers`` may come while ``guard`` holds; ``why`` is what whoever caused it is told."""

    triggers: tuple[str, ...] = field(converter=_names)
    states: tuple[Enum, ...] = field(converter=_states)
    why: str
    guard: Guard = always


def _rows(value: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(value)


def _ignores(value: Iterable[Ignore]) -> tuple[Ignore, ...]:
    return tuple(value)


def _refusals(value: Iterable[Refuse]) -> tuple[Refuse, ...]:
    return tuple(value)


@frozen
class Family:
    """A machine with one instance a key. ``key`` says what the key is; ``limit`` names the limit on instances, or is a number."""

    key: str
    limit: str | int


class Kind(Enum):
    """What an entry of the table is."""

    ROW = "row"
    IGNORE = "ignore"
    REFUSE = "refuse"


@frozen(eq=False)
class Entry:
    """One cell of the table: a row, ignore or refusal in one state."""

    kind: Kind
    id: RowId
    state: Enum
    trigger: str
    guard: Guard
    target: Enum
    why: str
    row: Row | None = None


@frozen(eq=False)
class Cell:
    """Everything that can happen for one (state, trigger): the atoms that decide, and the entries they decide between."""

    atoms: tuple[Atom, ...]
    entries: tuple[Entry, ...]
    by_bits: Mapping[int, Entry]
    """By valuation as bits, atom 0 lowest."""

    def under(self, valuation: Valuation) -> Entry:
        """The entry that a valuation of the atoms decides for."""
        return self.by_bits[sum(valuation[atom.name] << place for place, atom in enumerate(self.atoms))]


@frozen(eq=False)
class Machine:
    """A declared machine. Building one checks it whole: see ``checks`` for what can be wrong and how it is said."""

    name: str
    states: type[Enum]
    initial: Enum = field(kw_only=True)
    final: frozenset[Enum] = field(kw_only=True, converter=_state_set, default=frozenset())
    data: type[Any] = field(kw_only=True, default=Nothing)
    live: Mapping[Enum, tuple[str, ...]] = field(kw_only=True, factory=dict)
    """Which data fields still matter in a state; the others are reset on entry. A state not named keeps them all."""
    family: Family | None = field(kw_only=True, default=None)
    timers: tuple[str, ...] = field(kw_only=True, converter=_names, default=())
    """The timers this machine owns. None of them may be left armed in a final state or by an instance that goes."""
    rows: tuple[Row, ...] = field(kw_only=True, converter=_rows)
    ignore: tuple[Ignore, ...] = field(kw_only=True, converter=_ignores, default=())
    refuse: tuple[Refuse, ...] = field(kw_only=True, converter=_refusals, default=())
    validate: bool = field(kw_only=True, default=True)
    """Mutants are built without the checks: a broken table is what they are for."""
    triggers: tuple[str, ...] = field(init=False)
    table: Mapping[tuple[Enum, str], Cell] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.validate:
            checks.check_parts(self)
        entries = self._entries()
        names = dict.fromkeys(entry.trigger for entry in entries)
        object.__setattr__(self, "triggers", tuple(names))
        object.__setattr__(self, "table", self._table(entries))
        if self.validate:
            checks.check_table(self)

    def _entries(self) -> list[Entry]:
        found: list[Entry] = []
        for row in self.rows:
            for state in row.sources:
                target = row.goes_to(state)
                found.append(Entry(Kind.ROW, f"{self.name}.{row.id}", state, row.trigger, row.guard, target, row.why, row))
        rules: tuple[Ignore | Refuse, ...] = (*self.ignore, *self.refuse)
        for rule in rules:
            kind = Kind.IGNORE if isinstance(rule, Ignore) else Kind.REFUSE
            for state, trigger in product(rule.states, rule.triggers):
                label = f"{self.name}.{state.value}.{trigger}"
                name = label if rule.guard is always else f"{label}[{rule.guard}]"
                found.append(Entry(kind, name, state, trigger, rule.guard, state, rule.why))
        return found

    def _table(self, entries: Iterable[Entry]) -> dict[tuple[Enum, str], Cell]:
        grouped: dict[tuple[Enum, str], list[Entry]] = {(s, t): [] for s in self.states for t in self.triggers}
        for entry in entries:
            grouped[entry.state, entry.trigger].append(entry)
        if self.validate:  # before the truth tables are written out: a table of thirty atoms would never come back
            for (state, trigger), found in grouped.items():
                checks.check_width(self, state, trigger, merged_atoms(entry.guard for entry in found))
        return {where: _cell(found) for where, found in grouped.items()}

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Every atom of the machine, each once."""
        return merged_atoms(e.guard for cell in self.table.values() for e in cell.entries)

    def row(self, id: str) -> Row:  # noqa: A002
        """The row of that id, without the machine's name."""
        for row in self.rows:
            if row.id == id:
                return row
        raise BadRow(f"machine {self.name!r} has no row {id!r}; it has {', '.join(r.id for r in self.rows)}")


def _cell(entries: Iterable[Entry]) -> Cell:
    found = tuple(entries)
    atoms = merged_atoms(entry.guard for entry in found)
    by_bits = {}
    for bits in range(1 << len(atoms)):
        valuation = {a.name: bool(bits >> i & 1) for i, a in enumerate(atoms)}
        for entry in found:
            if entry.guard.holds(valuation):
                by_bits[bits] = entry
                break
    return Cell(atoms, found, by_bits)
