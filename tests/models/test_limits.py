"""What a search says when it does not see everything, when a property cannot be evaluated, when a worker is lost."""

from __future__ import annotations

import os
from typing import Any

import pytest

from troth.models import Limits, Verdict, World, check, exploration, scalar
from troth.models.errors import ComponentFailed, TooWide
from troth.models.exploration import Ending, Progress
from troth.models.vector import driver, layout, parallel, table
from troth.models.worlds.bench.session import session
from troth.spec.errors import TrothError

ENGINES = ["scalar", "vector"]


def counters(*sizes: int) -> World:
    """Counters that count round, each by itself: as many states as the product of the sizes."""
    world = World("counters")
    for place, size in enumerate(sizes):

        def step(state: int, event: Any, size: int = size) -> Any:
            return (state + 1) % size, ()

        world.may(world.party(f"c{place}", step, initial=0, observe={"n": lambda s: s}), "up")
    return world


@pytest.mark.parametrize("engine", ENGINES)
def test_too_many_states_is_unknown_and_not_holds(engine: str) -> None:
    world = counters(10, 10, 10)
    world.always("A", "it is small", world.handles[0].see("n") < 10)
    result = check(world, engine=engine, limits=Limits(max_states=100))

    assert (result.verdict, result.ending) == (Verdict.UNKNOWN, Ending.STATES)
    assert result.properties[0].verdict is Verdict.UNKNOWN
    assert result.reason == result.properties[0].reason == "stopped at 100 states, the limit given"
    assert (result.states, result.depth) == (100, 6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_world_of_exactly_as_many_states_as_the_limit_is_searched_to_its_end(engine: str) -> None:
    assert check(counters(10, 10), engine=engine, limits=Limits(max_states=100)).verdict is Verdict.HOLDS
    assert check(counters(10, 10), engine=engine, limits=Limits(max_states=99)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("limit", [1, 2, 57, 800, 999])
def test_where_a_search_stops_depends_neither_on_the_engine_nor_on_the_workers(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that was cut short: all its states are looked at, none of its edges is counted, no finding on an edge is reported."""
    monkeypatch.setattr(driver, "FORK_FRONTIER", 20)
    monkeypatch.setattr(driver, "CHUNK", 16)
    monkeypatch.setattr(parallel, "CHUNK", 16)

    def stopped(engine: str, workers: int) -> Any:
        world = counters(10, 10, 10)
        a, b, c = world.handles
        world.always("A", "not all are 4", ~((a.see("n") == 4) & (b.see("n") == 4) & (c.see("n") == 4)))
        world.step("S", "it goes up from 7", (a.see("n") != 7) | (b.see("n").next >= b.see("n")))
        result = check(world, engine=engine, limits=Limits(max_states=limit, workers=workers))
        assert (result.ending, result.states) == (Ending.STATES, limit)
        claims = [(r.verdict, r.reason, r.trace and r.trace.states) for r in result.properties]
        return result.edges, result.depth, [(v, why, trace and [result.system.spelled(s) for s in trace]) for v, why, trace in claims]

    plain = stopped("scalar", 1)
    for workers in (1, 2, 3):
        assert stopped("vector", workers) == plain


def test_the_plain_engine_goes_on_while_the_end_is_near_and_gives_up_where_levels_grow() -> None:
    """By counts that are the same in every run, never by the clock."""
    assert check(session.build(T=1)).engine == "scalar"
    assert check(session.build(T=1)).states == 10_584
    growing = check(session.build(), limits=Limits(max_states=20_000, workers=1))
    assert (growing.engine, growing.states) == ("vector", 20_000)

    impatient = scalar.Patience(most=50)
    assert scalar.explore_if_small(counters(10, 10).system(), [], Limits(), patience=impatient) is None
    asked = scalar.explore_if_small(counters(10, 10).system(), [], Limits(max_states=50), patience=impatient)
    assert asked is not None
    assert (asked.ending, asked.states) == (Ending.STATES, 50)
    assert scalar.explore_if_small(counters(10, 10).system(), [], Limits(), patience=scalar.Patience(states=10, edges=20)) is None


def test_a_violation_found_before_the_limit_is_a_violation() -> None:
    world = counters(10, 10, 10)
    world.always("A", "it is small", world.handles[0].see("n") < 2)

    assert check(world, limits=Limits(max_states=100)).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("workers", [1, 2])
def test_memory_is_bounded_before_it_runs_out(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "FORK_FRONTIER", 500)
    result = check(counters(60, 60, 60), engine="vector", limits=Limits(max_bytes=1 << 21, workers=workers))

    assert (result.verdict, result.ending) == (Verdict.UNKNOWN, Ending.MEMORY)
    assert "before memory ran out" in result.reason


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("bad", "depth"), [(0, 0), (3, 3)])
def test_a_property_that_raises_is_an_error_with_the_state_shown(engine: str, bad: int, depth: int) -> None:
    def broken(state: int) -> bool:
        if state == bad:
            raise ZeroDivisionError("no")
        return True

    world = counters(6, 2)
    world.always("A", "it can be evaluated", world.handles[0].where(broken) & world.handles[1].where(lambda s: True))
    world.always("B", "another one", world.handles[1].see("n") < 2)
    result = check(world, engine=engine)

    assert result.verdict is Verdict.ERROR
    first, second = result.properties
    assert first.verdict is Verdict.ERROR
    assert first.reason.endswith(f"test_limits.py:{broken.__code__.co_firstlineno + 2}: ZeroDivisionError: no")
    assert first.trace is not None
    assert len(first.trace.steps) == depth
    assert second.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_is_not_a_truth(engine: str) -> None:
    world = counters(3, 2)
    a, b = world.handles
    world.always("A", "a number where a bool is needed", a.see("n") & (b.see("n") == 0))
    result = check(world, engine=engine)

    assert result.verdict is Verdict.ERROR
    assert "compare it first" in result.properties[0].reason


@pytest.mark.parametrize("engine", ENGINES)
def test_what_holds_only_because_nothing_happens_is_vacuous(engine: str) -> None:
    world = counters(3, 2)
    a, b = world.handles
    world.always("never asked", "if it is 7 then", (a.see("n") == 7) >> (b.see("n") == 0))
    world.always("asked", "if it is 2 then", (a.see("n") == 2) >> (b.see("n") < 2))

    assert check(world, engine=engine).vacuous == ("never asked",)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sometimes_that_never_is_is_violated(engine: str) -> None:
    world = counters(3)
    world.sometimes("S", "it gets to 3", world.handles[0].see("n") == 3)

    assert check(world, engine=engine).verdict is Verdict.VIOLATED


def test_a_state_that_no_two_words_hold_names_the_widest_component(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "WORD_BITS", (3, 3))
    world = counters(2, 9, 3)

    with pytest.raises(TooWide, match=r"needs 7 bits and two words have 6; .* c1 \(9 local states, 4 bits\)"):
        check(world, engine="vector")


def test_a_worker_that_dies_is_an_error_and_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "FORK_FRONTIER", 20)
    home = os.getpid()

    def step(state: int, event: Any) -> Any:
        if state == 25 and os.getpid() != home:
            os._exit(9)
        return (state + 1) % 40, ()

    world = counters(20, 20)
    world.may(world.party("mortal", step, initial=0), "up")

    with pytest.raises(TrothError, match="a worker process is gone"):
        check(world, engine="vector", limits=Limits(workers=2))


def test_what_a_step_raises_in_a_worker_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "FORK_FRONTIER", 20)

    def step(state: int, event: Any) -> Any:
        return (state + 1 if state < 25 else 1 // 0), ()

    world = counters(20, 20)
    world.may(world.party("broken", step, initial=0), "up")

    with pytest.raises(ComponentFailed, match="broken raised ZeroDivisionError"):
        check(world, engine="vector", limits=Limits(workers=2))


def test_progress_names_phase_states_frontier_and_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration.Ticker.__init__, "__defaults__", (0.0,))
    seen: list[Progress] = []
    check(counters(9, 9, 9), engine="vector", report=seen.append)

    assert {p.phase for p in seen} == {"exploring"}
    assert [p.depth for p in seen] == sorted(p.depth for p in seen)
    assert seen[-1].states == 729


def test_a_table_keeps_every_key_while_it_grows_where_it_is() -> None:
    import numpy as np

    random = np.random.default_rng(7)
    states = random.integers(1 << 40, size=400_000, dtype=np.uint64) | layout.MARK
    distinct = np.unique(states)
    seen = table.Table(1, 1 << 22)
    new = [seen.insert((part,))[0] for part in np.array_split(states, 40)]
    again = [seen.insert((part,))[0] for part in np.array_split(states, 7)]
    new.append(seen.flush()[0])

    assert seen.slots > 1 << 18
    assert seen.count == len(distinct)
    assert np.array_equal(np.sort(np.concatenate(new + again)), distinct)
    assert np.array_equal(np.sort(seen.all()[0]), distinct)


def test_a_full_table_of_two_words_keeps_states_that_differ_in_either() -> None:
    import numpy as np

    random = np.random.default_rng(8)
    low = random.integers(300, size=200_000, dtype=np.uint64) | layout.MARK
    high = random.integers(300, size=200_000, dtype=np.uint64)
    seen = table.Table(2, 1 << 20)
    new = [seen.insert((a, b)) for a, b in zip(np.array_split(low, 20), np.array_split(high, 20), strict=True)]
    new.append(seen.flush())
    expected = np.unique(np.stack([low, high]), axis=1).shape[1]

    assert seen.count == expected
    assert sum(len(part[0]) for part in new) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_whose_last_level_did_not_fit_is_not_complete(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "FORK_FRONTIER", 1)
    monkeypatch.setattr(table, "FIRST_SLOTS", 64)

    def scatter(state: int, event: Any) -> Any:
        return [(n, ()) for n in range(1, 300)] if state == 0 else None

    world = World("wide")
    world.may(world.party("p", scatter, initial=0), "go")
    result = check(world, engine="vector", limits=Limits(max_bytes=1024, workers=workers))

    assert (result.verdict, result.ending) == (Verdict.UNKNOWN, Ending.MEMORY)


def test_a_remainder_is_only_given_while_levels_shrink() -> None:
    seen: list[Progress] = []
    ticker = exploration.Ticker(seen.append, 0.0)
    for depth, width in enumerate([1, 10, 100, 50, 25, 12]):
        ticker.last_states = 0
        ticker.tick("exploring", 100, 0, width, depth)

    assert [p.remaining_s is not None for p in seen] == [False, False, False, False, True, True]


def test_states_in_the_order_of_their_hashes_do_not_crowd_a_table_that_expects_them() -> None:
    import numpy as np

    random = np.random.default_rng(9)
    states = np.unique(random.integers(1 << 50, size=300_000, dtype=np.uint64) | layout.MARK)
    first = table.Table(1, 1 << 22)
    for part in np.array_split(states, 10):
        first.insert((part,))
    second = table.Table(1, 1 << 22, first.count)
    second.insert((np.array_split(first.all()[0], 10)[0],))
    second.flush()
    late = np.flatnonzero(second.keys[0][: second.slots + table.PAD]) - second._home(second.all())

    assert first.count == len(states)
    assert late.max() < 200
