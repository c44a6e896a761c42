"""A host and its trainers in one event loop: the real backend, driver and sessions, over the ports in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import trio
from attrs import define, evolve, field
from trio.testing import MockClock

from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import SessionError
from troth.runtime.processes.bootstrap import BOOTSTRAP_VARIABLE, Bootstrap, parse
from troth.runtime.sim.faults import Faults
from troth.runtime.sim.files import SimFiles
from troth.runtime.sim.network import SimNetwork
from troth.runtime.sim.processes import SimProcess, SimProcesses
from troth.runtime.trainer import Task, TrainerSession

Script: TypeAlias = Callable[[TrainerSession, SimProcess], Awaitable[None]]
"""What a trainer's user does, with a session that nobody has joined yet."""


@define(eq=False)
class Stage:
    """What a test looks at."""

    faults: Faults = field(factory=Faults)
    files: SimFiles = field(factory=SimFiles)
    network: SimNetwork = field(init=False)
    processes: SimProcesses = field(init=False)
    owner_fd: int | None = None
    """What trainers are given for the end of their owner pipe."""
    trace: Path | None = None
    """Where trainers leave their traces."""
    sessions: list[TrainerSession] = field(factory=list)
    """Every session that a trainer began."""
    seen: list[Task] = field(factory=list)
    """Every task that a script was given."""
    ended: list[str] = field(factory=list)
    """How each session's script ended: ``done``, or the name of what it raised."""

    def __attrs_post_init__(self) -> None:
        self.network = SimNetwork(self.faults)
        self.processes = SimProcesses(self.files)

    def backend(self, **options: Any) -> ExternalProcess:
        """A backend on this stage, not entered yet."""
        ports: dict[str, Any] = {"processes": self.processes, "network": self.network, "files": self.files, "environment": {}}
        return ExternalProcess(["trainer"], directory=Path("/"), **(ports | options))

    def trainer(self, script: Script, *, takes_term: bool = False, change: Callable[[Bootstrap], Bootstrap] | None = None) -> None:
        """What launched trainers do from now on."""
        self.processes.program("trainer", partial(self._play, script, change), takes_term=takes_term)

    async def _play(self, script: Script, change: Callable[[Bootstrap], Bootstrap] | None, process: SimProcess) -> int:
        path = Path(process.launch.environment[BOOTSTRAP_VARIABLE])
        bootstrap = parse(self.files.contents[path], path)
        trace = None if self.trace is None else self.trace / f"{bootstrap.name}.trainer"
        session = TrainerSession(change(bootstrap) if change else bootstrap, self.network, owner_fd=self.owner_fd, trace=trace)
        self.sessions.append(session)
        ended = "killed"
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(session.run)
                try:
                    await script(session, process)
                    ended = "done"
                except SessionError as error:
                    ended = type(error).__name__
                nursery.cancel_scope.cancel()
        finally:
            self.ended.append(ended)
        return 0 if ended == "done" else 1

    async def work(self, session: TrainerSession, process: SimProcess) -> None:
        """The plain script: send back what comes, until there is nothing more."""
        await session.init()
        while (task := await session.receive()) is not None:
            self.seen.append(task)
            await session.send(task.payload)


@asynccontextmanager
async def staged(faults: Faults | None = None) -> AsyncIterator[Stage]:
    """A stage whose process table is open."""
    stage = Stage(faults or Faults())
    async with stage.processes:
        yield stage
    assert not stage.processes.snapshot()


def run(main: Callable[[], Awaitable[Any]]) -> None:
    """Run in virtual time."""
    trio.run(main, clock=MockClock(autojump_threshold=0))


def other_identity(bootstrap: Bootstrap) -> Bootstrap:
    """A trainer of another job."""
    return evolve(bootstrap, job_id="another")
