"""Runs to look at: recorded on the simulated ports, each once, and what they are made of."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import trio
from attrs import frozen

from tests.runtime.sessions.stage import Stage, run, staged
from troth.runtime.errors import SessionError
from troth.runtime.sim.faults import DOWN, UP, Cut, Delay, Drop, Duplicate, Faults
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.spec.trace import End, Record, read_header, read_line
from troth.testing.traces import Checked, Network, PartyCheck, RunCheck, check_files
from troth.testing.traces.files import codec

Lines = list[dict[str, Any]]
"""The lines of a file, the header's first."""

LARGE = {"w": np.zeros(200_000)}


async def plain(stage: Stage, trace: Path) -> None:
    """Two tasks, payloads in their messages."""
    stage.trainer(stage.work)
    async with stage.backend(trace=trace, name="site-1") as trainer:
        for n in range(2):
            await trainer.execute("train", {"x": n})


async def pulled(stage: Stage, trace: Path) -> None:
    """Payloads too large to ride along, and a data connection that breaks in the middle of one."""
    stage.faults.bytes(Cut(at=300_000), role="data", direction=DOWN)
    stage.trainer(stage.work)
    async with stage.backend(trace=trace, name="site-1") as trainer:
        for _ in range(2):
            await trainer.execute("train", LARGE)


async def redialled(stage: Stage, trace: Path) -> None:
    """A control connection that breaks twice, with messages on their way."""
    stage.faults.bytes(Cut(at=520), role="control", direction=UP)
    stage.faults.bytes(Cut(at=900), role="control", direction=DOWN)
    stage.trainer(stage.work)
    async with stage.backend(trace=trace, name="site-1") as trainer:
        for n in range(3):
            await trainer.execute("train", {"x": n})


async def launched_again(stage: Stage, trace: Path) -> None:
    """A trainer a task."""
    stage.trainer(stage.work)
    async with stage.backend(trace=trace, name="site-1", persistent=False) as trainer:
        for n in range(3):
            await trainer.execute("train", {"x": n})


async def killed(stage: Stage, trace: Path) -> None:
    """A trainer that is killed at its second task."""

    async def dies(session: TrainerSession, process: SimProcess) -> None:
        await session.init()
        first = await session.receive()
        assert first is not None
        await session.send(first.payload)
        await session.receive()
        process.deliver(signal.SIGKILL)
        await trio.sleep_forever()

    stage.trainer(dies)
    try:
        async with stage.backend(trace=trace, name="site-1") as trainer:
            for n in range(2):
                await trainer.execute("train", {"x": n})
    except SessionError:
        pass


async def cancelled(stage: Stage, trace: Path) -> None:
    """A task whose caller gives up, one more, and an abort."""

    async def slow(session: TrainerSession, _process: SimProcess) -> None:
        await session.init()
        while (task := await session.receive()) is not None:
            await trio.sleep(40)
            try:
                await session.send(task.payload)
            except SessionError:
                continue

    stage.trainer(slow)
    async with stage.backend(trace=trace, name="site-1") as trainer:
        with trio.move_on_after(7):
            await trainer.execute("train", {"x": 1})
        await trainer.execute("train", {"x": 2})
        await trainer.abort()


async def retried(stage: Stage, trace: Path) -> None:
    """Frames that are lost, late and doubled, so that everything is asked for again."""
    for code, fault in ((10, Drop()), (12, Drop()), (20, Drop()), (22, Drop()), (25, Duplicate()), (26, Delay(3.0))):
        stage.faults.frame(fault, code=code)
    stage.trainer(stage.work)
    async with stage.backend(trace=trace, name="site-1") as trainer:
        for n in range(2):
            await trainer.execute("train", {"x": n})


SCENARIOS: Mapping[str, Callable[[Stage, Path], Awaitable[None]]] = {
    each.__name__: each for each in (plain, pulled, redialled, launched_again, killed, cancelled, retried)
}
FAULTY = {"retried"}
"""Those whose network does what sockets do not."""


@frozen(eq=False)
class Run:
    """The files of a run, line by line."""

    name: str
    files: dict[str, Lines]

    @property
    def network(self) -> Network:
        """What its network may do."""
        return Network.FAULTY if self.name in FAULTY else Network.SOUND

    def copy(self) -> Run:
        """The same, to be changed."""
        return Run(self.name, deepcopy(self.files))

    def write(self, directory: Path) -> list[Path]:
        """The files, in a directory."""
        for name, lines in self.files.items():
            (directory / name).write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))
        return [directory / name for name in self.files]

    def check(self) -> Checked:
        """What a check says. Raises what it raises."""
        with tempfile.TemporaryDirectory() as directory:
            return check_files(self.write(Path(directory)), network=self.network)

    def check_live(self) -> Checked:
        """The same, step by step and without files, as while it went on: in virtual time, where nothing is late."""
        check = RunCheck(self.network, punctual=True)
        waiting: dict[str, list[tuple[PartyCheck, Record]]] = {}
        for file, lines in self.files.items():
            header, *rest = [json.dumps(line) for line in lines]
            party = check.open(file, read_header(header))
            records = [record for text in rest if isinstance(record := read_line(codec(), text), Record)]
            waiting.setdefault(party.driver.name, []).extend((party, record) for record in records)
        for steps in waiting.values():
            steps.sort(key=lambda each: each[1].turn)
        while any(waiting.values()):
            heads = sorted((steps for steps in waiting.values() if steps), key=lambda steps: steps[0][1].t_ns)
            steps = next((steps for steps in heads if steps[0][0].may(steps[0][1])), heads[0])
            party, record = steps.pop(0)
            party.add(record)
        for party in check.parties:
            party.close(End(party.steps))
        return check.finish()

    def steps(self, file: str) -> Lines:
        """The steps of a file: its lines without header and end."""
        return [line for line in self.files[file][1:] if "end" not in line]

    def find(self, part: str, fits: Callable[[dict[str, Any]], bool]) -> tuple[str, int]:
        """The file whose name has that part, and the place in it of the first line that fits."""
        for name, lines in self.files.items():
            if part in name:
                for place, line in enumerate(lines):
                    if "event" in line and fits(line):
                        return name, place
        raise LookupError(f"no such line in any {part} of {self.name}")


@lru_cache(None)
def recorded(name: str) -> Run:
    """The run of a scenario. Not to be changed."""
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory)
        run(partial(_play, SCENARIOS[name], trace))
        return read(name, trace)


async def _play(scenario: Callable[[Stage, Path], Awaitable[None]], trace: Path) -> None:
    async with staged(Faults()) as stage:
        stage.trace = trace
        await scenario(stage, trace)


def read(name: str, directory: Path) -> Run:
    """What was recorded in a directory."""
    paths = sorted(directory.iterdir())
    return Run(name, {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in paths})
