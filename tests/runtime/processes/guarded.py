"""A guardian for a test, and the launches that play parts under it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import psutil
import trio
from attrs import define, field

from tests.runtime.processes.alive import LIMIT_S, Reports, alive, described, environment, marked, new_mark
from troth.runtime.ports import Exited, Launch, ProcessEvent
from troth.runtime.processes.guardian import Guardian

PLAY = Path(__file__).with_name("play.py")


def guardian_pid() -> int:
    """The one guardian of this process."""
    [found] = [one.pid for one in psutil.Process().children() if "guardian_main.py" in " ".join(one.cmdline())]
    return found


@define(eq=False)
class Guarded:
    """A guardian with a mark and a place to report to."""

    guardian: Guardian
    mark: str
    reports: Reports
    directory: Path
    _numbers: count[int] = field(factory=lambda: count(1))

    def launch(self, *arguments: str, name: str = "site-1") -> Launch:
        """A launch of ``play.py`` in this part."""
        command = [sys.executable, "-I", "-S", str(PLAY), str(self.reports.path), *arguments]
        return Launch(f"{self.mark[:8]}.{next(self._numbers)}", name, command, environment(self.mark), self.directory)

    async def spawn(self, *arguments: str) -> Launch:
        """Start it."""
        launch = self.launch(*arguments)
        await self.guardian.spawn(launch)
        return launch

    async def event(self) -> ProcessEvent:
        """The next event."""
        with trio.fail_after(LIMIT_S):
            return await self.guardian.events.receive()

    async def exited(self, launch: Launch) -> Exited:
        """The next event, which must be this launch's end; nothing of it may be left."""
        event = await self.event()
        assert isinstance(event, Exited), event
        assert event.launch_id == launch.launch_id
        left = alive(launch.launch_id, "TROTH_LAUNCH_ID")
        assert not left, described(left)
        return event


@asynccontextmanager
async def guarded(directory: Path, logs: Path | None = None) -> AsyncIterator[Guarded]:
    """A guardian, a mark, and somebody who listens to the players."""
    mark = new_mark()
    reports = Reports(directory / "r")
    await reports.bind()
    try:
        with marked(mark):
            async with Guardian(logs=logs) as guardian:
                yield Guarded(guardian, mark, reports, directory)
            left = alive(mark)
            assert not left, described(left)
    finally:
        reports.close()
