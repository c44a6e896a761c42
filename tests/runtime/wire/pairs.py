"""Two ends of a connection in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from attrs import define

from troth.runtime.ports import Stream
from troth.runtime.sim.faults import Faults
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire.challenge import Authenticated, Token, check, prove
from troth.runtime.wire.connection import Connection
from troth.runtime.wire.kinds import Role

LAUNCH = bytes(range(16))
ENDPOINT = "unix:/run/troth/control"


async def read(stream: Stream, nbytes: int) -> bytes:
    """These many bytes, or fewer if it ends."""
    found = bytearray()
    while len(found) < nbytes:
        part = bytearray(nbytes - len(found))
        got = await stream.receive_into(memoryview(part))
        if got == 0:
            break
        found += part[:got]
    return bytes(found)


async def authenticated(
    network: Any, endpoint: str = ENDPOINT, *, role: Role = "control", epoch: int = 0
) -> tuple[Authenticated, Authenticated]:
    """The dialler's and the acceptor's end of a connection that has just been let in, over any network."""
    token = Token.new()
    listener = await network.listen(endpoint)
    ends: list[Authenticated] = []

    async def let_in() -> None:
        ends.append(await check(await listener.accept(), find=lambda *_named: token))

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(let_in)
            dialler = await prove(await network.dial(listener.endpoint), token=token, role=role, launch=LAUNCH, epoch=epoch)
    finally:
        listener.close()
    return dialler, ends[0]


class End:
    """One end: a connection, and what it got."""

    def __init__(self, peer: Authenticated, **given: Any) -> None:
        self.connection = Connection(peer, on_frame=self.take, **given)
        self.frames: list[tuple[int, int, bytes]] = []
        self.failure: Exception | None = None
        self.over = trio.Event()
        self.news = trio.Event()

    def take(self, code: int, epoch: int, body: memoryview) -> None:
        self.frames.append((code, epoch, bytes(body)))
        self.news.set()

    async def has(self, number: int) -> list[tuple[int, int, bytes]]:
        """Wait until these many frames came."""
        while len(self.frames) < number:
            self.news = trio.Event()
            await self.news.wait()
        return self.frames

    async def run(self) -> None:
        try:
            await self.connection.run()
        except Exception as error:
            self.failure = error
        finally:
            self.over.set()


@define(eq=False)
class Pair:
    """Both ends."""

    network: SimNetwork
    dialler: End
    acceptor: End


@asynccontextmanager
async def pair(
    network: SimNetwork | None = None, *, role: Role = "control", epoch: int = 0, run: bool = True, **given: Any
) -> AsyncIterator[Pair]:
    """Two ends that run; ``given`` is for the acceptor's connection."""
    over = network or SimNetwork(Faults())
    dialler_peer, acceptor_peer = await authenticated(over, role=role, epoch=epoch)
    both = Pair(over, End(dialler_peer), End(acceptor_peer, **given))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(both.dialler.run)
        if run:
            nursery.start_soon(both.acceptor.run)
        yield both
        both.dialler.connection.close()
        both.acceptor.connection.close()
