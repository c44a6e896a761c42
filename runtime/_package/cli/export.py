"""``troth export``: generated artefacts, on stdout or as files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import click

from troth.cli.export_tla import tla
from troth.spec import Party, diagrams
from troth.spec.errors import UnknownMachine

PARTIES_AT = ("troth.statemachines", "PARTIES")
"""Where the parties to draw are: a mapping from a party's name to its declaration."""


@click.group()
def export() -> None:
    """Write a generated artefact on stdout, or with --out as files."""


export.add_command(tla)


@export.command()
@click.argument("machine", required=False)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write a file PARTY.MACHINE.mmd a machine into this folder.")
def mermaid(machine: str | None, out: Path | None) -> None:
    """Draw MACHINE (`ledger`, or `trainer.session`), or every machine, as a mermaid stateDiagram-v2.

    A name that two parties share draws both, each under its full name.
    """
    try:
        drawn = diagrams.find(parties(), machine)
    except UnknownMachine as error:
        raise click.UsageError(str(error)) from error
    if out is None:
        click.echo(diagrams.together(drawn), nl=False)
        return
    out.mkdir(parents=True, exist_ok=True)
    for one in drawn:
        (out / f"{one.name}.mmd").write_text(one.text, encoding="utf-8")


def parties() -> Mapping[str, Party]:
    """The parties of the protocol."""
    module, name = PARTIES_AT
    found: Mapping[str, Party] = getattr(import_module(module), name)
    return found
