"""A script's session, asynchronous: models instead of payloads, and the rules of the calls. The blocking API stands on it.

Rule 1.  What comes next is the trainer session's to say. Nothing that was received is kept here to be given out again: a new task
         always wins, and a task that was taken and not sent may be read again.
Rule 2.  ``send`` is for the task that ``receive`` gave last. ``is_running`` waits for a task and takes it; it does not arm ``send``.
Rule 3.  ``send`` changes a caller's model in one way only: after success it empties it, if ``clear_cache`` says so.
Rule 4.  A rank other than 0 opens nothing. It receives ``None``, sends nothing, and is told so where it asks for control.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum
from typing import Any, Protocol

import trio
from attrs import define, field, frozen

from troth.client.difference import TransferType, difference, remember
from troth.client.model import FLModel, ParamsType, from_tree, to_tree
from troth.client.records import record
from troth.client.settings import CONTROL_RANK, Settings
from troth.runtime.errors import Misuse, SessionAborted, SessionClosed, SessionLost
from troth.runtime.processes.owner import owner_descriptor
from troth.runtime.wire.besides import LogBeside
from troth.spec.messages import Verdict

CLOSING_EXTRA_S = 5.0
"""How much longer than its host's drain limit a session may take to close."""


class TaskLike(Protocol):
    """A task that was taken. The same task is the same object."""

    @property
    def name(self) -> str:
        """What is to be done."""
        ...

    @property
    def payload(self) -> Any:
        """The tree that came with it."""
        ...


class Trainer(Protocol):
    """What a session needs; ``troth.runtime.trainer.TrainerSession`` is it, and a test may bring its own."""

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        ...

    @property
    def verdict(self) -> Verdict:
        """How it ended."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Everything that goes on behind the calls, until it is cancelled."""
        ...

    async def init(self) -> bool:
        """Join."""
        ...

    async def receive(self) -> TaskLike | None:
        """Wait for a task and take it; ``None``: there will be none."""
        ...

    async def send(self, tree: Any) -> None:
        """Send the result of the task that was taken last; returns when it is settled."""
        ...

    async def shutdown(self) -> bool:
        """End the session; False: the send under way will."""
        ...

    async def wait_closed(self) -> None:
        """Wait until nothing of the session is left to be done."""
        ...

    def log(self, record: LogBeside) -> None:
        """Send a log record, best effort."""
        ...


Connect = Callable[[Settings], Trainer]


def load() -> None:
    """Import what ``connect`` needs. The calling thread's: the trio thread never waits for an import that an interrupted one has begun."""
    import troth.runtime.system.network  # noqa: PLC0415
    import troth.runtime.trainer  # noqa: F401, PLC0415


def connect(settings: Settings) -> Trainer:
    """A trainer session over the real network."""
    from troth.runtime.system.network import SystemNetwork  # noqa: PLC0415
    from troth.runtime.tracing import trace_of_launch  # noqa: PLC0415
    from troth.runtime.trainer import TrainerSession  # noqa: PLC0415

    return TrainerSession(settings.bootstrap, SystemNetwork(), owner_fd=owner_descriptor(), trace=trace_of_launch())


@define(eq=False)
class Held:
    """A task that was taken. ``model`` is ``None`` until somebody receives it."""

    task: TaskLike
    model: FLModel | None = None
    original: Any = None
    """What a difference is taken to."""


@frozen(eq=False)
class Prepared:
    """A result that can be sent: the model as the caller made it, what travels, and the task it is for."""

    model: FLModel
    tree: dict[str, Any]
    held: Held


_ENDED: Mapping[Verdict, tuple[type[Exception], str]] = {
    Verdict.ABORTED: (SessionAborted, "the host has aborted the session"),
    Verdict.LOST: (SessionLost, "the host is gone, or was silent for too long"),
}


def check_timeout(timeout: float | None) -> float | None:
    """Seconds to wait, or ``None`` for as long as it takes."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout: must be a number of seconds or None, got {type(timeout).__name__}")
    if not math.isfinite(timeout) or timeout < 0:
        raise ValueError(f"timeout: must be finite and at least 0, got {timeout!r}; None waits for as long as it takes")
    return timeout


@define(eq=False)
class Session:
    """One script's session. Made by ``open_session``; all methods belong to the trio thread that made it."""

    settings: Settings
    _trainer: Trainer | None = None
    """``None`` for a passive rank."""
    _held: Held | None = field(default=None, init=False)
    """The task that was taken last."""
    _armed: Held | None = field(default=None, init=False)
    """The one that ``receive`` gave last."""
    _gone: trio.Event = field(factory=trio.Event, init=False)
    """Nothing goes on behind the calls any more."""

    # -- tasks ---------------------------------------------------------------------------------------------------------

    async def receive(self, timeout: float | None = None) -> FLModel | None:
        """The model of the next task; of the one already received, if its result was not sent and there is no newer.

        Waits at most ``timeout`` seconds. ``None``: nothing came in time, or the session has ended in order, or this rank is passive.
        Raises ``SessionAborted``, ``SessionLost``; ``NotAModel`` if the task is there, but is none.
        """
        held = await self.take(check_timeout(timeout))
        return None if held is None else self.unpack(held)

    async def take(self, timeout: float | None) -> Held | None:
        """The first half of ``receive``: wait for a task and take it."""
        if self._trainer is None:
            return None
        with trio.move_on_after(math.inf if timeout is None else timeout):
            task = await self._trainer.receive()
            if task is None:
                return None
            if self._held is None or self._held.task is not task:
                self._held = Held(task)
            return self._held
        return None

    def unpack(self, held: Held) -> FLModel:
        """The second half of ``receive``, in any thread: its model, the same one for the same task."""
        if held.model is None:
            model = from_tree(held.task.payload)
            if self.settings.transfer_type is TransferType.DIFF:
                held.original = remember(model.params)
            held.model = model
        self._armed = held
        return held.model

    async def is_running(self) -> bool:
        """Wait for the next task and keep it for ``receive``. False once the session has ended, however it did, and for a passive
        rank."""
        try:
            return await self.take(None) is not None
        except (SessionAborted, SessionLost, SessionClosed):
            return False

    def __aiter__(self) -> AsyncIterator[FLModel]:
        """The models that ``receive`` gives, until there are no more."""
        return self._models()

    async def _models(self) -> AsyncIterator[FLModel]:
        while (model := await self.receive()) is not None:
            yield model

    async def send(self, model: FLModel, clear_cache: bool = True) -> None:
        """Send the result of the task that ``receive`` gave last; returns when all its receivers hold it.

        With ``clear_cache`` the parameters of this model and of the received one are dropped afterwards, so that their memory is free
        while the next task is waited for. Raises ``TypeError``, ``ValueError`` and ``PayloadRefused`` for a model that cannot be sent,
        ``Misuse`` before ``receive``; ``ResultRejected``, ``ResultConflict``, ``ResultUndelivered``, ``CallCancelled``;
        ``SessionClosed``, ``SessionAborted``, ``SessionLost``. After an exception the models are as they were. A passive rank sends
        nothing.
        """
        if self._trainer is not None:
            await self.publish(self.prepare(model), clear_cache)

    def prepare(self, model: FLModel) -> Prepared:
        """The first half of ``send``, in any thread: whether it may be sent, and what travels."""
        if not isinstance(model, FLModel):
            raise TypeError(f"model: must be an FLModel, got {type(model).__name__}")
        if model.params is None and model.metrics is None:
            raise ValueError("model: has neither params nor metrics, so there is nothing to send")
        held = self._held
        if held is None or held is not self._armed:
            raise self._not_armed()
        return Prepared(model, to_tree(self._as_sent(model, held)), held)

    async def publish(self, prepared: Prepared, clear_cache: bool) -> None:
        """The second half of ``send``."""
        if self._trainer is None:
            return
        if self._held is not prepared.held:
            raise Misuse("send(): another thread has taken another task; a result is for the task that was taken last")
        await self._trainer.send(prepared.tree)
        if clear_cache:
            for emptied in (prepared.model, prepared.held.model):
                if emptied is not None:
                    emptied.params = emptied.optimizer_params = None
            prepared.held.task.payload.clear()  # a dict, or it would not have been a model
            if self._held is prepared.held:  # not if another thread has taken the next task meanwhile
                self.clear()

    def _not_armed(self) -> Exception:
        if self._trainer is not None and self._trainer.over:
            kind, text = _ENDED.get(self._trainer.verdict, (SessionClosed, "the session is closed"))
            return kind(text)
        return Misuse("send(): there is no task to send a result for; call receive() first")

    def _as_sent(self, model: FLModel, held: Held) -> FLModel:
        if self.settings.transfer_type is not TransferType.DIFF or model.params_type is not ParamsType.FULL or held.original is None:
            return model
        return difference(model, held.original)

    def clear(self) -> None:
        """Forget the task that was received last, as far as ``send`` is concerned. It is not needed: a new task always wins."""
        self._held = None
        self._armed = None

    # -- what the task is ----------------------------------------------------------------------------------------------

    def get_task_name(self) -> str:
        """The name of the task that was taken last. Raises ``Misuse`` if there is none, and for a passive rank."""
        self.require_control("get_task_name")
        if self._held is None:
            raise Misuse("get_task_name(): there is no task; call receive() or is_running() first")
        return self._held.task.name

    def is_train(self) -> bool:
        """Whether the task that was taken last is to train. Raises ``Misuse`` for a passive rank."""
        return self._is("is_train", self.settings.bootstrap.tasks.train)

    def is_evaluate(self) -> bool:
        """Whether the task that was taken last is to evaluate. Raises ``Misuse`` for a passive rank."""
        return self._is("is_evaluate", self.settings.bootstrap.tasks.evaluate)

    def is_submit_model(self) -> bool:
        """Whether the task that was taken last is to hand in the model. Raises ``Misuse`` for a passive rank."""
        return self._is("is_submit_model", self.settings.bootstrap.tasks.submit)

    def _is(self, call: str, name: str) -> bool:
        self.require_control(call)
        return self._held is not None and self._held.task.name == name

    def require_control(self, call: str) -> None:
        """Raise ``Misuse`` for a passive rank."""
        if self._trainer is None:
            raise Misuse(f"{call}(): only rank {CONTROL_RANK} may ask, this is rank {self.settings.rank}")

    # -- the rest ------------------------------------------------------------------------------------------------------

    def log(self, key: str, value: Any, data_type: str | Enum, **extra: Any) -> None:
        """Send a named value to the host's log, best effort: what becomes of the link never raises. Raises ``TypeError`` and
        ``ValueError`` for a record that is none, ``Misuse`` for a passive rank."""
        self.require_control("log")
        self.hand_over(record(key, value, data_type, extra))

    def hand_over(self, made: LogBeside) -> None:
        """Send a record that was checked."""
        if self._trainer is not None and not self._trainer.over:
            self._trainer.log(made)

    def system_info(self) -> dict[str, Any]:
        """The ids of the job and the site."""
        return self.settings.info()

    def get_job_id(self) -> str:
        """The id of the job."""
        return self.settings.bootstrap.job_id

    def get_site_name(self) -> str:
        """The name of the site."""
        return self.settings.bootstrap.site_name

    def get_config(self) -> dict[str, Any]:
        """What the host said about tasks, with the ids; never an address or a token."""
        return self.settings.config()

    async def shutdown(self) -> bool:
        """End the session in order. True once it is over; False if the ``send`` under way will close it. May be called again."""
        return self._trainer is None or await self._trainer.shutdown()

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._trainer is not None and self._trainer.over

    @property
    def passive(self) -> bool:
        """Whether this rank has no session of its own."""
        return self._trainer is None

    async def finish(self) -> None:
        """``shutdown``, and wait until nothing is left to be done, within a bound."""
        if self._trainer is None:
            return
        with trio.move_on_after(self.settings.bootstrap.limits.drain_limit_s + CLOSING_EXTRA_S):
            await self._trainer.shutdown()
            await self._gone.wait()

    async def live(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """What goes on behind the calls, until the session is closed."""
        if self._trainer is None:
            task_status.started()
            return
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._trainer.run)
                task_status.started()
                await self._trainer.wait_closed()
                nursery.cancel_scope.cancel()
        finally:
            self._gone.set()

    async def join(self) -> None:
        """Become part of a session, or raise ``JoinFailed``, ``SessionClosed``, ``SessionAborted`` or ``SessionLost``."""
        if self._trainer is not None:
            await self._trainer.init()
