"""Frames that are held until a hand lets them through."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from troth.runtime.errors import LinkDown
from troth.runtime.sim.faults import DOWN, Faults, Hold
from troth.runtime.sim.network import SimConnection, SimNetwork, SimStream
from troth.runtime.wire import challenge
from troth.runtime.wire.codec import encode
from troth.spec import messages as m

FRAMES = [encode(m.TaskStatus(epoch=1, seq=seq)) for seq in (1, 2, 3)]


async def _dialled(capacity: int = 1 << 16) -> tuple[SimConnection, SimStream, SimStream]:
    """A connection behind its opening, on which every frame to the dialler is held."""
    network = SimNetwork(Faults(decide=lambda seen: Hold()), capacity=capacity)
    listener = await network.listen("unix:/here")
    dialler = await network.dial("unix:/here")
    acceptor = await listener.accept()
    acceptor.send_nowait(bytes(challenge.ACCEPTOR_BYTES))
    await dialler.receive_into(memoryview(bytearray(challenge.ACCEPTOR_BYTES)))
    return network.connections[0], dialler, acceptor


async def _read(stream: SimStream) -> bytes:
    buffer = memoryview(bytearray(4096))
    with trio.move_on_after(1):
        return bytes(buffer[: await stream.receive_into(buffer)])
    return b"nothing"


def run(main: object) -> None:
    trio.run(main, clock=MockClock(autojump_threshold=0))  # type: ignore[arg-type]


def test_what_is_held_comes_when_it_is_let_through_in_any_order() -> None:
    """Out of order, twice, or never."""

    async def main() -> None:
        connection, dialler, acceptor = await _dialled()
        for frame in FRAMES:
            acceptor.send_nowait(frame)
        assert await _read(dialler) == b"nothing"

        pipe = connection.pipes[DOWN]
        assert pipe.waiting == FRAMES
        pipe.let(1)
        assert await _read(dialler) == FRAMES[1]
        pipe.let(stays=True)
        pipe.let()
        assert await _read(dialler) == FRAMES[0] * 2
        assert pipe.lose() == FRAMES[2]
        assert await _read(dialler) == b"nothing"

    run(main)


def test_the_end_of_the_writer_comes_behind_what_is_held() -> None:
    """Whoever reads sees it when nothing is held any more."""

    async def main() -> None:
        connection, dialler, acceptor = await _dialled()
        for frame in FRAMES[:2]:
            acceptor.send_nowait(frame)
        acceptor.close()
        assert await _read(dialler) == b"nothing"

        connection.pipes[DOWN].let()
        assert await _read(dialler) == FRAMES[0]
        connection.pipes[DOWN].lose()
        assert await _read(dialler) == b""

    run(main)


def test_what_is_held_takes_room() -> None:
    """A writer waits for a reader that does not come to read."""

    async def main() -> None:
        connection, _, acceptor = await _dialled(capacity=challenge.ACCEPTOR_BYTES)
        rest = memoryview(FRAMES[0] * 20)
        while taken := acceptor.send_nowait(rest):
            rest = rest[taken:]
        assert rest
        connection.pipes[DOWN].lose()
        assert acceptor.send_nowait(rest) > 0

    run(main)


def test_a_broken_connection_loses_what_is_held() -> None:
    """It was on its way."""

    async def main() -> None:
        connection, dialler, acceptor = await _dialled()
        acceptor.send_nowait(FRAMES[0])
        connection.cut()
        assert connection.pipes[DOWN].waiting == []
        with pytest.raises(LinkDown):
            await dialler.receive_into(memoryview(bytearray(1)))

    run(main)
