"""What cannot be carried is refused before anything is sent: where it is, what it is, and what to do about it."""

from __future__ import annotations

import collections
import decimal
import enum
import re
from pathlib import PurePath
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.payloads.trees import keys, trees
from troth.runtime.errors import PayloadRefused
from troth.runtime.payloads import encode


class Level(enum.IntEnum):
    LOW = 1


class Tensor:
    def __array__(self) -> Any:
        raise AssertionError("nothing is converted")


Pair = collections.namedtuple("Pair", "a b")

REFUSED: dict[str, tuple[Any, str]] = {
    "an object array": (np.array([1, None]), "object arrays cannot be carried; give it a numeric or string dtype"),
    "an object array of none": (np.empty(0, object), "object arrays"),
    "a decimal": (decimal.Decimal(1), "a decimal.Decimal cannot be carried"),
    "a structured array": (np.zeros(2, [("a", "i4"), ("b", "f8")]), "structured arrays cannot be carried; send an array a field"),
    "a structured scalar": (np.zeros(2, [("a", "i4")])[0], "structured arrays"),
    "raw memory": (np.zeros(2, "V2"), "dtype void16 cannot be carried; send their bits, for instance x.view(np.uint16)"),
    "a masked array": (np.ma.masked_array([1, 2], [True, False]), "masked arrays cannot be carried; send x.filled()"),
    "a matrix": (np.zeros((2, 2)).view(np.matrix), "arrays of the subclass matrix cannot be carried; send np.asarray"),
    "a record array": (np.zeros(2).view(np.recarray), "the subclass recarray"),
    "strings without a width": (np.array(["a"], np.dtypes.StringDType()), "without a fixed width cannot be carried; send x.astype('U')"),
    "a dtype with metadata": (np.zeros(2, np.dtype("f4", metadata={"unit": "m"})), "metadata of dtype float32 cannot be carried"),
    "too many dimensions": (np.zeros((1,) * 33), "more than 32 dimensions"),
    "an int of 65 bits": (2**63, "an int of more than 64 bits cannot be carried; send it as a str"),
    "an int of 65 bits below": (-(2**63) - 1, "an int of more than 64 bits"),
    "an int enum": (Level.LOW, "Level cannot be carried; send int(x)"),
    "a set": ({1}, "a set cannot be carried; send what it holds as"),
    "a complex": (1j, "a complex cannot be carried"),
    "a bytearray": (bytearray(b"a"), "a bytearray cannot be carried"),
    "an ordered dict": (collections.OrderedDict(), "OrderedDict cannot be carried; send dict(x)"),
    "a named tuple": (Pair(1, 2), "Pair cannot be carried; send tuple(x)"),
    "a path": (PurePath("x"), "PurePosixPath cannot be carried"),
    "a tensor": (Tensor(), "Tensor cannot be carried; send np.asarray(x)"),
    "a lone surrogate": ("\ud800", "a string that UTF-8 cannot carry"),
    "a numpy string with one": (np.str_("\udfff"), "a string that UTF-8 cannot carry"),
    "a key that is an int": ({3: 1}, "[3]: keys must be str, this one is int; use str(key)"),
    "a key that is a numpy string": ({np.str_("a"): 1}, "keys must be str, this one is numpy.str_"),
    "a key with a lone surrogate": ({"\ud800": 1}, r"['\ud800']: a key that UTF-8 cannot carry"),
    "a key that is too long": ({"k" * 513: 1}, "kkk...]: a key of 513 characters; 512 are the most"),
}


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_carried_is_refused_with_the_way_out(value: Any, why: str) -> None:
    with pytest.raises(PayloadRefused, match=re.escape(why)):
        encode(value)


@pytest.mark.parametrize("value", [value for value, _ in REFUSED.values()], ids=REFUSED)
def test_a_refusal_says_where_by_the_keys_that_lead_there(value: Any) -> None:
    tree = {"layer": [np.zeros(2), ({"w": value}, 1)], "good": np.zeros(2)}

    with pytest.raises(PayloadRefused) as caught:
        encode(tree, name="params")

    assert str(caught.value).startswith("params['layer'][1][0]['w']")


@settings(max_examples=100)
@given(trees, st.lists(keys, max_size=3), st.sampled_from([value for value, _ in REFUSED.values()]))
def test_one_bad_value_anywhere_refuses_the_whole_tree(good: Any, way: list[str], bad: Any) -> None:
    tree = bad
    for key in way:
        tree = {"first": good, key: tree} if key != "first" else {key: tree, "then": good}
    place = "".join(f"[{key!a}]" for key in reversed(way))

    with pytest.raises(PayloadRefused) as caught:
        encode(tree)

    assert str(caught.value).startswith(f"payload{place}")


def test_trees_are_32_deep_at_the_most() -> None:
    tree: Any = 1
    for _ in range(32):
        tree = [tree]
    encode(tree)

    with pytest.raises(PayloadRefused, match=r"payload\['a'\]\[0\]\[0\].*: nested more than 32 deep; flatten it"):
        encode({"a": tree})


def test_a_tree_that_contains_itself_is_told_apart_from_a_deep_one() -> None:
    loop: dict[str, Any] = {"a": [1]}
    loop["a"].append({"back": loop})

    with pytest.raises(PayloadRefused, match="payload: it contains itself"):
        encode(loop)


def test_a_tree_that_shares_its_branches_cannot_explode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of thirty lists holds the next one twice: a thousand million values."""
    tree: Any = [1]
    for _ in range(30):
        tree = [tree, tree]

    monkeypatch.setattr("troth.runtime.payloads.tree.MAX_VALUES", 5000)
    with pytest.raises(PayloadRefused, match="more than 5000 values; put numbers into an array"):
        encode(tree)


def test_a_tree_of_too_many_plain_numbers_belongs_into_an_array() -> None:
    with pytest.raises(PayloadRefused, match=r"params: without its arrays it takes \d+ bytes, \d+ are the most; put numbers into an array"):
        encode(["a number"] * 260_000, name="params")


def test_too_many_arrays_are_refused() -> None:
    with pytest.raises(PayloadRefused, match=r"payload\[16384\]: more than 16384 arrays and long strings"):
        encode([np.zeros(1)] * 16_385)


def test_a_payload_that_is_too_large_is_refused_before_it_is_copied() -> None:
    endless = np.broadcast_to(np.float64(0), (2**40,))

    with pytest.raises(PayloadRefused, match=r"payload\['w'\]: with this the payload has 8796093022208 bytes, 68719476736 are the most"):
        encode({"w": endless})
    with pytest.raises(PayloadRefused, match=r"with this the payload has 101 bytes, 100 are the most"):
        encode({"w": np.zeros(101, np.uint8)}, limit=100)
    assert encode({"w": np.zeros(100, np.uint8)}, limit=100).nbytes == 100
