"""What is seen of the connections: who showed who they are on them, which frames were written, and which were let through.

Everything here is read from the bytes on the wire, never from what the runtime believes of them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import deque
from typing import Any

from attrs import define, field

from troth.runtime.sim.faults import DOWN, UP, Direction
from troth.runtime.sim.network import SimConnection
from troth.runtime.sim.pipe import Pipe
from troth.runtime.wire import challenge, frames
from troth.runtime.wire.codec import decode
from troth.runtime.wire.kinds import BY_CODE, CHUNK
from troth.spec.core import Message
from troth.testing.live.parties import Wrong

HEADER = frames.HEADER_BYTES
ROOM_BYTES = 4096
"""With less room than this a frame may be written in parts, and the rest wait."""
OPENING = {UP: challenge.DIALLER_BYTES, DOWN: challenge.ACCEPTOR_BYTES}


@define(eq=False)
class Frame:
    """A frame that was written."""

    code: int
    epoch: int
    data: bytes
    """Header and body."""

    @property
    def name(self) -> str:
        """As errors call it."""
        return BY_CODE[self.code].name if self.code in BY_CODE else f"kind {self.code}"

    @classmethod
    def of(cls, data: bytes) -> Frame:
        """From its bytes."""
        _, _, code, epoch, _ = frames.HEADER.unpack_from(data)
        return cls(code, epoch, data)

    def decoded(self) -> Any:
        """Its fields and what is beside them. Raises ``FrameError``."""
        return decode(self.code, self.epoch, memoryview(self.data)[HEADER:])

    def chunk(self) -> tuple[int, int, int]:
        """Of a CHUNK: its request, its offset, and how many bytes it carries."""
        request, offset = frames.CHUNK_HEAD.unpack_from(self.data, HEADER)
        return request, offset, len(self.data) - HEADER - frames.CHUNK_HEAD_BYTES


@define(eq=False)
class Owed:
    """What must be written, or may be where the link went in the same moment."""

    message: Message
    must: bool = True


@define(eq=False)
class Way:
    """One direction of a connection."""

    pipe: Pipe
    at: int
    """How many of its bytes were looked at."""
    counted: int = 0
    """How many of its frames were."""
    fresh: list[Frame] = field(factory=list)
    """Those that were written since the last look."""
    owed: deque[Owed] = field(factory=deque)
    arrived: deque[Frame] = field(factory=deque)
    """Let through, and not taken by anybody yet."""
    blocked: bool = False
    """It was full at some time: what was said may wait to be written."""

    @property
    def open(self) -> bool:
        """Whether its writer can still write."""
        pipe = self.pipe
        return not (pipe.broken or pipe.deaf or pipe.ended)

    def look(self) -> None:
        """Find the frames that were written whole."""
        pipe = self.pipe
        if pipe.free < ROOM_BYTES:
            self.blocked = True
        seen = pipe.frames
        while self.counted < len(seen):
            header = seen[self.counted]
            end = self.at + HEADER + header.length
            if end > pipe.written_bytes:
                return
            self.fresh.append(Frame(header.code, header.epoch, bytes(pipe.written[self.at : end])))
            self.at = end
            self.counted += 1


@define(eq=False)
class Line:
    """One connection."""

    sim: SimConnection
    secret: bytes | None = None
    """The token of its launch, if there is such a launch."""
    ways: dict[Direction, Way] = field(init=False)
    taken: dict[Direction, bool] = field(factory=lambda: {UP: False, DOWN: False})
    """Whether the side that writes in that direction has taken it into use."""
    steady: bool = False
    """It was up when the last look ended."""
    harmed: bool = False
    """Bytes came on it that nobody wrote."""
    shown: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.ways = {way: Way(pipe, OPENING[way]) for way, pipe in self.sim.pipes.items()}

    @property
    def alive(self) -> bool:
        """Whether both directions can still be written to."""
        return self.ways[UP].open and self.ways[DOWN].open

    def authentic(self, side: Direction) -> bool:
        """Whether the side that writes in that direction may take it for what it claims to be, by the bytes that it has seen."""
        up, down = self.sim.up, self.sim.down
        if side is UP:
            return down.arrived_bytes >= OPENING[DOWN] and self._proven()
        return up.arrived_bytes >= OPENING[UP] and down.written_bytes >= OPENING[DOWN] and self._proven()

    @property
    def nonces(self) -> bytes:
        """The dialler's and the acceptor's."""
        call = bytes(self.sim.up.written[: challenge.CALL.size])
        return call[-challenge.NONCE_BYTES :] + bytes(self.sim.down.written[: challenge.NONCE_BYTES])

    def _proven(self) -> bool:
        """Whether both sides have shown that they hold the launch's token."""
        if not self.shown and self.secret is not None:
            up, down = bytes(self.sim.up.written[: OPENING[UP]]), bytes(self.sim.down.written[: OPENING[DOWN]])
            call, nonce = up[: challenge.CALL.size], down[: challenge.NONCE_BYTES]
            theirs = hmac.digest(self.secret, b"trainer" + call + nonce, hashlib.sha256)
            ours = hmac.digest(self.secret, b"host" + call + nonce, hashlib.sha256)
            right = up[challenge.CALL.size :] == theirs and down[challenge.NONCE_BYTES :] == ours + challenge.CONFIRMED
            self.shown = right
        return self.shown

    def look(self) -> None:
        """See what was written."""
        for way in self.ways.values():
            if way.counted < len(way.pipe.frames) or not way.blocked:
                way.look()

    def written(self, side: Direction, lenient: tuple[int, ...]) -> None:
        """Compare what was written on a control connection with what had to be. Raises ``Wrong``."""
        way = self.ways[side]
        for frame in way.fresh:
            message = fields_of(frame)
            while way.owed and not same(way.owed[0].message, message) and way.blocked and kind_code(way.owed[0].message) in lenient:
                way.owed.popleft()
            if not way.owed or not same(way.owed[0].message, message):
                expected = way.owed[0].message if way.owed else "nothing"
                raise Wrong(
                    "wire", f"connection {self.sim.number}: {frame.name} {message[1]} was written, and {expected} is what had to be"
                )
            way.owed.popleft()
        way.fresh.clear()
        if way.owed and not way.blocked:
            raise Wrong("wire", f"connection {self.sim.number}: {way.owed[0].message} had to be written, and was not")


def heard(data: bytes) -> bool:
    """Whether its reader can make anything of it: a whole frame, or bytes of a CHUNK. A writer that ends leaves pieces behind."""
    if len(data) < HEADER:
        return False
    _, _, code, _, length = frames.HEADER.unpack_from(data)
    return len(data) == HEADER + length or (code == CHUNK and len(data) > HEADER + frames.CHUNK_HEAD_BYTES)


def kind_code(message: Message) -> int:
    """The code of a message's frame."""
    return _CODES[type(message)]


_CODES = {kind.message: code for code, kind in BY_CODE.items()}


def fields_of(frame: Frame) -> tuple[type[Message], dict[str, Any]]:
    """What a frame says: the class of its message, and its fields."""
    return BY_CODE[frame.code].message, frame.decoded().fields


def same(message: Message, found: tuple[type[Message], dict[str, Any]]) -> bool:
    """Whether this is that message, but for what its receiver derives."""
    kind, fields = found
    return type(message) is kind and all(getattr(message, name) == value for name, value in fields.items())
