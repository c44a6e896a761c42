"""``troth check``: model-check worlds, or mutants of their parties, or show one trace again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from troth.cli.finding import Found, bounds_of, find, place_of
from troth.cli.report import CODES, Asked, ProgressLine, overall, property_lines, summary_line, world_lines
from troth.cli.words import styled
from troth.models import worlds as built_in
from troth.models.check import CheckResult, Verdict
from troth.models.check import check as check_world
from troth.models.errors import ComponentFailed, Exhausted, NotCanonical, NotDeterministic, PropertyFailed, TooWide, WorldError
from troth.models.exploration import Limits
from troth.models.world import World

if TYPE_CHECKING:
    from troth.models.mutants import Mutant

FAILED = (ComponentFailed, NotDeterministic, NotCanonical, PropertyFailed, TooWide)
"""Errors of a search: the world was built, and then something in it could not be done."""


@frozen(kw_only=True)
class Options:
    """The command line, parsed."""

    names: tuple[str, ...]
    bounds: dict[str, int]
    properties: tuple[str, ...]
    mutant: str | None
    limits: Limits
    html: Path | None
    as_json: bool

    @property
    def alone(self) -> bool:
        """Whether one world was asked for by name; several, or none, are answered with a list."""
        return len(self.names) == 1


@frozen
class Failed:
    """A world whose search could not go on."""

    world: str
    bounds: dict[str, int]
    verdict: Verdict
    reason: str

    @property
    def data(self) -> dict[str, Any]:
        """As JSON: the keys of a result, with nothing counted."""
        head = {"world": self.world, "bounds": self.bounds, "verdict": self.verdict.value, "reason": self.reason}
        return {**head, **NOTHING}


@click.command()
@click.argument("world", nargs=-1)
@click.option("--bound", "bound", multiple=True, metavar="NAME=VALUE", help="Build the world with this bound. Repeatable.")
@click.option("--property", "properties", multiple=True, metavar="ID", help="Check this property only. Repeatable.")
@click.option("--mutant", metavar="NAME", help="Check with this mutant in it; without WORLD, find one that shows it.")
@click.option("--mutants", is_flag=True, help="Judge every mutant of the worlds' parties.")
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), help="With --mutants: note each fate there, and go on from there."
)
@click.option(
    "--patience", type=click.IntRange(min=0), help="With --mutants: states to look for a promise in, before conformance is asked."
)
@click.option("--max-states", type=click.IntRange(min=1), help="Stop after this many states: the answer is then unknown.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes to search with. [default: one a processor]")
@click.option("--replay", metavar="TOKEN", help="Execute a trace again, step by step, and show it.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with every trace drawn.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def check(
    *,
    world: tuple[str, ...],
    bound: tuple[str, ...],
    properties: tuple[str, ...],
    mutant: str | None,
    mutants: bool,
    record: Path | None,
    patience: int | None,
    max_states: int | None,
    workers: int | None,
    replay: str | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Model-check WORLD..., or every standard world.

    WORLD is the name of a built-in one (see `troth worlds`), package.module:ATTR, or path.py:ATTR. Exit code 0: everything holds; 1:
    something is violated; 2: the command line, or a file of worlds, is wrong; 3: unknown, or an error; 130: interrupted.
    """
    options = Options(
        names=world,
        bounds=bounds_of(bound),
        properties=properties,
        mutant=mutant,
        limits=Limits(max_states=max_states, workers=workers),
        html=html,
        as_json=as_json,
    )
    _sensible(options, mutants=mutants, replay=replay)
    if not mutants and (record is not None or patience is not None):
        raise click.UsageError("--record and --patience go with --mutants")
    if mutant is not None and not world:
        from troth.cli.search import search  # noqa: PLC0415 - only where it is asked for

        return search(mutant, options)
    found = [find(name) for name in options.names or built_in.STANDARD]
    worlds = _built(found, options)
    if mutants:
        from troth.cli.mutation import Asked as Judging  # noqa: PLC0415 - only where it is asked for
        from troth.cli.mutation import judge  # noqa: PLC0415

        return judge(worlds, Judging(limits=options.limits, record=record, patience=patience, as_json=as_json))
    if replay is not None:
        from troth.cli.replaying import show  # noqa: PLC0415

        return show(worlds[0], _asked(found[0], options), options, replay)
    return _checked(found, worlds, options)


def _sensible(options: Options, *, mutants: bool, replay: str | None) -> None:
    """Say which options do not go together."""
    if mutants and (options.mutant or replay is not None or options.properties or options.html):
        raise click.UsageError("--mutants goes with none of --mutant, --property, --replay and --html")
    if options.mutant and not options.names and options.bounds:
        raise click.UsageError("--bound needs a WORLD: a search for a mutant takes the standard worlds as they are")
    if replay is not None and not options.alone:
        raise click.UsageError("--replay needs the WORLD that the token is of, and only that one")
    if options.html is not None and not options.html.resolve().parent.is_dir():
        raise click.UsageError(f"--html {options.html}: there is no folder {options.html.parent}")


def _built(found: Sequence[Found], options: Options) -> list[World]:
    """The worlds at their bounds, with the mutant in them. A bound, property or mutant that none of them knows is an error."""
    alone = len(found) == 1
    if not alone:
        for name in options.bounds:
            if not any(f.blueprint and name in f.blueprint.bounds for f in found):
                known = sorted({bound for f in found if f.blueprint for bound in f.blueprint.bounds})
                raise click.UsageError(f"no world here has a bound {name!r}; they have {', '.join(known) or 'none'}")
    worlds = [f.build(options.bounds, strict=alone) for f in found]
    for id_ in options.properties:
        known = [p.id for w in worlds for p in w.properties]
        if id_ not in known:
            where = f"world {worlds[0].name} has no" if alone else "no world here has a"
            raise click.UsageError(f"{where} property {id_!r}; {'it has' if alone else 'they have'} {', '.join(known) or 'none'}")
    return [_with(world, options.mutant) for world in worlds] if options.mutant else worlds


def _with(world: World, name: str) -> World:
    from troth.models.mutants import mutated  # noqa: PLC0415

    return mutated(world, mutant_named(world, name))


def mutant_named(world: World, name: str) -> Mutant:
    """The mutant of that name. Raises ``click.UsageError`` with the nearest names."""
    from difflib import get_close_matches  # noqa: PLC0415

    from troth.models.mutants import of_worlds  # noqa: PLC0415

    try:
        known = {mutant.name: mutant for mutant in of_worlds([world])}
    except WorldError as error:
        raise click.UsageError(str(error)) from error
    if name not in known:
        close = get_close_matches(name, known, n=3, cutoff=0.3) or list(known)[:3]
        raise click.UsageError(f"world {world.name} has no mutant {name!r}; it has {len(known)}, like {', '.join(close)}")
    return known[name]


def _checked(found: Sequence[Found], worlds: Sequence[World], options: Options) -> int:
    started = perf_counter()
    asked: list[tuple[Asked, CheckResult | Failed]] = []
    for one, world in zip(found, worlds, strict=True):
        wanted = [p.id for p in world.properties if p.id in options.properties] if options.properties else None
        if wanted == []:
            continue
        question, answer = _asked(one, options), _answer(one, world, wanted, options)
        asked.append((question, answer))
        if isinstance(answer, Failed):
            click.echo(f"troth: {' '.join(answer.reason.split())}", err=True)
        elif not options.as_json:
            click.echo("\n".join(world_lines(answer, question, html=options.html is not None, brief=not options.alone)))
    answers = [answer for _, answer in asked]
    verdict = overall([answer.verdict for answer in answers])
    results = [(question, answer) for question, answer in asked if isinstance(answer, CheckResult)]
    if options.html is not None:
        _write_page(options.html, results)
    if options.as_json:
        _print_json(answers, verdict, perf_counter() - started, alone=options.alone)
    else:
        if not options.alone and results:
            click.echo("\n".join(["", *property_lines([r for _, r in results]), ""]))
        failed = len(answers) - len(results)
        click.echo(styled(summary_line([r for _, r in results], failed, CODES[verdict]), bold=True))
    return CODES[verdict]


def _answer(found: Found, world: World, wanted: Sequence[str] | None, options: Options) -> CheckResult | Failed:
    progress = ProgressLine()
    try:
        return check_world(world, properties=wanted, limits=options.limits, report=progress.reporter)
    except WorldError as error:
        raise click.UsageError(f"{place_of(error, found.where, found.name, found.line)}{error}") from error
    except (*FAILED, Exhausted) as error:
        verdict = Verdict.UNKNOWN if isinstance(error, Exhausted) else Verdict.ERROR
        reason = f"{place_of(error, found.where, found.name, found.line)}{error}"
        return Failed(world.name, dict(world.bounds), verdict, reason)
    finally:
        progress.clear()


def _asked(found: Found, options: Options) -> Asked:
    known = found.blueprint.bounds if found.blueprint else {}
    return Asked(found.name, {n: v for n, v in options.bounds.items() if n in known}, options.mutant)


def _write_page(file: Path, results: Sequence[tuple[Asked, CheckResult]]) -> None:
    from troth.models.render.page import Shown, page  # noqa: PLC0415

    file.write_text(page([Shown(result, asked.replay) for asked, result in results]), encoding="utf-8")


def _print_json(answers: Sequence[CheckResult | Failed], verdict: Verdict, wall_s: float, *, alone: bool) -> None:
    from troth.models.render.data import result_data  # noqa: PLC0415

    data = [answer.data if isinstance(answer, Failed) else result_data(answer) for answer in answers]
    whole = data[0] if alone else {"worlds": data, "verdict": verdict.value, "seconds": wall_s}
    click.echo(json.dumps(whole, ensure_ascii=False))


NOTHING: dict[str, Any] = {
    "states": 0,
    "edges": 0,
    "depth": 0,
    "seconds": 0.0,
    "tabulation_s": 0.0,
    "components": {},
    "truncated": 0,
    "properties": [],
    "vacuous": [],
}
"""What is known of a world whose search failed."""
