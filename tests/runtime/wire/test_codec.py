"""A message arrives as it was sent, and whatever else arrives is one error."""

from __future__ import annotations

import contextlib
import tracemalloc
from enum import Enum
from typing import Any, get_type_hints

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.wire.examples import BESIDES, MESSAGE_KINDS, arrivals, beside_of, derived_of, frame_of, message_of, parsed
from troth.runtime.errors import FrameError, RuntimeFault
from troth.runtime.wire import besides, bounds, codec, frames, kinds
from troth.runtime.wire.kinds import BODY_BOUNDS, BY_CLASS, CHUNK, KINDS, Kind
from troth.spec import messages as m

pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder().decode
BODY = frames.HEADER_BYTES
each_kind = pytest.mark.parametrize("kind", MESSAGE_KINDS, ids=lambda kind: kind.name)


def body_of(kind: Kind) -> list[Any]:
    found = unpack(frame_of(kind)[BODY:])
    assert isinstance(found, list)
    return found


def refused(kind: Kind, body: bytes, epoch: int = 1) -> str:
    with pytest.raises(FrameError) as caught:
        codec.decode(kind.code, epoch, body).message(**derived_of(kind, message_of(kind)))
    return str(caught.value)


# -- there and back ----------------------------------------------------------------------------------------------------


@each_kind
def test_the_smallest_message_of_each_kind_arrives_as_it_was(kind: Kind) -> None:
    message = message_of(kind)
    arrived = parsed(frame_of(kind))

    assert arrived.message(**derived_of(kind, message)) == message
    assert arrived.beside == beside_of(kind)
    assert arrived.kind is kind


@given(arrivals())
def test_any_message_arrives_as_it_was(sent: tuple[Kind, Any, Any]) -> None:
    kind, message, beside = sent
    arrived = parsed(codec.encode(message, beside))

    assert arrived.message(**derived_of(kind, message)) == message
    assert arrived.beside == beside


@given(arrivals())
def test_no_frame_is_longer_than_its_kind_allows(sent: tuple[Kind, Any, Any]) -> None:
    kind, message, beside = sent

    assert len(codec.encode(message, beside)) - BODY <= kind.max_body


def test_the_longest_task_fits_into_its_frame() -> None:
    wide = "\N{GRINNING FACE}" * bounds.MAX_TEXT
    beside = besides.TaskBeside(
        wide, wide, b"d" * 16, bytes(bounds.MAX_MANIFEST_BYTES), bytes(bounds.INLINE_BYTES), bounds.MAX_PAYLOAD_BYTES
    )
    message = m.TaskReady(epoch=2**31 - 1, seq=2**31 - 1, attempt=2**15 - 1, floor=2**31 - 1, content=0, receivers=64, inline=True)

    assert parsed(codec.encode(message, beside)).beside == beside


def test_a_decoded_message_keeps_nothing_of_the_buffer_that_it_came_in() -> None:
    frame = bytearray(frame_of(BY_CLASS[m.TaskReady]))
    arrived = codec.decode(BY_CLASS[m.TaskReady].code, 1, memoryview(frame)[BODY:])
    frame[:] = bytes(len(frame))
    frame.clear()  # would raise if something still looked at it

    assert arrived.beside == BESIDES[besides.TaskBeside]


def test_what_the_receiver_derives_is_not_on_the_wire() -> None:
    for claim in m.Claim:
        hello = m.Hello(epoch=0, claim=claim)
        frame = codec.encode(hello, BESIDES[besides.HelloBeside])

        assert frame == codec.encode(m.Hello(epoch=0, claim=m.Claim.MATCHING), BESIDES[besides.HelloBeside])
        assert parsed(frame).message(claim=claim) == hello


@pytest.mark.parametrize("derived", [{}, {"claim": m.Claim.MATCHING, "more": 1}, {"content": 0}])
def test_a_receiver_that_derives_something_else_is_at_fault_itself(derived: dict[str, Any]) -> None:
    arrived = parsed(frame_of(BY_CLASS[m.Hello]))

    with pytest.raises(RuntimeFault, match="the receiver must say"):
        arrived.message(**derived)


@pytest.mark.parametrize(
    ("message", "beside", "why"),
    [
        (m.FetchPayload(epoch=1, seq=1, inline=True), None, "FetchPayload has no frame"),
        (kinds.Chunk(epoch=1, request=0, offset=0), None, "Chunk has no frame"),
        (m.Heartbeat(epoch=1), BESIDES[besides.HelloBeside], "nothing rides beside Heartbeat"),
        (m.Hello(epoch=0, claim=m.Claim.MATCHING), None, "goes with a HelloBeside, not with NoneType"),
        (m.Hello(epoch=0, claim=m.Claim.MATCHING), BESIDES[besides.LogBeside], "goes with a HelloBeside, not with LogBeside"),
    ],
)
def test_a_message_that_cannot_be_sent_so_is_our_own_fault(message: Any, beside: Any, why: str) -> None:
    with pytest.raises(RuntimeFault, match=why):
        codec.encode(message, beside)


def test_a_log_record_that_is_too_long_as_a_whole_is_refused_before_it_is_sent() -> None:
    beside = besides.LogBeside("k", ("x" * bounds.MAX_LOG_TEXT,) * 20, "TEXT")

    with pytest.raises(RuntimeFault, match="at most 65536 bytes"):
        codec.encode(m.Log(epoch=1), beside)


# -- bytes that are something else -------------------------------------------------------------------------------------


@each_kind
def test_every_truncation_of_a_body_is_refused(kind: Kind) -> None:
    body = frame_of(kind)[BODY:]

    for size in range(len(body)):
        assert refused(kind, body[:size]).startswith(f"{kind.name}: ")


@each_kind
def test_bytes_after_a_body_are_refused(kind: Kind) -> None:
    for more in (b"\xc0", b"\x00", b"\x90", frame_of(kind)):
        assert refused(kind, frame_of(kind)[BODY:] + more)


@each_kind
def test_one_element_more_or_less_is_refused(kind: Kind) -> None:
    body = body_of(kind)

    assert "array" in refused(kind, pack([*body, None]))
    assert "array" in refused(kind, pack([*body, 1]))
    for index in range(len(body)):
        assert refused(kind, pack(body[:index] + body[index + 1 :]))


@each_kind
def test_an_element_of_another_type_is_refused(kind: Kind) -> None:
    body = body_of(kind)
    others: list[Any] = [None, True, 1, -1, 1.5, "x", b"x", [], {}, [[]], {"a": 1}, msgspec.msgpack.Ext(5, b"x")]
    for index, value in enumerate(body):
        for other in others:
            changed = [*body[:index], other, *body[index + 1 :]]
            try:
                arrived = codec.decode(kind.code, 1, pack(changed))
                arrived.message(**derived_of(kind, message_of(kind)))
            except FrameError:
                continue
            # What is left are values that are as good as what was there.
            assert type(other) is type(value) or kind.beside in (besides.LogBeside, besides.HelloAcceptedBeside), (kind.name, index, other)


@each_kind
def test_a_body_that_is_no_array_is_refused(kind: Kind) -> None:
    for body in (b"", b"\xc0", b"\x01", pack({}), pack({"epoch": 1}), pack("text"), pack(b"bytes"), b"\xc1", b"\xff" * 20):
        assert refused(kind, body)


@each_kind
def test_lengths_that_lie_are_refused_without_being_believed(kind: Kind) -> None:
    tracemalloc.start()
    try:
        for body in (
            b"\xdd\xff\xff\xff\xff",
            b"\xdc\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\x91\xc6\xff\xff\xff\xff",
            b"\x91\xdb\xff\xff\xff\xff",
        ):
            assert refused(kind, body)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@each_kind
def test_nesting_without_end_is_refused(kind: Kind) -> None:
    for opening in (b"\x91", b"\x81\xa1a", b"\xdc\x00\x01"):
        assert refused(kind, (opening * 20000)[: kind.max_body])
        assert refused(kind, opening * 5)


@pytest.mark.parametrize("kind", [k for k in MESSAGE_KINDS if k.beside is besides.LogBeside], ids=lambda kind: kind.name)
def test_a_log_record_has_no_depth(kind: Kind) -> None:
    deep: list[Any] = [[[1]], {"a": [1]}, {"a": {"b": 1}}, [{}], {1: 2}]
    for value in deep:
        assert refused(kind, pack(["key", value, "TEXT", {}]))
        assert refused(kind, pack(["key", 1, "TEXT", {"a": value}]))


def int_fields() -> list[tuple[Kind, int, int, int]]:
    found = []
    for kind in MESSAGE_KINDS:
        hints = get_type_hints(kind.message)
        fields = [f for f in attrs.fields(kind.message) if f.name != "epoch" and f.name not in kind.derived]
        found += [(kind, n, f.metadata["low"], f.metadata["high"]) for n, f in enumerate(fields) if hints[f.name] is int]
    return found


@pytest.mark.parametrize(("kind", "index", "low", "high"), int_fields(), ids=lambda value: getattr(value, "name", str(value)))
def test_an_int_beyond_its_bounds_is_refused(kind: Kind, index: int, low: int, high: int) -> None:
    body = body_of(kind)
    for value in (low - 1, high + 1, -(2**63), 2**63, 2**64 - 1, float(low)):
        assert refused(kind, pack([*body[:index], value, *body[index + 1 :]]))
    for value in (low, high):
        names = [name for name in codec.decode(kind.code, 1, pack([*body[:index], value, *body[index + 1 :]])).fields if name != "epoch"]
        assert codec.decode(kind.code, 1, pack([*body[:index], value, *body[index + 1 :]])).fields[names[index]] == value


def test_an_enum_that_has_no_such_member_is_refused() -> None:
    checked = 0
    for kind in MESSAGE_KINDS:
        hints = get_type_hints(kind.message)
        fields = [f for f in attrs.fields(kind.message) if f.name != "epoch" and f.name not in kind.derived]
        body = body_of(kind)
        for index, f in enumerate(fields):
            if isinstance(hints[f.name], type) and issubclass(hints[f.name], Enum):
                checked += 1
                for value in ("", "BUSY", "no such", 0, None, ["busy"], "x" * 20):
                    assert refused(kind, pack([*body[:index], value, *body[index + 1 :]]))

    assert checked == 4


@each_kind
def test_an_epoch_beyond_its_bounds_is_refused(kind: Kind) -> None:
    low = attrs.fields_dict(kind.message)["epoch"].metadata["low"]
    body = frame_of(kind)[BODY:]
    for epoch in (low - 1, 2**31, 2**32 - 1):
        assert "an epoch is" in refused(kind, body, epoch)
    assert codec.decode(kind.code, 2**31 - 1, body).fields["epoch"] == 2**31 - 1


@pytest.mark.parametrize("code", [0, 9, 37, CHUNK, 255])
def test_a_kind_that_there_is_not_has_no_body(code: int) -> None:
    with pytest.raises(FrameError, match=f"no kind {code}"):
        codec.decode(code, 1, b"\x90")


@each_kind
def test_a_body_above_its_bound_is_not_looked_at(kind: Kind) -> None:
    assert "at most" in refused(kind, bytes(kind.max_body + 1))


def test_text_that_is_no_utf8_is_refused() -> None:
    for bad in (b"\xa2\xff\xfe", b"\xa3\xed\xa0\x80", b"\xa1\x00", b"\xa1\n"):
        assert refused(BY_CLASS[m.SessionOpen], b"\x92\xc2" + bad)


def test_terms_that_no_session_can_have_are_refused() -> None:
    for terms in (
        [5.0, 5.0, 600.0],
        [5.0, 30.0, 35.0],
        [0.0, 1.0, 2.0],
        [float("nan")] * 3,
        [1.0, 2.0, float("inf")],
        [-1.0, 2.0, 9.0],
        [1.0, 2.0],
    ):
        assert refused(BY_CLASS[m.HelloAccepted], pack([terms, False, None]))


def test_credentials_come_if_the_session_is_secure_and_only_then() -> None:
    for secure, credentials in ((True, None), (False, ["a", "b"]), (True, ["a"]), (True, ["", "b"]), (True, "ab")):
        assert refused(BY_CLASS[m.HelloAccepted], pack([[5.0, 30.0, 600.0], secure, credentials]))


@given(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(kind: Kind, epoch: int, body: bytes) -> None:
    with contextlib.suppress(FrameError):
        codec.decode(kind.code, epoch, body)


@given(arrivals(), st.data())
def test_any_changed_byte_is_decoded_or_refused(sent: tuple[Kind, Any, Any], data: st.DataObject) -> None:
    _kind, message, beside = sent
    frame = bytearray(codec.encode(message, beside))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(FrameError):
        code, epoch, length = frames.parse_head(frame, 0, BODY_BOUNDS)
        arrived = codec.decode(code, epoch, bytes(frame[BODY : BODY + length]))
        arrived.message(**derived_of(arrived.kind, message_of(arrived.kind)))


# -- what nobody may read ----------------------------------------------------------------------------------------------


def test_neither_credentials_nor_payloads_are_in_any_text() -> None:
    arrived = parsed(frame_of(BY_CLASS[m.HelloAccepted]))
    task = parsed(frame_of(BY_CLASS[m.TaskReady]))

    assert "canary" not in repr(arrived) + str(arrived.beside)
    assert "signed" not in repr(arrived)
    assert "payload" not in repr(task.beside).replace("payload=<7 bytes>", "")
