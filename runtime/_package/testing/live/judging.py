"""The judge: after every step it says whether what was seen at the ports is what the model says.

What the runtime's parties took, in which order, is read from their traces, for nobody else knows it. But nothing is believed because it
was traced: each event must be justified by something that was seen at a port, the step must be the one that the model's own core takes,
and what that core says has to be done must be seen at a port: frames on the wire, calls that return, processes that live.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from hmac import compare_digest
from typing import Any

from attrs import asdict, define, evolve, field

from troth.runtime.errors import FrameError
from troth.runtime.sim.faults import DOWN, UP
from troth.runtime.sim.processes import Living
from troth.runtime.wire.besides import Credentials, Terms
from troth.runtime.wire.challenge import credentials_proof
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.core import RefusalKind
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.receiver import OVER
from troth.statemachines.shared.words import CONTROL, DATA
from troth.statemachines.trainer.states import TrainerSessionState as S
from troth.testing.live.calling import Call, equal
from troth.testing.live.checks import check
from troth.testing.live.fickle import claim_of
from troth.testing.live.lines import Line, Way, same
from troth.testing.live.parties import Shadow, Side, Wrong
from troth.testing.live.saying import LOCAL, direction_of, say
from troth.testing.live.seats import Seat, Task
from troth.testing.live.transfers import Transfers


@define(eq=False)
class Judge:
    """See the module."""

    now: Callable[[], float]
    table: Callable[[], frozenset[Living]]
    """The processes that live."""
    host: Side
    seats: dict[bytes, Seat] = field(factory=dict)
    """By launch."""
    lines: list[Line] = field(factory=list)
    transfers: Transfers = field(init=False)
    stepped: Callable[[Shadow, c.Step], None] = field(default=lambda shadow, step: None, init=False)
    heard: Callable[[Shadow, c.Event], None] | None = field(default=None, init=False)
    """Told what a party is about to take: for whoever watches more than this."""
    orphaned: bool = False
    """The guardian was lost."""
    spawn_fails: int = 0
    """Processes that could not be started, and whose host was not told yet."""
    spawning: dict[str, float] = field(factory=dict)
    """Processes that were asked for: by host, when they are to start."""
    signalled: list[tuple[str, c.ProcessSignal]] = field(factory=list)
    killed: set[str] = field(factory=set)
    """Hosts that have ever signalled their process. One that is signalled before it has run never runs."""
    launches: int = 0
    failed: bool = False
    """A result was lost, which fails the run."""
    earlier: Call | None = None
    task: Call | None = None
    """The task that was asked for last."""
    orders: dict[tuple[str, int], Call] = field(factory=dict)
    """By host and number: the call that asked for a task."""
    ended: tuple[str, int] = ("", 0)
    """The host and number of the task that ended last."""
    fail_unresponsive: bool = False
    credentials: Credentials | None = None
    """What trainers are lent."""
    partial: bool = False
    """What was let through may be read in pieces, for as long as one likes."""
    spawn_delay_s: float = 0.0
    heard_delay_s: float = 0.0
    """The longest that a process has run before it was heard of."""
    alone: dict[str, float] = field(factory=dict)
    """Processes that no host knows of: by launch, since when."""
    deaf: bool = False
    """The guardian is gone, and with it whoever reports what ends."""
    steps: int = 0
    """Steps of all parties."""
    hosts: dict[int, str] = field(factory=dict)
    """By launch number: the host that has it."""
    dials: list[Line] = field(factory=list)
    """Connections that were dialled since the last look."""
    journalled: int = 0
    """How much of the network's journal was there at the last look."""
    ending: list[tuple[str, Line, Way]] = field(factory=list)
    """Connections that a party has to end: who, which one, and the direction that it writes in."""

    def __attrs_post_init__(self) -> None:
        self.transfers = Transfers(self)

    # -- what happened -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Judge everything that happened since the last look. Raises ``Wrong``."""
        now = self.now()
        for line in self.lines:
            if line.secret is None and line.sim.launch in self.seats:
                line.secret = self.seats[line.sim.launch].secret
            line.look()
            if line.sim.role == "data":
                self.transfers.moves(line)
        self._replay(self.host)
        for seat in self.seats.values():
            if seat.gone:
                seat.leave()
            else:
                self._replay(seat.side)
        check(self, now)

    def sides(self) -> list[Side]:
        return [self.host, *(seat.side for seat in self.seats.values() if not seat.gone)]

    def _replay(self, side: Side) -> None:
        records, side.records = side.records, []
        for party, event, found in records:
            self._step(side, party, event, found)
            self.steps += 1
        while side.local:
            told = side.local.popleft()
            if told.party in side.parties:
                raise Wrong("order", f"{told.party} was not told {told.event}")

    def _step(self, side: Side, party: str, event: c.Event, found: c.Step) -> None:
        shadow = side.parties.get(party)
        if shadow is None:
            raise Wrong("replay", f"{party} took {event}, and there is no such party")
        if not side.heard(party, event):
            self._justify(side, shadow, event)
        if self.heard is not None:
            self.heard(shadow, event)
        step = shadow.take(event, found, self.now())
        self.stepped(shadow, step)
        if isinstance(event, c.Received) and isinstance(event.message, m.ExecuteTask) and self.task is not None:
            self.orders[party, shadow.core.data("delivery").seq] = self.task
        if step.refusal is not None:
            self._refused(side, shadow, event, step.refusal)
            return
        for effect in step.effects:
            if type(effect) is not c.SetTimer and type(effect) is not c.CancelTimer:
                self._expect(side, shadow, effect)
        if shadow.kind == "receiver" and shadow.core.state("download") in OVER:
            side.parties.pop(shadow.name, None)

    def _ends(self, shadow: Shadow, line: Line | None) -> None:
        """That connection has to be ended by that party."""
        if line is not None:
            self.ending.append((shadow.name, line, line.ways[direction_of(shadow)]))

    def _refused(self, side: Side, shadow: Shadow, event: c.Event, refusal: c.Refusal) -> None:
        if refusal.kind is RefusalKind.DRIVER:
            raise Wrong("fault", f"{shadow.name} was told what cannot have happened: {event}: {refusal.why}")
        if isinstance(event, c.Called):
            call = side.numbers.pop((event.call, event.number), None)
            if call is not None:
                call.refused, call.asked = refusal.why, ""
            if event.call == "execute":
                self.task = self.earlier
        elif isinstance(event, c.Received) and event.link == CONTROL:
            shadow.closing = True
            self._ends(shadow, shadow.line)

    # -- whether it may have happened ----------------------------------------------------------------------------------

    def _justify(self, side: Side, shadow: Shadow, event: c.Event) -> None:
        match event:
            case c.TimerFired():
                shadow.fired(event, self.now())
            case c.Received(link=link, message=message):
                if link in LOCAL:
                    raise Wrong("order", f"{shadow.name} took {event}, which nobody told it")
                self._received(shadow, link, message)
            case c.Called():
                self._called(side, shadow, event)
            case c.CallCancelled():
                self._cancelled(side, shadow, event)
            case c.LinkUp():
                self._link_up(shadow)
            case c.LinkLost():
                self._link_lost(shadow)
            case c.EffectFailed(effect=effect):
                self._failed(side, shadow, effect)
            case c.TransferProgressed() | c.TransferEnded():
                self.transfers.justify(shadow, event)
            case _:
                self._process(shadow, event)

    def _cancelled(self, side: Side, shadow: Shadow, event: c.CallCancelled) -> None:
        name = event.call
        call = side.numbers.pop((name, event.number), None)
        if call is None:  # it was resolved in the very moment in which it was given up
            call = next((call for call in side.calls if call.given_up and name in (call.kind, "receive", "abort", "finalize")), None)
        if call is None or not call.given_up:
            raise Wrong("calls", f"{shadow.name}: {event}, and nobody gave it up")
        call.asked = ""
        if call.kind == "start":
            call.pending = ["abort", "finalize"]

    def _link_up(self, shadow: Shadow) -> None:
        way = direction_of(shadow)
        found = [line for line in self.lines if self._is(line, shadow) and not line.taken[way] and line.authentic(way)]
        if not found:
            raise Wrong("authentic", f"{shadow.name} took a connection into use on which nobody has shown that he may come")
        line = found[-1] if way is UP else found[0]
        line.taken[way] = True
        shadow.line, shadow.closing = line, False

    def _is(self, line: Line, shadow: Shadow) -> bool:
        return line.sim.role == CONTROL and line.sim.launch is not None and self.launch_of(shadow) == line.sim.launch

    def launch_of(self, shadow: Shadow) -> bytes | None:
        """The launch that a host or trainer is of."""
        name = shadow.name.partition("/")[0]
        if shadow.seat is not None:
            return shadow.seat.launch  # type: ignore[no-any-return]
        return next((seat.launch for seat in self.seats.values() if seat.host == name), None)

    def _link_lost(self, shadow: Shadow) -> None:
        line, shadow.line = shadow.line, None
        if line is None:
            raise Wrong("links", f"{shadow.name} lost a link that it does not have")
        self._ends(shadow, line)
        newer = any(self._is(other, shadow) and other.sim.number > line.sim.number for other in self.lines)
        if line.alive and not (newer or shadow.closing or line.harmed):
            raise Wrong("links", f"{shadow.name} lost connection {line.sim.number}, with which nothing is wrong")

    def _received(self, shadow: Shadow, link: str, message: c.Message) -> None:
        way = DOWN if direction_of(shadow) is UP else UP
        if link == DATA:
            self.transfers.received(shadow, message)
            return
        line = shadow.line
        if line is None or not line.ways[way].arrived:
            raise Wrong("wire", f"{shadow.name} received {message}, and no frame of it came on a connection that it may trust")
        frame = line.ways[way].arrived.popleft()
        try:
            arrived = frame.decoded()
        except FrameError as error:
            raise Wrong("wire", f"{shadow.name} received {message} from {frame.name}, which is no frame: {error}") from error
        if not same(message, (arrived.kind.message, arrived.fields)):
            raise Wrong("wire", f"{shadow.name} received {message}, and what came is {arrived.kind.name} {arrived.fields}")
        if isinstance(message, m.HelloAccepted):
            self._granted(shadow, arrived.beside.terms)
        self._derived(shadow, message, arrived)

    def _derived(self, shadow: Shadow, message: Any, arrived: Any) -> None:
        """Whether what its receiver derives of a message is right, and what rode beside it is noted."""
        beside, notes = arrived.beside, shadow.notes
        match message:
            case m.Hello():
                given = self.seats[self.launch_of(shadow) or b""].bootstrap
                if message.claim is not claim_of(beside, given.job_id, given.site_name):
                    raise Wrong("claim", f"{shadow.name} takes the claim of {beside} for {message.claim}")
            case m.SessionReady(proven=proven):
                wanted = b"" if self.credentials is None else credentials_proof(self.credentials, shadow.line.nonces)
                if proven is not compare_digest(beside.proof, wanted):
                    raise Wrong("claim", f"{shadow.name} takes the proof of {beside} for {proven}")
            case m.TaskReady(seq=seq, content=content):
                known = notes.setdefault(seq, beside.digest)
                if content != int(known != beside.digest):
                    raise Wrong("content", f"{shadow.name} takes the content of {arrived.fields} for {content}")
                self.transfers.carried(shadow, seq, beside.nbytes)
            case m.ResultReady(seq=seq, content=content):
                if shadow.core.state("acceptance", seq) is AcceptanceState.AWAITING:
                    notes[seq] = beside.digest
                if content != int(notes.get(seq, beside.digest) != beside.digest):
                    raise Wrong("content", f"{shadow.name} takes the content of {arrived.fields} for {content}")
                self.transfers.carried(shadow, seq, beside.nbytes)
            case _:
                pass

    def _granted(self, shadow: Shadow, terms: Terms) -> None:
        """A host grants its own terms, and its trainer keeps them from then on, whatever it began with."""
        keeps = self.host.parties["supervisor"].config.limits
        for name, granted_s in asdict(terms).items():
            if granted_s != getattr(keeps, name):
                raise Wrong("claim", f"{shadow.name} is granted {name} {granted_s} s, where its host keeps {getattr(keeps, name)} s")
        if shadow.core.state("session") not in (S.NEW, S.PASSIVE, S.ABORTED, S.CLOSED):  # where nobody waits for an answer
            shadow.limits = evolve(shadow.limits, **asdict(terms))
            shadow.wanted.setdefault(DATA, self.now())

    def _called(self, side: Side, shadow: Shadow, event: c.Called) -> None:
        name, number, payload = event.call, event.number, event.payload
        made = (call for call in side.calls if name in call.pending[:1])
        call = next((call for call in made if name != "take" or call.number == number), None)  # two may be about to take
        if call is None:
            raise Wrong("calls", f"{shadow.name}: {name}() was made by nobody")
        del call.pending[0]
        if number:
            side.numbers[name, number], call.number, call.asked = call, number, name
        seat = shadow.seat
        wanted: Any = None
        if name == "init":
            wanted = m.InitArguments(control_rank=not call.passive)
        elif name == "execute":
            wanted = m.ExecuteArguments(receivers=1, inline=not call.large)
            self.earlier, self.task = self.task, call
        elif name == "send":
            first = seat.first.setdefault(seat.current, call.tree)
            call.seq = seat.current
            wanted = m.SendArguments(content=int(not equal(first, call.tree)), inline=not call.large)
        if payload != wanted:
            raise Wrong("calls", f"{shadow.name}: {name}() said {payload}, and its caller {wanted}")

    def _failed(self, side: Side, shadow: Shadow, effect: c.Effect) -> None:
        if isinstance(effect, c.Send) and effect.link == CONTROL:
            line = shadow.line
            way = None if line is None else line.ways[direction_of(shadow)]
            if line is None or way is None or not (shadow.closing or not way.open or way.blocked or line.harmed):
                raise Wrong("wire", f"{shadow.name} could not send {effect.message}, and nothing is wrong with its link")
            for at in range(len(way.owed) - 1, -1, -1):
                if way.owed[at].message == effect.message:
                    del way.owed[at]
                    return
            raise Wrong("wire", f"{shadow.name} could not send {effect.message}, which it did not have to")
        if isinstance(effect, c.Spawn):
            if not self.spawn_fails and not self.orphaned:
                raise Wrong("processes", f"{shadow.name} could not start its process, and nothing kept it from it")
            self.spawn_fails = max(0, self.spawn_fails - 1)
            self.spawning.pop(shadow.name, None)
        elif isinstance(effect, c.SignalProcess):
            seat = self.seats.get(self.launch_of(shadow) or b"")
            if seat is not None and not seat.gone and not self.orphaned:
                raise Wrong("processes", f"{shadow.name} could not signal a process that lives")
            self.signalled = [known for known in self.signalled if known[0] != shadow.name]
        else:
            self.transfers.failed(side, shadow, effect)

    def _process(self, shadow: Shadow, event: c.Event) -> None:
        if isinstance(event, c.OwnerLost):
            right = self.orphaned if shadow.kind == "host" else shadow.seat.orphaned
            if shadow.seat is not None:
                shadow.seat.bereft = True
        else:
            seat = next((seat for seat in self.seats.values() if seat.host == shadow.name), None)
            right = seat is not None or shadow.name in self.killed
            if isinstance(event, c.ProcessStarted):
                right = self.spawning.pop(shadow.name, math.inf) <= self.now()
            if seat is not None and isinstance(event, c.ProcessExited):
                right = seat.launch.hex() not in {entry.launch_id for entry in self.table()}
                right = right and (event.clean is (seat.code == 0) or seat.process.stuck or seat.stuck)
                seat.reported = True
        if not right:
            raise Wrong("processes", f"{shadow.name} took {event}, and the process table does not say so")

    # -- what must come of it ------------------------------------------------------------------------------------------

    def _expect(self, side: Side, shadow: Shadow, effect: c.Effect) -> None:
        match effect:
            case c.Send(link=link, message=message):
                say(self, side, shadow, link, message)
            case c.Resolve(call=name, number=number, outcome=outcome, value=value):
                call = side.numbers.pop((name, number), None)
                if call is not None:  # else nobody waits for it any more
                    call.resolved(name, outcome, value, self.now())
                    self._wants(shadow, call, effect)
            case c.OpenLink():
                shadow.wanted.setdefault(CONTROL, self.now())
            case c.CloseLink():
                shadow.wanted.clear()
                shadow.closing = shadow.line is not None
                self._ends(shadow, shadow.line)
            case c.Spawn():
                self.spawning[shadow.name] = self.now() + self.spawn_delay_s
            case c.SignalProcess(signal=sent):
                self.signalled.append((shadow.name, sent))
                self.killed.add(shadow.name)
            case c.Pull():
                self.transfers.pulls(shadow)
            case _:
                pass

    def _wants(self, shadow: Shadow, call: Call, effect: c.Resolve) -> None:
        """Note what must come of a call, where the outcome alone does not say it."""
        seat = shadow.seat
        if effect.call == "take" and effect.outcome is m.Outcome.TASK:
            seat.current = effect.value
            call.wants = self._task(seat, effect.value)
        elif effect.call == "execute" and effect.outcome is m.Outcome.RESULT:
            name, seq = self.ended
            call.wants = next(seat for seat in self.seats.values() if seat.host == name).first[seq]

    def _task(self, seat: Seat, seq: int) -> Task:
        """What the host sent under that number."""
        order = self.orders[seat.host, seq]
        return Task(seq, order.task_id, order.name, order.tree)
