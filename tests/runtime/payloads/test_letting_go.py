"""What is released, cancelled, damaged or not what it was said to be: nobody keeps it, and nobody gets it."""

from __future__ import annotations

import gc
import logging
import weakref

import numpy as np
import pytest
import trio
from attrs import evolve
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.runtime.payloads.rig import COMPLETE, EPOCH, FAILED, KEY, MIB, Pair, Side, announced, weights
from tests.runtime.payloads.trees import differs
from troth.runtime.errors import RuntimeFault
from troth.runtime.payloads import encode
from troth.runtime.payloads.layout import Array
from troth.runtime.wire.codec import chunk_head
from troth.runtime.wire.kinds import PayloadKind, Pull, PullEnd
from troth.spec.core import Event, Message, TransferEnded, TransferProgressed

pytestmark = pytest.mark.trio


@pytest.fixture
def pair(nursery: trio.Nursery) -> Pair:
    return Pair(nursery)


def offered(side: Side, nbytes: int) -> tuple[weakref.ref[Array], object]:
    """Offer an array of which only the link knows; a reference to it, and what its message says."""
    array = np.ones(nbytes, np.uint8)
    return weakref.ref(array), announced(side.offer({"w": array}))


async def test_after_its_release_nothing_refers_to_a_payload(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    array, carried = offered(pair.host, 4 * MIB)
    pair.trainer.pull(carried)  # type: ignore[arg-type]
    await pair.trainer.done()
    await pair.host.until(pair.host.served)
    assert array() is not None
    pair.host.release()
    gc.collect()

    assert array() is None


async def test_a_payload_that_is_released_while_it_is_served_is_not_served_on(pair: Pair, autojump_clock: MockClock) -> None:
    connection = await pair.connect()
    array, carried = offered(pair.host, 20 * MIB)
    pair.trainer.pull(carried)  # type: ignore[arg-type]
    await pair.trainer.until(pair.trainer.receivers.__len__)
    pair.host.release()

    assert await pair.trainer.done() is FAILED
    await wait_all_tasks_blocked()
    gc.collect()
    assert array() is None
    assert connection.down.written_bytes < 5 * MIB
    assert pair.host.served() == []


async def test_a_core_that_releases_on_the_first_byte_is_obeyed(pair: Pair, autojump_clock: MockClock) -> None:
    """What the link reports may come back to it before it has returned."""

    def react(event: Event) -> None:
        if event == TransferProgressed("task", KEY):
            pair.host.release()

    await pair.connect()
    pair.host.react = react
    pair.trainer.pull(pair.host.offer(weights(8 * MIB)))

    assert await pair.trainer.done() is FAILED
    assert pair.host.served() == []


async def test_what_a_core_ends_when_it_hears_of_a_broken_link_is_not_reported_as_well(pair: Pair, autojump_clock: MockClock) -> None:
    """Each side has two transfers; at the end of one of them it ends the other, whichever it hears of first."""

    def other(event: TransferEnded) -> tuple[int, int]:
        return (2, 0) if event.key == (1, 0) else (1, 0)

    connection = await pair.connect()
    keys = [(1, 0), (2, 0)]
    for key in keys:
        pair.trainer.pull(pair.host.offer(weights(8 * MIB), key), key)
    await pair.trainer.until(lambda: all(pair.trainer.progress("payload", key) for key in keys))
    pair.host.react = lambda event: pair.host.release(other(event)) if isinstance(event, TransferEnded) else None
    pair.trainer.react = lambda event: pair.trainer.cancel(other(event)) if isinstance(event, TransferEnded) else None
    connection.cut()
    await wait_all_tasks_blocked()

    assert sum(len(pair.host.served(key)) for key in keys) == 1
    assert sum(len(pair.trainer.ends(key)) for key in keys) == 1


async def test_an_error_of_whoever_is_told_is_not_swallowed(autojump_clock: MockClock) -> None:
    def arrived(_tree: object) -> None:
        raise RuntimeFault("the driver's")

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeFault, match="the driver's"), flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            pair = Pair(nursery)
            await pair.connect()
            pair.trainer.link.pull("task", KEY, announced(pair.host.offer(weights(MIB))), arrived)


async def test_what_has_come_is_let_go_when_its_receiver_is_over(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    made: list[weakref.ref[Array]] = []

    def new_array(dtype: np.dtype[np.uint8], shape: tuple[int, ...], *, fortran: bool) -> Array:
        array = np.empty(tuple(shape), dtype)
        made.append(weakref.ref(array))
        return array

    monkeypatch.setattr("troth.runtime.payloads.arrays.new_array", new_array)
    await pair.connect()
    pair.trainer.pull(pair.host.offer({"w": np.zeros(8 * MIB)}))
    await pair.trainer.until(pair.trainer.receivers.__len__)
    pair.trainer.cancel()
    await trio.sleep(1)
    gc.collect()
    assert made[0]() is not None
    pair.trainer.link.forget("task", KEY)
    gc.collect()

    assert made[0]() is None


async def test_a_tree_that_was_handed_over_is_its_takers_alone(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    pair.trainer.pull(pair.host.offer({"w": np.zeros(MIB)}))
    await pair.trainer.done()
    array = weakref.ref(pair.trainer.trees[KEY].pop()["w"])
    await wait_all_tasks_blocked()
    gc.collect()

    assert array() is None


async def test_bytes_that_are_not_those_announced_are_dropped_and_fetched_anew(
    pair: Pair, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    """An array that somebody writes to while it is sent."""
    await pair.connect()
    array = np.zeros(MIB)
    payload = pair.host.offer({"w": array})
    array[1000] = 1
    pair.trainer.pull(payload)

    assert await pair.trainer.done() is FAILED
    assert "the task of task 1 is dropped: the bytes that came are not those that were announced" in caplog.text
    assert pair.trainer.trees[KEY] == []

    array[1000] = 0
    pair.trainer.pull(payload)
    assert await pair.trainer.done(times=2) is COMPLETE
    assert differs({"w": np.zeros(MIB)}, pair.trainer.trees[KEY][0]) is None


async def test_an_inline_payload_with_another_digest_is_dropped(pair: Pair, autojump_clock: MockClock) -> None:
    carried = announced(encode({"w": np.arange(3)}), inline=True)
    pair.trainer.pull(evolve(carried, digest=bytes(16)))
    pair.trainer.pull(evolve(carried, payload=bytes(24)), (2, 0))

    assert (pair.trainer.ends(), pair.trainer.ends((2, 0))) == ([FAILED], [FAILED])
    assert pair.trainer.trees == {KEY: [], (2, 0): []}


async def test_a_manifest_that_cannot_be_right_fails_its_pull_and_nothing_else(
    pair: Pair, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    await pair.connect()
    carried = announced(pair.host.offer(weights(MIB)))
    assert pair.trainer.pull(evolve(carried, manifest=b"\x00"))
    assert pair.trainer.pull(evolve(carried, nbytes=carried.nbytes + 1))

    assert pair.trainer.ends() == [FAILED, FAILED]
    assert "the task of task 1 cannot be taken: not a manifest" in caplog.text
    assert pair.trainer.link.up


async def test_a_payload_beyond_the_limit_is_not_taken(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    await pair.connect()
    payload = pair.host.offer(weights(MIB))
    monkeypatch.setattr(pair.trainer.link._pulls, "_limit", payload.nbytes - 1)
    pair.trainer.pull(payload)
    assert pair.trainer.ends() == [FAILED]
    assert f"a payload of {payload.nbytes} bytes; {payload.nbytes - 1} are the most" in caplog.text


async def test_a_payload_that_there_is_no_memory_for_fails(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    def none_left(*_args: object, **_kwargs: object) -> Array:
        raise MemoryError

    await pair.connect()
    monkeypatch.setattr("troth.runtime.payloads.arrays.new_array", none_left)
    pair.trainer.pull(pair.host.offer(weights(MIB)))

    assert pair.trainer.ends() == [FAILED]
    assert "no memory for the task of task 1" in caplog.text


VIOLATIONS: dict[str, tuple[bytes | Message, str]] = {
    "a chunk that nobody asked for": (chunk_head(EPOCH, 9, 0, 4) + b"1234", "an answer to pull 9, which was never made"),
    "a chunk that is not the next one": (
        chunk_head(EPOCH, 1, 5 * MIB, 4) + b"1234",
        f"bytes {5 * MIB} to {5 * MIB + 4} of the task of task 1",
    ),
    "a chunk past the end": (chunk_head(EPOCH, 1, 2**40, 4) + b"1234", f"bytes {2**40} to {2**40 + 4} of the task"),
    "an end of nothing": (PullEnd(epoch=EPOCH, request=3, total=1, ok=True), "an answer to pull 3, which was never made"),
}


@pytest.mark.parametrize(("sent", "why"), VIOLATIONS.values(), ids=VIOLATIONS)
async def test_what_was_not_asked_for_ends_the_connection(
    pair: Pair, caplog: pytest.LogCaptureFixture, sent: bytes | Message, why: str, autojump_clock: MockClock
) -> None:
    connection = await pair.connect()
    connection.down.stalled = True
    payload = pair.host.offer(weights(8 * MIB))
    pair.trainer.pull(payload)
    if isinstance(sent, bytes):
        connection.acceptor.send_nowait(sent)
    else:
        pair.host.link.send(sent)
    connection.resume(connection.down.direction)

    assert await pair.trainer.done() is FAILED
    assert "the data link is closed" in caplog.text
    assert why in caplog.text
    assert not pair.trainer.link.up


async def test_a_pull_of_the_other_sides_kind_is_refused(pair: Pair, autojump_clock: MockClock) -> None:
    connection = await pair.connect()
    pair.host.offer(weights(MIB))
    pair.trainer.link.send(Pull(epoch=EPOCH, request=0, kind=PayloadKind.RESULT, seq=1, receiver=0, offset=0))
    await wait_all_tasks_blocked()

    assert [frame.length for frame in connection.down.frames] == [len(bytes([0x92, 0, 0xA4])) + len("gone")]
    assert pair.host.party == []


async def test_nothing_of_a_payload_is_logged(pair: Pair, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    caplog.set_level(logging.DEBUG)
    await pair.connect()
    payload = pair.host.offer({"w": np.frombuffer(b"canary" * 10_000, np.uint8), "canary": "canary"})
    pair.trainer.pull(evolve(announced(payload), digest=bytes(16)))
    await pair.trainer.done()

    assert "canary" not in caplog.text + repr(payload)
