"""A script says what goes wrong with which frame or connection, and the journal says what did."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.runtime.wire.examples import HEARTBEAT, status
from tests.runtime.wire.pairs import LAUNCH, authenticated, pair
from troth.runtime.errors import ChallengeFailed
from troth.runtime.sim.faults import DOWN, UP, Behind, Cut, Delay, Drop, Duplicate, End, Faults, FrameFault, Seen, Slow
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire import challenge, codec, kinds
from troth.runtime.wire.kinds import BY_CLASS, Role
from troth.spec import messages as m

pytestmark = pytest.mark.trio
STATUS = BY_CLASS[m.TaskStatus].code


async def arrivals(faults: Faults, number: int, *, expect: int, most_at_once: int = 2**20, capacity: int = 2**16) -> list[int]:
    """Send these many numbered frames; the numbers of those that came, in their order."""
    async with pair(SimNetwork(faults, most_at_once=most_at_once, capacity=capacity)) as both:
        for seq in range(1, number + 1):
            both.dialler.connection.send_nowait(*status(seq))
        got = await both.acceptor.has(expect)
        await wait_all_tasks_blocked()
        return [codec.decode(*frame).fields["seq"] for frame in got]


# -- frames ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most_at_once", [1, 2**20])
@pytest.mark.parametrize("capacity", [5, 2**16])
@pytest.mark.parametrize(
    ("fault", "skip", "expected"),
    [
        (Drop(), 0, [2, 3, 4, 5]),
        (Drop(), 2, [1, 2, 4, 5]),
        (Drop(), 4, [1, 2, 3, 4]),
        (Duplicate(), 1, [1, 2, 2, 3, 4, 5]),
        (Duplicate(3), 4, [1, 2, 3, 4, 5, 5, 5, 5]),
        (Behind(), 0, [2, 1, 3, 4, 5]),
        (Behind(3), 1, [1, 3, 4, 5, 2]),
        (Delay(9.0), 2, [1, 2, 4, 5, 3]),
    ],
)
async def test_a_frame_is_lost_doubled_or_passed_by_others(
    *, autojump_clock: MockClock, fault: FrameFault, skip: int, expected: list[int], most_at_once: int, capacity: int
) -> None:
    faults = Faults()
    faults.frame(fault, skip=skip)

    assert await arrivals(faults, 5, expect=len(expected), most_at_once=most_at_once, capacity=capacity) == expected
    (happened,) = faults.journal
    assert (happened.fault, happened.connection, happened.direction) == (fault, 0, UP)
    assert happened.frame == Seen(0, UP, "control", skip, STATUS, 1, 2)


async def test_a_delayed_frame_comes_when_it_is_due_and_at_no_other_time(autojump_clock: MockClock) -> None:
    faults = Faults()
    faults.frame(Delay(9.0))
    async with pair(SimNetwork(faults)) as both:
        start = trio.current_time()
        both.dialler.connection.send_nowait(*status(1))
        both.dialler.connection.send_nowait(*status(2))
        await both.acceptor.has(1)
        assert trio.current_time() == start
        await both.acceptor.has(2)

        assert trio.current_time() == start + 9


async def test_a_delayed_frame_is_never_put_into_the_middle_of_another(autojump_clock: MockClock) -> None:
    faults = Faults()
    faults.frame(Delay(1.0))
    async with pair(SimNetwork(faults)) as both:
        first, second = status(1)[0], status(2)[0]
        await both.dialler.connection._stream.send_all(first + second[:-1])
        await trio.sleep(5)
        assert both.acceptor.frames == []
        await both.dialler.connection._stream.send_all(second[-1:])
        got = await both.acceptor.has(2)

    assert [codec.decode(*frame).fields["seq"] for frame in got] == [2, 1]


async def test_what_is_held_comes_before_the_end() -> None:
    faults = Faults()
    faults.frame(Behind(5))
    async with pair(SimNetwork(faults)) as both:
        both.dialler.connection.send_nowait(*status(1))
        both.dialler.connection.send_nowait(*status(2))
        both.dialler.connection.close()
        await both.acceptor.over.wait()

    assert [codec.decode(*frame).fields["seq"] for frame in both.acceptor.frames] == [2, 1]


async def test_rules_choose_by_kind_direction_role_and_connection() -> None:
    faults = Faults()
    rules: list[dict[str, Any]] = [{"code": STATUS}, {"direction": DOWN}, {"role": "data"}, {"connection": 7}]
    struck = [faults.frame(Drop(), **named) for named in rules]
    async with pair(SimNetwork(faults)) as both:
        for end in (both.dialler, both.acceptor):
            for _ in range(2):
                end.connection.send_nowait(HEARTBEAT, kinds.HEARTBEAT)
        both.dialler.connection.send_nowait(*status(1))
        both.dialler.connection.send_nowait(*status(2))
        assert len(await both.acceptor.has(3)) == 3
        assert len(await both.dialler.has(1)) == 1

    assert [rule.struck for rule in struck] == [1, 1, 0, 0]
    assert [rule.spent for rule in struck] == [True, True, False, False]


async def test_a_rule_can_strike_always_or_so_many_times() -> None:
    faults = Faults()
    faults.frame(Drop(), times=3)
    assert await arrivals(faults, 5, expect=2) == [4, 5]

    faults = Faults()
    faults.frame(Drop(), times=None, skip=4)
    assert await arrivals(faults, 9, expect=4) == [1, 2, 3, 4]
    assert len(faults.journal) == 5


async def test_a_function_can_decide_on_what_no_rule_is_for() -> None:
    seen: list[Seen] = []

    def decide(frame: Seen) -> FrameFault | None:
        seen.append(frame)
        return Drop() if frame.index % 2 else None

    faults = Faults(decide)
    faults.frame(Drop())

    assert await arrivals(faults, 6, expect=2) == [3, 5]
    assert [frame.index for frame in seen] == [1, 2, 3, 4, 5]


async def test_frames_are_recorded_as_they_were_written_whatever_becomes_of_them() -> None:
    faults = Faults()
    faults.frame(Drop(), times=2)
    async with pair(SimNetwork(faults)) as both:
        for seq in (1, 2, 3):
            both.dialler.connection.send_nowait(*status(seq))
        await both.acceptor.has(1)

    up = both.network.connections[0].up
    assert [(frame.index, frame.code, frame.epoch) for frame in up.frames] == [(0, STATUS, 1), (1, STATUS, 1), (2, STATUS, 1)]
    assert up.written_bytes == challenge.DIALLER_BYTES + 3 * len(status(1)[0])
    assert up.arrived_bytes == challenge.DIALLER_BYTES + len(status(1)[0])
    assert bytes(up.written[challenge.DIALLER_BYTES :]) == b"".join(status(seq)[0] for seq in (1, 2, 3))


async def test_bytes_that_are_no_frames_pass_as_they_are() -> None:
    faults = Faults()
    faults.frame(Drop(), times=None)
    dialler, acceptor = await authenticated(SimNetwork(faults))
    garbage = bytes(range(256))
    await dialler.stream.send_all(garbage[:5])
    await dialler.stream.send_all(garbage[5:])
    found = bytearray(256)
    done = 0
    while done < 256:
        done += await acceptor.stream.receive_into(memoryview(found)[done:])

    assert found == garbage
    assert faults.journal == []


# -- bytes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [UP, DOWN])
async def test_a_connection_can_break_at_any_byte_of_its_challenge(direction: Any) -> None:
    size = challenge.DIALLER_BYTES if direction is UP else challenge.ACCEPTOR_BYTES
    for at in range(size):
        faults = Faults()
        faults.bytes(Cut(at), direction=direction)
        network = SimNetwork(faults)
        with pytest.RaisesGroup(pytest.RaisesExc(ChallengeFailed), allow_unwrapped=True, flatten_subgroups=True):
            await authenticated(network)

        assert [happened.fault for happened in faults.journal] == [Cut(at)]
        assert network.connections[0].pipes[direction].passed_bytes == at


async def test_a_role_is_chosen_by_what_the_dialler_says() -> None:
    faults = Faults()
    rule = faults.bytes(End(at=200), direction=UP, role="data", skip=1)
    network = SimNetwork(faults)
    for role, epoch in (("control", 0), ("data", 1), ("data", 2), ("data", 3)):
        await authenticated(network, role=role, epoch=epoch)  # type: ignore[arg-type]
    for connection in network.connections:
        connection.dialler.send_nowait(b"x" * 200)

    assert [(connection.role, connection.epoch, connection.launch) for connection in network.connections] == [
        ("control", 0, LAUNCH),
        ("data", 1, LAUNCH),
        ("data", 2, LAUNCH),
        ("data", 3, LAUNCH),
    ]
    assert [connection.alive for connection in network.connections] == [True, True, False, True]
    assert [connection.number for connection in network.of_role("data")] == [1, 2, 3]
    assert rule.spent


async def test_a_fault_of_bytes_is_not_one_of_frames() -> None:
    faults = Faults()
    faults.frame(Cut(1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is for bytes"):
        faults.for_frame(Seen(0, UP, None, 0, 1, 1, 1))
    faults.bytes(Drop(), direction=UP)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is for a frame"):
        faults.for_bytes(0, UP, None)


async def test_a_slow_connection_is_slow_from_its_first_byte(autojump_clock: MockClock) -> None:
    faults = Faults()
    faults.bytes(Slow(0.5), direction=UP)
    faults.bytes(Slow(1.0), direction=DOWN)
    start = trio.current_time()
    await authenticated(SimNetwork(faults))

    assert trio.current_time() - start == 3.0


# -- all of it ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_the_same_script_gives_the_same_bytes_at_the_same_times(autojump_clock: MockClock, seed: int) -> None:
    async def run() -> Any:
        faults = Faults(lambda frame: [None, Drop(), Delay(0.7), Behind(1), Duplicate()][(frame.index * 7 + seed) % 5])
        faults.bytes(Cut(at=700), direction=UP)
        network = SimNetwork(faults, capacity=30)
        start = trio.current_time()
        roles: list[Role] = ["control"]
        async with pair(network, role=roles[0]) as both:
            for seq in range(1, 50):
                if not both.dialler.connection.closed:
                    both.dialler.connection.send_nowait(*status(seq))
                await trio.sleep(0.1)
        up = network.connections[0].up
        journal = [(round(happened.at_s - start, 9), happened.fault, happened.frame) for happened in faults.journal]
        return journal, bytes(up.written[challenge.DIALLER_BYTES :]), bytes(up.arrived[challenge.DIALLER_BYTES :]), both.acceptor.frames

    assert await run() == await run()
