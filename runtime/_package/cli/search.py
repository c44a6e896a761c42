"""``troth check --mutant NAME`` without a world: the standard worlds are searched for one in which the mutant shows, smallest first.

A named patch says in which world it shows best, and by which property: that world comes first, and only that property is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from troth.models.mutants.patches import named
from troth.models.world import World
from troth.models.worlds.sizes import smallest_first

if TYPE_CHECKING:
    from troth.cli.check import Options


def search(name: str, options: Options) -> int:
    """Search, show the first violation, and stop there. 0: it shows nowhere; 1: here it is; 3: nowhere, but some search stopped early."""
    started = perf_counter()
    progress = ProgressLine()
    patch = named(name)
    wanted = options.properties or ((patch.property,) if patch and patch.property else ())
    answers: list[tuple[Asked, CheckResult]] = []
    for found, world, mutant in _holding(name, patch.world if patch else ""):
        claimed = [p.id for p in world.properties if p.id in wanted]
        if wanted and not claimed:
            continue
        limits = evolve(options.limits, stop_at_violation=True)
        try:
            answer = check(mutated(world, mutant), properties=claimed or None, limits=limits, report=progress.reporter)
        except WorldError as error:
            raise click.ClickException(f"{found.name}: {error}") from error
        finally:
            progress.clear()
        asked = Asked(found.name, {}, name)
        answers.append((asked, answer))
        if not options.as_json:
            click.echo("\n".join(world_lines(answer, asked, html=options.html is not None, brief=True)))
        if answer.verdict is Verdict.VIOLATED:
            break
    return _told(answers, wanted, options, perf_counter() - started)


def _holding(name: str, first: str) -> Sequence[tuple[Found, World, Mutant]]:
    """The standard worlds that hold the mutant's machine, the pinned one before the others. Unknown names are a usage error."""
    known: dict[str, None] = {}
    holding = []
    for world_name in sorted(smallest_first(built_in.STANDARD), key=lambda one: one != first):
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


def _told(answers: Sequence[tuple[Asked, CheckResult]], wanted: Sequence[str], options: Options, wall_s: float) -> int:
    if not answers:
        raise click.UsageError(f"no standard world that holds the mutant claims {', '.join(wanted)}")
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
