"""``shutdown`` from a signal handler, and exceptions out of one, between any two instructions of every call that waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import troth.client as flare
from tests.client.doubles import MadeHost
from tests.client.interruptions import Interrupter, everywhere, interrupted, unjoined
from troth.client import context as contexts
from troth.client import loop as loops
from troth.client import process as processes
from troth.runtime.errors import Misuse, SessionClosed
from troth.spec.messages import Verdict


@pytest.fixture
def overdue(monkeypatch: pytest.MonkeyPatch) -> list[loops.Call[Any]]:
    """Calls that did not return in time: the trio thread was held up by whom it was waiting for."""
    found: list[loops.Call[Any]] = []
    wait = loops.Call.wait

    def noting(call: loops.Call[Any], limit_s: float | None) -> bool:
        came = wait(call, limit_s)
        if not came:
            found.append(call)
        return came

    monkeypatch.setattr(loops.Call, "wait", noting)
    monkeypatch.setattr(contexts, "SHUTDOWN_LIMIT_S", 10.0)
    monkeypatch.setattr(loops, "ABANDON_LIMIT_S", 10.0)
    return found


@contextmanager
def a_process(host: MadeHost) -> Iterator[processes.Process]:
    """A process that has no session yet."""
    process = unjoined(host)
    try:
        yield process
    finally:
        process.at_exit()
        assert process._loop is None or (not process._loop.running and not process._loop._calls)


def test_shutdown_may_interrupt_receive_anywhere(host: MadeHost, overdue: list[Any]) -> None:
    host.reactions["receive"] = lambda: host.trainer.end(Verdict.STOPPED)

    def run(at: int) -> Interrupter:
        with a_process(host):
            flare.init()
            with interrupted(at, flare.shutdown) as interrupter:
                assert flare.receive() is None
            assert flare.is_running() is False
            assert not overdue
        return interrupter

    assert everywhere(run) > 50


def test_shutdown_may_interrupt_send_anywhere(host: MadeHost, overdue: list[Any]) -> None:
    """Before the result is on its way send raises; after that it is waited for."""
    host.settles = False
    host.reactions["send"] = lambda: host.trainer.settle(None)
    came = {True: 0, False: 0}

    def run(at: int) -> Interrupter:
        with a_process(host):
            flare.init()
            host.offer("train", {"metrics": {}})
            flare.receive()
            with interrupted(at, flare.shutdown) as interrupter:
                try:
                    flare.send(flare.FLModel(metrics={"a": 1}))
                except SessionClosed:
                    assert not host.trainer.sent
                    came[False] += 1
                else:
                    assert len(host.trainer.sent) == 1
                    came[True] += 1
            assert host.trainer.over or interrupter.seen < at
            assert not overdue
        return interrupter

    assert everywhere(run) > 50
    assert min(came.values()) > 10


def test_shutdown_may_interrupt_shutdown_anywhere(host: MadeHost, overdue: list[Any]) -> None:
    def run(at: int) -> Interrupter:
        with a_process(host):
            flare.init()
            again: list[bool] = []
            with interrupted(at, lambda: again.append(flare.shutdown())) as interrupter:
                assert flare.shutdown() is True
            assert [True] * len(again) == again
            assert host.trainer.over
            assert not overdue
        return interrupter

    assert everywhere(run) > 50


def test_shutdown_may_interrupt_init_anywhere(host: MadeHost, overdue: list[Any]) -> None:
    """Init raises, or has joined what is then closed; unless the handler came before there was anything to end."""
    came = {"raised": 0, "joined": 0}

    def run(at: int) -> Interrupter:
        with a_process(host) as process:
            known: list[bool] = []

            def handler() -> None:
                known.append(bool(process._joining) or process.default is not None)
                flare.shutdown()

            with interrupted(at, handler) as interrupter:
                try:
                    flare.init()
                    came["joined"] += 1
                except SessionClosed:
                    came["raised"] += 1
                    assert not any(trainer.running for trainer in host.trainers)
                    with pytest.raises(Misuse, match="call init"):
                        flare.receive()
                else:
                    assert host.trainer.over or not any(known)
            assert not overdue
        return interrupter

    assert everywhere(run) > 300
    assert min(came.values()) > 10


def test_shutdown_may_interrupt_an_init_that_nobody_answers(host: MadeHost, overdue: list[Any]) -> None:
    def run(at: int) -> Interrupter:
        with a_process(host):
            host.answers.clear()
            host.reactions["init"] = host.answer
            with interrupted(at, flare.shutdown) as interrupter, suppress(SessionClosed):
                flare.init()
            assert not overdue
        return interrupter

    everywhere(run, step=7)


class Interruption(KeyboardInterrupt):
    """What the interpreter's own handler would raise."""


def interruption() -> None:
    raise Interruption


def test_an_exception_may_interrupt_receive_anywhere_and_no_task_is_lost(host: MadeHost, overdue: list[Any]) -> None:
    """Not even one that came at the very moment."""
    came = {True: 0, False: 0}

    def run(at: int) -> Interrupter:
        with a_process(host) as process:
            flare.init()
            task = host.offer("train", {"metrics": {"a": at}})
            with interrupted(at, interruption, raises=True) as interrupter:
                try:
                    model = flare.receive()
                except Interruption:
                    model = None
            came[model is not None] += 1
            again = flare.receive(timeout=0)
            assert again is not None
            assert model is None or again is model
            assert host.trainer.current is task
            assert process._loop is not None
            assert not process._loop._calls
            assert not overdue
        return interrupter

    assert everywhere(run) > 50
    assert came[False] > 50


def test_an_exception_may_interrupt_a_receive_that_waits_anywhere(host: MadeHost, overdue: list[Any]) -> None:
    """The task that comes afterwards goes to the next call."""

    def run(at: int) -> Interrupter:
        with a_process(host):
            host.reactions["receive"] = lambda: host.trainer.end(Verdict.STOPPED)
            flare.init()
            with interrupted(at, interruption, raises=True) as interrupter, suppress(Interruption):
                assert flare.receive() is None
            assert not overdue
        return interrupter

    everywhere(run)


def test_an_exception_may_interrupt_init_anywhere_and_the_next_one_joins(host: MadeHost, overdue: list[Any]) -> None:
    """And there is never a second session behind the first."""

    def run(at: int) -> Interrupter:
        with a_process(host):
            host.answers.append(None)
            with interrupted(at, interruption, raises=True) as interrupter, suppress(Interruption):
                flare.init()
            flare.init()
            assert sum(trainer.running and not trainer.over for trainer in host.trainers) == 1
            host.offer("train", {"metrics": {}})
            assert flare.is_running()
            assert flare.shutdown()
            assert not overdue
        return interrupter

    assert everywhere(run) > 50


def test_an_exception_may_interrupt_send_anywhere_and_it_can_be_sent_again(host: MadeHost, overdue: list[Any]) -> None:
    def run(at: int) -> Interrupter:
        with a_process(host):
            flare.init()
            host.offer("train", {"metrics": {}})
            flare.receive()
            made = flare.FLModel(metrics={"a": 1})
            with interrupted(at, interruption, raises=True) as interrupter, suppress(Interruption):
                flare.send(made, clear_cache=False)
            flare.send(made, clear_cache=False)
            assert [{"metrics": {"a": 1}, "start_round": 0}] * len(host.trainer.sent) == host.trainer.sent
            assert not overdue
        return interrupter

    assert everywhere(run) > 50
