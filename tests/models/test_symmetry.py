"""Interchangeable parties: fewer states, the same answers, and no merging of what differs."""

from __future__ import annotations

from typing import Any

import pytest

from troth.models import Limits, Verdict, World, check
from troth.models.errors import WorldError
from troth.models.worlds.bench.session import session


def coins(*, symmetric: bool, times: tuple[int | None, int | None] = (1, 1)) -> World:
    """Two parties that take coins, each from a budget of its own, and a till that counts them all."""
    world = World("coins")
    till = world.party("till", lambda s, e: (s + 1, ()), initial=0, observe={"n": lambda s: s})
    takers = [world.party(f"t{i}", taker, initial=0, observe={"n": lambda s: s}) for i in range(2)]
    for taker_, count in zip(takers, times, strict=True):
        world.link(taker_, till, "line", capacity=1, full="blocks", lossy=1)
        world.may(taker_, "coin", times=count)
    world.always("sum", "no coin comes from nowhere", till.n <= takers[0].n + takers[1].n)
    world.never("two", "never two", till.n == 2)
    if symmetric:
        world.symmetric(takers)
    return world


def taker(state: int, event: Any) -> Any:
    """One coin, handed on."""
    from troth.spec.core import Send

    coin: Any = "coin"
    return (state + 1, (Send("line", coin),)) if state < 2 else None


@pytest.mark.parametrize("engine", ["scalar", "vector"])
def test_exchanging_parties_counts_once_and_changes_no_verdict(engine: str) -> None:
    whole = check(coins(symmetric=False), engine=engine)
    half = check(coins(symmetric=True), engine=engine)

    assert half.states < whole.states
    assert [(p.property.id, p.verdict) for p in half.properties] == [(p.property.id, p.verdict) for p in whole.properties]
    assert {p.property.id: len(p.trace.steps) for p in half.properties if p.trace} == {"two": 4}


def test_both_engines_choose_the_same_representatives() -> None:
    scalar, vector = (check(coins(symmetric=True), engine=engine) for engine in ("scalar", "vector"))

    assert (scalar.states, scalar.edges, scalar.depth) == (vector.states, vector.edges, vector.depth)
    for one, other in zip(scalar.properties, vector.properties, strict=True):
        assert (one.trace is None) == (other.trace is None)
        if one.trace and other.trace:
            assert [s.action.name for s in one.trace.steps] == [s.action.name for s in other.trace.steps]


def test_a_printed_trace_is_a_run_of_the_full_world() -> None:
    trace = next(p.trace for p in check(coins(symmetric=True)).properties if p.property.id == "two")
    assert trace is not None
    for before, step in zip(trace.states, trace.steps, strict=False):
        assert step.state in [target for target, _ in trace.system.successors(before)]


def test_a_party_with_a_budget_of_its_own_is_not_like_one_without() -> None:
    with pytest.raises(WorldError, match="t0, t1 are not interchangeable"):
        check(coins(symmetric=True, times=(1, None)))


def test_budgets_move_with_their_parties() -> None:
    # Were they left behind, a party that has spent its coin would be taken for one that has not.
    assert check(coins(symmetric=True)).properties[1].verdict is Verdict.VIOLATED


def test_several_parties_can_move_together() -> None:
    world = session(T=2, R=2, A=1, C=1, SYMMETRY=1)
    whole = check(session(T=2, R=2, A=1, C=1), limits=Limits(workers=1))
    half = check(world, limits=Limits(workers=1))

    assert (whole.states, whole.edges) == (209_173, 1_307_493)
    assert half.states < whole.states * 0.6
    assert half.verdict is Verdict.HOLDS


def pair(first: Any, second: Any, *, whens: tuple[int, int] = (9, 9), options: tuple[dict[str, Any], ...] = ({}, {})) -> World:
    """Two parties that count, each with a link to a third."""
    world = World("pair")
    end = world.party("end", lambda s, e: (s, ()), initial=0)
    members = [
        world.party("a", first, initial=0, observe={"n": lambda n: n}),
        world.party("b", second, initial=0, observe={"n": lambda n: n}),
    ]
    for member, when, option in zip(members, whens, options, strict=True):
        world.link(member, end, "line", **option)
        world.may(member, "go", when=member.n < when)
    world.symmetric(members)
    return world


def upto(most: int) -> Any:
    """Counts."""
    return lambda n, e: (n + 1, ()) if n < most else None


def test_parties_that_act_alike_are_taken_though_their_functions_are_two() -> None:
    assert check(pair(upto(3), upto(3))).states == 10


@pytest.mark.parametrize(
    ("world", "why"),
    [
        (lambda: pair(upto(1), upto(3)), "a, b are not interchangeable: in .*a.go"),
        (lambda: pair(upto(3), upto(3), whens=(1, 2)), "a, b are not interchangeable: in .*a.go"),
        (lambda: pair(upto(3), upto(3), options=({"lossy": True}, {})), "a>end:line has losses True, b>end:line has False"),
        (lambda: pair(upto(3), upto(3), options=({}, {"duplicating": True})), "a>end:line has duplicates False"),
        (lambda: pair(upto(3), upto(3), options=({}, {"capacity": 2})), "a>end:line has capacity 1, b>end:line has 2"),
    ],
)
def test_parties_that_differ_are_refused(world: Any, why: str) -> None:
    with pytest.raises(WorldError, match=why):
        check(world())


@pytest.mark.parametrize("which", [1, 2])
def test_a_property_that_tells_the_parties_apart_is_refused(which: int) -> None:
    world = pair(upto(3), upto(3))
    a, b = world.handles[1:3]
    one, other = (a, b) if which == 1 else (b, a)
    world.never("alone", "one never leads alone", (one.n == 2) & (other.n == 0))

    with pytest.raises(WorldError, match="property alone tells them apart"):
        check(world)


def test_a_step_property_that_tells_the_parties_apart_is_refused() -> None:
    world = pair(upto(3), upto(3))
    world.step("grows", "a does not move", world.handles[1].n.next == world.handles[1].n)

    with pytest.raises(WorldError, match="property grows tells them apart"):
        check(world)


def test_members_of_different_sizes_are_refused() -> None:
    world = World("w")
    a, b, c = (world.party(name, lambda s, e: (s, ()), initial=0) for name in "abc")

    with pytest.raises(WorldError, match="different sizes"):
        world.symmetric([[a, b], [c]])


@pytest.mark.slow
def test_the_large_session_with_interchangeable_receivers_has_its_published_counts() -> None:
    result = check(session(T=2, R=2, A=2, C=2, SYMMETRY=1))

    assert (result.states, result.edges, result.depth) == (4_793_815, 35_371_335, 48)
