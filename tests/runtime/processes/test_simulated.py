"""The process table in memory keeps the promises of the real one, on trio's clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from troth.runtime.errors import Misuse, SessionAborted, SpawnFailed
from troth.runtime.ports import Exited, ExitStatus, GuardianLost, Launch, Processes
from troth.runtime.processes import guardian, guarding
from troth.runtime.sim import processes as sim
from troth.runtime.sim.processes import Living, Play, SimProcess, SimProcesses
from troth.spec.core import ProcessSignal

TERM, KILL = ExitStatus(signal=15), ExitStatus(signal=9)


def run_simulated(main: Callable[[], Awaitable[None]], **_others: Any) -> None:
    """Time passes only when everybody waits for it."""
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


simulated = pytest.mark.trio(run=run_simulated)


def launch(program: str = "train", launch_id: str = "1") -> Launch:
    return Launch(launch_id, "site-1", [program], {}, Path("/"))


async def for_ever(_process: SimProcess) -> None:
    await trio.sleep_forever()


def lasting(seconds: float, code: int = 0) -> Play:
    """Plays a process that ends by itself."""

    async def play(_process: SimProcess) -> int:
        await trio.sleep(seconds)
        return code

    return play


def with_child(child_s: float, *, takes_term: bool = False, lives_s: float = 0.0) -> Play:
    """Plays a leader that leaves a descendant behind."""

    async def play(process: SimProcess) -> None:
        process.fork(lasting(child_s), takes_term=takes_term)
        await trio.sleep(lives_s)

    return play


def test_its_graces_are_those_of_the_real_one() -> None:
    assert sim.OWNER_DEATH_GRACE_S == guarding.OWNER_DEATH_GRACE_S
    assert sim.DESCENDANTS_GRACE_S == guarding.DESCENDANTS_GRACE_S
    assert (sim.ORPHANS_LIMIT_S, sim.EVENTS_LIMIT) == (guardian.ORPHANS_LIMIT_S, guardian.EVENTS_LIMIT)


def test_both_are_the_port() -> None:
    ports: list[type[Processes]] = [SimProcesses, guardian.Guardian]

    assert len(ports) == 2


@pytest.mark.parametrize(("outcome", "code"), [(0, 0), (None, 0), (3, 3)])
@simulated
async def test_what_a_player_returns_is_the_exit_status(outcome: int | None, code: int) -> None:
    async with SimProcesses() as table:
        table.program("train", lambda _process: outcome)
        await table.spawn(launch())

        assert await table.events.receive() == Exited("1", ExitStatus(code=code))
        assert table.snapshot() == frozenset()


@simulated
async def test_an_error_of_a_session_ends_a_player_with_status_one() -> None:
    async def play(_process: SimProcess) -> None:
        raise SessionAborted("by the host")

    async with SimProcesses() as table:
        table.program("train", play)
        await table.spawn(launch())

        assert (await table.events.receive()) == Exited("1", ExitStatus(code=1))
        assert [str(error) for error in table.crashes] == ["by the host"]


@simulated
async def test_an_error_of_the_test_is_not_hidden() -> None:
    async def play(_process: SimProcess) -> None:
        raise KeyError("a fault in the test")

    async def run() -> None:
        async with SimProcesses() as table:
            table.program("train", play)
            await table.spawn(launch())
            await table.events.receive()

    with pytest.raises(ExceptionGroup) as caught:
        await run()
    assert caught.group_contains(KeyError)


@simulated
async def test_term_ends_what_does_not_take_it_and_kill_the_rest() -> None:
    async with SimProcesses() as table:
        table.program("heeds", for_ever)
        table.program("ignores", for_ever, takes_term=True)
        await table.spawn(launch("heeds", "1"))
        await table.spawn(launch("ignores", "2"))

        assert table.signal("1", ProcessSignal.TERM)
        assert table.signal("2", ProcessSignal.TERM)
        assert await table.events.receive() == Exited("1", TERM)
        await trio.sleep(1000)
        assert {living.launch_id for living in table.snapshot()} == {"2"}

        table.signal("2", ProcessSignal.KILL)
        assert await table.events.receive() == Exited("2", KILL)
        assert not table.signal("2", ProcessSignal.KILL)


@simulated
async def test_a_handler_of_term_can_take_its_time() -> None:
    async def play(process: SimProcess) -> int:
        process.takes_term = True
        await process.term.wait()
        await trio.sleep(3)
        return 7

    async with SimProcesses() as table:
        table.program("train", play)
        await table.spawn(launch())
        await trio.sleep(1)
        start = trio.current_time()
        table.signal("1", ProcessSignal.TERM)

        assert await table.events.receive() == Exited("1", ExitStatus(code=7))
        assert trio.current_time() - start == 3


@pytest.mark.parametrize(("child_s", "takes_term", "expected_s"), [(1000, False, 0), (1000, True, 2), (1.5, True, 1.5)])
@simulated
async def test_an_end_is_reported_when_nothing_is_left(child_s: float, takes_term: bool, expected_s: float) -> None:
    async with SimProcesses() as table:
        table.program("train", with_child(child_s, takes_term=takes_term))
        await table.spawn(launch())
        start = trio.current_time()

        assert await table.events.receive() == Exited("1", ExitStatus(code=0))
        assert trio.current_time() - start == expected_s
        assert table.snapshot() == frozenset()


@simulated
async def test_a_signal_reaches_every_process_of_its_launch_and_no_other() -> None:
    async with SimProcesses() as table:
        table.program("train", with_child(1000, lives_s=1000))
        first, second = await table.spawn(launch()), await table.spawn(launch(launch_id="2"))
        await trio.sleep(1)
        assert len(table.snapshot()) == 4

        table.signal("1", ProcessSignal.KILL)
        assert await table.events.receive() == Exited("1", KILL)
        assert {living.launch_id for living in table.snapshot()} == {"2"}
        assert Living("2", second, True) in table.snapshot()
        assert first != second


@simulated
async def test_what_is_stuck_survives_kill_until_it_is_not() -> None:
    async def play(process: SimProcess) -> None:
        process.stuck = True
        await trio.sleep_forever()

    async with SimProcesses() as table:
        table.program("train", play)
        await table.spawn(launch())
        await trio.sleep(1)
        table.signal("1", ProcessSignal.KILL)
        await trio.sleep(1000)
        assert len(table.snapshot()) == 1

        table.unstick("1")
        assert await table.events.receive() == Exited("1", KILL)


@simulated
async def test_the_guardian_is_lost_after_everything_was_killed() -> None:
    async with SimProcesses() as table:
        table.program("train", with_child(1000, takes_term=True, lives_s=1000))
        for number in "12":
            await table.spawn(launch(launch_id=number))
        await trio.sleep(1)
        await table.lose_guardian()

        found = [table.events.receive_nowait() for _ in range(3)]
        assert found == [Exited("1", ExitStatus()), Exited("2", ExitStatus()), GuardianLost()]
        assert table.snapshot() == frozenset()
        with pytest.raises(SpawnFailed, match="no guardian"):
            await table.spawn(launch())


@simulated
async def test_what_is_stuck_when_the_guardian_is_lost_is_not_reported() -> None:
    async def play(process: SimProcess) -> None:
        process.stuck = True
        await trio.sleep_forever()

    async with SimProcesses() as table:
        table.program("train", play)
        await table.spawn(launch())
        await trio.sleep(1)
        start = trio.current_time()
        await table.lose_guardian()

        assert table.events.receive_nowait() == GuardianLost()
        assert trio.current_time() - start == sim.ORPHANS_LIMIT_S
        table.unstick("1")


class Recorded:
    """A Files port that only notes what is removed."""

    def __init__(self) -> None:
        self.removed: list[Path] = []

    def private_directory(self) -> Path:
        raise NotImplementedError

    def write_private(self, path: Path, data: bytes) -> None:
        raise NotImplementedError

    def remove(self, path: Path) -> None:
        self.removed.append(path)


@simulated
async def test_when_the_host_is_lost_all_is_ended_and_what_was_registered_goes() -> None:
    async def watch(process: SimProcess) -> None:
        process.takes_term = True
        await process.owner_lost.wait()
        lost.append(trio.current_time())
        await trio.sleep_forever()

    files, lost = Recorded(), list[float]()
    async with SimProcesses(files) as table:
        table.program("train", watch)
        await table.spawn(launch())
        await trio.sleep(1)
        table.register(Path("/a"))
        table.register(Path("/a/b"))
        table.register(Path("/c"))
        table.unregister(Path("/c"))
        start = trio.current_time()
        await table.lose_host()

        assert lost == [start]
        assert trio.current_time() - start == sim.OWNER_DEATH_GRACE_S
        assert table.snapshot() == frozenset()
        assert files.removed == [Path("/a/b"), Path("/a")]
        with pytest.raises(trio.WouldBlock):
            table.events.receive_nowait()


@simulated
async def test_spawns_fail_and_take_time_as_they_are_told() -> None:
    async with SimProcesses() as table:
        table.program("train", for_ever)
        table.fail_spawns("no room", "no luck")
        for said in ("no room", "no luck"):
            with pytest.raises(SpawnFailed, match=f"site-1: {said}"):
                await table.spawn(launch())
        with pytest.raises(SpawnFailed, match="cannot run 'other'"):
            await table.spawn(launch("other"))

        table.spawn_delay_s = 4
        start = trio.current_time()
        await table.spawn(launch())
        assert trio.current_time() - start == 4
        with pytest.raises(Misuse, match="in use"):
            await table.spawn(launch())


@simulated
async def test_a_spawn_that_is_cancelled_leaves_no_process_and_no_event() -> None:
    async with SimProcesses() as table:
        table.program("train", for_ever)
        for delay in (0, 4):
            table.spawn_delay_s = delay
            with trio.move_on_after(0) as scope:
                await table.spawn(launch())
            assert scope.cancelled_caught
            await trio.sleep(10)
            assert table.snapshot() == frozenset()
        with pytest.raises(trio.WouldBlock):
            table.events.receive_nowait()


@simulated
async def test_leaving_ends_everything_and_reports_it() -> None:
    async with SimProcesses() as table:
        table.program("heeds", for_ever)
        table.program("ignores", for_ever, takes_term=True)
        await table.spawn(launch("heeds", "1"))
        await table.spawn(launch("ignores", "2"))
        start = trio.current_time()

    assert [event async for event in table.events] == [Exited("1", TERM), Exited("2", KILL)]
    assert trio.current_time() - start == sim.OWNER_DEATH_GRACE_S
    assert table.snapshot() == frozenset()


@simulated
async def test_leaving_because_of_a_cancellation_ends_everything_too() -> None:
    table = SimProcesses()
    with trio.move_on_after(1) as scope:
        async with table:
            table.program("ignores", for_ever, takes_term=True)
            await table.spawn(launch("ignores"))
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert table.snapshot() == frozenset()


steps = st.lists(
    st.tuples(st.sampled_from(["spawn", "term", "kill", "wait", "fork"]), st.integers(0, 3), st.sampled_from([0.0, 1.0, 5.0])), max_size=30
)


@pytest.mark.parametrize("lose", ["nothing", "guardian", "host"])
@given(steps=steps)
def test_whatever_is_done_each_launch_ends_once_and_nothing_is_left(steps: list[tuple[str, int, float]], lose: str) -> None:
    """A tiny model: which launches were started, and which ends were heard."""

    async def run() -> None:
        started: set[str] = set()
        ended: list[str] = []
        async with SimProcesses() as table:
            table.program("0", lasting(3))
            table.program("1", for_ever)
            table.program("2", for_ever, takes_term=True)
            table.program("3", with_child(9, takes_term=True, lives_s=1))
            for number, (what, which, seconds) in enumerate(steps):
                living = sorted({process.launch_id for process in table.snapshot()})
                if what == "spawn":
                    await table.spawn(launch(str(which), str(number)))
                    started.add(str(number))
                elif what == "wait":
                    await trio.sleep(seconds)
                elif living:
                    chosen = living[which % len(living)]
                    if what == "fork":
                        table.processes(chosen)[0].fork(lasting(seconds))
                    else:
                        assert table.signal(chosen, ProcessSignal(what))
            if lose == "guardian":
                await table.lose_guardian()
                assert table.snapshot() == frozenset()
            elif lose == "host":
                await table.lose_host()
                assert table.snapshot() == frozenset()
        assert table.snapshot() == frozenset()
        events = [event async for event in table.events]
        ended = [event.launch_id for event in events if isinstance(event, Exited)]
        assert len(ended) == len(set(ended))
        assert set(ended) == started or (lose == "host" and set(ended) < started)
        assert [event for event in events if event == GuardianLost()] == ([events[-1]] if lose == "guardian" else [])

    run_simulated(run)
