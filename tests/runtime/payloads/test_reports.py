"""What is reported of a transfer, and how transfers share a link."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import trio
from trio.testing import MockClock

from tests.runtime.payloads.rig import COMPLETE, EPOCH, KEY, MIB, Pair, announced, chunks, ended, weights
from tests.runtime.payloads.trees import differs
from troth.runtime.sim.faults import DOWN
from troth.runtime.wire.challenge import ACCEPTOR_BYTES
from troth.spec.core import Received, TransferEnded, TransferProgressed
from troth.spec.messages import PayloadGone

pytestmark = pytest.mark.trio


@pytest.fixture
def pair(nursery: trio.Nursery) -> Pair:
    return Pair(nursery)


async def test_both_sides_of_a_transfer_report_it_under_their_own_names(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    pair.trainer.pull(pair.host.offer(weights(3 * MIB)))
    await pair.trainer.done()

    assert set(pair.trainer.party) == {TransferProgressed("task", KEY)}
    assert {event for _, event in pair.trainer.receivers} == {TransferProgressed("payload", KEY), ended()}
    assert pair.trainer.receivers[0] == (KEY, TransferProgressed("payload", KEY))
    assert pair.trainer.receivers[-1] == (KEY, ended())
    assert pair.host.party[0] == TransferProgressed("task", KEY)
    assert pair.host.party[-2:] == [TransferProgressed("task", KEY), ended(kind="task")]
    assert pair.host.receivers == []


async def test_the_tree_is_there_before_its_end_is_reported(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    order: list[object] = []
    payload = pair.host.offer(weights(MIB))
    pair.trainer.react = order.append
    pair.trainer.link.pull("task", KEY, announced(payload), lambda tree: order.append("tree"))
    await pair.trainer.done()

    assert order.index("tree") < order.index(ended())


async def test_a_transfer_of_one_chunk_moves_and_ends(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    pair.trainer.pull(pair.host.offer({"w": np.zeros(500)}))
    await pair.trainer.done()
    await pair.host.until(pair.host.served)

    assert pair.host.party == [TransferProgressed("task", KEY), ended(kind="task")]
    assert pair.trainer.party == [TransferProgressed("task", KEY)]
    assert [event for _, event in pair.trainer.receivers] == [TransferProgressed("payload", KEY), ended()]


async def test_three_pulls_at_once_take_turns(pair: Pair, autojump_clock: MockClock) -> None:
    connection = await pair.connect()
    keys = [(1, 0), (2, 0), (3, 0)]
    trees = [weights(6 * MIB, seed) for seed in range(3)]
    payloads = [pair.host.offer(tree, key) for tree, key in zip(trees, keys, strict=True)]
    for payload, key in zip(payloads, keys, strict=True):
        pair.trainer.pull(payload, key)
    for key in keys:
        assert await pair.trainer.done(key) is COMPLETE

    for tree, key in zip(trees, keys, strict=True):
        assert differs(tree, pair.trainer.trees[key][0]) is None
    sent = chunks(bytes(connection.down.written), ACCEPTOR_BYTES)
    assert max(size for _, _, size in sent) == MIB
    order = [request for request, _, _ in sent]
    assert all(sorted(order[n : n + 3]) == [1, 2, 3] for n in range(0, len(order) - 3, 3))


async def test_a_small_payload_does_not_wait_for_a_large_one(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    pair.trainer.pull(pair.host.offer(weights(50 * MIB), (1, 0)), (1, 0))
    await pair.trainer.until(pair.trainer.receivers.__len__)
    pair.trainer.pull(pair.host.offer(weights(40_000), (2, 0)), (2, 0))

    assert await pair.trainer.done((2, 0)) is COMPLETE
    assert pair.trainer.ends((1, 0)) == []


async def test_a_receiver_that_does_not_read_stops_nobody_else(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    slow, quick = Pair(nursery), Pair(nursery)
    (await slow.connect()).stall(DOWN)
    await quick.connect()
    slow.trainer.pull(slow.host.offer(weights(4 * MIB)))
    quick.trainer.pull(quick.host.offer(weights(4 * MIB)))

    assert await quick.trainer.done() is COMPLETE
    assert slow.trainer.ends() == []


async def test_a_message_passes_a_payload_that_is_under_way(pair: Pair, autojump_clock: MockClock) -> None:
    await pair.connect()
    pair.trainer.pull(pair.host.offer(weights(40 * MIB)))
    await pair.trainer.until(pair.trainer.receivers.__len__)
    gone = PayloadGone(epoch=EPOCH, seq=9, receiver=0)
    pair.host.link.send(gone)
    await pair.trainer.until(lambda: ((9, 0), Received("data", gone)) in pair.trainer.receivers)

    assert pair.trainer.ends() == []


async def test_progress_is_reported_at_the_first_byte_then_four_times_a_second_and_at_the_last(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """64 KiB are on their way at a time, and take 20 ms."""
    pair = Pair(nursery)
    connection = await pair.connect()
    connection.down.slow_s = 0.02
    payload = pair.host.offer(weights(10 * MIB))
    begun = trio.current_time()
    pair.trainer.pull(payload)
    await pair.trainer.done()
    took = trio.current_time() - begun

    for said in (pair.trainer.progress("payload"), pair.trainer.progress("task"), pair.host.progress("task")):
        gaps = [later - earlier for earlier, later in pairwise(said)]
        assert said[0] - begun < 0.1
        assert all(gap >= 0.25 for gap in gaps[:-1])
        assert all(gap < 0.5 for gap in gaps)
        assert begun + took - said[-1] < 0.1
        assert len(said) > 8


async def test_what_is_slow_moves_in_small_chunks(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pair = Pair(nursery, capacity=4096)
    connection = await pair.connect()
    connection.down.slow_s = 0.05
    pair.trainer.pull(pair.host.offer(weights(3 * MIB)))
    await pair.trainer.done()

    sizes = [size for _, _, size in chunks(bytes(connection.down.written), ACCEPTOR_BYTES)]
    assert min(sizes[:-1]) == MIB // 16


async def test_a_link_that_is_cancelled_reports_nothing(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        pair = Pair(nursery)
        await pair.connect()
        pair.trainer.pull(pair.host.offer(weights(8 * MIB)))
        await pair.trainer.until(pair.trainer.receivers.__len__)
        nursery.cancel_scope.cancel()

    reported = [*pair.host.party, *(event for _, event in pair.trainer.receivers)]
    assert not any(isinstance(event, TransferEnded) for event in reported)
    assert not pair.trainer.link.up
    assert not pair.host.link.up
