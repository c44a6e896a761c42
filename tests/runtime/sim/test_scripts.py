"""Whatever a script says, frames stay frames and the journal tells the truth."""

from __future__ import annotations

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.runtime.wire.examples import status
from tests.runtime.wire.pairs import pair
from troth.runtime.sim.faults import Behind, Delay, Drop, Duplicate, Faults, FrameFault
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire import codec

FAULTS = st.none() | st.sampled_from([Drop(), Duplicate(), Duplicate(2), Delay(0.5), Delay(3.0), Behind(1), Behind(2)])


@given(plan=st.lists(FAULTS, max_size=12), capacity=st.sampled_from([3, 40, 2**16]), most_at_once=st.sampled_from([1, 7, 2**20]))
def test_whatever_the_script_frames_arrive_whole_and_as_often_as_it_says(
    plan: list[FrameFault | None], capacity: int, most_at_once: int
) -> None:
    trio.run(said, plan, capacity, most_at_once, clock=MockClock(autojump_threshold=0))


async def said(plan: list[FrameFault | None], capacity: int, most_at_once: int) -> None:
    faults = Faults(lambda frame: plan[frame.index])
    async with pair(SimNetwork(faults, capacity=capacity, most_at_once=most_at_once)) as both:
        for seq in range(1, len(plan) + 1):
            both.dialler.connection.send_nowait(*status(seq))
            await trio.sleep(0.1)
        both.dialler.connection.close_when_sent()
        await both.acceptor.over.wait()

    came = sorted(codec.decode(*frame).fields["seq"] for frame in both.acceptor.frames)
    expected = []
    for index, fault in enumerate(plan):
        times = 0 if isinstance(fault, Drop) else 1 + fault.copies if isinstance(fault, Duplicate) else 1
        expected += [index + 1] * times
    assert came == expected
    assert both.acceptor.failure is None
    assert [happened.fault for happened in faults.journal] == [fault for fault in plan if fault is not None]
