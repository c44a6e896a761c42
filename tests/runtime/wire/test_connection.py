"""Frames go both ways in order, within bounds, and never make anybody wait for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.runtime.wire.examples import HEARTBEAT, MESSAGE_KINDS, frame_of, heartbeat, status
from tests.runtime.wire.pairs import End, authenticated, pair
from troth.runtime.errors import FrameError, LinkDown
from troth.runtime.sim.faults import UP
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire import besides, bounds, codec, frames, kinds
from troth.runtime.wire.challenge import Authenticated
from troth.runtime.wire.kinds import BY_CLASS, BY_CODE, Role
from troth.spec import messages as m

pytestmark = pytest.mark.trio

STATUS = BY_CLASS[m.TaskStatus]
LOG_FRAME = codec.encode(m.Log(epoch=1), besides.LogBeside("loss", 0.5, "SCALAR"))


def seqs(frames: list[tuple[int, int, bytes]]) -> list[int]:
    found = [codec.decode(*frame).fields for frame in frames]
    return [fields["seq"] for fields in found if "seq" in fields]


# -- there and back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most_at_once", [1, 5, 13, 2**20])
@pytest.mark.parametrize("role", ["control", "data"])
async def test_every_kind_arrives_in_the_order_in_which_it_was_sent(role: Role, most_at_once: int) -> None:
    sent = [(kind.code, frame_of(kind)) for kind in MESSAGE_KINDS if kind.link == role]
    async with pair(SimNetwork(most_at_once=most_at_once), role=role, epoch=int(role == "data")) as both:
        for code, frame in sent:
            if role == "data":
                assert frames.parse_head(frame, 0, kinds.BODY_BOUNDS)[1] == 1
            assert both.dialler.connection.send_nowait(frame, code)
        got = await both.acceptor.has(len(sent))

    assert [(code, frame[frames.HEADER_BYTES :]) for code, frame in sent] == [(code, body) for code, _epoch, body in got]


async def test_frames_keep_their_order_when_some_have_to_wait() -> None:
    async with pair(SimNetwork(capacity=50)) as both:
        for seq in range(1, STATUS.outstanding):
            assert both.dialler.connection.send_nowait(*status(seq))
        got = await both.acceptor.has(STATUS.outstanding - 1)

    assert seqs(got) == list(range(1, STATUS.outstanding))


async def test_a_frame_that_fits_is_written_before_send_nowait_returns() -> None:
    async with pair(run=False) as both:
        before = both.network.connections[0].up.written_bytes
        both.dialler.connection.send_nowait(*heartbeat())

        assert both.network.connections[0].up.written_bytes == before + len(HEARTBEAT)


async def test_all_frames_of_one_read_are_handed_over_before_anything_else_runs() -> None:
    order: list[str] = []
    async with pair(run=False) as both:
        for seq in range(1, 11):
            both.dialler.connection.send_nowait(*status(seq))
        peer = both.acceptor.connection.peer
        connection = codec_connection(peer, lambda *_frame: order.append("frame"))

        async def other() -> None:
            for _ in range(50):
                order.append("other")
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            nursery.start_soon(other)
            while order.count("frame") < 10:
                await trio.lowlevel.checkpoint()
            connection.close()

    first = order.index("frame")
    assert order[first : first + 10] == ["frame"] * 10


def codec_connection(peer: Authenticated, on_frame: Callable[..., object]) -> Any:
    end = End(peer)
    end.connection._on_frame = on_frame
    return end.connection


async def test_a_frame_longer_than_the_buffer_comes_whole_and_the_buffer_shrinks_again() -> None:
    beside = besides.TaskBeside("t", "train", b"d" * 16, bytes(bounds.MAX_MANIFEST_BYTES), b"", 0)
    task = codec.encode(m.TaskReady(epoch=1, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=False), beside)
    async with pair() as both:
        for _ in range(3):
            both.dialler.connection.send_nowait(task, BY_CLASS[m.TaskReady].code)
            both.dialler.connection.send_nowait(*status(1))
        got = await both.acceptor.has(6)

    assert [len(body) for _code, _epoch, body in got] == [len(task) - frames.HEADER_BYTES, 2] * 3


# -- what is not for this connection -----------------------------------------------------------------------------------


async def says(raw: bytes, *, role: Role = "control", epoch: int = 0) -> End:
    """What becomes of a connection on which somebody says this."""
    async with pair(role=role, epoch=epoch) as both:
        await both.dialler.connection._stream.send_all(raw)
        both.dialler.connection.close()
        await both.acceptor.over.wait()
        assert both.acceptor.connection.closed
        return both.acceptor


@pytest.mark.parametrize("code", [kind.code for kind in MESSAGE_KINDS])
async def test_a_control_connection_carries_control_and_a_data_connection_data(code: int) -> None:
    role: Role = "data" if BY_CODE[code].link == "control" else "control"
    end = await says(frame_of(BY_CODE[code]), role=role, epoch=int(role == "data"))

    assert str(end.failure) == f"there is no kind {code}"
    assert end.connection.frames == 0


async def test_a_chunk_on_a_control_connection_is_refused() -> None:
    end = await says(codec.chunk_head(1, 0, 0, 5) + b"12345")

    assert "no kind 81" in str(end.failure)


@pytest.mark.parametrize(
    ("role", "own", "epoch", "taken"),
    [
        ("control", 0, 1, True),
        ("control", 0, 2**31 - 1, True),
        ("control", 0, 2**31, False),
        ("control", 5, 5, True),
        ("control", 5, 6, True),
        ("control", 5, 4, False),
        ("control", 5, 0, False),
        ("data", 5, 5, True),
        ("data", 5, 4, False),
        ("data", 5, 6, False),
        ("data", 5, 0, False),
    ],
)
async def test_a_frame_of_another_session_is_refused_before_its_body_is_decoded(role: Role, own: int, epoch: int, taken: bool) -> None:
    kind = BY_CLASS[m.Heartbeat if role == "control" else m.PayloadHeld]
    body = b"\xc1\xff"  # no msgpack
    end = await says(frames.pack_head(kind.code, epoch, len(body)) + body, role=role, epoch=own)

    assert end.connection.frames == len(end.frames) == int(taken)
    assert (end.failure is None) is taken
    assert taken or "session" in str(end.failure)


async def test_a_chunk_of_another_session_is_refused_before_a_place_is_asked_for() -> None:
    asked: list[object] = []
    async with pair(role="data", epoch=2, on_chunk=lambda *named: asked.append(named)) as both:
        await both.dialler.connection._stream.send_all(codec.chunk_head(3, 0, 0, 5) + b"12345")
        await both.acceptor.over.wait()

    assert asked == []
    assert isinstance(both.acceptor.failure, FrameError)


@pytest.mark.parametrize(
    "raw", [b"GET / HTTP/1.1", frames.pack_head(30, 1, 2**32 - 1), frames.pack_head(30, 1, BY_CODE[30].max_body + 1), b"TR\x02" + bytes(9)]
)
async def test_what_is_no_frame_ends_the_connection_and_what_came_before_counts(raw: bytes) -> None:
    end = await says(HEARTBEAT * 3 + raw + HEARTBEAT)

    assert isinstance(end.failure, FrameError)
    assert end.connection.why == str(end.failure)
    assert len(end.frames) == 3


@pytest.mark.parametrize("nbytes", range(1, len(HEARTBEAT)))
async def test_an_end_in_the_middle_of_a_frame_is_a_lost_link(nbytes: int) -> None:
    end = await says(HEARTBEAT + HEARTBEAT[:nbytes])

    assert end.failure is None
    assert end.connection.why == "the connection ended in the middle of a frame"
    assert len(end.frames) == 1


async def test_what_on_frame_raises_comes_out_of_run_as_it_is() -> None:
    async with pair(run=False) as both:
        connection = codec_connection(both.acceptor.connection.peer, lambda *_frame: 1 // 0)
        both.dialler.connection.send_nowait(*heartbeat())
        with pytest.raises(ZeroDivisionError):
            await connection.run()

        assert connection.closed
        await both.dialler.over.wait()


@given(raw=st.lists(st.binary(max_size=30) | st.sampled_from([frame_of(kind) for kind in MESSAGE_KINDS]), max_size=6).map(b"".join))
async def test_whatever_comes_is_frames_or_a_frame_error(raw: bytes) -> None:
    end = await says(raw)

    assert end.failure is None or isinstance(end.failure, FrameError)
    assert end.connection.frames == len(end.frames)
    sizes = [frames.HEADER_BYTES + len(body) for _code, _epoch, body in end.frames]
    assert sum(sizes) <= len(raw)


# -- its end -----------------------------------------------------------------------------------------------------------


async def test_close_wakes_everybody_on_both_sides() -> None:
    async with pair(SimNetwork(capacity=10), role="data", epoch=1, run=False) as both:
        ends: list[str] = []

        async def send() -> None:
            try:
                await both.dialler.connection.send_chunk(codec.chunk_head(1, 0, 0, 100), [memoryview(bytes(100))])
            except LinkDown as error:
                ends.append(str(error))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(send)
            nursery.start_soon(both.acceptor.run)
            both.network.connections[0].stall(UP)
            await wait_all_tasks_blocked()
            both.dialler.connection.close("enough")
            await both.dialler.over.wait()
            both.network.connections[0].resume(UP)
            await both.acceptor.over.wait()

    assert len(ends) == 3
    assert both.dialler.connection.why == "enough"
    assert both.acceptor.connection.closed
    assert both.acceptor.failure is both.dialler.failure is None


async def test_nothing_can_be_sent_after_the_end_and_closing_again_changes_nothing() -> None:
    async with pair() as both:
        both.dialler.connection.close("enough")
        both.dialler.connection.close("again")

        assert both.dialler.connection.why == "enough"
        with pytest.raises(LinkDown, match="enough"):
            both.dialler.connection.send_nowait(*heartbeat())
        await both.acceptor.over.wait()

    assert both.acceptor.connection.why == "the other side closed it"


async def test_a_cut_ends_both_sides_without_a_failure() -> None:
    async with pair() as both:
        await wait_all_tasks_blocked()
        both.network.connections[0].cut()
        await both.dialler.over.wait()
        await both.acceptor.over.wait()

        assert both.dialler.connection.why == both.acceptor.connection.why == "the connection broke: Connection reset"
        assert both.dialler.failure is both.acceptor.failure is None


async def test_a_send_on_a_broken_stream_says_so_at_once() -> None:
    async with pair(run=False) as both:
        both.acceptor.connection.close()

        for _ in range(2):
            with pytest.raises(LinkDown, match="nobody reads"):
                both.dialler.connection.send_nowait(*heartbeat())
        await both.dialler.over.wait()


async def test_the_last_words_of_the_other_side_are_heard_although_nothing_can_be_said_to_it() -> None:
    async with pair(run=False) as both:
        both.acceptor.connection.send_nowait(*status(1))
        both.acceptor.connection.send_nowait(*status(2))
        both.acceptor.connection.close()
        with pytest.raises(LinkDown):
            both.dialler.connection.send_nowait(*heartbeat())
        await both.dialler.over.wait()

    assert seqs(both.dialler.frames) == [1, 2]
    assert both.dialler.connection.why == "the other side closed it"


async def test_a_side_that_takes_nothing_and_does_not_close_is_given_up_soon(autojump_clock: MockClock) -> None:
    async with pair(run=False) as both:
        both.network.connections[0].up.deaf = True
        with pytest.raises(LinkDown):
            both.dialler.connection.send_nowait(*heartbeat())
        both.acceptor.connection.send_nowait(*status(1))
        started = trio.current_time()
        await both.dialler.over.wait()

        assert trio.current_time() - started == bounds.LAST_WORDS_S
        assert seqs(both.dialler.frames) == [1]
        assert both.dialler.connection.why == "the connection broke: nobody reads"


async def test_close_when_sent_lets_what_was_sent_out_and_takes_no_more() -> None:
    async with pair(SimNetwork(capacity=50)) as both:
        for seq in range(1, 101):
            both.dialler.connection.send_nowait(*status(seq))
        both.dialler.connection.close_when_sent()
        assert not both.dialler.connection.closed
        with pytest.raises(LinkDown):
            both.dialler.connection.send_nowait(*status(101))
        await both.acceptor.over.wait()

    assert seqs(both.acceptor.frames) == list(range(1, 101))
    assert both.acceptor.connection.why == "the other side closed it"


async def test_close_when_sent_closes_at_once_if_nothing_waits() -> None:
    async with pair() as both:
        both.dialler.connection.send_nowait(*status(1))
        both.dialler.connection.close_when_sent()

        assert both.dialler.connection.closed
        await both.acceptor.over.wait()
        assert seqs(both.acceptor.frames) == [1]


async def test_a_connection_whose_task_is_cancelled_is_closed() -> None:
    async with pair(run=False) as both:
        with trio.move_on_after(0.001):
            await both.acceptor.connection.run()

        assert both.acceptor.connection.closed
        await both.dialler.over.wait()


async def test_only_an_authenticated_stream_becomes_a_connection() -> None:
    dialler, acceptor = await authenticated(SimNetwork())

    for peer in (dialler, acceptor):
        assert End(peer).connection.peer is peer
    with pytest.raises(AttributeError):
        End(dialler.stream)  # type: ignore[arg-type]
