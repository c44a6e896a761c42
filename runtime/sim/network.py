"""A network in memory: the Network port, with a script of faults and a record of everything.

It behaves like the sockets of one machine, with buffers that fill, and under a ``MockClock`` it is deterministic. What the script says
happens to the bytes and frames on their way; see ``faults``. Each connection can also be meddled with by hand::

    network.connections[0].cut()
    network.connections[1].stall(DOWN)
"""

from __future__ import annotations

from collections import deque

import trio

from troth.runtime.errors import EndpointRefused, LinkDown
from troth.runtime.ports import Buffer
from troth.runtime.sim.faults import DOWN, UP, ByteFault, Cut, Direction, End, Faults, FrameFault, Happened, Hold, Refused, Seen, Slow
from troth.runtime.sim.pipe import Pipe
from troth.runtime.wire import challenge
from troth.runtime.wire.kinds import Role

CAPACITY_BYTES = 64 * 1024
"""What a direction holds before its writer has to wait."""
BACKLOG = 128
"""Connections that were dialled and not accepted yet."""


class SimStream:
    """One end of a connection in memory."""

    def __init__(self, connection: SimConnection, out: Pipe, into: Pipe, peer_uid: int | None) -> None:
        self.connection = connection
        self.peer_uid = peer_uid
        self._out = out
        self._in = into
        self._closed = False

    def send_nowait(self, data: Buffer) -> int:
        """See ``ports.Stream``."""
        if self._closed:
            raise LinkDown("the connection is closed: closed by this side")
        if self._out.broken or self._out.deaf or self._out.ended:
            raise LinkDown("the connection broke: nobody reads")
        taken = bytes(memoryview(data)[: self._out.free])
        if taken:
            self.connection.note_written(self._out.direction, taken)
            self._out.write(taken)
        return len(taken)

    async def send_all(self, data: Buffer) -> None:
        """See ``ports.Stream``."""
        await trio.lowlevel.checkpoint()
        view, done = memoryview(data), 0
        while True:
            done += (taken := self.send_nowait(view[done:]))
            if done == len(view):
                return
            if taken == 0:
                await self._out.room.park()

    async def receive_into(self, view: memoryview) -> int:
        """See ``ports.Stream``."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._closed:
                raise LinkDown("the connection is closed: closed by this side")
            got = self._in.take(view, self.connection.network.most_at_once)
            if got:
                return got
            if self._in.broken and self._in.empty:
                raise LinkDown("the connection broke: Connection reset")
            if self._in.ended and self._in.empty:
                return 0
            with trio.move_on_at(self._in.next_s):
                await self._in.news.park()

    def close(self) -> None:
        """See ``ports.Stream``."""
        if self._closed:
            return
        self._closed = True
        self._out.end()
        self._in.deaf = True
        for pipe in (self._in, self._out):
            pipe.news.unpark_all()
            pipe.room.unpark_all()


class SimConnection:
    """A connection in memory, seen from above: both directions, what they carry, and what can be done to them."""

    def __init__(self, network: SimNetwork, number: int, endpoint: str) -> None:
        self.network = network
        self.number = number
        """The nth that was ever dialled, from 0."""
        self.endpoint = endpoint
        self.role: Role | None = None
        """What the dialler said; ``None`` until it has, and if what it says is no challenge."""
        self.launch: bytes | None = None
        self.epoch: int | None = None
        sizes = {UP: challenge.DIALLER_BYTES, DOWN: challenge.ACCEPTOR_BYTES}
        self.pipes = {
            way: Pipe(way, opening=size, capacity=network.capacity, record=network.record, on_frame=self._on_frame, on_limit=self._on_limit)
            for way, size in sizes.items()
        }
        self.dialler = SimStream(self, self.up, self.down, network.uid)
        self.acceptor = SimStream(self, self.down, self.up, network.uid)
        self._call = b""
        self._apply_script()

    @property
    def up(self) -> Pipe:
        """From the dialler."""
        return self.pipes[UP]

    @property
    def down(self) -> Pipe:
        """To the dialler."""
        return self.pipes[DOWN]

    @property
    def alive(self) -> bool:
        """Whether bytes can still go both ways."""
        return not any(pipe.broken or pipe.ended or pipe.deaf for pipe in self.pipes.values())

    # -- by hand -------------------------------------------------------------------------------------------------------

    def cut(self) -> None:
        """Break it now. What is on its way is lost; both sides are told."""
        self._note(None, Cut(at=self.up.passed_bytes))
        for pipe in self.pipes.values():
            pipe.breaks(lose=True)

    def cut_after(self, direction: Direction, nbytes: int) -> None:
        """Break it after ``nbytes`` more bytes in this direction."""
        self.apply(direction, Cut(at=self.pipes[direction].passed_bytes + nbytes))

    def end_after(self, direction: Direction, nbytes: int) -> None:
        """End this direction after ``nbytes`` more bytes."""
        self.apply(direction, End(at=self.pipes[direction].passed_bytes + nbytes))

    def stall(self, direction: Direction) -> None:
        """From now on nothing comes through; the buffer fills."""
        self.pipes[direction].stalled = True

    def resume(self, direction: Direction) -> None:
        """It comes through again."""
        self.pipes[direction].stalled = False
        self.pipes[direction].news.unpark_all()

    def apply(self, direction: Direction, fault: ByteFault) -> None:
        """Set a fault of a script, for this connection."""
        pipe = self.pipes[direction]
        if isinstance(fault, Slow):
            pipe.slow_s = fault.seconds
            self._note(direction, fault)
        else:
            pipe.set_limit(fault)

    # -- from within ---------------------------------------------------------------------------------------------------

    def note_written(self, direction: Direction, data: bytes) -> None:
        """Learn from the dialler's first bytes what the connection is for."""
        if direction is not UP or len(self._call) >= challenge.CALL.size:
            return
        self._call += data[: challenge.CALL.size - len(self._call)]
        if len(self._call) == challenge.CALL.size:
            magic, _version, code, launch, epoch, _nonce = challenge.CALL.unpack(self._call)
            if magic == challenge.MAGIC and code in challenge.ROLES:
                self.role, self.launch, self.epoch = challenge.ROLES[code], launch, epoch
                self._apply_script()

    def _apply_script(self) -> None:
        for direction in Direction:
            for fault in self.network.faults.for_bytes(self.number, direction, self.role):
                self.apply(direction, fault)

    def _on_frame(self, direction: Direction, index: int, code: int, epoch: int, length: int) -> tuple[Seen, FrameFault | None]:
        seen = Seen(self.number, direction, self.role, index, code, epoch, length)
        fault = self.network.faults.for_frame(seen)
        if fault is not None and not isinstance(fault, Hold):  # what is done with it is known to whoever does it
            self._note(direction, fault, seen)
        return seen, fault

    def _on_limit(self, direction: Direction, limit: Cut | End) -> None:
        self._note(direction, limit)
        if isinstance(limit, Cut):
            for way, pipe in self.pipes.items():
                pipe.breaks(lose=way is not direction)

    def _note(self, direction: Direction | None, fault: ByteFault | FrameFault, frame: Seen | None = None) -> None:
        self.network.note(Happened(trio.current_time(), self.number, direction, fault, frame))


class SimListener:
    """Where connections in memory come in."""

    def __init__(self, network: SimNetwork, endpoint: str) -> None:
        self.endpoint = endpoint
        self._network = network
        self._backlog: deque[SimStream] = deque()
        self._news = trio.lowlevel.ParkingLot()
        self._closed = False

    async def accept(self) -> SimStream:
        """See ``ports.Listener``."""
        await trio.lowlevel.checkpoint()
        while not self._closed:
            if self._backlog:
                return self._backlog.popleft()
            await self._news.park()
        raise LinkDown(f"{self.endpoint} is closed")

    def close(self) -> None:
        """See ``ports.Listener``."""
        if self._closed:
            return
        self._closed = True
        self._network.forget(self)
        for stream in self._backlog:
            stream.close()
        self._backlog.clear()
        self._news.unpark_all()

    def offer(self, stream: SimStream) -> bool:
        """Somebody dialled. False if too many have."""
        if len(self._backlog) >= BACKLOG:
            return False
        self._backlog.append(stream)
        self._news.unpark()
        return True


class SimNetwork:
    """The Network port in memory. Both sides of a connection are of this object."""

    def __init__(
        self,
        faults: Faults | None = None,
        *,
        capacity: int = CAPACITY_BYTES,
        most_at_once: int = 2**63,
        record: bool = True,
        uid: int | None = None,
    ) -> None:
        self.faults = faults if faults is not None else Faults()
        self.capacity = capacity
        """Bytes that a direction holds before its writer has to wait."""
        self.most_at_once = most_at_once
        """Bytes that one read gives at most; 1 for the shortest reads that there can be."""
        self.record = record
        """Whether the bytes are kept, and not only counted."""
        self.uid = uid
        """Whose the processes are, as far as streams say."""
        self.connections: list[SimConnection] = []
        """All that were ever dialled."""
        self.dials = 0
        """All that were tried."""
        self._listeners: dict[str, SimListener] = {}
        self._ports = 0

    async def listen(self, endpoint: str) -> SimListener:
        """See ``ports.Network``. Raises ``EndpointRefused`` where somebody listens already."""
        await trio.lowlevel.checkpoint()
        if endpoint.startswith("tcp:") and endpoint.endswith(":0"):
            self._ports += 1
            endpoint = f"{endpoint[:-1]}{self._ports}"
        if endpoint in self._listeners:
            raise EndpointRefused(f"{endpoint} exists already and is left alone; take another path")
        listener = self._listeners[endpoint] = SimListener(self, endpoint)
        return listener

    async def dial(self, endpoint: str) -> SimStream:
        """See ``ports.Network``."""
        self.dials += 1
        await trio.sleep(self.faults.dial_s)
        if self.faults.dial_refused():
            self.note(Happened(trio.current_time(), None, None, Refused()))
            raise LinkDown(f"{endpoint}: Connection refused")
        listener = self._listeners.get(endpoint)
        if listener is None:
            raise LinkDown(f"{endpoint}: nobody listens there")
        connection = SimConnection(self, len(self.connections), endpoint)
        if not listener.offer(connection.acceptor):
            raise LinkDown(f"{endpoint}: too many connections wait")
        self.connections.append(connection)
        return connection.dialler

    def of_role(self, role: Role) -> list[SimConnection]:
        """The connections that were dialled for control, or for data."""
        return [connection for connection in self.connections if connection.role == role]

    def note(self, happened: Happened) -> None:
        """Write into the journal."""
        self.faults.journal.append(happened)

    def forget(self, listener: SimListener) -> None:
        """It listens no more."""
        if self._listeners.get(listener.endpoint) is listener:
            del self._listeners[listener.endpoint]
