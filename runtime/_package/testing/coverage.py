"""What fired, and what did not: rows, guards both ways, ignores, refusals, pairs of consecutive rows, faults.

A ``Coverage`` knows from the declarations everything that could fire, and is told of steps, wherever they come from: cores in a test,
the live runtime, the records of a trace. It can be asked what is missing, and by a gate whether that is allowed.

A *pair* is two rows of one machine of which the second can follow the first: the first goes to where the second comes from. Of a family
that is counted over all its instances together, since a step does not say which of them took a row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from attrs import define, field, frozen

from troth.spec import Party
from troth.spec.core import Step
from troth.spec.machine import Kind

KINDS = ("rows", "guards", "pairs", "ignores", "refusals", "faults")
"""What is counted, by these names everywhere."""

Guards: TypeAlias = tuple[tuple[str, bool], ...]


@frozen
class Allowed:
    """What may stay uncovered, each with the reason why it cannot fire. A reason that is empty is none."""

    reasons: Mapping[str, str] = field(factory=dict)
    kind: str = "rows"

    def problems(self, coverage: Coverage) -> list[str]:
        """What a gate says: what is missing without a reason, what has a reason and fired, and what there is not."""
        missing = set(coverage.missing(self.kind))
        known = coverage.known[self.kind]
        found = [f"{name}: nothing fired it, and no reason is given" for name in sorted(missing - set(self.reasons))]
        for name, reason in self.reasons.items():
            if name not in known:
                found.append(f"{name}: there is no such thing among the {self.kind}; take it off the list")
            elif name not in missing:
                found.append(f"{name}: it fired, so its reason ({reason!r}) is wrong; take it off the list")
            elif not reason.strip():
                found.append(f"{name}: its reason is empty")
        return found


@frozen
class Floors:
    """How much has to fire at the least, by kind: as much as once did, so that it can only rise."""

    counts: Mapping[str, int]

    def problems(self, coverage: Coverage) -> list[str]:
        """What a gate says: the kinds of which less fired, and those that there are not."""
        found = [f"{kind}: there is no such kind; take one of {', '.join(KINDS)}" for kind in self.counts if kind not in KINDS]
        for kind, floor in self.counts.items():
            fired = len(coverage.known.get(kind, ())) - len(coverage.missing(kind)) if kind in KINDS else floor
            if fired < floor:
                found.append(f"{kind}: {fired} of {len(coverage.known[kind])} fired, and {floor} must")
        return found


@frozen
class _Summary:
    """The rows of one step, as they count: the names, and for each machine the first and the last of its rows."""

    names: tuple[str, ...]
    ends: tuple[tuple[str, str, str], ...]


@define(eq=False)
class _Party:
    """What is known of one party."""

    name: str
    rows: frozenset[str]
    machines: Mapping[str, str]
    """By row: its machine."""
    fired: set[str] = field(factory=set)
    steps: set[tuple[tuple[str, ...], Guards]] = field(factory=set)
    """Steps that were counted whole: they come again and again."""
    summaries: dict[tuple[str, ...], _Summary] = field(factory=dict)
    last: dict[Hashable, dict[str, str]] = field(factory=dict)
    """By instance of the party, and machine: the row that it took last."""
    pairs: set[tuple[str, str]] = field(factory=set)


STEPS_LIMIT = 1 << 16
"""Different steps of a party that are remembered; one that is not is counted again, which only takes longer."""


class Coverage:
    """Counts what fires in the machines of ``parties``, and which of ``faults`` came."""

    def __init__(self, parties: Iterable[Party] = (), faults: Iterable[str] = (), reasons: Mapping[str, str] | None = None) -> None:
        """``reasons`` says of some of it why it cannot fire: a report tells it."""
        self.parties = tuple(parties)
        self.reasons: Mapping[str, str] = {} if reasons is None else reasons
        self.known: Mapping[str, frozenset[str]] = {**_known(self.parties), "faults": frozenset(faults)}
        self._fired: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self._of = {party.name: _party(party) for party in self.parties}

    # -- being told ----------------------------------------------------------------------------------------------------

    def step(self, party: str, step: Step, instance: Hashable = None) -> None:
        """A core of ``party`` took ``step``. ``instance`` tells several cores of one party apart, for pairs."""
        self.record(party, step.rows, step.guards, instance)

    def record(self, party: str, rows: tuple[str, ...], guards: Guards = (), instance: Hashable = None) -> None:
        """The same, from a trace: there ``guards`` are not known. A party that was not declared here is passed over."""
        of = self._of.get(party)
        if of is None:
            return
        known = of.summaries.get(rows)
        if known is None:
            known = of.summaries[rows] = self._summary(of, rows)
        if (rows, guards) not in of.steps:
            self._count(of, known, guards)
            if len(of.steps) < STEPS_LIMIT:
                of.steps.add((rows, guards))
        if known.ends:
            last = of.last.get(instance)
            if last is None:
                last = of.last[instance] = {}
            for machine, first, final in known.ends:
                before = last.get(machine)
                if before is not None and (before, first) not in of.pairs:
                    self._pair(of, before, first)
                last[machine] = final

    def begin(self, party: str, instance: Hashable = None) -> None:
        """That core of ``party`` starts anew: its first row follows no other."""
        if party in self._of:
            self._of[party].last.pop(instance, None)

    def fault(self, name: str) -> None:
        """A fault came: a message was lost, a link cut, a party crashed."""
        self._fired["faults"].add(name)

    def _summary(self, of: _Party, rows: tuple[str, ...]) -> _Summary:
        ends: dict[str, tuple[str, str]] = {}
        for row in rows:
            machine = of.machines.get(row)
            if machine is None:
                continue
            if machine in ends:
                self._pair(of, ends[machine][1], row)
            ends[machine] = (ends[machine][0] if machine in ends else row, row)
        return _Summary(rows, tuple((machine, *both) for machine, both in ends.items()))

    def _pair(self, of: _Party, first: str, second: str) -> None:
        of.pairs.add((first, second))
        name = f"{of.name}.{first} > {second}"
        if name in self.known["pairs"]:
            self._fired["pairs"].add(name)

    def _count(self, of: _Party, known: _Summary, guards: Guards) -> None:
        for row in known.names:
            name = f"{of.name}.{row}"
            kind = "rows" if row in of.rows else "ignores" if name in self.known["ignores"] else "refusals"
            if name in self.known[kind]:
                self._fired[kind].add(name)
        for atom, value in guards:
            name = guard_name(of.name, atom, value=value)
            if name in self.known["guards"]:
                self._fired["guards"].add(name)

    # -- answers -------------------------------------------------------------------------------------------------------

    def fired(self, kind: str = "rows") -> tuple[str, ...]:
        """What fired, in order of its name."""
        return tuple(sorted(self._fired[kind]))

    def missing(self, kind: str = "rows") -> tuple[str, ...]:
        """What could fire by the declarations, and did not."""
        return tuple(sorted(self.known[kind] - self._fired[kind]))

    def fraction(self, kind: str = "rows") -> float:
        """How much of it fired, from 0 to 1; 1 where there is nothing."""
        known = self.known[kind]
        return len(self._fired[kind] & known) / len(known) if known else 1.0

    @property
    def fractions(self) -> dict[str, float]:
        """All fractions, rounded to four places, for JSON."""
        return {kind: round(self.fraction(kind), 4) for kind in KINDS}

    def report(self, most: int = 20) -> list[str]:
        """Lines for a reader: how much of each kind, and the names of what nothing fired, at most ``most`` of each, with the reasons
        of what cannot fire behind the others."""
        lines = []
        for kind in KINDS:
            known = self.known[kind]
            if not known:
                continue
            missing = sorted(self.missing(kind), key=lambda name: name in self.reasons)
            cannot = sum(name in self.reasons for name in missing)
            told = f", {cannot} cannot" if cannot else ""
            lines.append(f"{kind:<9} {len(known) - len(missing)} of {len(known)} ({self.fraction(kind):.1%}){told}")
            lines += [f"  nothing fired {name}{self._why(name)}" for name in missing[:most]]
            if len(missing) > most > 0:
                lines.append(f"  and {len(missing) - most} more")
        return lines

    def _why(self, name: str) -> str:
        return f": {self.reasons[name]}" if name in self.reasons else ""

    # -- joining -------------------------------------------------------------------------------------------------------

    def merge(self, other: Coverage) -> None:
        """Add what another collector of the same declarations was told."""
        self.add(other.data)

    def add(self, data: Mapping[str, Iterable[str]]) -> None:
        """Add what ``data`` of another one holds. Names that are not known here are passed over, but for faults."""
        for kind, names in data.items():
            self._fired[kind] |= set(names) if kind == "faults" else set(names) & self.known[kind]

    @property
    def data(self) -> dict[str, list[str]]:
        """What fired, as plain values: for another process, or a file."""
        return {kind: list(self.fired(kind)) for kind in KINDS}


def guard_name(party: str, atom: str, *, value: bool) -> str:
    """``party.machine.atom`` where it answered yes, with ``~`` before the atom where it answered no."""
    machine, _, name = atom.rpartition(".")
    return f"{party}.{machine}.{'' if value else '~'}{name}"


def _party(party: Party) -> _Party:
    rows = {f"{machine.name}.{row.id}": machine.name for machine in party.machines for row in machine.rows}
    return _Party(party.name, frozenset(rows), rows)


def _known(parties: Iterable[Party]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for party in parties:
        for machine in party.machines:
            found["rows"] |= {f"{party.name}.{machine.name}.{row.id}" for row in machine.rows}
            for atom in machine.atoms:
                found["guards"] |= {guard_name(party.name, f"{machine.name}.{atom.name}", value=value) for value in (False, True)}
            entries: list[Any] = [entry for cell in machine.table.values() for entry in cell.entries]
            for entry in entries:
                if entry.kind is not Kind.ROW:
                    found["ignores" if entry.kind is Kind.IGNORE else "refusals"].add(f"{party.name}.{entry.id}")
            rows = [entry for entry in entries if entry.kind is Kind.ROW]
            after: dict[Any, list[str]] = {}
            for entry in rows:
                after.setdefault(entry.state, []).append(entry.id)
            found["pairs"] |= {f"{party.name}.{one.id} > {two}" for one in rows for two in after.get(one.target, ())}
    return {kind: frozenset(names) for kind, names in found.items()}
