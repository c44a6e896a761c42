"""The network in memory behaves like sockets where the script says nothing."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.runtime.wire.pairs import read
from troth.runtime.errors import EndpointRefused, LinkDown
from troth.runtime.ports import Listener, Network, Stream
from troth.runtime.sim.faults import DOWN, UP, Faults, Happened, Refused, Slow
from troth.runtime.sim.network import BACKLOG, SimNetwork

pytestmark = pytest.mark.trio
ENDPOINT = "unix:/somewhere"


async def joined(network: Network) -> tuple[Stream, Stream]:
    """The dialler's and the acceptor's end."""
    listener = await network.listen(ENDPOINT)
    dialler = await network.dial(listener.endpoint)
    acceptor = await listener.accept()
    listener.close()
    return dialler, acceptor


async def test_bytes_go_both_ways_and_are_recorded_and_counted() -> None:
    network = SimNetwork()
    dialler, acceptor = await joined(network)
    await dialler.send_all(b"there")
    await acceptor.send_all(b"and back")
    assert await read(acceptor, 3) == b"the"
    assert await read(dialler, 8) == b"and back"

    (connection,) = network.connections
    assert (bytes(connection.up.written), bytes(connection.up.arrived)) == (b"there", b"the")
    assert (connection.up.written_bytes, connection.up.arrived_bytes) == (5, 3)
    assert (bytes(connection.down.written), bytes(connection.down.arrived)) == (b"and back", b"and back")


async def test_counting_goes_on_where_recording_is_off() -> None:
    network = SimNetwork(record=False)
    dialler, acceptor = await joined(network)
    await dialler.send_all(b"there")
    await read(acceptor, 5)

    up = network.connections[0].up
    assert (up.written_bytes, up.arrived_bytes, bytes(up.written), bytes(up.arrived)) == (5, 5, b"", b"")


async def test_a_full_buffer_takes_nothing_more_and_a_reader_makes_room() -> None:
    dialler, acceptor = await joined(SimNetwork(capacity=4))
    assert dialler.send_nowait(b"abcdef") == 4
    assert dialler.send_nowait(b"ef") == 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dialler.send_all, b"efghijk")
        await wait_all_tasks_blocked()
        assert await read(acceptor, 11) == b"abcdefghijk"


@given(st.lists(st.binary(max_size=50), max_size=10), st.integers(1, 20), st.integers(1, 20))
async def test_any_bytes_arrive_as_they_were_sent(sent: list[bytes], capacity: int, most_at_once: int) -> None:
    dialler, acceptor = await joined(SimNetwork(capacity=capacity, most_at_once=most_at_once))

    async def send() -> None:
        for data in sent:
            await dialler.send_all(data)
        dialler.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        assert await read(acceptor, 10**6) == b"".join(sent)


async def test_what_was_sent_before_a_close_arrives_and_then_the_end() -> None:
    dialler, acceptor = await joined(SimNetwork())
    await dialler.send_all(b"last words")
    dialler.close()
    dialler.close()

    assert await read(acceptor, 100) == b"last words"
    assert await acceptor.receive_into(memoryview(bytearray(1))) == 0
    with pytest.raises(LinkDown, match="nobody reads"):
        acceptor.send_nowait(b"x")


async def test_close_wakes_whoever_waits_on_either_side() -> None:
    dialler, acceptor = await joined(SimNetwork(capacity=1))
    said: list[str] = []

    async def sends(stream: Stream) -> None:
        try:
            await stream.send_all(b"xxxx")
        except LinkDown as error:
            said.append(f"send: {error}")

    async def reads(stream: Stream) -> None:
        try:
            said.append(f"read: {await stream.receive_into(memoryview(bytearray(1)))}")
        except LinkDown as error:
            said.append(f"read: {error}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sends, dialler)
        nursery.start_soon(reads, dialler)
        await wait_all_tasks_blocked()
        dialler.close()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sends, acceptor)
        nursery.start_soon(reads, acceptor)

    assert sorted(said) == [
        "read: 1",
        "read: the connection is closed: closed by this side",
        "send: the connection broke: nobody reads",
        "send: the connection is closed: closed by this side",
    ]


async def test_nobody_is_there_before_somebody_listens_nor_after() -> None:
    network = SimNetwork()
    with pytest.raises(LinkDown, match="nobody listens"):
        await network.dial(ENDPOINT)
    listener = await network.listen(ENDPOINT)
    with pytest.raises(EndpointRefused, match="exists already"):
        await network.listen(ENDPOINT)
    waiting = await network.dial(ENDPOINT)
    listener.close()
    listener.close()

    with pytest.raises(LinkDown, match="nobody listens"):
        await network.dial(ENDPOINT)
    with pytest.raises(LinkDown, match="is closed"):
        await listener.accept()
    assert await waiting.receive_into(memoryview(bytearray(1))) == 0
    await network.listen(ENDPOINT)


async def test_closing_a_listener_wakes_whoever_accepts() -> None:
    network = SimNetwork()
    listener = await network.listen(ENDPOINT)
    ended: list[str] = []

    async def accept() -> None:
        try:
            await listener.accept()
        except LinkDown as error:
            ended.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        nursery.start_soon(accept)
        await wait_all_tasks_blocked()
        listener.close()

    assert ended == ["unix:/somewhere is closed"] * 2


async def test_a_port_of_zero_is_a_free_one() -> None:
    network = SimNetwork()
    first, second = await network.listen("tcp:127.0.0.1:0"), await network.listen("tcp:127.0.0.1:0")

    assert first.endpoint != second.endpoint
    await network.dial(second.endpoint)
    await second.accept()


async def test_too_many_that_wait_are_refused() -> None:
    network = SimNetwork()
    listener: Listener = await network.listen(ENDPOINT)
    for _ in range(BACKLOG):
        await network.dial(ENDPOINT)
    with pytest.raises(LinkDown, match="too many"):
        await network.dial(ENDPOINT)
    await listener.accept()
    await network.dial(ENDPOINT)

    assert len(network.connections) == BACKLOG + 1
    assert network.dials == BACKLOG + 2


async def test_dials_can_be_refused_and_take_time(autojump_clock: MockClock) -> None:
    faults = Faults(dial_s=2.0)
    faults.refuse_dials(2)
    network = SimNetwork(faults)
    await network.listen(ENDPOINT)
    start = trio.current_time()
    for _ in range(2):
        with pytest.raises(LinkDown, match="refused"):
            await network.dial(ENDPOINT)
    await network.dial(ENDPOINT)

    assert trio.current_time() - start == 6
    assert faults.journal == [Happened(start + 2, None, None, Refused()), Happened(start + 4, None, None, Refused())]


async def test_a_cut_loses_what_is_on_its_way_and_both_sides_learn_of_it() -> None:
    network = SimNetwork()
    dialler, acceptor = await joined(network)
    await dialler.send_all(b"lost")
    network.connections[0].cut()

    for stream in (dialler, acceptor):
        with pytest.raises(LinkDown, match="reset"):
            await stream.receive_into(memoryview(bytearray(1)))
        with pytest.raises(LinkDown):
            stream.send_nowait(b"x")
    assert not network.connections[0].alive


async def test_a_stalled_direction_fills_and_goes_on_where_it_was() -> None:
    network = SimNetwork(capacity=10)
    dialler, acceptor = await joined(network)
    network.connections[0].stall(UP)
    assert dialler.send_nowait(bytes(20)) == 10
    await acceptor.send_all(b"back")
    assert await read(dialler, 4) == b"back"
    with trio.move_on_after(0.01) as scope:
        await read(acceptor, 1)
    assert scope.cancelled_caught
    network.connections[0].resume(UP)

    assert await read(acceptor, 10) == bytes(10)


@pytest.mark.parametrize("after", [0, 1, 7])
async def test_a_connection_can_be_cut_or_ended_after_some_more_bytes(after: int) -> None:
    for fault in ("cut", "end"):
        network = SimNetwork()
        dialler, acceptor = await joined(network)
        await dialler.send_all(b"1234")
        connection = network.connections[0]
        (connection.cut_after if fault == "cut" else connection.end_after)(UP, after)
        if after:
            await dialler.send_all(b"abcdefghijk")

        assert await read(acceptor, 4 + after) == b"1234abcdefghijk"[: 4 + after]
        if fault == "cut":
            with pytest.raises(LinkDown):
                await read(acceptor, 1)
        else:
            assert await read(acceptor, 1) == b""
        with pytest.raises(LinkDown):
            dialler.send_nowait(b"x")
        if fault == "end":
            await acceptor.send_all(b"the other way is as it was")
            assert await read(dialler, 5) == b"the o"


async def test_every_byte_can_be_slowed_down_without_changing_their_order(autojump_clock: MockClock) -> None:
    network = SimNetwork()
    dialler, acceptor = await joined(network)
    start = trio.current_time()
    await dialler.send_all(b"a")
    network.connections[0].apply(UP, Slow(3.0))
    await dialler.send_all(b"b")
    network.connections[0].apply(UP, Slow(0.0))
    await dialler.send_all(b"c")

    assert await read(acceptor, 1) == b"a"
    assert trio.current_time() == start
    assert await read(acceptor, 2) == b"bc"
    assert trio.current_time() == start + 3
    await acceptor.send_all(b"d")
    assert await read(dialler, 1) == b"d"
    assert trio.current_time() == start + 3
    assert network.connections[0].pipes[DOWN].arrived == b"d"
