"""The header is judged before anything else, and says what is wrong with it."""

from __future__ import annotations

import struct

import pytest

from troth.runtime.errors import FrameError
from troth.runtime.payloads import MAX_PAYLOAD_BYTES
from troth.runtime.wire import bounds, codec, frames, kinds
from troth.runtime.wire.frames import HEADER_BYTES, UNKNOWN, pack_head, parse_head
from troth.runtime.wire.kinds import BODY_BOUNDS, BOUNDS_OF_LINK, BY_CODE, CHUNK, KINDS, QUEUE_LIMIT, Kind, WhenFull
from troth.spec import messages as m
from troth.spec.core import Received
from troth.spec.limits import Limits
from troth.statemachines.host import HOST
from troth.statemachines.trainer import TRAINER

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def test_a_header_is_twelve_bytes_in_network_order() -> None:
    assert pack_head(30, 7, 1) == b"TR\x01\x1e\x00\x00\x00\x07\x00\x00\x00\x01"
    assert HEADER_BYTES == 12


@each_kind
def test_a_length_is_taken_up_to_the_bound_of_its_kind_and_no_further(kind: Kind) -> None:
    for length in (0, 1, kind.max_body):
        assert parse_head(pack_head(kind.code, 1, length), 0, BODY_BOUNDS) == (kind.code, 1, length)
    for length in (kind.max_body + 1, 2**31, 2**32 - 1):
        with pytest.raises(FrameError, match=f"kind {kind.code} has at most {kind.max_body} bytes, this one says {length}"):
            parse_head(pack_head(kind.code, 1, length), 0, BODY_BOUNDS)


@pytest.mark.parametrize("magic", [b"RT", b"tr", b"\x00\x00", b"GE", b"\x80\x04"])
def test_another_magic_is_refused(magic: bytes) -> None:
    with pytest.raises(FrameError, match="another protocol"):
        parse_head(struct.pack("!2sBBII", magic, 1, 30, 1, 1), 0, BODY_BOUNDS)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_refused_and_named(version: int) -> None:
    with pytest.raises(FrameError, match=f"has version {version}; this side speaks version 1"):
        parse_head(struct.pack("!2sBBII", b"TR", version, 30, 1, 1), 0, BODY_BOUNDS)


def test_a_kind_that_there_is_not_is_refused_whatever_its_length() -> None:
    for code in set(range(256)) - BY_CODE.keys():
        for length in (0, 1, 2**32 - 1):
            with pytest.raises(FrameError, match=f"there is no kind {code}"):
                parse_head(pack_head(code, 1, length), 0, BODY_BOUNDS)


def test_magic_is_judged_before_version_and_version_before_kind() -> None:
    with pytest.raises(FrameError, match="another protocol"):
        parse_head(struct.pack("!2sBBII", b"XX", 9, 255, 1, 2**32 - 1), 0, BODY_BOUNDS)
    with pytest.raises(FrameError, match="version 9"):
        parse_head(struct.pack("!2sBBII", b"TR", 9, 255, 1, 2**32 - 1), 0, BODY_BOUNDS)


def test_a_control_connection_has_no_data_and_a_data_connection_no_control() -> None:
    for kind in KINDS:
        for link, table in BOUNDS_OF_LINK.items():
            assert table[kind.code] == (kind.max_body if kind.link == link else UNKNOWN)


# -- the table of kinds ------------------------------------------------------------------------------------------------

CODES = {
    1: "Hello", 2: "HelloAccepted", 3: "HelloRejected", 4: "SessionReady", 5: "SessionConfirmed", 6: "SessionOpen", 7: "SessionAccepted",
    8: "SessionRejected", 10: "TaskReady", 11: "TaskStatus", 12: "TaskAccepted", 13: "TaskReserved", 14: "TaskUnknown", 15: "TaskFailed",
    16: "CancelTask", 17: "TaskCancelled", 20: "ResultReady", 21: "ResultStatus", 22: "ResultAccepted", 23: "ResultRejected",
    24: "ResultUnknown", 25: "ResultSourceSettled", 26: "ResultSourceReleased", 30: "Heartbeat", 31: "Log", 32: "Shutdown",
    33: "SessionDraining", 34: "SessionClosed", 35: "Abort", 36: "AbortAccepted", 64: "PayloadHeld", 65: "PayloadReleased",
    66: "PayloadAbandoned", 67: "PayloadGone", 80: "Pull", 81: "Chunk", 82: "PullEnd", 83: "PullRefused", 84: "PullStopped",
}  # fmt: skip


def test_no_kind_was_renumbered() -> None:
    assert {kind.code: kind.name for kind in KINDS} == CODES
    assert len(KINDS) == len(CODES)


def test_every_message_that_a_party_takes_from_another_process_has_a_kind_of_that_link() -> None:
    taken = {(type(r.sample.message), r.sample.link) for party in (HOST, TRAINER) for r in party.routes if isinstance(r.sample, Received)}
    between = {(message, link) for message, link in taken if link in ("control", "data")}

    assert between <= {(kind.message, kind.link) for kind in KINDS}
    spoken = {kind.message for kind in KINDS if kind.message.__module__ == m.__name__}
    # The two that a receiver takes are routed by the receiver.
    assert spoken - {message for message, _ in between} == {m.PayloadReleased, m.PayloadGone}


def test_only_a_heartbeat_is_merged_and_only_a_log_record_is_dropped() -> None:
    assert {kind.name: kind.when_full for kind in KINDS if kind.when_full is not WhenFull.CLOSE} == {
        "Heartbeat": WhenFull.NEWEST,
        "Log": WhenFull.DROP,
    }
    assert BY_CODE[kinds.HEARTBEAT].outstanding == 1


def test_what_may_wait_on_a_connection_is_the_sum_of_its_kinds() -> None:
    assert QUEUE_LIMIT["control"] == sum(kind.outstanding for kind in KINDS if kind.link == "control")
    assert max(kind.outstanding for kind in KINDS) <= 1024


def test_a_stuck_link_is_given_up_before_a_transfer_or_a_lease_is() -> None:
    assert min(Limits().transfer_stall_s, Limits().lease_timeout_s) > bounds.WRITE_STALL_S


def test_what_a_payload_may_be_fits_into_what_its_message_may_say() -> None:
    assert MAX_PAYLOAD_BYTES <= bounds.MAX_PAYLOAD_BYTES


def test_a_chunk_says_where_its_bytes_belong() -> None:
    head = codec.chunk_head(7, 3, 2**33, 5)

    assert parse_head(head, 0, BODY_BOUNDS) == (CHUNK, 7, frames.CHUNK_HEAD_BYTES + 5)
    assert frames.CHUNK_HEAD.unpack(head[HEADER_BYTES:]) == (3, 2**33)


@pytest.mark.parametrize("nbytes", [0, -1, bounds.CHUNK_BYTES + 1])
def test_a_chunk_has_bytes_and_not_too_many(nbytes: int) -> None:
    with pytest.raises(Exception, match="a chunk has 1 to 1048576 bytes"):
        codec.chunk_head(1, 0, 0, nbytes)
