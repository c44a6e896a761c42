"""The guardian's process as its host sees it: how it is started, what it says on its standard error, and how it is ended."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
from collections import deque
from pathlib import Path

import trio

from troth.runtime.errors import SpawnFailed
from troth.runtime.processes import table
from troth.runtime.processes.channel import Channel
from troth.runtime.processes.logs import Lines

log = logging.getLogger("troth.guardian")

MAIN = Path(__file__).with_name("guardian_main.py")
LAST_WORDS = 20
"""Lines of its standard error that are kept."""
LAST_WORDS_S = 1.0
"""How long its exit, and the end of its standard error, are waited for once it was killed."""


class GuardianProcess:
    """A guardian that was started. ``start`` makes these."""

    def __init__(self, python: str, process: trio.Process, channel: Channel) -> None:
        self.channel = channel
        self.loud = False
        """Whether what it says is logged as it comes. Before it has started, it is kept for the error."""
        self._python = python
        self._process = process
        self._said: deque[str] = deque(maxlen=LAST_WORDS)
        self._silent = trio.Event()

    @property
    def pid(self) -> int:
        """Its number, for tests and logs."""
        return self._process.pid

    def failure(self) -> SpawnFailed:
        """The error to raise if it has not started, with what it said."""
        said = "".join(f"\n  {line}" for line in self._said) or " it said nothing"
        return SpawnFailed(f"the guardian did not start, with {self._python}:{said}")

    async def listen(self) -> None:
        """Take what it says on its standard error, until that ends."""
        stream = self._process.stderr
        if stream is None:
            raise AssertionError("it was started with a pipe")
        lines = Lines()
        async with stream:
            async for data in stream:
                self._hear(lines.feed(bytes(data)))
        self._hear(lines.finish())
        self._silent.set()

    def _hear(self, lines: list[str]) -> None:
        self._said.extend(lines)
        for line in lines if self.loud else ():
            log.warning("%s", line)

    def abandon(self) -> None:
        """In a forked child of the host: hold nothing of it open."""
        self.channel.close()
        stderr = self._process.stderr
        if isinstance(stderr, trio.lowlevel.FdStream) and stderr.fileno() >= 0:
            # The stream believes that it owns this number, so something has to be there when it closes it.
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, stderr.fileno(), inheritable=False)
            os.close(nothing)

    async def wait(self) -> None:
        """Until it is gone."""
        await self._process.wait()

    async def end(self) -> None:
        """Kill it if it is still there, and wait, not for long, until it is gone and has said its last."""
        if self._process.poll() is None:
            self._process.kill()
        with trio.move_on_after(LAST_WORDS_S, shield=True):
            await self._process.wait()
            await self._silent.wait()


async def start(python: str) -> GuardianProcess:
    """Start a guardian for this process. Raises ``SpawnFailed``."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    try:
        with theirs:
            # A session of its own: Ctrl-C in the terminal is the host's to handle. Isolated: no user's module gets in its way.
            process = await trio.lowlevel.open_process(
                [python, "-I", "-S", str(MAIN), str(theirs.fileno()), "table" if table.SEES_PROCESSES else "groups"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
            )
    except OSError as error:
        channel.close()
        raise SpawnFailed(f"the guardian did not start, with {python}: {error.strerror}") from None
    except BaseException:
        channel.close()
        raise
    if table.SEES_PROCESSES:
        try:
            channel.put({"do": "host"}, [os.pidfd_open(os.getpid())])
        except OSError:
            log.debug("the guardian is gone already")  # whoever listens to it hears that, and what it said
    return GuardianProcess(python, process, channel)
