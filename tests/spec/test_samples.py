"""Samples: the smallest message, with which a party is checked."""

from __future__ import annotations

from enum import Enum
from typing import Any

import attrs
import pytest
from attrs import field, frozen

from troth.spec import called, messages, received
from troth.spec.core import Message
from troth.spec.errors import BadRow
from troth.spec.samples import sample


class Size(Enum):
    """An enum."""

    SMALL = "small"
    LARGE = "large"


@frozen(kw_only=True)
class Parcel(Message):
    """A message with bounds and defaults."""

    weight: int = field(metadata={"low": 3})
    fragile: bool
    size: Size
    note: str = "none"
    count: int = 7


def test_a_sample_has_the_smallest_value_of_every_field() -> None:
    """The lower bound where there is one; a default only where no smallest is known."""
    assert sample(Parcel) == Parcel(weight=3, fragile=False, size=Size.SMALL, note="none", count=0)


def test_a_field_may_be_private() -> None:
    """attrs drops the underscore in the constructor."""

    @frozen
    class Sealed:
        _number: int

    assert sample(Sealed) == Sealed(0)


@pytest.mark.parametrize("hint", [str, tuple[int, ...]])
def test_a_field_of_which_no_sample_is_known_is_named(hint: Any) -> None:
    """With what to do about it."""
    cls = attrs.make_class("Letter", {"text": field(type=hint)}, bases=(Message,), kw_only=True, frozen=True)
    with pytest.raises(BadRow, match=r"Letter.text: no sample of .* is known; use int, bool or an enum, or give a default"):
        received(cls, link="post")


def test_a_default_that_is_made_anew_is_no_sample() -> None:
    """It could be anything."""

    @frozen
    class Letter:
        pages: list[int] = field(factory=list)

    with pytest.raises(BadRow, match=r"Letter.pages: no sample of list\[int\] is known"):
        called("post", payload=Letter)


def test_a_payload_is_an_attrs_class() -> None:
    """Nothing else has fields to look at."""
    with pytest.raises(BadRow, match="dict: a message or payload must be a frozen attrs class"):
        called("post", payload=dict)


def test_every_message_that_is_routed_has_a_sample() -> None:
    """With its bounds: a sequence begins at 1."""
    assert sample(messages.TaskReady).seq == 1
