"""A crash at every boundary between two effects, of the trainer and of the host: the other side ends well, and soon."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import trio

from tests.runtime.sessions.crashing import Crasher, Died, Mortal, hang_up_all, mortal_trainers
from tests.runtime.sessions.oversight import Oversight, check_nothing_is_left
from tests.runtime.sessions.scheduling import Chooser
from tests.runtime.sessions.stage import Stage, run, staged
from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import SessionError
from troth.runtime.sim.processes import OWNER_DEATH_GRACE_S

PAYLOADS: tuple[dict[str, Any], ...] = ({"x": np.arange(3)}, {"x": np.arange(50_000, dtype="<f8")})
"""One rides in its message, the other comes over a link of its own."""
SOON_S = 15.0
"""What a run may take in all; it takes a few seconds where nobody crashes."""


async def use(backend: ExternalProcess, told: list[str]) -> None:
    """Both tasks; what comes back is right, or is an error that says so."""
    for payload in PAYLOADS:
        try:
            result = await backend.execute("train", payload)
        except SessionError as error:
            told.append(type(error).__name__)
        else:
            np.testing.assert_array_equal(result.payload["x"], payload["x"])
            told.append("result")


def overseen(crasher: Crasher, main: Callable[[Oversight], Awaitable[None]], *, dies: bool) -> None:
    """Run it, with every step watched and every party replayed; ``dies`` says whether the crasher must have struck."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        Chooser().install(monkeypatch)
        crasher.install(monkeypatch)
        oversight = Oversight.installed(monkeypatch)
        run(lambda: main(oversight))
    assert bool(crasher.dead) is dies
    oversight.check()


def trainer_crashed(at: int | None, *, persistent: bool) -> tuple[int, list[str]]:
    """A run in which the trainer is killed at that boundary; how many there are, and what the host's calls were told."""
    crasher = Crasher("trainer", at)
    told: list[str] = []

    async def main(oversight: Oversight) -> None:
        async with staged() as stage:
            tasks = trio.lowlevel.current_statistics().tasks_living
            mortal_trainers(stage, crasher)
            with trio.fail_after(SOON_S):
                try:
                    async with stage.backend(persistent=persistent) as backend:
                        await use(backend, told)
                        assert backend.status().task is None
                except SessionError as error:
                    told.append(f"entering: {type(error).__name__}")
            check_nothing_is_left(stage, oversight, tasks, crasher.dead)

    overseen(crasher, main, dies=at is not None)
    return crasher.seen, told


def host_crashed(at: int | None, *, persistent: bool) -> tuple[int, list[str]]:
    """A run in which the host is killed at that boundary; how many there are, and how the trainers' scripts ended."""
    crasher = Crasher("host", at)
    ended: list[str] = []

    async def main(_oversight: Oversight) -> None:
        ours, theirs = os.pipe()
        async with trio.open_nursery() as nursery, staged() as stage:
            tasks = trio.lowlevel.current_statistics().tasks_living
            stage.owner_fd = ours
            stage.trainer(stage.work, takes_term=True)
            died = trio.Event()

            async def clear_up() -> None:
                await stage.processes.lose_host()
                died.set()

            def kill(_driver: Any) -> None:
                hang_up_all(stage)
                os.close(theirs)
                nursery.start_soon(clear_up)

            crasher.kill = kill
            processes, files = Mortal(stage.processes, crasher), Mortal(stage.files, crasher)
            with trio.fail_after(SOON_S):
                try:
                    async with stage.backend(persistent=persistent, processes=processes, files=files) as backend:
                        await use(backend, [])
                except* (Died, SessionError):
                    assert crasher.dead
                if crasher.dead:
                    began = trio.current_time()
                    await died.wait()
                    assert trio.current_time() - began < OWNER_DEATH_GRACE_S, "a trainer did not end by itself"
                else:
                    os.close(theirs)
            check_trainers(stage, tasks)
            ended.extend(stage.ended)
        os.close(ours)

    overseen(crasher, main, dies=at is not None)
    return crasher.seen, ended


def check_trainers(stage: Stage, tasks: int) -> None:
    """Nothing is left of the trainers, nor of what the host had registered."""
    assert not stage.processes.snapshot()
    assert not stage.processes.registered
    assert not [connection.number for connection in stage.network.connections if connection.alive]
    assert trio.lowlevel.current_statistics().tasks_living == tasks


def at_every_boundary(crashed: Callable[..., tuple[int, list[str]]], *, persistent: bool) -> Counter[tuple[str, ...]]:
    """How often the runs ended how, one for each boundary of the run without a crash."""
    boundaries, _ = crashed(None, persistent=persistent)
    found: Counter[tuple[str, ...]] = Counter()
    for at in range(boundaries):
        try:
            found[tuple(crashed(at, persistent=persistent)[1])] += 1
        except BaseException as error:
            error.add_note(f"it crashed at boundary {at} of {boundaries}")
            raise
    assert found.total() == boundaries > 50
    return found


def test_a_trainer_that_crashes_anywhere_is_told_as_lost_or_has_left_its_result() -> None:
    """Entering, or the task that is out, fails; what came before it is right, and leaving the block takes no time."""
    found = at_every_boundary(trainer_crashed, persistent=True)

    assert set(found) == {
        ("entering: JoinFailed",),
        ("TrainerLost", "TrainerLost"),
        ("result", "TrainerLost"),
        ("result", "result"),
    }


def test_a_trainer_that_crashes_anywhere_costs_its_own_task_only_with_a_launch_a_task() -> None:
    found = at_every_boundary(trainer_crashed, persistent=False)

    assert set(found) == {
        ("TaskUndelivered", "result"),
        ("TrainerLost", "result"),
        ("result", "result"),
        ("result", "TaskUndelivered"),
        ("result", "TrainerLost"),
    }


@pytest.mark.parametrize("persistent", [True, False], ids=["kept", "a launch a task"])
def test_a_host_that_crashes_anywhere_leaves_trainers_that_end_by_themselves(persistent: bool) -> None:
    """Within the grace that they are given: none has to be killed that has joined."""
    found = at_every_boundary(host_crashed, persistent=persistent)
    ends = {end for ends in found for end in ends}

    assert found[("SessionLost",) if persistent else ("done", "SessionLost")] > 10
    assert ends <= {"done", "SessionLost", "killed"}
    assert sum(count for ends, count in found.items() if "killed" in ends) <= 2, "only one that was not started yet is killed"
