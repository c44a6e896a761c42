"""The data link of one session, as one of its sides has it: payloads in both directions over one connection.

The side that the trainer dials from and the host's are alike: each offers payloads of its own and pulls those of the other.

Rule 1.  At most one connection at a time. A new one takes the place of the old one: whoever dials again has lost it.
Rule 2.  What is offered, and what has come of a payload, outlives a connection. Transfers end with it, and are reported as failed.
Rule 3.  Nothing is reported of a transfer that was cancelled, and nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import trio

from troth.runtime.errors import FrameError, LinkDown
from troth.runtime.payloads.arrays import MAX_PAYLOAD_BYTES, Payload
from troth.runtime.payloads.pulls import Carried, Pulls
from troth.runtime.payloads.sources import Sources
from troth.runtime.wire.challenge import Authenticated
from troth.runtime.wire.codec import decode, encode
from troth.runtime.wire.connection import Connection
from troth.runtime.wire.kinds import BY_CLASS, PayloadKind, Pull, PullEnd, PullRefused, PullStopped
from troth.spec.core import Event, Key, Message, Received
from troth.spec.messages import PayloadAbandoned, PayloadGone, PayloadHeld, PayloadReleased
from troth.statemachines.shared.words import DATA

log = logging.getLogger("troth.runtime.payloads")


class DataLink:
    """One side's end of the link.

    ``give`` takes events for the party, ``tell`` those for the receiver of a payload, by its key ``(seq, receiver)``. Both may be called
    from within any method here, so they queue what cannot be handled at once. The party offers payloads of kind ``offers`` and pulls
    those of kind ``fetches``: ``task`` and ``result`` for a host, the other way round for a trainer. ``name`` is what logs call the other
    side. A payload of more than ``limit`` bytes is not taken.
    """

    def __init__(
        self,
        give: Callable[[Event], object],
        tell: Callable[[Key, Event], object],
        offers: str,
        fetches: str,
        name: str,
        *,
        limit: int = MAX_PAYLOAD_BYTES,
    ) -> None:
        for kind in (offers, fetches):
            PayloadKind(kind)
        self._give = give
        self._tell = tell
        self._name = name
        self.came_up: Callable[[], None] = _nothing
        """Called when there is a connection: what had none can be asked for now."""
        self._connection: Connection | None = None
        self._sources = Sources(offers, give, self.send)
        self._pulls = Pulls(fetches, give, tell, self.send, name=name, limit=limit)

    @property
    def up(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and not self._connection.closed

    @property
    def served(self) -> int:
        """Bytes of payloads that were sent."""
        return self._sources.served

    @property
    def fetched(self) -> int:
        """Bytes of payloads that came in."""
        return self._pulls.fetched

    @property
    def _epoch(self) -> int | None:
        return self._connection.peer.epoch if self._connection is not None and not self._connection.closed else None

    # -- what cores want done ------------------------------------------------------------------------------------------

    def offer(self, kind: str, key: Key, payload: Payload) -> bool:  # noqa: ARG002
        """Keep a payload for the receiver ``key`` until it is released. It is sent when that receiver asks for it."""
        self._sources.offer(key, payload)
        return True

    def release(self, kind: str, key: Key) -> None:  # noqa: ARG002
        """Let go of a payload. A transfer of it ends; only a chunk that is half written is still written."""
        self._sources.release(key)

    def pull(self, kind: str, key: Key, carried: Carried, arrived: Callable[[Any], None]) -> bool:  # noqa: ARG002
        """Fetch a payload, from where an earlier pull of it stopped; or make it of what ``carried`` has, if it rode in its message.

        ``arrived`` gets the tree just before the end is reported. False if there is no connection.
        """
        return self._pulls.pull(_pair(key), self._epoch, carried, arrived)

    def cancel(self, kind: str, key: Key) -> None:  # noqa: ARG002
        """Stop fetching, and report nothing more. What has come is kept for another pull, until ``forget``."""
        self._pulls.cancel(_pair(key), self._epoch)

    def forget(self, kind: str, key: Key) -> None:  # noqa: ARG002
        """The receiver is over: let go of what has come."""
        self._pulls.forget(_pair(key), self._epoch)

    def send(self, message: Message) -> bool:
        """Say something to the other side. False if there is no connection, or none any more."""
        if self._connection is None:
            return False
        try:
            return self._connection.send_nowait(encode(message), BY_CLASS[type(message)].code)
        except LinkDown as error:
            log.info("%s: the data link broke: %s", self._name, error)
            return False

    # -- the connection ------------------------------------------------------------------------------------------------

    async def serve(self, peer: Authenticated) -> None:
        """Speak over a new connection until it ends."""
        self._lost(self._connection, "another connection has taken its place")
        connection = Connection(peer, on_frame=self._frame, on_chunk=self._pulls.place, on_landed=self._pulls.landed)
        self._connection = connection
        turns = self._sources.begin()
        self.came_up()
        failure: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._sources.write, connection, turns)
                try:
                    await connection.run()
                except Exception as error:  # raised below, outside of the nursery, which would wrap it
                    failure = error
                nursery.cancel_scope.cancel()
        except BaseException:
            self._lost(connection, "cancelled", report=False)
            raise
        self._lost(connection, "it ended")
        if isinstance(failure, FrameError):
            log.warning("%s: the data link is closed: %s", self._name, failure)
        elif failure is not None:
            raise failure
        else:
            log.debug("%s: the data link ended: %s", self._name, connection.why)

    def close(self, why: str = "closed by this side") -> None:
        """Close the connection at once, if there is one. Another may follow."""
        if self._connection is not None:
            self._connection.close(why)

    def _lost(self, connection: Connection | None, why: str, *, report: bool = True) -> None:
        if connection is None:
            return
        connection.close(why)
        if self._connection is connection:
            self._connection = None
            self._sources.broke(report=report)
            self._pulls.broke(report=report)

    def _frame(self, code: int, epoch: int, body: memoryview) -> None:
        message = decode(code, epoch, body).message()
        match message:
            case Pull():
                self._sources.asked(message)
            case PullStopped():
                self._sources.stopped(message.request)
            case PullEnd():
                self._pulls.ended(message)
            case PullRefused():
                self._pulls.refused(message)
            case PayloadHeld() | PayloadAbandoned():
                self._give(Received(DATA, message))
            case PayloadReleased() | PayloadGone():
                self._tell((message.seq, message.receiver), Received(DATA, message))
            case _:
                raise FrameError(f"{type(message).__name__} does not belong on a data link")


def _nothing() -> None:
    """Nobody waits."""


def _pair(key: Key) -> tuple[int, int]:
    if not isinstance(key, tuple) or len(key) != 2:
        raise TypeError(f"the key of a payload is (seq, receiver), not {key!r}")
    return key
