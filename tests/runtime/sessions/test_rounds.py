"""A task goes down and its result comes up, whatever the network does meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest
import trio

from tests.runtime.sessions.stage import Stage, run, staged
from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import Misuse
from troth.runtime.sim.faults import DOWN, UP, Cut, Delay, Direction, Drop, Duplicate, Faults, FrameFault
from troth.runtime.wire.kinds import KINDS, Role

BIG = {"w": np.arange(200_000, dtype=">f4"), "shape": np.array(3.0), "name": "x"}


async def rounds(trainer: ExternalProcess, stage: Stage, number: int) -> None:
    """So many rounds, small and large payloads in turn, each compared."""
    for each in range(number):
        payload = {"round": each} if each % 2 else BIG | {"round": each}
        result = await trainer.execute("train", payload)

        assert set(result.payload) == set(payload)
        assert result.payload["round"] == each
        if "w" in payload:
            np.testing.assert_array_equal(result.payload["w"], BIG["w"])
            assert result.payload["w"].dtype == ">f4"
    assert [task.payload["round"] for task in stage.seen] == list(range(number)), "each task was run once, in order"


async def four_rounds(faults: Faults) -> None:
    """Four rounds over a network with these faults, all of which must come back."""
    async with staged(faults) as stage:
        stage.trainer(stage.work)
        async with stage.backend() as trainer:
            await rounds(trainer, stage, 4)


def test_a_round_brings_the_payload_back() -> None:
    """Inline and pulled payloads, one after the other; then both sides end in order."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            async with stage.backend() as trainer:
                await rounds(trainer, stage, 6)
                assert trainer.status().accepted == 6
                assert trainer.status().retries == 0
            assert stage.ended == ["done"]
            assert not stage.files.contents
            assert not stage.files.directories
            assert not stage.processes.registered

    run(main)


def test_a_trainer_a_task_is_launched_for_each_and_closes_by_itself() -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            async with stage.backend(persistent=False) as trainer:
                await rounds(trainer, stage, 4)
            assert stage.ended == ["done"] * 4

    run(main)


def _faults() -> Iterator[tuple[Role, Direction, int]]:
    for kind in KINDS:
        for direction in (UP, DOWN):
            yield kind.link, direction, kind.code


@pytest.mark.parametrize("fault", [Drop(), Duplicate(), Delay(3.0)], ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize(("role", "direction", "code"), list(_faults()), ids=lambda part: str(getattr(part, "value", part)))
def test_a_frame_that_is_lost_copied_or_late_costs_time_and_nothing_else(
    fault: FrameFault, role: Role, direction: Direction, code: int
) -> None:
    """Whichever kind of frame it is, twice in a run: every round comes back, and no task is run twice."""
    faults = Faults()
    faults.frame(fault, role=role, direction=direction, code=code, times=2)

    run(partial(four_rounds, faults))


@pytest.mark.parametrize("role", ["control", "data"])
@pytest.mark.parametrize("direction", [UP, DOWN], ids=["up", "down"])
@pytest.mark.parametrize("place", [*range(60, 1400, 61), 100_000, 700_000])
def test_a_connection_that_breaks_is_dialled_again_and_nothing_is_lost(role: Role, direction: Direction, place: int) -> None:
    """Wherever it breaks."""
    faults = Faults()
    faults.bytes(Cut(at=place), role=role, direction=direction)

    run(partial(four_rounds, faults))


def test_a_second_task_is_misuse_and_disturbs_nothing() -> None:
    """One task at a time: whoever asks while one is out is told so at once."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            async with stage.backend() as trainer, trio.open_nursery() as nursery:
                nursery.start_soon(rounds, trainer, stage, 2)
                while trainer.status().task is None:
                    await trio.lowlevel.checkpoint()
                with pytest.raises(Misuse, match="already waiting in this call"):
                    await trainer.execute("train", {"round": -1})

    run(main)


def test_a_caller_that_gives_up_cancels_its_task_and_no_other() -> None:
    """The trainer's send() is told; the next task is run as ever."""

    async def main() -> None:
        async with staged() as stage:
            numbers = count()

            async def slow_first(session: Any, process: Any) -> None:
                await session.init()
                while (task := await session.receive()) is not None:
                    if next(numbers) == 0:
                        await trio.sleep(100)
                        continue
                    await session.send(task.payload)

            stage.trainer(slow_first)
            async with stage.backend() as trainer:
                with trio.move_on_after(5) as scope:
                    await trainer.execute("train", {"round": 0})
                assert scope.cancelled_caught
                result = await trainer.execute("train", {"round": 1})
                assert result.payload == {"round": 1}

    run(main)
