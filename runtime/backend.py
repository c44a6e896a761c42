"""The external-process backend: trainers in processes of their own, one task at a time.

One ``Supervisor`` core, and a ``HostSession`` for each launch: one for all tasks, or one a task. The class is what an application uses;
what it returns and raises is what the cores decided.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import trio
from attrs import define, field

from troth.runtime import options
from troth.runtime.calls import Calls, Resolved
from troth.runtime.driver import Driver
from troth.runtime.errors import Misuse, RuntimeFault, alone
from troth.runtime.host import HostSession
from troth.runtime.outcomes import EXECUTE, START, failure
from troth.runtime.payloads import encode_async
from troth.runtime.ports import Exited, Files, GuardianLost, Listener, Network, Processes
from troth.runtime.processes.bootstrap import TaskNames
from troth.runtime.processes.guardian import Guardian
from troth.runtime.randomness import random_bytes
from troth.runtime.session import Counts, Order, Setting
from troth.runtime.status import TaskResult, TrainerStatus
from troth.runtime.system.files import SystemFiles
from troth.runtime.system.network import SystemNetwork
from troth.runtime.tracing import Recorder, Subject, Tracer, driver_name
from troth.runtime.wire.accepting import serve
from troth.runtime.wire.besides import Credentials, LogBeside
from troth.runtime.wire.challenge import Authenticated, Token
from troth.runtime.wire.kinds import Role
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import Supervisor, SupervisorConfig
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.words import SUPERVISOR
from troth.statemachines.supervisor.launches import HOSTS

log = logging.getLogger("troth.runtime.backend")

PARTY = "supervisor"


@define(eq=False)
class ExternalProcess:
    '''A trainer in a process of its own; an asynchronous context manager.

    Entering it starts the trainer (a persistent one: and waits until it is ready), leaving it ends the trainer in order, or at once if
    an exception leaves. Everything belongs to the trio thread that entered.

    >>> import sys, trio
    >>> SCRIPT = """
    ... import troth.client as flare
    ... flare.init()
    ... while flare.is_running():
    ...     model = flare.receive()
    ...     model.params["w"] += 1
    ...     flare.send(model)
    ... """
    >>> async def main():
    ...     async with ExternalProcess([sys.executable, "-c", SCRIPT], name="site-1") as trainer:
    ...         result = await trainer.execute("train", {"params": {"w": 1.0}})
    ...         print(result.payload["params"], trainer.status().accepted)
    >>> trio.run(main)
    {'w': 2.0} 1
    '''

    command: Sequence[str | os.PathLike[str]] = field(converter=options.words)
    name: str = field(default="trainer", kw_only=True, validator=options.text)
    job_id: str = field(default="job", kw_only=True, validator=options.text)
    site_name: str = field(default="site", kw_only=True, validator=options.text)
    persistent: bool = field(default=True, kw_only=True, validator=options.instance(bool))
    limits: Limits = field(factory=Limits, kw_only=True, validator=options.instance(Limits))
    on_unresponsive: Literal["wait", "fail"] = field(default="wait", kw_only=True, validator=options.one_of("wait", "fail"))
    environment: Mapping[str, str] | None = field(default=None, kw_only=True, repr=False, validator=options.variables)
    directory: Path | None = field(default=None, kw_only=True, converter=options.path)
    transport: Literal["unix", "tcp"] = field(default="unix", kw_only=True, validator=options.one_of("unix", "tcp"))
    credentials: Credentials | None = field(default=None, kw_only=True, validator=options.instance(Credentials, optional=True))
    task_names: TaskNames = field(factory=TaskNames, kw_only=True, validator=options.instance(TaskNames))
    transfer_type: Literal["FULL", "DIFF"] = field(default="FULL", kw_only=True, validator=options.one_of("FULL", "DIFF"))
    """Whether a script's results come as it made them, or as what they add to the model that it received."""
    processes: Processes | None = field(default=None, kw_only=True)
    network: Network = field(factory=SystemNetwork, kw_only=True)
    files: Files = field(factory=SystemFiles, kw_only=True)
    trace: Path | Recorder | None = field(default=None, kw_only=True, converter=options.goal)
    on_log: Callable[[str, LogBeside], None] = field(default=options.ignore, kw_only=True, validator=options.function)
    """Is given the trainer's name and each of its log records. What it raises is logged, and changes nothing."""
    log_directory: Path | None = field(default=None, kw_only=True, converter=options.path)
    failed: trio.Event = field(init=False, factory=trio.Event)
    """Set when a result was lost after it had been accepted: the run has failed."""
    _driver: Driver = field(init=False, factory=Driver)
    _core: Supervisor = field(init=False)
    _calls: Calls | None = field(init=False, default=None)
    """There once it was entered, which it is once."""
    _hosts: dict[int, HostSession] = field(init=False, factory=dict)
    _latest: HostSession | None = field(init=False, default=None)
    _started: int = field(init=False, default=0)
    _counts: Counts = field(init=False, factory=Counts)
    _order: Order | None = field(init=False, default=None)
    _payload: Any = field(init=False, default=None)
    _setting: Setting = field(init=False)
    _nursery: trio.Nursery = field(init=False)
    _nursery_manager: Any = field(init=False, default=None)
    _stop: trio.CancelScope = field(init=False, factory=partial(trio.CancelScope, shield=True))
    _stack: AsyncExitStack = field(init=False, factory=AsyncExitStack)
    _tracer: Tracer | None = field(init=False, default=None)
    _broken: bool = field(init=False, default=False)
    _finalizing: trio.Lock = field(init=False, factory=trio.Lock)
    """Held by whoever waits for the end."""

    # -- the application -----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._calls is not None:
            raise Misuse(f"trainer {self.name!r}: was entered before; a backend has one life, make another")
        try:
            await self._begin()
            await self._start()
        except BaseException:
            await self._end(at_once=True)
            raise
        return self

    async def _start(self) -> None:
        found = await self._call("start")
        if found.outcome is not m.Outcome.OK:
            raise failure(START, found, "start", who=f"trainer {self.name!r}", more=await self._how_it_ended())

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        await self._end(at_once=value is not None)

    async def _end(self, *, at_once: bool) -> None:
        """End everything, in order or at once, and close what ``_begin`` opened."""
        try:
            if self._nursery_manager is not None:
                # The teardown's rows bound this; a caller that is cancelled still leaves nothing behind.
                with trio.CancelScope(shield=True):
                    await self._tear_down(at_once=at_once)
        finally:
            try:
                await self._end_background()
            finally:
                await self._stack.aclose()

    async def _end_background(self) -> None:
        for host in list(self._hosts.values()):  # it was forced, so it has not left by itself
            if self._broken:
                host.give_up()
            host.leave()
        if self._nursery_manager is not None:
            manager, self._nursery_manager = self._nursery_manager, None
            self._stop.cancel()
            await manager.__aexit__(None, None, None)

    async def _tear_down(self, *, at_once: bool) -> None:
        try:
            if at_once:
                await self.abort()
            await self.finalize()
        except RuntimeFault:
            if not at_once:  # else something is being raised already, and this was logged
                raise

    async def _call(self, call: str, payload: Any = None) -> Resolved:
        if self._calls is None:
            raise Misuse(f"{call}(): trainer {self.name!r} was not entered; use it in 'async with'")
        return await self._calls.call(call, payload)

    async def execute(self, name: str, payload: Any, *, task_id: str | None = None) -> TaskResult:
        """Have the trainer do a task, and wait for its result. A caller that is cancelled cancels the task.

        Raises ``TypeError`` and ``ValueError`` for what cannot be the name or the id of a task, ``Misuse`` if a task is out already,
        ``PayloadRefused``, ``TaskRefused``, ``TaskUndelivered``, ``TaskTimeout``, ``TrainerLost``, ``ResultLost``, ``SessionAborted``,
        ``SessionClosed``.
        """
        began = trio.current_time()
        task_id = random_bytes(16).hex() if task_id is None else task_id
        options.check_text("name", name)
        options.check_text("task_id", task_id)
        order = Order(task_id, name, await encode_async(payload))
        before, self._order = self._order, order
        try:
            found = await self._call("execute", m.ExecuteArguments(receivers=1, inline=order.payload.inline))
        except Misuse:
            self._order = before  # another task is out, and stays what it is
            raise
        payload, self._payload = self._payload, None
        if found.outcome is not m.Outcome.RESULT:
            more = await self._how_it_ended() if found.outcome in (m.Outcome.LOST, m.Outcome.CLOSED) else ""
            raise failure(EXECUTE, found, "execute", who=f"trainer {self.name!r} (task {name!r})", more=more)
        return TaskResult(payload, order.task_id, trio.current_time() - began)

    async def abort(self) -> None:
        """End everything at once: the trainer is told, and its process stopped."""
        await self._call("abort")

    async def finalize(self) -> bool:
        """End everything in order. False if it had to be forced. Whoever calls it meanwhile, or leaves the block, waits with it."""
        async with self._finalizing:
            found = await self._call("finalize")
        return found.outcome is m.Outcome.OK

    def status(self) -> TrainerStatus:
        """How the trainer is now. Cheap."""
        host, counts = self._latest, self._counts
        state = HostSessionState.IDLE if host is None else host.core.state("session")
        moved = (0, 0) if host is None else host.moved
        return TrainerStatus(
            name=self.name,
            pid=None if host is None or host.exit is not None else host.pid,
            state=str(state.value),
            task=None if host is None or host.order is None else host.order.name,
            lease_age_s=None if host is None else host.silent_s,
            bytes_down=counts.down + moved[0],
            bytes_up=counts.up + moved[1],
            accepted=counts.accepted,
            settled=counts.settled,
            retries=counts.retries,
            exit=None if host is None else host.exit,
        )

    async def _how_it_ended(self) -> str:
        return "" if self._latest is None else await self._latest.how_it_ended()

    # -- the background ------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        limits = self.limits
        self._core = Supervisor(SupervisorConfig(limits=limits, persistent=self.persistent), strict=False)
        self._calls = Calls(partial(self._driver.give, PARTY))
        self._driver.on_fault = self._break_down
        if self.processes is None:
            self.processes = await self._stack.enter_async_context(Guardian(logs=self.log_directory))
        folder = self.files.private_directory()
        if self.trace is not None:
            subject = Subject(core=PARTY, config=self._core.config, party=PARTY, driver=driver_name(self.name, folder))
            self._tracer = Tracer(f"{self.name}.{PARTY}", subject, self.trace)
        self._driver.add(PARTY, self._core, self, tracer=self._tracer)
        socket = folder / "socket"
        for path in (folder, socket):
            self.processes.register(path)
        self._stack.callback(self._remove, folder, socket)
        endpoint = f"unix:{socket}" if self.transport == "unix" else "tcp:127.0.0.1:0"
        listener = await self.network.listen(endpoint)
        self._stack.callback(listener.close)
        self._setting = Setting(
            name=self.name,
            command=tuple(map(str, self.command)),
            job_id=self.job_id,
            site_name=self.site_name,
            endpoint=listener.endpoint,
            folder=folder,
            directory=self.directory or Path.cwd(),
            environment=dict(os.environ if self.environment is None else self.environment),
            limits=limits,
            persistent=self.persistent,
            fail_unresponsive=self.on_unresponsive == "fail",
            credentials=self.credentials,
            tasks=self.task_names,
            transfer_type=self.transfer_type,
            trace=self.trace,
            on_log=self.on_log,
        )
        self._nursery_manager = trio.open_nursery()
        outer = await self._nursery_manager.__aenter__()
        with trio.CancelScope(shield=True):  # a start() that is cancelled waits for its task to end, and this one is shielded from that
            await outer.start(self._run, self.processes, listener)

    async def _run(self, processes: Processes, listener: Listener, *, task_status: trio.TaskStatus[None]) -> None:
        """Everything that goes on behind the calls. Whoever cancels the application cancels its calls; this goes on until it has ended
        everything in order."""
        try:
            with self._stop:
                async with trio.open_nursery() as self._nursery:
                    self._nursery.start_soon(self._driver.timers.run)
                    self._nursery.start_soon(self._watch, processes)
                    self._nursery.start_soon(self._accept, listener)
                    task_status.started()
        except Exception as error:  # whoever calls, or leaves, raises it; this nursery would wrap it
            self._break_down(error)
        except BaseException as error:
            self._break_down(error)
            raise

    def _break_down(self, error: BaseException) -> None:
        """The runtime is at fault, or was interrupted in the middle of a step. Nothing will be decided any more, so nothing is waited for:
        what was started is killed, and every call says why."""
        if self._broken or self._calls is None:
            return
        self._broken = True
        error = alone(error)
        why = "has broken down; this is a fault of Troth" if isinstance(error, Exception) else "was interrupted in the middle of a step"
        log.error("trainer %r: its runtime %s; it is killed", self.name, why, exc_info=error)
        for host in list(self._hosts.values()):
            host.give_up()
        self._calls.break_off(f"the runtime of trainer {self.name!r} {why}: {error!r}", error)

    def _remove(self, *paths: Path) -> None:
        """Remove what was made here, the directory last."""
        for path in reversed(paths):
            self.files.remove(path)
            if self.processes is not None:
                self.processes.unregister(path)
        if self._tracer is not None:
            self._tracer.close()

    async def _accept(self, listener: Listener) -> None:
        await serve(listener, self._find, self._admitted)

    def _find(self, launch_id: bytes, role: Role, epoch: int) -> Token | None:
        host = self._of(launch_id)
        return host.token if host is not None and host.admits(role, epoch) else None

    def _of(self, launch_id: bytes) -> HostSession | None:
        return next((host for host in self._hosts.values() if host.launch_id == launch_id), None)

    def _admitted(self, peer: Authenticated) -> None:
        host = self._of(peer.launch)
        if host is None:
            peer.stream.close()
        else:
            self._nursery.start_soon(host.serve, peer)

    async def _watch(self, processes: Processes) -> None:
        """Pass on what the guardian reports."""
        async for event in processes.events:
            if isinstance(event, Exited):
                host = self._of(bytes.fromhex(event.launch_id))
                if host is not None:
                    self._nursery.start_soon(host.process_exited, event.status)
            elif isinstance(event, GuardianLost):
                for host in list(self._hosts.values()):
                    host.orphaned()

    # -- what the core wants done --------------------------------------------------------------------------------------

    def perform(self, effect: c.Effect) -> bool:
        """Start an effect of the supervisor's core."""
        match effect:
            case c.Send(link=link, message=message) if link == HOSTS and isinstance(message, m.LaunchMessage):
                if isinstance(message, m.StartSession):
                    self._host(message.launch)
                self._driver.tell(self._hosts[message.launch].party, c.Received(SUPERVISOR, message))
            case c.Send(message=m.RunFailed()):
                self.failed.set()
            case c.Resolve() if self._calls is not None:
                self._calls.resolve(effect)
            case _:
                raise RuntimeFault(f"a supervisor does not have the effect {effect!r}")
        return True

    def _host(self, launch: int) -> None:
        """A new launch. Its number may have been another's before."""
        if self.processes is None:
            raise RuntimeFault("a launch before the backend was begun")
        before = self._latest
        if before is not None:
            down, up = before.moved
            self._counts.down += down
            self._counts.up += up
        self._started += 1
        self._hosts[launch] = self._latest = HostSession(
            setting=self._setting,
            party=f"host-{self._started}",
            launch=launch,
            driver=self._driver,
            processes=self.processes,
            files=self.files,
            nursery=self._nursery,
            next_order=self._next_order,
            finished=self._finished,
            counts=self._counts,
        )

    def _next_order(self) -> Order:
        if self._order is None:
            raise RuntimeFault("a task is offered that nobody asked for")
        return self._order

    def _finished(self, payload: Any) -> None:
        self._payload = payload

    def violated(self, event: c.Event, refusal: c.Refusal) -> None:
        """Its hosts are ours: what they say cannot be refused."""
        raise RuntimeFault(f"the supervisor refused {event!r}: {refusal.why}")

    def stepped(self) -> None:
        """Forget the launches of which nothing is left."""
        for launch in [launch for launch, host in self._hosts.items() if host.party not in self._driver]:
            del self._hosts[launch]
