"""One direction of a connection in memory: what the writer hands over passes the faults, waits its time and is read.

Rule 1.  Nothing happens by itself: bytes that are due later are let out by whoever reads. So there are no tasks here, and a run depends on
         nothing but the script, trio's clock and the order of its tasks.
Rule 2.  A frame without a fault passes in pieces, as it is written. One with a fault is held until it is whole.
Rule 3.  What is put out of order is put between two frames, never into one.
Rule 4.  Bytes that are no frame pass as they are, from there to the end.
Rule 5.  What is held for a hand to let through stays in order unless that hand says otherwise, and its writer's end comes behind it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import trio
from attrs import define

from troth.runtime.sim.faults import Behind, Cut, Delay, Direction, Drop, Duplicate, End, FrameFault, Hold, Seen
from troth.runtime.wire import frames

OnFrame: TypeAlias = Callable[[Direction, int, int, int, int], "tuple[Seen, FrameFault | None]"]
"""Called with direction, index, kind, epoch and length of a frame that begins; what becomes of it."""
OnLimit: TypeAlias = Callable[[Direction, "Cut | End"], None]
"""Called when the bytes of a direction have come to where they end."""


@define
class Due:
    """Bytes on their way."""

    at_s: float
    data: bytes


@define
class Held:
    """A frame that others may pass: until a time, or until ``behind`` more frames have gone."""

    data: bytes
    at_s: float
    behind: int


class Pipe:
    """Bytes in one direction. ``written`` and ``arrived`` are what the writer handed over and what the reader took, and how many."""

    def __init__(self, direction: Direction, *, opening: int, capacity: int, record: bool, on_frame: OnFrame, on_limit: OnLimit) -> None:
        self.direction = direction
        self.capacity = capacity
        self.slow_s = 0.0
        self.stalled = False
        self.passed_bytes = 0
        """Bytes that went out on their way, after what became of frames."""
        self.written_bytes = 0
        self.arrived_bytes = 0
        self.written = bytearray()
        self.arrived = bytearray()
        self.frames: list[Seen] = []
        self.ended = False
        """Nothing more is written."""
        self.broken = False
        self.deaf = False
        """Nobody reads any more."""
        self.room = trio.lowlevel.ParkingLot()
        self.news = trio.lowlevel.ParkingLot()
        self._record = record
        self._on_frame = on_frame
        self._on_limit = on_limit
        self._opening = opening
        self._opaque = False
        self._head = bytearray()
        self._body_left = 0
        self._captured: bytearray | None = None
        self._fault: FrameFault | None = None
        self._limit: Cut | End | None = None
        self._ready: deque[Due] = deque()
        self._ready_bytes = 0
        self._held: list[Held] = []
        self.waiting: list[bytes] = []
        """Frames that are held until they are let through, the first one first."""
        self._waiting_bytes = 0

    # -- written -------------------------------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        """Bytes that can be written now."""
        return max(0, self.capacity - self._ready_bytes - self._waiting_bytes)

    def write(self, data: bytes) -> None:
        """Take bytes from the writer."""
        self.written_bytes += len(data)
        if self._record:
            self.written += data
        view = memoryview(data)
        while view:
            view = view[self._step(view) :]
        self.news.unpark_all()

    def end(self) -> None:
        """The writer is done. What it had begun to write still comes."""
        if self.ended:
            return
        if self._head or self._captured is not None:
            begun = bytes(self._head) + bytes(self._captured or b"")
            if self.waiting:
                self._wait(begun)
            else:
                self._pass(begun)
            self._head.clear()
            self._captured = None
        self._body_left = 0
        for held in sorted(self._held, key=lambda held: held.at_s):
            self._pass(held.data, at_s=held.at_s)
        self._held.clear()
        self.ended = True
        self.news.unpark_all()

    def breaks(self, *, lose: bool) -> None:
        """Broken in the middle. ``lose`` if what is on its way is lost as well."""
        self.broken = True
        self.stalled = False
        self._held.clear()
        if lose:
            self._ready.clear()
            self._ready_bytes = 0
        self.waiting.clear()
        self._waiting_bytes = 0
        self.news.unpark_all()
        self.room.unpark_all()

    def _step(self, view: memoryview) -> int:
        """Let the next piece through that is treated as one; how many bytes it has."""
        if self._opening or self._opaque:
            size = len(view) if self._opaque else min(self._opening, len(view))
            self._opening -= 0 if self._opaque else size
            self._pass(bytes(view[:size]))
            return size
        if self._body_left:
            size = min(self._body_left, len(view))
            self._body(bytes(view[:size]))
            return size
        size = min(frames.HEADER_BYTES - len(self._head), len(view))
        self._head += view[:size]
        if len(self._head) == frames.HEADER_BYTES:
            head = bytes(self._head)
            self._head.clear()
            self._begin(head)
        return size

    def _begin(self, head: bytes) -> None:
        magic, version, code, epoch, length = frames.HEADER.unpack(head)
        if magic != frames.MAGIC or version != frames.VERSION:
            self._opaque = True
            self._pass(head)
            return
        seen, self._fault = self._on_frame(self.direction, len(self.frames), code, epoch, length)
        self.frames.append(seen)
        self._body_left = length
        if self._fault is None:
            self._pass(head)
        elif not isinstance(self._fault, Drop):
            self._captured = bytearray(head)
        if length == 0:
            self._finish()

    def _body(self, data: bytes) -> None:
        self._body_left -= len(data)
        if self._fault is None:
            self._pass(data)
        elif self._captured is not None:
            self._captured += data
        if self._body_left == 0:
            self._finish()

    def _finish(self) -> None:
        """A frame is whole."""
        fault, self._fault = self._fault, None
        whole, self._captured = bytes(self._captured or b""), None
        if isinstance(fault, Duplicate):
            self._pass(whole * (1 + fault.copies))
        elif isinstance(fault, Hold):
            self._wait(whole)
        elif isinstance(fault, Delay):
            self._held.append(Held(whole, trio.current_time() + fault.seconds, 0))
        for held in self._held:
            held.behind -= 1
        if isinstance(fault, Behind):
            self._held.append(Held(whole, math.inf, fault.frames))
        self._let_out()

    def _wait(self, data: bytes) -> None:
        self.waiting.append(data)
        self._waiting_bytes += len(data)

    # -- let through by hand -------------------------------------------------------------------------------------------

    def let(self, index: int = 0, *, stays: bool = False) -> bytes:
        """Let a frame through that waits, and give its bytes; one that ``stays`` can be let through again, as a copy."""
        whole = self.waiting[index] if stays else self.lose(index)
        ended, self.ended = self.ended, False  # its writer may be gone meanwhile
        self._pass(whole)
        self.ended |= ended
        self.news.unpark_all()
        return whole

    def lose(self, index: int = 0) -> bytes:
        """A frame that waits never arrives. Its bytes."""
        whole = self.waiting.pop(index)
        self._waiting_bytes -= len(whole)
        self.room.unpark_all()
        if self.ended and not self.waiting:
            self.news.unpark_all()
        return whole

    def insert(self, data: bytes) -> None:
        """Bytes that nobody wrote, behind what was let through already."""
        self._pass(data)
        self.news.unpark_all()

    def _let_out(self) -> None:
        """Put what was held, and is held no longer, between two frames."""
        if self._between:
            now = trio.current_time()
            out = [held for held in self._held if held.at_s <= now or (held.at_s == math.inf and held.behind <= 0)]
            for held in sorted(out, key=lambda held: held.at_s):
                self._held.remove(held)
                self._pass(held.data)

    @property
    def _between(self) -> bool:
        return not self._body_left or self._fault is not None

    def _pass(self, data: bytes, *, at_s: float = 0.0) -> None:
        """Bytes go out, up to where they end."""
        if self.broken or self.ended:
            return
        if self._limit is not None:
            data = data[: max(0, self._limit.at - self.passed_bytes)]
        self.passed_bytes += len(data)
        if data:
            due = max(trio.current_time() + self.slow_s, 0.0 if at_s == math.inf else at_s)
            if self._ready:
                due = max(due, self._ready[-1].at_s)
            self._ready.append(Due(due, data))
            self._ready_bytes += len(data)
        self._look_for_limit()

    def set_limit(self, limit: Cut | End) -> None:
        """The bytes end there, or here if that many have passed already."""
        self._limit = limit
        self._look_for_limit()

    def _look_for_limit(self) -> None:
        limit = self._limit
        if limit is None or self.passed_bytes < limit.at or self.broken or self.ended:
            return
        self._limit = None
        if isinstance(limit, End):
            self.ended = True
            self._held.clear()
            self.news.unpark_all()
        self._on_limit(self.direction, limit)

    # -- read ----------------------------------------------------------------------------------------------------------

    def take(self, view: memoryview, most: int) -> int:
        """Move what has come, at most ``most`` bytes, into ``view``; how many."""
        self._let_out()
        now, done = trio.current_time(), 0
        room = min(len(view), most)
        while self._ready and done < room and self._ready[0].at_s <= now and not self.stalled:
            due = self._ready[0]
            data = due.data[: room - done]
            view[done : done + len(data)] = data
            done += len(data)
            if len(data) < len(due.data):
                due.data = due.data[len(data) :]
            else:
                self._ready.popleft()
        if done:
            self._ready_bytes -= done
            self.arrived_bytes += done
            if self._record:
                self.arrived += view[:done]
            self.room.unpark_all()
        return done

    @property
    def empty(self) -> bool:
        """Whether nothing is on its way."""
        return not self._ready and not self._held and not self.waiting

    @property
    def next_s(self) -> float:
        """When something is due that has not come yet."""
        if self.stalled:
            return math.inf
        ready = self._ready[0].at_s if self._ready else math.inf
        held = min((held.at_s for held in self._held), default=math.inf) if self._between else math.inf
        return min(ready, held)
