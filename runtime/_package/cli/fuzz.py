"""``troth fuzz``: generated runs of worlds, of parties alone, and of the live runtime."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from troth.cli import EXIT_INTERRUPTED
from troth.cli.finding import bounds_of
from troth.cli.words import counted, print_whole, seconds, styled

if TYPE_CHECKING:
    from troth.testing.choosing import Asked
    from troth.testing.running import Outcome
    from troth.testing.targets import Failure

SECONDS = 10.0
"""How long, unless it is said."""
SEEDS = 1 << 32
RUN_ONLY = ("seconds", "sessions", "steps", "seed", "jobs", "keep_going", "keep", "no_keep")
"""Options that say something of a run, and nothing of one session that is played again."""


def finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """Not a number is no time, and neither is a time without an end."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number.")
    return value


@click.command()
@click.argument("world", nargs=-1)
@click.option("--seconds", type=click.FloatRange(min=0), callback=finite, help="Stop after this time. [default: 10, without --sessions]")
@click.option("--sessions", type=click.IntRange(min=1), help="Stop after this many sessions.")
@click.option("--steps", type=click.IntRange(min=1), help="At most this many steps a session.")
@click.option("--seed", type=click.IntRange(min=0), help="What everything is drawn from. [default: another each time]")
@click.option("--target", type=click.Choice(["core", "runtime"]), default="core", help="Cores, or the live runtime in memory.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Processes to run at once, which share the sessions.")
@click.option("--bound", "bound", multiple=True, metavar="NAME=VALUE", help="Build the worlds with this bound. Repeatable.")
@click.option("--keep-going", is_flag=True, help="Go on after a failure, and show the first of each property.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep what fails here. [default: .troth/fuzz]")
@click.option("--no-keep", is_flag=True, help="Keep nothing, and try nothing that was kept.")
@click.option("--trace", type=click.Path(dir_okay=False, path_type=Path), help="Write every session's steps to this file.")
@click.option("--missing", is_flag=True, help="Name what nothing fired, all of it.")
@click.option("--replay", metavar="TOKEN", help="Play one session again and show it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def fuzz(
    *,
    world: tuple[str, ...],
    seconds: float | None,
    sessions: int | None,
    steps: int | None,
    seed: int | None,
    target: str,
    jobs: int,
    bound: tuple[str, ...],
    keep_going: bool,
    keep: Path | None,
    no_keep: bool,
    trace: Path | None,
    missing: bool,
    replay: str | None,
    as_json: bool,
) -> int:
    """Run WORLD..., or our own parties and sessions, at random, and compare everything after every step.

    WORLD is the name of a built-in world (see `troth worlds`), a party of ours (trainer, host, receiver, supervisor), package.module:ATTR,
    or path.py:ATTR, where ATTR is a world, a declared party, or a core. Exit code 0: nothing failed; 1: a failure was found; 2: the
    command line, or a file of worlds, is wrong; 3: an error; 130: interrupted.
    """
    from troth.testing.choosing import Asked  # noqa: PLC0415 - only where it is asked for
    from troth.testing.running import Budget  # noqa: PLC0415
    from troth.testing.walker import STEPS_LIMIT  # noqa: PLC0415

    asked = Asked(target=target, worlds=world, bounds=bounds_of(bound), steps=steps or STEPS_LIMIT, traced=trace is not None)
    if keep is not None and no_keep:
        raise click.UsageError("--keep and --no-keep: say one of them")
    if replay is not None:
        _only_a_session()
    if trace is not None:
        _begun(trace)
    if replay is not None:
        return _again(asked, replay, trace=trace, most=missing, as_json=as_json)
    if seed is None:
        seed = secrets.randbelow(SEEDS)
    if seconds is None and sessions is None:
        seconds = SECONDS
    budget = Budget(seconds=seconds, sessions=sessions, keep_going=keep_going)
    return _run(asked, seed, budget, jobs=jobs, keep=None if no_keep else keep, nothing=no_keep, trace=trace, most=missing, as_json=as_json)


def _only_a_session() -> None:
    """Raise ``click.UsageError`` if a run was asked for, too."""
    context = click.get_current_context()
    for name in RUN_ONLY:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--replay plays one session, and takes no --{name.replace('_', '-')}")


def _begun(trace: Path) -> None:
    """Find out whether a trace can be written before an hour is spent on it."""
    try:
        trace.write_text("", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--trace {trace}: {error.strerror}") from error


def _traced(trace: Path, lines: Sequence[str]) -> None:
    trace.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _run(
    asked: Asked, seed: int, budget: Any, *, jobs: int, keep: Path | None, nothing: bool, trace: Path | None, most: bool, as_json: bool
) -> int:
    from troth.testing.keeping import KEPT, Kept  # noqa: PLC0415
    from troth.testing.running import Outcome, run  # noqa: PLC0415

    spent = [f"--seconds {budget.seconds:g}"] if budget.seconds is not None else []
    spent += [f"--sessions {budget.sessions}"] if budget.sessions is not None else []
    spent += [f"--jobs {jobs}"] if jobs > 1 else []
    opened = asked.open()
    before = Outcome(coverage=opened.coverage())
    kept = None if nothing else Kept(keep or KEPT)
    if kept is not None and (hindrance := kept.hindrance()):
        raise click.UsageError(f"--keep {kept.folder}: {hindrance}; name another folder, or say --no-keep")
    click.echo(f"seed {seed}  again: {asked.line(*spent, f'--seed {seed}')}", err=as_json)
    failures: list[Failure] = []
    if kept is not None:
        for tried in kept.tried(asked, opened, before.coverage):
            click.echo(tried.told, err=as_json)
            if tried.failure is not None:
                failures.append(tried.failure)
            if tried.interrupted:
                before.interrupted = True
                break
    known = {failure.property for failure in failures}
    found_again = before.interrupted or (failures and not budget.keep_going)
    outcome = before if found_again else run(asked, seed, budget, jobs=jobs, opened=opened)
    fresh = [failure for failure in outcome.failures.values() if failure.property not in known]
    failures += fresh
    _told(asked, seed, outcome, failures, most=most, as_json=as_json)
    for failure in fresh:  # after it was told, so that a folder that cannot be written to hides nothing
        if kept is not None:
            kept.keep(asked, failure, seed)
    if trace is not None:
        _traced(trace, outcome.traces)
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return 1 if failures else 0


def _told(asked: Asked, seed: int, outcome: Outcome, failures: Sequence[Failure], *, most: bool, as_json: bool) -> None:
    if as_json:
        found = [{"property": one.property, "replay": asked.again(one.token), "told": one.told} for one in failures]
        said = {
            "seed": seed,
            "target": asked.target,
            "steps": outcome.steps,
            "sessions": outcome.sessions,
            "seconds": outcome.seconds,
            "failures": found,
            "coverage": outcome.coverage.fractions,
            "missing": {kind: list(outcome.coverage.missing(kind)) for kind in ("rows", "guards", "ignores", "refusals", "faults")},
            "interrupted": outcome.interrupted,
        }
        click.echo(json.dumps(said, ensure_ascii=False))
        return
    for one in failures:
        print_whole(f"\n{styled('FAILED', fg='red', bold=True)} {one.told}\nseed {seed}\nreplay: {asked.again(one.token)}\n")
    for line in outcome.coverage.report(10**9 if most else 0):
        click.echo(line)
    rate = f", {outcome.steps / outcome.seconds:,.0f} steps a second" if outcome.seconds > 0 else ""
    ended = "; interrupted" if outcome.interrupted else ""
    failed = "no failure" if not failures else counted(len(failures), "failure")
    spent = f"{counted(outcome.steps, 'step')} in {counted(outcome.sessions, 'session')}, {seconds(outcome.seconds)}{rate}"
    click.echo(styled(f"{failed}; {spent}{ended}", bold=True))


def _again(asked: Asked, token: str, *, trace: Path | None, most: bool, as_json: bool) -> int:
    from troth.testing.running import Outcome  # noqa: PLC0415
    from troth.testing.targets import BadToken  # noqa: PLC0415

    target = asked.open()
    outcome = Outcome(coverage=target.coverage())
    started = monotonic()
    try:
        result = target.replay(token, coverage=outcome.coverage)
    except BadToken as error:
        raise click.UsageError(str(error)) from error
    outcome.seconds = monotonic() - started
    outcome.count(result)
    if result.failure is None and not as_json:
        print_whole(result.told or "\n".join(result.trace))
    _told(asked, result.seed, outcome, list(outcome.failures.values()), most=most, as_json=as_json)
    if trace is not None:
        _traced(trace, result.trace)
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return 1 if outcome.failures else 0
