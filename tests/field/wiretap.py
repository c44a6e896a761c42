"""What goes over the simulated network, frame by frame, with its time; and a few things that several reports need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from attrs import define, field, frozen

from tests.runtime.sessions.stage import Stage
from troth.runtime.sim.faults import FrameFault, Seen
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.kinds import KINDS

NAMES = {kind.code: kind.message.__name__ for kind in KINDS}
CODES = {name: code for code, name in NAMES.items()}


@frozen
class Written:
    """A frame that was written."""

    at_s: float
    name: str
    seen: Seen


@define(eq=False)
class Wiretap:
    """Every frame without a rule of its own. ``on`` calls something when a frame of a kind is written, and may say what becomes of it."""

    frames: list[Written] = field(factory=list)
    on: dict[str, Callable[[], FrameFault | None]] = field(factory=dict)

    @classmethod
    def of(cls, stage: Stage) -> Wiretap:
        """Listen to a stage's network."""
        found = cls()
        stage.faults.decide = found._heard
        return found

    def _heard(self, seen: Seen) -> FrameFault | None:
        name = NAMES.get(seen.code, "a chunk")
        self.frames.append(Written(trio.current_time(), name, seen))
        return self.on[name]() if name in self.on else None

    def times(self, name: str) -> list[float]:
        """When frames of that kind were written."""
        return [frame.at_s for frame in self.frames if frame.name == name]

    def count(self, name: str) -> int:
        """How many of that kind were written."""
        return len(self.times(name))


async def outcome(call: Awaitable[Any]) -> str:
    """What a call came to: ``ok``, or the name of what it raised."""
    try:
        await call
    except Exception as error:
        return type(error).__name__
    return "ok"


async def hang(session: TrainerSession, process: SimProcess) -> None:
    """Take a task and never answer, whatever comes."""
    await session.init()
    await session.receive()
    await trio.sleep_forever()
