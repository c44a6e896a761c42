"""The door: accepts connections, challenges each in a task of its own, and hands over those that showed who they are.

Rule 1.  At most MAX_UNAUTHENTICATED connections at a time have not shown it yet. When one more comes, the one that has had longest goes: a
         good dialler needs a millisecond, so a crowd that only waits cannot keep it out.
Rule 2.  A refused connection costs nothing that stays: no entry, no failed launch, and a bounded number of log lines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

import trio

from troth.runtime.errors import ChallengeFailed, LinkDown, SessionOver
from troth.runtime.ports import Listener, Stream
from troth.runtime.wire import bounds
from troth.runtime.wire.challenge import Authenticated, Find, check

log = logging.getLogger("troth.runtime.accepting")

OnAuthenticated: TypeAlias = Callable[[Authenticated], None]
"""Called synchronously with a connection that may speak now; whoever takes it closes its stream in the end."""


class Refusals:
    """Counts the connections that were refused, and logs a bounded number of lines about them."""

    def __init__(self, where: str) -> None:
        self.total = 0
        self._where = where
        self._logged = 0
        self._unsaid = 0
        self._since = trio.current_time()

    def note(self, why: Exception) -> None:
        """One more."""
        self.total += 1
        if trio.current_time() - self._since >= bounds.REFUSALS_PERIOD_S:
            self.say_rest()
            self._since = trio.current_time()
            self._logged = 0
        if self._logged < bounds.REFUSALS_LOGGED:
            self._logged += 1
            # Orderly ends of short sessions have these: nobody has to look into them.
            level = logging.INFO if isinstance(why, SessionOver) else logging.WARNING
            log.log(level, "%s: refused a connection: %s", self._where, why)
        else:
            self._unsaid += 1

    def say_rest(self) -> None:
        """One line about those that had none of their own."""
        if self._unsaid:
            log.warning("%s: refused %d more connections", self._where, self._unsaid)
            self._unsaid = 0


async def serve(listener: Listener, find: Find, on_authenticated: OnAuthenticated, *, refusals: Refusals | None = None) -> None:
    """Let connections in until the listener is closed. ``refusals`` is only given to be looked at."""
    refused = refusals or Refusals(listener.endpoint)
    unauthenticated: dict[Stream, None] = {}  # the oldest first

    async def challenge(stream: Stream) -> None:
        try:
            peer = await check(stream, find=find)
        except ChallengeFailed as error:
            refused.note(error)
            return
        finally:
            unauthenticated.pop(stream, None)
        on_authenticated(peer)

    try:
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    stream = await listener.accept()
                except LinkDown:
                    nursery.cancel_scope.cancel()
                    return
                if len(unauthenticated) >= bounds.MAX_UNAUTHENTICATED:
                    oldest = next(iter(unauthenticated))
                    del unauthenticated[oldest]
                    oldest.close()
                unauthenticated[stream] = None
                nursery.start_soon(challenge, stream)
    finally:
        refused.say_rest()
