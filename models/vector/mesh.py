"""Processes that meet: every worker sends a small message to every other and waits for theirs.

A meeting is a barrier and an exchange at once. A worker that dies closes its pipes, so the others notice at once and do not wait.
"""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from troth.spec.errors import TrothError


class WorkerLost(Exception):
    """A worker is gone without a word: most often the system ran out of memory and killed it."""


class Mesh:
    """Pipes between all pairs of ``workers`` processes. Made before they are forked; each then calls ``join`` with its number."""

    def __init__(self, workers: int) -> None:
        context = get_context("fork")
        self.workers = workers
        self.me = 0
        self._ends: dict[tuple[int, int], Connection] = {}
        for one in range(workers):
            for other in range(one):
                self._ends[one, other], self._ends[other, one] = context.Pipe()
        self._peers: list[Connection] = []

    def join(self, me: int) -> None:
        """Become worker number ``me``: keep its own ends and close the others, so that a closed pipe is seen as such."""
        self.me = me
        self._peers = [self._ends[me, other] for other in range(self.workers) if other != me]
        for (owner, _), end in self._ends.items():
            if owner != me:
                end.close()

    def meet(self, message: Any) -> list[Any]:
        """Everybody's message, in the order of the workers. Raises the error that a worker failed with, or ``WorkerLost``."""
        for end in self._peers:
            try:
                end.send(message)
            except OSError:
                continue  # it has stopped; what it said last, perhaps why, is still to be read
        try:
            found = [end.recv() for end in self._peers]
        except (EOFError, OSError) as error:
            raise WorkerLost("a worker process is gone; it may have been killed for want of memory") from error
        for theirs in found:
            if isinstance(theirs, TrothError):
                raise theirs
        found.insert(self.me, message)
        return found

    def fail(self, error: TrothError) -> None:
        """Tell everybody else why this worker stops."""
        for end in self._peers:
            try:
                end.send(error)
            except OSError:
                continue  # it stopped first

    def close(self) -> None:
        """Close this worker's ends."""
        for end in self._peers:
            end.close()
