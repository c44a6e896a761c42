"""One guardian for several backends of one process: each hears of its own launches alone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from attrs import define, field

from troth.runtime.ports import Exited, GuardianLost, Launch, Processes, ProcessEvent
from troth.spec.core import ProcessSignal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

EVENTS_LIMIT = 1024
"""Launches of one backend that live, or whose end it has not taken yet."""


@define(eq=False)
class Share:
    """The part of a shared guardian that one backend sees."""

    _shared: Sharing
    _send: trio.MemorySendChannel[ProcessEvent]
    events: trio.MemoryReceiveChannel[ProcessEvent]

    async def spawn(self, launch: Launch) -> int:
        """Start a process; its pid. Raises ``SpawnFailed``."""
        self._shared.owners[launch.launch_id] = self
        try:
            return await self._shared.processes.spawn(launch)
        except BaseException:
            self._shared.owners.pop(launch.launch_id, None)
            raise

    def signal(self, launch_id: str, signal: ProcessSignal) -> bool:
        """Signal everything that the launch consists of."""
        return self._shared.processes.signal(launch_id, signal)

    def register(self, path: Path) -> None:
        """A file that must not outlive this process."""
        self._shared.processes.register(path)

    def unregister(self, path: Path) -> None:
        """It was removed in order."""
        self._shared.processes.unregister(path)

    def tell(self, event: ProcessEvent) -> None:
        """An event of this backend's. A backend that lets its own launches pile up has stopped, and hears no more."""
        try:
            self._send.send_nowait(event)
        except (trio.WouldBlock, trio.BrokenResourceError):
            self._send.close()
        except trio.ClosedResourceError:
            pass


@define(eq=False)
class Sharing:
    """Deals out what one guardian reports."""

    processes: Processes
    owners: dict[str, Share] = field(factory=dict)
    _shares: list[Share] = field(factory=list)

    def share(self) -> Share:
        """A part for one backend."""
        send, receive = trio.open_memory_channel[ProcessEvent](EVENTS_LIMIT)
        self._shares.append(Share(self, send, receive))
        return self._shares[-1]

    async def run(self) -> None:
        """Deal out, until the guardian says nothing more."""
        async for event in self.processes.events:
            match event:
                case Exited(launch_id=launch_id):
                    owner = self.owners.pop(launch_id, None)
                    if owner is not None:
                        owner.tell(event)
                case GuardianLost():
                    for share in self._shares:
                        share.tell(event)


@asynccontextmanager
async def shared(processes: Processes) -> AsyncIterator[Sharing]:
    """Share a guardian: ``async with Guardian() as guardian, shared(guardian) as sharing: ...``, and ``sharing.share()`` a backend."""
    sharing = Sharing(processes)
    # Backends end their launches in order even if the application is cancelled, and hear of their ends through this.
    scope = trio.CancelScope(shield=True)

    async def run() -> None:
        with scope:
            await sharing.run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            yield sharing
        finally:
            scope.cancel()
