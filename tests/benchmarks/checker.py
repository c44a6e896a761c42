"""Troth's checker against TLC and SPIN on one protocol: whole processes, in turn, medians; and its memory and start-up.

    python tests/benchmarks/checker.py                                     # M and L, about a quarter of an hour
    python tests/benchmarks/checker.py --sizes S M L XL --tools troth      # how the cost of a state grows
    python tests/benchmarks/checker.py --sizes M --runs 1 --json

A tool that counts other states or edges than are pinned is an error: a fast wrong answer is no answer. Tools that are not installed
are rows that say how to install them. ``ratio`` is a tool's median time over Troth's. Exit code: 0 all bounds are kept, 1 one is
missed, 3 a wrong count. Run it on a quiet machine; it says so where the machine was not. ``cpu_s``, the processor time of all
processes of a run, depends less on what else was running.

Memory is what all processes of a run have resident together, at most, looked at every few milliseconds in a run of its own. Pages
that processes share count once for each, so it is an upper bound. For the other tools, which are one process each, it is the figure
that the kernel keeps.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for the siblings, wherever the script is run from; troth itself is the installed one

from tests.benchmarks.contenders import SIZES, TOOLS, Plan  # noqa: E402
from tests.benchmarks.measuring import Run, report, row, run  # noqa: E402

MB = 1_000_000
BOUNDS: Mapping[tuple[str, str], float] = {("M", "tlc"): 15, ("M", "spin"): 1.5, ("L", "tlc"): 20, ("L", "spin"): 2}
"""How many times as long as Troth a tool must take, at least."""
M_MEMORY_MB = 150
"""What a check of M may take above an idle interpreter."""
SLOPE_BYTES = 32
"""What a state more may cost, from M to XL."""
STARTUP_S = 0.3
"""What a check of a small world may take beyond the start of the interpreter."""
GROWTH = 1.1
"""How much more a state may cost at a size than at the one before: nothing, and a tenth of noise."""
IDLE = (sys.executable, "-c", "pass")
RESTING = (sys.executable, "-c", "import time; time.sleep(0.2)")
ERROR = 3


class WrongCount(Exception):
    """A tool did not find what there is."""


class Bench:
    """The runs of every tool on every size."""

    def __init__(self, sizes: Sequence[str], tools: Sequence[str], runs: int, told: TextIO) -> None:
        self.sizes = list(sizes)
        self.tools = list(tools)
        self.runs = runs
        self.told = told
        self.seconds: dict[tuple[str, str], list[float]] = {}
        self.cpu: dict[tuple[str, str], list[float]] = {}
        self.peaks: dict[tuple[str, str], int] = {}

    def rows(self) -> list[dict[str, Any]]:
        """Measure, and sum up."""
        with tempfile.TemporaryDirectory(prefix="troth-bench-") as top:
            missing = {tool: TOOLS[tool].missing() for tool in self.tools}
            found: list[dict[str, Any]] = []
            for size in self.sizes:
                self._measure(size, [t for t in self.tools if not missing[t]], Path(top))
                for tool in self.tools:
                    found.append(self._row(size, tool, missing[tool]))
                    self._say(found[-1])
            if "troth" in self.tools:
                for extra in (*self._memory(Path(top)), *self._growth(), self._startup(Path(top))):
                    found.append(extra)
                    self._say(extra)
        return found

    def _measure(self, size: str, tools: Sequence[str], top: Path) -> None:
        plans: dict[str, Plan] = {}
        for tool in tools:
            folder = top / f"{size}-{tool}"
            folder.mkdir()
            plans[tool] = TOOLS[tool].plan(size, folder)
        for _ in range(self.runs):  # in turn: whatever else the machine does then hits all of them
            for tool, plan in plans.items():
                done = self._checked(size, tool, plan, polled=False)
                self.seconds.setdefault((size, tool), []).append(done.seconds)
                self.cpu.setdefault((size, tool), []).append(done.cpu_s)
                self.peaks[size, tool] = max(self.peaks.get((size, tool), 0), done.peak_bytes)
        if "troth" in plans:
            self.peaks[size, "troth"] = self._checked(size, "troth", plans["troth"], polled=True).peak_bytes

    def _checked(self, size: str, tool: str, plan: Plan, *, polled: bool) -> Run:
        done = run(plan.command, plan.folder, polled=polled)
        expected = SIZES[size].states, SIZES[size].edges
        counted = plan.counts(done.stdout, expected)
        if counted != expected:
            said = f"{done.stdout[-800:]}\n{done.stderr[-400:]}"
            raise WrongCount(f"{tool} on {size}: counted {counted} states and edges instead of {expected}; it said\n{said}")
        return done

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _row(self, size: str, tool: str, missing: str) -> dict[str, Any]:
        name = f"{size} {tool}"
        bound = BOUNDS.get((size, tool))
        if missing:
            return row(name, bound=bound, ok=None, skipped=f"not installed: {missing}")
        times = self.seconds[size, tool]
        own = self.seconds.get((size, "troth"))
        ratio = median(times) / median(own) if own and tool != "troth" else None
        return row(
            name,
            n=len(times),
            median_s=round(median(times), 3),
            min_s=round(min(times), 3),
            peak_mb=round(self.peaks[size, tool] / MB, 1),
            ratio=None if ratio is None else round(ratio, 2),
            bound=bound,
            ok=True if bound is None else ratio is not None and ratio >= bound,
            cpu_s=round(median(self.cpu[size, tool]), 3),
            states=SIZES[size].states,
            edges=SIZES[size].edges,
        )

    def _memory(self, top: Path) -> list[dict[str, Any]]:
        found = []
        if "M" in self.sizes:
            idle = run(RESTING, top, polled=True).peak_bytes
            above = (self.peaks["M", "troth"] - idle) / MB
            found.append(row("M memory above idle", n=1, peak_mb=round(above, 1), bound=M_MEMORY_MB, ok=above <= M_MEMORY_MB))
        if {"M", "XL"} <= set(self.sizes):
            slope = (self.peaks["XL", "troth"] - self.peaks["M", "troth"]) / (SIZES["XL"].states - SIZES["M"].states)
            peak = round(self.peaks["XL", "troth"] / MB, 1)
            found.append(
                row("bytes a state, M to XL", n=1, peak_mb=peak, value=round(slope, 1), bound=SLOPE_BYTES, ok=slope <= SLOPE_BYTES)
            )
        return found

    def _growth(self) -> list[dict[str, Any]]:
        """Whether a state costs more in larger worlds."""
        order = [size for size in SIZES if size in self.sizes]
        cost = {size: median(self.seconds[size, "troth"]) / SIZES[size].states for size in order}
        found = []
        for before, after in pairwise(order):
            grown = cost[after] / cost[before]
            found.append(row(f"cost of a state, {before} to {after}", n=self.runs, value=round(grown, 2), bound=GROWTH, ok=grown <= GROWTH))
        return found

    def _startup(self, top: Path) -> dict[str, Any]:
        plan = TOOLS["troth"].plan("XS", top)
        idle, small = [], []
        for _ in range(max(3, self.runs)):
            idle.append(run(IDLE, top).seconds)
            small.append(self._checked("XS", "troth", plan, polled=False).seconds)
        beyond = median(small) - median(idle)
        return row(
            "start-up, 1,002 states",
            n=len(small),
            median_s=round(beyond, 3),
            min_s=round(min(small) - min(idle), 3),
            bound=STARTUP_S,
            ok=beyond <= STARTUP_S,
        )

    def _say(self, one: Mapping[str, Any]) -> None:
        parts = [f"{one['name']:<26}"]
        parts.append(f"{one['median_s']:>9.3f} s" if one["median_s"] is not None else " " * 11)
        parts.append(f"{one['cpu_s']:>9.3f} s cpu" if "cpu_s" in one else " " * 15)
        parts.append(f"{one['peak_mb']:>9,.1f} MB" if one["peak_mb"] is not None else " " * 12)
        parts.append(f"x{one['ratio']:<7}" if one["ratio"] is not None else f"{one.get('value', ''):<8}")
        if one["bound"] is not None:
            parts.append(f"bound {one['bound']:g}: {'not measured' if one['ok'] is None else 'kept' if one['ok'] else 'MISSED'}")
        parts.append(one.get("skipped", ""))
        print("  ".join(parts).rstrip(), file=self.told, flush=True)


def main() -> int:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=["M", "L"])
    parser.add_argument("--tools", nargs="+", choices=list(TOOLS), default=["troth", "tlc", "spin"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"checker: the machine is busy (load {load:.1f}); what it says of time is worth little", file=sys.stderr)
    try:
        rows = Bench(args.sizes, args.tools, max(1, args.runs), sys.stderr if args.json else sys.stdout).rows()
    except WrongCount as error:
        print(f"checker: {error}", file=sys.stderr)
        return ERROR
    return report("checker", ROOT, rows, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
