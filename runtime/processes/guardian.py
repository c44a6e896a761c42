"""The guardian as its host sees it: the ``Processes`` port, over a process that outlives the host by a few seconds.

Rule 1.  The guardian is asked by messages and answers by messages; nothing here waits for it but ``spawn`` and ``close``.
Rule 2.  If the guardian is gone though nobody asked it to go, everything that it started is killed from here, the launches of which
         nothing is left are reported with an end that is not known, and ``GuardianLost`` is the last word.
Rule 3.  A forked child of the host has nothing of this: not the socket, whose end tells the guardian that the host is gone, no pipe, no
         pidfd.
Rule 4.  No error and no log shows a command's arguments or an environment.
"""

from __future__ import annotations

import logging
import os
import sys
import weakref
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType

import trio
from attrs import define, field

from troth.runtime.errors import Misuse, SpawnFailed
from troth.runtime.ports import Exited, ExitStatus, GuardianLost, Launch, ProcessEvent
from troth.runtime.processes.channel import Channel, ChannelError, Message
from troth.runtime.processes.guarding import KILL_LIMIT_S, OWNER_DEATH_GRACE_S, PROTOCOL
from troth.runtime.processes.leftovers import Leftovers
from troth.runtime.processes.logs import TrainerOutput, safe_name
from troth.runtime.processes.orders import spawn_order, why_unable
from troth.runtime.processes.orphans import Orphan, kill_orphans
from troth.runtime.processes.starting import GuardianProcess, start
from troth.spec.core import ProcessSignal

log = logging.getLogger("troth.guardian")

START_LIMIT_S = 10.0
"""From starting the guardian to its first word. It needs some tens of milliseconds on an idle machine."""
SPAWN_LIMIT_S = 60.0
"""From asking for a process to hearing that it runs. It needs some milliseconds; a file system that does not answer needs longer."""
CLOSE_LIMIT_S = OWNER_DEATH_GRACE_S + KILL_LIMIT_S + 1.0
"""From telling the guardian to end everything to its own end."""
EVENTS_LIMIT = 1024
"""Launches that live, or whose end was not taken from ``events`` yet."""
ORPHANS_LIMIT_S = 5.0
"""How long what is left of the launches is killed again and again, when the guardian is gone."""


@define(eq=False)
class _Held:
    """A launch that was asked for and is not known to be gone."""

    launch: Launch
    output: TrainerOutput
    pid: int | None = None
    pidfd: int | None = None
    failure: str = ""
    unheard: bool = False
    """Whether whoever asked for it has left, so that nobody wants to hear of its end."""
    answered: trio.Event = field(factory=trio.Event)


class Guardian:
    """One guardian. ``async with Guardian() as processes: ...``; on leaving, everything that was started is ended.

    ``logs`` is a directory for what the trainers print, a file each. ``python`` is the interpreter that runs the guardian.
    Entering raises ``SpawnFailed``, with what the guardian said, if it does not start.
    """

    def __init__(self, *, logs: Path | None = None, python: str | None = None) -> None:
        self._logs = logs
        self._python = python or sys.executable
        self._manager: AbstractAsyncContextManager[trio.Nursery] = trio.open_nursery()
        self._process: GuardianProcess | None = None
        self._held: dict[str, _Held] = {}
        self._leftovers = Leftovers()
        self._send, self._events = trio.open_memory_channel[ProcessEvent](EVENTS_LIMIT + 1)
        self._scope = trio.CancelScope(shield=True)
        self._nursery: trio.Nursery | None = None
        self._ready = trio.Event()
        self._over = trio.Event()
        """The socket has ended, and what had to be done about that is done."""
        self._full = trio.Event()
        """Something waits to be sent."""
        self._closing = False
        self._closed = False
        self._lost = False

    # -- the port ------------------------------------------------------------------------------------------------------

    @property
    def events(self) -> trio.MemoryReceiveChannel[ProcessEvent]:
        """What happens to the processes. Ends after ``close``; ``GuardianLost`` is the last event if the guardian was lost."""
        return self._events

    async def spawn(self, launch: Launch) -> int:
        """Start a process; its pid. Raises ``SpawnFailed``; ``Misuse`` for a launch id that is in use.

        If the caller is cancelled, the process is killed, and its end is not reported. Its end may be reported before this returns.
        """
        order = spawn_order(launch)
        if self._process is None or self._closing or self._lost:
            raise SpawnFailed(f"{launch.name}: there is no guardian to start it")
        if launch.launch_id in self._held:
            raise Misuse(f"{launch.name}: the launch id {launch.launch_id} is in use")
        if len(self._held) + self._events.statistics().current_buffer_used >= EVENTS_LIMIT:
            raise SpawnFailed(f"{launch.name}: {EVENTS_LIMIT} launches live already, or their ends were not taken from events")
        held = self._hold(launch, order)
        try:
            with trio.move_on_after(SPAWN_LIMIT_S):
                await held.answered.wait()
        except BaseException:
            self._give_up(held)
            raise
        if not held.answered.is_set():
            self._give_up(held)
            raise SpawnFailed(f"{launch.name}: the guardian did not start it within {SPAWN_LIMIT_S:g} s")
        if held.pid is None:
            raise SpawnFailed(held.failure)
        return held.pid

    def _hold(self, launch: Launch, order: Message) -> _Held:
        """Ask the guardian for it."""
        file = None if self._logs is None else self._logs / f"{safe_name(launch.name)}.log"
        try:
            reading, writing = os.pipe()
        except OSError as error:
            raise SpawnFailed(f"{launch.name}: {error.strerror}") from None
        held = _Held(launch, TrainerOutput(launch.name, reading, file))
        if not self._tell(order, [writing]):
            held.output.finish()
            raise SpawnFailed(f"{launch.name}: the guardian is gone, or its command and environment are too large")
        self._held[launch.launch_id] = held
        if self._nursery is not None:
            self._nursery.start_soon(held.output.run)
        return held

    def _give_up(self, held: _Held) -> None:
        held.unheard = True
        self.signal(held.launch.launch_id, ProcessSignal.KILL)

    def signal(self, launch_id: str, signal: ProcessSignal) -> bool:
        """Signal everything that the launch consists of; whether there was anything to signal, as far as is known here."""
        if launch_id not in self._held:
            return False
        # If the guardian is lost, everything is being killed anyway.
        return self._lost or self._tell({"do": "signal", "id": launch_id, "signal": signal.value})

    def register(self, path: Path) -> None:
        """A file, socket or directory that must not outlive this process. Files go first, then the directories that are empty."""
        at = _real(path)
        self._leftovers.add(at)
        self._tell({"do": "register", "path": at})

    def unregister(self, path: Path) -> None:
        """It was removed in order."""
        at = _real(path)
        self._leftovers.drop(at)
        self._tell({"do": "unregister", "path": at})

    def last_lines(self, launch_id: str) -> list[str]:
        """What a launch that lives printed last, at most ``LAST_LINES`` lines."""
        held = self._held.get(launch_id)
        return [] if held is None else list(held.output.last)

    # -- begin and end -------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Guardian:
        process = self._process = await start(self._python)
        _GUARDIANS.add(self)
        nursery = await self._manager.__aenter__()
        try:
            await nursery.start(self._serve, process)
            with trio.move_on_after(START_LIMIT_S):
                await self._ready.wait()
        except BaseException:
            await self._leave()
            raise
        if self._lost or not self._ready.is_set():
            await self._leave()
            raise process.failure()
        process.loud = True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._leave()

    async def _leave(self) -> None:
        await self.close()
        self._scope.cancel()
        await self._manager.__aexit__(None, None, None)

    async def close(self) -> None:
        """End everything that was started: TERM, after ``OWNER_DEATH_GRACE_S`` KILL; then remove what is registered. Takes at most
        ``CLOSE_LIMIT_S`` and a little, also if the caller is cancelled. May be called again."""
        if self._closed:
            return
        self._closing = True
        process = self._process
        with trio.CancelScope(shield=True):
            if process is not None:
                process.channel.finish()
                with trio.move_on_after(CLOSE_LIMIT_S):
                    await self._over.wait()
                    await process.wait()
                await process.end()
            await self._kill_held()
        for line in self._leftovers.remove():
            log.warning("%s", line)
        self._closed = True
        self._send.close()
        if process is not None:
            trio.lowlevel.notify_closing(process.channel)
            process.channel.close()
        _GUARDIANS.discard(self)

    async def _kill_held(self) -> None:
        """Without the guardian: kill what is left, and report what is gone."""
        if not self._held:
            return
        orphans = [Orphan(held.launch.launch_id, held.pid, held.pidfd) for held in self._held.values()]
        gone = await kill_orphans(orphans, ORPHANS_LIMIT_S)
        for launch_id, held in list(self._held.items()):
            if launch_id not in gone:
                log.error("%s: something of it does not end, though it was killed; its leader is %s", held.launch.name, held.pid)
                held.unheard = True
            held.failure = f"{held.launch.name}: the guardian was lost before it was heard to start"
            self._let_go(held, ExitStatus())

    # -- the background ------------------------------------------------------------------------------------------------

    async def _serve(self, process: GuardianProcess, *, task_status: trio.TaskStatus[None]) -> None:
        # Shielded: what is left to do when the host is cancelled is done in close(), and needs these.
        with self._scope:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._listen, process)
                self._nursery.start_soon(self._write, process.channel)
                self._nursery.start_soon(process.listen)
                task_status.started()
                await trio.sleep_forever()

    async def _listen(self, process: GuardianProcess) -> None:
        try:
            while True:
                await trio.lowlevel.wait_readable(process.channel)
                for message, descriptors in process.channel.take():
                    self._hear(message, descriptors)
        except ChannelError as error:
            log.error("the guardian does not speak the protocol: %s", error)  # noqa: TRY400 -- where it was noticed says nothing
        except (EOFError, OSError, trio.ClosedResourceError):
            log.debug("the guardian has closed its end")
        if not self._closing:
            await self._lose(process)
        self._over.set()

    async def _lose(self, process: GuardianProcess) -> None:
        self._lost = True
        await process.end()
        if self._ready.is_set():
            log.error("the guardian is gone, so what it had started is killed")
        await self._kill_held()
        self._report(GuardianLost())
        self._ready.set()

    async def _write(self, channel: Channel) -> None:
        try:
            while True:
                await self._full.wait()
                self._full = trio.Event()
                while not channel.flush():
                    await trio.lowlevel.wait_writable(channel)
        except (OSError, trio.ClosedResourceError):
            return  # the guardian is gone, and the other task hears of that

    def _tell(self, message: Message, descriptors: list[int] | None = None) -> bool:
        """Send it; False if it cannot be sent."""
        process = self._process
        if process is None or self._closing or self._lost:
            for descriptor in descriptors or ():
                os.close(descriptor)
            return False
        try:
            process.channel.put(message, descriptors or ())
        except OSError:
            return False  # its end has come, and is being heard of
        except ChannelError as error:
            log.error("the guardian is not told: %s", error)  # noqa: TRY400 -- where it was noticed says nothing
            return False
        if process.channel.waiting:
            self._full.set()
        return True

    def _hear(self, message: Message, descriptors: list[int]) -> None:
        what = message.get("say")
        if what == "ready" and message.get("protocol") == PROTOCOL:
            self._ready.set()
            return
        held = self._held.get(message.get("id", ""))
        if held is None:
            raise ChannelError("it speaks of a launch that was not asked for")
        if what == "started":
            held.pid = message["pid"]
            held.pidfd = descriptors[0] if descriptors else None
            held.answered.set()
        elif what == "unable":
            held.failure = why_unable(held.launch, message["step"], message["errno"])
            self._let_go(held, None)
        elif what == "exited":
            self._let_go(held, ExitStatus(code=message["code"], signal=message["signal"]))

    def _let_go(self, held: _Held, status: ExitStatus | None) -> None:
        """Nothing of it is left."""
        del self._held[held.launch.launch_id]
        held.output.finish()
        if held.pidfd is not None:
            os.close(held.pidfd)
        held.answered.set()
        if status is not None and held.pid is not None and not held.unheard:
            self._report(Exited(held.launch.launch_id, status))

    def _report(self, event: ProcessEvent) -> None:
        try:
            self._send.send_nowait(event)
        except trio.BrokenResourceError:
            return  # nobody wants to hear it

    def abandon(self) -> None:
        """In a forked child of the host: close what must not be held open there. Nothing else may be called there."""
        self._closing = self._closed = True
        if self._process is not None:
            self._process.abandon()
        for held in self._held.values():
            held.output.abandon()
            if held.pidfd is not None:
                os.close(held.pidfd)
        self._held.clear()


_GUARDIANS: weakref.WeakSet[Guardian] = weakref.WeakSet()


def _abandon_all() -> None:
    for guardian in list(_GUARDIANS):
        guardian.abandon()


os.register_at_fork(after_in_child=_abandon_all)


def _real(path: Path) -> str:
    """An absolute path in which only the last part may be a link."""
    whole = os.path.abspath(path)
    return os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
