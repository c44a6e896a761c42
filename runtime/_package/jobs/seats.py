"""A trainer's place in a job."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeAlias

import trio
from attrs import define, field, frozen

from troth.client.model import FLModel, NotAModel, from_tree
from troth.jobs.errors import JobError
from troth.jobs.job import Job
from troth.jobs.report import TrainerReport
from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import PayloadRefused, SessionError, SpawnFailed
from troth.runtime.ports import ExitStatus
from troth.runtime.processes.bootstrap import TaskNames
from troth.runtime.processes.guardian import Guardian
from troth.runtime.processes.sharing import shared
from troth.runtime.status import signal_name

METRICS_SHOWN = 16
"""How many of a trainer's figures are kept for whoever watches."""

Lost: TypeAlias = SessionError | SpawnFailed
"""How it ends with a trainer that a job could go on without."""


class Trainer(Protocol):
    """A trainer as a job sees it; ``troth.runtime.backend.ExternalProcess`` is one."""

    async def __aenter__(self) -> Any:
        """Start it."""

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> bool | None:
        """End it: in order, or at once if there is an exception."""

    async def execute(self, name: str, payload: Any, *, task_id: str | None = None) -> Any:
        """Give it a task and wait for the result."""

    async def abort(self) -> None:
        """End it at once."""

    def status(self) -> Any:
        """How it is: a ``TrainerStatus``."""


@frozen
class Order:
    """A task for a seat."""

    name: str
    task_id: str
    payload: Any
    round: int


@frozen
class Answer:
    """What came of an order, or of the seat as a whole."""

    seat: Seat
    found: FLModel | Lost | JobError
    """A result, why there is none any more, or what is wrong with it."""
    task_id: str = "start"
    """What the seat was at."""


Logged: TypeAlias = Callable[[str, Any], None]
"""Takes a log record of a trainer: its key and its value."""
Hire: TypeAlias = Callable[[int, Logged], Trainer]
"""Makes a trainer by its number."""


@asynccontextmanager
async def external(job: Job, trace: Path | None) -> AsyncIterator[Hire]:
    """Trainers in processes of their own, under one guardian. Raises ``SpawnFailed``."""
    names = TaskNames(train=job.train_task, evaluate=job.evaluate_task, submit=job.submit_task)
    async with Guardian(logs=job.logs) as guardian, shared(guardian) as sharing:

        def hire(index: int, logged: Logged) -> Trainer:
            return ExternalProcess(
                job.command_of(index),
                name=job.name_of(index),
                job_id=job.name,
                site_name=job.name_of(index),
                persistent=job.persistent,
                limits=job.limits,
                on_unresponsive=job.on_unresponsive,
                environment=job.environment_of(index),
                directory=job.directory,
                transport=job.transport,
                credentials=job.credentials,
                task_names=names,
                processes=sharing.share(),
                trace=trace,
                on_log=lambda _name, record: logged(record.key, record.value),
            )

        yield hire


@define(eq=False)
class Seat:
    """A trainer's place in a job: a task that starts it, gives it what it is handed, and ends it.

    ``run`` never raises what became of the trainer; it is an answer like any other.
    """

    job: Job
    index: int
    trainer: Trainer
    answers: trio.MemorySendChannel[Answer]
    lost: str | None = None
    """Why the job goes on without it."""
    round: int = 0
    """The round of the order that it was given last, from 1."""
    task: str | None = None
    """The id of the task that it has now."""
    over: bool = False
    """Whether its trainer has ended."""
    metrics: dict[str, float] = field(factory=dict)
    """The newest figures of the trainer, from its results and its log."""
    _life: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _work: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _started: bool = field(default=False, init=False)
    _orders_in: trio.MemorySendChannel[Order] = field(init=False)
    _orders_out: trio.MemoryReceiveChannel[Order] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._orders_in, self._orders_out = trio.open_memory_channel(1)

    @property
    def name(self) -> str:
        """The trainer's name."""
        return self.job.name_of(self.index)

    def give(self, order: Order) -> None:
        """Hand it a task. It has one at a time."""
        self._orders_in.send_nowait(order)

    def dismiss(self, *, in_order: bool) -> None:
        """No more tasks: end the trainer, or give it up at once."""
        if in_order:
            self._orders_in.close()
        else:  # a start that is given up is the backend's to undo
            (self._work if self._started else self._life).cancel()

    async def run(self) -> None:
        """From the trainer's start to its end."""
        try:
            with self._life:
                async with self.trainer:
                    self._started = True
                    with self._work:
                        await self._serve()
                    if self._work.cancel_called:
                        await self.trainer.abort()
        except (SessionError, SpawnFailed) as error:
            self._answer(error)
        finally:
            self.over = True

    async def _serve(self) -> None:
        async for order in self._orders_out:
            self.round, self.task = order.round, order.task_id
            try:
                result = await self.trainer.execute(order.name, order.payload, task_id=order.task_id)
                found = from_tree(result.payload)
            except SessionError as error:
                self._answer(error, order.task_id)
                self._work.cancel()  # told to the job first: ending the trainer may take its time
                await trio.lowlevel.checkpoint()
            except (NotAModel, PayloadRefused) as error:
                self._answer(JobError(f"{order.task_id}: {self.name}: {error}"), order.task_id)
            else:
                self.note(found.metrics or {})
                self._answer(found, order.task_id)
            finally:
                self.task = None

    def _answer(self, found: FLModel | Lost | JobError, task_id: str = "start") -> None:
        self.answers.send_nowait(Answer(self, found, task_id))

    def note(self, figures: dict[str, Any]) -> None:
        """Figures to show."""
        for key, value in figures.items():
            number = not isinstance(value, bool) and isinstance(value, int | float)
            if number and (key in self.metrics or len(self.metrics) < METRICS_SHOWN) and abs(value) < math.inf:
                self.metrics[key] = float(value)

    def report(self) -> TrainerReport:
        """Its part of the job."""
        found = self.trainer.status()
        return TrainerReport(
            name=self.name,
            accepted=found.accepted,
            settled=found.settled,
            retries=found.retries,
            bytes_down=found.bytes_down,
            bytes_up=found.bytes_up,
            exit=None if found.exit is None else _ended(found.exit),
            lost=self.lost,
        )


def _ended(status: ExitStatus) -> str:
    if status.signal is not None:
        return f"killed by {signal_name(status.signal)}"
    return "unknown" if status.code is None else f"exit {status.code}"
