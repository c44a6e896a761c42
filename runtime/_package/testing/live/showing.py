"""Things of a stage in words: connections, frames, calls, payloads, and what else a rule draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import fields

from troth.runtime.errors import FrameError
from troth.runtime.sim.faults import Direction
from troth.runtime.sim.network import SimConnection
from troth.runtime.wire.challenge import ROLES
from troth.runtime.wire.kinds import CHUNK
from troth.testing.live.actions import Option, Play
from troth.testing.live.calling import Call
from troth.testing.live.lines import Frame, Line, fields_of
from troth.testing.live.seats import Seat
from troth.testing.live.stage import Setup

WIDTH = 120
"""Letters that one value may take."""


def short(text: str) -> str:
    """Cut to what a line holds."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def connection(sim: SimConnection) -> str:
    """Which one, and what it is for, once that was said on it."""
    return f"connection {sim.number}{f' ({sim.role})' if sim.role else ''}"


def frame(data: bytes) -> str:
    """Its kind, and what it says."""
    found = Frame.of(data)
    if found.code == CHUNK:
        request, offset, nbytes = found.chunk()
        return f"{found.name}(request={request}, offset={offset}, {nbytes} bytes)"
    try:
        said = fields_of(found)[1]
    except FrameError:
        return f"{found.name}, which cannot be read"
    return short(f"{found.name}({', '.join(f'{name}={_value(value)}' for name, value in said.items())})")


def payload(tree: Any) -> str:
    """A tree, its arrays by their kinds and shapes."""
    if isinstance(tree, np.ndarray):
        return f"{tree.dtype}[{', '.join(map(str, tree.shape))}] of {tree.flat[0] if tree.size else ''}"
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key!r}: {payload(value)}' for key, value in tree.items())}}}"
    return repr(tree)


def call(made: Call) -> str:
    """A call as it was made."""
    if made.kind == "leave":
        return "leaves its block by an exception" if made.name else "leaves its block"
    if made.kind == "start":
        return "enters its block"
    said = [repr(made.name)] if made.kind == "execute" else []
    said += [payload(made.tree)] if made.tree is not None else []
    said += ["control_rank=False"] if made.passive else []
    return short(f"{made.kind}({', '.join(said)})")


def returned(made: Call) -> str:
    """What came of it."""
    name = {"leave": "leaving", "start": "entering"}.get(made.kind, f"{made.kind}()")
    if made.error is not None:
        return short(f"{name} raised {made.error!r}")
    if made.value is None and made.given_up:
        return f"{name} was given up"
    value: Any = made.value
    if hasattr(value, "payload"):
        return short(f"{name} returned {type(value).__name__} {value.task_id} with {payload(value.payload)}")
    return short(f"{name} returned {value!r}")


def place(option: Option) -> str:
    """Where something is done."""
    if isinstance(option, tuple) and option and isinstance(option[0], Line):
        return f"{connection(option[0].sim)}, {option[1].value}"
    if isinstance(option, Seat):
        return f"trainer of {option.host}"
    if isinstance(option, Call):
        return call(option)
    return "" if option is None else short(repr(option))


def waits(option: Option, at: int = 0) -> str:
    """The frame that waits there."""
    if isinstance(option, tuple) and option and isinstance(option[0], Line) and isinstance(option[1], Direction):
        waiting = option[0].sim.pipes[option[1]].waiting
        return frame(waiting[at]) if at < len(waiting) else ""
    return ""


# -- what was drawn ----------------------------------------------------------------------------------------------------


def _spawns(play: Play, _option: Option, _drawn: Sequence[int]) -> str:
    processes = play.stage.processes
    return f"{processes.spawn_delay_s:g} s until one runs, {processes.heard_delay_s:g} s until that is heard"


def _intruder(_play: Play, _option: Option, drawn: Sequence[int]) -> str:
    return f"as {ROLES[1 + drawn[0]]}" + (f", epoch {drawn[1]}" if len(drawn) > 1 else "")


DETAILS: Mapping[str, Callable[[Play, Option, Sequence[int]], str]] = {
    "tear": lambda _play, _option, drawn: f"after {1 + drawn[0] if drawn else 1} bytes",
    "spoil": lambda _play, _option, drawn: f"{1 + drawn[0] + 12} bytes",
    "refuse": lambda _play, _option, drawn: f"{1 + drawn[0]} of them",
    "slow spawn": _spawns,
    "intrude": _intruder,
    "exit": lambda _play, _option, drawn: f"with status {drawn[0]}",
    "stick": lambda _play, seat, _drawn: "it is stuck" if seat.process.stuck else "it is stuck no more",
}
"""What a rule drew, by its name; where that is not seen in what comes of it."""
SEEN = ("execute", "init", "send", "leave", "race", "silence", "overtake")
"""Rules of which it is seen."""


def details(name: str, play: Play, option: Option, drawn: Sequence[int]) -> str:
    """What else was chosen in it."""
    if name in DETAILS:
        return DETAILS[name](play, option, drawn)
    return f"drew {', '.join(map(str, drawn))}" if drawn and name not in SEEN else ""


def setup(found: Setup) -> str:
    """What is not plain about a stage."""
    plain = Setup()
    said = []
    for one in fields(Setup):
        value = getattr(found, one.name)
        if one.name == "limits":
            said += [
                f"{limit.name}={getattr(value, limit.name)}"
                for limit in fields(type(value))
                if getattr(value, limit.name) != getattr(plain.limits, limit.name)
            ]
        elif value != getattr(plain, one.name) and one.name != "bytes_seed":
            said.append(f"{one.name}={value}")
    return ", ".join(said)


def _value(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return f"{len(value)} bytes"
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and hasattr(value, "value") else repr(value)
