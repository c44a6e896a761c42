"""``troth run``: a job with real trainer processes."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import attrs
import click
import trio

from troth.cli.watching import Output, Watch
from troth.cli.words import print_whole
from troth.jobs.errors import BadField, BadJob
from troth.jobs.job import MAX_ROUNDS, MAX_SEED, MAX_TRAINERS, Job
from troth.jobs.report import JobReport
from troth.jobs.running import JobRun
from troth.jobs.seats import external
from troth.runtime.errors import alone

SUCCESS, FAILED, INTERRUPTED = 0, 1, 130

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("job", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--trainers", type=click.IntRange(1, MAX_TRAINERS), help="How many trainer processes.  [default: 4, or what JOB says]")
@click.option("--rounds", type=click.IntRange(1, MAX_ROUNDS), help="How many rounds.  [default: 5, or what JOB says]")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), help="The same seed gives the same accuracies.  [default: 0, or what JOB says]")
@click.option("--mode", type=click.Choice(["external"]), default="external", show_default=True, help="How trainers are run.")
@click.option(
    "--trace", type=PATH, metavar="DIR", help="Record every step of every party there, for `troth trace`. DIR must be new or empty."
)
@click.option("--logs", type=PATH, metavar="DIR", help="Write what each trainer prints to a file there.")
@click.option("--save", type=PATH, metavar="FILE", help="Write the last model there, as a .npz file.")
@click.option("-v", "--verbose", is_flag=True, help="Show what the trainers print, on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def run(
    *,
    job: Path | None,
    trainers: int | None,
    rounds: int | None,
    seed: int | None,
    mode: str,  # noqa: ARG001 - there is one
    trace: Path | None,
    logs: Path | None,
    save: Path | None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Run JOB, a .toml file, or the built-in job: federated averaging on handwritten digits.

    Exits with 0 if all rounds were finished, with 1 if the job failed, and with 130 if it was interrupted. An interrupt ends the trainers
    in order, a second one at once.
    """
    numbers = {name: value for name, value in (("trainers", trainers), ("rounds", rounds), ("seed", seed)) if value is not None}
    paths: dict[str, Any] = {name: path.absolute() for name, path in (("logs", logs), ("save", save)) if path is not None}
    try:
        found = attrs.evolve(_job(job, numbers), **paths)
        report = _run(found, None if trace is None else trace.absolute(), as_json=as_json, verbose=verbose)
    except BadField as error:
        given = {**numbers, **paths, "trace": trace}
        raise click.UsageError(f"--{error.name}: {error.why}" if given.get(error.name) is not None else str(error)) from error
    except BadJob as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_whole(json.dumps(report.data(), ensure_ascii=False, allow_nan=False))
    if report.interrupted:
        return INTERRUPTED
    return SUCCESS if report.ok else FAILED


def _job(path: Path | None, numbers: dict[str, int]) -> Job:
    if path is None:
        from troth.jobs.builtin import digits_job  # noqa: PLC0415 - only for the built-in job

        return digits_job(**numbers)
    from troth.jobs.jobfile import read  # noqa: PLC0415 - only for a file

    return read(path, **numbers)


def _run(job: Job, trace: Path | None, *, as_json: bool, verbose: bool) -> JobReport:
    run = JobRun(job, trace=trace, crew=external)
    run.prepare()
    watch = Watch(run, as_json=as_json, verbose=verbose)
    run.on_round = watch.round_done
    output = Output(watch.say, verbose=verbose, ending=lambda: run.ending)
    log = logging.getLogger("troth")
    level = log.level
    log.addHandler(output)
    log.setLevel(logging.INFO)
    try:
        report = trio.run(_watched, run, watch)
    except BaseExceptionGroup as group:
        raise alone(group) from None
    finally:
        log.removeHandler(output)
        log.setLevel(level)
    watch.conclude(report, output)
    return report


async def _watched(run: JobRun, watch: Watch) -> JobReport:
    async with trio.open_nursery() as nursery:
        await nursery.start(_listen, run, watch)
        await nursery.start(watch.keep)
        try:
            return await run.run()
        finally:
            nursery.cancel_scope.cancel()


async def _listen(run: JobRun, watch: Watch, *, task_status: trio.TaskStatus[None]) -> None:
    """The first interrupt ends the job in order. The second ends this process; the guardian sees that and ends what it has started."""
    if threading.current_thread() is not threading.main_thread():
        task_status.started()  # signals are the main thread's
        return
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            if run.interrupted:
                watch.leave()
                os._exit(INTERRUPTED)
            watch.say("troth: interrupted; the trainers are being ended, interrupt again to leave at once")
            run.interrupt()
