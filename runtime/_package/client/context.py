"""A script's session, blocking: each call hops into the trio thread and waits there for its ``Session``.

Rule 1.  ``shutdown`` may be called at any time, from any thread, and from a signal handler that has interrupted any of these calls,
         ``shutdown`` too. It first leaves a mark that a joining ``init`` sees, then asks the trio thread, which needs nothing that an
         interrupted call could hold.
Rule 2.  A call that is left by an exception loses nothing: a task that it was about to take stays, a result that it had begun to send
         goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, TypeVar

import trio
from attrs import define, field

from troth.client.loop import Call, Loop, Overdue
from troth.client.model import FLModel
from troth.client.records import record
from troth.client.session import Connect, Held, Prepared, Session, check_timeout
from troth.client.settings import Settings
from troth.runtime.errors import Misuse, RuntimeFault, SessionClosed, alone

T = TypeVar("T")

SHUTDOWN_LIMIT_S = 5.0
"""How long ``shutdown`` waits for the trio thread to take note. It takes note at once, unless something holds that thread up."""
LOG_LIMIT_S = 1.0
"""How long ``log`` waits for the trio thread before the record is dropped and counted."""


@define(eq=False)
class Context:
    """One session of this process, as ``init`` returns it. Its methods are the functions of ``troth.client``."""

    _connect: Connect = field(repr=False)
    dropped_logs: int = field(default=0, init=False)
    """Log records that were not sent because the trio thread did not take them in time."""
    joined: bool = field(default=False, init=False)
    """Whether ``init`` came to a session, or to the knowledge that this rank has none."""
    settings: Settings | None = field(default=None, init=False, repr=False)
    pending_metrics: dict[str, Any] = field(init=False, factory=dict, repr=False)
    """What ``evaluate`` found, for the next ``train``."""
    _loop: Loop | None = field(default=None, init=False, repr=False)
    _session: Session | None = field(default=None, init=False, repr=False)
    _left: bool = field(default=False, init=False)
    """``shutdown`` was called."""
    _broken: BaseException | None = field(default=None, init=False, repr=False)
    _scope: trio.CancelScope = field(init=False, factory=trio.CancelScope, repr=False)
    _gone: trio.Event = field(init=False, factory=trio.Event, repr=False)

    # -- joining -------------------------------------------------------------------------------------------------------

    def open(self, settings: Settings, loop: Loop | None) -> None:
        """Join a session; a passive rank opens nothing, and needs no thread. Raises what ``init`` raises."""
        self.settings = settings
        if loop is None:
            self._session, self.joined = Session(settings), True
            return
        self._check_not_left()
        loop.start()
        self._loop = loop
        loop.call(Call((self, "init"), self._join))

    def _check_not_left(self) -> None:
        if self._left:
            raise SessionClosed("shutdown() was called while init() was joining")

    async def _join(self) -> None:
        if self.settings is None or self._loop is None:
            raise RuntimeFault("joining before it was opened")
        try:
            self._check_not_left()
            session = Session(self.settings, self._connect(self.settings))
            await self._loop.nursery.start(self._live, session)
        except BaseException:
            self._gone.set()
            raise
        try:
            self._session = session  # from here on shutdown() asks it
            self._check_not_left()
            await session.join()
            self.joined = True
        except BaseException:
            self._session = None
            self._scope.cancel()
            with trio.CancelScope(shield=True):
                await self._gone.wait()
            raise

    async def _live(self, session: Session, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            with self._scope:
                await session.live(task_status=task_status)
        except Exception as error:
            if self._session is None or self._loop is None:
                raise
            self._broken = alone(error)
            self._loop.fail_all(self, "the session broke; this is a fault of Troth", self._broken)
        finally:
            self._gone.set()

    # -- asking --------------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The session behind this. Raises ``Misuse`` before ``init`` has returned."""
        if self._session is None or not self.joined:
            raise Misuse("init() has not returned yet")
        if self._broken is not None:
            raise RuntimeFault("the session broke; this is a fault of Troth") from self._broken
        return self._session

    @property
    def ended(self) -> bool:
        """Whether this is over, so that ``init`` makes another one."""
        return self._left or self._broken is not None or (self._session is not None and self._session.over)

    @property
    def closed(self) -> bool:
        """Whether nothing is left to be done for it."""
        return self._loop is None or self._gone.is_set()

    def _call(self, call: str, make: Callable[[], Awaitable[T]], limit_s: float | None = None) -> T:
        if self._loop is None:
            raise RuntimeFault(f"{call}(): no thread to ask")
        return self._loop.call(Call((self, call), make), limit_s)

    # -- the calls -----------------------------------------------------------------------------------------------------

    def receive(self, timeout: float | None = None) -> FLModel | None:
        """As ``troth.client.receive``."""
        limit, session = check_timeout(timeout), self.session
        if session.passive:
            return None
        held: Held | None = self._call("receive", lambda: session.take(limit))
        return None if held is None else session.unpack(held)

    def send(self, model: FLModel, clear_cache: bool = True) -> None:
        """As ``troth.client.send``."""
        session = self.session
        if session.passive:
            return
        prepared: Prepared = session.prepare(model)
        self._call("send", lambda: session.publish(prepared, clear_cache))

    def is_running(self) -> bool:
        """As ``troth.client.is_running``."""
        session = self.session
        return not session.passive and self._call("receive", session.is_running)

    def log(self, key: str, value: Any, data_type: str | Enum, **extra: Any) -> None:
        """As ``troth.client.log``."""
        session = self.session
        session.require_control("log")
        made = record(key, value, data_type, extra)

        async def hand_over() -> None:
            session.hand_over(made)

        try:
            self._call("log", hand_over, LOG_LIMIT_S)
        except Overdue:
            self.dropped_logs += 1
        except SessionClosed:
            pass  # the thread has ended, so there is no host to tell: as after the end of a session

    def shutdown(self) -> bool:
        """As ``troth.client.shutdown``."""
        self._left = True
        loop = self._loop
        if loop is None or self._broken is not None:
            return True
        if loop.here:  # a finalizer that the collector ran in the trio thread
            loop.soon(self._leave_soon)
            return False
        try:
            return loop.call(Call((self, "shutdown"), self._leave, persists=True), SHUTDOWN_LIMIT_S)
        except Overdue:
            return False
        except SessionClosed:
            return True

    def _leave_soon(self) -> None:
        if self._loop is not None:
            self._loop.nursery.start_soon(self._leave)

    async def _leave(self) -> bool:
        return self._session is None or await self._session.shutdown()

    async def finish(self) -> None:
        """Close it in order, within a bound. The trio thread's."""
        if self._session is not None and self._broken is None:
            await self._session.finish()
