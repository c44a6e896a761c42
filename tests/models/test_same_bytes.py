"""The same bytes on every run: for any seed of Python's hashes, any engine and any number of workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from troth.models import Limits, check
from troth.models.canonical import spelled
from troth.models.vector import driver
from troth.models.worlds.bench.session import session

engine, workers, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "stop"
driver.FORK_FRONTIER = 50
result = check(session(T=1, R=2, A=2, C=2, BUG=2), engine=engine, limits=Limits(workers=workers, stop_at_violation=stop))
print(result.verdict, result.states, result.edges, result.depth, result.ending, result.vacuous)
for part in result.properties:
    print(part.property.id, part.verdict, part.reason)
    for step in part.trace.steps if part.trace else ():
        print("  ", step.action.name, spelled(step.label.variants), sorted(part.trace.system.spelled(step.state).items()))
        print("     ", [(r.name, r.rows, r.note) for r in step.reactions])
    print("  ", part.trace.choices if part.trace else "")
"""


def printed(seed: int, engine: str, workers: int, stop: str) -> str:
    """What a fresh process prints."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, engine, str(workers), stop], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("stop", ["stop", "go on"])
def test_neither_seed_nor_engine_nor_workers_change_a_byte(stop: str) -> None:
    outputs = {printed(*run, stop) for run in [(0, "scalar", 1), (1, "vector", 1), (2, "vector", 2), (3, "vector", 3), (4, "auto", 2)]}

    assert len(outputs) == 1
    assert "SourceLive Verdict.VIOLATED" in outputs.pop()
