"""What is waited for, for how long, and what may be tried again."""

from __future__ import annotations

import numpy as np
import pytest
import trio

from tests.runtime.sessions.stage import run, staged
from troth.runtime.errors import (
    JoinFailed,
    ResultLost,
    SessionError,
    TaskTimeout,
    TaskUndelivered,
    TrainerLost,
)
from troth.runtime.sim.faults import DOWN, UP, Drop, Faults
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.kinds import BY_CLASS
from troth.spec import messages as m
from troth.spec.limits import Limits


@pytest.mark.parametrize(("policy", "longest_s"), [("wait", 700.0), ("fail", 60.0)])
def test_a_trainer_that_falls_silent_is_waited_for_or_failed_as_the_policy_says(policy: str, longest_s: float) -> None:
    """Its process lives, so under the default policy it is waited for up to the unresponsive limit."""
    faults = Faults()

    async def main() -> None:
        async def work_once(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            task = await session.receive()
            assert task is not None
            await session.send(task.payload)
            await trio.sleep_forever()

        async with staged(faults) as stage:
            stage.trainer(work_once)
            async with stage.backend(on_unresponsive=policy, limits=Limits(delivery_budget_s=2000.0)) as trainer:
                await trainer.execute("train", {})
                for connection in stage.network.of_role("control"):
                    connection.stall(UP)
                    connection.stall(DOWN)
                began = trio.current_time()
                with pytest.raises(TrainerLost):
                    await trainer.execute("train", {})
                assert trio.current_time() - began <= longest_s
                assert policy == "fail" or trio.current_time() - began > 600

    run(main)


def test_a_pause_of_three_leases_costs_nobody_the_session() -> None:
    """Both sides fall silent and come back, as after SIGSTOP and SIGCONT."""

    async def main() -> None:
        async with staged() as stage:

            async def slow(session: TrainerSession, process: SimProcess) -> None:
                await session.init()
                while (task := await session.receive()) is not None:
                    await trio.sleep(100)
                    await session.send(task.payload)

            stage.trainer(slow)
            async with stage.backend() as trainer:
                connection = stage.network.of_role("control")[0]
                async with trio.open_nursery() as nursery:

                    async def pause() -> None:
                        await trio.sleep(1)
                        connection.stall(UP)
                        connection.stall(DOWN)
                        await trio.sleep(3 * Limits().lease_timeout_s)
                        connection.resume(UP)
                        connection.resume(DOWN)

                    nursery.start_soon(pause)
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
            assert stage.ended == ["done"]

    run(main)


def test_an_init_that_failed_may_be_tried_again() -> None:
    """D21: the first one finds nobody; nothing of it is left that would be in the way of the second."""
    limits = Limits(join_timeout_s=5.0)
    faults = Faults()
    faults.refuse_dials(20)
    tries: list[str] = []

    async def main() -> None:
        async def twice(session: TrainerSession, process: SimProcess) -> None:
            for _ in range(10):
                try:
                    await session.init()
                except JoinFailed:
                    tries.append("failed")
                else:
                    tries.append("joined")
                    break
            task = await session.receive()
            assert task is not None
            await session.send(task.payload)

        async with staged(faults) as stage:
            stage.trainer(twice)
            async with stage.backend(limits=limits) as trainer:
                await trainer.execute("train", {})
                assert tries[-1] == "joined"
                assert "failed" in tries

    run(main)


def test_a_task_that_never_arrives_is_undelivered_within_its_budget() -> None:
    limits = Limits(delivery_budget_s=60.0)
    faults = Faults()
    faults.frame(Drop(), code=BY_CLASS[m.TaskReady].code, times=10_000)
    faults.frame(Drop(), code=BY_CLASS[m.TaskStatus].code, times=10_000)

    async def main() -> None:
        async with staged(faults) as stage:
            stage.trainer(stage.work)
            async with stage.backend(limits=limits) as trainer:
                with pytest.raises(TaskUndelivered):
                    await trainer.execute("train", {})
                assert trio.current_time() <= 61

    run(main)


def test_a_result_that_is_late_is_a_timeout_and_the_next_task_is_run() -> None:
    limits = Limits(result_wait_s=30.0)

    async def main() -> None:
        async with staged() as stage:

            async def late(session: TrainerSession, process: SimProcess) -> None:
                await session.init()
                while (task := await session.receive()) is not None:
                    if task.payload["x"] == 0:
                        await trio.sleep(40)
                        with pytest.raises(SessionError):
                            await session.send(task.payload)
                    else:
                        await session.send(task.payload)

            stage.trainer(late)
            async with stage.backend(limits=limits) as trainer:
                with pytest.raises(TaskTimeout):
                    await trainer.execute("train", {"x": 0})
                assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}

    run(main)


def test_a_result_whose_trainer_dies_before_it_is_fetched_is_lost_once() -> None:
    """Accepted, but its bytes never came."""
    faults = Faults()

    async def main() -> None:
        async def send_and_die(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            await session.receive()
            while not stage.network.of_role("data"):
                await trio.sleep(0.01)
            for connection in stage.network.of_role("data"):
                connection.stall(UP)
            with trio.move_on_after(5):
                await session.send({"w": np.zeros(500_000)})
            process.deliver(9)
            await trio.sleep_forever()

        async with staged(faults) as stage:
            stage.trainer(send_and_die)
            async with stage.backend() as trainer:
                with pytest.raises((ResultLost, TrainerLost)):
                    await trainer.execute("train", {})
                assert trainer.failed.is_set()

    run(main)
