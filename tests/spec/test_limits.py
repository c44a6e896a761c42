"""Limits and messages: every number has a bound, and inner limits stay below the outer ones."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import attrs
import pytest

from troth.spec import messages
from troth.spec.codec import classes_in
from troth.spec.core import Message
from troth.spec.errors import DeclarationError, LimitOrder
from troth.spec.limits import ORDER, Limits
from troth.spec.samples import sample

DURATIONS = [f.name for f in attrs.fields(Limits) if f.metadata["unit"] == "s"]
COUNTS = [f.name for f in attrs.fields(Limits) if f.metadata["unit"] == "count"]


def test_the_defaults_are_in_order() -> None:
    """Nothing to say about them."""
    limits = Limits()
    for inner, outer, _ in ORDER:
        assert sum(getattr(limits, name) for name in inner) < getattr(limits, outer)


@pytest.mark.parametrize(("inner", "outer", "why"), ORDER, ids=[f"{'+'.join(inner)}<{outer}" for inner, outer, _ in ORDER])
def test_an_inner_limit_that_is_not_below_its_outer_one_is_named(inner: tuple[str, ...], outer: str, why: str) -> None:
    """With both numbers and the reason: equal is not below."""
    total = sum(getattr(Limits(), name) for name in inner)
    with pytest.raises(LimitOrder) as caught:
        Limits(**{outer: total})

    assert f"{' + '.join(inner)} must be less than {outer}: {total:g} is not below {total:g}; {why}" in str(caught.value)
    assert isinstance(caught.value, DeclarationError)


@pytest.mark.parametrize("name", DURATIONS)
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "5"])
def test_a_duration_is_a_finite_number_above_zero(name: str, value: Any) -> None:
    """Named in the error, with what was given."""
    with pytest.raises(ValueError, match=f"{name}: must be a finite number of seconds above 0.*, got {value!r}"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 2**31, 1.0, True])
def test_a_count_is_an_int_within_its_bounds(name: str, value: Any) -> None:
    """Named in the error, with what was given."""
    with pytest.raises(ValueError, match=f"{name}: must be an int from 1 to .*, got {value!r}"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", DURATIONS)
def test_only_a_limit_that_says_so_may_be_none(name: str) -> None:
    """Where something else bounds the wait."""
    unlimited = attrs.fields_dict(Limits)[name].metadata["unlimited"]
    none: dict[str, Any] = {name: None}
    if unlimited:
        assert getattr(Limits(**none), name) is None
    else:
        with pytest.raises(ValueError, match=f"{name}: must be a finite number"):
            Limits(**none)


@pytest.mark.parametrize("name", [*DURATIONS, *COUNTS])
def test_every_limit_says_what_it_is_for(name: str) -> None:
    """And its unit is in its name where it has one."""
    attribute = attrs.fields_dict(Limits)[name]

    assert attribute.metadata["why"]
    assert name.endswith("_s") == (attribute.metadata["unit"] == "s")


def fields() -> list[Any]:
    """Every field of every message and payload that can be made."""
    found = []
    for cls in classes_in(messages):
        if attrs.has(cls) and cls.__doc__:
            found += [pytest.param(cls, f, id=f"{cls.__name__}.{f.name}") for f in attrs.fields(cls) if f.metadata or f.validator]
    return found


@pytest.mark.parametrize(("cls", "f"), fields())
def test_no_message_can_be_made_with_a_wrong_field(cls: type, f: attrs.Attribute[Any]) -> None:
    """Outside its bounds, of another type, a bool for an int, an int for a bool, a member of another enum."""

    class Other(Enum):
        THING = "thing"

    good: Any = sample(cls)
    wrong: list[Any] = [None, 0.5, "1", Other.THING, b"", -1, 2**63]
    wrong.append(0 if isinstance(getattr(good, f.name), bool) else False)
    if f.metadata:
        wrong += [f.metadata["low"] - 1, f.metadata["high"] + 1]
        assert attrs.evolve(good, **{f.name: f.metadata["high"]}) != good or f.metadata["high"] == f.metadata["low"]
    for value in wrong:
        with pytest.raises(ValueError, match=rf"{cls.__name__}.{f.name}: must be an? .*, got "):
            attrs.evolve(good, **{f.name: value})


def test_every_message_is_frozen_and_says_who_says_what() -> None:
    """A message's docstring is its meaning."""
    for cls in classes_in(messages):
        assert cls.__doc__
        if issubclass(cls, Message):
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                sample(cls).epoch = 1  # type: ignore[attr-defined]
