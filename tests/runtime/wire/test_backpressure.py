"""What cannot be written waits, but not without bounds: a peer that does not read loses its connection, and nobody else notices."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.runtime.wire.examples import HEARTBEAT, MESSAGE_KINDS, frame_of, heartbeat, status
from tests.runtime.wire.pairs import LAUNCH, pair
from troth.runtime.errors import LinkDown
from troth.runtime.sim.faults import DOWN
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire import besides, bounds, codec, kinds
from troth.runtime.wire.kinds import BY_CLASS, QUEUE_LIMIT
from troth.spec import messages as m

pytestmark = pytest.mark.trio

STATUS = BY_CLASS[m.TaskStatus]
LOG_FRAME = codec.encode(m.Log(epoch=1), besides.LogBeside("loss", 0.5, "SCALAR"))


async def test_one_more_than_may_wait_closes_the_connection_and_says_why() -> None:
    async with pair(SimNetwork(capacity=20), run=False) as both:
        both.dialler.connection.send_nowait(*status(1))  # begun: a part of it was taken, so it is not one of those that wait
        both.dialler.connection.send_nowait(*status(2))
        await wait_all_tasks_blocked()
        for seq in range(STATUS.outstanding):
            both.dialler.connection.send_nowait(*status(seq + 3))
        with pytest.raises(LinkDown, match="256 TaskStatus wait"):
            both.dialler.connection.send_nowait(*status(1000))

        assert "the other side does not read" in str(both.dialler.connection.why)


async def test_what_may_wait_is_counted_by_kind() -> None:
    async with pair(SimNetwork(capacity=1), run=False) as both:
        both.dialler.connection.send_nowait(*status(1))
        await wait_all_tasks_blocked()
        total = 0
        for kind in MESSAGE_KINDS:
            if kind.link == "control" and kind is not STATUS:
                for _ in range(kind.outstanding):
                    assert both.dialler.connection.send_nowait(frame_of(kind), kind.code)
                    total += 1

        assert total == QUEUE_LIMIT["control"] - STATUS.outstanding
        assert not both.dialler.connection.closed


async def test_a_heartbeat_that_waits_gives_way_to_the_newest_one() -> None:
    async with pair(SimNetwork(capacity=1), run=False) as both:
        both.dialler.connection.send_nowait(*status(1))
        for epoch in range(1, 50):
            assert both.dialler.connection.send_nowait(*heartbeat(epoch))
        both.dialler.connection.send_nowait(*status(2))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(both.acceptor.run)
            got = await both.acceptor.has(3)
            both.acceptor.connection.close()

    assert [(code, epoch) for code, epoch, _body in got] == [(STATUS.code, 1), (kinds.HEARTBEAT, 49), (STATUS.code, 1)]


async def test_a_heartbeat_that_has_begun_is_completed_and_the_next_one_follows() -> None:
    async with pair(SimNetwork(capacity=len(HEARTBEAT) - 1), run=False) as both:
        for epoch in (1, 2, 3):
            both.dialler.connection.send_nowait(*heartbeat(epoch))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(both.acceptor.run)
            got = await both.acceptor.has(2)
            both.acceptor.connection.close()

    assert [epoch for _code, epoch, _body in got] == [1, 3]


async def test_log_records_beyond_their_number_are_dropped_and_counted() -> None:
    async with pair(SimNetwork(capacity=1), run=False) as both:
        both.dialler.connection.send_nowait(*status(1))
        sent = [both.dialler.connection.send_nowait(LOG_FRAME, kinds.LOG) for _ in range(100)]

        assert sent == [True] * 64 + [False] * 36
        assert both.dialler.connection.dropped == 36
        assert not both.dialler.connection.closed


@pytest.mark.parametrize("waiting", ["frame", "chunk"])
async def test_a_write_from_which_nothing_is_taken_closes_the_connection(autojump_clock: MockClock, waiting: str) -> None:
    async with pair(SimNetwork(capacity=10), role="data", epoch=1, run=False) as both:
        started = trio.current_time()
        if waiting == "frame":
            for _ in range(3):
                both.dialler.connection.send_nowait(frame_of(BY_CLASS[m.PayloadHeld]), 64)
        else:
            with pytest.raises(LinkDown, match="took no bytes for 15 s"):
                await both.dialler.connection.send_chunk(codec.chunk_head(1, 0, 0, 100), [memoryview(bytes(100))])
        await both.dialler.over.wait()

        assert trio.current_time() == started + bounds.WRITE_STALL_S
        assert "took no bytes" in str(both.dialler.connection.why)


async def test_a_slow_reader_is_not_a_stalled_one(autojump_clock: MockClock) -> None:
    async with pair(SimNetwork(capacity=bounds.PATIENT_BYTES, most_at_once=bounds.PATIENT_BYTES), role="data", epoch=1, run=False) as both:

        async def sip() -> None:
            while True:
                await trio.sleep(bounds.WRITE_STALL_S - 1)
                await both.acceptor.connection._stream.receive_into(memoryview(bytearray(bounds.PATIENT_BYTES)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sip)
            await both.dialler.connection.send_chunk(codec.chunk_head(1, 0, 0, 50_000), [memoryview(bytes(50_000))])
            nursery.cancel_scope.cancel()

        assert trio.current_time() > 10 * bounds.WRITE_STALL_S
        assert not both.dialler.connection.closed


async def test_a_side_whose_writes_are_stuck_still_reads() -> None:
    async with pair(SimNetwork(capacity=30), run=False) as both:
        for seq in range(1, 20):
            both.dialler.connection.send_nowait(*status(seq))
        for _ in range(5):
            await both.acceptor.connection._stream.send_all(HEARTBEAT)
        await both.dialler.has(5)

        assert both.network.connections[0].down.frames[0].direction is DOWN
        assert both.dialler.connection.peer.launch == LAUNCH
