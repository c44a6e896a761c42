"""Kills a process between any two effects of its steps: what it had handed to the system by then is there, and nothing after it.

A process that is killed has no last words. Its sockets are closed by the system, and what it had written arrives; its queues, timers and
tasks are gone. Here its tasks cannot vanish, so they are made to end with ``Died``, and everything that they could still reach is dead.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, field

from tests.runtime.sessions.stage import Stage
from troth.runtime.driver import Driver, Hosted
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import PARTY, TrainerSession
from troth.spec.core import Effect, Event, Step


class Died(BaseException):
    """The process of this task was killed."""


@define(eq=False)
class Crasher:
    """Kills the process of ``side`` at its ``at``-th boundary: before each effect of its cores, and after the last one of each step."""

    side: str
    at: int | None = None
    """``None`` to count them only."""
    seen: int = 0
    kill: Callable[[Driver], None] = field(init=False)
    """What the system does to a process that is killed."""
    dead: list[Driver] = field(factory=list)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand between every driver and its effects from now on."""
        perform, handle, give = Driver._perform, Driver._handle, Driver.give

        def performed(driver: Driver, party: str, hosted: Hosted, effect: Effect) -> None:
            self._boundary(driver)
            perform(driver, party, hosted, effect)

        def handled(driver: Driver, party: str, event: Event) -> Step | None:
            step = handle(driver, party, event)
            self._boundary(driver)
            return step

        def given(driver: Driver, party: str, event: Event) -> Step | None:
            if driver in self.dead:
                raise Died
            return give(driver, party, event)

        monkeypatch.setattr(Driver, "_perform", performed)
        monkeypatch.setattr(Driver, "_handle", handled)
        monkeypatch.setattr(Driver, "give", given)

    def _boundary(self, driver: Driver) -> None:
        if driver in self.dead:
            raise Died
        if self.dead or ("trainer" if PARTY in driver else "host") != self.side:
            return
        self.seen += 1
        if self.seen - 1 == self.at:
            self.dead.append(driver)
            self.kill(driver)
            raise Died


@define(eq=False)
class Mortal:
    """A port of a process that may be killed: after that its methods do nothing, whoever calls them while the tasks of it end."""

    port: Any
    crasher: Crasher

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.port, name)
        if not self.crasher.dead or not callable(found):
            return found
        if name == "spawn":
            raise Died
        return lambda *_arguments, **_named: None


def hang_up(stage: Stage, launch: bytes) -> None:
    """The system closes the sockets of a trainer."""
    for connection in stage.network.connections:
        if connection.launch in (None, launch):
            connection.dialler.close()


def hang_up_all(stage: Stage) -> None:
    """The system closes the sockets of the host."""
    for connection in stage.network.connections:
        connection.acceptor.close()
    for listener in list(stage.network._listeners.values()):
        listener.close()


def mortal_trainers(stage: Stage, crasher: Crasher) -> None:
    """The stage's trainers send back what comes, and may be killed."""
    processes: dict[Driver, tuple[TrainerSession, SimProcess]] = {}

    async def script(session: TrainerSession, process: SimProcess) -> None:
        processes[session._driver] = session, process
        await stage.work(session, process)

    async def play(process: SimProcess) -> int:
        try:
            return await stage._play(script, None, process)
        except BaseException:
            if process._signal is None:
                raise
            return 1  # it has been killed, and that is what is reported

    def kill(driver: Driver) -> None:
        session, process = processes[driver]
        hang_up(stage, session.bootstrap.launch)
        process.deliver(signal.SIGKILL)

    crasher.kill = kill
    stage.processes.program("trainer", play)
