"""The bytes of a chunk go to where they belong, and small frames do not wait for long behind them."""

from __future__ import annotations

import itertools

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from tests.runtime.wire.examples import frame_of, heartbeat
from tests.runtime.wire.pairs import pair
from troth.runtime.errors import FrameError, LinkDown, RuntimeFault
from troth.runtime.sim.faults import UP
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire import bounds, codec, frames, kinds
from troth.runtime.wire.kinds import BY_CLASS
from troth.spec import messages as m

HELD = BY_CLASS[m.PayloadHeld]
HELD_FRAME = frame_of(HELD)


class Landing:
    """Where chunks land: one buffer, handed out in pieces."""

    def __init__(self, nbytes: int, cuts: list[int] | None = None) -> None:
        self.bytes = bytearray(nbytes)
        self.cuts: list[int] = sorted({*(cuts or []), nbytes})
        self.asked: list[tuple[int, int, int]] = []
        self.landed: list[tuple[int, int, int]] = []

    def place(self, request: int, offset: int, length: int) -> memoryview:
        self.asked.append((request, offset, length))
        end = next(cut for cut in self.cuts if cut > offset)
        return memoryview(self.bytes)[offset : min(end, offset + length)]

    def note(self, request: int, offset: int, nbytes: int) -> None:
        self.landed.append((request, offset, nbytes))


def pattern(nbytes: int) -> bytes:
    return (bytes(range(251)) * (nbytes // 251 + 1))[:nbytes]


@pytest.mark.trio
async def test_a_chunk_goes_straight_to_its_place_and_is_reported_as_it_lands() -> None:
    data = pattern(bounds.CHUNK_BYTES)
    landing = Landing(len(data))
    async with pair(role="data", epoch=1, on_chunk=landing.place, on_landed=landing.note) as both:
        await both.dialler.connection.send_chunk(codec.chunk_head(1, 7, 0, len(data)), [memoryview(data)])
        both.dialler.connection.send_nowait(HELD_FRAME, HELD.code)
        await both.acceptor.has(1)

    assert landing.bytes == data
    assert landing.asked == [(7, 0, len(data))]
    ends = [0]
    for request, offset, nbytes in landing.landed:
        assert (request, offset) == (7, ends[-1])
        ends.append(offset + nbytes)
    assert ends[-1] == len(data)


@pytest.mark.trio
@given(data=st.data())
async def test_any_chunks_cut_anyhow_land_as_they_were(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 40_000), min_size=1, max_size=4))
    total = sum(sizes)
    payload = pattern(total)
    landing = Landing(total, data.draw(st.lists(st.integers(1, total), max_size=6)))
    network = SimNetwork(
        capacity=data.draw(st.sampled_from([997, 20_000, 70_000])), most_at_once=data.draw(st.sampled_from([1_500, 2**20]))
    )
    async with pair(network, role="data", epoch=1, on_chunk=landing.place, on_landed=landing.note) as both:
        start = 0
        for size in sizes:
            cuts = sorted({start, start + size, *(start + cut for cut in data.draw(st.lists(st.integers(1, size), max_size=4)))})
            views = [memoryview(payload)[a:b] for a, b in itertools.pairwise(cuts)]
            await both.dialler.connection.send_chunk(codec.chunk_head(1, 7, start, size), views)
            both.dialler.connection.send_nowait(HELD_FRAME, HELD.code)
            start += size
        await both.acceptor.has(len(sizes))

    assert landing.bytes == payload
    assert sum(nbytes for _request, _offset, nbytes in landing.landed) == total


@pytest.mark.trio
@pytest.mark.parametrize("size", [1, 5000, bounds.READ_BYTES, bounds.CHUNK_BYTES])
async def test_a_chunk_that_nobody_wants_is_read_and_forgotten(size: int) -> None:
    async with pair(role="data", epoch=1) as both:
        await both.dialler.connection.send_chunk(codec.chunk_head(1, 7, 0, size), [memoryview(bytes(size))])
        both.dialler.connection.send_nowait(HELD_FRAME, HELD.code)
        await both.acceptor.has(1)

    assert both.acceptor.connection.frames == 2


@pytest.mark.trio
async def test_a_chunk_can_be_given_up_in_its_middle() -> None:
    landing = Landing(10_000, [4_000])

    def place(request: int, offset: int, length: int) -> memoryview | None:
        return landing.place(request, offset, length) if offset < 4_000 else None

    async with pair(role="data", epoch=1, on_chunk=place, on_landed=landing.note) as both:
        await both.dialler.connection.send_chunk(codec.chunk_head(1, 7, 0, 10_000), [memoryview(b"x" * 10_000)])
        both.dialler.connection.send_nowait(HELD_FRAME, HELD.code)
        await both.acceptor.has(1)

    assert landing.bytes == b"x" * 4_000 + bytes(6_000)
    assert landing.landed[-1][1] + landing.landed[-1][2] == 4_000


@pytest.mark.trio
async def test_a_place_without_room_is_our_own_fault() -> None:
    async with pair(role="data", epoch=1, on_chunk=lambda *_named: memoryview(b"")) as both:
        await both.dialler.connection.send_chunk(codec.chunk_head(1, 7, 0, 10), [memoryview(bytes(10))])
        await both.acceptor.over.wait()

    assert isinstance(both.acceptor.failure, RuntimeFault)


@pytest.mark.trio
@pytest.mark.parametrize("length", [0, 1, frames.CHUNK_HEAD_BYTES - 1, frames.CHUNK_HEAD_BYTES])
async def test_a_chunk_without_bytes_is_refused(length: int) -> None:
    async with pair(role="data", epoch=1) as both:
        await both.dialler.connection._stream.send_all(frames.pack_head(kinds.CHUNK, 1, length) + bytes(length))
        await both.acceptor.over.wait()

    assert isinstance(both.acceptor.failure, FrameError)


@pytest.mark.trio
async def test_an_end_in_the_middle_of_a_chunk_leaves_what_came_and_is_a_lost_link() -> None:
    landing = Landing(100_000)
    async with pair(role="data", epoch=1, on_chunk=landing.place, on_landed=landing.note) as both:
        both.network.connections[0].end_after(UP, 50_000)
        with pytest.raises(LinkDown):
            await both.dialler.connection.send_chunk(codec.chunk_head(1, 7, 0, 100_000), [memoryview(b"x" * 100_000)])
        await both.acceptor.over.wait()

    landed = sum(nbytes for _request, _offset, nbytes in landing.landed)
    assert landed == 50_000 - frames.HEADER_BYTES - frames.CHUNK_HEAD_BYTES
    assert landing.bytes == b"x" * landed + bytes(100_000 - landed)
    assert both.acceptor.failure is None
    assert both.acceptor.connection.why == "the connection ended in the middle of a chunk"


@pytest.mark.trio
async def test_a_small_frame_waits_for_one_chunk_at_most_however_many_are_on_their_way() -> None:
    async with pair(SimNetwork(capacity=1_000), role="data", epoch=1, run=False) as both:

        async def send(request: int) -> None:
            await both.dialler.connection.send_chunk(codec.chunk_head(1, request, 0, 5_000), [memoryview(bytes(5_000))])

        order: list[int | str] = []

        def place(request: int, _offset: int, _length: int) -> None:
            order.append(request)

        both.acceptor.connection._on_chunk = place
        both.acceptor.connection._on_frame = lambda *_frame: order.append("small")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, 1)
            await wait_all_tasks_blocked()
            for request in range(2, 6):
                nursery.start_soon(send, request)
                await wait_all_tasks_blocked()
            for _ in range(2):
                both.dialler.connection.send_nowait(HELD_FRAME, HELD.code)
            nursery.start_soon(both.acceptor.run)
            while len(order) < 7:
                await wait_all_tasks_blocked()
            both.acceptor.connection.close()

    assert order == [1, "small", "small", 2, 3, 4, 5]


@pytest.mark.trio
async def test_big_chunks_on_one_connection_do_not_hold_up_small_frames_on_another() -> None:
    network = SimNetwork()
    async with pair(network, role="data", epoch=1) as data, pair(network) as control:
        data.network.connections[0].stall(UP)

        async def send() -> None:
            await data.dialler.connection.send_chunk(codec.chunk_head(1, 1, 0, 10**6), [memoryview(bytes(10**6))])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            for number in range(100):
                control.dialler.connection.send_nowait(*heartbeat())
                await control.acceptor.has(number + 1)
            data.network.connections[0].resume(UP)


@pytest.mark.trio
async def test_a_chunk_that_is_cancelled_in_its_middle_ends_the_connection() -> None:
    async with pair(SimNetwork(capacity=1_000), role="data", epoch=1, run=False) as both:
        with trio.move_on_after(0.001):
            await both.dialler.connection.send_chunk(codec.chunk_head(1, 1, 0, 5_000), [memoryview(bytes(5_000))])

        assert both.dialler.connection.why == "cancelled in the middle of a frame"


@pytest.mark.trio
async def test_a_chunk_that_is_cancelled_while_it_waits_for_its_turn_does_no_harm() -> None:
    async with pair(SimNetwork(capacity=1_000), role="data", epoch=1) as both:
        both.network.connections[0].stall(UP)

        async def send() -> None:
            await both.dialler.connection.send_chunk(codec.chunk_head(1, 1, 0, 5_000), [memoryview(bytes(5_000))])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await wait_all_tasks_blocked()
            with trio.move_on_after(0.001):
                await send()
            both.network.connections[0].resume(UP)
        both.dialler.connection.send_nowait(HELD_FRAME, HELD.code)
        await both.acceptor.has(1)

    assert both.acceptor.connection.frames == 2
