"""The sources of one party: payloads that are kept, and sent to whoever asks for them over the data link.

Rule 1.  Only what is offered is sent. From the moment of its release nothing refers to it, but for a chunk that is on its way out.
Rule 2.  One receiver's transfer is one at a time: asked for again, it goes on from where the new question says.
Rule 3.  Transfers take turns, a chunk each. A chunk is up to CHUNK_BYTES long, and shorter where a connection is slow, so that what
         waits behind it does not wait long.
Rule 4.  That all bytes went out proves nothing, and is reported as the end of the transfer, not of the payload.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio
from attrs import define, field

from troth.runtime.errors import LinkDown
from troth.runtime.payloads.arrays import Payload
from troth.runtime.payloads.pace import Pace
from troth.runtime.wire.bounds import CHUNK_BYTES
from troth.runtime.wire.codec import chunk_head
from troth.runtime.wire.connection import Connection
from troth.runtime.wire.kinds import Pull, PullEnd, PullRefusal, PullRefused
from troth.spec.core import Event, Key, Message, TransferEnded, TransferOutcome, TransferProgressed

SHORTEST_CHUNK = CHUNK_BYTES // 16
QUICK_S, SLOW_S = 0.1, 0.5
"""A chunk that was taken faster is followed by a longer one, one that was taken more slowly by a shorter one."""


@define(eq=False)
class _Transfer:
    """One payload on its way to one receiver."""

    key: Key
    request: int
    epoch: int
    buffers: tuple[memoryview, ...]
    nbytes: int
    offset: int = 0
    over: bool = False
    pace: Pace = field(factory=Pace)
    _buffer: int = 0
    _start: int = 0
    """Where in that buffer ``offset`` is."""

    def seek(self, offset: int) -> None:
        """Go on from there."""
        buffer, rest = 0, offset
        while buffer < len(self.buffers) and rest >= len(self.buffers[buffer]):
            rest -= len(self.buffers[buffer])
            buffer += 1
        self.offset, self._buffer, self._start = offset, buffer, rest

    def take(self, most: int) -> list[memoryview]:
        """The next bytes, up to that many."""
        views = []
        while most and self._buffer < len(self.buffers):
            view = self.buffers[self._buffer][self._start : self._start + most]
            if view:
                views.append(view)
                most -= len(view)
                self._start += len(view)
                self.offset += len(view)
            if self._start == len(self.buffers[self._buffer]):
                self._buffer, self._start = self._buffer + 1, 0
        return views

    def stop(self) -> None:
        """Send no more of it, and let go of it."""
        self.over = True
        self.buffers = ()


class Turns:
    """The transfers of one connection that wait to send their next chunk."""

    __slots__ = ("_waiting", "_wake")

    def __init__(self) -> None:
        self._waiting: deque[_Transfer] = deque()
        self._wake = trio.Event()

    def add(self, transfer: _Transfer) -> None:
        """Behind those that wait already."""
        self._waiting.append(transfer)
        self._wake.set()

    async def next(self) -> _Transfer:
        """The one whose turn it is."""
        while not self._waiting:
            self._wake = trio.Event()
            await self._wake.wait()
        return self._waiting.popleft()


class Sources:
    """What a party offers. ``kind`` is what its transfers are called; ``give`` takes what happens to them; ``say`` sends a frame."""

    def __init__(self, kind: str, give: Callable[[Event], object], say: Callable[[Message], bool]) -> None:
        self._kind = kind
        self._give = give
        self._say = say
        self._offers: dict[Key, Payload] = {}
        self._transfers: dict[Key, _Transfer] = {}
        self._turns = Turns()
        self.served = 0
        """Bytes that went out."""

    def offer(self, key: Key, payload: Payload) -> None:
        """Keep a payload for its receiver."""
        self._offers[key] = payload

    def release(self, key: Key) -> None:
        """Let go of a payload, in the middle of its transfer too."""
        self._offers.pop(key, None)
        transfer = self._transfers.pop(key, None)
        if transfer is not None:
            transfer.stop()
            self._say(PullEnd(epoch=transfer.epoch, request=transfer.request, total=transfer.offset, ok=False))

    def asked(self, frame: Pull) -> None:
        """A receiver wants a payload, from some offset on."""
        key = frame.seq, frame.receiver
        payload = self._offers.get(key) if frame.kind.value == self._kind else None
        if payload is None or frame.offset > payload.nbytes:
            reason = PullRefusal.GONE if payload is None else PullRefusal.BEYOND
            self._say(PullRefused(epoch=frame.epoch, request=frame.request, reason=reason))
            return
        earlier = self._transfers.pop(key, None)
        transfer = _Transfer(key, frame.request, frame.epoch, payload.buffers, payload.nbytes)
        if earlier is not None:
            transfer.pace = earlier.pace
            earlier.stop()
        transfer.seek(frame.offset)
        self._transfers[key] = transfer
        self._turns.add(transfer)

    def stopped(self, request: int) -> None:
        """A receiver wants no more of what it asked for. It may ask again."""
        for transfer in list(self._transfers.values()):
            if transfer.request == request:
                self._end(transfer, TransferOutcome.FAILED)

    def begin(self) -> Turns:
        """There is a new connection: its turns, for ``write``."""
        self._turns = Turns()
        return self._turns

    def broke(self, *, report: bool = True) -> None:
        """The connection is gone, and every transfer with it."""
        for transfer in list(self._transfers.values()):
            if not transfer.over and report:
                self._end(transfer, TransferOutcome.FAILED)
            else:
                transfer.stop()
        self._transfers.clear()

    async def write(self, connection: Connection, turns: Turns) -> None:
        """Send what is asked for over a connection, until that breaks."""
        size = CHUNK_BYTES // 4
        while True:
            transfer = await turns.next()
            start, views = transfer.offset, transfer.take(size)
            if views:
                begun = trio.current_time()
                try:
                    await connection.send_chunk(chunk_head(transfer.epoch, transfer.request, start, transfer.offset - start), views)
                except LinkDown:
                    return
                self.served += transfer.offset - start
                took_s = trio.current_time() - begun
                if took_s < QUICK_S:
                    size = min(2 * size, CHUNK_BYTES)
                elif took_s > SLOW_S:
                    size = max(size // 2, SHORTEST_CHUNK)
            if not transfer.over:
                self._sent(transfer, turns, moved=bool(views))
            # While this waits for its next turn it must not keep alive what is released meanwhile.
            del transfer, views

    def _sent(self, transfer: _Transfer, turns: Turns, *, moved: bool) -> None:
        if transfer.offset == transfer.nbytes:
            transfer.pace.unsaid |= moved
            self._say(PullEnd(epoch=transfer.epoch, request=transfer.request, total=transfer.nbytes, ok=True))
            self._end(transfer, TransferOutcome.COMPLETE)
            return
        turns.add(transfer)
        if transfer.pace.moved():
            self._give(TransferProgressed(self._kind, transfer.key))

    def _end(self, transfer: _Transfer, outcome: TransferOutcome) -> None:
        transfer.stop()
        if self._transfers.get(transfer.key) is transfer:
            del self._transfers[transfer.key]
        if transfer.pace.unsaid:
            self._give(TransferProgressed(self._kind, transfer.key))
        self._give(TransferEnded(self._kind, transfer.key, outcome))
