"""The thread that runs trio, and how another thread waits for what happens there.

Rule 1.  A signal handler may interrupt the main thread between any two instructions, in this module too, and call into it again. So
         nothing that the trio thread needs is ever held by a calling thread: no condition, no lock with an owner. A caller waits on a
         bare lock of its own, which the trio thread opens once.
Rule 2.  What a caller asks for begins in the trio thread in the order in which it was asked.
Rule 3.  A caller that leaves by an exception (KeyboardInterrupt, an exit) abandons its call: the call is cancelled, and the next one of
         its kind begins only when it has ended. So nothing that it was about to take is lost.
Rule 4.  Everything that was asked for ends: by its outcome, or with the thread.
Rule 5.  At most ``CALLS_LIMIT`` calls are on their way at once.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import trio
from attrs import define, field

from troth.runtime.errors import CallCancelled, Misuse, RuntimeFault, SessionClosed

T = TypeVar("T")

CALLS_LIMIT = 1024
"""Calls of all threads together that have not returned."""
THREAD_NAME = "troth-client"


class Overdue(Exception):
    """A call did not return within the bound that its caller set."""


class Call(Generic[T]):
    """One call on its way through the trio thread. Made and waited for by the calling thread."""

    def __init__(self, kind: tuple[object, str], make: Callable[[], Awaitable[T]]) -> None:
        self.kind = kind
        self.make = make
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

    def result(self, limit_s: float | None) -> T:
        """Wait, and return or raise what came of it. Raises ``Overdue``."""
        if not self._gate.acquire(timeout=-1 if limit_s is None else limit_s):
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
    _thread: threading.Thread | None = field(default=None, init=False)
    _first: threading.Lock = field(init=False, factory=threading.Lock)
    """Held by the thread that was first."""
    _started: threading.Lock = field(init=False, factory=_locked)
    """Open from the start of the thread until somebody has noticed."""
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
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def start(self) -> None:
        """Start the thread and wait until it takes calls. One thread at a time may do so."""
        if self._token is None and self._failure is None:
            # If an exception came between these two the last time, this is a second thread; it ends at once.
            threading.Thread(target=self._main, name=THREAD_NAME, daemon=True).start()
            self._started.acquire()
        if self._failure is not None:
            raise RuntimeFault("the client's thread has ended") from self._failure

    def call(self, kind: tuple[object, str], make: Callable[[], Awaitable[T]], limit_s: float | None = None) -> T:
        """Run ``make`` in the trio thread and wait for it. Raises what it raises; ``Overdue`` after ``limit_s``."""
        if self.here:
            raise Misuse(f"{kind[1]}(): called from the client's own thread, which cannot wait for itself")
        call = Call(kind, make)
        try:
            self._post(call)
            return call.result(limit_s)
        except BaseException:
            call.abandoned = True
            if call in self._calls:
                self.soon(self._cancel, call)
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
        if self._thread is not None and not self.here:
            self._thread.join(limit_s)
        return not self.running

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
        self._thread = threading.current_thread()
        try:
            trio.run(self._run)
            self._failure = SessionClosed("it was stopped at the interpreter's exit")
        except BaseException as error:  # nobody is above; who waits is told
            self._failure = error
        finally:
            for call in tuple(self._calls):
                self._end(call, SessionClosed("the client's thread has ended, and every session with it"))
            if self._started.locked():
                self._started.release()

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
            self._calls.discard(call)

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
