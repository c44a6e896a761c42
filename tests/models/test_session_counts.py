"""The session world against published counts: states, edges, depth and the shortest counterexamples of its injected faults."""

from __future__ import annotations

import pytest

from troth.models import Limits, Verdict, check
from troth.models.vector import layout
from troth.models.worlds.bench.session import session

SMALL = {
    (1, 1, 1, 1): (1_002, 4_190),
    (1, 1, 2, 2): (10_584, 58_803),
    (1, 2, 2, 2): (27_522, 168_090),
    (2, 1, 1, 1): (31_657, 156_885),
}


LARGE = {
    (2, 1, 2, 1): (83_041, 409_512, 40),
    (2, 2, 1, 1): (209_173, 1_307_493, 46),
    (2, 1, 1, 2): (496_170, 3_027_330, 42),
    (2, 1, 2, 2): (1_223_659, 7_467_853, 42),
}
HUGE = {(2, 2, 2, 2): (8_363_971, 62_268_279, 48), (2, 1, 1, 3): (20_261_286, 130_141_321, 51)}


@pytest.mark.parametrize("engine", ["scalar", "vector"])
@pytest.mark.parametrize("size", SMALL, ids=str)
def test_the_counts_agree(size: tuple[int, int, int, int], engine: str) -> None:
    result = check(session(**dict(zip("TRAC", size, strict=True))), engine=engine)

    assert (result.states, result.edges) == SMALL[size]
    assert result.verdict is Verdict.HOLDS


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", LARGE, ids=str)
def test_large_counts_agree_for_any_number_of_workers(size: tuple[int, int, int, int], workers: int) -> None:
    result = check(session(**dict(zip("TRAC", size, strict=True))), limits=Limits(workers=workers))

    assert (result.states, result.edges, result.depth) == LARGE[size]
    assert result.verdict is Verdict.HOLDS


@pytest.mark.parametrize("bits", [(25, 40), (20, 40), (13, 14)], ids=str)
def test_counts_agree_where_states_fill_their_words_to_the_last_bit(bits: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "WORD_BITS", bits)
    result = check(session(T=2, R=1, A=2, C=1), limits=Limits(workers=1))

    assert (result.states, result.edges, result.depth) == LARGE[2, 1, 2, 1]


@pytest.mark.slow
@pytest.mark.parametrize("size", HUGE, ids=str)
def test_huge_counts_agree(size: tuple[int, int, int, int]) -> None:
    result = check(session(**dict(zip("TRAC", size, strict=True))))

    assert (result.states, result.edges, result.depth) == HUGE[size]


def test_the_depth_agrees() -> None:
    assert check(session(T=1, R=1, A=2, C=2)).depth == 25


@pytest.mark.parametrize(
    ("bug", "size", "broken", "steps"),
    [
        (1, (1, 1, 2, 3), "OneCanonical", 11),
        (2, (1, 1, 2, 2), "SourceLive", 9),
        (2, (2, 2, 2, 2), "SourceLive", 11),
        (3, (1, 1, 1, 3), "NoAdmissionAfterAbort", 6),
    ],
)
def test_an_injected_fault_is_found_by_a_shortest_trace(bug: int, size: tuple[int, int, int, int], broken: str, steps: int) -> None:
    result = check(session(**dict(zip("TRAC", size, strict=True)), BUG=bug), limits=Limits(stop_at_violation=True))
    traces = {p.property.id: p.trace for p in result.properties if p.verdict is Verdict.VIOLATED}

    found = traces[broken]

    assert found is not None
    assert len(found.steps) == steps
