"""``troth export tla``: a world as a TLA+ module, for TLC or for reading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from troth.cli.finding import Found
    from troth.models.tla import Exported

RULE = "-" * 32


@click.command()
@click.argument("world", required=False)
@click.option("--bound", "bound", multiple=True, metavar="NAME=VALUE", help="Build the world with this bound. Repeatable.")
@click.option("--observations", is_flag=True, help="Write every party's named observations, whether a property needs them or not.")
@click.option("--max-states", type=click.IntRange(min=1), help="Give up beyond this many states.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write MODULE.tla and MODULE.cfg into this folder.")
def tla(*, world: str | None, bound: tuple[str, ...], observations: bool, max_states: int | None, out: Path | None) -> None:
    """Write WORLD, or every standard world, as a TLA+ module with its configuration.

    WORLD is the name of a built-in one (see `troth worlds`), package.module:ATTR, or path.py:ATTR. It is searched completely first.
    On stdout the configuration follows the module, behind its end; TLC reads files, so give it the ones that --out writes.
    """
    from troth.cli.finding import bounds_of, find  # noqa: PLC0415 - `troth export --help` must not load the checker
    from troth.models import worlds as built_in  # noqa: PLC0415

    chosen = bounds_of(bound)
    for name in (world,) if world else built_in.STANDARD:
        export = _exported(find(name), chosen, strict=world is not None, observations=observations, max_states=max_states)
        if out is not None:
            export.write(out)
        else:
            click.echo(f"{export.text}\n{RULE} {export.module}.cfg {RULE}\n{export.config}", nl=False)


def _exported(found: Found, bounds: Mapping[str, int], *, strict: bool, observations: bool, max_states: int | None) -> Exported:
    from troth.cli.finding import place_of  # noqa: PLC0415
    from troth.cli.report import ProgressLine  # noqa: PLC0415
    from troth.models.errors import WorldError  # noqa: PLC0415
    from troth.models.exploration import Limits  # noqa: PLC0415
    from troth.models.tla import exported  # noqa: PLC0415

    world = found.build(bounds, strict=strict)
    progress = ProgressLine()
    try:
        return exported(world, observed=observations, limits=Limits(max_states=max_states), report=progress.reporter)
    except WorldError as error:
        raise click.UsageError(f"{place_of(error, found.where, found.name, found.line)}{error}") from error
    finally:
        progress.clear()
