"""Walks: tens of thousands of steps, chosen by Hypothesis, that keep the numbered properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.statemachines.alphabet import Alphabet, alphabets
from tests.statemachines.trio import Deal, walk
from tests.statemachines.watch import Watch
from troth.statemachines import PARTIES

CHOICES = st.lists(st.integers(0, 2**16 - 1), min_size=120, max_size=400)
DEALS = st.builds(Deal, launched=st.booleans(), one_shot=st.booleans(), fail_unresponsive=st.booleans(), receives=st.booleans())
WALKS = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # a walk does not shrink to a short one; the checker finds the short ones
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def test_a_trainer_a_host_and_their_receivers_keep_every_property() -> None:
    """150 walks of 120 to 400 moves over a perfect link that may be cut: tens of thousands of steps of the cores."""
    steps = []

    @WALKS
    @given(deal=DEALS, choices=CHOICES)
    def run(deal: Deal, choices: list[int]) -> None:
        steps.append(len(walk(deal, choices).bench.steps))

    run()

    assert sum(steps) > 20_000


@pytest.mark.parametrize("name", PARTIES)
def test_a_core_among_peers_that_say_anything_keeps_its_own_properties(name: str) -> None:
    """Each core alone, given events in any order, the impossible ones too: what it promises by itself it keeps."""
    found: Alphabet = alphabets()[name]

    @settings(WALKS, max_examples=60)
    @given(start=st.integers(0, len(found.starts) - 1), choices=CHOICES)
    def run(start: int, choices: list[int]) -> None:
        core_: Any = found.make()
        before = found.make()
        watch = Watch(core_, before)
        for event in found.starts[start]:
            watch.look(event, core_.handle(event))
        for choice in choices:
            event = found.events[choice % len(found.events)]
            snapshot = core_.snapshot()
            core_.restore(snapshot)
            assert core_.snapshot() == snapshot
            watch.look(event, core_.handle(event))

    run()
