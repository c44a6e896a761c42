"""The guardian disappears: its host ends what is left, and says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from attrs import evolve

from tests.runtime.processes.alive import LIMIT_S, MARK, Reports, Watched, alive, described, environment, marked, new_mark
from tests.runtime.processes.guarded import PLAY, Guarded, guarded, guardian_pid
from troth.runtime.errors import SpawnFailed
from troth.runtime.ports import Exited, ExitStatus, GuardianLost, Launch
from troth.runtime.processes import table
from troth.runtime.processes.orders import spawn_order
from troth.runtime.processes.orphans import hosts_in, proved
from troth.runtime.processes.starting import start
from troth.spec.core import ProcessSignal

pytestmark = [pytest.mark.trio, pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process table with pidfds")]


async def lost(g: Guarded) -> list[str]:
    """The launches whose end is reported before the loss."""
    found = []
    while not isinstance(event := await g.event(), GuardianLost):
        assert event.status == ExitStatus()
        found.append(event.launch_id)
    assert not alive(g.mark), described(alive(g.mark))
    return found


@pytest.mark.parametrize("how", ["killed", "stopped and killed"])
async def test_everything_is_killed_and_reported_and_the_loss_comes_last(tmp_path: Path, how: str) -> None:
    async with guarded(tmp_path) as g:
        parts = [("sleep",), ("stubborn",), ("gil",), ("daemon", "stay", "stubborn")]
        launches = [await g.spawn(*part) for part in parts]
        said = await g.reports.these(*["ready"] * 4, "daemon")
        if how != "killed":
            os.kill(guardian_pid(), signal.SIGSTOP)
        os.kill(guardian_pid(), signal.SIGKILL)

        assert sorted(await lost(g)) == sorted(launch.launch_id for launch in launches)
        assert not any(process.lives for processes in said.values() for process in processes)
        with pytest.raises(trio.WouldBlock):
            g.guardian.events.receive_nowait()
        with pytest.raises(SpawnFailed, match="no guardian"):
            await g.spawn("exit", "0")
        assert not g.guardian.signal(launches[0].launch_id, ProcessSignal.KILL)


async def test_a_tree_that_grows_is_killed_without_a_guardian_as_well(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("forks")
        process = await g.reports.next("ready")
        os.kill(process.pid, signal.SIGTERM)
        os.kill(guardian_pid(), signal.SIGKILL)

        assert await lost(g) == [launch.launch_id]


async def test_one_who_forks_and_ends_over_and_over_is_caught_without_a_guardian_as_well(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("hops")
        await g.reports.these("ready", "daemon")
        os.kill(guardian_pid(), signal.SIGKILL)

        assert await lost(g) == [launch.launch_id]


@pytest.mark.skipif(tuple(map(int, os.uname().release.split(".")[:2])) < (6, 9), reason="pidfds that signal groups")
async def test_who_has_wiped_its_environment_is_found_by_its_group(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    async with guarded(tmp_path) as g:
        script = f"env -i sh -c 'echo $$ > {fifo}; exec sleep 1000' & sleep 1000"
        await g.guardian.spawn(evolve(g.launch(), command=["sh", "-c", script]))
        with trio.fail_after(LIMIT_S):
            process = Watched(int(await trio.to_thread.run_sync(fifo.read_text)))
        os.kill(guardian_pid(), signal.SIGKILL)
        await lost(g)

        with trio.fail_after(LIMIT_S):
            await process.gone()
        process.close()


async def test_a_launch_that_was_not_answered_for_fails(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        os.kill(guardian_pid(), signal.SIGSTOP)
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(SpawnFailed, match="guardian"):
                    await g.spawn("sleep")

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(guardian_pid(), signal.SIGKILL)

        assert await lost(g) == []


async def test_a_fault_of_the_guardian_leaves_nothing_behind_and_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    async with guarded(tmp_path) as g:
        launches = [await g.spawn("stubborn"), await g.spawn("daemon", "stay", "stubborn")]
        await g.reports.these("ready", "ready", "daemon")
        g.guardian.register(tmp_path / "file")
        assert g.guardian._process is not None
        g.guardian._process.channel.put({"do": "signal"})

        assert sorted(await lost(g)) == sorted(launch.launch_id for launch in launches)
    assert "KeyError: 'id'" in caplog.text
    assert not (tmp_path / "file").exists()


async def test_a_guardian_with_a_fault_ends_everything_by_itself(tmp_path: Path) -> None:
    """As above, with nobody who does it in its place."""
    (tmp_path / "file").touch()
    mark, reports = new_mark(), Reports(tmp_path / "r")
    await reports.bind()
    with marked(mark):
        guardian = await start(sys.executable)
        command = [sys.executable, "-I", "-S", str(PLAY), str(tmp_path / "r"), "daemon", "stay", "stubborn"]
        order = spawn_order(Launch("x", "site-1", command, environment(mark), tmp_path))
        guardian.channel.put({"do": "register", "path": str(tmp_path / "file")})
        guardian.channel.put(order, [os.open(os.devnull, os.O_WRONLY)])
        said = await reports.these("ready", "daemon")
        guardian.channel.put({"do": "signal"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(guardian.listen)
            with trio.fail_after(LIMIT_S):
                await guardian.wait()

        assert not any(process.lives for processes in said.values() for process in processes)
        assert not alive(mark), described(alive(mark))
        assert not (tmp_path / "file").exists()
    guardian.channel.close()
    reports.close()


async def test_registered_paths_are_removed_by_the_host_then(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    async with guarded(tmp_path) as g:
        g.guardian.register(tmp_path / "kept")
        g.guardian.register(tmp_path / "kept" / "file")
        os.kill(guardian_pid(), signal.SIGKILL)
        await lost(g)
    assert not (tmp_path / "kept").exists()


async def test_a_guardian_that_does_not_listen_is_killed_on_leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.runtime.processes.guardian.CLOSE_LIMIT_S", 0.1)
    async with guarded(tmp_path) as g:
        launch = await g.spawn("daemon", "stay", "stubborn")
        await g.reports.these("ready", "daemon")
        os.kill(guardian_pid(), signal.SIGSTOP)
        await g.guardian.close()

        assert [event async for event in g.guardian.events] == [Exited(launch.launch_id, ExitStatus())]
        assert not alive(g.mark), described(alive(g.mark))


async def test_the_marker_alone_does_not_make_a_process_ours(tmp_path: Path) -> None:
    """A service that starts something on a trainer's behalf may hand the environment on. Only what hangs below us or our ancestors
    counts, where the guardian's children are found when it is gone."""
    keeper = await trio.lowlevel.open_process(
        [sys.executable, "-I", "-S", "-c", KEEPER],
        env={table.LINE_VARIABLE: "another,the-launch"},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
    )
    assert keeper.stdout is not None
    child = Watched(int(await keeper.stdout.receive_some()))
    try:
        seen, stranger = table.scan(), without(keeper.pid)
        assert proved(stranger, hosts_in(stranger), {"the-launch"}) == {}
        assert {process.pid for process in proved(seen, hosts_in(seen), {"the-launch"})} == {keeper.pid, child.pid}
        assert proved(seen, hosts_in(seen), {"no-launch"}) == {}
    finally:
        keeper.kill()
        os.kill(child.pid, signal.SIGKILL)
        with trio.fail_after(LIMIT_S):
            await keeper.wait()
        await keeper.stdout.aclose()
        assert keeper.stdin is not None
        await keeper.stdin.aclose()
        child.close()


KEEPER = "import os, time; child = os.fork(); child and print(child, flush=True); time.sleep(1000)"


def without(pid: int) -> table.Table:
    """The table as it would be if this process hung below somebody that is none of our ancestors."""
    seen = table.scan()
    stranger = next(process for process in seen.values() if process.parent == 2)
    return {**seen, pid: seen[pid]._replace(parent=stranger.pid)}


async def test_a_signal_reaches_only_the_process_that_was_seen() -> None:
    """A number that was given to another process meanwhile is left alone."""
    other = await trio.lowlevel.open_process([sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"], env={MARK: "x"})
    try:
        seen = table.look(other.pid)
        assert seen is not None
        assert not table.send(seen._replace(start=seen.start - 1), signal.SIGKILL)
        assert other.poll() is None
        assert table.send(seen, signal.SIGKILL)
        with trio.fail_after(LIMIT_S):
            assert await other.wait() == -signal.SIGKILL
        assert not table.send(seen, signal.SIGKILL)
    finally:
        other.kill()
