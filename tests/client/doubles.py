"""A host and its trainer sessions in memory: what the client needs of ``TrainerSession``, steered by a test from any thread.

It keeps the rules that the cores keep, so that the tests of the client say something: one caller a call, a task that was handed to a
caller who gave up is handed to the next, a new task wins, a result that is being sent defers the end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from troth.client.session import Trainer
from troth.client.settings import Settings
from troth.runtime.errors import (
    Misuse,
    SessionAborted,
    SessionClosed,
    SessionError,
    SessionLost,
)
from troth.runtime.processes.bootstrap import Bootstrap
from troth.runtime.system.files import SystemFiles
from troth.runtime.wire.besides import LogBeside
from troth.runtime.wire.challenge import Token
from troth.spec.messages import Verdict

ENDS: dict[Verdict, type[SessionError]] = {Verdict.ABORTED: SessionAborted, Verdict.LOST: SessionLost, Verdict.STOPPED: SessionClosed}


@define(eq=False)
class MadeTask:
    """A task, as ``troth.runtime.trainer.Task`` is."""

    seq: int
    name: str
    payload: Any
    sent: bool = False


@define(eq=False)
class MadeTrainer:
    """A trainer session without a wire. All of it belongs to the trio thread."""

    settings: Settings
    host: MadeHost
    verdict: Verdict = Verdict.NONE
    over: bool = False
    current: MadeTask | None = None
    joining: bool = False
    ready: bool = False
    draining: bool = False
    running: bool = False
    queue: deque[MadeTask] = field(factory=deque)
    logged: list[LogBeside] = field(factory=list)
    sent: list[Any] = field(factory=list)
    _changed: trio.Event = field(factory=trio.Event)
    _calls: set[str] = field(factory=set)
    _publishing: trio.Event | None = None
    _outcome: SessionError | None = None
    _broken: Exception | None = None

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.running = True
        task_status.started()
        try:
            await self._until("run", lambda: self._broken is not None)
            if self._broken is not None:
                raise self._broken
        finally:
            self.running = False

    async def _until(self, call: str, true: Callable[[], object]) -> None:
        if call in self._calls:
            raise Misuse(f"{call}(): another thread is already waiting in this call; wait for it, or call from one thread")
        self._calls.add(call)
        try:
            while not true():
                self.host.note(call)
                await self._changed.wait()
        finally:
            self._calls.discard(call)

    def change(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()
        self._changed = trio.Event()

    async def init(self) -> bool:
        if self.over:
            raise SessionClosed("the session is closed")
        self.joining = True
        try:
            await self._until("init", lambda: self.host.answers or self.over)
        finally:
            self.joining = False
        if self.host.answers and not self.over:
            answer = self.host.answers.popleft()
            if answer is not None:
                raise answer
            self.ready = True
            return True
        raise SessionClosed("the session is closed")

    async def receive(self) -> MadeTask | None:
        def true() -> bool:
            return bool(self.queue) or self.over or self.draining or (self.current is not None and not self.current.sent)

        await self._until("receive", true)
        if self.queue:
            self.current = self.queue.popleft()
        elif self.over or self.draining:
            if self.verdict is Verdict.STOPPED:
                return None
            raise ENDS[self.verdict](f"ended: {self.verdict}")
        return self.current

    async def send(self, tree: Any) -> None:
        if self.over and not (self.current and self.current.sent):
            raise ENDS[self.verdict](f"ended: {self.verdict}")
        assert self.current is not None
        self.current.sent = True
        self.sent.append(tree)
        self._publishing = event = self._publishing or trio.Event()
        if self.host.settles:
            self.settle()
        self.host.note("send")
        await event.wait()
        if self._outcome is not None:
            raise self._outcome

    def settle(self, outcome: SessionError | None = None) -> None:
        """Let the send under way return."""
        if self._publishing is not None:
            self._outcome = outcome
            self._publishing.set()
            self._publishing = None
        if self.draining:
            self.end(Verdict.STOPPED)

    async def shutdown(self) -> bool:
        await trio.lowlevel.checkpoint()
        self.host.note("shutdown")
        if self._publishing is not None and not self.over:
            self.draining, self.verdict = True, Verdict.STOPPED
            self.change()
            return False
        self.end(Verdict.STOPPED)
        for _ in range(5):  # whoever waited returns first: if that is held up, so is this
            await trio.lowlevel.checkpoint()
        return True

    def end(self, verdict: Verdict) -> None:
        """The session is over; the first verdict stays."""
        if not self.over:
            self.verdict = verdict
        self.over, self.draining = True, False
        self.queue.clear()
        if self._publishing is not None and verdict is not Verdict.STOPPED:
            self.settle(ENDS[verdict](f"ended: {verdict}"))
        self.change()

    def breaks(self, error: Exception) -> None:
        """Let ``run`` raise."""
        self._broken = error
        self.change()

    async def wait_closed(self) -> None:
        while not self.over:
            await self._changed.wait()

    def log(self, record: LogBeside) -> None:
        self.logged.append(record)


@define(eq=False)
class MadeHost:
    """Stands for every host that the process under test could join; ``connect`` goes where ``session.connect`` is."""

    answers: deque[SessionError | None] = field(factory=deque)
    """What the next ``init`` comes to, each in turn; while it is empty, nobody answers."""
    settles: bool = True
    """Whether a result is settled at once."""
    trainers: list[MadeTrainer] = field(factory=list)
    soon: Callable[..., object] = lambda function, *arguments: function(*arguments)
    """Runs something in the trio thread."""
    reactions: dict[str, Callable[[], object]] = field(factory=dict)
    """What happens, in the trio thread, as soon as a call waits."""
    _noted: dict[str, threading.Event] = field(factory=dict)
    _tasks: int = 0

    def connect(self, settings: Settings) -> Trainer:
        """A new trainer session."""
        self.trainers.append(MadeTrainer(settings, self))
        return self.trainers[-1]

    @property
    def trainer(self) -> MadeTrainer:
        """The last one."""
        return self.trainers[-1]

    def note(self, call: str) -> None:
        """A call now waits."""
        reaction = self.reactions.get(call)
        if reaction is not None:
            trio.lowlevel.current_trio_token().run_sync_soon(reaction)
        self._noted.setdefault(call, threading.Event()).set()

    def expect(self, call: str) -> Callable[[], None]:
        """What waits until ``call`` waits, from now on."""
        event = self._noted[call] = threading.Event()

        def wait() -> None:
            assert event.wait(30), f"nobody came to wait in {call}()"

        return wait

    @contextmanager
    def when(self, call: str, act: Callable[[], object]) -> Iterator[None]:
        """Let another thread act as soon as ``call`` waits, which the block makes it do."""
        wait = self.expect(call)

        def run() -> None:
            wait()
            act()

        with other_thread(run):
            yield

    def offer(self, name: str, payload: Any) -> MadeTask:
        """Queue a task at the last trainer."""
        self._tasks += 1
        task = MadeTask(self._tasks, name, payload)
        self.soon(self._offer, task)
        return task

    def _offer(self, task: MadeTask) -> None:
        self.trainer.queue.append(task)
        self.trainer.change()

    def answer(self, with_what: SessionError | None = None) -> None:
        """Let an ``init`` end, this one or the next."""
        self.answers.append(with_what)
        if self.trainers:
            self.soon(self.trainer.change)

    def end(self, verdict: Verdict = Verdict.STOPPED) -> None:
        """End the session of the last trainer."""
        self.soon(self.trainer.end, verdict)

    def settle(self, outcome: SessionError | None = None) -> None:
        """Let the send under way return."""
        self.soon(self.trainer.settle, outcome)


def make_bootstrap(path: Path, **changed: Any) -> Bootstrap:
    """A bootstrap file."""
    given: dict[str, Any] = {
        "name": "site-1",
        "job_id": "job-7",
        "site_name": "site-1",
        "endpoint": "tcp:127.0.0.1:1",
        "launch": bytes(16),
        "token": Token.new(),
    }
    made = Bootstrap(**{**given, **changed})
    made.write(SystemFiles(), path)
    return made


@contextmanager
def other_thread(function: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Run ``function`` in another thread during the block; what it raised is in the list afterwards, and fails the test."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield raised
    finally:
        thread.join(30)
        assert not thread.is_alive(), "the other thread hangs"
    assert not raised, raised
