"""What ``troth run`` shows: a live view where there is a terminal, lines where there is none, and a table at the end."""

from __future__ import annotations

import logging
import math
from array import array
from collections import deque
from collections.abc import Callable, Iterator

import click
import trio
from attrs import define, field
from rich import box
from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from troth.cli.words import counted, seconds
from troth.jobs.report import JobReport
from troth.jobs.running import JobRun
from troth.jobs.seats import Seat

REFRESH_S = 0.125
LINES_AT_ONCE = 100
"""Rounds that get a line each, whatever their pace."""
LINE_PAUSE_S = 1.0
"""After those, between two lines."""
TABLE_ROUNDS = 20
"""Rounds in the table at the end; of more, so many that are evenly apart."""
OUTPUT_LINES = 20
"""Lines of each trainer's output that are kept, to be shown if it is lost."""
NOTHING = "–"


# -- while it runs -----------------------------------------------------------------------------------------------------


def progress(run: JobRun, now_s: float) -> RenderableType:
    """The job and each of its trainers, now."""
    accuracy = figure(run.accuracy[-1]) if run.accuracy else NOTHING
    head = Text.assemble((run.job.name, "bold"), f"   round {run.round:,}/{run.job.rounds:,}   accuracy {accuracy}   ")
    head.append(seconds(now_s - run.started_s))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("trainer")
    table.add_column("state")
    for name in ("round", "lease age", "down", "up"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("metrics", overflow="ellipsis", no_wrap=True)
    for seat in run.seats:
        table.add_row(*_row(seat), style="red" if seat.lost else "dim" if seat.over else None)
    return Group(head, table)


def _row(seat: Seat) -> Iterator[str]:
    status = seat.trainer.status()
    yield seat.name
    yield "lost" if seat.lost else "over" if seat.over else seat.task or status.state
    yield f"{seat.round:,}" if seat.round else NOTHING
    yield NOTHING if status.lease_age_s is None else f"{status.lease_age_s:.1f} s"
    yield decimal(status.bytes_down)
    yield decimal(status.bytes_up)
    yield escape("   ".join(f"{name} {number(value)}" for name, value in seat.metrics.items()))


def figure(accuracy: float) -> str:
    """An accuracy for a reader."""
    return NOTHING if math.isnan(accuracy) else f"{accuracy:.4f}"


def number(value: float) -> str:
    """A metric for a reader."""
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.4g}"


# -- at the end --------------------------------------------------------------------------------------------------------


def conclusion(report: JobReport) -> Iterator[RenderableType]:
    """The tables at the end: the rounds, the trainers, and one line for the whole."""
    if report.accuracy:
        yield rounds_table(report.accuracy)
    if report.by_trainer:
        yield trainers_table(report)
    yield Text(summary(report), style="bold")


def rounds_table(accuracy: array[float]) -> Table:
    """Accuracy by round; of many rounds some."""
    count = len(accuracy)
    shown = range(count) if count <= TABLE_ROUNDS else sorted({round(n * (count - 1) / (TABLE_ROUNDS - 1)) for n in range(TABLE_ROUNDS)})
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("round" if count <= TABLE_ROUNDS else f"round ({len(shown)} of {count:,})", justify="right")
    table.add_column("accuracy", justify="right")
    for place in shown:
        table.add_row(f"{place + 1:,}", figure(accuracy[place]))
    return table


def trainers_table(report: JobReport) -> Table:
    """What each trainer did."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("trainer")
    for name in ("accepted", "settled", "retries", "down", "up"):
        table.add_column(name, justify="right")
    table.add_column("end")
    for one in report.by_trainer:
        counts = (f"{one.accepted:,}", f"{one.settled:,}", f"{one.retries:,}", decimal(one.bytes_down), decimal(one.bytes_up))
        table.add_row(one.name, *counts, one.exit or NOTHING, style="red" if one.lost else None)
    return table


def summary(report: JobReport) -> str:
    """One line for the whole."""
    done = len(report.accuracy)
    rounds = counted(done, "round") if done == report.rounds else f"{done:,} of {counted(report.rounds, 'round')}"
    accuracy = figure(report.accuracy[-1]) if done else NOTHING
    counts = f"{report.accepted:,} accepted   {report.settled:,} settled   {counted(report.retries, 'retry').replace('retrys', 'retries')}"
    return f"{counted(report.trainers, 'trainer')}   {rounds}   accuracy {accuracy}   {counts}   {seconds(report.wall_s)}"


# -- the two together --------------------------------------------------------------------------------------------------


class Output(logging.Handler):
    """What the trainers print, and what the runtime warns of: shown, or kept to be shown if a trainer is lost."""

    TRAINERS = "troth.trainer."

    def __init__(self, show: Callable[[str], None], *, verbose: bool, ending: Callable[[], bool] = lambda: False) -> None:
        """``show`` prints a line; ``verbose`` shows all. While the job is ``ending`` nobody needs to be warned of links that break."""
        super().__init__()
        self.show = show
        self.verbose = verbose
        self.ending = ending
        self.last: dict[str, deque[str]] = {}
        """The newest lines of each trainer."""

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        said = record.getMessage()
        if record.name.startswith(self.TRAINERS):
            self.last.setdefault(record.name.removeprefix(self.TRAINERS), deque(maxlen=OUTPUT_LINES)).append(said)
            if not self.verbose:
                return
        elif not self.verbose and (record.levelno < logging.WARNING or (record.levelno == logging.WARNING and self.ending())):
            return
        self.show(said)


@define
class Watch:
    """Shows one run."""

    run: JobRun
    as_json: bool = False
    verbose: bool = False
    out: Console = field(factory=Console)
    err: Console = field(factory=lambda: Console(stderr=True))
    _live: Live | None = field(default=None, init=False)
    _lines_s: float = field(default=-math.inf, init=False)

    @property
    def stage(self) -> Console:
        """Where the live view goes; with JSON stdout is taken."""
        return self.err if self.as_json else self.out

    async def keep(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Show the live view, where there is a terminal, until cancelled."""
        if not self.stage.is_terminal:
            if not self.as_json:
                job = self.run.job
                self._print(f"{job.name}   {counted(job.trainers, 'trainer')}   {counted(job.rounds, 'round')}   seed {job.seed}")
            task_status.started()
            await trio.sleep_forever()
        with Live(console=self.stage, auto_refresh=False, transient=True) as self._live:
            task_status.started()
            while True:
                self._live.update(progress(self.run, trio.current_time()), refresh=True)
                await trio.sleep(REFRESH_S)

    def round_done(self, number_: int, accuracy: float) -> None:
        """A line a round, where there is no live view; of a job with very many rounds a line a second."""
        if self.as_json or self.stage.is_terminal:
            return
        now_s = trio.current_time()
        if number_ <= LINES_AT_ONCE or number_ == self.run.job.rounds or now_s >= self._lines_s + LINE_PAUSE_S:
            self._lines_s = now_s
            self._print(f"round {number_:,}/{self.run.job.rounds:,}   accuracy {figure(accuracy)}   {seconds(now_s - self.run.started_s)}")

    def say(self, line: str) -> None:
        """A line on stderr, above the live view if there is one."""
        if self._live is not None and self._live.is_started:
            self.stage.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(line, err=True)

    def leave(self) -> None:
        """Give the terminal back; there will be no end."""
        if self._live is not None:
            self._live.stop()

    def conclude(self, report: JobReport, output: Output) -> None:
        """The tables, and what went wrong."""
        if not self.as_json:
            for part in conclusion(report):
                self.out.print(part, soft_wrap=isinstance(part, Text))
        for one in report.by_trainer:
            for line in output.last.get(one.name, ()) if one.lost and not self.verbose else ():
                click.echo(line, err=True)
        for error in report.errors:
            click.echo(f"troth: {' '.join(error.split())}", err=True)

    def _print(self, line: str) -> None:
        self.out.print(line, markup=False, highlight=False, soft_wrap=True)
        self.out.file.flush()
