"""Messages and descriptors between a host and its guardian."""

from __future__ import annotations

import array
import os
import select
import socket
import struct
from collections.abc import Iterator

import pytest

from troth.runtime.processes.channel import DESCRIPTORS_LIMIT, MESSAGE_LIMIT_BYTES, WAITING_LIMIT, Channel, ChannelError, Message


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = map(Channel, socket.socketpair())
    yield one, other
    one.close()
    other.close()


def taken(source: Channel, into: Channel, number: int) -> list[tuple[Message, list[int]]]:
    """Take so many messages, letting the sender go on in between."""
    found: list[tuple[Message, list[int]]] = []
    while len(found) < number:
        source.flush()
        assert select.select([into], [], [], 10)[0]
        found += into.take()
    return found


def test_messages_arrive_as_they_were_sent_in_their_order(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    messages = [{"n": n, "text": "ä\udcff" * n} for n in range(100)]
    for message in messages:
        one.put(message)

    assert [message for message, _ in taken(one, other, 100)] == messages
    assert other.take() == []


def test_a_message_larger_than_the_socket_goes_in_pieces(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    message = {"text": "x" * (MESSAGE_LIMIT_BYTES - 100)}
    one.put(message)

    assert one.waiting
    assert taken(one, other, 1) == [(message, [])]
    assert not one.waiting


def test_each_message_has_its_own_descriptors(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    pipes = [os.pipe() for _ in range(6)]
    one.put({"n": 0}, [pipes[0][1], pipes[1][1]])
    one.put({"n": 1, "text": "x" * 300_000})
    one.put({"n": 2}, [write for _, write in pipes[2:]])

    found = taken(one, other, 3)
    assert [len(descriptors) for _, descriptors in found] == [2, 0, 4]
    for (read, _), got in zip(pipes, [descriptor for _, descriptors in found for descriptor in descriptors], strict=True):
        assert not os.get_inheritable(got)
        os.write(got, b"!")
        os.close(got)
        assert os.read(read, 2) == b"!"
        assert os.read(read, 2) == b""  # so the copy that was sent is closed, too
        os.close(read)


def test_the_end_is_said_once_everything_is_taken(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    one.put({"last": True})
    one.finish()

    assert other.take() == [({"last": True}, [])]
    with pytest.raises(EOFError):
        other.take()
    other.put({"still": "heard"})
    assert one.take() == [({"still": "heard"}, [])]


@pytest.mark.parametrize("too", ["long", "many descriptors"])
def test_what_is_too_much_is_refused_and_its_descriptors_are_closed(ends: tuple[Channel, Channel], too: str) -> None:
    one, other = ends
    read, write = os.pipe()
    more = [os.dup(write) for _ in range(DESCRIPTORS_LIMIT)] if too != "long" else []
    with pytest.raises(ChannelError, match="cannot send"):
        one.put({"text": "x" * (MESSAGE_LIMIT_BYTES if too == "long" else 1)}, [write, *more])

    assert os.read(read, 1) == b""
    os.close(read)
    assert other.take() == []


def test_whoever_does_not_listen_is_noticed(ends: tuple[Channel, Channel]) -> None:
    one, _ = ends

    def talk() -> None:
        while True:
            one.put({"text": "x" * 1000})

    with pytest.raises(ChannelError, match=f"{WAITING_LIMIT} messages wait"):
        talk()


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack("!IB", MESSAGE_LIMIT_BYTES + 1, 0),
        struct.pack("!IB", 2, DESCRIPTORS_LIMIT + 1) + b"{}",
        struct.pack("!IB", 2, 1) + b"{}",
        struct.pack("!IB", 2, 0) + b"[]",
        struct.pack("!IB", 2, 0) + b"{]",
        struct.pack("!IB", 2, 0) + b"\xff\xff",
    ],
)
def test_nonsense_is_refused(raw: bytes) -> None:
    sender, receiver = socket.socketpair()
    with sender:
        channel = Channel(receiver)
        sender.sendall(raw)
        with pytest.raises(ChannelError):
            channel.take()
        channel.close()


def test_descriptors_that_nobody_took_are_closed() -> None:
    sender, receiver = socket.socketpair()
    read, write = os.pipe()
    with sender:
        channel = Channel(receiver)
        sender.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [write]))])
        os.close(write)
        assert channel.take() == []
        channel.close()
    assert os.read(read, 1) == b""
    os.close(read)
