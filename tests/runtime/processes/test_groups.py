"""Where there is no process table, groups have to do. Tried here as if there were none."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio
from attrs import evolve

from tests.runtime.processes.alive import LIMIT_S, alive
from tests.runtime.processes.guarded import guarded, guardian_pid
from troth.runtime.errors import SpawnFailed
from troth.runtime.ports import Exited, ExitStatus, GuardianLost
from troth.runtime.processes import table
from troth.spec.core import ProcessSignal

pytestmark = pytest.mark.trio


@pytest.fixture(autouse=True)
def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "SEES_PROCESSES", False)


async def test_ends_are_reported_with_their_status(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        assert (await g.exited(await g.spawn("exit", "3"))).status == ExitStatus(code=3)
        launch = evolve(g.launch(), command=["sh", "-c", "kill -9 $$"])
        await g.guardian.spawn(launch)
        assert (await g.exited(launch)).status == ExitStatus(signal=signal.SIGKILL)
        with pytest.raises(SpawnFailed, match="no such program"):
            await g.guardian.spawn(evolve(launch, command=["no-such-program"]))


@pytest.mark.parametrize("stubborn", [False, True])
async def test_what_a_leader_leaves_in_its_group_is_ended_before_its_end_is_reported(tmp_path: Path, stubborn: bool) -> None:
    script = ("trap '' TERM; " if stubborn else "") + "sleep 1000 & exit 4"
    async with guarded(tmp_path) as g:
        launch = evolve(g.launch(), command=["sh", "-c", script])
        await g.guardian.spawn(launch)

        assert (await g.exited(launch)).status == ExitStatus(code=4)
        assert not alive(g.mark)


async def test_signals_reach_the_group(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        for which in ProcessSignal:
            launch = evolve(g.launch(), command=["sh", "-c", "sleep 1000 & sleep 1000"])
            await g.guardian.spawn(launch)
            g.guardian.signal(launch.launch_id, which)
            assert (await g.exited(launch)).status == ExitStatus(signal=getattr(signal, f"SIG{which.name}"))


async def test_leaving_ends_what_lives(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("stubborn")
        await g.reports.next("ready")
        await g.guardian.close()

        assert [event async for event in g.guardian.events] == [Exited(launch.launch_id, ExitStatus(signal=signal.SIGKILL))]


async def test_without_its_guardian_the_host_kills_the_groups(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("stubborn")
        process = await g.reports.next("ready")
        os.kill(guardian_pid(), signal.SIGKILL)

        assert await g.event() == Exited(launch.launch_id, ExitStatus())
        assert await g.event() == GuardianLost()
        with trio.fail_after(LIMIT_S):
            await process.gone()
