"""Trainers that are functions, for tests of what a job makes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import trio
from attrs import define, field, frozen

from troth.client import FLModel
from troth.client.model import from_tree, to_tree
from troth.jobs.job import Job
from troth.jobs.seats import Hire, Logged
from troth.runtime.ports import ExitStatus
from troth.runtime.status import TaskResult, TrainerStatus

Work = Callable[["Fake", str, FLModel], Awaitable[FLModel]]


@define(eq=False)
class Fake:
    """A trainer whose work is ``work(trainer, task, model)``; what was done with it is in ``events``."""

    index: int
    work: Work
    logged: Logged
    events: list[str] = field(factory=list)
    exit: ExitStatus | None = None
    starts: Callable[[Fake], Awaitable[None]] | None = None
    accepted: int = 0

    async def __aenter__(self) -> Fake:
        self.events.append("start")
        if self.starts is not None:
            await self.starts(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self.events.append("end")
        self.exit = ExitStatus(code=0)

    async def execute(self, name: str, payload: Any, *, task_id: str | None = None) -> TaskResult:
        """One task, by the function."""
        self.events.append(f"{task_id} {name}")
        found = await self.work(self, name, from_tree(payload))
        self.accepted += 1
        return TaskResult(to_tree(found), str(task_id), 0.0)

    async def abort(self) -> None:
        """Noted."""
        self.events.append("abort")

    def status(self) -> TrainerStatus:
        """Some figures."""
        return TrainerStatus(
            name=f"trainer-{self.index + 1}",
            pid=100 + self.index,
            state="ready",
            task=None,
            lease_age_s=0.25,
            bytes_down=2000,
            bytes_up=1000 * self.accepted,
            accepted=self.accepted,
            settled=self.accepted,
            retries=0,
            exit=self.exit,
        )


@frozen
class FakeCrew:
    """Makes them, and keeps them."""

    work: Work
    starts: Callable[[Fake], Awaitable[None]] | None = None
    hired: list[Fake] = field(factory=list)

    def __call__(self, job: Job, trace: Path | None) -> AbstractAsyncContextManager[Hire]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Hire]:
        await trio.lowlevel.checkpoint()
        yield self._hire

    def _hire(self, index: int, logged: Logged) -> Fake:
        self.hired.append(Fake(index, self.work, logged, starts=self.starts))
        return self.hired[-1]
