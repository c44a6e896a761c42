"""Class 5 of the field reports, reconnects and stale sessions, tried on the runtime."""

from __future__ import annotations

import socket
from itertools import pairwise
from typing import Any

import pytest
import trio

from tests.field.wiretap import CODES, Wiretap, outcome
from tests.runtime.sessions.stage import run, staged
from troth.runtime.errors import TrainerLost
from troth.runtime.processes.sharing import shared
from troth.runtime.sim.faults import UP, Delay
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession


class TestA:
    """5-A, flwrlabs/flower#4844: a node that was restarted was alive, and never got work again."""

    @pytest.mark.parametrize("after_s", [0.0, 30.0, 300.0], ids=["at once", "a lease later", "ten leases later"])
    def test_after_its_trainer_is_gone_a_task_has_a_new_one_whenever_it_is_asked_for(self, after_s: float) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def die(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()
                    process.deliver(9)
                    await trio.sleep_forever()

                stage.trainer(die)
                async with stage.backend(persistent=False) as trainer:
                    with pytest.raises(TrainerLost):
                        await trainer.execute("train", {})
                    await trio.sleep(after_s)
                    stage.trainer(stage.work)
                    with trio.fail_after(1):
                        assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                assert len({session.bootstrap.launch for session in stage.sessions}) == 2

        run(main)

    def test_one_that_is_lost_for_good_is_said_to_be_and_never_starves_its_callers(self) -> None:
        async def main() -> None:
            async with staged() as stage:

                async def die(session: TrainerSession, process: SimProcess) -> None:
                    await session.init()

                stage.trainer(die)
                async with stage.backend() as trainer:
                    await trio.sleep(1)
                    for _ in range(3):
                        with trio.fail_after(5), pytest.raises(TrainerLost):
                            await trainer.execute("train", {})

        run(main)


class TestB:
    """5-B, scaleoutsystems/scaleout-client#329: the stream of a connection that had crashed took the new one's task."""

    def test_a_task_goes_over_the_newest_connection_although_the_old_one_never_ended(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                stage.trainer(stage.work)
                async with stage.backend() as trainer:
                    (old,) = stage.network.of_role("control")
                    old.stall(UP)  # the host does not see that it ends
                    stage.sessions[0]._links.control.close()
                    while len(stage.network.of_role("control")) < 2:
                        await trio.sleep(0.01)
                    await trio.sleep(1)
                    tap = Wiretap.of(stage)
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                    new = stage.network.of_role("control")[-1]
                    assert {frame.seen.connection for frame in tap.frames if frame.seen.role == "control"} == {new.number}
                    assert not old.alive

        run(main)


class TestC:
    """5-C, NVIDIA/NVFlare#5107: a task overtook the trainer's handling of the answer that it was accepted."""

    def test_no_task_leaves_before_the_trainer_has_said_that_it_is_ready(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)
                stage.faults.frame(Delay(2.5), code=CODES["HelloAccepted"])
                stage.trainer(stage.work)
                async with stage.backend(persistent=False) as trainer:  # so the task waits for its trainer
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}
                assert tap.count("TaskReady") == 1
                assert tap.times("SessionReady")[0] <= tap.times("TaskReady")[0]
                order = [frame.name for frame in tap.frames]
                assert order.index("SessionReady") < order.index("TaskReady")

        run(main)


class TestE:
    """5-E, NVIDIA/NVFlare#3787: the second of two quick jobs had the token of the first, and was refused."""

    def test_fifty_sessions_in_a_row_have_fifty_tokens_and_all_are_accepted(self) -> None:
        async def main() -> None:
            async with staged() as stage:
                stage.trainer(stage.work)
                for each in range(50):
                    async with stage.backend() as trainer:
                        assert (await trainer.execute("train", {"x": each})).payload == {"x": each}
                assert trio.current_time() < 5
                assert len({session.bootstrap.token._secret for session in stage.sessions}) == len(stage.sessions) == 50

        run(main)


class TestF:
    """5-F, apache/airflow#64203, #64221, #48719: the host's name changed, and with it who the worker was."""

    def test_no_name_of_the_machine_is_ever_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def asked(*_arguments: Any) -> Any:
            raise AssertionError("the name of the machine was asked for")

        for name in ("gethostname", "getfqdn", "gethostbyname"):
            monkeypatch.setattr(socket, name, asked)

        async def main() -> None:
            async with staged() as stage:
                stage.trainer(stage.work)
                async with stage.backend() as trainer:
                    for connection in stage.network.of_role("control"):
                        connection.cut()
                    assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}

        run(main)


class TestH:
    """5-H, pytorch/pytorch#147064, #111646, #151220: one member was restarted, and the survivor's session ended."""

    def test_the_end_of_one_trainer_disturbs_no_other_and_it_is_started_anew(self) -> None:
        async def main() -> None:
            async with staged() as stage, shared(stage.processes) as sharing:
                stage.trainer(stage.work)
                ones: list[float] = []
                told = ""

                async def interrupt() -> None:
                    await trio.sleep(1)
                    first = next(session for session in stage.sessions if session.bootstrap.name == "first")
                    stage.processes.processes(first.bootstrap.launch.hex())[0].deliver(2)

                async with stage.backend(name="other", processes=sharing.share()) as other, trio.open_nursery() as nursery:
                    nursery.start_soon(interrupt)
                    for _ in range(2):
                        async with stage.backend(name="first", processes=sharing.share()) as first:
                            while (told := await outcome(first.execute("train", {"x": 1}))) == "ok" and len(ones) < 40:
                                await other.execute("train", {"x": 2})
                                ones.append(trio.current_time())
                                await trio.sleep(0.1)
                    assert told == "ok"
                    assert other.status().state == "ready"
                    assert other.status().accepted == len(ones)
                assert [session.bootstrap.name for session in stage.sessions] == ["other", "first", "first"]
                assert max(later - earlier for earlier, later in pairwise(ones)) < 5

        run(main)


class TestI:
    """5-G, securefederatedai/openfederatedlearning#455, #454, #356, and 5-I, NVIDIA/NVFlare#2219: the link is lost during a task."""

    @pytest.mark.parametrize(
        ("lost", "for_good", "ran"),
        [
            ("TaskReady", "TrainerLost", 0),
            ("TaskAccepted", "TrainerLost", 1),
            ("ResultReady", "TrainerLost", 1),
            ("ResultAccepted", "ok", 1),
        ],
    )
    @pytest.mark.parametrize("long", [False, True], ids=["for a moment", "for good"])
    def test_a_task_whose_link_is_lost_with_a_message_has_one_end_and_never_runs_twice(
        self, lost: str, for_good: str, ran: int, long: bool
    ) -> None:
        """A short cut costs nothing. A confirmed long one costs the task, unless the host has its result by then."""

        async def main() -> None:
            async with staged() as stage:
                tap = Wiretap.of(stage)

                def cut() -> None:
                    del tap.on[lost]
                    stage.faults.refuse_dials(100_000 if long else 3)
                    for connection in stage.network.connections:
                        connection.cut()

                tap.on[lost] = cut
                stage.trainer(stage.work)
                async with stage.backend(on_unresponsive="fail") as trainer:
                    told = await outcome(trainer.execute("train", {"x": 1}))
                    assert told == (for_good if long else "ok")
                    assert trainer.status().accepted == (told == "ok")
                    assert trio.current_time() < (60 if long else 10)
                assert len(stage.seen) == (ran if long else 1)

        run(main)
