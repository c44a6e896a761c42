"""A connection: frames over an authenticated stream, in both directions, with bounds.

Rule 1.  Only an authenticated stream becomes a connection, and it carries frames of its own link only: no data on a control connection,
         and the other way round.
Rule 2.  A frame whose epoch this connection was not authenticated for ends it, before the body is decoded. On a data connection that is
         every other epoch. On a control connection it is every earlier one: the first session comes into being there, and a later one
         may take its place, but nothing of a session that is over can come back.
Rule 3.  Sending never waits. What cannot be written at once is queued; the queue is bounded by what each kind may have outstanding. One
         more closes the connection, and so does a write from which no byte is taken for WRITE_STALL_S. HEARTBEAT alone is merged, LOG alone
         is dropped, and counted.
Rule 4.  Frames leave and arrive in order. ``on_frame`` is called synchronously, for as many frames as one read brought.
Rule 5.  The bytes of a chunk go from the stream to where they belong, and are not looked at. They share the connection with small frames,
         which never wait for more than one chunk.
Rule 6.  Whoever waits on a connection is woken by its end.
Rule 7.  The other side's last words count: a write that fails because it has closed does not keep what it said before from being read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import trio

from troth.runtime.errors import FrameError, LinkDown, RuntimeFault
from troth.runtime.ports import Buffer, Stream
from troth.runtime.wire import bounds, frames
from troth.runtime.wire.challenge import Authenticated
from troth.runtime.wire.kinds import BOUNDS_OF_LINK, BY_CODE, CHUNK, DATA, WhenFull
from troth.spec.limits import MAX_EPOCH

OnFrame: TypeAlias = Callable[[int, int, memoryview], object]
"""Called with kind, epoch and body; the body is gone when it returns."""
OnChunk: TypeAlias = Callable[[int, int, int], "memoryview | None"]
"""Called with request, offset and length: where the bytes belong. After a shorter view it is asked again; ``None`` discards the rest."""
OnLanded: TypeAlias = Callable[[int, int, int], object]
"""Called with request, offset and number of bytes that are now where ``OnChunk`` wanted them."""

HEADER_BYTES = frames.HEADER_BYTES
CHUNK_START = HEADER_BYTES + frames.CHUNK_HEAD_BYTES
BEGUN: Final = -1
"""The kind of what is queued as the rest of a frame."""


def _discard(_request: int, _offset: int, _length: int) -> memoryview | None:
    return None


def _nothing(_request: int, _offset: int, _length: int) -> None:
    return None


class Connection:
    """Frames over an authenticated stream. ``run`` reads them; it must run for queued frames to be written, too."""

    def __init__(self, peer: Authenticated, *, on_frame: OnFrame, on_chunk: OnChunk = _discard, on_landed: OnLanded = _nothing) -> None:
        self.peer = peer
        self.why: str | None = None
        """Why it is closed; ``None`` while it is open."""
        self.dropped = 0
        """Frames of best effort that were not sent, for want of room."""
        self.frames = 0
        """Frames that came and were handed on."""
        self._stream = peer.stream
        self._on_frame = on_frame
        self._on_chunk = on_chunk
        self._on_landed = on_landed
        self._bounds = BOUNDS_OF_LINK[peer.role]
        self._low_epoch = peer.epoch
        self._high_epoch = peer.epoch if peer.role == DATA else MAX_EPOCH
        self._queue: deque[tuple[int, Buffer]] = deque()
        self._waiting: dict[int, int] = {}
        self._turn = trio.Lock()
        """Held by whoever writes and may have to wait in the middle of a frame."""
        self._wake = trio.Event()
        self._mute: str | None = None
        """Why nothing can be sent any more; ``None`` while it can."""
        self._unheard = False
        """Whether that is because the other side takes nothing any more. It may have said something before that."""

    # -- the end -------------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self.why is not None

    def close(self, why: str = "closed by this side") -> None:
        """Close at once; what is queued is lost. May be called again."""
        if self.why is None:
            self.why = self._mute = why
            self._queue.clear()
            self._waiting.clear()
            self._stream.close()
            self._wake.set()

    def close_when_sent(self) -> None:
        """Close after what was already sent. Nothing can be sent any more, and ``run`` must be running if something is queued."""
        if self._unheard or (not self._queue and not self._turn.locked()):
            self.close()
        if self._mute is None:
            self._mute = "closed by this side"
            self._wake.set()

    def _went_deaf(self, error: LinkDown) -> LinkDown:
        """The other side takes nothing any more: it has closed, or is gone. What it said before that can still be read."""
        if self.why is None:
            self._mute, self._unheard = str(error), True
            self._queue.clear()
            self._waiting.clear()
            self._wake.set()
        return error

    # -- sending -------------------------------------------------------------------------------------------------------

    def send_nowait(self, frame: bytes, code: int) -> bool:
        """Send a frame of kind ``code``, at once if nothing is in its way. False if it was dropped, which is counted.

        Raises ``LinkDown`` if the connection is closed, breaks, or is closed because too much waits.
        """
        if self._mute is not None:
            raise LinkDown(f"the connection is closed: {self._mute}")
        if self._queue or self._turn.locked():
            return self._queued(frame, code)
        try:
            taken = self._stream.send_nowait(frame)
        except LinkDown as error:
            raise self._went_deaf(error) from None
        if taken < len(frame):
            self._put(frame if taken == 0 else memoryview(frame)[taken:], code, begun=taken > 0)
        return True

    def _put(self, frame: Buffer, code: int, *, begun: bool = False) -> None:
        # The rest of a frame that has begun is nobody's copy any more: no newer one can take its place.
        self._queue.append((BEGUN if begun else code, frame))
        if not begun:
            self._waiting[code] = self._waiting.get(code, 0) + 1
        self._wake.set()

    def _queued(self, frame: bytes, code: int) -> bool:
        kind = BY_CODE[code]
        if self._waiting.get(code, 0) < kind.outstanding:
            self._put(frame, code)
            return True
        if kind.when_full is WhenFull.DROP:
            self.dropped += 1
            return False
        if kind.when_full is WhenFull.NEWEST:
            where = next(index for index, (waiting, _) in enumerate(self._queue) if waiting == code)
            self._queue[where] = (code, frame)
            return True
        why = f"{kind.outstanding} {kind.name} wait to be written already: the other side does not read"
        self.close(why)
        raise LinkDown(why)

    async def send_chunk(self, head: bytes, views: Sequence[memoryview]) -> None:
        """Send a CHUNK: ``codec.chunk_head`` and the bytes that it announces, from any number of views.

        Waits for room, behind other chunks and before none. Raises ``LinkDown``. If it is cancelled in the middle, the frame can never
        be completed and the connection is closed.
        """
        async with self._turn:
            if self._mute is not None:
                raise LinkDown(f"the connection is closed: {self._mute}")
            await self._flush()
            for piece in _pieces(head, views):
                await self._write(piece)
        # What was queued meanwhile is the writer's, and so is the end if one was asked for.
        if self._queue or self._mute is not None:
            self._wake.set()

    async def _write_queued(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            async with self._turn:
                with suppress(LinkDown):
                    await self._flush()
            if self._mute is not None:
                break
        if self._unheard:
            await trio.sleep(bounds.LAST_WORDS_S)
        self.close(self._mute)

    async def _flush(self) -> None:
        """Write what is queued. Only by whoever has the turn."""
        while self._queue:
            size = 0
            joined: list[Buffer] = []
            while self._queue and (not joined or size + len(self._queue[0][1]) <= bounds.READ_BYTES):
                code, frame = self._queue.popleft()
                if code != BEGUN:
                    self._waiting[code] -= 1
                joined.append(frame)
                size += len(frame)
            await self._write(joined[0] if len(joined) == 1 else b"".join(joined))

    async def _write(self, data: Buffer) -> None:
        """Write all of it. Only by whoever has the turn. No progress for too long ends the connection, and so does being cancelled."""
        view, done = memoryview(data), 0
        try:
            while done < len(view):
                done += (taken := self._stream.send_nowait(view[done:]))
                if taken or done == len(view):
                    continue
                piece = view[done : done + bounds.PATIENT_BYTES]
                with trio.fail_after(bounds.WRITE_STALL_S):
                    await self._stream.send_all(piece)
                done += len(piece)
        except trio.TooSlowError:
            self.close(f"the other side took no bytes for {bounds.WRITE_STALL_S:g} s")
            raise LinkDown(str(self.why)) from None
        except LinkDown as error:
            raise self._went_deaf(error) from None
        except BaseException:
            self.close("cancelled in the middle of a frame")
            raise

    # -- receiving -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read frames, and write what is queued, until the connection ends; ``why`` says how it did.

        Returns when either side closed it, or when it broke. Raises ``FrameError`` if the other side sent what is not for this
        connection, or whatever ``on_frame`` raised. Closed in any case.
        """
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_queued)
            try:
                await self._read()
            except LinkDown as error:
                self.close(str(error))
            except Exception as error:  # raised below, outside of the nursery, which would wrap it
                self.close(str(error))
                failure = error
            finally:
                self.close()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _read(self) -> None:
        inbox = _Inbox(self._stream)
        while self.why is None:
            needed = HEADER_BYTES
            while inbox.size >= HEADER_BYTES:
                code, epoch, length = frames.parse_head(inbox.buffer, inbox.start, self._bounds)
                if not self._low_epoch <= epoch <= self._high_epoch:
                    raise FrameError(f"{BY_CODE[code].name}: this connection is for session {self.peer.epoch}, the frame is of {epoch}")
                if code == CHUNK:
                    if length <= frames.CHUNK_HEAD_BYTES:
                        raise FrameError("a chunk without bytes")
                    needed = CHUNK_START
                    if inbox.size < needed:
                        break
                    request, offset = frames.CHUNK_HEAD.unpack_from(inbox.buffer, inbox.start + HEADER_BYTES)
                    inbox.start += CHUNK_START
                    self.frames += 1
                    await self._land(inbox, request, offset, length - frames.CHUNK_HEAD_BYTES)
                    needed = HEADER_BYTES
                    continue
                needed = HEADER_BYTES + length
                if inbox.size < needed:
                    break
                body = inbox.start + HEADER_BYTES
                inbox.start += needed
                self.frames += 1
                self._on_frame(code, epoch, inbox.view[body : inbox.start])
                if self.why is not None:
                    return
                needed = HEADER_BYTES
            if not await inbox.more(needed):
                self.close("the other side closed it" if inbox.size == 0 else "the connection ended in the middle of a frame")

    async def _land(self, inbox: _Inbox, request: int, offset: int, left: int) -> None:
        """Bring the bytes of a chunk to where they belong."""
        while left:
            place = self._on_chunk(request, offset, left)
            size = left if place is None else min(left, len(place))
            if size == 0:
                raise RuntimeFault("there is no room for the bytes of a chunk, where there was said to be")
            done = 0
            while done < size:
                if inbox.size == 0 and place is not None and size - done >= bounds.DIRECT_BYTES:
                    got = await self._stream.receive_into(place[done:size])
                else:
                    if inbox.size == 0 and not await inbox.more(1):
                        raise LinkDown("the connection ended in the middle of a chunk")
                    got = min(inbox.size, size - done)
                    if place is not None:
                        place[done : done + got] = inbox.view[inbox.start : inbox.start + got]
                    inbox.start += got
                if got == 0:
                    raise LinkDown("the connection ended in the middle of a chunk")
                if place is not None:
                    self._on_landed(request, offset + done, got)
                done += got
            offset += size
            left -= size


class _Inbox:
    """The bytes that were read and not taken yet: ``buffer[start:end]``. One buffer, used again and again."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.start = 0
        self.end = 0
        self._allocate(bounds.READ_BYTES)

    def _allocate(self, nbytes: int) -> None:
        self.buffer = bytearray(nbytes)
        self.view = memoryview(self.buffer)

    @property
    def size(self) -> int:
        return self.end - self.start

    async def more(self, needed: int) -> bool:
        """Read once, having made room for ``needed`` bytes from the start. False at the end."""
        if self.start == self.end:
            self.start = self.end = 0
            if len(self.buffer) > bounds.READ_BYTES >= needed:
                self._allocate(bounds.READ_BYTES)  # a long frame is done with
        if self.start + needed > len(self.buffer):
            waiting = self.view[self.start : self.end]
            if needed > len(self.buffer):
                self._allocate(needed)
            self.view[: len(waiting)] = waiting
            self.start, self.end = 0, len(waiting)
        got = await self._stream.receive_into(self.view[self.end :])
        self.end += got
        return got > 0


def _pieces(head: bytes, views: Sequence[memoryview]) -> Iterator[Buffer]:
    """The bytes in as few writes as are worth it: small views are put together, large ones are not copied."""
    small: list[Buffer] = [head]
    size = len(head)
    for view in views:
        if len(view) >= bounds.DIRECT_BYTES:
            yield b"".join(small)
            yield view
            small, size = [], 0
            continue
        small.append(view)
        size += len(view)
        if size >= bounds.READ_BYTES:
            yield b"".join(small)
            small, size = [], 0
    if small:
        yield b"".join(small)
