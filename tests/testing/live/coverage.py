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
from troth.testing.live.reasons import UNANSWERED, UNREACHABLE
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


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.testing.live.coverage", description="What fires on the live runtime.")
    parser.add_argument(
        "--walks", type=int, default=WALKS, help=f"sessions that are walked, {WALKS} by default; the floors are for so many"
    )
    parser.add_argument("--missing", type=Path, metavar="FILE", help="write down the names of all that nothing fired")
    asked = parser.parse_args(arguments)
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
