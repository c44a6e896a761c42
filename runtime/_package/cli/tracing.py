"""``troth trace``: recorded runs, checked and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from troth.cli.words import counted, print_whole, styled
from troth.testing.traces import Checked, Near, Network, NoTrace, Rejected, check_files, files_of
from troth.testing.traces.drawing import Drawing, Wanted

ACCEPTED, REJECTED = 0, 1

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
NETWORK = click.option(
    "--network",
    type=click.Choice([each.value for each in Network]),
    default=Network.SOUND.value,
    show_default=True,
    help="Whether links between processes may only break, or also lose, copy and reorder, as simulated ones can be told to.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def trace() -> None:
    """Check recorded runs, and draw them. `troth run --trace DIR` records one, a FILE a party; DIR stands for all of them."""


@trace.command()
@FILES
@NETWORK
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def check(*, files: tuple[Path, ...], network: str, as_json: bool) -> int:
    """Check that the FILES are of a run that can have happened: give all parties of one run together.

    Every party is replayed on its core; every message that came must have been sent before, every timer that fired must have been due, and
    every property that can be seen in a trace must hold. Exits with 0 if the run is accepted, with 1 if it is rejected.
    """
    try:
        files = files_of(files)
        found: Checked | Rejected = check_files(files, network=Network(network))
    except Rejected as rejected:
        found = rejected
    except NoTrace as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_whole(json.dumps(_data(found), ensure_ascii=False, allow_nan=False))
    elif isinstance(found, Rejected):
        print_whole(_rejected(found))
    else:
        print_whole(_accepted(found, len(files)))
    return REJECTED if isinstance(found, Rejected) else ACCEPTED


def _data(found: Checked | Rejected) -> dict[str, Any]:
    if isinstance(found, Checked):
        return {
            "verdict": "accepted",
            "steps": found.steps,
            "partial": bool(found.partial),
            "missing": list(found.partial),
            "first_bad": None,
        }
    nearest = [{"event": _event(near), "rows": list(near.rows), "why": near.why} for near in found.nearest]
    bad = {"file": found.file, "line": found.line, "reason": found.reason, "nearest": nearest}
    return {"verdict": "rejected", "steps": found.steps, "partial": False, "missing": [], "first_bad": bad}


def _accepted(found: Checked, files: int) -> str:
    whole = "partial" if found.partial else "the whole run"
    lines = [f"{styled('accepted', fg='green', bold=True)}  {counted(found.steps, 'step')} in {counted(files, 'file')}, {whole}"]
    lines += [f"  {reason}" for reason in found.partial]
    return "\n".join(lines)


def _rejected(found: Rejected) -> str:
    lines = [f"{styled('rejected', fg='red', bold=True)}  {found.file}, line {found.line}", f"  {found.reason}"]
    if found.nearest:
        lines.append("  nearest legal rows:")
        lines += [f"    {' '.join(near.rows)}  for {_event(near)}  ({near.why})" for near in found.nearest]
    return "\n".join(lines)


def _event(near: Near) -> str:
    from troth.models.render.words import value  # noqa: PLC0415 - loads the checker

    return value(near.event)


@trace.command()
@FILES
@NETWORK
@click.option("--from", "first", type=click.IntRange(1), metavar="N", help="Begin with this step of the run.")
@click.option("--to", "last", type=click.IntRange(1), metavar="N", help="End with this step.")
@click.option("--task", type=click.IntRange(1), metavar="SEQ", help="Show only steps about this task, by its sequence.")
@click.option("--limit", type=click.IntRange(1), default=200, show_default=True, metavar="N", help="Show at most so many steps.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page with the run drawn; it loads nothing."
)
def show(
    *, files: tuple[Path, ...], network: str, first: int | None, last: int | None, task: int | None, limit: int, html: Path | None
) -> int:
    """Draw the run in the FILES: who said what to whom, and which rows were taken. What is rejected is drawn up to there."""
    drawing = Drawing(Wanted(first or 1, last, task, limit))
    rejected: Rejected | None = None
    try:
        check_files(files, network=Network(network), properties=False, seen=drawing.note)
    except Rejected as error:
        rejected = error
    except NoTrace as error:
        raise click.UsageError(str(error)) from error
    if html is not None:
        html.write_text(drawing.page(rejected), encoding="utf-8")
        click.echo(f"wrote {html}")
    else:
        print_whole(drawing.text())
    if rejected is None:
        return ACCEPTED
    print_whole(_rejected(rejected))
    return REJECTED
