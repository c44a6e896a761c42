"""Payloads over the data link: whole, in both directions, at once, and from where they stopped."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import MockClock

from tests.runtime.payloads.rig import COMPLETE, EPOCH, FAILED, KEY, MIB, Pair, announced, chunks, weights
from tests.runtime.payloads.trees import differs
from troth.runtime.payloads import encode
from troth.runtime.sim.faults import DOWN, UP, Cut, Faults
from troth.runtime.wire.challenge import ACCEPTOR_BYTES
from troth.runtime.wire.kinds import BY_CODE, PullEnd, PullStopped
from troth.spec.core import Received
from troth.spec.messages import PayloadAbandoned, PayloadGone, PayloadHeld, PayloadReleased

pytestmark = pytest.mark.trio


@pytest.fixture
def pair(nursery: trio.Nursery) -> Pair:
    return Pair(nursery)


async def test_a_payload_moves_each_way_at_the_same_time(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    task, result = weights(5 * MIB, 1), weights(3 * MIB, 2)
    assert pair.trainer.pull(pair.host.offer(task))
    assert pair.host.pull(pair.trainer.offer(result))

    assert (await pair.trainer.done(), await pair.host.done()) == (COMPLETE, COMPLETE)
    assert differs(task, pair.trainer.trees[KEY][0]) is None
    assert differs(result, pair.host.trees[KEY][0]) is None


async def test_every_layout_and_byte_order_moves_as_it_is(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """Over a network that gives a few bytes at a time, so that every boundary is crossed."""
    pair = Pair(nursery, most_at_once=997)
    await pair.connect()
    base = np.arange(60_000, dtype=">f4").reshape(200, 300)
    tree = {
        "big-endian": base,
        "fortran": np.asfortranarray(base),
        "strided": base[::2, ::3],
        "cube": np.asfortranarray(np.arange(24, dtype="<u2").reshape(2, 3, 4)),
        "scalar array": np.array(3.5, ">f8"),
        "empty": np.empty((0, 5), ">i8"),
        "dates": np.arange("2001-01", "2031-01", dtype="M8[M]"),
        "text": np.array(["ä", "bcd"]),
        "long": "ä" * 10_000,
        "bytes": bytes(range(256)) * 40,
        "many": [np.full(n % 7, n, np.int16) for n in range(500)],
    }
    pair.trainer.pull(pair.host.offer(tree))

    assert await pair.trainer.done() is COMPLETE
    assert differs(tree, pair.trainer.trees[KEY][0]) is None


async def test_a_transfer_that_is_cut_goes_on_where_it_stopped(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    faults = Faults()
    faults.bytes(Cut(at=3 * MIB), role="data", direction=DOWN)
    pair = Pair(nursery, faults)
    await pair.connect()
    tree = weights(5 * MIB)
    payload = pair.host.offer(tree)
    pair.trainer.pull(payload)
    assert await pair.trainer.done() is FAILED
    await pair.host.until(pair.host.served)
    assert pair.host.served() == [FAILED]
    assert not pair.trainer.link.up

    again = await pair.connect()
    assert pair.trainer.pull(payload)
    assert await pair.trainer.done(times=2) is COMPLETE

    assert differs(tree, pair.trainer.trees[KEY][0]) is None
    first = chunks(bytes(again.down.written), ACCEPTOR_BYTES)[0]
    assert 2.9 * MIB < first[1] < 3 * MIB
    assert again.down.written_bytes < payload.nbytes - 2.9 * MIB
    assert pair.host.served() == [FAILED, COMPLETE]


async def test_it_is_cut_anywhere_and_still_comes_out_right(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """Cut again and again, both ways in turn, at distances that fall into heads, bodies and arrays."""
    pair = Pair(nursery)
    tree = weights(MIB)
    payload, tries = pair.host.offer(tree), 0
    for tries in range(1, 200):
        connection = await pair.connect()
        connection.cut_after(UP if tries % 5 == 0 else DOWN, 17 if tries % 5 == 0 else 1 + 7919 * (tries % 40))
        pair.trainer.pull(payload)
        if await pair.trainer.done(times=tries) is COMPLETE:
            break

    assert differs(tree, pair.trainer.trees[KEY][0]) is None
    assert tries > 5


async def test_a_cancelled_pull_reports_nothing_more_and_its_source_stops(pair: Pair, autojump_clock: MockClock) -> None:
    connection = await pair.connect()
    payload = pair.host.offer(weights(20 * MIB))
    pair.trainer.pull(payload)
    await pair.trainer.until(pair.trainer.receivers.__len__)
    pair.trainer.cancel()
    seen = len(pair.trainer.receivers)
    await pair.host.until(pair.host.served)
    await trio.sleep(60)

    assert pair.host.served() == [FAILED]
    assert len(pair.trainer.receivers) == seen
    assert connection.down.written_bytes < 5 * MIB
    assert PullStopped in [BY_CODE[frame.code].message for frame in connection.up.frames]


async def test_a_pull_that_is_cancelled_and_made_again_goes_on_where_it_was(pair: Pair, autojump_clock: MockClock) -> None:
    """A receiver whose transfer has stalled does so in one step."""
    connection = await pair.connect()
    tree = weights(8 * MIB)
    payload = pair.host.offer(tree)
    pair.trainer.pull(payload)
    await pair.trainer.until(pair.trainer.receivers.__len__)
    pair.trainer.cancel()
    pair.trainer.pull(payload)

    assert await pair.trainer.done() is COMPLETE
    await trio.sleep(60)
    assert pair.trainer.ends() == [COMPLETE]
    assert differs(tree, pair.trainer.trees[KEY][0]) is None
    assert connection.down.written_bytes < payload.nbytes + 3 * MIB


async def test_a_receiver_that_asks_twice_gets_one_payload(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    tree = weights(4 * MIB)
    payload = pair.host.offer(tree)
    pair.trainer.pull(payload)
    pair.trainer.pull(payload)
    await pair.host.until(pair.host.party.__len__)
    pair.trainer.pull(payload)
    assert await pair.trainer.done() is COMPLETE
    await pair.host.until(pair.host.served)
    await trio.sleep(60)

    assert (pair.trainer.ends(), pair.host.served()) == ([COMPLETE], [COMPLETE])
    assert [differs(tree, came) for came in pair.trainer.trees[KEY]] == [None]
    assert len(pair.host.progress("task")) == 2


async def test_who_asks_last_gets_the_payload(pair: Pair, autojump_clock: MockClock) -> None:
    """Also if it is another one: what has come of the first is of no use then."""
    await pair.connect()
    old, new = weights(4 * MIB, 1), weights(4 * MIB, 2)
    pair.trainer.pull(pair.host.offer(old))
    await pair.trainer.until(pair.trainer.receivers.__len__)
    came: list[Any] = []
    pair.trainer.link.pull("task", KEY, announced(pair.host.offer(new)), lambda _tree: came.append("second"))
    pair.trainer.link.pull("task", KEY, announced(pair.host.offer(new)), came.append)

    assert await pair.trainer.done() is COMPLETE
    assert [differs(new, tree) for tree in came] == [None]
    assert pair.trainer.trees[KEY] == []


async def test_a_payload_may_be_fetched_again_after_it_was_whole(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    payload = pair.host.offer(weights(MIB))
    for times in (1, 2):
        pair.trainer.pull(payload)
        assert await pair.trainer.done(times=times) is COMPLETE
    await pair.host.until(lambda: len(pair.host.served()) == 2)

    first, second = pair.trainer.trees[KEY]
    assert differs(first, second) is None
    assert not np.shares_memory(first["big"], second["big"])


async def test_a_source_that_offers_no_such_payload_refuses(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    payload = pair.host.offer(weights(MIB))

    for key in [(2, 0), (1, 1)]:
        pair.trainer.pull(payload, key)
        assert await pair.trainer.done(key) is FAILED
    assert pair.host.party == []


async def test_a_source_refuses_an_offset_that_is_not_in_its_payload(pair: Pair, autojump_clock: MockClock) -> None:
    """What is offered now may be another payload than the one that was begun."""
    connection = await pair.connect()
    large = pair.host.offer(weights(8 * MIB))
    pair.trainer.pull(large)
    await pair.trainer.until(pair.trainer.receivers.__len__)
    connection.cut()
    await pair.trainer.done()
    pair.host.release()
    pair.host.offer(weights(100))
    await pair.connect()
    pair.trainer.pull(large)

    assert await pair.trainer.done(times=2) is FAILED


async def test_messages_of_the_cores_go_to_the_party_and_to_its_receivers(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    held, abandoned = PayloadHeld(epoch=EPOCH, seq=5, receiver=3), PayloadAbandoned(epoch=EPOCH, seq=6, receiver=0)
    released, gone = PayloadReleased(epoch=EPOCH, seq=5, receiver=3), PayloadGone(epoch=EPOCH, seq=6, receiver=0)
    assert pair.trainer.link.send(held)
    assert pair.trainer.link.send(abandoned)
    await pair.host.until(lambda: len(pair.host.party) == 2)
    assert pair.host.link.send(released)
    assert pair.host.link.send(gone)
    await pair.trainer.until(lambda: len(pair.trainer.receivers) == 2)

    assert pair.host.party == [Received("data", held), Received("data", abandoned)]
    assert pair.trainer.receivers == [((5, 3), Received("data", released)), ((6, 0), Received("data", gone))]
    assert (len(pair.host.receivers), len(pair.trainer.party)) == (0, 0)


async def test_without_a_connection_pulling_and_sending_fail_at_once(pair: Pair, autojump_clock: MockClock) -> None:
    payload = encode(weights(MIB))

    assert not pair.trainer.pull(payload)
    assert not pair.trainer.link.send(PayloadHeld(epoch=EPOCH, seq=1, receiver=0))
    assert pair.trainer.receivers == []
    await pair.connect()
    pair.host.link.offer("task", KEY, payload)
    pair.trainer.link.close()
    assert not pair.trainer.pull(payload)


@pytest.mark.parametrize("tree", [{"w": np.arange(9.0), "name": "small"}, {"only": ["values", 1, None]}], ids=["arrays", "no arrays"])
async def test_a_payload_that_rode_in_its_message_needs_no_connection(pair: Pair, tree: Any, autojump_clock: MockClock) -> None:
    assert pair.trainer.pull(announced(encode(tree), inline=True))

    assert pair.trainer.ends() == [COMPLETE]
    assert differs(tree, pair.trainer.trees[KEY][0]) is None
    assert pair.trainer.party == []


async def test_a_new_connection_takes_the_place_of_the_old_one(pair: Pair, autojump_clock: MockClock) -> None:
    first = await pair.connect()
    payload = pair.host.offer(weights(8 * MIB))
    pair.trainer.pull(payload)
    await pair.trainer.until(pair.trainer.receivers.__len__)
    await pair.connect()
    await pair.trainer.until(pair.trainer.ends)

    assert not first.alive
    assert pair.trainer.ends() == [FAILED]
    pair.trainer.pull(payload)
    assert await pair.trainer.done(times=2) is COMPLETE


async def test_a_pull_takes_little_memory_beyond_the_arrays_that_it_becomes(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pair = Pair(nursery)
    pair.network.record = False
    await pair.connect()
    payload = pair.host.offer({"big": np.zeros(40 * MIB, np.uint8), "small": [np.zeros(1000) for _ in range(100)]})
    tracemalloc.start()
    pair.trainer.pull(payload)
    assert await pair.trainer.done() is COMPLETE
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert payload.nbytes < peak < payload.nbytes + 3 * MIB


async def test_an_end_that_comes_too_early_is_a_failure(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    pair.trainer.pull(pair.host.offer(weights(8 * MIB)))
    await pair.trainer.until(pair.trainer.receivers.__len__)
    pair.host.link.send(PullEnd(epoch=EPOCH, request=1, total=0, ok=True))

    assert await pair.trainer.done() is FAILED
