"""How fast generated runs are: the seeded walker and the Hypothesis machine, on cores and on the live runtime.

    python tests/benchmarks/fuzz.py                  # a quarter of a minute a row
    python tests/benchmarks/fuzz.py --seconds 60 --json

A step is one rule or action settled, with properties, comparison and trace on: what every core was given and what it did is kept, and
replayed at the end of each session. Steps are counted against the processor time of this process, which is one core's whether others use
the machine or not; ``n`` is the steps, ``median_s`` the processor time of one, ``ratio`` the steps a second of it, and ``bound`` what they
should be at least. ``wall_s`` says how long it took by the clock.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import run_state_machine_as_test

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for the siblings, wherever the script is run from; troth itself is the installed one

from tests.benchmarks.measuring import report, row  # noqa: E402
from troth.testing import Cores, Play, Target, state_machine  # noqa: E402
from troth.testing.choosing import Asked  # noqa: E402
from troth.testing.ours import PLAYS  # noqa: E402

WALKED_CORES = 5_000
"""Steps a second that the walker must take on cores."""
WALKED_LIVE, DRAWN_LIVE = 1_000, 500
"""Steps a second on the live runtime: of the walker, and of Hypothesis."""
WARM_STEPS = 2_000
"""Steps before the clock starts: the tables of a world are empty at first."""
Measured = Iterator[dict[str, Any]]


def walked(name: str, target: Target, seconds: float, bound: float | None, *, seed: int = 1) -> Measured:
    """A row of the walker."""
    coverage = target.coverage()
    started: float | None = None
    wall = steps = sessions = failures = 0.0
    running = target.fuzz(seed=seed, until=lambda: started is not None and process_time() - started >= seconds, coverage=coverage)
    warm = 0
    for result in running:
        if started is None:
            warm += result.steps
            if warm >= WARM_STEPS:
                started, wall = process_time(), perf_counter()
            continue
        steps += result.steps
        sessions += 1
        failures += result.failure is not None
    if started is None:
        raise SystemExit(f"{name}: it ended before it was warm")
    yield _row(name, steps, process_time() - started, bound, sessions=int(sessions), failures=int(failures), wall_s=perf_counter() - wall)


def hypothesized(name: str, play: Play, seconds: float, bound: float | None) -> Measured:
    """A row of the Hypothesis machine."""
    machine = state_machine(play.make)
    chosen = settings(
        max_examples=20,
        stateful_step_count=50,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )
    before, wall = process_time(), perf_counter()
    counted = 0

    class Counted(machine):  # type: ignore[misc, valid-type]
        """The same, counting."""

        def teardown(self) -> None:
            nonlocal counted
            counted += len(self.session.moves)
            super().teardown()

    for number in count(1):
        run_state_machine_as_test(with_seed(number)(Counted), settings=chosen)
        if process_time() - before >= seconds:
            break
    yield _row(name, counted, process_time() - before, bound, wall_s=perf_counter() - wall)


def _row(name: str, steps: float, cpu_s: float, bound: float | None, **more: Any) -> dict[str, Any]:
    rate = steps / cpu_s
    a_step = cpu_s / steps
    return row(
        name, n=int(steps), median_s=a_step, min_s=a_step, ratio=round(rate, 1), bound=bound, ok=bound is None or rate >= bound, **more
    )


def core_rows(seconds: float) -> Measured:
    """What runs on cores alone."""
    for name in ("races", "ledger", "external"):
        yield from walked(f"walker, {name}", Asked(worlds=(name,)).open(), seconds, WALKED_CORES)
    for name, play in PLAYS.items():
        yield from walked(f"walker, {name}", Cores((play,)), seconds, WALKED_CORES)
    yield from hypothesized("Hypothesis, trainer", PLAYS["trainer"], seconds, None)


def live_rows(seconds: float) -> Measured:
    """What runs on the live runtime: the real host, client, driver and transfers, over the ports in memory."""
    yield from walked("walker, live runtime", Asked(target="runtime").open(), seconds, WALKED_LIVE)
    yield from _drawn("Hypothesis, live runtime", seconds, DRAWN_LIVE)


def _drawn(name: str, seconds: float, bound: float) -> Measured:
    """A row of the Hypothesis machine of the live runtime. Only what it chose itself counts, not how its sessions were brought to an
    end."""
    from troth.testing.live.machine import LiveMachine
    from troth.testing.live.playing import quietly

    chosen = settings(max_examples=20, stateful_step_count=50, database=None, deadline=None, phases=(Phase.generate,),
                      suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large))  # fmt: skip
    counted = 0

    class Counted(LiveMachine):
        """The same, counting."""

        def teardown(self) -> None:
            nonlocal counted
            counted += 0 if self.walk is None else self.walk.steps + self.walk.play.more_steps
            super().teardown()

    before, wall = process_time(), perf_counter()
    with quietly():
        for number in count(1):
            run_state_machine_as_test(with_seed(number)(Counted), settings=chosen)
            if process_time() - before >= seconds:
                break
    yield _row(name, counted, process_time() - before, bound, wall_s=perf_counter() - wall)


ROWS: list[Callable[[float], Measured]] = [core_rows, live_rows]
"""Functions of the seconds a row may take. Rows of other targets are added here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description="how fast generated runs are")
    parser.add_argument("--seconds", type=float, default=15, help="processor time a row")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    options = parser.parse_args(arguments)
    found = []
    for rows in ROWS:
        for each in rows(options.seconds):
            found.append(each)
            if not options.json:
                print(
                    f"{each['name']:28} {each['n']:9,} steps {each['ratio']:9,.0f} a second  {'' if each['ok'] else 'MISSED'}", flush=True
                )
    return report("fuzz", ROOT, found, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
