"""What lives: the process table, asked by marker and by pid. A zombie that waits for whoever adopted it counts as gone."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import trio

MARK = "TROTH_TEST_MARK"
"""An environment variable that tests give to hosts and trainers, and that everything below them inherits."""

LIMIT_S = 30.0
"""A guard against waiting for ever; nothing here takes as long on a machine that works."""


def new_mark() -> str:
    """A value for ``MARK`` that no other process has."""
    return secrets.token_hex(16)


def alive(value: str, variable: str = MARK) -> list[int]:
    """The pids of the processes that were started with ``variable=value`` in their environment and are not zombies."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(variable) == value:
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return sorted(found)


def described(pids: list[int]) -> list[str]:
    """For messages of failed tests."""
    found = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            found.append(f"{pid} {process.status()} parent {process.ppid()}: {' '.join(process.cmdline())[:120]}")
        except psutil.NoSuchProcess:
            found.append(f"{pid} gone")
    return found


class Watched:
    """A process that is watched by pidfd, so that its number can be given away without confusing anyone."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd: int | None
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = None

    async def gone(self) -> None:
        """Wait until it has ended, reaped or not."""
        if self._pidfd is not None:
            await trio.lowlevel.wait_readable(self._pidfd)

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        if self._pidfd is None:
            return False
        try:
            return psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def close(self) -> None:
        """Let go of it."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


class Reports:
    """Where players say what they do: a datagram socket whose path they get as an argument."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._watched: list[Watched] = []

    async def bind(self) -> None:
        """Begin."""
        await self._socket.bind(str(self.path))

    async def next(self, word: str) -> Watched:
        """Wait for the next report, which must be this word; who said it."""
        with trio.fail_after(LIMIT_S):
            said = (await self._socket.recv(1000)).decode()
        found, pid = said.split()
        assert found == word, said
        process = Watched(int(pid))
        self._watched.append(process)
        return process

    async def these(self, *words: str) -> dict[str, list[Watched]]:
        """Wait for as many reports as there are words, in any order."""
        found: dict[str, list[Watched]] = {}
        for _ in words:
            with trio.fail_after(LIMIT_S):
                word, pid = (await self._socket.recv(1000)).decode().split()
            process = Watched(int(pid))
            self._watched.append(process)
            found.setdefault(word, []).append(process)
        assert sorted(words) == sorted(word for word, processes in found.items() for _ in processes)
        return found

    def close(self) -> None:
        """End."""
        self._socket.close()
        for process in self._watched:
            process.close()


@contextmanager
def marked(mark: str) -> Iterator[None]:
    """Whatever is left with this mark at the end is killed, so that no test leaves processes behind when it fails."""
    try:
        yield
    finally:
        for pid in alive(mark):
            try:
                psutil.Process(pid).kill()
            except psutil.NoSuchProcess:
                continue


def environment(mark: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment for a launch: small, with the mark in it."""
    return {"PATH": os.environ.get("PATH", os.defpath), MARK: mark, **(more or {})}
