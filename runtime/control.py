"""The control link of one session, as one of its sides has it: at most one connection at a time, whoever dialled it.

Rule 1.  A new connection takes the place of the old one: whoever dials again has lost it, whatever this side still believes.
Rule 2.  What is said while there is no connection is dropped, exactly as if the network had lost it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import trio
from attrs import define, field

from troth.runtime.errors import FrameError, LinkDown
from troth.runtime.wire.challenge import Authenticated
from troth.runtime.wire.codec import Arrived, decode, encode
from troth.runtime.wire.connection import Connection
from troth.runtime.wire.kinds import BY_CLASS
from troth.spec.core import Event, LinkLost, LinkUp, Message, Received
from troth.statemachines.shared.words import CONTROL

log = logging.getLogger("troth.runtime.control")


@define(eq=False)
class ControlLink:
    """One side's end of the link."""

    give: Callable[[Event], object]
    """Hands an event to the party."""
    understood: Callable[[Arrived], Message]
    """Makes a message of a frame: adds what this side derives, and keeps what rode beside it."""
    name: str
    """What logs call the other side."""
    peer: Authenticated | None = field(default=None, init=False)
    """Whom the connection is with, while there is one."""
    _connection: Connection | None = field(default=None, init=False)
    heard_at: float | None = field(default=None, init=False)
    """When the last frame came, on trio's clock."""
    _quiet: trio.Event = field(factory=trio.Event, init=False)
    """Set when the connection that there is has ended."""

    def send(self, message: Message, beside: Any = None) -> bool:
        """Say something. False if it could not be handed over; dropped if there is no connection."""
        connection = self._connection
        if connection is None:
            return True
        try:
            connection.send_nowait(encode(message, beside), BY_CLASS[type(message)].code)
        except LinkDown as error:
            log.info("%s: the control link broke: %s", self.name, error)
            return False
        return True

    async def serve(self, peer: Authenticated) -> None:
        """Speak over a new connection until it ends."""
        self._lost(self._connection, "another connection has taken its place")
        connection = Connection(peer, on_frame=self._frame)
        self._connection, self.peer, self._quiet = connection, peer, trio.Event()
        try:
            self.give(LinkUp(CONTROL))
            await connection.run()
        except FrameError as error:
            log.warning("%s: the control link is closed: %s", self.name, error)
        except LinkDown as error:
            log.info("%s: the control link broke: %s", self.name, error)
        finally:
            self._lost(connection, "it ended")

    def _lost(self, connection: Connection | None, why: str) -> None:
        if connection is None:
            return
        connection.close(why)
        if self._connection is connection:
            self._connection = self.peer = None
            self._quiet.set()
            self.give(LinkLost(CONTROL))

    def _frame(self, code: int, epoch: int, body: memoryview) -> None:
        self.heard_at = trio.current_time()
        message = self.understood(decode(code, epoch, body))
        self.give(Received(CONTROL, message))

    async def ended(self) -> None:
        """Wait until there is no connection, so that whatever was still on its way has been heard."""
        while self._connection is not None:
            await self._quiet.wait()

    def close(self, why: str = "closed by this side") -> None:
        """Close the connection at once, if there is one."""
        if self._connection is not None:
            self._connection.close(why)

    def close_when_sent(self) -> None:
        """Close the connection after what was already said on it."""
        if self._connection is not None:
            self._connection.close_when_sent()
