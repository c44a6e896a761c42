"""The product is closed: every state, trigger and valuation of every machine does what its reviewed expectation file says."""

from __future__ import annotations

import pytest

from tests.statemachines.product import EXPECTED, INTERPRETERS, Said, cases, machines, probe
from troth.spec import core
from troth.spec.engine import PartyCore
from troth.spec.machine import Machine

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

        if wanted == "ignore":
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
