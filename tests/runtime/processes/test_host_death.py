"""The host disappears: within five seconds nothing of it is left, whatever its trainers do about that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
import trio
from attrs import define

from tests.runtime.processes.alive import LIMIT_S, MARK, Reports, Watched, alive, described, marked, new_mark

pytestmark = [pytest.mark.trio, pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process table with pidfds")]

GONE_WITHIN_S = 5.0
HOST = Path(__file__).with_name("host_script.py")


@define(eq=False)
class Host:
    """A host in a process of its own."""

    process: trio.Process
    watched: Watched
    guardian: Watched
    mark: str
    said: dict[str, list[Watched]]
    reports: Reports
    directory: Path

    async def all_gone(self) -> float:
        """Wait until nothing with the mark lives; how long that took, in seconds."""
        start = trio.current_time()
        with trio.fail_after(LIMIT_S):
            for process in (self.guardian, *(one for word in self.said.values() for one in word)):
                await process.gone()
            while alive(self.mark):
                await trio.sleep(0.01)  # whoever is left has reported nothing that could be waited for
        return trio.current_time() - start


@asynccontextmanager
async def hosting(directory: Path, parts: list[str], words: list[str]) -> AsyncIterator[Host]:
    """A host with a launch for each part, once all of these words were reported."""
    mark = new_mark()
    reports = Reports(directory / "r")
    await reports.bind()
    with marked(mark):
        environment = {**os.environ, MARK: mark, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(HOST), str(directory), *parts]
        process = await trio.lowlevel.open_process(command, env=environment, stdin=subprocess.DEVNULL)
        said = await reports.these("host", *words)
        watched = said.pop("host")[0]
        [guardian] = [one for one in psutil.Process(watched.pid).children() if "guardian_main.py" in " ".join(one.cmdline())]
        guardian_watched = Watched(guardian.pid)
        try:
            yield Host(process, watched, guardian_watched, mark, said, reports, directory)
            assert not alive(mark), described(alive(mark))
        finally:
            process.kill()
            await process.wait()
            guardian_watched.close()
            reports.close()


async def test_nothing_is_left_five_seconds_after_the_host_was_killed(tmp_path: Path) -> None:
    """Trainers that heed TERM, that ignore it, that hold the interpreter, with daemons, with daemons that no marker gives away."""
    parts = ["sleep", "stubborn", "gil", "daemon-stubborn-stay", "clean-stay"]
    async with hosting(tmp_path, parts, ["ready"] * 5 + ["daemon"] * 2) as host:
        host.process.send_signal(signal.SIGKILL)
        took_s = await host.all_gone()

        assert took_s < GONE_WITHIN_S
        assert not (tmp_path / "kept").exists()


async def test_what_ends_at_once_is_not_waited_for(tmp_path: Path) -> None:
    """The grace is for those that need it."""
    async with hosting(tmp_path, ["sleep", "daemon-stay"], ["ready", "ready", "daemon"]) as host:
        host.process.send_signal(signal.SIGKILL)

        assert await host.all_gone() < 1.5
        assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("part", ["forks", "hops"])
async def test_a_tree_that_grows_meanwhile_is_gone_too(tmp_path: Path, part: str) -> None:
    async with hosting(tmp_path, [part], ["ready", *(["daemon"] if part == "hops" else [])]) as host:
        host.process.send_signal(signal.SIGKILL)

        assert await host.all_gone() < GONE_WITHIN_S


async def test_a_trainer_hears_that_its_owner_is_gone(tmp_path: Path) -> None:
    async with hosting(tmp_path, ["owner"], ["ready"]) as host:
        host.process.send_signal(signal.SIGKILL)

        assert (await host.reports.next("orphaned")).pid == host.said["ready"][0].pid
        assert await host.all_gone() < GONE_WITHIN_S


@pytest.mark.parametrize("how", ["forked", "leaky"])
async def test_a_forked_child_of_the_host_does_not_keep_its_trainers_alive(tmp_path: Path, how: str) -> None:
    """multiprocessing, for one, leaves such children behind when its parent is killed. They are nobody's trainers, so they live on. Of
    the guardian they have nothing; and if they have its socket after all, as when C forked them, the host's pidfd tells its end."""
    async with hosting(tmp_path, ["sleep", how], ["ready", how]) as host:
        [child] = host.said.pop(how)
        host.process.send_signal(signal.SIGKILL)
        with trio.fail_after(LIMIT_S):
            await host.guardian.gone()
        assert alive(host.mark) == [child.pid]
        assert not (tmp_path / "kept").exists()

        os.kill(child.pid, signal.SIGKILL)
        await host.all_gone()


async def test_a_host_in_another_thread_is_guarded_as_well(tmp_path: Path) -> None:
    async with hosting(tmp_path, ["thread", "sleep"], ["ready"]) as host:
        host.process.send_signal(signal.SIGKILL)

        assert await host.all_gone() < GONE_WITHIN_S


async def test_the_terminal_reaches_the_host_and_not_its_guardian(tmp_path: Path) -> None:
    """Ctrl-C and a hang-up are the host's to handle. The guardian has a session of its own, and ignores both."""
    async with hosting(tmp_path, ["sleep"], ["ready"]) as host:
        assert os.getsid(host.guardian.pid) == host.guardian.pid
        for number in (signal.SIGINT, signal.SIGHUP):
            os.kill(host.guardian.pid, number)
        host.process.send_signal(signal.SIGINT)
        with trio.fail_after(LIMIT_S):
            assert await host.process.wait() == -signal.SIGINT

        assert await host.all_gone() < GONE_WITHIN_S
        assert not (tmp_path / "kept").exists()


async def test_a_guardian_that_is_told_to_end_ends_everything_first(tmp_path: Path) -> None:
    async with hosting(tmp_path, ["sleep", "daemon-stay"], ["ready", "ready", "daemon"]) as host:
        os.kill(host.guardian.pid, signal.SIGTERM)
        with trio.fail_after(LIMIT_S):
            await host.guardian.gone()

        assert alive(host.mark) == [host.watched.pid]
        assert not (tmp_path / "kept").exists()
        host.process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("together", [True, False])
async def test_if_host_and_guardian_are_killed_the_leaders_are_gone_too(tmp_path: Path, together: bool) -> None:
    """The system does that. What leaders have left behind in other sessions is then nobody's, and has its owner pipe only."""
    async with hosting(tmp_path, ["sleep", "stubborn"], ["ready", "ready"]) as host:
        if together:
            os.kill(host.guardian.pid, signal.SIGSTOP)  # so that it cannot do anything about it
        host.process.send_signal(signal.SIGKILL)
        os.kill(host.guardian.pid, signal.SIGKILL)

        assert await host.all_gone() < GONE_WITHIN_S
