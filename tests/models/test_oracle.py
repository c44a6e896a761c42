"""The checker against an oracle that shares no code with it, on worlds that Hypothesis draws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.models import oracle
from tests.models.described import Claims, Described, built, claims, described
from tests.models.lassos import assert_fair_and_real
from troth.models import CheckResult, Limits, Verdict, check
from troth.models.vector import driver, layout

MOST_STATES = 400
MOST_PENDING = 9
"""Of which all subsets are tried."""

SCALAR, VECTOR = {"engine": "scalar"}, {"engine": "vector"}
MODES = (SCALAR, VECTOR)
CHECKED = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture])


def answers(result: CheckResult) -> dict[str, Any]:
    """The verdicts, and for each counterexample its states."""
    return {
        p.property.id: (p.verdict, p.vacuous, p.trace and [sorted(p.trace.system.spelled(s).items()) for s in p.trace.states])
        for p in result.properties
    }


def agree(of: Described, asked: Claims, mode: dict[str, Any]) -> CheckResult:
    """Check a new copy of the world, compare counts and the invariant with the oracle, and give the result."""
    found = oracle.search(of, MOST_STATES)
    assume(found is not None)
    assert found is not None
    result = check(built(of, asked), **mode)
    never = next(p for p in result.properties if p.property.id == "never")
    shortest = oracle.first_violation(of, found, asked)

    assert (result.states, result.edges, result.depth, result.truncated) == found.counts
    assert (never.verdict is Verdict.VIOLATED) == (shortest is not None)
    assert (len(never.trace.steps) if never.trace else None) == shortest
    return result


def assert_lively(of: Described, asked: Claims, result: CheckResult) -> None:
    """Liveness agrees with the definition, and every counterexample is one."""
    found = oracle.search(of, MOST_STATES)
    assert found is not None
    for claim, always in (("leads", False), ("often", True)):
        (verdict,) = [p.verdict for p in result.properties if p.property.id == claim]
        if result.truncated:
            assert verdict is Verdict.UNKNOWN
            continue
        if verdict is Verdict.VIOLATED:
            assert_fair_and_real(result, claim)
        if len(oracle.pending(of, found, asked, always=always)) <= MOST_PENDING:
            assert (verdict is Verdict.HOLDS) == oracle.leads_to(of, found, asked, always=always)


def asked_of(**size: int) -> Any:
    """A world and what to ask of it."""
    return described(**size).flatmap(lambda of: st.tuples(st.just(of), claims(of)))


@pytest.mark.parametrize("mode", MODES, ids=["scalar", "vector"])
@settings(CHECKED, max_examples=80)
@given(drawn=asked_of())
def test_a_search_counts_like_a_naive_one_and_finds_the_shortest_violation(mode: dict[str, Any], drawn: tuple[Described, Claims]) -> None:
    of, asked = drawn

    result = agree(of, asked, mode)

    if not result.truncated:
        for claim in ("leads", "often"):
            if next(p.verdict for p in result.properties if p.property.id == claim) is Verdict.VIOLATED:
                assert_fair_and_real(result, claim)


@pytest.mark.parametrize("mode", MODES, ids=["scalar", "vector"])
@settings(CHECKED, max_examples=120)
@given(drawn=asked_of(most_parties=2, most_links=1))
def test_liveness_is_decided_as_its_definition_says(mode: dict[str, Any], drawn: tuple[Described, Claims]) -> None:
    of, asked = drawn

    assert_lively(of, asked, agree(of, asked, mode))


@settings(CHECKED, max_examples=25)
@given(drawn=asked_of())
def test_two_workers_find_what_one_finds(drawn: tuple[Described, Claims]) -> None:
    of, asked = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "FORK_FRONTIER", 2)
        result = agree(of, asked, {"engine": "vector", "limits": Limits(workers=2)})

    assert answers(result) == answers(check(built(of, asked), engine="scalar"))


@settings(CHECKED, max_examples=25)
@given(drawn=asked_of())
def test_states_of_two_words_are_found_and_lassos_drawn_as_those_of_one(drawn: tuple[Described, Claims]) -> None:
    of, asked = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "WORD_BITS", (10, 63))
        result = agree(of, asked, VECTOR)

    assert answers(result) == answers(check(built(of, asked), engine="scalar"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=["scalar", "vector"])
@settings(CHECKED, max_examples=1500)
@given(drawn=st.one_of(asked_of(), asked_of(most_parties=2, most_links=1)))
def test_many_more_worlds_agree(mode: dict[str, Any], drawn: tuple[Described, Claims]) -> None:
    of, asked = drawn

    assert_lively(of, asked, agree(of, asked, mode))
