"""``troth check WORLD --replay TOKEN``: one trace, executed again on the real cores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from troth.cli.report import CODES, styled
from troth.models.check import Verdict
from troth.models.errors import WorldError
from troth.models.render.text import text
from troth.models.replaying import violated_by, witnessed_by
from troth.models.tokens import replay
from troth.models.world import World

if TYPE_CHECKING:
    from troth.cli.check import Options


def show(world: World, name: str, options: Options, token: str) -> int:
    """Print the trace, and what it shows of the properties asked for: 1 if one is violated, 0 if one is witnessed, else 3."""
    try:
        trace = replay(world.system(), token)
    except WorldError as error:
        raise click.UsageError(f"world {name}: {error}") from error
    claims = [p for p in world.properties if not options.properties or p.id in options.properties]
    violated = [p for p in claims if violated_by(trace, p)]
    witnessed = [p for p in claims if witnessed_by(trace, p)]
    verdict = Verdict.VIOLATED if violated else Verdict.HOLDS if witnessed and options.properties else Verdict.UNKNOWN
    if options.as_json:
        from troth.models.render.data import trace_data  # noqa: PLC0415 - only for JSON

        shown = [{"id": p.id, "statement": p.statement, "verdict": "violated"} for p in violated]
        shown += [{"id": p.id, "statement": p.statement, "verdict": "holds"} for p in witnessed]
        data = {
            "world": world.name,
            "bounds": dict(world.bounds),
            "verdict": verdict.value,
            "properties": shown,
            "trace": trace_data(trace),
        }
        click.echo(json.dumps(data, ensure_ascii=False))
        return CODES[verdict]
    click.echo(text(trace), nl=False)
    for claim in violated:
        click.echo(f"{styled('VIOLATED', fg='red', bold=True)}  {claim.id}  {claim.statement}")
    for claim in witnessed:
        click.echo(f"{styled('SHOWN', fg='green', bold=True)}     {claim.id}  {claim.statement}")
    if not violated and not witnessed:
        click.echo("this run violates nothing that was asked; of other runs it says nothing")
    return CODES[verdict]
