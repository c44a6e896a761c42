"""Values that Python holds equal but that are not the same thing: the checker must not take one for the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from attrs import field, frozen

from troth.models import Give, World, check
from troth.models.canonical import alike
from troth.models.errors import NotCanonical
from troth.spec.core import Called, Received, Send


class Put(NamedTuple):
    amount: int


class Take(NamedTuple):
    amount: int


def test_a_message_is_not_taken_for_an_equal_one_of_another_class() -> None:
    world = World("till")
    customer = world.party("customer", lambda n, e: (n, (Give("till", Put(1) if e.call == "put" else Take(1)),)), initial=0)
    world.party("till", lambda n, e: (n + 1 if isinstance(e, Put) else n - 1, ()) if abs(n) < 3 else None, initial=0)
    world.may(customer, "put")
    world.may(customer, "take")

    with pytest.raises(NotCanonical, match=r"till.*Put.*Take"):
        check(world)


def test_a_state_is_not_taken_for_an_equal_one_of_another_class() -> None:
    world = World("flag")
    flag = world.party("flag", lambda n, e: (True if n == 1 else n + 1, ()), initial=0)
    world.may(flag, "raise")

    with pytest.raises(NotCanonical, match="flag"):
        check(world)


@frozen
class Hiding:
    shown: int
    hidden: int = field(eq=False, default=0)


class Own:
    """Equal to every other of its kind."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (frozenset({1}), frozenset({True})),
        (frozenset({(1,)}), frozenset({(True,)})),
        ((frozenset({frozenset({1})}),), (frozenset({frozenset({True})}),)),
        (frozenset({Put(1)}), frozenset({Take(1)})),
        (Hiding(1, 1), Hiding(1, 2)),
        (0.0, -0.0),
        (Own(1), Own(2)),
        (float("nan"), float("nan")),
    ],
)
@pytest.mark.parametrize("sent", [False, True])
def test_what_python_calls_equal_is_refused_where_it_differs(x: Any, y: Any, *, sent: bool) -> None:
    world = World("pair")
    letter: Any = Send
    if sent:
        source = world.party("source", lambda n, e: (n, (letter("way", x if e.call == "x" else y),)), initial=0)
        world.link(source, world.party("sink", lambda n, e: (n, ()), initial=0), "way", capacity=1)
    else:
        source = world.party("source", lambda n, e: (x if e.call == "x" else y, ()), initial=0)
    world.may(source, "x")
    world.may(source, "y")

    with pytest.raises(NotCanonical, match="source"):
        check(world)


def test_equal_messages_of_two_kinds_are_both_delivered_from_a_bag() -> None:
    world = World("bag")
    letter: Any = Send
    source = world.party("source", lambda n, e: (1, (letter("way", 1), letter("way", True))) if n == 0 else None, initial=0)
    sink = world.party("sink", lambda n, e: ("bool" if e.message is True else "int", ()), initial="", observe=lambda n: {"b": n == "bool"})
    world.link(source, sink, "way", capacity=2, ordered=False)
    world.may(source, "go")
    world.never("b", "no True", sink.b)

    with pytest.raises(NotCanonical):
        check(world)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1, True),
        (1, True, False),
        ((1, (2,)), (1, (2,)), True),
        ((1, (0,)), (1, (False,)), False),
        (Put(1), Put(1), True),
        (Put(1), Take(1), False),
        (Put(1), (1,), False),
        (Called("a", 1), Called("a", 1), True),
        (Called("a", 1), Called("a", True), False),
        (Received("a", Put(1)), Received("a", Take(1)), False),  # type: ignore[arg-type]
    ],
)
def test_alike_looks_at_the_classes_all_through(one: Any, other: Any, *, same: bool) -> None:
    assert one == other
    assert alike(one, other) is same
