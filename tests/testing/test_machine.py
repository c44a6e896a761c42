"""Hypothesis state machines out of worlds and declarations."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import run_state_machine_as_test

from tests.testing.toys import TURNSTILE, Greedy, fare, long_fare
from troth.cli.finding import find
from troth.models.mutants import DEFECTS, mutated
from troth.testing import Violated, state_machine
from troth.testing.machine import WorldMachine

QUICK = settings(
    max_examples=60,
    stateful_step_count=30,
    database=None,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    phases=(Phase.generate, Phase.shrink),
)


def violated(machine: type, seed: int = 1, chosen: settings = QUICK) -> Violated:
    """What a machine finds."""
    with pytest.raises(Violated) as caught:
        run_state_machine_as_test(with_seed(seed)(machine), settings=chosen)
    return caught.value


def rules_of(machine: type[WorldMachine]) -> set[str]:
    """The names of its rules."""
    return {rule.function.__name__ for rule in machine().rules}


def test_a_world_becomes_one_rule_an_action_and_one_that_is_always_there() -> None:
    """By the names of the actions."""
    names = rules_of(state_machine(find("ledger").build({})))

    assert {"trainer_init", "trainer_send", "trainer_timer", "trainer_unexpected", "rest"} <= names


def test_a_party_becomes_one_rule_an_event_of_its_alphabet() -> None:
    """And its timers, and the event that no row expects."""
    names = rules_of(state_machine(TURNSTILE))

    assert names == {"turnstile_called_coin", "turnstile_called_push", "turnstile_timer", "turnstile_unexpected", "rest"}


@pytest.mark.parametrize("seed", range(3))
def test_a_violation_shows_the_example_the_checkers_trace_and_a_line_to_play_it_again(seed: int) -> None:
    """Hypothesis' notes hold its own example, four rules long; the words hold the rest."""
    found = violated(state_machine(fare, name="fare.py:fare"), seed)

    notes = "\n".join(found.__notes__)
    assert found.wrong.property == "ONCE"
    assert notes.count("state.slot_gate_line_delivers(") == 2
    assert "the checker's shortest trace to it, 4 steps:" in str(found)
    assert "replay: troth fuzz fare.py:fare --replay core." in str(found)


def test_a_core_that_changes_on_an_ignored_event_is_found() -> None:
    """By the rule that is always enabled."""
    assert violated(state_machine(Greedy())).wrong.property == "ignored"


def test_a_sound_machine_passes() -> None:
    """And a machine that is over has something to do."""
    run_state_machine_as_test(state_machine(fare(sound=True)), settings=settings(QUICK, max_examples=10))
    run_state_machine_as_test(state_machine(TURNSTILE), settings=settings(QUICK, max_examples=10))


def test_a_blueprint_is_built_at_its_own_bounds() -> None:
    """The function that makes a world is as good as the world."""
    assert violated(state_machine(long_fare)).wrong.property == "KEPT"


@pytest.mark.parametrize(("name", "world"), [("D13", "ledger/outcomes"), ("D2", "ledger/outcomes")])
def test_a_defect_of_the_reference_is_found(name: str, world: str) -> None:
    """Brought back into our tables."""
    patch = next(patch for patch in DEFECTS if patch.name == name)
    machine = state_machine(lambda: mutated(find(world).build({}), patch.mutant()))

    # What Hypothesis draws depends on which modules are loaded, so there is room beyond the few hundred examples that it mostly takes.
    assert violated(machine, 2, settings(QUICK, max_examples=4_000, phases=(Phase.generate,))).wrong.property
