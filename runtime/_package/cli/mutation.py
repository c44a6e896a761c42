"""``troth check --mutants``: every mutant of the worlds' parties, judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from time import perf_counter

import click
from attrs import evolve

from troth.cli.report import ProgressLine
from troth.cli.words import counted, seconds, styled
from troth.models.check import check
from troth.models.errors import WorldError
from troth.models.exploration import Limits
from troth.models.mutants import Fate, Judged, campaign, of_worlds, prepared
from troth.models.mutants.derived import declared
from troth.models.world import World

COLOURS = {Fate.KILLED: "green", Fate.EQUIVALENT: "cyan", Fate.SURVIVED: "red", Fate.UNKNOWN: "yellow"}


def judge(worlds: Sequence[World], limits: Limits, *, as_json: bool) -> int:
    """Judge and print. 0: none survived; 1: one did; 3: none did, and one is unknown."""
    started = perf_counter()
    progress = ProgressLine()
    whole = evolve(limits, workers=1, max_states=None)  # one process, so that this one learns every call of every component
    try:
        mutants = of_worlds(worlds)
        originals = [prepared(w, check(w, limits=whole, report=progress.reporter)) for w in worlds if declared(w)]
    except WorldError as error:
        raise click.ClickException(str(error)) from error
    finally:
        progress.clear()
    if len({m.name for m in mutants}) != len(mutants):
        raise click.ClickException("two mutants have the same name; rename a patch")

    def report(done: int, of: int, last: Judged) -> None:
        progress.say(f"judging mutants   {done:,} of {of:,}   {seconds(perf_counter() - started)}   {last.name} {last.fate.value}")

    try:
        found = campaign(mutants, originals, limits, report if progress.seen else None)
    finally:
        progress.clear()
    by_fate = {fate: [one for one in found if one.fate is fate] for fate in Fate}
    code = 1 if by_fate[Fate.SURVIVED] else 3 if by_fate[Fate.UNKNOWN] else 0
    if as_json:
        data: dict[str, object] = {fate.value: [one.name for one in by_fate[fate]] for fate in Fate}
        data["kills"] = {one.name: _kill(one) for one in by_fate[Fate.KILLED]}
        data["reasons"] = {one.name: one.reason for one in by_fate[Fate.UNKNOWN]}
        data["worlds"] = [{"world": p.world.name, "bounds": dict(p.world.bounds), "states": p.result.states} for p in originals]
        data["verdict"] = {0: "holds", 1: "violated", 3: "unknown"}[code]
        data["seconds"] = perf_counter() - started
        click.echo(json.dumps(data, ensure_ascii=False))
        return code
    for one in found:
        if one.fate is not Fate.EQUIVALENT:
            click.echo(_line(one, max(len(j.name) for j in found)))
    counts = ", ".join(f"{len(by_fate[fate])} {fate.value}" for fate in Fate)
    click.echo(styled(f"{counted(len(found), 'mutant')}: {counts}   {seconds(perf_counter() - started)}   exit {code}", bold=True))
    return code


def _kill(one: Judged) -> dict[str, object]:
    found: dict[str, object] = {"property": one.property, "world": one.world, "depth": one.depth}
    return {**found, "reason": one.reason} if one.reason else found


def _line(one: Judged, width: int) -> str:
    fate = styled(f"{one.fate.value:<10}", fg=COLOURS[one.fate], bold=one.fate is Fate.SURVIVED)
    if one.fate is Fate.KILLED:
        how = f"by {one.property} of {one.world}" + (f" in {counted(one.depth, 'step')}" if one.depth is not None else f": {one.reason}")
    else:
        how = one.what + (f" ({one.reason})" if one.reason else "")
    return f"  {fate}  {one.name:<{width}}  {how}"
