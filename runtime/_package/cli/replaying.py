"""``troth check WORLD --replay TOKEN``: one trace, executed again on the real cores."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from troth.cli.report import CODES, Asked
from troth.cli.words import styled
from troth.models.check import PropertyResult, Verdict
from troth.models.errors import WorldError
from troth.models.places import said
from troth.models.properties import Property
from troth.models.render.text import text
from troth.models.replaying import violated_by, witnessed_by
from troth.models.tokens import replay
from troth.models.trace import Trace
from troth.models.world import World

if TYPE_CHECKING:
    from troth.cli.check import Options

WORDS = {Verdict.VIOLATED: ("VIOLATED", "red"), Verdict.HOLDS: ("SHOWN", "green"), Verdict.ERROR: ("ERROR", "magenta")}


def show(world: World, asked: Asked, options: Options, token: str) -> int:
    """Print the trace, and what it shows of the properties asked for: 1 if one is violated, 3 if one cannot be evaluated, 0 if one that
    was asked for is witnessed, else 3."""
    try:
        trace = replay(world.system(), token)
    except WorldError as error:
        raise click.UsageError(f"world {asked.name}: {error}") from error
    claims = [p for p in world.properties if not options.properties or p.id in options.properties]
    shows = [found for claim in claims if (found := _shown(trace, claim)) is not None]
    verdicts = {found.verdict for found in shows}
    verdict = next((v for v in (Verdict.VIOLATED, Verdict.ERROR) if v in verdicts), Verdict.UNKNOWN)
    if verdict is Verdict.UNKNOWN and shows and options.properties:
        verdict = Verdict.HOLDS
    if options.html is not None:
        from troth.models.render.page import page_of_run  # noqa: PLC0415 - only for a page

        again = f"{asked.line(options.properties)} --replay {shlex.quote(token)}"
        options.html.write_text(page_of_run(world.name, world.bounds, trace, shows, again), encoding="utf-8")
    if options.as_json:
        click.echo(json.dumps(_data(world, trace, shows, verdict), ensure_ascii=False))
        return CODES[verdict]
    click.echo(text(trace), nl=False)
    for found in shows:
        word, colour = WORDS[found.verdict]
        reason = f"   ({found.reason})" if found.reason else ""
        click.echo(f"{styled(f'{word:<8}', fg=colour, bold=True)}  {found.property.id}  {found.property.statement}{reason}")
    if not shows:
        click.echo("this run violates nothing that was asked; of other runs it says nothing")
    return CODES[verdict]


def _shown(trace: Trace, claim: Property) -> PropertyResult | None:
    """What this one run shows of a property, or ``None``."""
    try:
        if violated_by(trace, claim):
            return PropertyResult(claim, Verdict.VIOLATED, trace)
        return PropertyResult(claim, Verdict.HOLDS, trace) if witnessed_by(trace, claim) else None
    except Exception as error:  # the user's own code, and whatever it raises
        return PropertyResult(claim, Verdict.ERROR, trace, said(error, claim.declared))


def _data(world: World, trace: Trace, shows: Sequence[PropertyResult], verdict: Verdict) -> dict[str, object]:
    from troth.models.render.data import trace_data  # noqa: PLC0415 - only for JSON

    properties = []
    for found in shows:
        one = {"id": found.property.id, "statement": found.property.statement, "verdict": found.verdict.value}
        properties.append({**one, "reason": found.reason} if found.reason else one)
    return {
        "world": world.name,
        "bounds": dict(world.bounds),
        "verdict": verdict.value,
        "properties": properties,
        "trace": trace_data(trace),
    }
