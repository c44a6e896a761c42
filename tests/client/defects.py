"""What the reference gets wrong at the API: checks that hold of this client, and patches that bring the defects back."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import troth.client as flare
from tests.client.doubles import MadeHost, make_bootstrap
from tests.client.interruptions import Interrupter, everywhere, interrupted, unjoined
from troth.client import context as contexts
from troth.client import loop as loops
from troth.client import process as processes
from troth.client import session as sessions
from troth.client.context import Context
from troth.client.difference import difference
from troth.client.process import Process
from troth.client.session import Held, Session
from troth.client.settings import read
from troth.runtime.errors import JoinFailed, Misuse, ResultUndelivered, SessionClosed
from troth.spec.messages import Verdict

Check = Callable[[MadeHost, Path], None]
Patch = Callable[[pytest.MonkeyPatch], None]

HELD_UP_S = 0.05
"""How long a patched check waits for what never comes."""


def a_task(host: MadeHost, value: float, name: str = "train") -> None:
    host.offer(name, {"params": {"w": np.full(2, value)}})


def a_result() -> flare.FLModel:
    return flare.FLModel(params={"w": np.full(2, 5.0)})


def received() -> float:
    """What the model that is received now holds."""
    model = flare.receive(timeout=0)
    assert model is not None, "nothing was received"
    return float(model.params["w"][0])


def anew(host: MadeHost) -> Process:
    """A process without a session, and a host that answers once."""
    processes._process.at_exit()
    return unjoined(host)


# -- D15, D23: shutdown() from a handler ---------------------------------------------------------------------------------


def check_a_handler_ends_a_receive(host: MadeHost, _path: Path) -> None:
    host.reactions["receive"] = lambda: host.trainer.end(Verdict.STOPPED)

    def run(at: int) -> Interrupter:
        anew(host)
        flare.init()
        told: list[bool] = []
        with interrupted(at, lambda: told.append(flare.shutdown())) as interrupter:
            assert flare.receive() is None
        assert all(told), "the handler was held up by what it had interrupted"
        return interrupter

    everywhere(run, step=3)


def wait_on_conditions(patch: pytest.MonkeyPatch) -> None:
    """As ``concurrent.futures`` does: what a waiting thread is interrupted in, the trio thread needs to let it go."""

    class OnCondition(loops.Call[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.condition = threading.Condition()
            self.done = False

        def _let_go(self) -> None:
            with self.condition:
                self.done = True
                self.condition.notify_all()

        def succeed(self, value: Any) -> None:
            self._value = value
            self._let_go()

        def fail(self, failure: BaseException) -> None:
            self._failure = failure
            self._let_go()

        def wait(self, limit_s: float | None) -> bool:
            with self.condition:
                return self.condition.wait_for(lambda: self.done, limit_s)

    patch.setattr(contexts, "Call", OnCondition)
    patch.setattr(contexts, "SHUTDOWN_LIMIT_S", HELD_UP_S)


def check_a_handler_ends_an_init(host: MadeHost, _path: Path) -> None:
    def run(at: int) -> Interrupter:
        anew(host)
        with interrupted(at, flare.shutdown) as interrupter, suppress(SessionClosed):
            flare.init()
        return interrupter

    everywhere(run, step=11)


def lock_init_and_shutdown(patch: pytest.MonkeyPatch) -> None:
    """The lifecycle lock of the reference, which ``init`` holds while it joins."""
    lock = threading.Lock()
    init, shutdown = Process.init, Process.shutdown

    def locked_init(process: Process, *arguments: Any) -> Any:
        with lock:
            return init(process, *arguments)

    def locked_shutdown(process: Process, *arguments: Any) -> Any:
        assert lock.acquire(timeout=HELD_UP_S), "deadlock"
        try:
            return shutdown(process, *arguments)
        finally:
            lock.release()

    patch.setattr(Process, "init", locked_init)
    patch.setattr(Process, "shutdown", locked_shutdown)


# -- D21: init() again ---------------------------------------------------------------------------------------------------


def check_init_can_be_tried_again(host: MadeHost, path: Path) -> None:
    host.answers.clear()
    host.answers.extend([JoinFailed("nobody answered"), None])
    with pytest.raises(JoinFailed):
        flare.init()
    make_bootstrap(path, endpoint="tcp:127.0.0.1:2")
    flare.init()

    assert [one.settings.bootstrap.endpoint for one in host.trainers] == ["tcp:127.0.0.1:1", "tcp:127.0.0.1:2"]


def keep_what_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Process, "_forget", lambda _process, _context: None)


def keep_what_was_resolved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(processes, "read", functools.cache(read))


def check_init_after_shutdown_joins_anew(host: MadeHost, _path: Path) -> None:
    first = flare.init()
    flare.shutdown()
    host.answers.append(None)

    assert flare.init() is not first


def give_out_what_has_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Context, "ended", False)


# -- D26, D27: the model that is held ------------------------------------------------------------------------------------


def check_a_new_task_wins_after_a_failure(host: MadeHost, _path: Path) -> None:
    flare.init()
    a_task(host, 1)
    assert received() == 1
    host.settles = False
    with host.when("send", lambda: host.settle(ResultUndelivered("lost"))), pytest.raises(ResultUndelivered):
        flare.send(a_result())
    a_task(host, 2)

    assert received() == 2


def check_a_new_task_wins_over_what_is_kept(host: MadeHost, _path: Path) -> None:
    flare.init()
    a_task(host, 1)
    assert received() == 1
    flare.send(a_result(), clear_cache=False)
    a_task(host, 2)

    assert received() == 2


def cache_the_model(patch: pytest.MonkeyPatch) -> None:
    take = Session.take

    async def cached(session: Session, timeout: float | None) -> Held | None:
        if session._held is not None and session._held.model is not None:
            return session._held
        return await take(session, timeout)

    patch.setattr(Session, "take", cached)


def check_send_does_not_wipe_the_next_task(host: MadeHost, _path: Path) -> None:
    flare.init()
    a_task(host, 1)
    received()
    host.settles = False

    def next_task() -> None:
        a_task(host, 2, "validate")
        assert flare.is_running()
        host.settle()

    with host.when("send", next_task):
        flare.send(a_result())
    assert flare.is_evaluate()


def wipe_whatever_is_held(patch: pytest.MonkeyPatch) -> None:
    publish = Session.publish

    async def wiping(session: Session, *arguments: Any) -> None:
        await publish(session, *arguments)
        session.clear()

    patch.setattr(Session, "publish", wiping)


# -- D28: send() on a closed session ---------------------------------------------------------------------------------------


def check_send_on_a_closed_session_raises(host: MadeHost, _path: Path) -> None:
    flare.init()
    a_task(host, 1)
    received()
    flare.shutdown()
    with pytest.raises(SessionClosed):
        flare.send(a_result())


def check_a_second_send_of_one_shot_raises(host: MadeHost, _path: Path) -> None:
    flare.init()
    a_task(host, 1)
    received()
    flare.send(a_result())
    host.end()
    assert not flare.is_running()
    with pytest.raises(SessionClosed):
        flare.send(a_result())


def return_silently(patch: pytest.MonkeyPatch) -> None:
    send = Context.send

    def silent(context: Context, *arguments: Any) -> None:
        if not context.ended:
            send(context, *arguments)

    patch.setattr(Context, "send", silent)


# -- D29: differences ------------------------------------------------------------------------------------------------------


def check_a_difference_leaves_the_model_alone(host: MadeHost, path: Path) -> None:
    make_bootstrap(path, transfer_type="DIFF")
    flare.init()
    a_task(host, 1)
    received()
    made = a_result()
    flare.send(made, clear_cache=False)

    assert host.trainer.sent[0]["params"]["w"].tolist() == [4.0, 4.0]
    assert host.trainer.sent[0]["params_type"] == "DIFF"
    assert (made.params["w"].tolist(), made.params_type) == ([5.0, 5.0], "FULL")


def rewrite_the_model(patch: pytest.MonkeyPatch) -> None:

    def rewriting(model: flare.FLModel, old: Any) -> flare.FLModel:
        found = difference(model, old)
        for field in attrs.fields(flare.FLModel):
            setattr(model, field.name, getattr(found, field.name))
        return model

    patch.setattr(sessions, "difference", rewriting)


def check_training_in_place_does_not_cancel_itself_out(host: MadeHost, path: Path) -> None:
    make_bootstrap(path, transfer_type="DIFF")
    flare.init()
    a_task(host, 1)
    model = flare.receive()
    assert model is not None
    model.params["w"] += 3
    flare.send(flare.FLModel(params=model.params), clear_cache=False)

    assert host.trainer.sent[0]["params"]["w"].tolist() == [3.0, 3.0]


def remember_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sessions, "remember", lambda params: params)


# -- D31: bounds, numbers, interruptions --------------------------------------------------------------------------------------


def check_calls_are_bounded(host: MadeHost, _path: Path) -> None:
    flare.init()
    loops.CALLS_LIMIT, before = 1, loops.CALLS_LIMIT

    def more() -> None:
        try:
            for _ in range(10):
                with pytest.raises(Misuse, match="calls are waiting already"):
                    flare.is_running()
        finally:
            host.end()

    try:
        with host.when("receive", more):
            flare.receive()
    finally:
        loops.CALLS_LIMIT = before


def take_any_number_of_calls(patch: pytest.MonkeyPatch) -> None:
    def post(loop: loops.Loop, call: loops.Call[Any]) -> None:
        loop._calls.add(call)
        loop.soon(loop._begin, call)

    patch.setattr(loops.Loop, "_post", post)


def check_numbers_that_are_none_are_refused(host: MadeHost, _path: Path) -> None:
    flare.init()
    for timeout in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="timeout"):
            flare.receive(timeout=timeout)


def take_any_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(contexts, "check_timeout", lambda _timeout: 0.0)


def check_an_interrupted_init_leaves_nothing(host: MadeHost, _path: Path) -> None:
    host.answers.clear()

    def interrupt() -> None:
        raise KeyboardInterrupt

    def run(at: int) -> Interrupter:
        anew(host)
        host.answers.append(None)
        with interrupted(at, interrupt, raises=True) as interrupter, suppress(KeyboardInterrupt):
            flare.init()
        flare.init()
        assert sum(trainer.running and not trainer.over for trainer in host.trainers) == 1
        return interrupter

    everywhere(run, step=2)


def unwind_on_exceptions_only(patch: pytest.MonkeyPatch) -> None:
    forget = Process._forget

    def forgetful(process: Process, context: Context) -> None:
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            forget(process, context)

    patch.setattr(Process, "_forget", forgetful)
