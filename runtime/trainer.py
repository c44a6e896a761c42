"""A trainer's session: the ``Trainer`` core with its links, payloads and calls, for one asynchronous caller.

The blocking API for scripts stands on this. Nothing is decided here: a call goes to the core, and what the core resolves is what the
call returns or raises.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import Any

import trio
from attrs import asdict, define, evolve, field, frozen

from troth.runtime.calls import Calls
from troth.runtime.driver import Driver
from troth.runtime.errors import ChallengeFailed, FrameError, LinkDown, RuntimeFault
from troth.runtime.links import Links
from troth.runtime.outcomes import check_init, check_receive, check_send
from troth.runtime.payloads import Carried, Payload, encode_async
from troth.runtime.ports import Network
from troth.runtime.processes.bootstrap import Bootstrap
from troth.runtime.session import CONTROL_RANK, PROTOCOL_VERSION, forget_oldest, session_epoch
from troth.runtime.tracing import Recorder, Subject, Tracer, driver_name
from troth.runtime.wire.besides import (
    Credentials,
    HelloAcceptedBeside,
    HelloBeside,
    LogBeside,
    ResultBeside,
    SessionReadyBeside,
    TaskBeside,
    Terms,
)
from troth.runtime.wire.challenge import Authenticated, credentials_proof, prove
from troth.runtime.wire.codec import Arrived
from troth.runtime.wire.kinds import Role
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.party import Party
from troth.statemachines import RECEIVER, TRAINER, ReceiverConfig, Trainer, TrainerConfig
from troth.statemachines.trainer.publication import BUSY
from troth.statemachines.trainer.states import TrainerSessionState

log = logging.getLogger("troth.runtime.trainer")

PARTY = "trainer"
UNHEARD = (TrainerSessionState.NEW, TrainerSessionState.PASSIVE, TrainerSessionState.ABORTED, TrainerSessionState.CLOSED)
"""Where nobody waits for a session."""
REDIAL_FIRST_S = 0.05
REDIAL_LONGEST_S = 1.0
"""The pause before a link is dialled again starts short and doubles up to this."""


@frozen
class Task:
    """A task that the caller has taken."""

    seq: int
    """Which one of its session it is, from 1."""
    task_id: str
    name: str
    payload: Any
    """The tree that the host sent."""


@define(eq=False)
class _TaskRecord:
    """What a core does not know of a task."""

    task_id: str
    name: str
    carried: Carried
    tree: Any = None


@define(eq=False)
class TrainerSession:
    """One trainer's session.

    Start ``run`` in a nursery, then ``init``. All methods belong to the trio thread that runs ``run``.
    """

    bootstrap: Bootstrap
    network: Network
    owner_fd: int | None = field(default=None, kw_only=True)
    """A descriptor whose end of file says that the host is gone."""
    trace: Path | tuple[Recorder, str] | None = field(default=None, kw_only=True)
    """Where its trace goes: a directory, and the session's name in it; or somebody who takes it as it comes, and the name."""
    terms: Terms | None = field(default=None, init=False)
    """What the host granted for this session's lease."""
    current: Task | None = field(default=None, init=False)
    """The task that was taken last."""
    _driver: Driver = field(init=False, factory=Driver)
    _core: Trainer = field(init=False)
    _calls: Calls = field(init=False)
    _links: Links = field(init=False)
    _record: LogBeside | None = field(init=False, default=None)
    _tasks: dict[int, _TaskRecord] = field(init=False, factory=dict)
    _results: dict[int, Payload] = field(init=False, factory=dict)
    """What publications still need."""
    _digests: dict[int, bytes] = field(init=False, factory=dict)
    """The first content that was sent for a task."""
    credentials: Credentials | None = field(init=False, default=None)
    _dialling: trio.Event = field(init=False, factory=trio.Event)
    _bound: trio.Event = field(init=False, factory=trio.Event)
    _closed: trio.Event = field(init=False, factory=trio.Event)
    _tracers: list[Tracer] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        given = self.bootstrap
        config = TrainerConfig(limits=given.limits, fail_unresponsive=given.fail_unresponsive, one_shot=given.one_shot)
        self._core, self._calls = Trainer(config, strict=False), Calls(partial(self._driver.give, PARTY))
        self._driver.on_fault = partial(self._calls.break_off, "the session has broken down")
        self._driver.add(PARTY, self._core, self, epoch=session_epoch, tracer=self._tracer("", TRAINER, config))
        self._links = Links.join(
            self._driver,
            PARTY,
            peer=given.name,
            offers="result",
            fetches="task",
            limits=given.limits,
            understood=self._understood,
            carried=self._carried,
            landed=self._landed,
            tracer=self._tracer(".receivers", RECEIVER, ReceiverConfig(limits=given.limits)),
        )

    def _tracer(self, suffix: str, core: Party, config: Any) -> Tracer | None:
        if self.trace is None:
            return None
        goal, name = (self.trace.parent, self.trace.name) if isinstance(self.trace, Path) else self.trace
        launch = self.bootstrap.launch
        driver = self._tracers[0].driver if self._tracers else driver_name(name, launch)
        subject = Subject(core=core.name, config=config, party=PARTY, driver=driver, launch=launch)
        self._tracers.append(Tracer(name + suffix, subject, goal))
        return self._tracers[-1]

    # -- the caller ----------------------------------------------------------------------------------------------------

    async def init(self, *, control_rank: bool = True) -> bool:
        """Join the session. False for a rank that stays passive. Raises ``JoinFailed``, ``SessionAborted``, ``SessionLost``,
        ``SessionClosed``; after ``JoinFailed`` it may be tried again."""
        found = await self._calls.call("init", m.InitArguments(control_rank=control_rank))
        return check_init(found)

    async def receive(self) -> Task | None:
        """Wait for the next task and take it; ``None`` once the session was ended in order. A caller that is cancelled leaves the task
        in its queue. Raises ``SessionAborted``, ``SessionLost``."""
        while True:
            number = self._calls.number()
            found = await self._calls.call("receive", number=number)
            if found.outcome is not m.Outcome.TASK:
                check_receive(found)
                return None
            taken = self._take(number)
            if taken is not None:
                return taken

    def _take(self, number: int) -> Task | None:
        """Commit to the task that was handed over; ``None`` if it was cancelled on the way."""
        found = self._calls.at_once("take", number=number)
        if found.outcome is not m.Outcome.TASK:
            return None
        if self.current is None or self.current.seq != found.value:
            record = self._tasks[found.value]
            self.current = Task(found.value, record.task_id, record.name, record.tree)
            record.tree = None
        return self.current

    async def send(self, tree: Any) -> None:
        """Send the result of the task that was taken last; returns when all its receivers hold it and the host has noted that. Raises
        ``PayloadRefused`` before anything is sent, ``ResultRejected``, ``ResultConflict``, ``ResultUndelivered``, ``CallCancelled``,
        ``SessionAborted``, ``SessionLost``, ``SessionClosed``."""
        seq = self.current.seq if self.current else 0
        arguments = self._note_result(seq, await encode_async(tree))
        found = await self._calls.call("send", arguments)
        self._prune_results()
        check_send(found)

    def _note_result(self, seq: int, payload: Payload) -> m.SendArguments:
        first = self._digests.setdefault(seq, payload.digest)
        if payload.digest == first:
            self._results.setdefault(seq, payload)
        return m.SendArguments(content=int(payload.digest != first), inline=payload.inline)

    async def shutdown(self) -> bool:
        """End the session in order. True if it is over, False if the ``send`` under way will close it."""
        found = await self._calls.call("shutdown")
        return found.outcome is not m.Outcome.DEFERRED

    async def wait_closed(self) -> None:
        """Wait until the session is closed and its last words are said: nothing is left to ``run``."""
        await self._closed.wait()
        await self._links.control.ended()

    def log(self, record: LogBeside) -> None:
        """A record for the host, best effort."""
        self._record = record
        self._calls.now("log")

    @property
    def verdict(self) -> m.Verdict:
        """How the session ended, or ``NONE``."""
        found: m.Verdict = self._core.data("session").verdict
        return found

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._core.state("session") in (TrainerSessionState.ABORTED, TrainerSessionState.CLOSED)

    # -- the background ------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Everything that goes on behind the calls. Runs until it is cancelled; the session that has ended still answers calls."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._driver.timers.run)
                nursery.start_soon(self._keep, "control")
                nursery.start_soon(self._keep, "data")
                if self.owner_fd is not None:
                    nursery.start_soon(self._watch_owner, self.owner_fd)
                task_status.started()
        finally:
            self._links.control.close()
            self._links.data.close()
            for tracer in self._tracers:
                tracer.close()

    async def _watch_owner(self, fd: int) -> None:
        own = os.dup(fd)  # another session of this process may wait for the same end, and a descriptor is waited on once
        try:
            await trio.lowlevel.wait_readable(own)
        finally:
            os.close(own)
        self._driver.give(PARTY, c.OwnerLost())

    async def _keep(self, role: Role) -> None:
        """Dial a link, and again whenever it is lost, for as long as it is wanted: *control* until the core closes it, *data* from then on
        that the session is bound. A link that lasts is dialled anew at once; one that is refused, or lost as soon as it is there, after
        a pause."""
        link = self._links.control if role == "control" else self._links.data
        pause_s = REDIAL_FIRST_S
        while True:
            while not self._wanted(role).is_set():  # by the time it runs, it may not be wanted any more
                await self._wanted(role).wait()
            began = trio.current_time()
            try:
                connection = await self._dial(role)
            except (LinkDown, ChallengeFailed) as error:
                log.debug("%s: no %s link: %s", self.bootstrap.name, role, error)
            else:
                if connection is None:
                    continue
                await link.serve(connection)
            if trio.current_time() - began < REDIAL_LONGEST_S:
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, REDIAL_LONGEST_S)
            else:
                pause_s = REDIAL_FIRST_S

    def _wanted(self, role: Role) -> trio.Event:
        return self._dialling if role == "control" else self._bound

    def _hang_up(self) -> None:
        """Neither link is wanted. Who waits for that to change has its event already, and it must stay the one that is set."""
        if self._dialling.is_set():
            self._dialling = trio.Event()
        if self._bound.is_set():
            self._bound = trio.Event()
        self._links.control.close_when_sent()

    async def _dial(self, role: Role) -> Authenticated | None:
        """A new connection; ``None`` if it is not wanted any more. Raises ``LinkDown``, ``ChallengeFailed``."""
        given = self.bootstrap
        stream = await self.network.dial(given.endpoint)
        if not self._wanted(role).is_set():  # then there is no session for it to name
            stream.close()
            return None
        epoch = self._core.data("session").epoch
        connection = await prove(stream, token=given.token, role=role, launch=given.launch, epoch=epoch)
        if not self._wanted(role).is_set():
            connection.stream.close()
            return None
        return connection

    # -- what the core wants done --------------------------------------------------------------------------------------

    def perform(self, effect: c.Effect) -> bool:
        """Start an effect of the trainer's core."""
        match effect:
            case c.Send(link=link, message=message):
                return self._links.say(link, message, self._beside)
            case c.Resolve():
                self._calls.resolve(effect)
            case c.Offer(kind=kind, key=key):
                self._links.data.offer(kind, key, self._results[key[0]])  # type: ignore[index]
            case c.Release(kind=kind, key=key):
                self._links.data.release(kind, key)
            case c.OpenLink():
                self._dialling.set()
            case c.CloseLink():
                self._hang_up()
            case _:
                raise RuntimeFault(f"a trainer does not have the effect {effect!r}")
        return True

    def violated(self, event: c.Event, refusal: c.Refusal) -> None:
        """The host sent what it may not send."""
        self._links.refused(event, refusal)

    def stepped(self) -> None:
        """Notice the end."""
        if self._core.state("session") is TrainerSessionState.CLOSED:
            self._closed.set()

    def _beside(self, message: c.Message) -> Any:
        """What rides beside a message."""
        given = self.bootstrap
        match message:
            case m.Hello():
                return HelloBeside(PROTOCOL_VERSION, given.job_id, given.site_name, CONTROL_RANK)
            case m.SessionReady():
                proof = b""
                if self.credentials is not None and self._links.control.peer is not None:
                    proof = credentials_proof(self.credentials, self._links.control.peer.nonces)
                return SessionReadyBeside(proof)
            case m.ResultReady(seq=seq):
                payload = self._results[seq]
                return ResultBeside(payload.digest, payload.manifest, payload.riding(), payload.nbytes)
            case m.Log():
                return self._record
            case _:
                return None

    # -- what comes ----------------------------------------------------------------------------------------------------

    def _understood(self, arrived: Arrived) -> c.Message:
        """The message of a frame, with what this side derives; what rode beside it is kept."""
        beside = arrived.beside
        if isinstance(beside, TaskBeside):
            return arrived.message(content=self._note_task(arrived.fields["seq"], beside))
        if arrived.kind.derived:
            raise FrameError(f"{arrived.kind.name} is nothing that a host says to a trainer that it launched")
        message = arrived.message()
        if isinstance(beside, HelloAcceptedBeside) and isinstance(message, m.HelloAccepted):
            self._granted(beside)
        return message

    def _granted(self, beside: HelloAcceptedBeside) -> None:
        """The terms are the host's, whatever this side's own settings are."""
        if beside.secure != self.bootstrap.secure:
            raise FrameError("HelloAccepted: the host and the bootstrap file do not agree on whether this job is secure")
        if self._core.state("session") in UNHEARD:  # init() has failed meanwhile, so there is no session to dial a data link for
            return
        self.terms, self.credentials = beside.terms, beside.credentials
        self._driver.set_limits(PARTY, evolve(self.bootstrap.limits, **asdict(beside.terms)))
        self._bound.set()

    def _note_task(self, seq: int, beside: TaskBeside) -> int:
        """Remember what rode beside an offer. The content number: 0 for the content that was seen first under this sequence."""
        carried = Carried(beside.manifest, beside.payload, beside.nbytes, beside.digest)
        known = self._tasks.get(seq)
        if known is None:
            self._tasks[seq] = _TaskRecord(beside.task_id, beside.name, carried)
            self._prune_tasks()
        elif known.carried.digest != beside.digest:
            return 1
        else:
            known.carried = carried
        return 0

    def _prune_tasks(self) -> None:
        """Forget what the core cannot remember any more: it keeps at most so many tasks, and they only go up."""
        kept = 2 * self.bootstrap.limits.ledger_limit
        for table in (self._tasks, self._digests):
            forget_oldest(table, kept)

    def _prune_results(self) -> None:
        """Let go of the payloads that no publication needs any more."""
        for seq in [seq for seq in self._results if self._core.state("publication", seq) not in BUSY]:
            del self._results[seq]

    def _carried(self, seq: int) -> Carried | None:
        record = self._tasks.get(seq)
        return None if record is None else record.carried

    def _landed(self, seq: int, tree: Any) -> None:
        record = self._tasks[seq]
        record.tree = tree
        record.carried = evolve(record.carried, manifest=b"", payload=b"")
