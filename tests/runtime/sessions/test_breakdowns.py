"""Faults of the runtime itself, and of what the application lends it: told to every caller, and never a reason to wait."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

import pytest
import trio
from attrs import evolve

from tests.runtime.sessions.stage import Stage, run, staged
from tests.runtime.wire.examples import frame_of
from troth.client.records import record
from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import JoinFailed, RuntimeFault, SessionClosed, SessionError, TrainerLost, alone
from troth.runtime.host import HostSession
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.kinds import KINDS, Kind


def broken(*_arguments: Any, **_named: Any) -> Any:
    """What must not happen."""
    raise ZeroDivisionError("a fault")


async def logging(session: TrainerSession, process: SimProcess) -> None:
    """Log before each result."""
    await session.init()
    while (task := await session.receive()) is not None:
        session.log(record("loss", 0.5, "SCALAR", {}))
        await session.send(task.payload)


async def break_in_the_background(monkeypatch: pytest.MonkeyPatch, trainer: ExternalProcess) -> None:
    """The next frame that comes in is one that the host cannot digest."""
    monkeypatch.setattr(HostSession, "_understood", broken)
    await trainer.execute("train", {"x": 1})


async def break_within_a_call(monkeypatch: pytest.MonkeyPatch, trainer: ExternalProcess) -> None:
    """The effects of the call itself go wrong."""
    monkeypatch.setattr(HostSession, "_beside", broken)
    await trainer.execute("train", {"x": 1})


async def use(trainer: ExternalProcess, *, times: int = 1) -> None:
    """Have the trainer do something, in its block."""
    async with trainer:
        for _ in range(times):
            await trainer.execute("train", {"x": 1})


def test_a_fault_in_the_background_ends_calls_processes_and_the_block_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving does not wait for timers that are gone."""
    monkeypatch.setattr(HostSession, "_proven", broken)

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            with pytest.raises(RuntimeFault, match="'site-3' has broken down; this is a fault of Troth: ZeroDivisionError") as raised:
                with trio.fail_after(60):
                    await use(stage.backend(name="site-3"))
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
            await trio.sleep(1)
            assert not stage.processes.snapshot()
            assert not stage.files.directories

    run(main)


def test_a_fault_within_a_call_is_raised_by_it_and_ends_the_rest_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostSession, "_order_of", broken)

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            with pytest.raises(ZeroDivisionError), trio.fail_after(60):
                await use(stage.backend())
            await trio.sleep(1)
            assert not stage.processes.snapshot()
            assert not stage.files.directories

    run(main)


def test_after_a_fault_every_call_says_what_it_was_and_so_does_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to a caller that waits in a task of its own."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            made = stage.backend()
            heard: list[RuntimeFault] = []

            async def ask() -> None:
                try:
                    await made.execute("train", {"x": 1})
                except RuntimeFault as error:
                    heard.append(error)

            async def fail() -> None:
                async with made, trio.open_nursery() as nursery:
                    monkeypatch.setattr(HostSession, "_note_result", broken)
                    nursery.start_soon(ask)
                    await trio.sleep(1)
                    await ask()

            with pytest.raises(RuntimeFault, match="ZeroDivisionError"), trio.fail_after(60):
                await fail()
            assert [type(error.__cause__) for error in heard] == [ZeroDivisionError] * 2

    run(main)


def test_an_interrupt_in_the_middle_of_a_step_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is atomic for Ctrl-C, too: the session ends as one that is left by an exception, not as one that is broken."""
    made: list[ExternalProcess] = []
    order_of = HostSession._order_of

    def interrupted(host: HostSession, seq: int) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return order_of(host, seq)

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            monkeypatch.setattr(HostSession, "_order_of", interrupted)
            made.append(stage.backend())
            await use(made[0])

    with pytest.raises(KeyboardInterrupt):
        run(main)
    assert not made[0]._broken


def test_whatever_interrupts_the_background_everything_that_was_opened_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(HostSession, "_proven", interrupt)

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            with pytest.raises(BaseExceptionGroup) as raised, trio.fail_after(60):
                await use(stage.backend())
            assert isinstance(alone(raised.value), KeyboardInterrupt)
            await trio.sleep(1)
            assert not stage.processes.snapshot()
            assert not stage.files.directories
            assert not stage.processes.registered

    run(main)


def test_a_log_listener_that_raises_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(logging)
            with trio.fail_after(60):
                async with stage.backend(on_log=broken) as trainer:
                    for each in range(3):
                        assert (await trainer.execute("train", {"x": each})).payload == {"x": each}

    run(main)
    assert "on_log() has raised, for a record with the key 'loss'" in caplog.text


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    """Real-time signals have none in Python."""

    async def main() -> None:
        async def die(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            await session.receive()
            process.deliver(40)
            await trio.sleep_forever()

        async with staged() as stage:
            stage.trainer(die)
            with pytest.raises(TrainerLost, match="killed by signal 40"):
                async with stage.backend() as trainer:
                    await trainer.execute("train", {})

    run(main)


def counting(stage: Stage, late_s: float = 0) -> list[float]:
    """When the stage's network was dialled; a connection comes ``late_s`` later."""
    dial, found = stage.network.dial, []

    async def counted(endpoint: str) -> Any:
        found.append(trio.current_time())
        if len(found) > 1000:
            raise AssertionError("it is dialled without a pause")
        await trio.sleep(late_s)
        return await dial(endpoint)

    stage.network.dial = counted  # type: ignore[method-assign]
    return found


def test_a_link_that_is_lost_as_soon_as_it_is_there_is_dialled_with_pauses() -> None:
    """Here the trainer closes it itself, as it does not agree with what the host says."""

    async def main() -> None:
        async with staged() as stage:
            dialled = counting(stage)
            stage.trainer(stage.work, change=lambda given: evolve(given, secure=True))
            with pytest.raises(JoinFailed):
                async with stage.backend():
                    pass
            assert 10 < len(dialled) < 50
            assert dialled[-1] - dialled[-2] == pytest.approx(1, abs=0.1)

    run(main)


def test_a_connection_that_comes_when_the_session_is_over_is_closed() -> None:
    """And is no fault: the trainer was dialling while its user shut it down."""

    async def main() -> None:
        async def give_up(session: TrainerSession, process: SimProcess) -> None:
            async with trio.open_nursery() as nursery:

                async def join() -> None:
                    with pytest.raises(SessionClosed):
                        await session.init()

                nursery.start_soon(join)
                await trio.sleep(0.5)
                await session.shutdown()
            await trio.sleep(2)
            assert session.over

        async with staged() as stage:
            dialled = counting(stage, late_s=1)
            stage.trainer(give_up)
            with pytest.raises(JoinFailed, match="exited with status 0"):
                async with stage.backend():
                    pass
            assert stage.ended == ["done"]
            assert len(dialled) == 1

    run(main)


KINDS_OF_CONTROL = [kind for kind in KINDS if kind.link == "control"]


@pytest.mark.parametrize("kind", KINDS_OF_CONTROL, ids=lambda kind: kind.name)
def test_whatever_kind_a_trainer_says_the_host_is_not_at_fault(kind: Kind) -> None:
    """Not even one that only a host says: its link is closed, and the session ends like any other."""

    async def main() -> None:
        async def say(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            session._links.control._connection._stream.send_nowait(frame_of(kind))  # type: ignore[union-attr]
            await session.receive()
            await trio.sleep(1)

        async with staged() as stage:
            stage.trainer(say)
            with pytest.raises(SessionError), trio.fail_after(600):
                await use(stage.backend())

    run(main)


@pytest.mark.parametrize("kind", KINDS_OF_CONTROL, ids=lambda kind: kind.name)
def test_whatever_kind_a_host_says_the_trainer_is_not_at_fault(kind: Kind) -> None:
    """Not even one that only a trainer says, or a host that it was not launched by."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            async with stage.backend() as trainer:
                trainer._latest._links.control._connection._stream.send_nowait(frame_of(kind))  # type: ignore[union-attr]
                await trio.sleep(1)
                with suppress(SessionError):
                    await trainer.execute("train", {"x": 1})
            assert stage.ended[0] in ("done", "CallCancelled", "SessionAborted", "SessionClosed", "killed")

    run(main)


def test_after_a_fault_in_a_trainer_its_calls_say_so_instead_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        heard: list[Exception] = []

        async def go_on(session: TrainerSession, process: SimProcess) -> None:
            await session.init()
            task = await session.receive()
            assert task is not None
            monkeypatch.setattr(TrainerSession, "_beside", broken)
            for call in (session.send(task.payload), session.receive(), session.shutdown()):
                try:
                    await call
                except (RuntimeFault, ZeroDivisionError) as error:
                    heard.append(error)

        async with staged() as stage:
            stage.trainer(go_on)
            with pytest.raises(SessionError), trio.fail_after(600):
                await use(stage.backend())
        assert [type(error) for error in heard] == [ZeroDivisionError, RuntimeFault, RuntimeFault]
        assert [type(error.__cause__) for error in heard[1:]] == [ZeroDivisionError] * 2

    run(main)
