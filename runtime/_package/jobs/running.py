"""Running a job: trainers side by side, rounds one after the other.

Rule 1.  Results are averaged in the order of the trainers, whatever order they come in, so the same seed gives the same model bit for bit.
Rule 2.  Whatever happens, every trainer is ended: in order where all went well, by an abort where it did not.
Rule 3.  What is kept of a round is one number.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import trio
from attrs import define, field

from troth.client.model import FLModel, ParamsType, to_tree
from troth.jobs.averaging import Average, check_weight
from troth.jobs.errors import AveragingError, JobError, JobFailed
from troth.jobs.job import Job, Params
from troth.jobs.report import JobReport
from troth.jobs.seats import Answer, Hire, Order, Seat, external
from troth.jobs.store import claim_directory, make_directory, read_model, write_model
from troth.runtime.errors import SpawnFailed, alone

Take: TypeAlias = Callable[[Seat, FLModel], None]
Crew: TypeAlias = Callable[[Job, Path | None], AbstractAsyncContextManager[Hire]]


async def run_job(job: Job, *, trace: Path | None = None) -> JobReport:
    """Run a job from the start of its trainers to the end of the last one.

    What goes wrong on the way is in the report; ``BadJob`` is raised for a job that cannot be started. Whoever cancels this ends the
    trainers, too.
    """
    return await JobRun(job, trace=trace).run()


@define(eq=False)
class JobRun:
    """One run of a job, to be watched while it goes on."""

    job: Job
    trace: Path | None = field(default=None, kw_only=True)
    crew: Crew = field(default=external, kw_only=True)
    """What makes the trainers."""
    on_round: Callable[[int, float], None] = field(default=lambda _round, _accuracy: None, kw_only=True)
    """Called after every round with its number, from 1, and its accuracy."""
    seats: list[Seat] = field(factory=list, init=False)
    round: int = field(default=0, init=False)
    """The round that goes on, from 1."""
    accuracy: array[float] = field(factory=lambda: array("d"), init=False)
    errors: list[str] = field(factory=list, init=False)
    interrupted: bool = field(default=False, init=False)
    failure: str | None = field(default=None, init=False)
    ending: bool = field(default=False, init=False)
    """Whether the rounds are over."""
    started_s: float = field(default=0.0, init=False)
    """On trio's clock."""
    _prepared: bool = field(default=False, init=False)
    _model: Params | None = field(default=None, init=False)
    _rounds: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _inbox: trio.MemoryReceiveChannel[Answer] = field(init=False)

    @property
    def live(self) -> list[Seat]:
        """The trainers that the job goes on with."""
        return [seat for seat in self.seats if seat.lost is None]

    def interrupt(self) -> None:
        """End the job before its last round. Trainers are aborted, and given their time to end."""
        self.interrupted = self.ending = True
        self._rounds.cancel()

    def prepare(self) -> None:
        """What can be found wrong before anything is started: the model's file, and the directories. Raises ``BadField``."""
        if self._prepared:
            return
        self._model = read_model(self.job.model) if isinstance(self.job.model, Path) else self.job.model
        if self.trace is not None:
            claim_directory(self.trace)
        if self.job.logs is not None:
            make_directory("logs", self.job.logs)
        self._prepared = True

    async def run(self) -> JobReport:
        """Run it; see ``run_job``. What ``evaluate`` and ``on_round`` raise is raised from here, once the trainers have ended."""
        try:
            return await self._run()
        except BaseExceptionGroup as group:
            one = alone(group)  # the nurseries are nobody's business
        raise one

    async def _run(self) -> JobReport:
        self.prepare()
        job = self.job
        self.started_s = trio.current_time()
        outbox, self._inbox = trio.open_memory_channel[Answer](math.inf)
        try:
            async with self.crew(job, self.trace) as hire, trio.open_nursery() as nursery:
                for index in range(job.trainers):
                    self.seats.append(Seat(job, index, hire(index, self._log_of(index)), outbox))
                    nursery.start_soon(self.seats[-1].run)
                with self._rounds:
                    await self._run_rounds()
                self.ending = True
                finished = self.failure is None and not self.interrupted
                for seat in self.seats:
                    seat.dismiss(in_order=finished and seat.lost is None)
        except SpawnFailed as error:  # the guardian: without it there is nothing
            self._fail(str(error))
        return self._report(trio.current_time() - self.started_s)

    def _log_of(self, index: int) -> Callable[[str, Any], None]:
        return lambda key, value: self.seats[index].note(dict(value) if hasattr(value, "keys") else {key: value})

    def _report(self, wall_s: float) -> JobReport:
        return JobReport(
            name=self.job.name,
            trainers=self.job.trainers,
            rounds=self.job.rounds,
            seed=self.job.seed,
            accuracy=self.accuracy,
            failure=self.failure,
            interrupted=self.interrupted,
            errors=tuple(self.errors),
            wall_s=wall_s,
            by_trainer=tuple(seat.report() for seat in self.seats),
            model=self._model,
        )

    # -- the rounds ----------------------------------------------------------------------------------------------------

    async def _run_rounds(self) -> None:
        try:
            if self._model is None:
                await self._ask_for_a_model()
            for number in range(1, self.job.rounds + 1):
                self.round = number
                figure = await self._run_round()
                self.accuracy.append(figure)
                self.on_round(number, figure)
            if self.job.save is not None:
                assert self._model is not None
                write_model(self.job.save, self._model)
        except AveragingError as error:
            self._fail(f"round-{self.round}: {error}")
        except JobError as error:
            self._fail(str(error))

    def _fail(self, why: str) -> None:
        self.failure, self.ending = why, True
        if why not in self.errors:
            self.errors.append(why)

    async def _run_round(self) -> float:
        """Train, average, evaluate; the round's accuracy."""
        mean = _Mean(self.job, self._model)
        await self._ask(self.live, self.job.train_task, f"round-{self.round}", mean.take)
        assert mean.average is not None  # somebody is left, or the job has failed
        self._model = model = mean.average.result()
        if self.job.evaluate is not None:
            return _figure(self.job.evaluate(model))
        if self.job.evaluate_rounds:
            mean = _Mean(self.job, self._model)
            await self._ask(self.live, self.job.evaluate_task, f"round-{self.round}-evaluate", mean.take_figures)
        return mean.score

    async def _ask_for_a_model(self) -> None:
        def take(seat: Seat, found: FLModel) -> None:
            if found.params is None or found.params_type is not ParamsType.FULL:
                raise JobFailed(f"{seat.name}: was asked for the model to start from, and sent no FULL params")
            self._model = found.params

        while self._model is None:  # the next one, if the first is lost
            await self._ask(self.live[:1], self.job.submit_task, "first-model", take)

    async def _ask(self, seats: list[Seat], task: str, task_id: str, take: Take) -> None:
        """Give every seat a task, and ``take`` the answers in the order of the seats. Raises ``JobFailed``, ``AveragingError``."""
        round_number = max(self.round - 1, 0)  # a model counts its rounds from 0
        payload = to_tree(
            FLModel(params=self._model, current_round=round_number, total_rounds=self.job.rounds, meta={"seed": self.job.seed})
        )
        for seat in seats:
            seat.give(Order(task, task_id, payload, self.round))
        answers: dict[int, FLModel] = {}
        waiting = deque(seats)
        while waiting:
            first = waiting[0]
            if first.index in answers:
                take(first, answers.pop(first.index))
                waiting.popleft()
            elif first.lost is not None:
                waiting.popleft()
            else:
                answer = await self._inbox.receive()
                self._receive(answer, answers)

    def _receive(self, answer: Answer, answers: dict[int, FLModel]) -> None:
        found, seat = answer.found, answer.seat
        if isinstance(found, FLModel):
            answers[seat.index] = found
        elif isinstance(found, JobError):
            raise found
        else:
            self._lose(seat, f"{answer.task_id}: {found if seat.name in str(found) else f'{seat.name}: {found}'}")

    def _lose(self, seat: Seat, why: str) -> None:
        """Go on without a trainer, or not. Raises ``JobFailed``."""
        if seat.lost is not None:
            return
        seat.lost = why
        self.errors.append(why)
        seat.dismiss(in_order=False)
        if self.job.on_trainer_lost == "fail":
            raise JobFailed(why)
        left = len(self.live)
        if left < self.job.min_trainers:
            raise JobFailed(f"{left} of {self.job.trainers} trainers are left, and min_trainers is {self.job.min_trainers}")


@define(eq=False)
class _Mean:
    """What a round's results come to: the averaged model, and the averaged score."""

    job: Job
    base: Params | None
    average: Average | None = None
    _weighted: bool | None = None
    _weights: float = 0.0
    _scores: float = 0.0

    def take(self, seat: Seat, found: FLModel) -> None:
        """A trainer's new parameters, and its figures."""
        if found.params is None:
            raise AveragingError(f"{seat.name}: the result has no params")
        diff = found.params_type is ParamsType.DIFF
        if self.average is None:
            self.average = Average(self.base, diff=diff, finite=self.job.finite)
        elif diff != self.average.diff:
            raise AveragingError(f"{seat.name}: the result is {found.params_type}, and those of the trainers before it are not")
        weight = self._weight(seat, found)
        self.average.add(seat.name, found.params, weight)
        self._add_score(seat, found, weight)

    def take_figures(self, seat: Seat, found: FLModel) -> None:
        """A trainer's figures alone."""
        self._add_score(seat, found, self._weight(seat, found))

    @property
    def score(self) -> float:
        """The mean of the scores, NaN if there are none."""
        return self._scores / self._weights if self._weights > 0 else math.nan

    def _add_score(self, seat: Seat, found: FLModel, weight: float) -> None:
        figure = _plain((found.metrics or {}).get(self.job.score))
        if figure is None:
            return
        if not isinstance(figure, int | float) or isinstance(figure, bool):
            raise AveragingError(f"{seat.name}: metric {self.job.score!r} must be a number, got {figure!r}")
        if self.job.finite and not math.isfinite(figure):
            raise AveragingError(f"{seat.name}: metric {self.job.score!r} is {figure}, and a job whose 'finite' is on takes no such result")
        self._weights += weight
        self._scores += weight * figure

    def _weight(self, seat: Seat, found: FLModel) -> float:
        """By how much it counts: what its metrics or its meta say; 1 if none of the round says anything."""
        name = self.job.weight
        weight = _plain((found.metrics or {}).get(name, found.meta.get(name)))
        if self._weighted is None:
            self._weighted = weight is not None
        if self._weighted != (weight is not None):
            raise AveragingError(f"{seat.name}: {name!r} must be among the metrics of all results of a round, or of none")
        if weight is None:
            return 1.0
        check_weight(seat.name, weight)
        return float(weight)


def _figure(value: Any) -> float:
    """What ``evaluate`` has returned."""
    found = _plain(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise TypeError(f"evaluate: must return a number, and returned {type(value).__name__}")
    return float(found)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0) else value
