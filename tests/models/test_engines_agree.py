"""Three searches of the same worlds: naive on objects, plain on numbers, vectorised on packed states, alone and in two processes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models import naive
from tests.models.random_worlds import random_world
from troth.models import CheckResult, Limits, World, check
from troth.models.exploration import Ending
from troth.models.vector import driver, layout

SEEDS = range(40)
NAIVE_STATES = 6_000


def answers(result: CheckResult) -> dict[str, Any]:
    """Everything that must not depend on the engine."""
    return {
        "verdict": result.verdict,
        "counts": (result.states, result.edges, result.depth, result.truncated),
        "properties": {p.property.id: (p.verdict, p.vacuous, p.reason, traced(p.trace)) for p in result.properties},
    }


def traced(trace: Any) -> Any:
    """A trace by what it shows."""
    return (
        None if trace is None else [(s.action.name, s.label.variants, sorted(trace.system.spelled(s.state).items())) for s in trace.steps]
    )


def answered(make: Any, engine: str, **limits: Any) -> dict[str, Any]:
    """The answers for a new copy of the world: engines must not profit from each other's tables."""
    return answers(check(make(), engine=engine, limits=Limits(**{"max_states": NAIVE_STATES, "workers": 1, **limits})))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plain_search_counts_like_a_naive_one(seed: int) -> None:
    world = random_world(seed, truncates=True)
    result = check(world, engine="scalar", limits=Limits(max_states=NAIVE_STATES))
    if result.ending is not Ending.COMPLETE:
        pytest.skip("too large for the naive search")
    expected = naive.search(random_world(seed, truncates=True))

    assert (result.states, result.edges, result.depth, result.truncated) == expected[:4]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_vector_search_answers_like_the_plain_one(seed: int) -> None:
    def make() -> World:
        return random_world(seed, truncates=True)

    assert answered(make, "vector") == answered(make, "scalar")


@pytest.mark.parametrize("seed", range(12))
def test_two_workers_answer_like_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "FORK_FRONTIER", 3)

    def make() -> World:
        return random_world(seed)

    assert answered(make, "vector", workers=2) == answered(make, "scalar")


@pytest.mark.parametrize("seed", range(12))
def test_two_words_answer_like_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> World:
        return random_world(seed)

    expected = answered(make, "scalar")
    monkeypatch.setattr(layout, "WORD_BITS", (9, 40))

    assert answered(make, "vector") == expected


@pytest.mark.parametrize("seed", range(6))
def test_two_workers_and_two_words_answer_like_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> World:
        return random_world(seed)

    expected = answered(make, "scalar")
    monkeypatch.setattr(layout, "WORD_BITS", (9, 40))
    monkeypatch.setattr(driver, "FORK_FRONTIER", 3)

    assert answered(make, "vector", workers=2) == expected


@pytest.mark.parametrize("seed", range(20))
def test_stopping_at_the_first_violation_stops_at_the_same_place(seed: int) -> None:
    def make() -> World:
        return random_world(seed)

    assert answered(make, "vector", stop_at_violation=True) == answered(make, "scalar", stop_at_violation=True)
