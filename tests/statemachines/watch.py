"""The numbered properties as watchers: each looks at one step of one core, and at what it has seen before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from attrs import define, field

from troth.spec import core
from troth.spec import messages as m
from troth.spec.engine import PartyCore
from troth.spec.properties import PROPERTIES
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.receiver import DownloadState
from troth.statemachines.shared.calls import kind_of
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.shared.source import LIVE as SOURCE_LIVE
from troth.statemachines.trainer.ledger import ACCEPTED, LedgerState
from troth.statemachines.trainer.publication import BUSY
from troth.statemachines.trainer.session import OPENING
from troth.statemachines.trainer.states import TrainerSessionState


@define
class Seen:
    """One step, as a watcher sees it."""

    after: PartyCore
    before: PartyCore
    event: core.Event
    step: core.Step

    def sent(self, *kinds: type[core.Message]) -> list[Any]:
        """The messages of those kinds that the step sent."""
        return [e.message for e in self.step.effects if isinstance(e, core.Send) and isinstance(e.message, kinds)]

    def was(self, machine: str, key: core.Key = None) -> Any:
        """The state before."""
        return self.before.state(machine, key)

    def now(self, machine: str, key: core.Key = None) -> Any:
        """The state after."""
        return self.after.state(machine, key)

    def became(self, machine: str, state: Any) -> list[core.Key]:
        """The family's instances that are newly in that state."""
        return [key for key in self.after.members(machine) if self.now(machine, key) is state and self.was(machine, key) is not state]


@define
class Passed:
    """What a watcher has seen pass in one epoch: sequences, 0 for none."""

    highest: int = 0
    second: int = 0
    """The one whose payload was lost, and which may come again as long as nothing newer came."""
    floor: int = 0
    cancelled: int = 0


@define
class Watch:
    """Every watcher of one core, with its memory. ``look`` raises ``AssertionError`` that names the property."""

    held: PartyCore
    before: PartyCore
    delivered: Counter[tuple[int, int]] = field(factory=Counter)
    canonical: dict[tuple[int, int], int] = field(factory=dict)
    rejected: set[tuple[int, int]] = field(factory=set)
    calls: Counter[tuple[str, int]] = field(factory=Counter)
    losses: Counter[int] = field(factory=Counter)
    ended: int = 0
    termed: bool = False
    out: bool = False
    """A task went out, and nobody was told its outcome yet."""
    spawned: bool = False
    """A process was asked for, and no end of it was reported."""
    orphaned: bool = False
    passed: dict[int, Passed] = field(factory=dict)

    def look(self, event: core.Event, step: core.Step) -> None:
        """Check one step."""
        seen = Seen(self.held, self.before, event, step)
        for watcher in (*WATCHERS["any"], *WATCHERS[self.held.party.name]):
            name = watcher.__name__.upper()
            assert name in PROPERTIES
            assert watcher(self, seen), f"{name} {PROPERTIES[name].statement}: {event} {step.rows}"
        self.before.restore(self.held.snapshot())


Watcher = Callable[[Watch, Seen], bool]


def epoch(seen: Seen) -> int:
    """The session's epoch."""
    return int(seen.after.data("session").epoch)


# -- any core ----------------------------------------------------------------------------------------------------------


def p22(_watch: Watch, seen: Seen) -> bool:
    """A refused event changes nothing."""
    return seen.step.refusal is None or (seen.step.effects == () and seen.after.snapshot() == seen.before.snapshot())


def p15(watch: Watch, seen: Seen) -> bool:
    """A call returns once; ``take`` returns within its own step, so its number may be the caller's again."""
    if isinstance(seen.event, core.Called):
        watch.calls.pop((seen.event.call, seen.event.number), None)
    for effect in seen.step.effects:
        if isinstance(effect, core.Resolve):
            watch.calls[effect.call, effect.number] += 1
    return all(count == 1 for count in watch.calls.values())


# -- the trainer -------------------------------------------------------------------------------------------------------


def p01(_watch: Watch, seen: Seen) -> bool:
    """Nothing in the ledger before the session is bound."""
    unbound = (TrainerSessionState.NEW, TrainerSessionState.PASSIVE, *OPENING)
    return seen.now("session") not in unbound or not seen.after.members("ledger")


def p02(_watch: Watch, seen: Seen) -> bool:
    """Queued only while ready; a task that is put back was queued then."""
    fresh = [k for k in seen.became("ledger", LedgerState.QUEUED) if seen.was("ledger", k) is not LedgerState.HANDED]
    return not fresh or seen.was("session") is TrainerSessionState.READY


def p03(_watch: Watch, seen: Seen) -> bool:
    """Accepted means queued or further."""
    return all(seen.now("ledger", message.seq) in ACCEPTED for message in seen.sent(m.TaskAccepted))


def p04(watch: Watch, seen: Seen) -> bool:
    """Delivered once."""
    for key in seen.became("ledger", LedgerState.DELIVERED):
        assert isinstance(key, int)
        watch.delivered[epoch(seen), key] += 1
    return all(count == 1 for count in watch.delivered.values())


def p05(watch: Watch, seen: Seen) -> bool:
    """Nothing that was passed, fenced or evicted is reserved: by the watcher's own count of what came."""
    now = epoch(seen)
    passed = watch.passed.setdefault(now, Passed())
    reserved = [key for key in seen.became("ledger", LedgerState.RESERVED) if isinstance(key, int)]
    if isinstance(seen.event, core.Received):
        message = seen.event.message
        if isinstance(message, m.TaskReady) and message.epoch == now:
            passed.floor = max(passed.floor, message.floor)
        if isinstance(message, m.CancelTask) and message.epoch == now:
            passed.floor = max(passed.floor, message.seq)
            passed.cancelled = max(passed.cancelled, message.seq)
    right = all(key >= passed.floor and key > passed.cancelled and (key > passed.highest or key == passed.second) for key in reserved)
    for key in reserved:
        passed.highest, passed.second = max(passed.highest, key), 0
    failed = isinstance(seen.event, core.Received) and isinstance(seen.event.message, m.PayloadLost)
    if failed and seen.step.effects and isinstance(seen.event, core.Received):
        lost = seen.event.message
        assert isinstance(lost, m.PayloadLost)
        passed.second = lost.seq if lost.seq == passed.highest else passed.second
    return right


def p06_trainer(_watch: Watch, seen: Seen) -> bool:
    """The ledger keeps its limit."""
    limit = seen.after.config.limits.ledger_limit
    return bool(len(seen.after.members("ledger")) <= limit and len(seen.after.members("publication")) <= limit)


def p11_trainer(_watch: Watch, seen: Seen) -> bool:
    """The verdict stays, unless an abort overrides an orderly end."""
    old, new = seen.before.data("session").verdict, seen.after.data("session").verdict
    if seen.was("session") in (TrainerSessionState.ABORTED, TrainerSessionState.CLOSED):
        return bool(old is new)
    return bool(old is new or old is m.Verdict.NONE or new in (m.Verdict.ABORTED, m.Verdict.LOST))


def p12(_watch: Watch, seen: Seen) -> bool:
    """An aborted session holds nobody and serves nothing; and whatever is in a session is aborted by an ABORT of it."""
    message = seen.event.message if isinstance(seen.event, core.Received) else None
    heard = isinstance(message, m.Abort) and message.epoch == seen.before.data("session").epoch
    if heard and seen.now("session") not in (TrainerSessionState.ABORTED, TrainerSessionState.CLOSED):
        return False
    if seen.now("session") is not TrainerSessionState.ABORTED:
        return True
    publishing = [k for k in seen.after.members("publication") if seen.now("publication", k) in BUSY]
    serving = [k for k in seen.after.members("source") if seen.now("source", k) in SOURCE_LIVE]
    waiting = {"receive", "send", "init"} & {kind_of(key) for key in seen.after.members("calls")}
    return not (publishing or serving or waiting)


def p13(_watch: Watch, seen: Seen) -> bool:
    """An orderly end leaves the publication alone, and closes after it."""
    busy = [k for k in seen.before.members("publication") if seen.was("publication", k) in BUSY]
    left = [k for k in seen.after.members("publication") if seen.now("publication", k) in BUSY]
    ordered = isinstance(seen.event, core.Received) and isinstance(seen.event.message, m.Shutdown)
    if (ordered or isinstance(seen.event, core.Called)) and busy != [k for k in left if k in busy]:
        return False
    closes = seen.now("session") is TrainerSessionState.CLOSED and seen.was("session") is not TrainerSessionState.CLOSED
    return not (closes and left)


DOUBTING = (LeaseState.SUSPECT, LeaseState.UNRESPONSIVE)


def p14(_watch: Watch, seen: Seen) -> bool:
    """Expired by its own timer, from suspicion; and no suspicion outlives a message of the session."""
    if seen.now("lease") is LeaseState.EXPIRED and seen.was("lease") is not LeaseState.EXPIRED:
        by_timer = isinstance(seen.event, core.TimerFired) and seen.event.timer == "lease"
        return by_timer and seen.was("lease") in DOUBTING
    event = seen.event
    if isinstance(event, core.Received) and event.link == "control" and isinstance(event.message, m.EpochMessage):
        of_session = event.message.epoch == seen.before.data("session").epoch and seen.step.refusal is None
        opening = isinstance(event.message, m.SessionOpen | m.Hello | m.SessionConfirmed | m.AbortAccepted | m.SessionClosed | m.Abort)
        return not of_session or opening or seen.now("lease") not in DOUBTING
    return True


def p18(_watch: Watch, seen: Seen) -> bool:
    """Another epoch's message changes nothing, the opening of a session apart."""
    opening = (m.HelloAccepted, m.SessionOpen, m.Hello, m.SessionRejected, m.HelloRejected)
    event = seen.event
    if not isinstance(event, core.Received) or not isinstance(event.message, m.EpochMessage) or isinstance(event.message, opening):
        return True
    if event.message.epoch == seen.before.data("session").epoch:
        return True
    return seen.after.snapshot() == seen.before.snapshot() and seen.step.effects == ()


# -- the host ----------------------------------------------------------------------------------------------------------


def p06_host(_watch: Watch, seen: Seen) -> bool:
    """The memory of results keeps its limit."""
    return bool(len(seen.after.members("acceptance")) <= seen.after.config.limits.acceptance_limit)


def p07(watch: Watch, seen: Seen) -> bool:
    """One above the last, and only when whoever asked for that one was told its outcome."""
    rise = seen.after.data("delivery").seq - seen.before.data("delivery").seq
    right = rise == 0 or (rise == 1 and not watch.out)
    watch.out = (watch.out or rise > 0) and not seen.sent(m.TaskEnded)
    return bool(right)


def p08(watch: Watch, seen: Seen) -> bool:
    """One canonical attempt a task."""
    return all(watch.canonical.setdefault((said.epoch, said.seq), said.attempt) == said.attempt for said in seen.sent(m.ResultAccepted))


def p09(watch: Watch, seen: Seen) -> bool:
    """Accepted and rejected exclude each other; a conflict is about another content, stale about a task that was forgotten."""
    for said in seen.sent(m.ResultRejected):
        if said.reason in (m.RejectReason.CANCELLED, m.RejectReason.EXHAUSTED):
            watch.rejected.add((said.epoch, said.seq))
    return not watch.rejected & set(watch.canonical)


def p11_host(_watch: Watch, seen: Seen) -> bool:
    """The verdict stays, unless an abort overrides an orderly end."""
    old, new = seen.before.data("session").verdict, seen.after.data("session").verdict
    overrides = new in (m.Verdict.ABORTED, m.Verdict.LOST)
    overridden = old is m.Verdict.STOPPED and overrides and seen.was("session") is not HostSessionState.CLOSED
    return bool(old is new or old is m.Verdict.NONE or overridden)


def p16(watch: Watch, seen: Seen) -> bool:
    """TERM before KILL, with a grace that has ended in between; strangers never."""
    watch.orphaned |= isinstance(seen.event, core.OwnerLost)
    waited = watch.termed and isinstance(seen.event, core.TimerFired) and seen.event.timer == "process"
    for effect in seen.step.effects:
        if isinstance(effect, core.SignalProcess):
            if not seen.after.config.launched:
                return False
            if effect.signal is core.ProcessSignal.KILL and not (waited or watch.orphaned):
                return False
            watch.termed |= effect.signal is core.ProcessSignal.TERM
    return True


def p17(watch: Watch, seen: Seen) -> bool:
    """Said once, when the end of the process was reported, or it is said to be stuck."""
    said = seen.sent(m.SessionEnded)
    watch.ended += len(said)
    watch.spawned |= any(isinstance(effect, core.Spawn) for effect in seen.step.effects)
    failed = isinstance(seen.event, core.EffectFailed) and isinstance(seen.event.effect, core.Spawn)
    watch.spawned &= not (failed or isinstance(seen.event, core.ProcessExited))
    return watch.ended <= 1 and all(message.stuck or not watch.spawned for message in said)


def p21_host(watch: Watch, seen: Seen) -> bool:
    """A loss is told, and told once."""
    lost = seen.became("acceptance", AcceptanceState.LOST)
    told = [said.seq for said in seen.sent(m.DropPayload) if said.lost]
    if set(told) != set(lost) or not len(told) == len(lost) == len(seen.sent(m.ResultLost)):
        return False
    for said in seen.sent(m.DropPayload):
        watch.losses[said.seq] += 1
    return all(count == 1 for count in watch.losses.values())


def p24(_watch: Watch, seen: Seen) -> bool:
    """A cancel touches the task that is out, and no other."""
    if not isinstance(seen.event, core.Received) or not isinstance(seen.event.message, m.StopTask):
        return True
    out = seen.before.data("delivery").seq
    others = [key for key in seen.before.members("acceptance") if key != out]
    return all(seen.now("acceptance", key) is seen.was("acceptance", key) for key in others)


# -- the receiver and the supervisor -----------------------------------------------------------------------------------


def p21_receiver(_watch: Watch, seen: Seen) -> bool:
    """A loss means nothing to a receiver that holds the payload."""
    return seen.was("download") is not DownloadState.HELD or seen.now("download") in (DownloadState.HELD, DownloadState.DONE)


def p19(_watch: Watch, seen: Seen) -> bool:
    """Launches keep their limit."""
    return bool(len(seen.after.members("launches")) <= seen.after.config.limits.launches_limit)


def p20(_watch: Watch, seen: Seen) -> bool:
    """The first intent stays."""
    old, new = seen.before.data("teardown").intent, seen.after.data("teardown").intent
    return bool(old is new or old is m.Verdict.NONE)


for _watcher in (p06_trainer, p11_trainer, p06_host, p11_host, p21_host, p21_receiver):
    _watcher.__name__ = _watcher.__name__.split("_", maxsplit=1)[0]

WATCHERS: dict[str, tuple[Watcher, ...]] = {
    "any": (p22,),
    "trainer": (p01, p02, p03, p04, p05, p06_trainer, p11_trainer, p12, p13, p14, p15, p18),
    "host": (p06_host, p07, p08, p09, p11_host, p14, p16, p17, p18, p21_host, p24),
    "receiver": (p21_receiver,),
    "supervisor": (p15, p19, p20),
}
