"""A host and trainers that are trio programs, over the real sessions and a network in memory, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from troth.client import aio
from troth.client.aio import FLModel
from troth.client.model import from_tree, to_tree
from troth.client.settings import Settings
from troth.runtime.backend import ExternalProcess
from troth.runtime.processes.bootstrap import BOOTSTRAP_VARIABLE, parse
from troth.runtime.sim.faults import Faults
from troth.runtime.sim.files import SimFiles
from troth.runtime.sim.network import SimNetwork
from troth.runtime.sim.processes import SimProcess, SimProcesses
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.kinds import KINDS

CODES = {kind.message.__name__: kind.code for kind in KINDS}

Program = Callable[[Path], Awaitable[None]]
"""A trainer: what it does with its bootstrap file."""


@define(eq=False)
class World:
    """A host, and what its trainers have seen."""

    program: Program
    monkeypatch: pytest.MonkeyPatch
    faults: Faults = field(factory=Faults)
    files: SimFiles = field(factory=SimFiles)
    network: SimNetwork = field(init=False)
    raised: list[BaseException] = field(factory=list)
    options: dict[str, Any] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.network = SimNetwork(self.faults)
        self.monkeypatch.setattr(aio, "connect", lambda settings: TrainerSession(settings.bootstrap, self.network))
        self.monkeypatch.setattr(aio, "read", lambda rank, path: Settings(rank, parse(self.files.contents[path], path)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ExternalProcess]:
        """The trainer runs during the block."""
        processes = SimProcesses(self.files)
        async with processes:
            processes.program("trainer", self._play, takes_term=True)
            ports: dict[str, Any] = {"processes": processes, "network": self.network, "files": self.files, "environment": {}}
            async with ExternalProcess(["trainer"], directory=Path("/"), **ports, **self.options) as trainer:
                yield trainer

    async def _play(self, process: SimProcess) -> int:
        try:
            await self.program(Path(process.launch.environment[BOOTSTRAP_VARIABLE]))
        except Exception as error:
            self.raised.append(error)
            return 1
        return 0


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run in virtual time."""
    trio.run(main, clock=MockClock(autojump_threshold=0))


async def do(trainer: ExternalProcess, name: str = "train", **fields: Any) -> FLModel:
    result = await trainer.execute(name, to_tree(FLModel(**({"metrics": {}} | fields))))
    return from_tree(result.payload)
