"""Class 8 of the field reports, races and misuse of state-machine libraries, tried on the runtime and its driver."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from attrs import define, field

from tests.field.wiretap import outcome
from tests.runtime.sessions.stage import run, staged
from tests.spec.toys import TURNSTILE_PARTY
from troth.client.records import record
from troth.runtime.driver import Driver
from troth.runtime.errors import SessionAborted
from troth.runtime.sim.processes import SimProcess
from troth.runtime.status import TrainerStatus
from troth.runtime.trainer import TrainerSession
from troth.spec.core import Called, Effect, Event, Refusal
from troth.spec.engine import PartyCore


class TestA:
    """8-A, pytransitions/transitions#640: a hundred coroutines trigger one transition, and several of them succeed."""

    def test_of_a_hundred_tasks_at_once_one_is_run_and_the_others_are_told_so(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                told: Counter[str] = Counter()
                stage.trainer(stage.work)
                async with stage.backend() as trainer:

                    async def one(number: int) -> None:
                        told[await outcome(trainer.execute("train", {"x": number}))] += 1

                    async with trio.open_nursery() as nursery:
                        for number in range(100):
                            nursery.start_soon(one, number)
                    assert trainer.status().accepted == 1
                assert told == {"ok": 1, "Misuse": 99}
                assert len(stage.seen) == 1

        run(main)

    def test_of_a_hundred_results_of_one_task_one_is_accepted(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                told: Counter[str] = Counter()

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    await session.receive()

                    async def one(number: int) -> None:
                        told[await outcome(session.send({"x": number}))] += 1

                    async with trio.open_nursery() as nursery:
                        for number in range(100):
                            nursery.start_soon(one, number)

                stage.trainer(script)
                async with stage.backend() as trainer:
                    await trainer.execute("train", {})
                    await trio.sleep(1)
                    assert trainer.status().accepted == 1
                assert told["ok"] == 1
                assert told.total() == 100
                assert set(told) <= {"ok", "Misuse", "ResultConflict"}

        run(main)


class TestC:
    """8-C, pytransitions/transitions#465, #713: a transition of one task cancelled the task of another, without a word."""

    def test_an_abort_is_told_to_who_waits_and_cancels_nobody(self) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    await session.receive()
                    await trio.sleep_forever()

                stage.trainer(script)
                told: list[str] = []
                async with stage.backend() as trainer, trio.open_nursery() as nursery:

                    async def ask() -> None:
                        with pytest.raises(SessionAborted):
                            await trainer.execute("train", {})
                        await trio.sleep(1)  # this task goes on
                        told.append("asked")

                    async def bystander() -> None:
                        await trio.sleep(100)
                        told.append("stood by")

                    nursery.start_soon(ask)
                    nursery.start_soon(bystander)
                    while trainer.status().task is None:
                        await trio.lowlevel.checkpoint()
                    await trainer.abort()
                assert told == ["asked", "stood by"]

        run(main)


class TestF:
    """8-F, pytransitions/transitions#225, #388: a callback ran under the machine's lock, and whoever asked for the state waited for it."""

    def test_a_callback_may_ask_for_the_state_and_begin_a_call(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                found: list[TrainerStatus] = []

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    await session.receive()
                    session.log(record("loss", 0.5, "SCALAR", {}))
                    await trio.sleep_forever()

                def on_log(_name: str, _record: object) -> None:
                    found.append(trainer.status())
                    nursery.start_soon(trainer.abort)

                stage.trainer(script)
                async with trio.open_nursery() as nursery, stage.backend(on_log=on_log) as trainer:
                    with pytest.raises(SessionAborted):
                        await trainer.execute("train", {})
                assert [status.task for status in found] == ["train"]

        run(main)


@define(eq=False)
class Chaining:
    """Gives the driver more events while each step is being performed: what a callback does that triggers a transition."""

    driver: Driver
    core: PartyCore
    left: int
    given: int = 0
    told: Counter[str] = field(factory=Counter)

    def perform(self, effect: Effect) -> bool:
        """There are none."""
        raise AssertionError(effect)

    def violated(self, event: Event, refusal: Refusal) -> None:
        """There is no peer."""
        raise AssertionError(event)

    def stepped(self) -> None:
        """Two more, as long as there are any."""
        for call in ("coin", "push"):
            if self.left:
                self.left -= 1
                self.given += 1
                assert self.driver.give("gate", Called(call)) is None  # it waits for this step


class TestH:
    """8-G, fgmacedo/python-statemachine#503, and 8-H, basiltt/xstate-statemachine#37, #50, mriehl/fysom#20, UnquietCode/JState#22: events
    that come while another is under way overtake it, are dropped without a word, or deadlock."""

    def test_of_ten_thousand_events_in_the_middle_of_steps_and_from_tasks_none_is_lost(self) -> None:
        driver, core = Driver(), PartyCore(TURNSTILE_PARTY)
        performer = Chaining(driver, core, left=8000)
        told: Counter[str] = Counter()
        looked: Counter[str] = Counter()

        def look(_party: str, _core: PartyCore, _event: Event, step: Any) -> None:
            looked["refused" if step.refusal else "handled"] += 1

        driver.on_step = look
        driver.add("gate", core, performer)

        async def events() -> None:
            for _ in range(125):
                for call in ("push", "coin"):
                    step = driver.give("gate", Called(call))
                    assert step is not None
                    told["refused" if step.refusal else "handled"] += 1
                    await trio.lowlevel.checkpoint()

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(8):
                    nursery.start_soon(events)

        run(main)
        assert told.total() == 2000
        assert performer.given == 8000
        assert looked.total() == 10_000
        assert looked["refused"] > 0
