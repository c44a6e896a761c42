"""Streams of real sockets: bytes as they were, ends that wake, and nobody that starves."""

from __future__ import annotations

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.runtime.system.streams import joined, read
from tests.runtime.wire.examples import HEARTBEAT, frame_of, heartbeat
from tests.runtime.wire.pairs import End, authenticated
from troth.runtime.errors import LinkDown
from troth.runtime.system import network as system
from troth.runtime.system.network import SystemNetwork
from troth.runtime.wire import bounds, codec
from troth.runtime.wire.kinds import BY_CLASS
from troth.spec import messages as m

pytestmark = pytest.mark.trio


async def test_bytes_go_both_ways_and_end(endpoint: str) -> None:
    dialler, acceptor = await joined(endpoint)
    assert dialler.send_nowait(b"there") == 5
    await acceptor.send_all(b"and back")
    assert await read(acceptor, 5) == b"there"
    assert await read(dialler, 8) == b"and back"
    dialler.close()

    assert await acceptor.receive_into(memoryview(bytearray(10))) == 0
    acceptor.close()


async def test_a_full_socket_takes_nothing_and_what_is_more_is_sent_as_it_is_read(endpoint: str) -> None:
    dialler, acceptor = await joined(endpoint)
    data = np.arange(3_000_000, dtype=np.uint32).view(np.uint8)
    taken = 0
    while got := dialler.send_nowait(data.data[taken:]):
        taken += got
    assert dialler.send_nowait(b"x") == 0
    received = np.zeros_like(data)

    async def send() -> None:
        await dialler.send_all(data.data[taken:])
        dialler.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        done = 0
        while got := await acceptor.receive_into(received.data[done:]):
            done += got
    acceptor.close()

    assert done == len(data)
    assert np.array_equal(data, received)


async def test_a_busy_reader_lets_others_run(endpoint: str) -> None:
    dialler, acceptor = await joined(endpoint)
    turns = 0

    async def send() -> None:
        await dialler.send_all(bytes(20_000_000))
        dialler.close()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(others)
        small = memoryview(bytearray(1000))
        while await acceptor.receive_into(small):
            pass
        nursery.cancel_scope.cancel()
    acceptor.close()

    assert turns >= 20_000_000 // system.GREEDY_BYTES


async def test_close_wakes_whoever_waits_and_nothing_works_afterwards(endpoint: str) -> None:
    dialler, acceptor = await joined(endpoint)
    while dialler.send_nowait(bytes(10**6)):
        pass
    said: list[str] = []

    async def reads() -> None:
        try:
            await dialler.receive_into(memoryview(bytearray(1)))
        except LinkDown as error:
            said.append(str(error))

    async def sends() -> None:
        try:
            await dialler.send_all(bytes(10**6))
        except LinkDown as error:
            said.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reads)
        nursery.start_soon(sends)
        await wait_all_tasks_blocked()
        dialler.close()
        dialler.close()
    for use in (reads, sends):
        await use()
    with pytest.raises(LinkDown):
        dialler.send_nowait(b"x")
    acceptor.close()

    assert said == ["the connection is closed: closed by this side"] * 4


async def test_writing_to_somebody_who_is_gone_is_an_error_and_no_signal(endpoint: str) -> None:
    dialler, acceptor = await joined(endpoint)
    acceptor.close()

    async def go_on() -> None:
        for _ in range(100):
            await dialler.send_all(bytes(10**5))

    with pytest.raises(LinkDown, match=r"Broken pipe|reset"):
        await go_on()
    dialler.close()


async def test_the_last_words_arrive_although_the_other_side_was_still_talking(endpoint: str) -> None:
    """TCP answers a close over unread bytes with a reset, and what was sent before it could get lost."""
    for _ in range(20):
        dialler, acceptor = await joined(endpoint)
        await acceptor.send_all(bytes(10_000))
        await dialler.send_all(b"last words" * 1000)
        dialler.close()

        assert await read(acceptor, 10_000) == b"last words" * 1000
        acceptor.close()


async def test_a_connection_runs_over_it_chunks_and_all(endpoint: str) -> None:
    dialler, acceptor = await authenticated(SystemNetwork(), endpoint, role="data", epoch=3)
    source = np.random.default_rng(1).integers(0, 256, 5 * bounds.CHUNK_BYTES + 17, dtype=np.uint8)
    landed = np.zeros_like(source)
    held = BY_CLASS[m.PayloadHeld]
    frame = codec.encode(m.PayloadHeld(epoch=3, seq=1, receiver=0))
    ends = (End(dialler), End(acceptor, on_chunk=lambda _request, offset, length: landed.data[offset : offset + length]))
    async with trio.open_nursery() as nursery:
        for end in ends:
            nursery.start_soon(end.run)
        for start in range(0, len(source), bounds.CHUNK_BYTES):
            view = source.data[start : start + bounds.CHUNK_BYTES]
            await ends[0].connection.send_chunk(codec.chunk_head(3, 9, start, len(view)), [view])
            ends[0].connection.send_nowait(frame, held.code)
        await ends[1].has(6)
        ends[0].connection.close()
        await ends[1].over.wait()

    assert np.array_equal(source, landed)
    assert ends[1].connection.why == "the other side closed it"


async def test_a_connection_answers_at_once(endpoint: str) -> None:
    dialler, acceptor = await authenticated(SystemNetwork(), endpoint)
    ends = (End(dialler), End(acceptor))
    ends[1].connection._on_frame = lambda *_frame: ends[1].connection.send_nowait(*heartbeat())
    async with trio.open_nursery() as nursery:
        for end in ends:
            nursery.start_soon(end.run)
        for number in range(1, 101):
            ends[0].connection.send_nowait(HEARTBEAT, 30)
            await ends[0].has(number)
        for end in ends:
            end.connection.close()

    assert {frame[2] for frame in ends[0].frames} == {frame_of(BY_CLASS[m.Heartbeat])[12:]}
