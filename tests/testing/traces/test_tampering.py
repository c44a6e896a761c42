"""Runs that did not happen: a recorded one, changed in one of nine ways, is rejected where it was changed, with what could stand there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from attrs import frozen

from tests.testing.traces.recorded import Lines, Run, recorded
from troth.testing.traces import Rejected

Place: TypeAlias = tuple[str, int]
"""A file, and a place in it: the line's number less one."""

RUNS = ("plain", "pulled", "redialled", "launched_again", "killed", "cancelled")


@frozen
class Tampered:
    """A run that was changed, and where that must show."""

    run: Run
    file: str
    line: int
    """From 1, as errors count."""

    def rejected(self) -> Rejected:
        """What a check says, which is so of the right line."""
        with pytest.raises(Rejected) as caught:
            self.run.check()
        found = caught.value
        assert (found.file.rpartition("/")[2], found.line) == (self.file, self.line), str(found)
        return found


def is_event(name: str) -> Callable[[dict[str, Any]], bool]:
    """A step that takes such an event."""
    return lambda line: bool(line["event"]["is"] == name)


def came(link: str, message: str) -> Callable[[dict[str, Any]], bool]:
    """A step that takes such a message."""
    return lambda line: bool(line["link"] == link and line["event"].get("message", {}).get("is") == message)


def renumber(run: Run, file: str) -> None:
    """Make the count of a file right again, and the order of its driver: what a careful hand would do."""
    for name, lines in run.files.items():
        if name == file:
            for n, line in enumerate(line for line in lines[1:] if "end" not in line):
                line["n"] = n
            if "end" in lines[-1]:
                lines[-1]["end"] = len(lines) - 2
    driver = run.files[file][0]["driver"]
    steps = [line for lines in run.files.values() if lines[0]["driver"] == driver for line in lines[1:] if "end" not in line]
    for turn, line in enumerate(sorted(steps, key=lambda line: line["turn"])):
        line["turn"] = turn


# -- the nine ways -----------------------------------------------------------------------------------------------------


def delete(run: Run) -> Tampered:
    """A line less: the next one has a number too high."""
    file, place = run.find(".host-1.jsonl", came("control", "SessionReady"))
    del run.files[file][place]
    return Tampered(run, file, place + 1)


def swap(run: Run) -> Tampered:
    """Two lines change places."""
    file, place = run.find(".trainer", came("control", "SessionConfirmed"))
    lines = run.files[file]
    lines[place - 1], lines[place] = lines[place], lines[place - 1]
    return Tampered(run, file, place)


def duplicate(run: Run) -> Tampered:
    """A line twice."""
    file, place = run.find(".host-1.jsonl", came("control", "TaskAccepted"))
    run.files[file].insert(place + 1, dict(run.files[file][place]))
    return Tampered(run, file, place + 2)


def forge(run: Run) -> Tampered:
    """A message that nobody sent, with all numbers right and what the core makes of it."""
    file, place = run.find(".host-1.jsonl", came("control", "TaskAccepted"))
    lines: Lines = run.files[file]
    forged = {**lines[place], "turn": lines[place]["turn"] + 0.5}
    lines.insert(place + 1, forged)
    renumber(run, file)
    return Tampered(run, file, place + 2)


def change_a_row(run: Run) -> Tampered:
    """Another row than the one that was taken."""
    file, place = run.find(".trainer", came("control", "TaskReady"))
    rows = run.files[file][place]["rows"]
    rows[-1] = "ledger.K2" if rows[-1] != "ledger.K2" else "ledger.K1"
    return Tampered(run, file, place + 1)


def change_an_effect(run: Run) -> Tampered:
    """An effect less."""
    file, place = run.find(".host-1.jsonl", came("control", "Hello"))
    run.files[file][place]["effects"].pop()
    return Tampered(run, file, place + 1)


def move_a_timer(run: Run) -> Tampered:
    """A timer that fires before it is due, and everything else as it was."""
    for name in run.files:
        for place, line in enumerate(run.files[name]):
            if "event" in line and line["event"]["is"] == "TimerFired" and line["t_ns"] > 0:
                driver = run.files[name][0]["driver"]
                before = [
                    step["t_ns"]
                    for lines in run.files.values()
                    if lines[0]["driver"] == driver
                    for step in lines[1:]
                    if step.get("turn", line["turn"]) < line["turn"]
                ]
                line["t_ns"] = max(*before, line["t_ns"] - 100_000_000)
                return Tampered(run, name, place + 1)
    raise LookupError("no timer fires in this run")


def reuse_an_attempt(run: Run) -> Tampered:
    """An attempt that was used before; where nothing was tried twice, one that was never made."""

    def repeated(line: dict[str, Any]) -> bool:
        return bool(line["event"].get("message", {}).get("attempt", 0) > 1)

    try:
        file, place = run.find("", repeated)
    except LookupError:
        file, place = run.find(".host-1.jsonl", came("control", "ResultReady"))
    message = run.files[file][place]["event"]["message"]
    message["attempt"] = 1 if message["attempt"] > 1 else 2
    return Tampered(run, file, place + 1)


def change_the_epoch(run: Run) -> Tampered:
    """A step of another session."""
    file, place = run.find(".trainer", came("control", "TaskReady"))
    run.files[file][place]["epoch"] += 1
    return Tampered(run, file, place + 1)


WAYS = (delete, swap, duplicate, forge, change_a_row, change_an_effect, reuse_an_attempt, change_the_epoch)
TIMED = ("pulled", "cancelled", "retried")
"""Runs in which a timer fires."""


@pytest.mark.parametrize("name", TIMED)
def test_a_timer_that_fires_before_it_is_due_is_rejected_at_that_line(name: str) -> None:
    """The ninth way."""
    found = move_a_timer(recorded(name).copy()).rejected()

    assert "before it was due" in found.reason
    assert found.nearest


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_tampered_with_is_rejected_at_that_line(name: str, way: Callable[[Run], Tampered]) -> None:
    """Of a run that is accepted as it was."""
    found = way(recorded(name).copy()).rejected()

    assert found.reason
    assert found.nearest, found.reason
    assert all(near.rows for near in found.nearest)
