"""A family of many instances answers from an index what a small one answers by looking; the two must not differ."""

from __future__ import annotations

from enum import Enum

from hypothesis import given
from hypothesis import strategies as st

from troth.spec.views import Members, Slot


class Place(Enum):
    AWAY = "away"
    HERE = "here"
    THERE = "there"


ABSENT = Slot(Place.AWAY, None)
MOVES = st.lists(st.tuples(st.integers(0, 30), st.sampled_from([Place.HERE, Place.THERE, None])), max_size=80)


@given(MOVES, st.integers(0, 80))
def test_a_large_family_answers_as_if_every_instance_were_looked_at(moves: list[tuple[int, Place | None]], asked_at: int) -> None:
    """Whenever the first question comes, and whatever moves after it."""
    family = Members({}, ABSENT)
    plain: dict[int, Place] = {}
    for number, (key, place) in enumerate(moves):
        if place is None:
            family = family.without(key)
            plain.pop(key, None)
        else:
            family = family.having(key, Slot(place, None))
            plain[key] = place
        if number < asked_at:
            continue
        for states in [(Place.HERE,), (Place.THERE,), (Place.HERE, Place.THERE)]:
            expected = tuple(sorted(key for key, state in plain.items() if state in states))

            assert family.within(*states) == expected
            assert family.count(*states) == len(expected)
            assert family.first(*states) == (expected[0] if expected else None)
        assert tuple(family) == tuple(sorted(plain))
