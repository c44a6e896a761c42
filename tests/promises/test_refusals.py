"""P22, at every step of random walks: a refused event leaves the core as it was and causes nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from attrs import evolve

from tests.statemachines.alphabet import alphabets
from troth.spec.core import Release, Step
from troth.spec.engine import PartyCore
from troth.statemachines import PARTIES

STEPS = 2_000


def walked(name: str) -> int:
    """Walk one core, among peers and users that say anything, and look at what it refuses; how often it did."""
    found = alphabets()[name]
    chance = random.Random(name)
    refused = 0
    core: Any = found.make()
    for place in range(STEPS):
        if place % 100 == 0:
            core = found.make()
            for event in found.starts[place // 100 % len(found.starts)]:
                core.handle(event)
        before = core.snapshot()
        step = core.handle(chance.choice(found.events))
        if step.refusal is not None:
            refused += 1
            assert step.effects == (), f"P22 {name}: a refusal caused {step.effects}"
            assert core.snapshot() == before, f"P22 {name}: a refusal changed the core"
    return refused


@pytest.mark.parametrize("name", PARTIES)
def test_p22_holds_in_random_walks(name: str) -> None:
    """Some events are refused, and none of them leaves a mark. A receiver refuses nothing that there is an event for."""
    assert (walked(name) > 0) == any(machine.refuse for machine in PARTIES[name].machines)


def test_p22_is_violated_by_an_engine_that_does_not_roll_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that were taken before the refusal have left their mark."""
    monkeypatch.setattr("troth.spec.store.Store.undo", lambda _self, _saved: None)

    with pytest.raises(AssertionError, match="P22 trainer: a refusal changed the core"):
        walked("trainer")


def test_p22_is_violated_by_an_engine_that_causes_what_came_before_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect goes out although its step was taken back."""
    handle = PartyCore.handle

    def leaking(core: PartyCore, event: Any) -> Step:
        step = handle(core, event)
        return evolve(step, effects=(Release("result", (1, 0)),)) if step.refusal else step

    monkeypatch.setattr(PartyCore, "handle", leaking)

    with pytest.raises(AssertionError, match="P22 host: a refusal caused"):
        walked("host")
