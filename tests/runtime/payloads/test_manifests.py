"""A manifest from a peer is judged as a whole before anything is allocated for it, and whatever it says the answer is one error."""

from __future__ import annotations

import contextlib
import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.payloads.trees import trees
from troth.runtime.errors import PayloadBroken
from troth.runtime.payloads import allocate, decode, encode

pack = msgspec.msgpack.Encoder().encode


def manifest(root: Any, nbytes: int = 0, version: int = 1) -> bytes:
    return pack([version, nbytes, root])


def array(dtype: str, shape: Any, fortran: Any = False) -> Any:
    return [4, dtype, shape, fortran]


def nested(depth: int, kind: int = 2) -> bytes:
    return b"\x93\x01\x00" + bytes([0x92, kind, 0x91]) * depth + b"\xc0"


HUGE = 2**62

BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not a manifest"),
    "no msgpack": (b"\xc1", "not a manifest"),
    "a map": (pack({"version": 1}), "not a manifest"),
    "too short": (pack([1, 0]), "not a manifest"),
    "too long": (pack([1, 0, None, None]), "not a manifest"),
    "more behind it": (manifest(None) + b"\0", "not a manifest"),
    "cut off": (manifest([2, [1, 2]])[:-1], "not a manifest"),
    "another version": (manifest(None, version=2), "not a manifest"),
    "a bool for a number": (pack([1, False, None]), "not a manifest"),
    "a negative size": (manifest(None, nbytes=-1), "not a manifest"),
    "an unknown node": (manifest([99, []]), "not a manifest"),
    "a list without a tag": (manifest([None]), "not a manifest"),
    "an empty list": (manifest([]), "not a manifest"),
    "a map inside": (manifest({"a": 1}), "not a manifest"),
    "an extension": (manifest(msgspec.msgpack.Ext(5, b"x")), "not a manifest"),
    "an int of 65 bits": (manifest(2**64 - 1), "not a manifest"),
    "bytes that no node has": (manifest(b"x"), "not a manifest"),
    "text that is not UTF-8": (b"\x93\x01\x00\xa1\xff", "not a manifest"),
    "a key that is too long": (manifest([1, ["k" * 513], [1]]), "not a manifest"),
    "a count without end": (b"\x93\x01\x00\x92\x02\xdd\xff\xff\xff\xff", "not a manifest"),
    "a key twice": (manifest([1, ["a", "a"], [1, 2]]), "a key twice"),
    "more keys than values": (manifest([1, ["a", "b"], [1]]), "more keys than values"),
    "more values than keys": (manifest([2, [[1, ["a"], [1, 2]]]]), "more keys than values"),
    "nested too deep": (nested(33), "nested more than 32 deep"),
    "nested far too deep": (nested(500_000), "not a manifest"),
    "tuples nested far too deep": (nested(500_000, kind=3), "not a manifest"),
    "a negative side": (manifest(array("<f8", [-1]), 8), "a negative side"),
    "two negative sides": (manifest(array("<f8", [-2, -2]), 32), "a negative side"),
    "a side that is no int": (manifest(array("<f8", [1.0]), 8), "not a manifest"),
    "a side of 65 bits": (manifest(array("<f8", [2**64 - 1]), 8), "larger than anything"),
    "a product that wraps to nothing": (manifest(array("<f8", [2**32, 2**32])), "larger than anything"),
    "a product that wraps to eight": (manifest(array("|u1", [2**62 + 2, 4]), 8), "larger than anything"),
    "an empty array of endless sides": (manifest(array("<f8", [0, HUGE, HUGE])), "larger than anything"),
    "too many dimensions": (manifest(array("<f8", [1] * 33), 8), "33 dimensions"),
    "a huge array": (manifest(array("<f8", [2**40]), 2**43), r"a payload of \d+ bytes; \d+ are the most"),
    "a huge string": (manifest([6, 2**50, False], 2**50), r"a payload of \d+ bytes; \d+ are the most"),
    "a string below nothing": (manifest([2, [[6, -8, False], array("|u1", [8])]]), "not a manifest"),
    "more than it says": (manifest(array("<f8", [1]), 7), "of 8 bytes that says 7"),
    "less than it says": (manifest(array("<f8", [1]), 9), "of 8 bytes that says 9"),
    "too many arrays": (manifest([2, [array("|u1", [0])] * 16_385]), "a payload of 16385 buffers"),
    "a scalar that is short": (manifest([5, "<f8", b"1234567"]), "are not a scalar"),
    "a scalar that is an object": (manifest([5, "|O", b"12345678"]), "a scalar that is none"),
    "a scalar of text that is none": (manifest([5, "U", b"\xff"]), "a scalar that is none"),
    "a manifest without end": (manifest("a" * 5_000_000), "a manifest of 5000008 bytes"),
}
NO_DTYPES = [
    *("O", "|O", "|O8", "object", "V", "|V8", "V0", "S0", "|S0", "<U0", "S", "U", "T"),
    *("f8", "=f8", "<i1", "|f8", "<f3", "<i16", "float64", "d", "<d", "?", "b", "c", "<c4", "<m8[]", "<M8[ns]x", "<M8[xs]", "<M8[1s]"),
    *("i4,f8", "(2,3)f8", "3f8", "<f8,<f8", "{'names':['a'],'formats':['O']}", "[('a','O')]", "<f8\0", " <f8", "<f8 ", "<f8\n", ""),
    *("<f16", "<f16/", "<f16/1", "<f16/064", "<f8/63", "<f12/63", "<g/63", "|S1000000000", "<U9999999999", "٤", "<f٨", "x" * 10_000),
]


@pytest.mark.parametrize(("octets", "why"), BROKEN.values(), ids=BROKEN)
def test_a_manifest_that_cannot_be_right_is_broken(octets: bytes, why: str) -> None:
    tracemalloc.start()
    with pytest.raises(PayloadBroken, match=why):
        allocate(octets).finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 40_000_000


@pytest.mark.parametrize("name", NO_DTYPES)
def test_only_dtypes_by_their_own_names_are_understood(name: str) -> None:
    for root in (array(name, [1]), array(name, [0])):
        with pytest.raises(PayloadBroken):
            allocate(manifest(root, 8 if root[2] == [1] else 0))
    with pytest.raises(PayloadBroken):
        decode(manifest([5, name, b"12345678"]) if name not in "SU" or not name else b"", [])


def test_a_size_beside_the_manifest_must_agree_with_it() -> None:
    payload = encode(np.zeros(3))
    assert allocate(payload.manifest, nbytes=24).nbytes == 24

    with pytest.raises(PayloadBroken, match="24 bytes that says 24, with 25 announced beside it"):
        allocate(payload.manifest, nbytes=25)


def test_the_limit_is_the_receivers_own() -> None:
    payload = encode(np.zeros(3))
    allocate(payload.manifest, limit=24)

    with pytest.raises(PayloadBroken, match="a payload of 24 bytes; 23 are the most"):
        allocate(payload.manifest, limit=23)


def test_a_long_text_that_is_not_utf8_is_broken_when_it_is_here() -> None:
    payload = encode("a" * 5000)

    with pytest.raises(PayloadBroken, match="a text that is not UTF-8"):
        decode(payload.manifest, [b"\xff" * 5000])


@settings(max_examples=200)
@given(trees, st.data())
def test_a_manifest_with_bytes_changed_is_broken_or_another_tree(tree: Any, data: st.DataObject) -> None:
    payload = encode(tree)
    octets = bytearray(payload.manifest)
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(PayloadBroken):
        decode(bytes(octets), [payload.joined()])


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_manifest_or_broken(octets: bytes) -> None:
    for attempt in (octets, b"\x93\x01\x00" + octets):
        with contextlib.suppress(PayloadBroken):
            decode(attempt, [])
