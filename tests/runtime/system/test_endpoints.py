"""Where it can listen and dial: private where it is a file, on this machine only where it is a port, and never in anybody's way."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.runtime.system.streams import joined
from troth.runtime.errors import EndpointRefused, LinkDown
from troth.runtime.ports import Stream
from troth.runtime.system import network as system
from troth.runtime.system.network import MAX_PATH_BYTES, SocketListener, SystemNetwork

pytestmark = pytest.mark.trio
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not say who the peer is")


# -- Unix sockets ------------------------------------------------------------------------------------------------------


async def test_a_unix_socket_is_its_users_alone_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        listener = await SystemNetwork().listen(f"unix:{folder}/s")
    finally:
        os.umask(before)
    found = (folder / "s").stat()
    listener.close()

    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert os.umask(before) == before


async def test_a_socket_goes_with_its_listener_and_the_place_is_free_again(folder: Path) -> None:
    for _ in range(2):
        listener = await SystemNetwork().listen(f"unix:{folder}/s")
        assert listener.endpoint == f"unix:{folder}/s"
        listener.close()
        listener.close()
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("what", ["file", "dangling link", "link", "socket", "directory"])
async def test_what_is_in_the_way_is_named_and_left_alone(folder: Path, what: str) -> None:
    path, elsewhere = folder / "s", folder / "elsewhere"
    elsewhere.write_text("not ours")
    with socket.socket(socket.AF_UNIX) as sock:
        if what == "file":
            path.write_text("1")
        elif what == "socket":
            sock.bind(str(path))
        elif what == "directory":
            path.mkdir()
        else:
            path.symlink_to(elsewhere if what == "link" else folder / "nothing")
        there = path.lstat()
        with pytest.raises(EndpointRefused, match=f"{path} exists already and is left alone"):
            await SystemNetwork().listen(f"unix:{path}")

    assert path.lstat() == there
    assert elsewhere.read_text() == "not ours"
    assert not (folder / "nothing").exists()


async def test_what_was_put_in_its_place_meanwhile_is_left_alone(folder: Path) -> None:
    listener = await SystemNetwork().listen(f"unix:{folder}/s")
    (folder / "s").unlink()
    (folder / "s").write_text("not ours")
    listener.close()

    assert (folder / "s").read_text() == "not ours"


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o750, 0o777])
async def test_a_directory_that_others_can_enter_is_no_place_for_a_socket(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    with pytest.raises(EndpointRefused, match="nobody else can enter"):
        await SystemNetwork().listen(f"unix:{folder}/s")

    assert list(folder.iterdir()) == []


async def test_neither_is_a_link_to_a_directory_nor_one_that_is_not_there(folder: Path) -> None:
    (folder / "link").symlink_to(folder)
    with pytest.raises(EndpointRefused, match="must be a directory of this user"):
        await SystemNetwork().listen(f"unix:{folder}/link/s")
    with pytest.raises(EndpointRefused, match="No such file"):
        await SystemNetwork().listen(f"unix:{folder}/nothing/s")


async def test_nor_one_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(EndpointRefused, match="must be a directory of this user"):
        await SystemNetwork().listen(f"unix:{folder}/s")


async def test_a_path_has_a_longest_length(folder: Path) -> None:
    name = "x" * (MAX_PATH_BYTES - len(os.fsencode(folder)) - 1)
    listener = await SystemNetwork().listen(f"unix:{folder}/{name}")
    (await SystemNetwork().dial(listener.endpoint)).close()
    listener.close()
    for use in (SystemNetwork().listen, SystemNetwork().dial):
        with pytest.raises(EndpointRefused, match=f"has {MAX_PATH_BYTES + 1} bytes, {MAX_PATH_BYTES} are the most"):
            await use(f"unix:{folder}/{name}y")


@linux
async def test_both_sides_know_whose_the_other_one_is(folder: Path) -> None:
    dialler, acceptor = await joined(f"unix:{folder}/s")
    assert dialler.peer_uid == acceptor.peer_uid == os.geteuid()
    dialler.close()
    acceptor.close()


@linux
async def test_another_users_connection_is_closed_before_a_byte_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = SystemNetwork()
    listener = await network.listen(f"unix:{folder}/s")
    foreign = [await network.dial(listener.endpoint) for _ in range(10)]
    for stream in foreign:
        assert stream.send_nowait(b"read me") == 7
    asked = iter([os.geteuid() + 1] * 10)
    monkeypatch.setattr(system, "_peer_uid", lambda _sock: next(asked, os.geteuid()))
    accepted: list[Stream] = []

    async def accept() -> None:
        accepted.append(await listener.accept())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        await wait_all_tasks_blocked()
        assert accepted == []
        good = await network.dial(listener.endpoint)
    for stream in foreign:
        with pytest.raises(LinkDown):
            await stream.receive_into(memoryview(bytearray(1)))
        stream.close()
    good.close()
    accepted[0].close()
    listener.close()

    assert listener.refused == 10
    assert len(caplog.records) == 1


@linux
async def test_nobody_dials_into_another_users_socket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = SystemNetwork()
    listener = await network.listen(f"unix:{folder}/s")
    monkeypatch.setattr(system, "_peer_uid", lambda _sock: os.geteuid() + 1)
    with pytest.raises(LinkDown, match="not the one that this process runs as"):
        await network.dial(listener.endpoint)
    listener.close()


# -- TCP ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "endpoint", ["tcp:0.0.0.0:0", "tcp:192.168.1.1:80", "tcp:localhost:0", "tcp:[::]:0", "tcp:127.0.0.2:0", "tcp::0", "tcp:example.org:443"]
)
async def test_tcp_is_for_the_loopback_alone(endpoint: str) -> None:
    for use in (SystemNetwork().listen, SystemNetwork().dial):
        with pytest.raises(EndpointRefused, match="TCP is for this machine alone"):
            await use(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "127.0.0.1:80",
        "tcp:127.0.0.1",
        "tcp:127.0.0.1:x",
        "tcp:127.0.0.1:65536",
        "tcp:127.0.0.1:-1",
        "udp:127.0.0.1:1",
        "unix:",
        "unix:relative",
    ],
)
async def test_an_endpoint_that_is_none_is_refused_with_what_it_should_be(endpoint: str) -> None:
    for use in (SystemNetwork().listen, SystemNetwork().dial):
        with pytest.raises(EndpointRefused, match=r"must be unix:/path|needs an absolute path"):
            await use(endpoint)


async def test_a_listener_says_which_port_it_took_and_a_taken_one_is_refused() -> None:
    network = SystemNetwork()
    listener = await network.listen("tcp:127.0.0.1:0")
    port = int(listener.endpoint.rpartition(":")[2])
    assert listener.endpoint == f"tcp:127.0.0.1:{port}"
    assert port > 0
    with pytest.raises(EndpointRefused, match=os.strerror(errno.EADDRINUSE)):
        await network.listen(listener.endpoint)
    listener.close()


async def test_small_messages_are_not_held_back() -> None:
    dialler, acceptor = await joined("tcp:127.0.0.1:0")
    for stream in (dialler, acceptor):
        assert stream._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1  # type: ignore[attr-defined]
        stream.close()


# -- nobody there ------------------------------------------------------------------------------------------------------


async def test_a_dial_with_nobody_there_is_a_link_that_is_down(endpoint: str, folder: Path) -> None:
    network = SystemNetwork()
    listener = await network.listen(endpoint)
    where = listener.endpoint
    listener.close()
    with pytest.raises(LinkDown, match=r"refused|No such file"):
        await network.dial(where)

    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(folder / "stale")], check=True)
    with pytest.raises(LinkDown, match="refused"):
        await network.dial(f"unix:{folder}/stale")


async def test_a_full_backlog_is_a_link_that_is_down_and_not_a_wait(folder: Path) -> None:
    network = SystemNetwork()
    listener = await network.listen(f"unix:{folder}/s")
    waiting: list[Stream] = []

    async def dial_until_full() -> None:
        while True:
            waiting.append(await network.dial(listener.endpoint))

    with pytest.raises(LinkDown, match="unavailable"):
        await dial_until_full()
    (await listener.accept()).close()
    waiting.append(await network.dial(listener.endpoint))
    for stream in waiting:
        stream.close()
    listener.close()

    assert len(waiting) > system.BACKLOG


async def test_closing_a_listener_wakes_whoever_accepts(endpoint: str) -> None:
    listener = await SystemNetwork().listen(endpoint)

    async def accept() -> None:
        with pytest.raises(LinkDown, match="is closed"):
            await listener.accept()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        await wait_all_tasks_blocked()
        listener.close()
    await accept()


async def test_a_process_without_descriptors_left_goes_on_accepting_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = SystemNetwork()
    listener = await network.listen(f"unix:{folder}/s")
    monkeypatch.setattr(system, "PAUSE_S", 0.0)
    failures = iter([OSError(errno.EMFILE, "too many open files"), OSError(errno.ECONNABORTED, "aborted"), OSError(errno.EMFILE, "again")])

    class Scarce:
        def __init__(self, sock: socket.socket) -> None:
            self.sock = sock

        def accept(self) -> tuple[socket.socket, object]:
            error = next(failures, None)
            if error is not None:
                raise error
            return self.sock.accept()

    real = listener._socket
    listener._socket = Scarce(real)  # type: ignore[assignment]
    dialler = await network.dial(listener.endpoint)
    accepted = await listener.accept()
    listener._socket = real
    for closing in (dialler, accepted, listener):
        closing.close()

    assert isinstance(listener, SocketListener)
    assert next(failures, None) is None


async def test_without_a_descriptor_left_a_dial_fails_as_if_nobody_were_there(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is tried again: a script's data loaders may have taken them all for a while. Nobody can listen then, and is told why."""

    def none_left(*_arguments: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(socket, "socket", none_left)
    with pytest.raises(LinkDown, match="Too many open files"):
        await SystemNetwork().dial(endpoint)
    with pytest.raises(EndpointRefused, match="Too many open files"):
        await SystemNetwork().listen(endpoint)


async def test_a_connection_that_ends_while_it_is_set_up_does_not_close_the_door(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = SystemNetwork()
    listener = await network.listen(endpoint)
    set_up, outcomes = system._set_up, iter([None, OSError(errno.EINVAL, "ended")])

    def fail_the_second(sock: socket.socket) -> socket.socket:
        failure = next(outcomes, None)
        if failure is not None:
            raise failure
        return set_up(sock)

    monkeypatch.setattr(system, "_set_up", fail_the_second)
    first = await network.dial(listener.endpoint)
    accepted: list[Stream] = []

    async def accept() -> None:
        accepted.append(await listener.accept())

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            assert await first.receive_into(memoryview(bytearray(1))) == 0
            second = await network.dial(listener.endpoint)
    for stream in (first, second, *accepted):
        stream.close()
    listener.close()
