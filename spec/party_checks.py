"""What is checked when a party is built. Each error names the declaration and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from troth.spec import core, samples
from troth.spec.emits import Deliver, Emission, Emit, Forward
from troth.spec.errors import BadGuard, BadRow, DeadRow, UnreadMachine
from troth.spec.guards import Atom
from troth.spec.machine import Entry, Machine
from troth.spec.views import Reader, View

if TYPE_CHECKING:
    from troth.spec.party import Party, To

Place: TypeAlias = tuple[str, str]
"""A machine's name and one of its triggers."""


def check_party(party: Party) -> None:
    """Check that every event, signal, key and timer finds its machine, and that every atom answers as it should."""
    _PartyChecks(party).run()


def samples_by_trigger(party: Party) -> Mapping[Place, Sequence[Any]]:
    """For every (machine, trigger), a sample of each event that can reach it: what generators of tests start from."""
    checks = _PartyChecks(party)
    checks.run()
    return checks.fed


class _PartyChecks:
    """The checks of one party, each with the declaration it names and the fix."""

    def __init__(self, party: Party) -> None:
        self.party = party
        self.fed: dict[Place, list[Any]] = {}
        self.emissions: list[tuple[Machine, Entry, Emission]] = [
            (machine, entry, emission)
            for machine in party.machines
            for cell in machine.table.values()
            for entry in cell.entries
            if entry.row
            for emission in entry.row.emit
        ]

    def run(self) -> None:
        self._names()
        self._destinations()
        self._timers()
        self._reads()
        self._feeds()
        self._fired()
        self._gates()
        self._atoms()
        self._observations()

    def _names(self) -> None:
        party = self.party
        if len(party.by_name) != len(party.machines):
            raise BadRow(f"party {party.name}: two machines have the same name; rename one")
        if len(party.by_selector) != len(party.routes):
            raise BadRow(f"party {party.name}: two routes take the same event; merge their destinations")

    def _destination(self, where: str, to: To | Forward) -> None:
        machine = self.party.by_name.get(to.machine)
        if machine is None:
            raise UnreadMachine(f"{where}: the party has no machine {to.machine!r}; it has {', '.join(self.party.by_name)}")
        if to.trigger not in machine.triggers:
            raise UnreadMachine(f"{where}: {to.machine} has no trigger {to.trigger!r}; it has {', '.join(machine.triggers)}")
        if (machine.family is None) != (to.key is None):
            fix = "give a key" if machine.family else "take the key away"
            raise UnreadMachine(f"{where}: {to.machine} is {'' if machine.family else 'not '}a family; {fix}")

    def _destinations(self) -> None:
        for route in self.party.routes:
            for to in route.destinations:
                self._destination(f"party {self.party.name}: route of {route}", to)
        for _, entry, emission in self.emissions:
            if isinstance(emission, Forward):
                self._destination(f"row {entry.id}: signal {emission}", emission)

    def _timers(self) -> None:
        known = {route.selector[1] for route in self.party.routes if route.selector[0] is core.TimerFired}
        limits = getattr(self.party.config(), "limits", None)
        owners: dict[str, str] = {}
        for machine in self.party.machines:
            for name in machine.timers:
                if owners.setdefault(name, machine.name) != machine.name:
                    raise BadRow(f"{machine.name}: timer {name!r} is already {owners[name]}'s; give each machine timers of its own")
                if name not in known:
                    raise UnreadMachine(f"{machine.name}: timer {name!r} has no route in party {self.party.name}; add timer({name!r}, ...)")
        for machine in self.party.machines:
            named = machine.family.limit if machine.family else 0
            if isinstance(named, str) and not hasattr(limits, named):
                raise BadRow(f"{machine.name}: its family's limit {named!r} is not in the configuration's limits; add it, or give a number")
        for _, entry, emission in self.emissions:
            if isinstance(emission, Emit) and emission.limit and limits is not None and not hasattr(limits, emission.limit):
                raise BadRow(f"row {entry.id}: there is no limit {emission.limit!r}; add it to {type(limits).__name__}")

    def _reads(self) -> None:
        for machine in self.party.machines:
            for atom in machine.atoms:
                for name in atom.reads:
                    if name not in self.party.by_name:
                        have = ", ".join(self.party.by_name)
                        raise UnreadMachine(
                            f"atom {machine.name}.{atom.name} reads {name!r}, which {self.party.name} has not; it has {have}"
                        )

    def _feeds(self) -> None:
        """Which sample events can reach which trigger: routes first, then along the signals until nothing new comes."""
        for route in self.party.routes:
            seen = route.subject
            for to in route.destinations:
                self._feed(to.machine, to.trigger, seen)
        changed = True
        while changed:
            changed = False
            for machine, entry, emission in self.emissions:
                if not isinstance(emission, Forward) or emission.event is not None:
                    continue
                for sample in list(self.fed.get((machine.name, entry.trigger), ())):
                    changed |= self._feed(emission.machine, emission.trigger, sample)

    def _feed(self, machine: str, trigger: str, sample: Any) -> bool:
        samples_ = self.fed.setdefault((machine, trigger), [])
        if any(type(sample) is type(old) and sample == old for old in samples_):
            return False
        samples_.append(sample)
        return True

    def _fired(self) -> None:
        fired = self._reached_from([(to.machine, to.trigger) for route in self.party.routes for to in route.destinations])
        for machine in self.party.machines:
            for trigger in machine.triggers:
                if (machine.name, trigger) not in fired:
                    rows = ", ".join(row.id for row in machine.rows if row.trigger == trigger) or "none"
                    raise DeadRow(
                        f"{machine.name}: nothing fires {trigger!r} (rows: {rows}); add a route, or a signal from a fired row, or remove it"
                    )

    def _reached_from(self, places: list[Place]) -> set[Place]:
        """Those triggers, and every trigger that signals from their rows lead to."""
        reached, waiting = set(places), list(places)
        while waiting:
            here = waiting.pop()
            for machine, entry, emission in self.emissions:
                if isinstance(emission, Forward) and (machine.name, entry.trigger) == here:
                    there = emission.machine, emission.trigger
                    if there not in reached:
                        reached.add(there)
                        waiting.append(there)
        return reached

    def _gates(self) -> None:
        """A gate that never delivers closes its route for good; a delivery outside a gate has nothing to deliver."""
        delivering = {(machine.name, entry.trigger): entry for machine, entry, e in self.emissions if isinstance(e, Deliver)}
        gated: set[Place] = set()
        for route in self.party.routes:
            if route.gate is None:
                continue
            behind = self._reached_from([(route.gate.machine, route.gate.trigger)])
            gated |= behind
            if not behind & set(delivering):
                raise DeadRow(
                    f"party {self.party.name}: route of {route}: no row of {route.gate} delivers; emit `deliver` in the row that admits"
                )
        for place, entry in delivering.items():
            if place not in gated:
                raise BadRow(
                    f"row {entry.id}: it delivers, but {entry.trigger!r} is the gate of no route; name it as gate= or remove `deliver`"
                )

    def _atoms(self) -> None:
        view = View.initial(self.party)
        for machine in self.party.machines:
            for (state, trigger), cell in machine.table.items():
                for sample in self.fed.get((machine.name, trigger), ()):
                    for atom in cell.atoms:
                        self._probe(view, machine, state, atom, sample)

    def _probe(self, view: View, machine: Machine, state: Enum, atom: Atom, sample: Any) -> None:
        key = samples.KEY if machine.family else None
        reader = Reader(view.at(machine.name, key, state, machine.data()), (*atom.reads, machine.name), f"{machine.name}.{atom.name}")
        try:
            answer = atom.of(reader, sample)
        except UnreadMachine:
            raise
        except Exception as error:
            raise BadGuard(
                f"atom {machine.name}.{atom.name} raised {type(error).__name__} ({error}) on a sample {type(sample).__name__} in state "
                f"{state.name}; it must answer for every event that reaches its trigger"
            ) from error
        if type(answer) is not bool:
            raise BadGuard(
                f"atom {machine.name}.{atom.name} answered {answer!r} ({type(answer).__name__}) to {type(sample).__name__}; "
                "a guard must answer with a real bool: compare, do not return the thing itself"
            )

    def _observations(self) -> None:
        view = View.initial(self.party)
        for name, of in self.party.observe.items():
            answer = of(view)
            if not isinstance(answer, int):
                raise BadRow(f"party {self.party.name}: observation {name!r} answered {answer!r}; it must be a bool or an int")
