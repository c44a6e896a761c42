"""How sessions end: in order, at once, by the death of one side; and what each side is told."""

from __future__ import annotations

import os

import pytest
import trio

from tests.runtime.sessions.stage import other_identity, run, staged
from troth.runtime.errors import (
    JoinFailed,
    SessionAborted,
    SessionClosed,
    SessionError,
    TrainerLost,
)
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.besides import Credentials
from troth.spec.core import ProcessSignal
from troth.spec.limits import Limits


async def hang(session: TrainerSession, process: SimProcess) -> None:
    """Take a task and never answer."""
    await session.init()
    await session.receive()
    await trio.sleep_forever()


async def die(session: TrainerSession, process: SimProcess) -> None:
    """Take a task and be killed."""
    await session.init()
    await session.receive()
    process.deliver(9)
    await trio.sleep_forever()


def test_a_trainer_that_is_killed_with_a_task_is_named_with_the_task_and_the_signal() -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(die)
            with pytest.raises(TrainerLost, match=r"trainer 'site-2' \(task 'train'\) was lost with the task: killed by SIGKILL"):
                async with stage.backend(name="site-2") as trainer:
                    await trainer.execute("train", {"x": 1})

    run(main)


def test_a_lost_trainer_is_lost_for_every_later_task() -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(die)
            async with stage.backend() as trainer:
                for _ in range(2):
                    with pytest.raises(TrainerLost):
                        await trainer.execute("train", {})

    run(main)


def test_one_launch_a_task_outlives_a_trainer_that_died() -> None:
    """The next task has a trainer of its own."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(die)
            async with stage.backend(persistent=False) as trainer:
                with pytest.raises(TrainerLost):
                    await trainer.execute("train", {})
                stage.trainer(stage.work)
                assert (await trainer.execute("train", {"x": 1})).payload == {"x": 1}

    run(main)


def test_a_trainer_that_cannot_be_started_says_why() -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            stage.processes.fail_spawns("no such file")
            with pytest.raises(JoinFailed, match="no such file"):
                async with stage.backend():
                    pass

    run(main)


def test_a_trainer_that_ends_before_it_joins_says_how_it_ended() -> None:
    async def main() -> None:
        async def quit_at_once(session: TrainerSession, process: SimProcess) -> None:
            raise JoinFailed("nothing to do")

        async with staged() as stage:
            stage.trainer(quit_at_once)
            with pytest.raises(JoinFailed, match="exited with status 1"):
                async with stage.backend():
                    pass

    run(main)


def test_a_script_that_fails_with_a_task_is_told_with_its_exit_status() -> None:
    """Its exit hook ends the session in order before the process ends; the error waits a moment for the status."""

    async def main() -> None:
        async def fail(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            await session.receive()
            await session.shutdown()
            await trio.sleep(0.2)
            raise JoinFailed("whatever it was")

        async with staged() as stage:
            stage.trainer(fail)
            async with stage.backend() as trainer:
                with pytest.raises(SessionClosed, match="and the task with it: exited with status 1"):
                    await trainer.execute("train", {})

    run(main)


def test_a_trainer_that_does_not_join_in_time_is_said_to_have_been_late() -> None:
    async def main() -> None:
        async def idle(session: TrainerSession, process: SimProcess) -> None:
            await trio.sleep_forever()

        async with staged() as stage:
            stage.trainer(idle)
            with pytest.raises(JoinFailed, match="did not join within launch_timeout_s; killed by SIGTERM"):
                async with stage.backend():
                    pass

    run(main)


def test_a_trainer_of_another_job_is_refused_and_stopped() -> None:
    """And its own init() is told so."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work, change=other_identity)
            with pytest.raises(JoinFailed):
                async with stage.backend():
                    pass
            assert stage.ended in (["JoinFailed"], ["killed"])

    run(main)


def test_credentials_are_lent_and_proven_before_the_first_task() -> None:
    """And never shown."""
    lent = Credentials("CANARY-TOKEN", "CANARY-SIGNATURE")

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            async with stage.backend(credentials=lent) as trainer:
                await trainer.execute("train", {"x": 1})
            assert stage.sessions[0].credentials == lent
            assert "CANARY" not in repr(stage.sessions[0])
            assert "CANARY" not in repr(trainer)

    run(main)


def test_a_trainer_that_does_not_prove_its_credentials_gets_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            monkeypatch.setattr("troth.runtime.trainer.credentials_proof", lambda credentials, nonces: bytes(32))
            with pytest.raises(JoinFailed):
                async with stage.backend(credentials=Credentials("a", "b")) as trainer:
                    await trainer.execute("train", {})
            assert not stage.seen

    run(main)


def test_an_abort_reaches_a_trainer_that_waits() -> None:
    """D15: no wait of a script ignores it."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work, takes_term=True)
            async with stage.backend() as trainer:
                await trainer.abort()
                with pytest.raises(SessionClosed):
                    await trainer.execute("train", {})
            assert stage.ended == ["SessionAborted"]

    run(main)


def test_an_abort_ends_the_task_that_is_out() -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(hang, takes_term=True)
            async with stage.backend() as trainer, trio.open_nursery() as nursery:
                failed: list[SessionError] = []

                async def execute() -> None:
                    try:
                        await trainer.execute("train", {})
                    except SessionError as error:
                        failed.append(error)

                nursery.start_soon(execute)
                while trainer.status().task is None:
                    await trio.lowlevel.checkpoint()
                await trainer.abort()
                while not failed:
                    await trio.sleep(0.1)
                assert isinstance(failed[0], SessionAborted)

    run(main)


def test_an_exception_in_the_block_leaves_it_as_it_was_and_nothing_behind() -> None:
    """Not wrapped in a group; and the trainer is gone."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(hang)
            with pytest.raises(ZeroDivisionError):
                async with stage.backend():
                    raise ZeroDivisionError
            assert not stage.processes.snapshot()
            assert not stage.files.directories

    run(main)


def test_a_cancelled_host_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(hang)
            with trio.move_on_after(50) as scope:
                async with stage.backend() as trainer:
                    await trainer.execute("train", {})
            assert scope.cancelled_caught
            assert not stage.processes.snapshot()
            assert not stage.files.directories

    run(main)


def test_a_trainer_that_ignores_term_is_killed_within_its_grace() -> None:
    limits = Limits()

    async def main() -> None:
        async def ignore(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            await trio.sleep_forever()

        async with staged() as stage:
            stage.trainer(ignore, takes_term=True)
            async with stage.backend(limits=limits):
                began = trio.current_time()
            assert trio.current_time() - began < limits.natural_exit_s + limits.term_grace_s + 1
            assert stage.ended == ["killed"]

    run(main)


def test_the_death_of_the_guardian_fails_the_task_and_the_trainer() -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(hang)
            async with stage.backend() as trainer, trio.open_nursery() as nursery:

                async def lose() -> None:
                    await trio.sleep(1)
                    await stage.processes.lose_guardian()

                nursery.start_soon(lose)
                with pytest.raises(TrainerLost):
                    await trainer.execute("train", {})
            assert trio.current_time() < 10

    run(main)


def test_a_block_that_is_left_while_another_task_finalizes_waits_for_the_same_end() -> None:
    """Every caller is told how it ended, and nobody waits for ever."""

    async def main() -> None:
        async def linger(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            await session.receive()
            await trio.sleep(1)

        async with staged() as stage:
            stage.trainer(linger)
            ended: list[bool] = []
            with trio.fail_after(60):
                async with trio.open_nursery() as nursery, stage.backend() as trainer:

                    async def finalize() -> None:
                        ended.append(await trainer.finalize())

                    nursery.start_soon(finalize)
                    nursery.start_soon(finalize)
                    await trio.sleep(0.5)
            assert ended == [True, True]
            assert stage.ended == ["done"]

    run(main)


def test_two_sessions_of_a_process_hear_of_their_owner_s_end_alike() -> None:
    """They share one descriptor, on which an event loop waits once."""

    async def main() -> None:
        ours, theirs = os.pipe()
        async with trio.open_nursery() as nursery, staged() as stage:
            stage.owner_fd = ours
            stage.trainer(hang)

            async def serve() -> None:
                with pytest.raises(SessionError):
                    async with stage.backend() as trainer:
                        await trainer.execute("train", {})

            for _ in range(2):
                nursery.start_soon(serve)
            while len(stage.sessions) < 2 or not all(session.current for session in stage.sessions):
                await trio.lowlevel.checkpoint()
            os.close(theirs)
            with trio.fail_after(60):
                while not all(session.over for session in stage.sessions):
                    await trio.sleep(0.1)
            for process in stage.processes.snapshot():
                stage.processes.signal(process.launch_id, ProcessSignal.KILL)
        os.close(ours)

    run(main)
