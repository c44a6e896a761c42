"""``troth worlds``: the worlds there are, with their bounds, parties and properties."""

from __future__ import annotations

import json
from typing import Any

import click

from troth.cli.finding import Found, all_built_in, find
from troth.cli.words import counted, styled
from troth.models import worlds as built_in
from troth.models.errors import WorldError
from troth.models.parties import PartyComponent
from troth.models.world import World


@click.command()
@click.argument("world", nargs=-1)
@click.option("--mutants", is_flag=True, help="List the mutants of each world's parties, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def worlds(*, world: tuple[str, ...], mutants: bool, as_json: bool) -> None:
    """List the built-in worlds, or show WORLD...: bounds with their defaults, parties and properties.

    A star marks those that `troth check` checks when it is given none.
    """
    found = [find(name) for name in world] if world else sorted(all_built_in(), key=_order)
    told = [_told(one, mutants=mutants) for one in found]
    if as_json:
        click.echo(json.dumps({"worlds": told}, ensure_ascii=False))
        return
    for one in told:
        _print(one)


def _order(found: Found) -> tuple[int, str]:
    standard = built_in.STANDARD
    return (standard.index(found.name) if found.name in standard else len(standard), found.name)


def _told(found: Found, *, mutants: bool) -> dict[str, Any]:
    world = found.build({})
    bounds = found.blueprint.bounds if found.blueprint else {}
    told: dict[str, Any] = {
        "world": found.name,
        "doc": world.doc or (found.blueprint.doc if found.blueprint else ""),
        "standard": found.name in built_in.STANDARD,
        "bounds": {n: {"default": b.default, "doc": b.doc, "least": b.least, "most": b.most} for n, b in bounds.items()},
        "parties": [h.name for h in world.handles if isinstance(h.component, PartyComponent)],
        "properties": [{"id": p.id, "kind": p.kind.value, "role": p.role.value, "statement": p.statement} for p in world.properties],
    }
    if mutants:
        told["mutants"] = _mutants(world)
    return told


def _mutants(world: World) -> list[dict[str, str]]:
    from troth.models.mutants import of_worlds  # noqa: PLC0415 - only where it is asked for

    try:
        return [{"name": m.name, "what": m.what} for m in of_worlds([world])]
    except WorldError:
        return []


def _print(told: dict[str, Any]) -> None:
    star = " *" if told["standard"] else ""
    click.echo(f"{styled(told['world'], bold=True)}{star}   {told['doc']}")
    for name, bound in told["bounds"].items():
        click.echo(f"  --bound {name}={bound['default']}   {bound['doc']} ({bound['least']} to {bound['most']})")
    click.echo(f"  parties     {', '.join(told['parties'])}")
    width = max((len(p["id"]) for p in told["properties"]), default=0)
    for place, claim in enumerate(told["properties"]):
        click.echo(f"  {'properties' if place == 0 else '':<10}  {claim['id']:<{width}}  {claim['kind']:<17}  {claim['statement']}")
    if "mutants" in told:
        click.echo(f"  {counted(len(told['mutants']), 'mutant')}")
        for mutant in told["mutants"]:
            click.echo(f"    {mutant['name']}   {mutant['what']}")
    click.echo("")
