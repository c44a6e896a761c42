"""Class 2 of the field reports, a lease that expires though its peer is healthy, or never expires, tried on the runtime."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from attrs import evolve

import troth.runtime
from tests.field.wiretap import CODES, Wiretap, hang
from tests.runtime.sessions.stage import run, staged
from troth.models import World, check
from troth.runtime.errors import TrainerLost
from troth.runtime.sim.faults import DOWN, UP, Drop, Slow
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.spec.core import Called, Event, Received, Send
from troth.spec.limits import Limits

LEASE_S = Limits().lease_timeout_s
INTERVAL_S = Limits().heartbeat_interval_s


def busy(seconds: float) -> Any:
    """A trainer whose tasks take so long."""

    async def script(session: TrainerSession, process: SimProcess) -> None:
        await session.init()
        while (task := await session.receive()) is not None:
            await trio.sleep(seconds)
            await session.send(task.payload)

    return script


class TestB:
    """2-B, dask/distributed#6324, #3204: a task that outlasts the lease is run again elsewhere, with the same fate, for ever."""

    def test_a_task_whose_trainer_falls_silent_is_run_once_and_told_as_lost_once(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.trainer(hang)
                async with stage.backend(on_unresponsive="fail", name="site-9") as trainer, trio.open_nursery() as nursery:

                    async def fall_silent() -> None:
                        await trio.sleep(1)
                        stage.network.of_role("control")[0].stall(UP)

                    nursery.start_soon(fall_silent)
                    with pytest.raises(TrainerLost, match=r"site-9.*'train'.*lease_timeout_s"):
                        await trainer.execute("train", {})
                    await trio.sleep(1000)
                assert (len(stage.sessions), tap.count("TaskReady")) == (1, 1)

        run(main)


class TestC:
    """2-C, NVIDIA/NVFlare#2355: one slow send held up the reader, and every heartbeat after it."""

    def test_heartbeats_keep_their_interval_while_the_other_side_says_nothing(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.trainer(busy(60))
                async with stage.backend() as trainer, trio.open_nursery() as nursery:

                    async def say_nothing() -> None:
                        await trio.sleep(1)
                        stage.network.of_role("control")[0].stall(DOWN)
                        await trio.sleep(25)
                        stage.network.of_role("control")[0].resume(DOWN)

                    nursery.start_soon(say_nothing)
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                beats = tap.times("Heartbeat")
                assert len(beats) >= 60 / INTERVAL_S - 1
                assert max(later - earlier for earlier, later in pairwise(beats)) <= INTERVAL_S + 0.1

        run(main)


class TestD:
    """2-D, NVIDIA/NVFlare#2441: heartbeats wait behind the chunks of a large task, and nothing else counts as life."""

    def test_bytes_that_move_are_life_although_no_heartbeat_arrives(self) -> None:
        limits = Limits(heartbeat_interval_s=1.0, lease_timeout_s=5.0, result_retry_s=4.0, open_retry_s=2.0)
        payload = {"w": np.arange(100_000, dtype="<f8")}

        async def main() -> None:
            async with staged() as stage:
                stage.faults.frame(Drop(), code=CODES["Heartbeat"], times=None)
                stage.faults.bytes(Slow(2.0), role="data", direction=DOWN)  # 64 KiB at a time, so it takes five leases
                stage.trainer(stage.work)
                async with stage.backend(limits=limits, on_unresponsive="fail") as trainer:
                    result = await trainer.execute("train", payload)
                    np.testing.assert_array_equal(result.payload["w"], payload["w"])
                    assert trio.current_time() > 4 * limits.lease_timeout_s
                    assert len(stage.network.of_role("control")) == 1

        run(main)


class TestE:
    """2-E, NVIDIA/NVFlare#2502, #2442: a peer was declared dead before it had been started."""

    def test_the_lease_does_not_run_before_the_session_does(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                stage.processes.spawn_delay_s = 5 * LEASE_S
                stage.trainer(stage.work)
                async with stage.backend(on_unresponsive="fail") as trainer:
                    assert trio.current_time() >= 5 * LEASE_S
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}

        run(main)


class TestF:
    """2-F, NVIDIA/NVFlare#2878, #3153, #3176: idle was taken for dead; the repair took nobody for dead any more."""

    def test_who_idles_for_ten_leases_lives(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                stage.trainer(stage.work)
                async with stage.backend(on_unresponsive="fail") as trainer:
                    await trio.sleep(10 * LEASE_S)
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                    assert len(stage.network.connections) == 2

        run(main)

    def test_who_falls_silent_is_lost_once_and_on_time(self) -> None:
        """Within the lease, the time to answer after it, and the retries of what it was asked."""

        async def main() -> None:
            async with staged() as stage:
                stage.trainer(hang)
                async with stage.backend(on_unresponsive="fail") as trainer:
                    for connection in stage.network.connections:
                        connection.stall(UP)
                    began = trio.current_time()
                    with pytest.raises(TrainerLost):
                        await trainer.execute("train", {})
                    assert LEASE_S <= trio.current_time() - began <= LEASE_S + 2 * INTERVAL_S + 1

        run(main)

    @pytest.mark.parametrize("value", [None, 0, 0.0, float("inf"), float("nan"), -1])
    def test_there_is_no_lease_that_never_ends(self, value: Any) -> None:
        with pytest.raises(ValueError, match="lease_timeout_s: must be a finite number of seconds above 0"):
            Limits(lease_timeout_s=value)


class TestG:
    """2-G, NVIDIA/NVFlare#2484: a site that was suspected went on beating, and was not believed."""

    def test_a_suspicion_ends_with_the_first_heartbeat_of_the_session(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.trainer(busy(300))
                async with stage.backend(on_unresponsive="fail") as trainer, trio.open_nursery() as nursery:

                    async def glitch() -> None:
                        (control,) = stage.network.of_role("control")
                        for _ in range(3):
                            await trio.sleep(20)
                            assert trainer._latest is not None
                            control.stall(UP)
                            while trainer._latest.core.state("lease").value != "suspect":
                                await trio.sleep(0.5)
                            tap.frames.clear()
                            control.resume(UP)
                            await trio.sleep(0.01)
                            assert trainer._latest.core.state("lease").value == "armed"

                    nursery.start_soon(glitch)
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}

        run(main)


class TestH:
    """2-H, benoitc/gunicorn#1709, nats-io/nats-server#6999, ros/nodelet_core#35: the wall clock was set, and everybody timed out."""

    @pytest.mark.parametrize("step_s", [3600.0, -3600.0])
    def test_a_step_of_the_wall_clock_changes_nothing(self, step_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        wall = time.time

        async def main() -> None:
            async with staged() as stage:
                stage.trainer(busy(100))
                async with stage.backend(on_unresponsive="fail") as trainer:
                    monkeypatch.setattr(time, "time", lambda: wall() + step_s)
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                    assert 100 <= trio.current_time() < 101

        run(main)

    def test_nothing_that_decides_reads_the_wall_clock(self) -> None:
        root = Path(troth.runtime.__file__).parent
        for path in root.rglob("*.py"):
            text = path.read_text()
            assert "time.time(" not in text, path
            assert "datetime" not in text, path


class TestI:
    """2-I, kubernetes/kubernetes#47671, #114872: each side counted with its own setting, not with what the lease says."""

    @pytest.mark.parametrize(("own_s", "granted_s"), [(30.0, 12.0), (12.0, 30.0)])
    def test_the_terms_are_the_hosts_whatever_the_trainer_was_told_before(self, own_s: float, granted_s: float) -> None:
        async def main() -> None:
            async with staged() as stage:
                stage.trainer(stage.work, change=lambda given: evolve(given, limits=evolve(given.limits, lease_timeout_s=own_s)))
                async with stage.backend(limits=Limits(lease_timeout_s=granted_s)) as trainer:
                    await trainer.execute("train", {})
                    (session,) = stage.sessions
                    assert session.terms is not None
                    assert session.terms.lease_timeout_s == granted_s
                    assert session._driver._parties["trainer"].limits.lease_timeout_s == granted_s

        run(main)


class TestK:
    """2-K, vmware/pinniped#800: a leader let go of its lease before it stopped to lead."""

    @pytest.mark.parametrize("stops_first", [False, True])
    def test_the_checker_tells_the_wrong_order_from_the_right_one(self, stops_first: bool) -> None:
        """The wrong one in three steps: it lets go, the other one takes it, and both lead."""

        def leader(leads: bool, event: Event) -> tuple[bool, list[Send]] | None:
            if isinstance(event, Received):  # the lease is free
                return True, []
            if isinstance(event, Called) and event.call == "let go":
                return (leads if not stops_first else False, [Send("other", "free")]) if leads else None  # type: ignore[arg-type]
            return (False, []) if leads and not stops_first else None

        world = World("leaders")
        one = world.party("one", leader, initial=True, observe={"leads": lambda leads: leads})
        other = world.party("other", leader, initial=False, observe={"leads": lambda leads: leads})
        world.link(one, other, "other", capacity=1)
        world.may(one, "let go", times=1)
        world.may(one, "stop", times=1)
        world.always("One", "there is one leader at most", ~(one.leads & other.leads))

        (found,) = check(world).properties
        assert (found.trace is None) is stops_first
        assert found.trace is None or len(found.trace.steps) <= 3


class TestO:
    """2-O, pytorch/xla#1728, Bogdanp/dramatiq#692, dimagi/open-chat-studio#4084: a second copy of what still runs."""

    def test_a_task_of_twenty_leases_is_run_once(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.trainer(busy(20 * LEASE_S))
                async with stage.backend(on_unresponsive="fail") as trainer:
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                assert (len(stage.sessions), tap.count("TaskReady")) == (1, 1)

        run(main)
