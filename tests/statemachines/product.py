"""The whole product of a machine: every state, trigger and valuation, written down one a line, and run.

``python -m tests.statemachines.product`` rewrites the expectation files. They are reviewed by reading: a change of a table shows up
in them as the cases that it changes, and a test fails until somebody has looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from troth.spec import core
from troth.spec.emits import Emission, Emit
from troth.spec.engine import PartyCore
from troth.spec.guards import Always, And, Atom, Guard, Not, Or, spelled, valuations
from troth.spec.interpreters import Interpreter, Table, Transitions
from troth.spec.machine import Entry, Kind, Machine, Nothing, Row
from troth.spec.party import Party, To, called
from troth.statemachines import PARTIES

EXPECTED = Path(__file__).with_name("expected")

INTERPRETERS: dict[str, Callable[[Machine], Interpreter]] = {"table": Table, "transitions": Transitions}


@frozen
class Case:
    """One cell of the product."""

    machine: Machine
    state: Enum
    trigger: str
    valuation: dict[str, bool]

    @property
    def where(self) -> str:
        """The left side of the line."""
        return f"{self.state.value:<12} {self.trigger:<16} {spelled(self.valuation)}"


def machines() -> dict[str, Machine]:
    """Every machine of every party, by its full name."""
    return {f"{party.name}.{machine.name}": machine for party in PARTIES.values() for machine in party.machines}


def cases(machine: Machine) -> Iterator[Case]:
    """Every case of a machine, states in declared order."""
    for state in machine.states:
        for trigger in machine.triggers:
            for valuation in valuations(machine.table[state, trigger].atoms):
                yield Case(machine, state, trigger, valuation)


def outcome(entry: Entry) -> str:
    """The right side of the line."""
    match entry.kind:
        case Kind.IGNORE:
            return f"ignore: {entry.why}"
        case Kind.REFUSE:
            return f"refuse: {entry.why}"
        case Kind.ROW:
            row = entry.row
            assert row is not None
            change = "" if row.update.__name__ == "keep" else f" {row.update.__name__}"
            emits = "; ".join(str(emission) for emission in row.emit)
            return f"{row.id} {entry.target.value}{change}{' | ' + emits if emits else ''}"


def line(case: Case) -> str:
    """One line of an expectation file, as the declaration has it now."""
    return f"{case.where} -> {outcome(case.machine.table[case.state, case.trigger].under(case.valuation))}"


@frozen(kw_only=True)
class Said(core.Message):
    """What a stubbed emission sends: its name."""

    what: str


def probe(case: Case, interpreter: Callable[[Machine], Interpreter]) -> PartyCore:
    """A core of this machine alone, in the case's state, whose atoms answer the case's valuation and whose emissions say their names."""
    machine = case.machine
    alone = evolve(forced(machine, case, [_stubbed(row, case) for row in machine.rows]), initial=case.state, **BARE)
    routes = [called(trigger, To(machine.name, trigger)) for trigger in machine.triggers]
    return PartyCore(Party("probe", machines=[alone], routes=routes, config=dict, validate=False), interpreter=interpreter)


BARE: dict[str, Any] = {"data": Nothing, "live": {}, "final": (), "family": None, "timers": ()}
"""What a machine has when it has nothing but its table."""


def forced(machine: Machine, case: Case, rows: list[Row]) -> Machine:
    """The machine with those rows, whose ignores and refusals decide as the case says."""
    return evolve(
        machine,
        rows=rows,
        ignore=[evolve(rule, guard=answering(rule.guard, case)) for rule in machine.ignore],
        refuse=[evolve(rule, guard=answering(rule.guard, case)) for rule in machine.refuse],
        validate=False,
    )


def _stubbed(row: Row, case: Case) -> Row:
    def update(data: object, event: object) -> object:
        return data

    update.__name__ = row.update.__name__
    return Row(row.id, row.sources, row.trigger, answering(row.guard, case), row.target, update, [_saying(e) for e in row.emit], row.why)


def _saying(emission: Emission) -> Emit:
    return Emit(str(emission), lambda _firing: core.Send("probe", Said(what=str(emission))))


def answering(guard: Guard, case: Case) -> Guard:
    """The same expression, over atoms that answer as the case says."""
    match guard:
        case Atom(name=name):
            answer = case.valuation.get(name, False)
            return Atom(name, (), lambda _view, _event: answer)
        case Not(inner=inner):
            return Not(answering(inner, case))
        case And(left=left, right=right):
            return And(answering(left, case), answering(right, case))
        case Or(left=left, right=right):
            return Or(answering(left, case), answering(right, case))
        case _:
            assert isinstance(guard, Always)
            return guard


def main() -> None:
    """Rewrite the expectation files."""
    EXPECTED.mkdir(exist_ok=True)
    for name, machine in machines().items():
        text = "".join(f"{line(case)}\n" for case in cases(machine))
        (EXPECTED / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
