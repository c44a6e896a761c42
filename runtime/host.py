"""A host's session: the ``Host`` core of one launch, with its links, payloads and process.

A backend has one a launch; two share nothing but the driver that they are hosted by. Nothing is decided here.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import trio
from attrs import define, evolve, field

from troth.runtime.driver import Driver
from troth.runtime.errors import FrameError, PayloadBroken, RuntimeFault, SpawnFailed
from troth.runtime.links import Links
from troth.runtime.payloads import Carried, decode
from troth.runtime.ports import ExitStatus, Files, Launch, Processes
from troth.runtime.processes.bootstrap import BOOTSTRAP_VARIABLE, Bootstrap
from troth.runtime.randomness import random_bytes
from troth.runtime.session import CONTROL_RANK, PROTOCOL_VERSION, Counts, Marks, Order, Setting, forget_oldest, session_epoch
from troth.runtime.status import signal_name
from troth.runtime.tracing import TRACE_VARIABLE, Subject, Tracer, driver_name
from troth.runtime.wire.besides import (
    HelloAcceptedBeside,
    HelloBeside,
    LogBeside,
    ResultBeside,
    SessionReadyBeside,
    TaskBeside,
    Terms,
)
from troth.runtime.wire.challenge import Authenticated, Token, credentials_proof
from troth.runtime.wire.codec import Arrived
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.party import Party
from troth.statemachines import HOST, RECEIVER, Host, HostConfig, ReceiverConfig
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.shared.words import CONTROL, SUPERVISOR
from troth.statemachines.supervisor.launches import HOSTS

log = logging.getLogger("troth.runtime.host")

DRAIN_S = 1.0
"""How long a link whose trainer has ended is read on. Its end of file is there already, unless somebody else holds the socket."""


LAST_WORDS_S = 1.0
"""How long an error waits to hear how the process ended."""
VERDICTS = {
    m.Verdict.TIMEOUT: "it did not join within launch_timeout_s",
    m.Verdict.REFUSED: "it is not the trainer that was expected: rank, job, site, version or credentials differ",
}


@define(eq=False)
class _Result:
    """What a core does not know of a result."""

    carried: Carried
    tree: Any = None


@define(eq=False)
class HostSession:
    """One launch, from START_SESSION to SESSION_ENDED."""

    setting: Setting
    party: str
    """What the driver calls it."""
    launch: int
    """What the supervisor calls it."""
    driver: Driver
    processes: Processes
    files: Files
    nursery: trio.Nursery
    next_order: Callable[[], Order]
    """The task that the supervisor has just passed on."""
    finished: Callable[[Any], None]
    """Takes the payload of a result, before its task is said to have ended."""
    counts: Counts
    launch_id: bytes = field(init=False, factory=partial(random_bytes, 16))
    token: Token = field(init=False, factory=Token.new)
    exit: ExitStatus | None = field(default=None, init=False)
    """How the process ended, once it has."""
    pid: int | None = field(default=None, init=False)
    why: str = field(default="", init=False)
    """Why there is no process, where it could not be started."""
    core: Host = field(init=False)
    _links: Links = field(init=False)
    _open: bool = field(default=False, init=False)
    order: Order | None = field(default=None, init=False)
    _order_seq: int = field(default=0, init=False)
    _marks: Marks = field(factory=Marks, init=False)
    _gone: trio.Event = field(factory=trio.Event, init=False)
    """Set once there is no process."""
    _results: dict[int, _Result] = field(factory=dict, init=False)
    _digests: dict[int, bytes] = field(factory=dict, init=False)
    _tracers: list[Tracer] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        setting = self.setting
        config = HostConfig(limits=setting.limits, fail_unresponsive=setting.fail_unresponsive, launch=self.launch)
        self.core = Host(config, strict=False)
        tracer = self._tracer(self.party, HOST, config)
        self._links = Links.join(
            self.driver,
            self.party,
            peer=setting.name,
            offers="task",
            fetches="result",
            limits=setting.limits,
            understood=self._understood,
            carried=self._carried,
            landed=self._landed,
            tracer=self._tracer(f"{self.party}.receivers", RECEIVER, ReceiverConfig(limits=setting.limits)),
        )
        self.driver.add(self.party, self.core, self, epoch=session_epoch, tracer=tracer)

    def _tracer(self, name: str, core: Party, config: Any) -> Tracer | None:
        setting = self.setting
        if setting.trace is None:
            return None
        driver = driver_name(setting.name, setting.folder)
        subject = Subject(core=core.name, config=config, party=self.party, driver=driver, launch=self.launch_id)
        self._tracers.append(Tracer(f"{setting.name}.{name}", subject, setting.trace))
        return self._tracers[-1]

    # -- the links -----------------------------------------------------------------------------------------------------

    def admits(self, role: Literal["control", "data"], epoch: int) -> bool:
        """Whether a connection of this launch may come in: a data link only in the session that there is."""
        return self._open and (role == "control" or epoch == session_epoch(self.core))

    async def serve(self, peer: Authenticated) -> None:
        """Speak over a connection that has shown that it is this launch's."""
        if peer.role == "control":
            await self._links.control.serve(peer)
        else:
            await self._links.data.serve(peer)

    @property
    def moved(self) -> tuple[int, int]:
        """Bytes of payloads that were served to the trainer, and fetched from it."""
        return self._links.data.served, self._links.data.fetched

    @property
    def silent_s(self) -> float | None:
        """How long ago the trainer was last heard, in seconds."""
        return None if self._links.control.heard_at is None else trio.current_time() - self._links.control.heard_at

    # -- the process ---------------------------------------------------------------------------------------------------

    async def _spawn(self) -> None:
        path = self.setting.folder / f"{self.party}.json"
        try:
            self.processes.register(path)
            self._bootstrap().write(self.files, path)
            environment = {**self.setting.environment, BOOTSTRAP_VARIABLE: str(path), **self._traced()}
            launch = Launch(self.launch_id.hex(), self.setting.name, self.setting.command, environment, self.setting.directory)
            self.pid = await self.processes.spawn(launch)
        except (SpawnFailed, OSError) as error:
            self.why = str(error)
            self._gone.set()
            log.warning("%s: cannot be started: %s", self.setting.name, error)
            self.driver.give(self.party, c.EffectFailed(c.Spawn()))
            return
        if self.party not in self.driver:
            # It was given up before it was heard to start, and whatever would end it has gone with its session.
            self.give_up()
        self.driver.give(self.party, c.ProcessStarted())

    def _traced(self) -> dict[str, str]:
        if not isinstance(self.setting.trace, Path):
            return {}
        name = f"{self.setting.name}.{self.party.replace('host', 'trainer')}"
        return {TRACE_VARIABLE: str(self.setting.trace.absolute() / name)}

    def _bootstrap(self) -> Bootstrap:
        setting = self.setting
        return Bootstrap(
            job_id=setting.job_id,
            site_name=setting.site_name,
            endpoint=setting.endpoint,
            launch=self.launch_id,
            name=setting.name,
            token=self.token,
            secure=setting.credentials is not None,
            limits=setting.limits,
            fail_unresponsive=setting.fail_unresponsive,
            one_shot=not setting.persistent,
            tasks=setting.tasks,
            transfer_type=setting.transfer_type,
        )

    async def process_exited(self, status: ExitStatus) -> None:
        """Nothing is left of the process. What it said before is heard first."""
        self.exit = status
        self._gone.set()
        with trio.move_on_after(DRAIN_S):
            await self._links.control.ended()
        self.driver.give(self.party, c.ProcessExited(clean=status.clean))

    def orphaned(self) -> None:
        """The guardian is gone."""
        self.driver.give(self.party, c.OwnerLost())

    async def how_it_ended(self) -> str:
        """The end of the session and its process, in words; empty if there is nothing to say. Waits a moment for a process that is about
        to end: whoever lost a task to it wants to know."""
        silence = self._silence_in_words()
        with trio.move_on_after(LAST_WORDS_S):
            await self._gone.wait()
        verdict = VERDICTS.get(self.core.data("session").verdict, "")
        return "; ".join(part for part in (verdict, silence, self.why or self._exit_in_words()) if part)

    def _silence_in_words(self) -> str:
        """What was too long for whom, if silence is what ended the session: a signal that came after it is not the reason."""
        if self.core.state("lease") is not LeaseState.EXPIRED or self.silent_s is None:
            return ""
        limits = self.setting.limits
        waited = f"unresponsive_limit_s is {limits.unresponsive_limit_s:g}"
        failed = f"lease_timeout_s is {limits.lease_timeout_s:g}, and on_unresponsive is 'fail'"
        return f"it was not heard for {self.silent_s:.0f} s ({failed if self.setting.fail_unresponsive else waited})"

    def _exit_in_words(self) -> str:
        if self.exit is None:
            return ""
        if self.exit.signal is not None:
            return f"killed by {signal_name(self.exit.signal)}"
        return "ended, nobody knows how" if self.exit.code is None else f"exited with status {self.exit.code}"

    def give_up(self) -> None:
        """No row will end the process any more."""
        self.processes.signal(self.launch_id.hex(), c.ProcessSignal.KILL)

    def leave(self) -> None:
        """The session has ended: let go of everything."""
        path = self.setting.folder / f"{self.party}.json"
        self.files.remove(path)
        self.processes.unregister(path)
        self._links.data.close()
        self._links.downloads.leave()
        self.driver.remove(self.party)
        for tracer in self._tracers:
            tracer.close()

    # -- what the core wants done --------------------------------------------------------------------------------------

    def perform(self, effect: c.Effect) -> bool:
        """Start an effect of the host's core."""
        match effect:
            case c.Send(link=link, message=message):
                return self._send(link, message)
            case c.Offer(kind=kind, key=key):
                self._links.data.offer(kind, key, self._order_of(key[0]).payload)  # type: ignore[index, arg-type]
            case c.Release(kind=kind, key=key):
                self._links.data.release(kind, key)
            case c.Spawn():
                self.nursery.start_soon(self._spawn)
            case c.SignalProcess(signal=sent):
                return self.processes.signal(self.launch_id.hex(), sent)
            case c.OpenLink():
                self._open = True
            case c.CloseLink():
                self._open = False
                self._links.control.close_when_sent()
            case _:
                raise RuntimeFault(f"a host does not have the effect {effect!r}")
        return True

    def _send(self, link: str, message: c.Message) -> bool:
        if link == SUPERVISOR:
            self._report(message)
            return True
        if link == CONTROL:
            self._marks.said(message, self.counts)
        return self._links.say(link, message, self._beside)

    def violated(self, event: c.Event, refusal: c.Refusal) -> None:
        """The trainer sent what it may not send."""
        self._links.refused(event, refusal)

    def stepped(self) -> None:
        """Nothing needs to be looked at after a step."""

    def _report(self, message: c.Message) -> None:
        if isinstance(message, m.TaskEnded):
            seq = self.core.data("delivery").seq
            result = self._results.pop(seq, None)
            if message.outcome is m.TaskOutcome.RESULT:
                self.finished(None if result is None else result.tree)
            self.order = None
        self.driver.tell("supervisor", c.Received(HOSTS, message))
        if isinstance(message, m.SessionEnded):
            if message.stuck:
                log.error("%s: its process, number %s, outlives KILL and is not waited for any more", self.setting.name, self.pid)
            self.leave()

    def _order_of(self, seq: int) -> Order:
        """The task of a sequence: the one that was passed on, from its first offer to its end."""
        if self.order is None or self._order_seq != seq:
            self.order, self._order_seq = self.next_order(), seq
        return self.order

    def _beside(self, message: c.Message) -> Any:
        """What rides beside a message."""
        match message:
            case m.HelloAccepted():
                limits, credentials = self.setting.limits, self.setting.credentials
                terms = Terms(float(limits.heartbeat_interval_s), float(limits.lease_timeout_s), float(limits.unresponsive_limit_s))
                return HelloAcceptedBeside(terms, credentials is not None, credentials)
            case m.TaskReady(seq=seq):
                order = self._order_of(seq)
                payload = order.payload
                riding = payload.riding()
                self.counts.down += len(riding)
                return TaskBeside(order.task_id, order.name, payload.digest, payload.manifest, riding, payload.nbytes)
            case _:
                return None

    # -- what comes ----------------------------------------------------------------------------------------------------

    def _understood(self, arrived: Arrived) -> c.Message:
        """The message of a frame, with what this side derives; what rode beside it is kept."""
        beside = arrived.beside
        match beside:
            case HelloBeside():
                return arrived.message(claim=self._claim(beside))
            case SessionReadyBeside():
                return arrived.message(proven=self._proven(beside))
            case ResultBeside():
                self.counts.up += len(beside.payload)
                return arrived.message(content=self._note_result(arrived.fields["seq"], arrived.fields["inline"], beside))
            case LogBeside():
                self._logged(beside)
            case _ if arrived.kind.derived:
                raise FrameError(f"{arrived.kind.name} is what a host says, and came from a trainer")
        return arrived.message()

    def _logged(self, record: LogBeside) -> None:
        try:
            self.setting.on_log(self.setting.name, record)
        except Exception:  # the application's, and no reason to end a session
            log.exception("%s: on_log() has raised, for a record with the key %r", self.setting.name, record.key)

    def _claim(self, beside: HelloBeside) -> m.Claim:
        expected = PROTOCOL_VERSION, self.setting.job_id, self.setting.site_name
        if (beside.version, beside.job_id, beside.site_name) != expected:
            return m.Claim.WRONG_IDENTITY
        return m.Claim.MATCHING if beside.rank == CONTROL_RANK else m.Claim.WRONG_RANK

    def _proven(self, beside: SessionReadyBeside) -> bool:
        credentials, peer = self.setting.credentials, self._links.control.peer
        if credentials is None or peer is None:
            return credentials is None
        return hmac.compare_digest(beside.proof, credentials_proof(credentials, peer.nonces))

    def _note_result(self, seq: int, inline: bool, beside: ResultBeside) -> int:
        """Remember what rode beside a result. The content number: 0 for the content that was seen first for this task."""
        awaited = self.core.state("acceptance", seq) is AcceptanceState.AWAITING
        if not awaited:
            return int(self._digests.get(seq, beside.digest) != beside.digest)
        # Nothing was taken yet, so if the trainer has tried another content before, from now on it is this one that counts.
        self._digests[seq] = beside.digest
        forget_oldest(self._digests, 2 * self.setting.limits.acceptance_limit)
        record = self._results[seq] = _Result(Carried(beside.manifest, b"", beside.nbytes, beside.digest))
        if inline:
            try:
                record.tree = decode(beside.manifest, [beside.payload])
            except PayloadBroken as error:
                raise FrameError(f"ResultReady: {error}") from error
        return 0

    def _carried(self, seq: int) -> Carried | None:
        record = self._results.get(seq)
        return None if record is None else record.carried

    def _landed(self, seq: int, tree: Any) -> None:
        record = self._results.get(seq)
        if record is not None:
            record.tree = tree
            record.carried = evolve(record.carried, manifest=b"")
