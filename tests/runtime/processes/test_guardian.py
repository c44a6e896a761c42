"""The guardian starts, signals and reaps; its client says what became of each launch."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from tests.runtime.processes.alive import LIMIT_S, alive, described
from tests.runtime.processes.guarded import guarded, guardian_pid
from troth.runtime.errors import Misuse, SpawnFailed
from troth.runtime.ports import Exited, ExitStatus, Launch
from troth.runtime.processes.guarding import DESCENDANTS_GRACE_S
from troth.spec.core import ProcessSignal

pytestmark = [pytest.mark.trio, pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process table with pidfds")]


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
async def test_an_exit_status_is_reported_as_it_is(tmp_path: Path, code: int) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("exit", str(code))

        assert await g.exited(launch) == Exited(launch.launch_id, ExitStatus(code=code))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE])
async def test_a_death_by_a_signal_is_reported_as_that(tmp_path: Path, number: signal.Signals) -> None:
    """INT, HUP and PIPE too: what the guardian ignores is not ignored in its children, as a shell would go on to ignore it."""
    async with guarded(tmp_path) as g:
        launch = evolve(g.launch(), command=["sh", "-c", f"kill -{int(number)} $$; exit 0"])
        await g.guardian.spawn(launch)

        assert (await g.exited(launch)).status == ExitStatus(signal=number)


async def test_term_reaches_a_handler_and_its_exit_status_comes_back(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("heeds")
        await g.reports.next("ready")

        assert g.guardian.signal(launch.launch_id, ProcessSignal.TERM)
        await g.reports.next("term")
        assert (await g.exited(launch)).status == ExitStatus(code=7)
        assert not g.guardian.signal(launch.launch_id, ProcessSignal.TERM)


@pytest.mark.parametrize("part", ["stubborn", "gil"])
async def test_kill_ends_what_ignores_term_or_cannot_hear_it(tmp_path: Path, part: str) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn(part)
        process = await g.reports.next("ready")
        g.guardian.signal(launch.launch_id, ProcessSignal.TERM)
        other = await g.spawn("exit", "0")
        await g.exited(other)  # so TERM has been delivered, too
        assert process.lives

        g.guardian.signal(launch.launch_id, ProcessSignal.KILL)
        assert (await g.exited(launch)).status == ExitStatus(signal=signal.SIGKILL)


@pytest.mark.parametrize(
    ("which", "status"), [(ProcessSignal.TERM, ExitStatus(code=7)), (ProcessSignal.KILL, ExitStatus(signal=signal.SIGKILL))]
)
async def test_a_stopped_process_can_be_ended(tmp_path: Path, which: ProcessSignal, status: ExitStatus) -> None:
    """With TERM its handler runs, for which it has to be continued."""
    async with guarded(tmp_path) as g:
        launch = await g.spawn("heeds")
        process = await g.reports.next("ready")
        os.kill(process.pid, signal.SIGSTOP)

        g.guardian.signal(launch.launch_id, which)
        if which is ProcessSignal.TERM:
            await g.reports.next("term")
        assert (await g.exited(launch)).status == status


@pytest.mark.parametrize("part", ["daemon", "clean"])
async def test_an_end_is_reported_only_when_a_daemon_that_the_leader_left_is_gone(tmp_path: Path, part: str) -> None:
    """It has forked twice, has a session of its own, no descriptor of ours, and with ``clean`` no environment either."""
    async with guarded(tmp_path) as g:
        launch = await g.spawn(part)
        said = await g.reports.these("daemon", "ready")

        assert (await g.exited(launch)).status == ExitStatus(code=0)
        assert not said["daemon"][0].lives


async def test_a_zombie_that_a_leader_left_behind_does_not_delay_its_end(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = evolve(g.launch(), command=["sh", "-c", "true & exec sleep 0.3"])
        start = trio.current_time()
        await g.guardian.spawn(launch)

        assert (await g.exited(launch)).status == ExitStatus(code=0)
        assert trio.current_time() - start < DESCENDANTS_GRACE_S


async def test_what_a_leader_left_behind_is_killed_if_it_ignores_term(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("daemon", "stubborn")
        said = await g.reports.these("daemon", "ready")

        assert (await g.exited(launch)).status == ExitStatus(code=0)
        assert not said["daemon"][0].lives


@pytest.mark.parametrize("part", ["daemon", "clean"])
async def test_kill_reaches_every_descendant(tmp_path: Path, part: str) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn(part, "stay")
        said = await g.reports.these("daemon", "ready")

        g.guardian.signal(launch.launch_id, ProcessSignal.KILL)
        await g.exited(launch)
        assert not said["daemon"][0].lives


async def test_term_reaches_a_descendant_in_another_session(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("daemon", "stay")
        said = await g.reports.these("daemon", "ready")

        g.guardian.signal(launch.launch_id, ProcessSignal.TERM)
        with trio.fail_after(LIMIT_S):
            await said["daemon"][0].gone()
        assert (await g.exited(launch)).status == ExitStatus(signal=signal.SIGTERM)


async def test_one_launch_is_ended_without_harm_to_another_and_its_daemon(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        doomed = await g.spawn("daemon", "stay")
        await g.reports.these("daemon", "ready")
        spared = await g.spawn("daemon", "stay")
        said = await g.reports.these("daemon", "ready")

        g.guardian.signal(doomed.launch_id, ProcessSignal.KILL)
        await g.exited(doomed)
        assert said["ready"][0].lives
        assert said["daemon"][0].lives

        g.guardian.signal(spared.launch_id, ProcessSignal.KILL)
        await g.exited(spared)


@pytest.mark.parametrize("part", ["forks", "hops"])
async def test_a_tree_that_grows_while_it_is_ended_is_ended(tmp_path: Path, part: str) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn(part)
        await g.reports.these(*(["ready"] if part == "forks" else ["ready", "daemon"]))

        g.guardian.signal(launch.launch_id, ProcessSignal.TERM)
        g.guardian.signal(launch.launch_id, ProcessSignal.KILL)
        await g.exited(launch)


async def test_the_guardian_goes_on_after_what_a_terminal_sends(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        for number in (signal.SIGINT, signal.SIGHUP):
            os.kill(guardian_pid(), number)

        await g.exited(await g.spawn("exit", "0"))


async def test_twenty_launches_at_once_end_each_with_its_own_status(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launches = [g.launch("exit", str(number)) for number in range(20)]
        async with trio.open_nursery() as nursery:
            for launch in launches:
                nursery.start_soon(g.guardian.spawn, launch)

        found = [await g.event() for _ in launches]
        expected = {Exited(launch.launch_id, ExitStatus(code=number)) for number, launch in enumerate(launches)}
        assert set(found) == expected
        assert not alive(g.mark), described(alive(g.mark))


async def test_a_trainer_that_is_a_host_itself_is_ended_with_its_guardian_and_its_trainers(tmp_path: Path) -> None:
    """And a launch beside it is not, though all of them carry markers."""
    async with guarded(tmp_path) as g:
        spared = await g.spawn("daemon", "stay")
        said = await g.reports.these("ready", "daemon")
        nested = g.launch("host", "stubborn", "daemon-stubborn-stay")
        nested = evolve(nested, environment={**nested.environment, "PYTHONPATH": os.pathsep.join(sys.path)})
        await g.guardian.spawn(nested)
        inner = await g.reports.these("host", "ready", "ready", "daemon")
        assert len(alive(g.mark)) >= 7, described(alive(g.mark))  # between a fork and the next there may be one more

        g.guardian.signal(nested.launch_id, ProcessSignal.KILL)
        await g.exited(nested)
        assert not any(process.lives for processes in inner.values() for process in processes)
        assert alive(g.mark) == sorted(process.pid for processes in said.values() for process in processes)
        g.guardian.signal(spared.launch_id, ProcessSignal.KILL)
        await g.exited(spared)


async def test_so_many_ends_can_wait_to_be_taken_and_no_more_launches_are_started_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("troth.runtime.processes.guardian.EVENTS_LIMIT", 2)
    async with guarded(tmp_path) as g:
        first = await g.spawn("exit", "0")
        await g.spawn("sleep")
        await g.reports.next("ready")
        with pytest.raises(SpawnFailed, match="2 launches live already, or their ends were not taken"):
            await g.spawn("sleep")
        await g.exited(first)
        await g.spawn("sleep")


async def test_a_trainer_has_a_session_of_its_own_and_nothing_of_the_guardian(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("sleep")
        process = await g.reports.next("ready")
        with trio.fail_after(LIMIT_S):
            while len(os.listdir(f"/proc/{process.pid}/fd")) > 4:
                await trio.sleep(0.001)  # it is closing the socket that it reported over
        open_now = {int(name): os.readlink(f"/proc/{process.pid}/fd/{name}") for name in os.listdir(f"/proc/{process.pid}/fd")}

        assert os.getsid(process.pid) == process.pid == os.getpgid(process.pid)
        assert set(open_now) == {0, 1, 2, 3}
        assert open_now[0] == "/dev/null"
        assert open_now[1] == open_now[2]
        assert open_now[3].startswith("pipe:")
        assert Path(f"/proc/{process.pid}/cwd").readlink() == tmp_path
        assert b"TROTH_LAUNCH_ID=" + launch.launch_id.encode() in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")


@pytest.mark.parametrize(
    ("command", "directory", "said"),
    [
        (["no-such-program-here"], "", "cannot run 'no-such-program-here': there is no such program"),
        (["./data"], "", "cannot run './data': it is not executable"),
        (["./garbage"], "", "cannot run './garbage': it is no program of this machine"),
        (["./script"], "", "interpreter that its first line names"),
        (["true"], "nowhere", "cannot enter its directory"),
        ([], "", "the command must be a list"),
        ("true", "", "the command must be a list"),
        (["true", "a\0b"], "", "NUL"),
    ],
)
async def test_what_cannot_be_started_is_named(tmp_path: Path, command: Any, directory: str, said: str) -> None:
    (tmp_path / "data").write_text("")
    (tmp_path / "garbage").write_text("\x7f garbage")
    (tmp_path / "garbage").chmod(0o755)
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    async with guarded(tmp_path) as g:
        whole = [*command, "CANARY"] if command and command != "true" else command
        launch = Launch("x", "site-1", whole, {"S": "CANARY"}, tmp_path / directory)
        with pytest.raises(SpawnFailed, match=r"^site-1: ") as failed:
            await g.guardian.spawn(launch)

        assert said in str(failed.value)
        assert "CANARY" not in repr(failed.value)
        assert not g.guardian.signal("x", ProcessSignal.KILL)
        await g.exited(await g.spawn("exit", "0"))


@pytest.mark.parametrize("name", ["", "A=B", "A\0B"])
async def test_a_variable_that_no_environment_can_have_is_named(tmp_path: Path, name: str) -> None:
    async with guarded(tmp_path) as g:
        with pytest.raises(SpawnFailed, match="environment variable") as failed:
            await g.guardian.spawn(Launch("x", "site-1", ["true"], {name: "CANARY"}, tmp_path))

        assert "CANARY" not in str(failed.value)


@pytest.mark.parametrize("launch_id", ["", "a b", "../x", "x" * 65, "a\n"])
async def test_a_launch_id_is_plain(tmp_path: Path, launch_id: str) -> None:
    async with guarded(tmp_path) as g:
        with pytest.raises(SpawnFailed, match="launch id"):
            await g.guardian.spawn(Launch(launch_id, "site-1", ["true"], {}, tmp_path))


async def test_arguments_and_environment_that_the_system_does_not_take_are_refused(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        for size, said in ((4_000_000, "too large for this system"), (9_000_000, "too large")):
            with pytest.raises(SpawnFailed, match=said):
                await g.guardian.spawn(Launch("x", "site-1", ["true", "x" * size], {}, tmp_path))
        await g.exited(await g.spawn("exit", "0"))


async def test_a_launch_id_cannot_be_used_twice_at_a_time(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("sleep")
        with pytest.raises(Misuse, match="in use"):
            await g.guardian.spawn(launch)


async def test_a_caller_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = g.launch("stubborn")
        with trio.CancelScope() as scope:
            scope.cancel()
            await g.guardian.spawn(launch)
        assert scope.cancelled_caught

        # Requests are heard in their order, so by then it has been started and killed; and its end is not an event.
        await g.exited(await g.spawn("exit", "0"))
        with trio.fail_after(LIMIT_S):
            while alive(launch.launch_id, "TROTH_LAUNCH_ID"):
                await trio.sleep(0.001)
        await g.exited(await g.spawn("exit", "1"))


async def test_an_environment_that_is_not_unicode_arrives_as_it_is(tmp_path: Path) -> None:
    value = os.fsdecode(b"\xff\xfe\xe4")
    async with guarded(tmp_path) as g:
        launch = g.launch("sleep")
        await g.guardian.spawn(Launch(launch.launch_id, "site-1", launch.command, {**launch.environment, "ODD": value}, tmp_path))
        process = await g.reports.next("ready")

        assert b"ODD=\xff\xfe\xe4" in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")


async def test_leaving_ends_everything_and_reports_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = await g.spawn("sleep")
        await g.reports.next("ready")
        await g.guardian.close()

        assert [event async for event in g.guardian.events] == [Exited(launch.launch_id, ExitStatus(signal=signal.SIGTERM))]
        with pytest.raises(SpawnFailed, match="no guardian"):
            await g.spawn("exit", "0")
        assert not g.guardian.signal(launch.launch_id, ProcessSignal.KILL)
        await g.guardian.close()


async def test_leaving_because_of_a_cancellation_ends_everything_too(tmp_path: Path) -> None:
    process = None
    with trio.CancelScope() as scope:
        async with guarded(tmp_path) as g:
            await g.spawn("sleep")
            process = await g.reports.next("ready")
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert process is not None
    assert not process.lives


async def test_an_error_in_the_body_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with guarded(tmp_path):
            raise KeyError("mine")


async def test_a_guardian_that_cannot_start_is_reported_with_what_it_said(tmp_path: Path) -> None:
    from troth.runtime.processes.guardian import Guardian

    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho this is no interpreter >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SpawnFailed, match="this is no interpreter"):
        async with Guardian(python=str(broken)):
            raise AssertionError("it cannot be entered")
    with pytest.raises(SpawnFailed, match="No such file"):
        async with Guardian(python=str(tmp_path / "nothing")):
            raise AssertionError("it cannot be entered")
