"""A host's and a trainer's data link, joined over the network in memory, with everything that they report written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import trio
from attrs import define, field

from troth.runtime.payloads import Carried, DataLink, Payload, encode
from troth.runtime.sim.faults import Faults
from troth.runtime.sim.network import SimConnection, SimNetwork
from troth.runtime.wire import frames
from troth.runtime.wire.challenge import Token, check, prove
from troth.runtime.wire.kinds import CHUNK, DATA
from troth.spec.core import Event, Key, TransferEnded, TransferOutcome, TransferProgressed

EPOCH = 7
ENDPOINT = "unix:/sim/data"
KEY = (1, 0)
MIB = 2**20
COMPLETE, FAILED = TransferOutcome.COMPLETE, TransferOutcome.FAILED


def announced(payload: Payload, *, inline: bool = False) -> Carried:
    """What the message of that payload says."""
    return Carried(payload.manifest, payload.joined() if inline else b"", payload.nbytes, payload.digest)


def ended(key: Key = KEY, outcome: TransferOutcome = COMPLETE, kind: str = "payload") -> TransferEnded:
    """That a transfer is over."""
    return TransferEnded(kind, key, outcome)


@define(eq=False)
class Side:
    """One end of the link: what the party and its receivers were told, and the trees that came."""

    offers: str
    fetches: str
    link: DataLink = field(init=False)
    party: list[Event] = field(factory=list)
    receivers: list[tuple[Key, Event]] = field(factory=list)
    times: list[tuple[float, Event]] = field(factory=list)
    trees: dict[Key, list[Any]] = field(factory=dict)
    react: Callable[[Event], None] = field(default=lambda event: None)
    """Called with each event, as a core would be."""
    _news: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot)

    def __attrs_post_init__(self) -> None:
        self.link = DataLink(self._give, self._tell, self.offers, self.fetches, f"{self.offers}s' side")

    def _give(self, event: Event) -> None:
        self.party.append(event)
        self._note(event)

    def _tell(self, key: Key, event: Event) -> None:
        self.receivers.append((key, event))
        self._note(event)

    def _note(self, event: Event) -> None:
        self.times.append((trio.current_time(), event))
        self._news.unpark_all()
        self.react(event)

    def offer(self, tree: Any, key: Key = KEY) -> Payload:
        """Offer a tree; its payload."""
        payload = encode(tree)
        self.link.offer(self.offers, key, payload)
        return payload

    def release(self, key: Key = KEY) -> None:
        """Offer it no more."""
        self.link.release(self.offers, key)

    def pull(self, payload: Payload | Carried, key: Key = KEY) -> bool:
        """Fetch a payload."""
        carried = payload if isinstance(payload, Carried) else announced(payload)
        return self.link.pull(self.fetches, key, carried, self.trees.setdefault(key, []).append)

    def cancel(self, key: Key = KEY) -> None:
        """Fetch it no more."""
        self.link.cancel(self.fetches, key)

    def ends(self, key: Key = KEY) -> list[TransferOutcome]:
        """How the downloads of a key ended."""
        return [event.outcome for where, event in self.receivers if where == key and isinstance(event, TransferEnded)]

    def served(self, key: Key = KEY) -> list[TransferOutcome]:
        """How the transfers of a source ended."""
        return [event.outcome for event in self.party if isinstance(event, TransferEnded) and event.key == key]

    def progress(self, kind: str, key: Key = KEY) -> list[float]:
        """When the party, or for ``payload`` a receiver, was told that bytes moved."""
        return [when for when, event in self.times if event == TransferProgressed(kind, key)]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something that was reported makes it true."""
        while not condition():
            await self._news.park()

    async def done(self, key: Key = KEY, times: int = 1) -> TransferOutcome:
        """Wait until the download of a key has ended that often; how it did."""
        await self.until(lambda: len(self.ends(key)) >= times)
        return self.ends(key)[-1]


@define(eq=False)
class Pair:
    """The host's side, the trainer's, and the network between them."""

    nursery: trio.Nursery
    faults: Faults = field(factory=Faults)
    capacity: int = 64 * 1024
    most_at_once: int = 2**63
    network: SimNetwork = field(init=False)
    host: Side = field(factory=lambda: Side("task", "result"))
    trainer: Side = field(factory=lambda: Side("result", "task"))
    _token: Token = field(factory=Token.new)
    _listener: Any = None

    def __attrs_post_init__(self) -> None:
        self.network = SimNetwork(self.faults, capacity=self.capacity, most_at_once=self.most_at_once)

    async def connect(self) -> SimConnection:
        """Dial, as the trainer does; the connection, once both sides speak over it."""
        if self._listener is None:
            self._listener = await self.network.listen(ENDPOINT)
        launch = bytes(16)

        async def accept() -> None:
            self.nursery.start_soon(self.host.link.serve, await check(await self._listener.accept(), find=lambda *_: self._token))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            stream = await self.network.dial(ENDPOINT)
            peer = await prove(stream, token=self._token, role=DATA, launch=launch, epoch=EPOCH)
        self.nursery.start_soon(self.trainer.link.serve, peer)
        while not (self.host.link.up and self.trainer.link.up):
            await trio.lowlevel.checkpoint()
        return self.network.connections[-1]


def chunks(written: bytes, opening: int) -> list[tuple[int, int, int]]:
    """The chunks among what one side wrote: request, offset and size of each. ``opening`` is the size of its part of the challenge."""
    found, at = [], opening
    while at + frames.HEADER_BYTES <= len(written):
        _magic, _version, code, _epoch, length = frames.HEADER.unpack_from(written, at)
        at += frames.HEADER_BYTES
        if code == CHUNK and at + frames.CHUNK_HEAD_BYTES <= len(written):
            found.append((*frames.CHUNK_HEAD.unpack_from(written, at), length - frames.CHUNK_HEAD_BYTES))
        at += length
    return found


def weights(nbytes: int, seed: int = 0) -> dict[str, Any]:
    """A tree of a few arrays, of about that many bytes."""
    random = np.random.default_rng(seed)
    return {
        "big": random.integers(0, 256, nbytes // 2, dtype=np.uint8),
        "layers": [random.normal(size=nbytes // 64) for _ in range(4)],
        "steps": np.int64(seed),
    }
