"""What ``troth check`` prints for people: one line a world, one a property, and each counterexample under its own."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent

from attrs import frozen

from troth.cli.words import counted, seconds, styled
from troth.models.check import CheckResult, PropertyResult, Verdict
from troth.models.exploration import Ending, Progress, Reporter

COLOURS = {Verdict.HOLDS: "green", Verdict.VIOLATED: "red", Verdict.UNKNOWN: "yellow", Verdict.ERROR: "magenta"}
ORDER = (Verdict.VIOLATED, Verdict.ERROR, Verdict.UNKNOWN, Verdict.HOLDS)
CODES = {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNKNOWN: 3, Verdict.ERROR: 3}


@frozen
class Asked:
    """How a world was asked for, so that the line that replays a trace can be printed."""

    name: str
    bounds: Mapping[str, int]
    mutant: str | None = None

    def replay(self, claim: PropertyResult) -> str:
        """The line that shows this property's trace again."""
        line = self.line([claim.property.id])
        if claim.trace is None:
            return line
        from troth.models.tokens import token  # noqa: PLC0415 - only where there is a trace

        return f"{line} --replay {shlex.quote(token(claim.trace))}"

    def line(self, properties: Sequence[str]) -> str:
        """The line that checks these properties of this world."""
        words = ["troth", "check", self.name]
        for name, value in self.bounds.items():
            words += ["--bound", f"{name}={value}"]
        if self.mutant:
            words += ["--mutant", self.mutant]
        for id_ in properties:
            words += ["--property", id_]
        return shlex.join(words)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict of many: the worst."""
    return next((verdict for verdict in ORDER if verdict in verdicts), Verdict.HOLDS)


def world_lines(result: CheckResult, asked: Asked, *, html: bool, brief: bool = False) -> Iterator[str]:
    """Everything about one world; where it is ``brief``, of its properties only those that there is something to say of."""
    bounds = " ".join(f"{name}={value}" for name, value in result.bounds.items())
    counts = f"{counted(result.states, 'state')}   {counted(result.edges, 'edge')}   depth {result.depth}   {seconds(result.seconds)}"
    mutant = f"   with {asked.mutant}" if asked.mutant else ""
    yield f"{styled(result.world, bold=True)}{mutant}{'   ' if bounds else ''}{bounds}   {counts}"
    if result.reason:
        yield styled(f"  {result.reason}", fg="yellow")
    found = result.ending is Ending.VIOLATED  # then that the others are not decided goes without saying
    dull = (Verdict.HOLDS, Verdict.UNKNOWN) if found else (Verdict.HOLDS,)
    told = [p for p in result.properties if not brief or p.vacuous or p.verdict not in dull]
    width = max((len(p.property.id) for p in told), default=0)
    for claim in told:
        yield _property_line(claim, width)
        if claim.trace is not None and claim.verdict is not Verdict.HOLDS:
            from troth.models.render.text import text  # noqa: PLC0415 - only where there is something to draw

            yield ""
            yield indent(text(claim.trace).rstrip("\n"), "  ")
            yield styled(f"  replay: {asked.replay(claim)}", dim=True) + ("" if html else styled("      as a page: --html FILE", dim=True))
            yield ""


def _property_line(claim: PropertyResult, width: int) -> str:
    verdict = styled(f"{claim.verdict.value.upper():<8}", fg=COLOURS[claim.verdict], bold=claim.verdict is not Verdict.HOLDS)
    line = f"  {claim.property.id:<{width}}  {verdict}   {claim.property.statement}"
    if claim.trace is not None and claim.verdict is not Verdict.HOLDS:
        line += f"   {counted(len(claim.trace.steps), 'step')}"
        if claim.trace.loop is not None:
            last = len(claim.trace.steps) - claim.trace.loop
            line += f", the last {last} for ever" if last else ", then nothing for ever"
    if claim.vacuous:
        line += styled("   vacuous: what it speaks of never happens", fg="yellow")
    if claim.reason:
        line += styled(f"   ({claim.reason})", fg="yellow")
    return line


def property_lines(results: Sequence[CheckResult]) -> Iterator[str]:
    """Every property of several worlds, once: its verdict is the worst that it has in one of them."""
    found: dict[tuple[str, str], list[tuple[Verdict, str]]] = {}
    for result in results:
        for claim in result.properties:
            found.setdefault((claim.property.id, claim.property.statement), []).append((claim.verdict, result.world))
    width = max((len(id_) for id_, _ in found), default=0)
    for (id_, statement), where in sorted(found.items(), key=lambda item: _natural(item[0][0])):
        verdict = overall([one for one, _ in where])
        said = styled(f"{verdict.value.upper():<8}", fg=COLOURS[verdict], bold=verdict is not Verdict.HOLDS)
        yield f"{id_:<{width}}  {said}   {statement}   {styled(', '.join(world for _, world in where), dim=True)}"


def _natural(id_: str) -> tuple[str, int, str]:
    """P99 before P100; other ids as they are spelled."""
    numbered = re.match(r"([A-Z]+)(\d+)", id_)
    return (numbered[1], int(numbered[2]), id_) if numbered else (id_, 0, "")


def summary_line(results: Sequence[CheckResult], failed: int, code: int) -> str:
    """The last line: how many of what, and the exit code. ``failed`` worlds could not be searched."""
    claims = [claim for result in results for claim in result.properties]
    words = {Verdict.VIOLATED: "violated", Verdict.ERROR: "in error", Verdict.UNKNOWN: "unknown", Verdict.HOLDS: "hold"}
    counts = [f"{sum(c.verdict is v for c in claims)} {words[v]}" for v in ORDER if any(c.verdict is v for c in claims)]
    counts = [f"{counted(failed, 'world')} in error", *counts] if failed else counts
    vacuous = sum(c.vacuous for c in claims)
    counts.append(f"{vacuous} vacuous" if vacuous else "nothing vacuous")
    return f"{', '.join(counts)}   exit {code}"


class ProgressLine:
    """One line on stderr that is written over, where there is somebody to see it."""

    def __init__(self) -> None:
        self.seen = sys.stderr.isatty()
        self.written = False

    @property
    def reporter(self) -> Reporter | None:
        """What a search reports to; nothing where stderr is not a terminal."""
        return self.show if self.seen else None

    def show(self, progress: Progress) -> None:
        """Where a search is."""
        rest = f"   about {seconds(progress.remaining_s)} left" if progress.remaining_s is not None else ""
        moving = f"frontier {progress.frontier:,}   depth {progress.depth}   {progress.rate_per_s:,.0f}/s"
        whole = counted(progress.edges, "edge")  # a phase that is one call has no frontier and no rate
        part = moving if progress.frontier else whole
        self.say(f"{progress.phase}   {counted(progress.states, 'state')}   {part}   {seconds(progress.elapsed_s)}{rest}")

    def say(self, words: str) -> None:
        """Write over the line."""
        if self.seen:
            sys.stderr.write(f"\r\x1b[K{words}")
            sys.stderr.flush()
            self.written = True

    def clear(self) -> None:
        """Take the line away."""
        if self.written:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.written = False
