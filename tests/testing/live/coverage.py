"""The gate on what fires on the live runtime: ``python -m tests.testing.live.coverage``.

All scenarios are played, and a number of walks from one seed, each on the real runtime with its judge, and watched for what is promised.
It fails if anything is wrong, if a row did not fire that has no reason not to, a guard did not answer, a fault did not come, or if less
fired of the rest than must. ``--missing FILE`` writes down the names of all that nothing fired.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from tests.testing.live.scenarios import SCENARIOS, Scenario, played
from tests.testing.live.scenarios.playing import watching
from troth.testing.coverage import KINDS, Allowed, Coverage, Floors
from troth.testing.live.choices import Walk as Drawn
from troth.testing.live.playing import judged
from troth.testing.live.reasons import PROOFS, UNANSWERED, UNREACHABLE, Proof
from troth.testing.live.recording import Recording
from troth.testing.live.target import Live
from troth.testing.live.walking import Walk

WALKS = 600
"""Sessions of seed 0."""
FLOORS = Floors({"guards": 163, "pairs": 770, "ignores": 120, "refusals": 8})
"""As measured with these walks, rounded down a little: a rule more or less lets them go other ways. Raise them when more fires."""
GATES = (Allowed(UNREACHABLE), Allowed(UNANSWERED, "guards"), Allowed({}, "faults"))


@frozen
class Run:
    """What was done, and what was wrong with it."""

    coverage: Coverage
    failures: tuple[str, ...]


def run(scenarios: Sequence[Scenario], walks: int) -> Run:
    """Play and walk."""
    coverage = Live().coverage()
    failures = []
    for scenario in scenarios:
        try:
            played(scenario, coverage)
        except Exception as error:
            failures.append(f"{scenario.name}: {type(error).__name__}: {error}")
    for number in range(walks):
        walk = Walk(Drawn(number), Recording())
        watching(walk.stage, coverage)
        found = judged(walk, walk.run)
        for fault in walk.play.faults:
            coverage.fault(fault)
        if found is not None:
            failures.append(f"walk {number}: {found.what}")
    return Run(coverage, tuple(failures))


def problems(run: Run, floors: Floors = FLOORS, gates: Sequence[Allowed] = GATES) -> list[str]:
    """All that the gate finds."""
    return [*run.failures, *(line for gate in gates for line in gate.problems(run.coverage)), *floors.problems(run.coverage)]


def missing(coverage: Coverage) -> list[str]:
    """The names of all that nothing fired, with the reason where there is one."""
    lines = []
    for kind in KINDS:
        names = coverage.missing(kind)
        lines.append(f"{kind}: nothing fired {len(names)} of {len(coverage.known[kind])}")
        lines += [f"  {name}" + (f": {coverage.reasons[name]}" if name in coverage.reasons else "") for name in names]
    return lines


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "coverage.md"
HEAD = """# What fires on the live runtime

<!-- Written by python -m tests.testing.live.coverage --page; a test says so when it is not current. -->

`python -m tests.testing.live.coverage` is a gate of CI. It plays the scenarios below on the live runtime, walks {walks} sessions of one
seed, and counts what the runtime's own cores do there: rows, guards both ways, pairs of consecutive rows, ignores, refusals and faults.
It names what nothing fired, and fails

- if anything is wrong in a scenario or a walk, or a scenario does not fire what it is for;
- if a row does not fire that has no reason not to, or fires though it has one; the same for the answers of guards, and for faults;
- if less fires than {floors}. These floors are raised when more does.

`--missing FILE` writes down the names of all that nothing fired. `troth fuzz --target runtime --missing` names it for a run of your own,
with the reasons of what cannot fire behind the rest.

## What cannot fire

{rows} of {all_rows} rows, and {guards} of {all_guards} answers of guards. Each reason has a proof, which is a test:

"""


def page() -> str:
    """``docs/reference/coverage.md``."""
    known = Live().coverage().known
    floors = ", ".join(f"{count} {kind}" for kind, count in FLOORS.counts.items())
    sizes = {"all_rows": len(known["rows"]), "all_guards": len(known["guards"])}
    lines = [HEAD.format(walks=WALKS, floors=floors, rows=len(UNREACHABLE), guards=len(UNANSWERED), **sizes).rstrip(), ""]
    lines += [f"- *{proof.name.lower()}*: {proof.value}." for proof in Proof]
    lines += ["", "| cannot fire | because | shown by |", "| --- | --- | --- |"]
    for why, proof in PROOFS.items():
        names = ", ".join(f"`{name}`" for name, given in {**UNREACHABLE, **UNANSWERED}.items() if given == why)
        lines.append(f"| {names} | {why} | {proof.name.lower()} |")
    lines += ["", "## The scenarios", ""]
    lines += [
        "Each is a few lines in `tests/testing/live/scenarios`, and must fire what stands beside it, among all else that it fires.",
        "",
    ]
    lines += ["| scenario | is for |", "| --- | --- |"]
    for scenario in SCENARIOS:
        forged = " (with forged frames)" if scenario.forged else ""
        lines.append(f"| {scenario.name.replace('_', ' ')}{forged} | {', '.join(f'`{row}`' for row in scenario.rows)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.testing.live.coverage", description="What fires on the live runtime.")
    parser.add_argument(
        "--walks", type=int, default=WALKS, help=f"sessions that are walked, {WALKS} by default; the floors are for so many"
    )
    parser.add_argument("--missing", type=Path, metavar="FILE", help="write down the names of all that nothing fired")
    parser.add_argument("--page", action="store_true", help="write docs/reference/coverage.md, and play nothing")
    asked = parser.parse_args(arguments)
    if asked.page:
        PAGE.write_text(page())
        return 0
    logging.disable(logging.CRITICAL)  # what is refused on purpose is not worth a line
    done = run(SCENARIOS, asked.walks)
    print(f"{len(SCENARIOS)} scenarios and {asked.walks} walks on the live runtime")
    print("\n".join(done.coverage.report(most=10)))
    print(f"of these, {len(UNREACHABLE)} rows and {len(UNANSWERED)} answers of guards have a reason, and a proof of it")
    if asked.missing is not None:
        asked.missing.write_text("\n".join(missing(done.coverage)) + "\n")
    found = problems(done)
    print("\n".join(f"PROBLEM {line}" for line in found) if found else "nothing is missing that must not be")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
