"""One case of a machine's product, run on the real party: everything real but the answers of the atoms."""

from __future__ import annotations

from typing import Any

from attrs import astuple, evolve, fields

from tests.statemachines.product import Case, answering, forced
from troth.spec import core, samples
from troth.spec.emits import Emit
from troth.spec.engine import PartyCore
from troth.spec.interpreters import Table
from troth.spec.machine import Entry, Machine, Row
from troth.spec.party import Party, Route, To, selector
from troth.spec.party_checks import samples_by_trigger


class RealCases:
    """The cases of one machine in its party. Its families are probed under one key."""

    def __init__(self, party: Party, machine: Machine) -> None:
        self.party = party
        self.machine = machine
        self.fed = samples_by_trigger(party)
        self.key = self._key()

    def _key(self) -> core.Key:
        if self.machine.family is None:
            return None
        if self.machine.name == "calls":
            return "send/1" if self.party.name == "trainer" else "execute"
        return (samples.KEY, 0) if self.machine.name == "source" else samples.KEY

    def events(self, case: Case) -> list[core.Event]:
        """A sample of every event that can reach the case's trigger; where only made-up events do, there is none."""
        found: list[core.Event] = []
        for sample in self.fed.get((self.machine.name, case.trigger), ()):
            event = core.Received("probe", sample) if isinstance(sample, core.Message) else sample
            if not isinstance(event, core.TimerFired):
                found.append(event)
        return found

    def made(self, case: Case) -> PartyCore:
        """A core of the party whose machine is in the case's state, and answers as the case says."""
        answers = forced(self.machine, case, [_forced(row, case) for row in self.machine.rows])
        machines = [answers if m.name == answers.name else m for m in self.party.machines]
        routes = [self._route(case, event) for event in self.events(case)]
        alone = Party(self.party.name, machines=machines, routes=routes, config=self.party.config, validate=False)
        made = PartyCore(alone, interpreter=Table)
        made.restore(self._placed(case, made))
        return made

    def _route(self, case: Case, event: core.Event) -> Route:
        key = self.key
        to = To(self.machine.name, case.trigger, (lambda _view, _event: key) if self.machine.family else None)
        return Route(selector(event), event, [to])

    def _placed(self, case: Case, made: PartyCore) -> tuple[object, ...]:
        """A snapshot with the machine in the case's state, and with ones for numbers: a session of epoch 1, say."""
        parts: list[object] = []
        for machine, part in zip(self.party.machines, _parts(made), strict=False):
            flat = astuple(_ones(machine.data()), recurse=False)
            state = case.state if machine.name == self.machine.name else machine.initial
            if machine.family is None:
                parts.append((state.name, *flat))
            elif machine.name == self.machine.name and state is not machine.initial:
                parts.append(((self.key, state.name, *flat),))
            else:
                parts.append(part)
        return (*parts, (), ())

    def entry(self, case: Case) -> Entry:
        """What the table says of the case."""
        return self.machine.table[case.state, case.trigger].under(case.valuation)


def _forced(row: Row, case: Case) -> Row:
    return evolve(row, guard=answering(row.guard, case), emit=[e for e in row.emit if isinstance(e, Emit)])


def _ones(data: Any) -> Any:
    return evolve(data, **{f.name: 1 for f in fields(type(data)) if type(getattr(data, f.name)) is int})


def _parts(made: PartyCore) -> tuple[object, ...]:
    snapshot = made.snapshot()
    assert isinstance(snapshot, tuple)
    return snapshot
