"""``troth check --mutants``: every mutant of the worlds' parties, judged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import click
from attrs import evolve, frozen

from troth.cli.report import ProgressLine
from troth.cli.words import counted, seconds, styled
from troth.models.check import check
from troth.models.errors import WorldError
from troth.models.exploration import Limits
from troth.models.mutants import CORE, Fate, Judged, in_stages, of_worlds, prepared
from troth.models.mutants.campaign import PATIENCE, Prepared
from troth.models.mutants.derived import declared
from troth.models.mutants.record import Record, heading
from troth.models.world import World
from troth.models.worlds.sizes import about
from troth.spec.properties import Role

COLOURS = {Fate.KILLED: "green", Fate.EQUIVALENT: "cyan", Fate.SURVIVED: "red", Fate.UNKNOWN: "yellow"}
STEPS = (5_000, 30_000, 150_000, 600_000)
"""Worlds of up to so many states are explored together: a mutant that small ones decide never waits for a large one."""


@frozen(kw_only=True)
class Asked:
    """How mutants are to be judged."""

    limits: Limits
    record: Path | None = None
    patience: int | None = None
    as_json: bool = False


def judge(worlds: Sequence[World], asked: Asked) -> int:
    """Judge and print. 0: none survived; 1: one did; 3: none did, and one is unknown."""
    started, progress = perf_counter(), ProgressLine()
    originals: list[Prepared] = []
    patience = PATIENCE if asked.patience is None else asked.patience
    try:
        mutants = of_worlds(worlds)
        if len({m.name for m in mutants}) != len(mutants):
            raise click.ClickException("two mutants have the same name; rename a patch")
        head = heading(worlds, {"max_states": asked.limits.max_states, "patience": patience})
        record = Record(asked.record, head) if asked.record is not None else None

        def report(done: int, of: int, last: Judged) -> None:
            progress.say(f"judging mutants   {done:,} of {of:,}   {seconds(perf_counter() - started)}   {last.name} {last.fate.value}")

        found = in_stages(
            mutants,
            _stages(worlds, asked.limits, originals, progress),
            asked.limits,
            report if progress.seen else None,
            patience=patience,
            known=record.known if record is not None else None,
            note=record.add if record is not None else None,
        )
    except WorldError as error:
        raise click.ClickException(str(error)) from error
    finally:
        progress.clear()
    return _told(found, originals, asked, perf_counter() - started)


def _stages(
    worlds: Sequence[World], limits: Limits, originals: list[Prepared], progress: ProgressLine
) -> list[Callable[[], Sequence[Prepared]]]:
    """The worlds in groups of like size, each explored when it is asked for."""
    whole = evolve(limits, workers=1, max_states=None)  # one process, so that this one learns every call of every component
    groups: list[list[World]] = [[] for _ in range(len(STEPS) + 1)]
    for world in worlds:
        if declared(world):
            groups[sum(about(world.name) > most for most in STEPS)].append(world)

    def explored(group: Sequence[World]) -> Sequence[Prepared]:
        found = [prepared(world, check(world, limits=whole, report=progress.reporter)) for world in group]
        originals.extend(found)
        return found

    return [partial(explored, group) for group in groups if group]


def _told(found: Sequence[Judged], originals: Sequence[Prepared], asked: Asked, wall_s: float) -> int:
    by_fate = {fate: [one for one in found if one.fate is fate] for fate in Fate}
    dead = by_fate[Fate.KILLED]
    by_role = {role.value: [one for one in dead if one.role is role and one.property != CORE] for role in Role}
    by_role[CORE] = [one for one in dead if one.property == CORE]
    code = 1 if by_fate[Fate.SURVIVED] else 3 if by_fate[Fate.UNKNOWN] else 0
    if asked.as_json:
        times = os.times()
        data: dict[str, object] = {fate.value: [one.name for one in by_fate[fate]] for fate in Fate}
        data["killed_by"] = {role: len(ones) for role, ones in by_role.items()}
        data["kills"] = {one.name: _kill(one) for one in by_fate[Fate.KILLED]}
        data["reasons"] = {one.name: one.reason for one in by_fate[Fate.UNKNOWN]}
        data["worlds"] = [{"world": p.world.name, "bounds": dict(p.world.bounds), "states": p.result.states} for p in originals]
        data["verdict"] = {0: "holds", 1: "violated", 3: "unknown"}[code]
        data["seconds"] = wall_s
        data["cpu_s"] = times.user + times.system + times.children_user + times.children_system
        click.echo(json.dumps(data, ensure_ascii=False))
        return code
    for one in found:
        if one.fate is not Fate.EQUIVALENT:
            click.echo(_line(one, max(len(j.name) for j in found)))
    counts = ", ".join(f"{len(by_fate[fate])} {fate.value}" for fate in Fate)
    said = {
        Role.PROMISE.value: "by a promise",
        CORE: "because the core cannot go on",
        Role.REACH.value: "by what must be reached",
        Role.CONFORMANCE.value: "by conformance only",
    }
    how = ", ".join(f"{len(by_role[role])} {words}" for role, words in said.items() if by_role[role])
    told = f"{counted(len(found), 'mutant')}: {counts}{f' ({how})' if how else ''}"
    click.echo(styled(f"{told}   {seconds(wall_s)}   exit {code}", bold=True))
    return code


def _kill(one: Judged) -> dict[str, object]:
    role = one.role.value if one.role is not None else None
    found: dict[str, object] = {"property": one.property, "world": one.world, "depth": one.depth, "role": role}
    if one.role is not Role.PROMISE:
        found |= {"asked": one.asked, "worlds": one.worlds}
    return {**found, "reason": one.reason} if one.reason else found


def _line(one: Judged, width: int) -> str:
    fate = styled(f"{one.fate.value:<10}", fg=COLOURS[one.fate], bold=one.fate is Fate.SURVIVED)
    if one.fate is Fate.KILLED:
        how = f"by {one.property} of {one.world}" + (f" in {counted(one.depth, 'step')}" if one.depth is not None else f": {one.reason}")
    else:
        how = one.what + (f" ({one.reason})" if one.reason else "")
    return f"  {fate}  {one.name:<{width}}  {how}"
