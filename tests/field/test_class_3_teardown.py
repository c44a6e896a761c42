"""Class 3 of the field reports, a hang at the end, orphans, zombies and killing the wrong thing, tried on the runtime."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import trio

from tests.field.wiretap import Wiretap, hang, outcome
from tests.runtime.processes.guarded import guarded
from tests.runtime.sessions.stage import run, staged
from troth.runtime.errors import SessionAborted, SessionLost
from troth.runtime.processes.sharing import shared
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.spec.core import ProcessSignal
from troth.spec.limits import Limits

LIMITS = Limits()
LARGE = {"w": np.arange(100_000, dtype="<f8")}


class TestA:
    """3-A, NVIDIA/NVFlare#4994, and 3-F, NVIDIA/NVFlare#3822, #3830: an abort that waits in order first, for a script that never looks."""

    def test_an_abort_asks_at_once_and_kills_after_the_grace(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                termed: list[float] = []

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    async with trio.open_nursery() as nursery:

                        async def note() -> None:
                            await process.term.wait()
                            termed.append(trio.current_time())

                        nursery.start_soon(note)
                        await hang(session, process)

                stage.trainer(script, takes_term=True)
                async with stage.backend() as trainer, trio.open_nursery() as nursery:
                    nursery.start_soon(outcome, trainer.execute("train", {}))
                    await trio.sleep(20)
                    began = trio.current_time()
                    await trainer.abort()
                    await trainer.finalize()
                    assert trio.current_time() - began <= LIMITS.term_grace_s + 1
                assert termed == [began]
                assert stage.ended == ["killed"]

        run(main)

    def test_a_script_that_looks_now_and_then_is_told_at_its_next_look(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                batches: list[int] = []

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    task = await session.receive()
                    assert task is not None
                    for batch in range(1000):
                        if session.over:
                            raise SessionAborted("as it was told")
                        batches.append(batch)
                        await trio.sleep(1)

                stage.trainer(script, takes_term=True)
                async with stage.backend() as trainer, trio.open_nursery() as nursery:
                    nursery.start_soon(outcome, trainer.execute("train", {}))
                    await trio.sleep(20.5)
                    await trainer.abort()
                assert len(batches) == 21
                assert stage.ended == ["SessionAborted"]

        run(main)


class TestB:
    """3-B, NVIDIA/NVFlare#5099: the third of three results came when two were enough, and its trainer waited for somebody to fetch it."""

    def test_a_result_that_comes_when_its_run_is_over_holds_nobody_up(self) -> None:
        async def main() -> None:
            async with staged() as stage, shared(stage.processes) as sharing:

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    await session.receive()
                    await trio.sleep(5 if session.bootstrap.name == "third" else 1)
                    told.append(await outcome(session.send(LARGE)))

                stage.trainer(script, takes_term=True)
                told: list[str] = []
                results: list[str] = []
                over = trio.Event()

                async def one(name: str) -> None:
                    async with stage.backend(name=name, processes=sharing.share()) as trainer, trio.open_nursery() as nursery:

                        async def ask() -> None:
                            await trainer.execute("train", {})
                            results.append(name)
                            if len(results) == 2:
                                over.set()

                        nursery.start_soon(ask)
                        await over.wait()
                        nursery.cancel_scope.cancel()

                async with trio.open_nursery() as nursery:
                    for name in ("first", "second", "third"):
                        nursery.start_soon(one, name)
                assert sorted(results) == ["first", "second"]
                assert told[:2] == ["ok", "ok"]
                assert told[2:] in ([], ["CallCancelled"], ["SessionClosed"])
                assert trio.current_time() < 1 + LIMITS.natural_exit_s + LIMITS.term_grace_s
                assert not stage.processes.snapshot()

        run(main)


class TestC:
    """3-C, NVIDIA/NVFlare#5027: "no orderly wait" was taken for "no grace", and clean-up code never ran."""

    def test_a_handler_of_term_that_needs_a_second_runs_to_its_end_when_all_is_aborted(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                cleaned: list[float] = []

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    task = await session.receive()
                    assert task is not None
                    await session.send(task.payload)
                    await process.term.wait()
                    await trio.sleep(1)
                    cleaned.append(trio.current_time())

                stage.trainer(script, takes_term=True)
                async with stage.backend() as trainer:
                    await trainer.execute("train", {})
                    began = trio.current_time()
                    await trainer.abort()
                    await trainer.finalize()
                    assert cleaned == [began + 1]
                    assert trainer.status().exit is not None
                    assert trainer.status().exit.clean  # type: ignore[union-attr]
                assert stage.ended == ["done"]

        run(main)


class TestG:
    """3-G, pytorch/pytorch#185414: after SIGKILL the agent waited without a bound for a worker that cannot die."""

    def test_a_process_that_cannot_be_killed_is_named_and_not_waited_for(self, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    process.stuck = True
                    await hang(session, process)

                stage.trainer(script)
                async with stage.backend(name="site-6") as trainer:
                    pid = trainer.status().pid
                    began = trio.current_time()
                    await trainer.finalize()
                    assert trio.current_time() - began < LIMITS.finalize_budget_s + LIMITS.force_budget_s
                    assert "site-6" in caplog.text
                    assert str(pid) in caplog.text
                assert len(stage.sessions) == 1
                for process in stage.processes.snapshot():
                    stage.processes.unstick(process.launch_id)
                await trio.sleep(1)

        with caplog.at_level(logging.WARNING):
            run(main)


class TestK:
    """3-K, NVIDIA/TensorRT-LLM#16404: "kill all my descendants" killed the launcher, strangers and a whole test run."""

    @pytest.mark.trio
    @pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process table with pidfds")
    async def test_other_children_of_the_hosts_process_outlive_its_trainers(self, tmp_path: Path) -> None:
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as stranger:
            async with guarded(tmp_path) as g:
                doomed = await g.spawn("daemon", "stay")
                await g.reports.these("daemon", "ready")
                g.guardian.signal(doomed.launch_id, ProcessSignal.KILL)
                await g.exited(doomed)
                await g.spawn("daemon", "stay")
                await g.reports.these("daemon", "ready")
            assert stranger.poll() is None
            stranger.communicate(b"\n")
        assert stranger.returncode == 0


class TestL:
    """3-L, pytorch/pytorch#76287: workers whose rendezvous was gone said so for eight hours, and did nothing."""

    @pytest.mark.parametrize(("policy", "within_s"), [("fail", 60.0), ("wait", 700.0)])
    def test_a_host_that_is_gone_for_good_is_one_error_after_a_bounded_time(
        self, policy: str, within_s: float, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nobody tells this trainer that its host is gone: it only hears no more of it."""

        async def main() -> None:
            async with staged() as stage:
                told: list[float] = []

                async def script(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    gone.set()
                    with pytest.raises(SessionLost):
                        await session.receive()
                    told.append(trio.current_time())

                gone = trio.Event()
                stage.trainer(script, takes_term=True)
                async with stage.backend(on_unresponsive=policy), trio.open_nursery() as nursery:
                    await gone.wait()
                    tap = Wiretap.of(stage)
                    caplog.clear()
                    for connection in stage.network.connections:
                        connection.cut()
                    stage.faults.refuse_dials(1_000_000)
                    nursery.start_soon(trio.sleep, 2000)
                assert len(told) == 1
                assert told[0] < within_s
                assert stage.network.dials < 4 * within_s
                assert len([said for said in caplog.records if said.name.startswith("troth")]) < 20
                assert tap.count("Heartbeat") == 0

        with caplog.at_level(logging.INFO):
            run(main)
