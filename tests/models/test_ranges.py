"""Numbers that do not fit: joint states beyond a word, observations beyond 2**53, answers beyond a table's field, states without a hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from troth.models import CheckResult, Expr, Verdict, World, check, jointly
from troth.models.errors import WorldError
from troth.spec.core import Send

ENGINES = ["scalar", "vector"]


def chain(length: int) -> World:
    """Counters of 0 to 15, one after the other: 4 bits each, 15 states for each."""
    world = World("chain")
    counters: list[Any] = []
    for place in range(length):
        counters.append(world.party(f"c{place}", lambda n, event: (n + 1, ()) if n < 15 else None, initial=0, observe={"n": lambda n: n}))
        world.may(counters[-1], "up", when=counters[place - 1].n == 15 if place else None)
    return world


@pytest.mark.parametrize("length", [15, 16, 17])
@pytest.mark.parametrize("looked", [0, -1])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_joint_predicate_sees_every_component_however_many_bits_they_take(engine: str, looked: int, length: int) -> None:
    """60 bits are one key word; 64 and 68 are two."""
    world = chain(length)
    parties: Any = world.handles
    world.never("NINE", "it is never 9", jointly(lambda *ns: ns[looked] == 9, *parties))
    world.always("SORTED", "they go one after the other", jointly(lambda *ns: list(ns) == sorted(ns, reverse=True), *parties))
    result = check(world, engine=engine)

    assert result.states == 15 * length + 1
    assert [p.verdict for p in result.properties] == [Verdict.VIOLATED, Verdict.HOLDS]
    trace = result.properties[0].trace
    assert trace is not None
    assert len(trace.steps) == (9 if looked == 0 else 15 * (length - 1) + 9)


def test_pairs_of_key_words_are_numbered_alike_exactly_where_they_are_equal() -> None:
    from troth.models.vector.predicates import _numbered_pairs

    most = (1 << 63) - 1
    left = np.array([most, most, 0, 0, most], np.int64)
    right = np.array([most, 0, most, 0, most], np.int64)
    numbers = _numbered_pairs(left, right).tolist()

    assert numbers[0] == numbers[4]
    assert len(set(numbers)) == 4
    assert 0 <= min(numbers) <= max(numbers) < 25


def two(engine: str, high: int, claim: Any, low: int = 0) -> CheckResult:
    """Two parties that go from 0 to 2, of which ``n`` is ``high`` at the end and ``low`` before, and ``t`` always true."""
    world = World("two")
    sees = {"n": lambda n: high if n == 2 else low, "t": lambda n: True, "s": lambda n: n}
    a, b = (world.party(n, lambda n, event: (n + 1, ()) if n < 2 else None, initial=0, observe=sees) for n in "ab")
    world.may(a, "go")
    world.may(b, "go")
    world.always("P", "", claim(a, b))
    return check(world, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("high", [2**53 + 1, -(2**53) - 1, 2**62, -(2**62), 1 - 2**62, 2**63, 2**70])
@pytest.mark.parametrize("claim", [lambda a, b: a.n <= b.n + 1, lambda a, b: a.n + b.n >= 0, lambda a, b: a.n != b.s + 7])
def test_an_observation_out_of_range_is_an_error_that_names_it(engine: str, high: int, claim: Any) -> None:
    result = two(engine, high, claim)

    assert result.verdict is Verdict.ERROR
    assert f".n gave {high}; numbers in properties go from -2**53 to 2**53" in result.properties[0].reason


@pytest.mark.parametrize("engine", ENGINES)
def test_the_largest_numbers_are_compared_as_they_are_and_their_sum_is_an_error(engine: str) -> None:
    assert two(engine, 2**53, lambda a, b: (a.n <= b.n) | (a.n == 2**53)).verdict is Verdict.HOLDS
    assert two(engine, -(2**53), lambda a, b: a.n - 2**53 + 2**53 == a.n, low=1).verdict is Verdict.ERROR
    wrapped = two(engine, 2**53, lambda a, b: a.n + b.n >= 0)
    assert wrapped.verdict is Verdict.ERROR
    assert f"`a.n + b.n` gave {2**54}" in wrapped.properties[0].reason


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_sum_does_not_wrap(engine: str) -> None:
    def claim(a: Any, b: Any) -> Expr:
        total: Expr = a.n + b.n
        for _ in range(10):
            total = total + total
        return total >= 0

    assert two(engine, 2**52, claim).verdict is Verdict.ERROR
    assert two(engine, 2**40, claim).verdict is Verdict.HOLDS


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "claim",
    [
        lambda a, b: a.t & b.t & 2,
        lambda a, b: a.t & b.t & 1,
        lambda a, b: (a.s + b.s + 1) | a.t,
        lambda a, b: a.t ^ b.s,
        lambda a, b: (a.s ^ b.s) == 0,
        lambda a, b: (a.s ^ 3) >= 0,
        lambda a, b: ~(a.s + b.s),
        lambda a, b: a.s - b.s,
        lambda a, b: b.t >> (a.s + b.s),
        lambda a, b: jointly(lambda x, y: x + y, a, b) & True,
    ],
)
def test_a_number_where_a_bool_is_needed_is_an_error_in_both_engines(engine: str, claim: Any) -> None:
    assert two(engine, 0, claim).verdict is Verdict.ERROR


@pytest.mark.parametrize("engine", ENGINES)
def test_bools_are_counted_and_not_or_ed(engine: str) -> None:
    assert two(engine, 0, lambda a, b: (a.s == b.s) + (b.s == a.s) != 1).verdict is Verdict.HOLDS
    assert two(engine, 0, lambda a, b: (a.s <= b.s) - (b.s > a.s) >= 0).verdict is Verdict.HOLDS
    assert two(engine, 0, lambda a, b: (a.s < 3) + (b.s < 3) == 2).verdict is Verdict.HOLDS
    assert two(engine, 0, lambda a, b: (a.t ^ b.t) == 0).verdict is Verdict.HOLDS


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_without_a_hash_is_an_error_that_names_party_and_state(engine: str) -> None:
    world = World("w")
    world.may(world.party("shelf", lambda n, event: ([1, 2], ()), initial=0), "go")

    with pytest.raises(WorldError, match=r"shelf .*\[1, 2\].* cannot be numbered"):
        check(world, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_message_without_a_hash_is_an_error_that_names_the_receiver_and_the_message(engine: str) -> None:
    message: Any = {"one": 2}
    world = World("w")
    one = world.party("one", lambda n, event: (n, [Send("other", message)]), initial=0)
    other = world.party("other", lambda n, event: (n, ()), initial=0)
    world.link(one, other)
    world.may(one, "go")

    with pytest.raises(WorldError, match=r"other .*\{'one': 2\}.* cannot be numbered"):
        check(world, engine=engine)


def many(alternatives: int, others: int = 0) -> World:
    """One step with so many alternatives, and ``others`` more actions of the same party that have none."""
    world = World("many")
    party = world.party("chooser", lambda n, event: [(i, ()) for i in range(1, alternatives + 1)] if n == 0 else None, initial=0)
    for place in range(others + 1):
        world.may(party, f"go{place}")
    return world


@pytest.mark.parametrize("others", [0, 1])
def test_more_alternatives_than_a_table_counts_are_an_error_that_names_the_party(others: int) -> None:
    alternatives = (1 << 15) // (others + 1)
    with pytest.raises(WorldError, match="chooser: more than 32,767 alternatives"):
        check(many(alternatives, others), engine="vector")


def test_so_many_alternatives_of_one_answer_are_an_error_in_the_stages_too() -> None:
    from troth.models.vector.stages import Stage

    system = many(1 << 15).system()
    with pytest.raises(WorldError, match="chooser: more than 32,767 alternatives"):
        Stage(system, 0).keys(np.array(system.roots, np.int32), np.zeros(1, np.int64))
