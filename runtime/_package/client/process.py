"""The sessions of this process: which one a call means, what a fork leaves, and what happens at the interpreter's exit.

Rule 1.  A session belongs to the process that opened it. A child that was forked off afterwards is told so by every call, and touches
         nothing that it has inherited.
Rule 2.  An ended session is never given out again: after ``shutdown`` or a failed ``init``, ``init`` makes a new one.
Rule 3.  An interpreter that ends closes what is open, in order and within a bound.
Rule 4.  ``shutdown`` takes no lock (see ``context``).
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from pathlib import Path

import trio
from attrs import define, field

from troth.client import session
from troth.client.context import Context
from troth.client.loop import Loop
from troth.client.settings import find_file, find_rank, read
from troth.runtime.errors import Misuse

log = logging.getLogger("troth.client")

Key = tuple[str, Path]


@define(eq=False)
class Process:
    """What this process has opened."""

    pid: int = field(factory=os.getpid, init=False)
    default: Context | None = field(default=None, init=False)
    """What a call means that names no context: the last one that ``init`` returned."""
    _contexts: dict[Key, Context] = field(init=False, factory=dict)
    _joining: list[Context] = field(init=False, factory=list)
    """What ``init`` is joining, in any thread."""
    _open: list[Context] = field(init=False, factory=list)
    """What the exit has to close."""
    _loop: Loop | None = field(default=None, init=False)
    _lock: threading.RLock = field(init=False, factory=threading.RLock)
    """Held for moments, by ``init`` alone; a signal handler may come in, so it can be taken again."""

    def init(self, rank: int | str | None, config_file: str | os.PathLike[str] | None) -> Context:
        """Join, or return what was joined with the same rank and file and has not ended."""
        context = Context(session.connect)
        try:
            self._joining.append(context)  # from here on shutdown() finds it
            key = find_rank(rank), find_file(config_file)
            known = self._claim(key, context)
            if known is context:
                self._join(key, context)
            elif known.joined:
                log.warning("init() was called again; the session that it opened first goes on")
            else:
                raise Misuse("init(): another thread is joining with the same rank and bootstrap file; wait for it")
            self.default = known
        finally:
            if not context.joined:
                self._forget(context)
            if context in self._joining:
                self._joining.remove(context)
        return known

    def _claim(self, key: Key, context: Context) -> Context:
        with self._lock:
            known = self._contexts.get(key)
            if known is None or known.ended:
                known = self._contexts[key] = context
                self._open = [*(one for one in self._open if not one.closed), context]
            return known

    def _forget(self, context: Context) -> None:
        with self._lock:
            for key in [key for key, known in self._contexts.items() if known is context]:
                del self._contexts[key]

    def _join(self, key: Key, context: Context) -> None:
        settings = read(*key)
        if settings.passive:
            context.open(settings, None)
            return
        session.load()
        context.open(settings, self._thread())

    def _thread(self) -> Loop:
        with self._lock:
            if self._loop is None:
                atexit.register(self.at_exit)
                self._loop = Loop(self._close_all)
            return self._loop

    def the(self, context: Context | None) -> Context:
        """The context that a call means."""
        found = context if context is not None else self.default
        if found is None:
            raise Misuse("call init() first")
        return found

    def shutdown(self, context: Context | None) -> bool:
        """End a session; without ``context`` the last one, and whatever is joining."""
        if context is not None:
            return context.shutdown()
        meant = [*self._joining, *([] if self.default is None else [self.default])]
        ended = [one.shutdown() for one in meant]
        return all(ended)

    # -- the end -------------------------------------------------------------------------------------------------------

    def at_exit(self) -> None:
        """Rule 3."""
        if self._loop is None or os.getpid() != self.pid:
            return
        limits = [0.0, *(one.settings.bootstrap.limits.drain_limit_s for one in self._open if one.settings is not None)]
        self._loop.stop(max(limits) + 2 * session.CLOSING_EXTRA_S)

    async def _close_all(self) -> None:
        async with trio.open_nursery() as nursery:
            for context in self._open:
                nursery.start_soon(context.finish)

    @property
    def idle(self) -> bool:
        """Whether nothing is open here, so that a forked child starts afresh."""
        return not self._joining and all(context.ended for context in self._contexts.values())


_process = Process()


def process() -> Process:
    """This process' sessions. Raises ``Misuse`` in a child that was forked off while there were any."""
    global _process  # noqa: PLW0603 - a process is one
    if _process.pid != os.getpid():
        if not _process.idle:
            raise Misuse(
                f"this process was forked from process {_process.pid}, whose session it cannot use; "
                "fork before init(), start children by 'spawn', or talk to the process that called init()"
            )
        _process = Process()
    return _process
