"""``troth check --mutant NAME`` without a world: the standard worlds are searched for one in which the mutant shows, smallest first.

Promises are asked in all of them before anything else is, so what is shown is what somebody would have suffered; only where no promise
is broken in any world does it count that a world does not reach what it should, or that a step is not the one of the tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from time import perf_counter
from typing import TYPE_CHECKING

import click
from attrs import evolve

from troth.cli.finding import Found, find
from troth.cli.report import CODES, Asked, ProgressLine, overall, summary_line, world_lines
from troth.cli.words import styled
from troth.models import worlds as built_in
from troth.models.check import CheckResult, Verdict, check
from troth.models.errors import WorldError
from troth.models.mutants import Mutant, mutated, of_worlds
from troth.models.mutants.derived import declared
from troth.models.world import World
from troth.models.worlds.sizes import smallest_first
from troth.spec.properties import Role

if TYPE_CHECKING:
    from troth.cli.check import Options

PASSES = ((Role.PROMISE,), (Role.REACH, Role.CONFORMANCE))
"""What is asked in all worlds, before what is asked after it."""


def search(name: str, options: Options) -> int:
    """Search, show the first violation, and stop there. 0: it shows nowhere; 1: here it is; 3: nowhere, but some search stopped early."""
    started = perf_counter()
    answers: list[tuple[Asked, CheckResult]] = []
    for asked, answer in _answers(_holding(name), name, options):
        answers.append((asked, answer))
        if not options.as_json:
            click.echo("\n".join(world_lines(answer, asked, html=options.html is not None, brief=True)))
        if answer.verdict is Verdict.VIOLATED:
            break
    return _told(answers, options, perf_counter() - started)


def _answers(holding: Sequence[tuple[Found, World, Mutant]], name: str, options: Options) -> Iterator[tuple[Asked, CheckResult]]:
    """What each world says, one after the other, until nobody wants to hear more."""
    limits, progress = evolve(options.limits, stop_at_violation=True), ProgressLine()
    for roles in PASSES:
        for found, world, mutant in holding:
            claims = [claim for claim in world.properties if claim.role in roles]
            ids = [claim.id for claim in claims if not options.properties or claim.id in options.properties]
            if not ids:
                continue
            try:
                answer = check(mutated(world, mutant), properties=ids, limits=limits, report=progress.reporter)
            except WorldError as error:
                raise click.ClickException(f"{found.name}: {error}") from error
            finally:
                progress.clear()
            yield Asked(found.name, {}, name), answer


def _holding(name: str) -> Sequence[tuple[Found, World, Mutant]]:
    """The standard worlds that hold the mutant's machine, smallest first. Unknown names are a usage error."""
    known: dict[str, None] = {}
    holding = []
    for world_name in smallest_first(built_in.STANDARD):
        found = find(world_name)
        world = found.build({})
        if not declared(world):
            continue
        mutants = {mutant.name: mutant for mutant in of_worlds([world])}
        known.update(dict.fromkeys(mutants))
        if name in mutants:
            holding.append((found, world, mutants[name]))
    if not holding:
        close = get_close_matches(name, known, n=3, cutoff=0.3) or list(known)[:3]
        raise click.UsageError(f"no standard world has a mutant {name!r}; they have {len(known)}, like {', '.join(close)}")
    return holding


def _told(answers: Sequence[tuple[Asked, CheckResult]], options: Options, wall_s: float) -> int:
    if not answers:
        raise click.UsageError(f"no standard world that holds the mutant claims {', '.join(options.properties)}")
    verdict = overall([answer.verdict for _, answer in answers])
    if options.html is not None:
        from troth.models.render.page import Shown, page  # noqa: PLC0415

        options.html.write_text(page([Shown(answer, asked.replay) for asked, answer in answers]), encoding="utf-8")
    if options.as_json:
        from troth.models.render.data import result_data  # noqa: PLC0415

        data = {"worlds": [result_data(answer) for _, answer in answers], "verdict": verdict.value, "seconds": wall_s}
        click.echo(json.dumps(data, ensure_ascii=False))
    else:
        click.echo(styled(summary_line([answer for _, answer in answers], 0, CODES[verdict]), bold=True))
    return CODES[verdict]
