"""Processes in memory: a process table in which functions play the trainers, on trio's clock.

Rule 1.  It keeps the promises of the real port: nothing is reported as gone before all of it is, what a leader leaves behind gets TERM,
         a grace and KILL, and ``GuardianLost`` comes last.
Rule 2.  Nothing here takes time but what is asked to: under a ``MockClock`` a grace of two seconds is over at once.
Rule 3.  A ``TrothError`` that a player lets out ends its process with status 1, as it would end a script. Any other error is the test's.
"""

from __future__ import annotations

import inspect
import signal as signals
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import trio
from attrs import define, field, frozen

from troth.runtime.errors import Misuse, SpawnFailed, TrothError
from troth.runtime.ports import Exited, ExitStatus, Files, GuardianLost, Launch, ProcessEvent
from troth.spec.core import ProcessSignal

OWNER_DEATH_GRACE_S = 2.0
DESCENDANTS_GRACE_S = 2.0
ORPHANS_LIMIT_S = 5.0
EVENTS_LIMIT = 1024
"""These four as in ``processes``; a test says so."""

Play: TypeAlias = "Callable[[SimProcess], Awaitable[int | None] | int | None]"
"""Plays a process; what it returns is its exit status, ``None`` stands for 0."""


@frozen
class Living:
    """A process of a snapshot."""

    launch_id: str
    pid: int
    leader: bool


@define(eq=False)
class SimProcess:
    """A process, as its player has it."""

    launch: Launch
    pid: int
    leader: bool
    takes_term: bool = False
    """Whether TERM sets ``term`` and nothing else. Without that it ends the process."""
    stuck: bool = False
    """Whether no signal has an effect, KILL neither, as in a system call that never returns; ``SimProcesses.unstick`` ends that."""
    term: trio.Event = field(factory=trio.Event)
    """TERM has come."""
    owner_lost: trio.Event = field(factory=trio.Event)
    """The end of the owner pipe has come."""
    _table: SimProcesses = field(kw_only=True, alias="table")
    _scope: trio.CancelScope = field(init=False, factory=trio.CancelScope)
    _signal: int | None = field(init=False, default=None)

    def fork(self, play: Play, *, takes_term: bool = False) -> SimProcess:
        """A descendant. It lives until it ends by itself or is signalled; it makes no difference whose child it is."""
        return self._table.start(self.launch, play, leader=False, takes_term=takes_term)

    def deliver(self, number: int) -> None:
        """A signal has come, from wherever."""
        if number == signals.SIGTERM:
            self.term.set()
            if self.takes_term:
                return
        if self._signal is None:
            self._signal = int(number)
        self.unless_stuck()

    def unless_stuck(self) -> None:
        """Die of the signal that has come, if one has and nothing holds the process."""
        if self._signal is not None and not self.stuck:
            self._scope.cancel()

    async def run(self, play: Play) -> ExitStatus:
        """Be played to the end."""
        # Shielded: only signals end a process, not whatever becomes of those who wait for it.
        self._scope.shield = True
        with self._scope:
            await trio.lowlevel.checkpoint()  # who was killed before it ran does not run
            try:
                outcome = play(self)
                code = await outcome if inspect.isawaitable(outcome) else outcome
            except TrothError as error:
                self._table.crashes.append(error)
                code = 1
            while self.stuck:
                await self._table.moved.wait()
            return ExitStatus(code=code or 0)
        return ExitStatus(signal=self._signal)


@define(eq=False)
class _Ward:
    """A launch."""

    leader: SimProcess
    status: ExitStatus | None = None
    unheard: bool = False


class SimProcesses:
    """A process table. ``async with SimProcesses() as processes: ...``; on leaving, everything is ended, as the guardian does it.

    ``files`` is where registered paths are removed from when the host is lost, or on leaving.
    """

    def __init__(self, files: Files | None = None) -> None:
        self.registered: dict[Path, None] = {}
        """What must not outlive the host."""
        self.crashes: list[TrothError] = []
        """What players have let out."""
        self.spawn_delay_s = 0.0
        """How long a start takes from now on."""
        self.heard_delay_s = 0.0
        """How much later it is heard of: the process runs meanwhile."""
        self.moved = trio.Event()
        """Set, and replaced, whenever a process has begun, has ended or is unstuck."""
        self._files = files
        self._programs: dict[str, tuple[Play, bool]] = {}
        self._failures: list[str] = []
        self._wards: dict[str, _Ward] = {}
        self._alive: dict[int, SimProcess] = {}
        self._next_pid = 1000
        self._send, self._events = trio.open_memory_channel[ProcessEvent](EVENTS_LIMIT + 1)
        self._manager: AbstractAsyncContextManager[trio.Nursery] = trio.open_nursery()
        self._nursery: trio.Nursery | None = None
        self._guarded = True
        self._hosted = True

    # -- for tests -----------------------------------------------------------------------------------------------------

    def program(self, name: str, play: Play, *, takes_term: bool = False) -> None:
        """What runs when a command begins with ``name``."""
        self._programs[name] = (play, takes_term)

    def fail_spawns(self, *reasons: str) -> None:
        """The next spawns fail, one for each of these reasons."""
        self._failures.extend(reasons)

    def unstick(self, launch_id: str) -> None:
        """What was stuck in this launch is so no more."""
        for process in self._of(launch_id):
            process.stuck = False
            process.unless_stuck()
        self._move()

    def snapshot(self) -> frozenset[Living]:
        """What lives."""
        return frozenset(Living(process.launch.launch_id, process.pid, process.leader) for process in self._alive.values())

    def processes(self, launch_id: str) -> list[SimProcess]:
        """What lives of a launch, the leader first."""
        return sorted(self._of(launch_id), key=lambda process: not process.leader)

    async def lose_guardian(self) -> None:
        """The guardian dies: everything is killed, then the ends and the loss are reported."""
        self._guarded = False
        for process in self._alive.values():
            process.owner_lost.set()
        with trio.move_on_after(ORPHANS_LIMIT_S):
            await self._kill(lambda: list(self._alive.values()))
        left = {process.launch.launch_id for process in self._alive.values()}
        for launch_id, ward in list(self._wards.items()):
            del self._wards[launch_id]
            if launch_id not in left and not ward.unheard:
                self._report(Exited(launch_id, ExitStatus()))
        self._report(GuardianLost())

    async def lose_host(self) -> None:
        """The host dies: nobody hears any more, everything is ended, and what is registered is removed."""
        self._hosted = False
        await self._end_all()

    # -- the port ------------------------------------------------------------------------------------------------------

    @property
    def events(self) -> trio.MemoryReceiveChannel[ProcessEvent]:
        """What happens to the processes."""
        return self._events

    async def spawn(self, launch: Launch) -> int:
        """Start a process; its pid. Raises ``SpawnFailed``; ``Misuse`` for a launch id that is in use."""
        self._check(launch)
        if self._failures:
            raise SpawnFailed(f"{launch.name}: {self._failures.pop(0)}")
        play, takes_term = self._programs[launch.command[0]]
        await trio.sleep(self.spawn_delay_s)
        self._check(launch)
        leader = self.start(launch, play, leader=True, takes_term=takes_term)
        ward = self._wards[launch.launch_id] = _Ward(leader)
        try:
            await trio.sleep(self.heard_delay_s)
        except trio.Cancelled:
            ward.unheard = True
            self.signal(launch.launch_id, ProcessSignal.KILL)
            raise
        return leader.pid

    def _check(self, launch: Launch) -> None:
        if launch.launch_id in self._wards:
            raise Misuse(f"{launch.name}: the launch id {launch.launch_id} is in use")
        if not self._guarded or not self._hosted or self._nursery is None:
            raise SpawnFailed(f"{launch.name}: there is no guardian to start it")
        if launch.command[0] not in self._programs:
            raise SpawnFailed(f"{launch.name}: cannot run {launch.command[0]!r}: there is no such program")
        if len(self._wards) + self._events.statistics().current_buffer_used >= EVENTS_LIMIT:
            raise SpawnFailed(f"{launch.name}: {EVENTS_LIMIT} launches live already, or their ends were not taken from events")

    def signal(self, launch_id: str, signal: ProcessSignal) -> bool:
        """Signal everything that the launch consists of; whether there was anything to signal."""
        for process in self._of(launch_id):
            process.deliver(signals.SIGTERM if signal is ProcessSignal.TERM else signals.SIGKILL)
        return launch_id in self._wards

    def register(self, path: Path) -> None:
        """A path that must not outlive this process."""
        self.registered[path] = None

    def unregister(self, path: Path) -> None:
        """It was removed in order."""
        self.registered.pop(path, None)

    # -- inside --------------------------------------------------------------------------------------------------------

    def start(self, launch: Launch, play: Play, *, leader: bool, takes_term: bool) -> SimProcess:
        """Put a process into the table, and let it be played."""
        if self._nursery is None:
            raise Misuse("the process table is not open")
        self._next_pid += 1
        process = SimProcess(launch, self._next_pid, leader, takes_term, table=self)
        self._alive[process.pid] = process
        self._move()
        self._nursery.start_soon(self._play, process, play)
        return process

    async def _play(self, process: SimProcess, play: Play) -> None:
        try:
            status = await process.run(play)
        finally:
            del self._alive[process.pid]
            self._move()
        ward = self._wards.get(process.launch.launch_id)
        if ward is None or self._nursery is None:
            return
        if process.leader:
            ward.status = status
            if self._guarded and self._of(process.launch.launch_id):
                self._nursery.start_soon(self._end, self._of(process.launch.launch_id), DESCENDANTS_GRACE_S)
        if self._guarded and ward.status is not None and not self._of(process.launch.launch_id):
            del self._wards[process.launch.launch_id]
            if not ward.unheard:
                self._report(Exited(process.launch.launch_id, ward.status))

    def _of(self, launch_id: str) -> list[SimProcess]:
        return [process for process in self._alive.values() if process.launch.launch_id == launch_id]

    def _move(self) -> None:
        self.moved.set()
        self.moved = trio.Event()

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            await self.moved.wait()

    async def _end(self, processes: list[SimProcess], grace_s: float) -> None:
        """TERM, a grace, KILL."""
        launches = {process.launch.launch_id for process in processes}

        def left() -> list[SimProcess]:
            return [process for process in self._alive.values() if process.launch.launch_id in launches]

        for process in processes:
            process.deliver(signals.SIGTERM)
        with trio.move_on_after(grace_s):
            await self._until(lambda: not left())
        await self._kill(left)

    async def _kill(self, left: Callable[[], list[SimProcess]]) -> None:
        """KILL until nothing is left; what was forked meanwhile, too."""
        while left():
            for process in left():
                process.deliver(signals.SIGKILL)
            await self.moved.wait()

    async def _end_all(self) -> None:
        for process in self._alive.values():
            process.owner_lost.set()
        with trio.CancelScope(shield=True), trio.move_on_after(OWNER_DEATH_GRACE_S + ORPHANS_LIMIT_S):
            await self._end(list(self._alive.values()), OWNER_DEATH_GRACE_S)
        for path in sorted(self.registered, key=lambda path: -len(path.parts)):
            if self._files is not None:
                self._files.remove(path)
        self.registered.clear()

    def _report(self, event: ProcessEvent) -> None:
        if not self._hosted:
            return
        try:
            self._send.send_nowait(event)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # nobody wants to hear it, or the table is closed

    async def __aenter__(self) -> SimProcesses:
        self._nursery = await self._manager.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._end_all()
        self._send.close()
        for process in self._alive.values():
            process.stuck = False
            process.deliver(signals.SIGKILL)
        self._move()
        await self._manager.__aexit__(None, None, None)
