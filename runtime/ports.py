"""The ports: all of the outside that the runtime touches. The real ones are in ``system`` and ``processes``, others in ``sim``.

Rule 1.  Nothing outside the implementations of these opens a socket, a file or a process.
Rule 2.  What must be atomic with a protocol step does not wait: ``send_nowait``, ``signal``, ``close`` return at once.
Rule 3.  Time is trio's clock, so a ``MockClock`` is all that virtual time needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import trio
from attrs import field, frozen

from troth.spec.core import ProcessSignal

Buffer: TypeAlias = bytes | bytearray | memoryview


class Stream(Protocol):
    """A connected stream of bytes."""

    @property
    def peer_uid(self) -> int | None:
        """The user that owns the other end, where the system says so (Unix sockets)."""
        ...

    def send_nowait(self, data: Buffer) -> int:
        """Hand over as many bytes as fit now, and say how many: 0 if it would block. Raises ``LinkDown``."""
        ...

    async def send_all(self, data: Buffer) -> None:
        """Hand over all of it. Raises ``LinkDown``."""
        ...

    async def receive_into(self, view: memoryview) -> int:
        """Wait for bytes and put them into ``view``; how many, or 0 at the end. Raises ``LinkDown``."""
        ...

    def close(self) -> None:
        """Close at once. Whoever waits in the other methods gets ``LinkDown``. May be called again."""
        ...


class Listener(Protocol):
    """Where connections come in."""

    @property
    def endpoint(self) -> str:
        """Where it listens, ready for ``dial``: ``unix:/path`` or ``tcp:127.0.0.1:PORT``."""
        ...

    async def accept(self) -> Stream:
        """The next connection. Raises ``LinkDown`` once closed."""
        ...

    def close(self) -> None:
        """Stop listening, and remove the socket file if there is one. May be called again."""
        ...


class Network(Protocol):
    """Makes streams."""

    async def listen(self, endpoint: str) -> Listener:
        """Listen at ``endpoint``; ``tcp:127.0.0.1:0`` takes a free port."""
        ...

    async def dial(self, endpoint: str) -> Stream:
        """Connect. Raises ``LinkDown`` if nobody is there."""
        ...


@frozen
class Launch:
    """A process to start."""

    launch_id: str
    """Names the launch, to the guardian and in the environment of the process."""
    name: str
    """What logs and errors call the process."""
    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    """The whole environment, nothing is added but what the guardian needs."""
    directory: Path


@frozen
class ExitStatus:
    """How the leader of a launch ended: ``code`` is its exit status, or ``signal`` what killed it; both ``None`` if it is not known."""

    code: int | None = None
    signal: int | None = None

    @property
    def clean(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.code == 0


@frozen
class Exited:
    """Nothing of the launch is left: the leader and all its descendants are gone and reaped."""

    launch_id: str
    status: ExitStatus


@frozen
class GuardianLost:
    """The guardian is gone; nobody starts or reports processes any more. Said once, last."""


ProcessEvent: TypeAlias = Exited | GuardianLost


class Processes(Protocol):
    """Starts, signals and watches processes."""

    @property
    def events(self) -> trio.MemoryReceiveChannel[ProcessEvent]:
        """What happens to the processes."""
        ...

    async def spawn(self, launch: Launch) -> int:
        """Start a process; its pid. Raises ``SpawnFailed``."""
        ...

    def signal(self, launch_id: str, signal: ProcessSignal) -> bool:
        """Signal everything that the launch consists of; whether there was anything to signal."""
        ...

    def register(self, path: Path) -> None:
        """A file or socket that must not outlive this process: the guardian removes it if this process disappears."""
        ...

    def unregister(self, path: Path) -> None:
        """It was removed in order."""
        ...


class Files(Protocol):
    """Writes the few files that there are."""

    def private_directory(self) -> Path:
        """A new directory that only this user can enter."""
        ...

    def write_private(self, path: Path, data: bytes) -> None:
        """Create or replace ``path``, readable by this user alone from its first byte on, whole or not at all."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file or an empty directory; nothing happens if it is not there."""
        ...
