"""Messages between a host and its guardian: short JSON objects over a Unix socket pair, with open descriptors beside them.

Only the standard library: the guardian runs without anything else.

Rule 1.  Neither side ever waits for the other in here: what does not fit now is kept, and ``flush`` says whether something is left.
Rule 2.  A descriptor that is handed over belongs to the channel, which closes its own copy once it is sent or cannot be sent.
Rule 3.  A descriptor that came with a message belongs to whoever took the message.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

MESSAGE_LIMIT_BYTES = 8 * 1024 * 1024
"""More than the arguments and the environment that Linux lets a process have (6 MiB with the largest stack)."""
DESCRIPTORS_LIMIT = 4
"""Descriptors beside one message."""
WAITING_LIMIT = 4096
"""Messages that wait to be sent. Whoever lets more pile up is taken to be stuck."""

_HEAD = struct.Struct("!IB")
_READ_BYTES = 64 * 1024
_ROOM = socket.CMSG_SPACE(8 * DESCRIPTORS_LIMIT * array.array("i").itemsize)
_FLAGS = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

Message: TypeAlias = dict[str, Any]


class ChannelError(Exception):
    """The other side does not speak this protocol, or does not listen any more."""


class Channel:
    """One end. ``sock`` is a connected Unix stream socket, and belongs to the channel from now on."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._incoming = bytearray()
        self._descriptors: deque[int] = deque()
        self._outgoing: deque[tuple[memoryview, tuple[int, ...]]] = deque()

    def fileno(self) -> int:
        """The socket's descriptor, to wait on; -1 once closed."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._outgoing)

    def put(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send a message, now if it fits. Raises ``ChannelError`` if it cannot be sent at all, ``OSError`` if the other end is gone."""
        body = json.dumps(message, separators=(",", ":")).encode()
        if len(body) > MESSAGE_LIMIT_BYTES or len(descriptors) > DESCRIPTORS_LIMIT or len(self._outgoing) >= WAITING_LIMIT:
            _close_all(descriptors)
            raise ChannelError(f"cannot send {len(body)} bytes with {len(descriptors)} descriptors, {len(self._outgoing)} messages wait")
        self._outgoing.append((memoryview(_HEAD.pack(len(body), len(descriptors)) + body), tuple(descriptors)))
        self.flush()

    def flush(self) -> bool:
        """Send what fits now; whether all of it is out. Raises ``OSError`` if the other end is gone."""
        while self._outgoing:
            view, descriptors = self._outgoing[0]
            beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
            try:
                sent = self._socket.sendmsg([view], beside)
            except BlockingIOError:
                return False
            _close_all(descriptors)
            if sent == len(view):
                self._outgoing.popleft()
            else:
                self._outgoing[0] = (view[sent:], ())
        return True

    def take(self) -> list[tuple[Message, list[int]]]:
        """What has arrived, which may be nothing. Raises ``EOFError`` at the end, ``ChannelError`` for nonsense, ``OSError``."""
        try:
            data, beside, flags, _ = self._socket.recvmsg(_READ_BYTES, _ROOM, _FLAGS)
        except BlockingIOError:
            return []
        for level, kind, raw in beside:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(raw[: len(raw) - len(raw) % numbers.itemsize])
                for number in numbers if not _FLAGS else ():
                    os.set_inheritable(number, False)
                self._descriptors.extend(numbers)
        if flags & socket.MSG_CTRUNC:
            raise ChannelError("descriptors were lost on the way: this process has too many open, or too many were sent")
        if not data:
            raise EOFError
        self._incoming += data
        return list(iter(self._next, None))

    def _next(self) -> tuple[Message, list[int]] | None:
        if len(self._incoming) < _HEAD.size:
            return None
        length, count = _HEAD.unpack_from(self._incoming)
        if length > MESSAGE_LIMIT_BYTES or count > DESCRIPTORS_LIMIT:
            raise ChannelError(f"a message of {length} bytes with {count} descriptors")
        end = _HEAD.size + length
        if len(self._incoming) < end:
            return None
        if count > len(self._descriptors):
            raise ChannelError("a message without its descriptors")
        try:
            message = json.loads(bytes(self._incoming[_HEAD.size : end]))
        except ValueError:
            raise ChannelError("a message that is not JSON") from None
        del self._incoming[:end]
        if not isinstance(message, dict):
            raise ChannelError("a message that is not a JSON object")
        return message, [self._descriptors.popleft() for _ in range(count)]

    def finish(self) -> None:
        """Nothing more will be sent. The other side sees the end, and may go on sending."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the other side is gone already

    def close(self) -> None:
        """Close the socket and every descriptor that nobody took."""
        _close_all(self._descriptors)
        self._descriptors.clear()
        for _, descriptors in self._outgoing:
            _close_all(descriptors)
        self._outgoing.clear()
        self._socket.close()


def _close_all(descriptors: Sequence[int] | deque[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
