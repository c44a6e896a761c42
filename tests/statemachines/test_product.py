"""The product is closed: every state, trigger and valuation of every machine does what its reviewed expectation file says."""

from __future__ import annotations

import pytest

from tests.statemachines.product import EXPECTED, INTERPRETERS, Said, cases, machines, probe
from tests.statemachines.real_cases import RealCases
from troth.spec import core
from troth.spec.emits import Emit
from troth.spec.engine import PartyCore
from troth.spec.machine import Kind, Machine
from troth.statemachines import PARTIES

ALL = machines()


def read(name: str) -> dict[str, str]:
    """The expectation file of a machine, case to outcome."""
    lines = (EXPECTED / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" -> ", 1) for line in lines]

    assert len({where for where, _ in pairs}) == len(pairs), "a case is written twice"
    return {pair[0]: pair[1] for pair in pairs}


@pytest.mark.parametrize("name", ALL)
def test_every_case_is_written_down_and_nothing_else_is(name: str) -> None:
    """The expectation file covers exactly the product."""
    assert set(read(name)) == {case.where for case in cases(ALL[name])}


@pytest.mark.parametrize("interpreter", INTERPRETERS)
@pytest.mark.parametrize("name", ALL)
def test_every_case_does_what_is_written(name: str, interpreter: str) -> None:
    """A row fires as expected, an ignore changes nothing, a refusal says why and leaves the snapshot identical."""
    expected = read(name)
    for case in cases(ALL[name]):
        core_ = probe(case, INTERPRETERS[interpreter])
        before = core_.snapshot()
        step = core_.handle(core.Called(case.trigger))
        wanted = expected[case.where]

        if wanted.startswith("ignore: "):
            assert (step.effects, step.refusal, core_.snapshot()) == ((), None, before), case.where
        elif wanted.startswith("refuse: "):
            assert step.refusal is not None, case.where
            assert step.refusal.why == wanted.removeprefix("refuse: "), case.where
            assert (step.effects, core_.snapshot()) == ((), before), case.where
        else:
            assert step.refusal is None, case.where
            assert _did(ALL[name], core_, step) == wanted, case.where


def _did(machine: Machine, core_: PartyCore, step: core.Step) -> str:
    """What a step did, in the words of the expectation files."""
    row = machine.row(step.rows[0].split(".", 1)[1])
    said = [effect.message.what for effect in step.effects if isinstance(effect, core.Send) and isinstance(effect.message, Said)]
    change = "" if row.update.__name__ == "keep" else f" {row.update.__name__}"
    state = core_.state(machine.name)
    return f"{row.id} {state.value}{change}{' | ' + '; '.join(said) if said else ''}"


def test_no_expectation_file_is_left_over() -> None:
    """A machine that went takes its file with it."""
    assert {path.stem for path in EXPECTED.glob("*.txt")} == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_every_row_and_refusal_runs_on_the_real_party(name: str) -> None:
    """The real updates, emissions, trimming and timers of every case, with only the answers of the atoms given.

    Signals are left out, because the siblings are not in a state that such a row could have led to; walks cover those.
    """
    party, machine = name.split(".")
    runner = RealCases(PARTIES[party], ALL[name])
    for case in cases(ALL[name]):
        for event in runner.events(case):
            core_ = runner.made(case)
            before = core_.snapshot()
            step = core_.handle(event)
            entry = runner.entry(case)

            assert core_.state(machine, runner.key) is entry.target, case.where
            if entry.row is None:
                assert (step.effects, core_.snapshot()) == ((), before), case.where
                assert (step.refusal is None) is (entry.kind is Kind.IGNORE), case.where
            else:
                assert len(step.effects) == sum(isinstance(emission, Emit) for emission in entry.row.emit), case.where
                again = runner.made(case)
                again.restore(core_.snapshot())
                assert again.snapshot() == core_.snapshot(), case.where
