"""The asynchronous twin, over the real sessions and a network in memory, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.client.simulated import CODES, World, do, run
from troth.client.aio import FLModel, NotAModel, Session, open_session
from troth.runtime.calls import Calls
from troth.runtime.errors import JoinFailed, Misuse, RuntimeFault, SessionAborted, SessionClosed, SessionError
from troth.runtime.sim.faults import DOWN, UP, Drop, Faults
from troth.runtime.trainer import TrainerSession
from troth.spec.core import Resolve
from troth.spec.limits import Limits
from troth.spec.messages import Outcome


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    return partial(World, monkeypatch=monkeypatch)


def test_a_program_loops_over_the_models_that_come(world: Callable[..., World]) -> None:
    seen: list[Any] = []

    async def program(path: Path) -> None:
        async with open_session(config_file=path) as session:
            async for model in session:
                seen.append((session.get_task_name(), session.is_train(), session.is_evaluate(), session.is_submit_model()))
                session.log("loss", 0.5, "SCALAR")
                await session.send(FLModel(params={"w": model.params["w"] * 2}))
            assert await session.is_running() is False
            assert (session.get_job_id(), session.get_site_name()) == ("job", "site")
            assert session.system_info() == {"job_id": "job", "site_name": "site"}
            assert "endpoint" not in session.get_config()

    async def main() -> None:
        there = world(program)
        async with there.running() as trainer:
            for name, size in (("train", 10), ("validate", 200_000), ("submit_model", 1)):
                assert (await do(trainer, name, params={"w": np.ones(size)})).params["w"].tolist() == [2.0] * size
        assert seen == [
            ("train", True, False, False),
            ("validate", False, True, False),
            ("submit_model", False, False, True),
        ]
        assert not there.raised

    run(main)


def test_leaving_the_block_closes_the_session_in_order(world: Callable[..., World]) -> None:
    """Also by an exception, which comes out as it is."""
    cause = KeyError("before")

    async def program(path: Path) -> None:
        async with open_session(config_file=path):
            raise ValueError("of the program") from cause

    async def main() -> None:
        there = world(program)
        async with there.running() as trainer:
            with pytest.raises(SessionError):
                await do(trainer)
        assert [repr(error) for error in there.raised] == ["ValueError('of the program')"]
        assert there.raised[0].__cause__ is cause

    run(main)


def test_a_timeout_is_exact_and_leaves_the_task(world: Callable[..., World]) -> None:
    async def program(path: Path) -> None:
        async with open_session(config_file=path) as session:
            began = trio.current_time()
            assert await session.receive(timeout=0) is None
            assert trio.current_time() == began
            assert await session.receive(timeout=2.5) is None
            assert trio.current_time() - began == 2.5
            await trio.sleep(10)
            model = await session.receive(timeout=0)
            assert model is not None
            await session.send(model)
            assert await session.receive() is None

    async def main() -> None:
        there = world(program)
        async with there.running() as trainer:
            await trio.sleep(5)
            assert (await do(trainer, metrics={"a": 1})).metrics == {"a": 1}
        assert not there.raised, there.raised

    run(main)


def test_a_receive_that_is_cancelled_leaves_the_task_to_the_next(world: Callable[..., World]) -> None:
    async def program(path: Path) -> None:
        async with open_session(config_file=path) as session:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.receive)
                await wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            async for model in session:
                await session.send(model)

    async def main() -> None:
        there = world(program)
        async with there.running() as trainer:
            await do(trainer)
        assert not there.raised

    run(main)


def test_shutdown_while_a_result_is_sent_is_left_to_send(world: Callable[..., World]) -> None:
    async def program(path: Path) -> None:
        async with open_session(config_file=path) as session:
            model = await session.receive()
            assert model is not None

            async def end() -> None:
                await wait_all_tasks_blocked()
                assert await session.shutdown() is False

            async with trio.open_nursery() as nursery:
                nursery.start_soon(end)
                await session.send(model)
            assert await session.shutdown() is True
            with pytest.raises(SessionClosed):
                await session.send(FLModel(metrics={"a": 1}))

    async def main() -> None:
        there = world(program, faults=Faults())
        there.faults.frame(Drop(), code=CODES["ResultAccepted"], direction=DOWN)
        async with there.running() as trainer:
            await do(trainer, params={"w": np.ones(100_000)})
        assert not there.raised, there.raised

    run(main)


def test_a_program_that_is_cancelled_still_closes_its_session(world: Callable[..., World]) -> None:
    """What it was sending goes through, although nobody waits for it any more."""

    async def program(path: Path) -> None:
        opened: list[Session] = []
        with trio.CancelScope() as scope:
            async with open_session(config_file=path) as session, trio.open_nursery() as nursery:
                opened.append(session)
                model = await session.receive()
                assert model is not None
                nursery.start_soon(session.send, model)
                await wait_all_tasks_blocked()
                scope.cancel()
        assert opened[0].over
        assert trio.current_time() < 30

    async def main() -> None:
        there = world(program)
        there.faults.frame(Drop(), code=CODES["ResultReady"], direction=UP)
        async with there.running() as trainer:
            assert (await do(trainer, metrics={"a": 1})).metrics == {"a": 1}
        assert not there.raised, there.raised

    run(main)


def test_a_session_that_breaks_ends_its_block_with_the_fault(world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: there is nothing to wait for."""

    whole = TrainerSession.run

    async def breaking(trainer: TrainerSession, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(whole, trainer))
            task_status.started()
            await trio.sleep(2)
            raise RuntimeFault("oh")

    monkeypatch.setattr(TrainerSession, "run", breaking)
    took: list[float] = []

    async def program(path: Path) -> None:
        began = trio.current_time()
        try:
            async with open_session(config_file=path):
                await trio.sleep_forever()
        finally:
            took.append(trio.current_time() - began)

    async def main() -> None:
        there = world(program)
        async with there.running() as trainer:
            with pytest.raises(SessionError):
                await do(trainer)
        assert [repr(error) for error in there.raised] == ["RuntimeFault('oh')"]
        assert took == [2.0]

    run(main)


def aborts(world: Callable[..., World], told: list[float]) -> None:
    """An abort comes while send() waits for an answer to what is lost; how long send() took from then on is noted."""
    at: list[float] = []

    async def program(path: Path) -> None:
        async with open_session(config_file=path) as session:
            model = await session.receive()
            assert model is not None
            with pytest.raises(SessionAborted):
                await session.send(model)
            told.append(trio.current_time() - at[0])
            assert await session.is_running() is False
            with pytest.raises(SessionAborted):
                await session.receive()

    async def main() -> None:
        there = world(program)
        for name in ["ResultReady", "ResultStatus"] * 20:
            there.faults.frame(Drop(), code=CODES[name], direction=UP)
        async with there.running() as trainer, trio.open_nursery() as nursery:

            async def work() -> None:
                with pytest.raises(SessionError):
                    await do(trainer)

            nursery.start_soon(work)
            await trio.sleep(3)
            at.append(trio.current_time())
            await trainer.abort()
        assert not there.raised, there.raised

    run(main)


def test_an_abort_ends_a_send_at_once(world: Callable[..., World]) -> None:
    told: list[float] = []
    aborts(world, told)

    assert told == [0.0]


def test_a_send_that_ignores_an_abort_is_found_out(world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail."""
    resolve = Calls.resolve

    def deaf(calls: Calls, effect: Resolve) -> None:
        if (effect.call, effect.outcome) != ("send", Outcome.ABORTED):
            resolve(calls, effect)

    monkeypatch.setattr(Calls, "resolve", deaf)
    told: list[float] = []
    aborts(world, told)
    assert told == []


def test_a_passive_rank_opens_nothing(world: Callable[..., World]) -> None:
    async def program(path: Path) -> None:
        async with open_session(rank=1, config_file=path) as session:
            assert await session.receive() is None
            assert await session.is_running() is False
            assert [model async for model in session] == []
            await session.send(FLModel(metrics={"a": 1}))
            assert session.get_job_id() == "job"
            with pytest.raises(Misuse):
                session.is_train()
            assert await session.shutdown()
        async with open_session(config_file=path) as session:
            async for model in session:
                await session.send(model)

    async def main() -> None:
        there = world(program)
        async with there.running() as trainer:
            await do(trainer)
        assert not there.raised

    run(main)


def test_a_failed_open_leaves_nothing_and_may_be_tried_again(world: Callable[..., World]) -> None:
    async def program(path: Path) -> None:
        world_now.faults.refuse_dials(1000)
        began = trio.current_time()
        for _ in range(2):
            with pytest.raises(JoinFailed):
                async with open_session(config_file=path):
                    pytest.fail("nobody answered")
        assert trio.current_time() - began == pytest.approx(2.0)
        world_now.network.faults = Faults()
        async with open_session(config_file=path) as session:
            async for model in session:
                await session.send(model)

    world_now = world(program, options={"limits": Limits(join_timeout_s=1.0, hello_retry_s=0.5)})

    async def main() -> None:
        async with world_now.running() as trainer:
            await do(trainer)
        assert not world_now.raised, world_now.raised

    run(main)


def test_an_open_that_is_cancelled_leaves_nothing_and_may_be_tried_again(world: Callable[..., World]) -> None:
    async def program(path: Path) -> None:
        there.faults.refuse_dials(1000)
        with trio.move_on_after(0.5):
            async with open_session(config_file=path):
                pytest.fail("nobody answered")
        assert trio.current_time() == 0.5
        there.network.faults = Faults()
        async with open_session(config_file=path) as session:
            async for model in session:
                await session.send(model)

    there = world(program)

    async def main() -> None:
        async with there.running() as trainer:
            await do(trainer)
        assert not there.raised, there.raised

    run(main)


def test_what_is_no_model_is_said_by_receive(world: Callable[..., World]) -> None:
    async def program(path: Path) -> None:
        async with open_session(config_file=path) as session:
            assert await session.is_running()
            with pytest.raises(NotAModel):
                await session.receive()

    async def main() -> None:
        there = world(program)
        async with there.running() as trainer:
            with pytest.raises(SessionError):
                await trainer.execute("train", {"w": 1})
        assert not there.raised, there.raised

    run(main)
