"""Any one change to any one line of a run is seen, but for a few that leave no evidence anywhere; those are named here, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.testing.traces.recorded import SCENARIOS, Run, recorded
from tests.testing.traces.test_tampering import renumber
from troth.runtime.wire.kinds import BY_CLASS
from troth.spec import messages
from troth.testing.traces import Network, Rejected

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
DERIVED = {kind.message.__name__: kind.derived for kind in BY_CLASS.values()}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything in a line that is no object and no list."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from leaves(part, (*path, place))
    else:
        yield path


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """What is there."""
    for part in path:
        value = value[part]
    return value


def without_evidence(line: dict[str, Any], path: tuple[Any, ...]) -> str | None:
    """Why nobody could tell that this leaf of a line was another, if nobody can."""
    event = line["event"]
    if path == ("t_ns",):
        return "a clock that went a little faster or slower; only a timer that fires early shows"
    if path[:2] == ("event", "message") and path[-1] in DERIVED.get(event["message"]["is"], ()):
        return "a verdict of the receiver's own on what came beside the message, where no row depends on it"
    if path == ("event", "clean"):
        return "how a process has ended is the guardian's word alone, where no row depends on it"
    if path == ("event", "number") and event["is"] in ("Called", "CallCancelled"):
        return "the number of a call that nothing answers to"
    if path[0] == "event" and event["is"].startswith("Transfer"):
        return "how the bytes went is the data link's word alone, where no row depends on it"
    return None


def another(value: Any, chance: st.DataObject) -> Any:
    """A value of the same kind that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + chance.draw(st.sampled_from((-1, 1, 2, 7)))) if value else 1
    if isinstance(value, str):
        kind, _, member = value.partition(".")
        enum = getattr(messages, kind, None)
        if enum is not None and member:
            return f"{kind}.{chance.draw(st.sampled_from([each.name for each in enum if each.name != member]))}"
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return 1


@pytest.mark.parametrize("name", SCENARIOS)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(data=st.data())
def test_any_one_value_that_is_changed_is_seen(name: str, data: st.DataObject) -> None:
    """Whatever it is, in whatever line: a field of an event, a row, a digest, a number, a party."""
    run = recorded(name).copy()
    file = data.draw(st.sampled_from([file for file in run.files if run.steps(file)]))
    place = data.draw(st.integers(1, len(run.steps(file))))
    line = run.files[file][place]
    path = data.draw(st.sampled_from(list(leaves(line))))
    value = at(line, path)
    at(line, path[:-1])[path[-1]] = changed = another(value, data)
    if changed == value:
        return
    try:
        run.check()
    except Rejected:
        return
    assert without_evidence(recorded(name).files[file][place], path), (file, place + 1, path, value, changed)


@pytest.mark.parametrize("name", SCENARIOS)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(data=st.data())
def test_any_one_line_that_is_taken_away_doubled_or_moved_is_seen(name: str, data: st.DataObject) -> None:
    """At the line where the count goes wrong."""
    run = recorded(name).copy()
    file = data.draw(st.sampled_from([file for file in run.files if run.steps(file)]))
    lines, place = run.files[file], data.draw(st.integers(1, len(run.steps(file))))
    way = data.draw(st.sampled_from(("delete", "duplicate", "move")))
    if way == "delete":
        del lines[place]
    elif way == "duplicate":
        lines.insert(place, dict(lines[place]))
    else:
        other = data.draw(st.integers(1, len(run.steps(file))))
        if other == place:
            return
        lines[place], lines[other] = lines[other], lines[place]
        place = min(place, other)
    with pytest.raises(Rejected) as caught:
        run.check()
    assert caught.value.file.endswith(file)
    assert caught.value.line == place + (2 if way == "duplicate" else 1)


def same_run(run: Run, name: str) -> bool:
    """Whether a run says the same as the one that was recorded, party by party: then nothing was changed but numbers."""

    def told(line: dict[str, Any]) -> dict[str, Any]:
        return {key: part for key, part in line.items() if key not in ("n", "turn", "t_ns", "end")}

    return all([told(line) for line in lines] == [told(line) for line in recorded(name).files[file]] for file, lines in run.files.items())


@pytest.mark.parametrize("name", SCENARIOS)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(data=st.data())
def test_a_careful_hand_that_counts_everything_anew_is_seen_too(name: str, data: st.DataObject) -> None:
    """A line that is missing, twice, or before its predecessor, with all numbers right: it is rejected, or the parties did the same, or
    it was the last that its party did and nobody was told of it."""
    run = recorded(name).copy()
    file = data.draw(st.sampled_from([file for file in run.files if run.steps(file)]))
    lines, place = run.files[file], data.draw(st.integers(1, len(run.steps(file))))
    way = data.draw(st.sampled_from(("delete", "duplicate", "swap")))
    line = lines[place]
    if way == "delete":
        del lines[place]
    elif way == "duplicate":
        lines.insert(place + 1, {**line, "turn": line["turn"] + 0.5})
    elif place < len(run.steps(file)):
        other = lines[place + 1]
        lines[place], lines[place + 1] = {**other, "t_ns": line["t_ns"], "turn": line["turn"]}, {**line, "turn": other["turn"]}
    renumber(run, file)
    try:
        run.check()
    except Rejected:
        return
    assert same_run(run, name) or nobody_can_tell(name, file, place, way), (way, file, place + 1, line)


def nobody_can_tell(name: str, file: str, place: int, way: str) -> bool:
    """Whether a step left no evidence: its party is as it was before, and whatever it said may get lost; or it was the last that its
    party did, and the check has found nobody who was told of it. Two steps can change places unseen if one of them leaves none."""
    run = recorded(name)
    lines = [line for line in run.steps(file) if line["party"] == run.files[file][place]["party"]]
    here = lines.index(run.files[file][place])
    if way == "swap":
        return leaves_nothing(run, lines, here) or (here + 1 < len(lines) and leaves_nothing(run, lines, here + 1)) or ".receivers" in file
    return leaves_nothing(run, lines, here) or here == len(lines) - 1


def leaves_nothing(run: Run, lines: list[dict[str, Any]], place: int) -> bool:
    """Whether a step changes nothing of its party, and says nothing that must be heard."""
    said = [effect["message"]["is"] for effect in lines[place]["effects"] if effect["is"] == "Send"]
    missable = run.network is Network.FAULTY or set(said) <= {"Heartbeat", "Log"}
    return place > 0 and missable and lines[place]["state"] == lines[place - 1]["state"]
