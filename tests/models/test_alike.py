"""Values that Python holds equal but that are not the same thing: the checker must not take one for the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from troth.models import Give, World, check
from troth.models.canonical import alike
from troth.models.errors import NotCanonical
from troth.spec.core import Called, Received


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
