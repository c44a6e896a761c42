"""Unix sockets, and TCP on the loopback: the Network port on the system's sockets.

Rule 1.  A Unix socket lies in a directory that only its user can enter, is 0600 from its first moment, and both sides ask the system who
         the other is before they read a byte. Nothing that is in the way is ever removed.
Rule 2.  TCP is for the loopback alone. The challenge shows who the other side is, but it hides nothing that follows.
Rule 3.  The system call comes first where it is likely to succeed, and the event loop is only asked where it is not.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
import struct
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

import trio

from troth.runtime.errors import EndpointRefused, LinkDown
from troth.runtime.ports import Buffer
from troth.runtime.wire.bounds import SOCKET_BYTES

log = logging.getLogger("troth.runtime.network")

UNIX: Final = "unix:"
TCP: Final = "tcp:"
LOOPBACK = {"127.0.0.1": socket.AF_INET, "[::1]": socket.AF_INET6, "::1": socket.AF_INET6}
MAX_PATH_BYTES = 107 if sys.platform.startswith("linux") else 103
"""The longest path of a Unix socket, without the zero that ends it."""
BACKLOG = 128
READ_OFF_BYTES, READ_OFF_TIMES = 64 * 1024, 16
"""How much a close looks for of what nobody will read."""
GREEDY_BYTES = 1024 * 1024
"""Bytes read in a row before others get their turn."""
PAUSE_S = 0.1
"""How long a listener waits when the system has no descriptors or memory left."""
_PEER = struct.Struct("3i")
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NOSIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)


_Wait: TypeAlias = Callable[[socket.socket], Awaitable[None]]


class SocketStream:
    """A connected socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._closed = False
        self._eager = False
        self._in_a_row = 0
        self.peer_uid = _peer_uid(sock)

    def send_nowait(self, data: Buffer) -> int:
        """See ``ports.Stream``."""
        try:
            return self._socket.send(data, _NOSIGNAL)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._down(error) from error

    async def send_all(self, data: Buffer) -> None:
        """See ``ports.Stream``."""
        view, done = memoryview(data), 0
        waited = False
        while done < len(view):
            taken = self.send_nowait(view[done:])
            done += taken
            if taken == 0:
                waited = True
                await self._until(trio.lowlevel.wait_writable)
        if not waited:
            await trio.lowlevel.checkpoint()

    async def receive_into(self, view: memoryview) -> int:
        """See ``ports.Stream``."""
        # A read that filled its buffer left more behind; one that did not has emptied the socket, and asking at once would be in vain.
        if not self._eager or self._in_a_row >= GREEDY_BYTES:
            self._in_a_row = 0
            await self._until(trio.lowlevel.wait_readable)
        while True:
            try:
                got = self._socket.recv_into(view)
            except BlockingIOError:
                self._in_a_row = 0
                await self._until(trio.lowlevel.wait_readable)
                continue
            except OSError as error:
                raise self._down(error) from error
            self._eager = got == len(view)
            self._in_a_row += got
            return got

    def close(self) -> None:
        """See ``ports.Stream``."""
        if self._closed:
            return
        self._closed = True
        trio.lowlevel.notify_closing(self._socket)
        _read_off(self._socket)
        self._socket.close()

    async def _until(self, ready: _Wait) -> None:
        if self._closed:
            raise LinkDown("the connection is closed: closed by this side")
        try:
            await ready(self._socket)
        except trio.ClosedResourceError:
            raise LinkDown("the connection is closed: closed by this side") from None

    def _down(self, error: OSError) -> LinkDown:
        if self._closed:
            return LinkDown("the connection is closed: closed by this side")
        return LinkDown(f"the connection broke: {os.strerror(error.errno) if error.errno else error}")


class SocketListener:
    """A socket that listens."""

    def __init__(self, sock: socket.socket, endpoint: str, path: Path | None = None) -> None:
        self._socket = sock
        self._closed = False
        self._path = path
        self._identity = _identity(path) if path is not None else None
        self.endpoint = endpoint
        self.refused = 0
        """Connections of other users, closed before a byte of them was read."""

    async def accept(self) -> SocketStream:
        """See ``ports.Listener``."""
        while True:
            if self._closed:
                raise LinkDown(f"{self.endpoint} is closed")
            try:
                sock, _address = self._socket.accept()
            except BlockingIOError:
                try:
                    await trio.lowlevel.wait_readable(self._socket)
                except trio.ClosedResourceError:
                    raise LinkDown(f"{self.endpoint} is closed") from None
                continue
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    await trio.sleep(PAUSE_S)  # asked again at once, it would fail again at once
                # Any other error is that of one connection, which is gone: ECONNABORTED and its like.
                continue
            try:
                stream = SocketStream(_set_up(sock))
            except OSError:
                sock.close()  # it has ended already, which some systems say here
                continue
            if _foreign(stream):
                self._refuse(stream)
                continue
            await trio.lowlevel.checkpoint()
            return stream

    def close(self) -> None:
        """See ``ports.Listener``."""
        if self._closed:
            return
        self._closed = True
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()
        # What somebody else put there since is not ours to remove.
        if self._path is not None and self._identity is not None and _identity(self._path) == self._identity:
            self._path.unlink(missing_ok=True)

    def _refuse(self, stream: SocketStream) -> None:
        stream.close()
        self.refused += 1
        if self.refused == 1:
            log.warning("%s: refused a connection of user %s; more of them are not logged", self.endpoint, stream.peer_uid)


class SystemNetwork:
    """The Network port on the system's sockets. Endpoints are ``unix:/absolute/path``, ``tcp:127.0.0.1:PORT`` and ``tcp:[::1]:PORT``."""

    async def listen(self, endpoint: str) -> SocketListener:
        """See ``ports.Network``. Raises ``EndpointRefused`` if nobody can, or may, listen there."""
        await trio.lowlevel.checkpoint()
        if endpoint.startswith(UNIX):
            return _listen_unix(endpoint)
        family, host, port = _loopback(endpoint)
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise EndpointRefused(f"{endpoint}: {os.strerror(error.errno or 0)}") from error
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            raise EndpointRefused(f"{endpoint}: {os.strerror(error.errno or 0)}") from error
        shown = "[::1]" if family == socket.AF_INET6 else host
        return SocketListener(sock, f"{TCP}{shown}:{sock.getsockname()[1]}")

    async def dial(self, endpoint: str) -> SocketStream:
        """See ``ports.Network``. Raises ``EndpointRefused`` if that is no place to dial."""
        address: str | tuple[str, int]
        if endpoint.startswith(UNIX):
            family, address = socket.AF_UNIX, str(_path(endpoint))
        else:
            family, host, port = _loopback(endpoint)
            address = (host, port)
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # no descriptor is left now; there may be one when it is dialled again
            raise LinkDown(f"{endpoint}: {os.strerror(error.errno or 0)}") from error
        try:
            sock.setblocking(False)
            await _connect(sock, address)
            stream = SocketStream(_set_up(sock))
        except OSError as error:
            sock.close()
            raise LinkDown(f"{endpoint}: {os.strerror(error.errno) if error.errno else error}") from error
        except BaseException:
            sock.close()
            raise
        if _foreign(stream):
            stream.close()
            raise LinkDown(f"{endpoint}: user {stream.peer_uid} listens there, not the one that this process runs as")
        return stream


def _listen_unix(endpoint: str) -> SocketListener:
    path = _path(endpoint)
    folder = path.parent
    try:
        found = os.lstat(folder)
    except OSError as error:
        raise EndpointRefused(f"{endpoint}: {folder}: {os.strerror(error.errno or 0)}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise EndpointRefused(f"{endpoint}: {folder} must be a directory of this user that nobody else can enter (mode 0700)")
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise EndpointRefused(f"{endpoint}: {os.strerror(error.errno or 0)}") from error
    try:
        sock.setblocking(False)
        _bind_private(sock, path)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise EndpointRefused(f"{endpoint}: {path} exists already and is left alone; take another path") from error
        raise EndpointRefused(f"{endpoint}: {os.strerror(error.errno) if error.errno else error}") from error
    return SocketListener(sock, endpoint, path)


def _bind_private(sock: socket.socket, path: Path) -> None:
    """Bind so that the socket is 0600 from its first moment."""
    if sys.platform.startswith("linux"):
        # Linux gives the file the mode of the socket. The umask does the same, but it belongs to every thread of the process.
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(str(path))
    else:
        before = os.umask(0o177)
        try:
            sock.bind(str(path))
        finally:
            os.umask(before)
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    if mode & 0o077:
        path.unlink()
        raise OSError(f"the system made the socket with mode {mode:04o}, and others could connect")


def _path(endpoint: str) -> Path:
    path = Path(endpoint.removeprefix(UNIX))
    size = len(os.fsencode(path))
    if not path.is_absolute() or "\0" in str(path):
        raise EndpointRefused(f"{endpoint!r}: a Unix socket needs an absolute path")
    if size > MAX_PATH_BYTES:
        raise EndpointRefused(f"{endpoint}: the path has {size} bytes, {MAX_PATH_BYTES} are the most; take a shorter directory (TMPDIR)")
    return path


def _loopback(endpoint: str) -> tuple[socket.AddressFamily, str, int]:
    """The family, address and port of a TCP endpoint."""
    host, colon, port = endpoint.removeprefix(TCP).rpartition(":")
    if not endpoint.startswith(TCP) or not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise EndpointRefused(f"{endpoint!r}: must be unix:/path, tcp:127.0.0.1:PORT or tcp:[::1]:PORT")
    family = LOOPBACK.get(host)
    if family is None:
        raise EndpointRefused(f"{endpoint}: TCP is for this machine alone, at 127.0.0.1 or [::1]; what is sent over it is not encrypted")
    return family, host.strip("[]"), int(port)


async def _connect(sock: socket.socket, address: str | tuple[str, int]) -> None:
    try:
        sock.connect(address)
    except BlockingIOError as error:
        if error.errno == errno.EAGAIN:
            raise  # a Unix socket whose backlog is full: there is nothing to wait for
        await trio.lowlevel.wait_writable(sock)
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed)) from None
        if sock.getsockname() == sock.getpeername():
            # With nobody there, a port of the ephemeral range can be given to the dialler itself: it would then talk to itself.
            raise OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)) from None
    else:
        await trio.lowlevel.checkpoint()


def _set_up(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _peer_uid(sock: socket.socket) -> int | None:
    if sock.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    _pid, uid, _gid = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(uid)


def _foreign(stream: SocketStream) -> bool:
    return stream.peer_uid is not None and stream.peer_uid != os.geteuid()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read_off(sock: socket.socket) -> None:
    """Take what came and nobody will read. TCP answers a close over unread bytes with a reset, and that can overtake what was sent."""
    if sock.family == socket.AF_UNIX:
        return
    scratch = bytearray(READ_OFF_BYTES)
    try:
        for _ in range(READ_OFF_TIMES):
            if not sock.recv_into(scratch):
                return
    except OSError:
        return  # nothing is left, or the connection has broken already
