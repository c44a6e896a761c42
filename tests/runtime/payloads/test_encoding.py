"""A tree that is carried comes back as it went, to the bit; a payload costs no copy; its digest tells contents apart."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.runtime.payloads.trees import DTYPES, differs, filled, trees
from troth.runtime.errors import PayloadBroken, PayloadRefused
from troth.runtime.payloads import INLINE_LIMIT, allocate, decode, digest_of, encode, encode_async
from troth.runtime.payloads.arrays import ASIDE_BYTES
from troth.runtime.payloads.content import ContentHash


def carried(tree: Any) -> Any:
    payload = encode(tree)
    return decode(payload.manifest, [payload.joined()])


@settings(max_examples=300)
@given(trees)
def test_every_tree_that_can_be_carried_comes_back_as_it_went(tree: Any) -> None:
    assert differs(tree, carried(tree)) is None


@settings(max_examples=100)
@given(trees)
def test_a_payload_that_is_received_in_pieces_is_the_same(tree: Any) -> None:
    """Pieces of seven bytes cross every boundary that there is."""
    payload = encode(tree)
    landing = allocate(payload.manifest, nbytes=payload.nbytes)
    joined = payload.joined()
    for offset in range(0, len(joined), 7):
        landing.put(offset, joined[offset : offset + 7])

    assert differs(tree, landing.finish()) is None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=str)
def test_every_dtype_and_shape_is_kept(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    array = filled(shape, dtype, seed=1)

    assert differs(array, carried(array)) is None
    assert differs(np.asfortranarray(array) if shape else array, carried(np.asfortranarray(array) if shape else array)) is None


def test_nan_infinity_and_negative_zero_keep_their_bits() -> None:
    bits = np.array([0x7FF8_0000_0000_0001, 0xFFF0_0000_0000_0000, 0x8000_0000_0000_0000, 1], np.uint64)

    assert carried(bits.view(np.float64)).view(np.uint64).tolist() == bits.tolist()
    assert differs([float("nan"), float("inf"), -0.0], carried([float("nan"), float("inf"), -0.0])) is None


def test_strings_that_numpy_pads_keep_their_own_end() -> None:
    tree = [np.bytes_(b"a\0\0"), np.str_("b\0"), np.array([b"a\0\0", b"abc"]), b"\0", "\0"]

    assert differs(tree, carried(tree)) is None


@pytest.mark.parametrize("size", [4095, 4096, 100_000])
def test_long_strings_and_bytes_travel_as_buffers(size: int) -> None:
    tree = {"text": "ä" * size, "ascii": "a" * size, "bytes": bytes(size), "array": np.arange(3)}

    assert differs(tree, carried(tree)) is None
    assert len(encode(tree).manifest) < 20_000


def test_a_memory_map_is_taken_as_an_array(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "weights", np.float32, "w+", shape=(2, 3))
    mapped[:] = 7

    assert differs(np.full((2, 3), 7, np.float32), carried(mapped)) is None


def test_an_array_at_two_places_becomes_two_arrays() -> None:
    shared = np.arange(3)
    first, second = carried([shared, shared])

    assert not np.shares_memory(first, second)


def test_contiguous_arrays_are_not_copied_and_read_when_they_are_sent() -> None:
    array = np.zeros((100, 100))
    payload = encode({"c": array, "fortran": array.T, "strided": array[:, ::2]})
    array[:] = 1

    assert [bytes(buffer[:8]) == np.float64(1).tobytes() for buffer in payload.buffers] == [True, True, False]
    assert all(buffer.readonly for buffer in payload.buffers)


@pytest.mark.trio
@pytest.mark.parametrize("size", [10, ASIDE_BYTES], ids=["small", "large"])
async def test_in_an_event_loop_a_tree_gives_the_same_payload(size: int) -> None:
    tree = {"w": np.arange(2 * size, dtype=np.uint8)[::2], "name": "x"}
    payload = await encode_async(tree)

    assert (payload.manifest, payload.digest) == (encode(tree).manifest, encode(tree).digest)
    assert payload.joined() == tree["w"].tobytes()  # type: ignore[attr-defined]


@pytest.mark.trio
async def test_in_an_event_loop_a_tree_is_refused_alike() -> None:
    with pytest.raises(PayloadRefused, match=r"params\['w'\]: with this the payload has 101 bytes"):
        await encode_async({"w": np.zeros(101, np.uint8)}, name="params", limit=100)


def test_encoding_takes_no_memory_to_speak_of() -> None:
    array = np.zeros(5_000_000)
    tracemalloc.start()
    encode({"w": array})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 100_000


def test_equal_contents_have_equal_digests_and_others_do_not() -> None:
    def of(**tree: Any) -> bytes:
        return encode(tree).digest

    weights = np.arange(6.0)
    assert of(w=weights) == of(w=weights.copy()) == of(w=weights[::1])
    different = [
        of(w=weights),
        of(v=weights),
        of(w=weights.reshape(2, 3)),
        of(w=np.asfortranarray(weights.reshape(2, 3))),
        of(w=weights.astype(">f8")),
        of(w=weights.view(np.int64)),
        of(w=weights + 1),
        of(w=list(weights)),
        of(w=(1,)),
        of(w=[1]),
        of(w=1),
        of(w=1.0),
        of(w=True),
        of(),
    ]
    assert len(set(different)) == len(different)


def test_a_digest_made_in_pieces_is_the_digest() -> None:
    payload = encode({"w": np.arange(1000), "v": np.arange(3)})
    content = ContentHash(payload.manifest)
    for octet in payload.joined():
        content.update(bytes([octet]))

    assert content.digest() == payload.digest == digest_of(payload.manifest, payload.buffers)


def test_a_payload_says_whether_it_rides_in_its_message() -> None:
    manifest = len(encode(np.zeros(INLINE_LIMIT - 100, np.uint8)).manifest)

    assert encode(np.zeros(INLINE_LIMIT - manifest, np.uint8)).inline
    assert not encode(np.zeros(INLINE_LIMIT - manifest + 1, np.uint8)).inline


def test_the_wrong_number_of_bytes_is_broken() -> None:
    payload = encode({"w": np.arange(3)})
    for wrong in (b"", payload.joined()[:-1], payload.joined() + b"\0"):
        with pytest.raises(PayloadBroken, match=r"24 bytes that says 24, with \d+ announced"):
            decode(payload.manifest, [wrong])


def test_buffers_may_come_as_one_or_in_parts_and_are_checked_against_a_digest() -> None:
    payload = encode({"w": np.arange(3), "v": np.arange(2)})
    for buffers in (payload.joined(), bytearray(payload.joined()), payload.buffers, [payload.joined()[:5], payload.joined()[5:]]):
        assert differs({"w": np.arange(3), "v": np.arange(2)}, decode(payload.manifest, buffers, digest=payload.digest)) is None

    with pytest.raises(PayloadBroken, match="another digest"):
        decode(payload.manifest, bytes(len(payload.joined())), digest=payload.digest)


def test_no_bytes_go_past_the_end_of_a_landing() -> None:
    landing = allocate(encode({"w": np.arange(3), "v": np.empty(0)}).manifest)

    assert len(landing.window(20, 4)) == 4
    for offset, length in [(20, 5), (24, 1), (-1, 2), (25, 0)]:
        with pytest.raises(PayloadBroken, match=f"bytes {offset} to {offset + length} of a payload of 24"):
            landing.window(offset, length)
    with pytest.raises(PayloadBroken, match="bytes 20 to 25 of a payload of 24"):
        landing.put(20, b"12345")


def test_what_is_received_keeps_nothing_else_alive() -> None:
    first, _ = carried([np.zeros(10), np.zeros(1_000_000)])

    assert first.base is None
