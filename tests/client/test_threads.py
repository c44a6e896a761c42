"""Real signals, other threads, finalizers, forks, and a session that breaks."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import troth.client as flare
from tests.client.doubles import MadeHost, make_bootstrap, other_thread
from troth.client import context as contexts
from troth.client import loop as loops
from troth.client import process as processes
from troth.client import session as sessions
from troth.client.process import Process
from troth.runtime.errors import Misuse, RuntimeFault, SessionClosed
from troth.spec.limits import Limits


@contextmanager
def handling(number: signal.Signals, handler: Callable[[], object]) -> Iterator[None]:
    """Let ``handler`` handle a signal."""
    before = signal.signal(number, lambda *_: handler())
    try:
        yield
    finally:
        signal.signal(number, before)


def interrupt(number: signal.Signals) -> Callable[[], None]:
    """Sends this thread's process a signal, for its main thread to handle."""
    return lambda: os.kill(os.getpid(), number)


def test_a_handler_ends_a_receive_that_waits(host: MadeHost) -> None:
    flare.init()
    ended: list[bool] = []

    with handling(signal.SIGTERM, lambda: ended.append(flare.shutdown())), host.when("receive", interrupt(signal.SIGTERM)):
        assert flare.receive() is None
    assert ended == [True]
    assert flare.is_running() is False


def test_a_handler_ends_a_loop(host: MadeHost) -> None:
    flare.init()

    with handling(signal.SIGTERM, flare.shutdown), host.when("receive", interrupt(signal.SIGTERM)):
        while flare.is_running():
            pytest.fail("no task came")


def test_a_handler_ends_an_init_that_waits(host: MadeHost) -> None:
    """And the next init joins."""
    host.answers.clear()
    ended: list[bool] = []

    with handling(signal.SIGTERM, lambda: ended.append(flare.shutdown())), host.when("init", interrupt(signal.SIGTERM)):  # noqa: SIM117
        with pytest.raises(SessionClosed):
            flare.init()
    assert ended == [True]
    host.answers.append(None)
    flare.init()


def test_a_handler_that_comes_while_a_result_is_sent_leaves_the_end_to_send(host: MadeHost) -> None:
    flare.init()
    host.settles = False
    host.offer("train", {"metrics": {}})
    flare.receive()
    ended: list[bool] = []

    def handler() -> None:
        ended.append(flare.shutdown())
        host.settle()

    with handling(signal.SIGTERM, handler), host.when("send", interrupt(signal.SIGTERM)):
        flare.send(flare.FLModel(metrics={"a": 1}))
    assert ended == [False]
    assert host.trainer.over
    assert flare.is_running() is False
    assert flare.shutdown()


def test_a_keyboard_interrupt_leaves_the_task_that_comes_to_the_next_call(host: MadeHost) -> None:
    """And the call that it ended is over: another thread may wait in its place."""
    flare.init()
    with handling(signal.SIGINT, lambda: signal.default_int_handler(signal.SIGINT, None)), host.when("receive", interrupt(signal.SIGINT)):  # noqa: SIM117
        with pytest.raises(KeyboardInterrupt):
            flare.receive()
    task = host.offer("train", {"metrics": {"a": 1}})

    with other_thread(lambda: flare.receive(timeout=30)):
        pass
    assert host.trainer.current is task


def test_a_keyboard_interrupt_leaves_an_init_that_can_be_tried_again(host: MadeHost) -> None:
    host.answers.clear()
    with handling(signal.SIGINT, lambda: signal.default_int_handler(signal.SIGINT, None)), host.when("init", interrupt(signal.SIGINT)):  # noqa: SIM117
        with pytest.raises(KeyboardInterrupt):
            flare.init()
    assert not host.trainer.running

    host.answers.append(None)
    flare.init()
    assert host.trainer.running


def test_another_thread_ends_whatever_waits(host: MadeHost) -> None:
    flare.init()
    with host.when("receive", flare.shutdown):
        assert flare.receive() is None


def test_many_threads_may_end_it_at_once(host: MadeHost) -> None:
    flare.init()
    ended: list[bool] = []
    threads = [threading.Thread(target=lambda: ended.append(flare.shutdown())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ended == [True] * 20


def test_another_thread_may_take_the_next_task_before_send_has_returned(host: MadeHost) -> None:
    """What send clears is what it has sent."""
    flare.init()
    host.settles = False
    host.offer("train", {"metrics": {"a": 1}})
    first = flare.receive()
    assert first is not None

    def next_task() -> None:
        host.offer("validate", {"metrics": {"a": 2}})
        assert flare.is_running()
        host.settle()

    with host.when("send", next_task):
        flare.send(flare.FLModel(metrics={"a": 1}))
    assert flare.is_evaluate()
    second = flare.receive()
    assert second is not None
    assert second.metrics == {"a": 2}


def test_threads_join_different_sessions_at_once(host: MadeHost, tmp_path: Path) -> None:
    """The thread behind them is started once."""
    host.answers.extend([None] * 3)
    for name in "abc":
        make_bootstrap(tmp_path / name, site_name=name)
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda n=name: found.append(flare.init(config_file=tmp_path / n).session.get_site_name())) for name in "abc"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(found) == ["a", "b", "c"]


def test_a_finalizer_in_the_trio_thread_does_not_wait_for_it(host: MadeHost, process: Process) -> None:
    """The collector runs finalizers in whichever thread it happens to run."""
    flare.init()
    told: list[Any] = []
    done = threading.Event()

    class Finalized:
        def __del__(self) -> None:
            told.append(flare.shutdown())
            try:
                flare.receive()
            except Misuse as error:
                told.append(str(error))

    def collect() -> None:
        Finalized()
        gc.collect()
        done.set()

    assert process._loop is not None
    process._loop.soon(collect)
    assert done.wait(30)
    assert told[0] is False
    assert "cannot wait for itself" in told[1]
    assert flare.receive() is None


def test_a_session_that_breaks_says_so_to_whoever_waits(host: MadeHost) -> None:
    flare.init()
    with host.when("receive", lambda: host.soon(host.trainer.breaks, ValueError("oh"))), pytest.raises(RuntimeFault) as raised:
        flare.receive()
    assert isinstance(raised.value.__cause__, ValueError)

    with pytest.raises(RuntimeFault):
        flare.is_running()
    assert flare.shutdown()
    host.answers.append(None)
    flare.init()
    assert flare.receive(timeout=0) is None


def test_a_session_that_breaks_leaves_the_others_alone(host: MadeHost, tmp_path: Path) -> None:
    first = flare.init()
    make_bootstrap(tmp_path / "second.json")
    host.answers.append(None)
    second = flare.init(config_file=tmp_path / "second.json")
    host.soon(host.trainers[0].breaks, ValueError("oh"))
    host.offer("train", {"metrics": {}})

    assert flare.is_running(ctx=second)
    with pytest.raises(RuntimeFault):
        flare.receive(timeout=30, ctx=first)


def test_a_log_record_that_is_not_taken_in_time_is_dropped_and_counted(
    host: MadeHost, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never holds the script up, and never arrives later."""
    context = flare.init()
    flare.log("loss", 0.25, "SCALAR")
    monkeypatch.setattr(contexts, "LOG_LIMIT_S", 0.0)
    held, free = threading.Event(), threading.Event()
    assert process._loop is not None

    def hold() -> None:
        held.set()
        free.wait(30)

    process._loop.soon(hold)
    assert held.wait(30)

    flare.log("loss", 0.5, "SCALAR")
    free.set()
    assert context.dropped_logs == 1
    assert flare.receive(timeout=0) is None
    assert [record.value for record in host.trainer.logged] == [0.25]


def test_a_log_record_after_the_end_is_dropped(host: MadeHost, process: Process) -> None:
    flare.init()
    flare.shutdown()
    flare.log("loss", 0.5, "SCALAR")
    process.at_exit()
    flare.log("loss", 0.5, "SCALAR")

    assert not host.trainer.logged


def test_calls_after_the_thread_has_ended_say_so(host: MadeHost, process: Process) -> None:
    flare.init()
    process.at_exit()

    for call in (flare.receive, lambda: flare.init(rank="00")):
        with pytest.raises((SessionClosed, RuntimeFault), match="thread has ended"):
            call()
    assert flare.shutdown()


def test_no_more_calls_wait_than_the_limit(host: MadeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    flare.init()
    monkeypatch.setattr(loops, "CALLS_LIMIT", 1)

    def second() -> None:
        with pytest.raises(Misuse, match="1 calls are waiting already"):
            flare.is_running()
        host.end()

    with host.when("receive", second):
        assert flare.receive() is None


def test_a_forked_child_is_told_that_the_session_is_not_its_own(host: MadeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    flare.init()
    parent = os.getpid()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: parent + 1)
        for call in (flare.init, flare.receive, flare.is_running, flare.get_job_id, flare.system_info, flare.clear, flare.shutdown):
            with pytest.raises(Misuse, match=f"forked from process {parent}"):
                call()
    host.offer("train", {"metrics": {}})
    assert flare.is_running()


def test_a_forked_child_of_a_process_whose_sessions_had_ended_starts_afresh(host: MadeHost, process: Process) -> None:
    flare.init()
    flare.shutdown()
    process.at_exit()
    process.pid = -1  # as if it was another process' record
    host.answers.append(None)

    flare.init()
    assert processes._process is not process
    assert processes._process.pid == os.getpid()
    assert flare.shutdown()


def test_an_exit_waits_for_a_result_that_is_sent_but_not_for_ever(
    host: MadeHost, process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever still waits then is told that it is over."""
    monkeypatch.setattr(sessions, "CLOSING_EXTRA_S", 0.05)
    make_bootstrap(tmp_path / "bootstrap.json", limits=Limits(open_retry_s=0.01, drain_limit_s=0.05))
    flare.init()
    host.settles = False
    host.offer("train", {"metrics": {}})
    flare.receive()

    def send() -> None:
        with pytest.raises(SessionClosed):
            flare.send(flare.FLModel(metrics={"a": 1}))

    sending = host.expect("send")
    with other_thread(send):
        sending()
        process.at_exit()
    assert process._loop is not None
    assert not process._loop.running


def test_an_exit_lets_a_result_through_that_is_settled_in_time(host: MadeHost, process: Process) -> None:
    flare.init()
    host.settles = False
    host.offer("train", {"metrics": {}})
    flare.receive()
    host.reactions["shutdown"] = host.trainer.settle
    sending = host.expect("send")
    with other_thread(lambda: flare.send(flare.FLModel(metrics={"a": 1}))):
        sending()
        process.at_exit()
    assert len(host.trainer.sent) == 1
