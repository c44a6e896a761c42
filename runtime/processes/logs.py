"""What a trainer prints, line by line, in the log of its host.

Rule 1.  Nothing that a trainer prints can harm: lines are bounded, bytes that are no text and control characters are shown as escapes.
Rule 2.  A trainer that prints faster than the log takes it is slowed down by its pipe; nothing is kept but the line that is under way.
Rule 3.  The end of the pipe is not the end of the trainer, and not waited for: a descendant can hold it open. When the guardian has said
         that nothing is left, ``finish`` takes what is still in the pipe, and that is all.
"""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from pathlib import Path

import trio

LINE_LIMIT_BYTES = 8 * 1024
"""A longer line is cut into pieces of this size."""
READ_BYTES = 16 * 1024
"""Bytes that are taken at a time; others have their turn in between."""
FINISH_LIMIT_BYTES = 4 * 1024 * 1024
"""What is taken at the end at most. A pipe holds 64 KiB, unless somebody made it larger or goes on writing."""
FILE_LIMIT_BYTES = 64 * 1024 * 1024
"""What a log file can have."""
LAST_LINES = 20
"""Lines that are kept to be shown when a trainer has failed."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class Lines:
    """Bytes in, lines of clean text out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that these bytes complete."""
        *whole, rest = (self._rest + data).split(b"\n")
        found = [piece for line in whole for piece in _pieces(line)]
        if len(rest) >= LINE_LIMIT_BYTES:
            # What a progress bar has overwritten is not worth keeping; a terminal would not show it either.
            rest = rest[rest.rfind(b"\r", 0, -1) + 1 :]
        cut = len(rest) - len(rest) % LINE_LIMIT_BYTES
        found += [_clean(rest[at : at + LINE_LIMIT_BYTES]) for at in range(0, cut, LINE_LIMIT_BYTES)]
        self._rest = rest[cut:]
        return found

    def finish(self) -> list[str]:
        """The last line, if it was not ended."""
        rest, self._rest = self._rest, b""
        return _pieces(rest) if rest else []


def _pieces(line: bytes) -> list[str]:
    line = line.rstrip(b"\r")
    line = line[line.rfind(b"\r") + 1 :]
    return [_clean(line[at : at + LINE_LIMIT_BYTES]) for at in range(0, max(1, len(line)), LINE_LIMIT_BYTES)]


def _clean(line: bytes) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", line.decode("utf-8", "backslashreplace"))


def safe_name(name: str) -> str:
    """A trainer's name as part of a file name or of a logger's name."""
    return _UNSAFE.sub("_", name).lstrip(".")[:128] or "_"


class TrainerOutput:
    """One trainer's pipe, logged as ``troth.trainer.NAME`` and, if a file is given, written to that as well."""

    def __init__(self, name: str, descriptor: int, file: Path | None = None) -> None:
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        """The lines that came last."""
        self._name = name
        self._log = logging.getLogger(f"troth.trainer.{safe_name(name)}")
        self._lines = Lines()
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)
        self._file = -1
        self._room = FILE_LIMIT_BYTES
        if file is not None:
            self._open(file)

    def _open(self, file: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            self._file = os.open(file, flags, 0o600)
            self._room = FILE_LIMIT_BYTES - os.fstat(self._file).st_size
        except OSError as error:
            self._log.warning("%s: its output is not written to %s: %s", self._name, file, error.strerror)

    async def run(self) -> None:
        """Take what comes until the pipe ends or ``finish`` is called."""
        while self._descriptor >= 0:
            try:
                await trio.lowlevel.wait_readable(self._descriptor)
            except trio.ClosedResourceError:
                return
            if self._descriptor >= 0 and self._take() == 0:
                self.finish()
            await trio.lowlevel.checkpoint()

    def _take(self) -> int | None:
        """Bytes that came; 0 at the end of the pipe, ``None`` if there is nothing now."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return None
        self._emit(self._lines.feed(data))
        return len(data)

    def finish(self) -> None:
        """Take what is in the pipe, and close it. May be called again."""
        if self._descriptor < 0:
            return
        taken = 0
        while taken < FINISH_LIMIT_BYTES and (got := self._take()):
            taken += got
        self._emit(self._lines.finish())
        trio.lowlevel.notify_closing(self._descriptor)
        self.abandon()

    def abandon(self) -> None:
        """Close what is open, and nothing else: for a forked child, which must not hold it open."""
        for descriptor in (self._descriptor, self._file):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._file = -1

    def _emit(self, lines: list[str]) -> None:
        for line in lines:
            self.last.append(line)
            self._log.info("%s: %s", self._name, line)
        if self._file >= 0 and lines:
            self._write("".join(f"{line}\n" for line in lines).encode())

    def _write(self, data: bytes) -> None:
        if len(data) > self._room:
            data = f"[cut: this file has {FILE_LIMIT_BYTES} bytes]\n".encode() if self._room > 0 else b""
            self._room = 0
        self._room -= len(data)
        try:
            os.write(self._file, data)
        except OSError as error:
            self._log.warning("%s: its output is not written any more: %s", self._name, error.strerror)
            os.close(self._file)
            self._file = -1
