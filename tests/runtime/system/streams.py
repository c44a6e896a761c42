"""Two ends of a real connection."""

from __future__ import annotations

import trio

from troth.runtime.ports import Network, Stream
from troth.runtime.system.network import SystemNetwork


async def joined(endpoint: str) -> tuple[Stream, Stream]:
    network: Network = SystemNetwork()
    listener = await network.listen(endpoint)
    ends: list[Stream] = []

    async def accept() -> None:
        ends.append(await listener.accept())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        dialler = await network.dial(listener.endpoint)
    listener.close()
    return dialler, ends[0]


async def read(stream: Stream, nbytes: int) -> bytes:
    found = bytearray(nbytes)
    done = 0
    while done < nbytes:
        got = await stream.receive_into(memoryview(found)[done:])
        if got == 0:
            break
        done += got
    return bytes(found[:done])
