"""Class 1 of the field reports, a result lost or duplicated around shutdown and acknowledgement, tried on the runtime."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import trio

from tests.field.wiretap import CODES, Wiretap, outcome
from tests.runtime.sessions.scheduling import Chooser, every_schedule
from tests.runtime.sessions.stage import run, staged
from troth.models import World, check
from troth.runtime.errors import ResultConflict, SessionClosed, SessionError, TaskTimeout
from troth.runtime.sim.faults import UP, Delay, Drop
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.spec.core import Called, Event, Received, Send
from troth.spec.limits import Limits

LARGE = {"w": np.arange(100_000, dtype="<f8")}


class TestA:
    """1-A, flwrlabs/flower#7618: the local copy of a reply was deleted although its upload had failed."""

    def test_a_result_whose_first_two_messages_are_lost_is_kept_until_the_host_has_it_and_no_longer(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                kept: list[bool] = []

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    while await session.receive() is not None:
                        await session.send(LARGE)
                        kept.append(bool(session._results))

                tap = Wiretap.of(stage)
                tap.on["ResultAccepted"] = lambda: kept.append(bool(stage.sessions[0]._results))
                lost = stage.faults.frame(Drop(), code=CODES["ResultReady"], times=2)
                stage.trainer(script)
                async with stage.backend() as trainer:
                    result = await trainer.execute("train", {})
                    np.testing.assert_array_equal(result.payload["w"], LARGE["w"])
                    assert trainer.status().accepted == 1
                assert lost.spent
                assert kept == [True, False]

        run(main)


class TestB:
    """1-B, flwrlabs/flower#7381: a push that had been stored was pushed again, and the repetition failed the job."""

    def test_a_repetition_is_accepted_as_had_already_and_another_content_is_a_conflict(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                told: list[str] = []

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    await session.receive()
                    told.append(await outcome(session.send({"x": 7})))
                    told.append(await outcome(session.send({"x": 7})))
                    with pytest.raises(ResultConflict):
                        await session.send({"x": 8})
                    await session.receive()

                lost = stage.faults.frame(Drop(), code=CODES["ResultAccepted"])
                stage.trainer(script)
                async with stage.backend() as trainer:
                    result = await trainer.execute("train", {})
                    await trio.sleep(60)
                    assert result.payload == {"x": 7}
                    assert (trainer.status().accepted, trainer.status().settled) == (1, 1)
                assert lost.spent
                assert told == ["ok", "ok"]
                assert stage.ended == ["done"]

        run(main)


class TestC:
    """1-C, londonaicentre/FLIP#1034: a command whose reply was late was taken for not done, and done again."""

    def test_a_task_whose_acceptance_is_late_is_asked_about_and_not_run_again(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.faults.frame(Delay(20.0), code=CODES["TaskAccepted"])
                stage.trainer(stage.work)
                async with stage.backend() as trainer:
                    await trainer.execute("train", {"x": 1})
                assert len(stage.seen) == 1
                assert (len(stage.sessions), tap.count("TaskReady")) == (1, 1)

        run(main)


class TestD:
    """1-D, celery/celery#4426: "acknowledged" was noted when the acknowledgement was sent, and it never arrived."""

    def test_the_checker_shows_the_naive_protocol_to_be_wrong_in_at_most_five_steps(self) -> None:
        """A worker that is done when it has said so, and a broker that gives out again whatever it has not heard of."""

        def worker(state: tuple[int, bool], event: Event) -> tuple[tuple[int, bool], list[Send]] | None:
            runs, acked = state
            if isinstance(event, Received):
                return (min(runs + 1, 2), False), []
            return ((runs, True), [Send("broker", "ack")]) if runs and not acked else None  # type: ignore[arg-type]

        def broker(state: str, event: Event) -> tuple[str, list[Send]] | None:
            if isinstance(event, Called):
                return ("out", [Send("worker", "task")]) if state != "done" else None  # type: ignore[arg-type]
            return "done", []

        world = World("naive")
        at_work = world.party("worker", worker, initial=(0, False), observe={"runs": lambda state: state[0]})
        at_broker = world.party("broker", broker, initial="new")
        world.link(at_work, at_broker, "broker", lossy=1, capacity=1)
        world.link(at_broker, at_work, "worker", capacity=1)
        world.may(at_broker, "give", times=2)
        world.may(at_work, "finish")
        world.always("Once", "the task runs once", at_work.runs <= 1)

        (found,) = check(world).properties
        assert found.trace is not None
        assert len(found.trace.steps) <= 5


class TestE:
    """1-E, celery/kombu#2049, celery/celery#8875, #10172; and 1-L, dask/distributed#6867, #8522: work is handed out as the end begins."""

    @pytest.mark.parametrize("first", ["task", "end"])
    def test_a_task_at_the_instant_of_the_end_is_run_to_its_end_or_not_handed_out(self, first: str) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.trainer(stage.work)
                told: dict[str, str] = {}
                async with stage.backend() as trainer, trio.open_nursery() as nursery:
                    await trio.testing.wait_all_tasks_blocked()  # the trainer waits in receive()

                    async def end() -> None:
                        told["end"] = await outcome(trainer.finalize())

                    async def task() -> None:
                        told["task"] = await outcome(trainer.execute("train", {"x": 1}))

                    for one in (task, end) if first == "task" else (end, task):
                        nursery.start_soon(one)
                assert told["end"] == "ok"
                assert (told["task"], len(stage.seen)) in (("ok", 1), ("SessionClosed", 0))
                assert tap.count("TaskReady") <= 1
                assert trio.current_time() < Limits().drain_limit_s

        for order in range(2):
            with pytest.MonkeyPatch.context() as monkeypatch:
                chooser = Chooser([order], all_orders=False, chooses=True)
                chooser.install(monkeypatch)
                run(main)

    def test_from_the_moment_of_the_end_no_task_is_taken(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.trainer(stage.work)
                async with stage.backend() as trainer, trio.open_nursery() as nursery:
                    nursery.start_soon(trainer.finalize)
                    while trainer.status().state == "ready":
                        await trio.lowlevel.checkpoint()
                    for _ in range(3):
                        with pytest.raises(SessionClosed):
                            await trainer.execute("train", {})
                        await trio.sleep(0.01)
                assert tap.count("TaskReady") == 0

        run(main)


class TestG:
    """1-G, celery/celery#9505; and 8-B, pytransitions/transitions#459: an outcome and its deadline come together."""

    def test_a_result_at_its_deadline_is_a_result_or_a_timeout_and_everybody_is_told_the_same(self) -> None:
        limits = Limits(result_wait_s=5.0)
        found: set[str] = set()

        def once(chooser: Chooser) -> None:
            async def main() -> None:
                async with staged() as stage:
                    sent: list[str] = []

                    async def script(session: TrainerSession, process: SimProcess) -> None:
                        await session.init()
                        while (task := await session.receive()) is not None:
                            if task.name == "late":
                                await trio.sleep_until(began + 5.0)
                                chooser.chooses = True
                            sent.append(await outcome(session.send(task.payload)))
                            chooser.chooses = False

                    stage.trainer(script)
                    async with stage.backend(limits=limits) as trainer:
                        began = trio.current_time()
                        told = await outcome(trainer.execute("late", {"x": 1}))
                        assert (await trainer.execute("next", {"x": 2})).payload == {"x": 2}
                        assert trainer.status().accepted == (2 if told == "ok" else 1)
                    assert (told, sent[0]) in (("ok", "ok"), ("TaskTimeout", "CallCancelled"), ("TaskTimeout", "ResultRejected"))
                    found.add(told)

            with pytest.MonkeyPatch.context() as monkeypatch:
                chooser.install(monkeypatch)
                run(main)

        _, exhausted = every_schedule(once, most=300, all_orders=False)
        assert exhausted
        assert found <= {"ok", TaskTimeout.__name__}


class TestJ:
    """1-J, apache/airflow#49021, #49023, #64221: a heartbeat after the end was read as a loss, and the process was killed."""

    def test_a_heartbeat_that_arrives_after_the_end_kills_nobody(self) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    task = await session.receive()
                    assert task is not None
                    await trio.sleep(6)
                    await session.send(task.payload)
                    await session.receive()
                    await trio.sleep(3)  # its own clean-up

                late = stage.faults.frame(Delay(7.0), code=CODES["Heartbeat"])
                stage.trainer(script)
                async with stage.backend() as trainer:
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                    assert await trainer.finalize()
                    exit_status = trainer.status().exit
                    assert exit_status is not None
                    assert exit_status.clean
                assert late.spent
                assert stage.ended == ["done"]

        run(main)


class TestM:
    """1-M, NVIDIA/NVFlare#5179: "I have settled" was not heard in time, and a job with all its results was failed."""

    @pytest.mark.parametrize("busy_s", [2, 25])
    def test_a_host_that_does_not_hear_its_trainer_settle_and_exit_has_its_result_all_the_same(self, busy_s: float) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    await session.receive()
                    await session.send(LARGE)

                def deaf() -> None:
                    for connection in stage.network.of_role("control"):
                        connection.stall(UP)

                Wiretap.of(stage).on["ResultSourceSettled"] = deaf
                stage.trainer(script)
                async with stage.backend() as trainer, trio.open_nursery() as nursery:

                    async def hear_again() -> None:
                        await trio.sleep(busy_s)
                        for connection in stage.network.of_role("control"):
                            connection.resume(UP)

                    nursery.start_soon(hear_again)
                    result = await trainer.execute("train", {})
                    np.testing.assert_array_equal(result.payload["w"], LARGE["w"])
                    await trio.sleep(60)
                    assert not trainer.failed.is_set()
                    assert trainer.status().accepted == 1

        run(main)


class TestN:
    """1-N, NVIDIA/NVFlare#5097: accepted was the envelope; its tensors died with the trainer, and a receiver waited for 600 s."""

    def test_a_trainer_that_dies_after_half_of_the_bytes_fails_its_task_by_name_in_seconds(self) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    await session.receive()
                    while not stage.network.of_role("data"):
                        await trio.lowlevel.checkpoint()
                    (data,) = stage.network.of_role("data")

                    async def die() -> None:
                        while data.up.passed_bytes < LARGE["w"].nbytes // 2:
                            await trio.lowlevel.checkpoint()
                        process.deliver(9)

                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(die)
                        await session.send(LARGE)

                stage.trainer(script)
                async with stage.backend(name="site-4") as trainer:
                    with trio.fail_after(10), pytest.raises(SessionError, match=r"site-4.*'train'.*SIGKILL"):
                        await trainer.execute("train", {})
                    assert trainer.failed.is_set()

        run(main)


class TestQ:
    """1-Q, ray-project/ray#4224: a function that just returned had its last result reported twice."""

    @pytest.mark.parametrize("persistent", [True, False])
    def test_a_script_that_returns_without_a_word_has_one_result_and_its_end_is_another_thing(self, persistent: bool) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    task = await session.receive()
                    assert task is not None
                    await session.send(task.payload)

                stage.trainer(script)
                async with stage.backend(persistent=persistent) as trainer:
                    result: Any = await trainer.execute("train", {"x": 1})
                    await trio.sleep(30)
                    assert result.payload == {"x": 1}
                    assert trainer.status().accepted == 1
                    again = await outcome(partial(trainer.execute, "train", {"x": 2})())
                    assert again == ("TrainerLost" if persistent else "ok")
                    assert not trainer.failed.is_set()

        run(main)
