"""The thread that runs trio, and how another thread waits for what happens there.

Rule 1.  A signal handler may interrupt the main thread between any two instructions, in this module too, and call into it again. So
         nothing that the trio thread needs is ever held by a calling thread: no condition, no lock with an owner. A caller waits on a
         bare lock of its own, which the trio thread opens once.
Rule 2.  What a caller asks for begins in the trio thread in the order in which it was asked.
Rule 3.  A caller that leaves by an exception (KeyboardInterrupt, an exit) abandons its call: the call is cancelled, its end is waited for,
         and should a second exception cut that short, the next call of its kind waits instead. So nothing that it was about to take is
         lost, and what it had come to is known.
Rule 4.  Everything that was asked for ends: by its outcome, or with the thread.
Rule 5.  At most ``CALLS_LIMIT`` calls are on their way at once.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import trio
from attrs import define, field

from troth.runtime.errors import CallCancelled, Misuse, RuntimeFault, SessionClosed

T = TypeVar("T")

CALLS_LIMIT = 1024
"""Calls of all threads together that have not returned."""
ABANDON_LIMIT_S = 5.0
"""How long a caller that leaves waits for its call to end. It ends at once, unless something holds the trio thread up."""
THREAD_NAME = "troth-client"


class Overdue(Exception):
    """A call did not return within the bound that its caller set."""


class Call(Generic[T]):
    """One call on its way through the trio thread. Made and waited for by the calling thread."""

    def __init__(self, kind: tuple[object, str], make: Callable[[], Awaitable[T]], *, persists: bool = False) -> None:
        self.kind = kind
        self.make = make
        self.persists = persists
        """Goes on when its caller has left."""
        self.abandoned = False
        self.begun = False
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self._failure: BaseException | None = None
        self._value: T
        self._gate = threading.Lock()
        self._gate.acquire()

    def succeed(self, value: T) -> None:
        """Let the caller return. The trio thread's, once."""
        self._value = value
        self._gate.release()

    def fail(self, failure: BaseException) -> None:
        """Let the caller raise. The trio thread's, once."""
        self._failure = failure
        self._gate.release()

    def wait(self, limit_s: float | None) -> bool:
        """Wait for its end; whether it came in time."""
        return self._gate.acquire(timeout=-1 if limit_s is None else limit_s)

    def result(self, limit_s: float | None) -> T:
        """Wait, and return or raise what came of it. Raises ``Overdue``."""
        if not self.wait(limit_s):
            raise Overdue
        if self._failure is not None:
            raise self._failure
        return self._value


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@define(eq=False)
class Loop:
    """The trio thread."""

    closing: Callable[[], Awaitable[None]]
    """Closes whatever is open, within a bound, before the thread ends."""
    nursery: trio.Nursery = field(init=False)
    _token: trio.lowlevel.TrioToken | None = field(default=None, init=False)
    """There while calls are taken."""
    _ident: int | None = field(default=None, init=False)
    _starting: threading.RLock = field(init=False, factory=threading.RLock)
    """Held by a thread that waits for the start; neither the trio thread nor ``shutdown`` ever takes it."""
    _first: threading.Lock = field(init=False, factory=threading.Lock)
    """Held by the thread that was first."""
    _started: threading.Lock = field(init=False, factory=_locked)
    """Open from the start of the thread until somebody has noticed."""
    _ended: threading.Lock = field(init=False, factory=_locked)
    """Open once the thread has ended."""
    _failure: BaseException | None = field(default=None, init=False)
    _stop: trio.Event = field(init=False, factory=trio.Event)
    _calls: set[Call[Any]] = field(init=False, factory=set)
    """Asked for and not ended; adding and removing are single steps for every thread."""
    _running: dict[tuple[object, str], Call[Any]] = field(init=False, factory=dict)
    """The last call of each kind. The trio thread's alone."""

    # -- any thread ----------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the thread takes calls."""
        return self._token is not None

    @property
    def here(self) -> bool:
        """Whether this is the trio thread, which cannot wait for itself."""
        return threading.get_ident() == self._ident

    def start(self) -> None:
        """Start the thread and wait until it takes calls."""
        with self._starting:
            if self._token is None and self._failure is None:
                # Not threading.Thread, whose start() waits on a condition (Rule 1). If an exception came between these two the last time,
                # this is a second thread; it ends at once.
                _thread.start_new_thread(self._main, ())
                self._started.acquire()
        if self._failure is not None:
            raise RuntimeFault("the client's thread has ended") from self._failure

    def call(self, call: Call[T], limit_s: float | None = None) -> T:
        """Make a call in the trio thread and wait for it. Raises what it raises; ``Overdue`` after ``limit_s``."""
        if self.here:
            raise Misuse(f"{call.kind[1]}(): called from the client's own thread, which cannot wait for itself")
        try:
            self._post(call)
            return call.result(limit_s)
        except BaseException as left:
            if not call.persists:
                call.abandoned = True
                if call in self._calls and self.soon(self._cancel, call) and not isinstance(left, Overdue):
                    call.wait(ABANDON_LIMIT_S)
            raise

    def soon(self, what: Callable[..., object], *arguments: Any) -> bool:
        """Let the trio thread do something, and do not wait; whether there is one."""
        token = self._token
        if token is None:
            return False
        try:
            token.run_sync_soon(what, *arguments)
        except trio.RunFinishedError:
            return False
        return True

    def stop(self, limit_s: float) -> bool:
        """End the thread in order and wait for it, at most that long. True if it ended."""
        self.soon(self._stop.set)
        if self._ident is None or self.here or not self._ended.acquire(timeout=limit_s):
            return self._ident is None
        self._ended.release()
        return True

    def _post(self, call: Call[Any]) -> None:
        if len(self._calls) >= CALLS_LIMIT:
            raise Misuse(f"{call.kind[1]}(): {CALLS_LIMIT} calls are waiting already")
        self._calls.add(call)
        if not self.soon(self._begin, call):
            self._calls.discard(call)
            raise SessionClosed("the client's thread has ended, and every session with it")

    # -- the trio thread -----------------------------------------------------------------------------------------------

    def _main(self) -> None:
        if not self._first.acquire(blocking=False):
            return
        self._ident = threading.get_ident()
        try:
            threading.current_thread().name = THREAD_NAME
            trio.run(self._run)
            self._failure = SessionClosed("it was stopped at the interpreter's exit")
        except BaseException as error:  # nobody is above; who waits is told
            self._failure = error
        finally:
            for call in tuple(self._calls):
                self._end(call, SessionClosed("the client's thread has ended, and every session with it"))
            if self._started.locked():
                self._started.release()
            self._ended.release()

    async def _run(self) -> None:
        try:
            async with trio.open_nursery() as self.nursery:
                self._token = trio.lowlevel.current_trio_token()
                self._started.release()
                await self._stop.wait()
                await self.closing()
                self._token = None
                self.nursery.cancel_scope.cancel()
        finally:
            self._token = None

    def _begin(self, call: Call[Any]) -> None:
        if self._token is None or call not in self._calls:
            return
        call.begun = True
        earlier = self._running.get(call.kind)
        self._running[call.kind] = call
        self.nursery.start_soon(self._serve, call, earlier)

    async def _serve(self, call: Call[Any], earlier: Call[Any] | None) -> None:
        failure: BaseException = CallCancelled(f"{call.kind[1]}() was given up by its caller")
        try:
            if earlier is not None and earlier.abandoned:  # Rule 3
                earlier.scope.cancel()
                await earlier.ended.wait()
            with call.scope:
                if call.abandoned:
                    return
                value = await call.make()
                self._calls.discard(call)
                call.succeed(value)
                return
        except trio.Cancelled:
            failure = SessionClosed("the client's thread is ending, and every session with it")
            raise
        except Exception as error:
            failure = error
        finally:
            call.ended.set()
            if self._running.get(call.kind) is call:
                del self._running[call.kind]
            self._end(call, failure)

    def _cancel(self, call: Call[Any]) -> None:
        call.scope.cancel()
        if not call.begun:
            self._end(call, CallCancelled(f"{call.kind[1]}() was given up by its caller"))

    def _end(self, call: Call[Any], failure: BaseException) -> None:
        if call in self._calls:
            self._calls.discard(call)
            call.fail(failure)

    def fail_all(self, owner: object, why: str, cause: BaseException) -> None:
        """Let every call that ``owner`` has begun raise ``RuntimeFault``."""
        for call in tuple(self._calls):
            if call.kind[0] is owner:
                fault = RuntimeFault(why)
                fault.__cause__ = cause
                self._end(call, fault)
                call.scope.cancel()
