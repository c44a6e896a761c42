"""A session as a closed world: a trainer and a host, the link between them, the receivers of results, and who drives them.

``Deal`` says what may happen, ``session`` builds it. Every party is the real core. What is not a core is as small as it can be:

- the *network* says LINK_UP to both ends when both have opened the link;
- the *job* takes what the host says to its supervisor, and may give orders at any time;
- the *script* may make any call that makes sense, at any time; nothing forces it to;
- the payload of a task is with the trainer at once; that of a result rides along, or waits at its source for receivers;
- a launched trainer's process starts when it likes, and its end is reported when it is over or has crashed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import Factory, field, frozen

from troth.models.closing import Give
from troth.models.expressions import Expr
from troth.models.handles import ActionHandle, Handle, LinkHandle
from troth.models.world import World
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.receivers import Receivers, receivers
from troth.models.worlds.protocol.watched import Watch, Watched, keeps, restarts
from troth.models.worlds.protocol.watching_host import host_watches
from troth.models.worlds.protocol.watching_trainer import results, trainer_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import HostConfig, TrainerConfig
from troth.statemachines.host import HOST
from troth.statemachines.host.delivery import DeliveryState
from troth.statemachines.host.process import ALIVE, ProcessState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.trainer import TRAINER
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import PublicationState
from troth.statemachines.trainer.states import TrainerSessionState

SMALL = Limits(ledger_limit=2, acceptance_limit=2, task_attempts=2, result_attempts=2, pull_attempts=1, retained_limit=2)
"""Few of everything, so that what happens at a limit happens soon."""

SETTLED_NOW = (TrainerSessionState.ABORTED, TrainerSessionState.CLOSED)


@frozen(kw_only=True)
class Deal:
    """What a world has, and how often each fault may happen."""

    limits: Limits = SMALL
    launched: bool = False
    one_shot: bool = False
    fail_unresponsive: bool = True
    tasks: int = 1
    epochs: int = 1
    """As many as the host can come to, for the names of observations."""
    receivers: int = 0
    """Receivers of a result's payload; 0: it rides in its message."""
    host_receives: bool = True
    """The host is receiver number 0."""
    capacity: int = 1
    """Messages on their way in one direction of the control link."""
    capacity_to_trainer: int = 0
    """The same from the host to the trainer, where it is another."""
    full: str = "blocks"
    """What becomes of another: ``blocks`` holds the step back, ``loses`` loses it, as often as that happens."""
    merges: bool = False
    """What is said again while it is on its way is said once. No step is held back then, and weak fairness is enough."""
    losses: int = 0
    unreliable: bool = False
    """The control link may lose any number of messages, the oldest at a time, so that each comes to where it could be delivered."""
    duplicates: int = 0
    cuts: int = 0
    trainer_crashes: int = 0
    trainer_restarts: bool = False
    host_crashes: int = 0
    host_restarts: bool = False
    """As another instance, which counts its epochs anew."""
    delay: int | None = None
    """In a world with a clock: ticks after which a control message has arrived."""
    inits: int = 1
    orders: tuple[str, ...] = ("stop", "close", "abort")
    """What the job may order, each once."""
    calls: tuple[str, ...] = ("receive", "take", "send")
    """What the script may do: also ``shutdown``, ``resend`` (the same content once more), ``other`` (another content) and ``give up
    init``, ``... receive`` or ``... send``: its caller stops waiting."""
    without: frozenset[str] = frozenset()
    """Timers that never fire here."""
    strangers: int = 0
    """HELLOs that are not the launched trainer's own."""
    task_payload_fails: int = 0
    """How many task payloads may be lost on the way in."""
    task_payload_waits: bool = False
    """It arrives when it likes, rather than at once."""

    @property
    def instances(self) -> int:
        """As many hosts as there can be, one after the other."""
        return 1 + self.host_restarts


@frozen(kw_only=True)
class Session:
    """What a world of one session is made of."""

    world: World
    deal: Deal
    trainer: Reading
    host: Reading
    to_trainer: LinkHandle
    to_host: LinkHandle
    losses: Handle | None
    duplicates: Handle | None
    receivers: Receivers
    job: dict[str, ActionHandle] = field(factory=dict)
    script: dict[str, ActionHandle] = field(factory=dict)
    crashes: dict[str, Handle] = Factory(dict)
    watches: dict[str, frozenset[str]] = Factory(dict)
    """Which properties are watched, party by party."""

    def results(self) -> Iterable[tuple[tuple[int, int], int]]:
        """Every result that there can be, as (session, sequence)."""
        return results(self.deal.instances, self.deal.epochs, self.deal.tasks)

    def pairs(self) -> Iterable[tuple[int, int]]:
        """Every (epoch, sequence) that there can be."""
        return [(e, s) for e in range(1, self.deal.epochs + 1) for s in range(1, self.deal.tasks + 1)]


def chosen(watches: Iterable[Watch], ids: Iterable[str]) -> tuple[Watch, ...]:
    """The watches of these properties."""
    wanted = frozenset(ids)
    return tuple(watch for watch in watches if watch.id in wanted)


def session(world: World, deal: Deal, ids: Iterable[str], host_too: Iterable[Watch] = ()) -> Session:
    """Build the world of ``deal``, with what the properties ``ids`` need to watch, and what else is to be watched of the host."""
    ids = tuple(ids)
    common: dict[str, Any] = {"limits": deal.limits, "launched": deal.launched, "fail_unresponsive": deal.fail_unresponsive}
    trainer_config = TrainerConfig(one_shot=deal.one_shot, **common)
    host_configs = [HostConfig(receives=deal.host_receives, instance=life, **common) for life in range(deal.instances)]
    trainer_core = Watched(TRAINER, [trainer_config], chosen(trainer_watches(deal.epochs, deal.tasks, deal.instances), ids), deal.without)
    host_core = Watched(HOST, host_configs, (*chosen(host_watches(deal.epochs, deal.tasks, deal.instances), ids), *host_too), deal.without)
    trainer = Reading(world.party("trainer", trainer_core, stale_timers=False), TRAINER)
    host = Reading(world.party("host", host_core, stale_timers=False), HOST)
    losses = world.budget("losses", deal.losses) if deal.losses else None
    duplicates = world.budget("duplicates", deal.duplicates) if deal.duplicates else None
    line: dict[str, Any] = {
        "lossy": deal.unreliable or losses or False, "loses": "oldest" if deal.unreliable else "any", "duplicating": duplicates or False,
        "full": deal.full, "ordered": True, "delay": deal.delay, "merges": deal.merges,
    }  # fmt: skip
    to_host = world.link(trainer.handle, host.handle, "control", capacity=deal.capacity, **line)
    to_trainer = world.link(host.handle, trainer.handle, "control", capacity=deal.capacity_to_trainer or deal.capacity, **line)
    if deal.cuts:
        world.cut(to_host, to_trainer, times=deal.cuts)
    made = Session(
        world=world, deal=deal, trainer=trainer, host=host, to_trainer=to_trainer, to_host=to_host, losses=losses, duplicates=duplicates,
        receivers=receivers(world, deal, trainer, host, ids),
        watches={"trainer": frozenset(w.id for w in trainer_core.watches), "host": frozenset(w.id for w in host_core.watches)},
    )  # fmt: skip
    _network(made)
    _task_payloads(made)
    _job(made)
    _script(made)
    _process(made)
    _crashes(made, trainer_core, host_core)
    world.ignores(trainer.handle, c.Resolve, c.SignalProcess, c.CloseLink, c.Offer, c.Release)
    world.ignores(host.handle, c.Resolve, c.SignalProcess, c.Spawn, c.CloseLink, c.Offer, c.Release)
    return made


# -- the surroundings --------------------------------------------------------------------------------------------------


def _network(made: Session) -> None:
    def network(opened: tuple[str, ...], event: Any) -> tuple[tuple[str, ...], tuple[Give, ...]]:
        now = tuple(sorted({*opened, event.by}))
        return now, tuple(Give(name, c.LinkUp("control")) for name in ("trainer", "host")) if len(now) == 2 else ()

    party = made.world.party("network", network, initial=())
    for one in (made.trainer, made.host):
        made.world.takes(party, c.OpenLink, by=one.handle)


def _task_payloads(made: Session) -> None:
    """The payload of a task is there at once, or, so often, it is not. It may also be long in coming."""

    def tells(kind: type[m.PayloadArrived | m.PayloadLost], said: m.TaskMessage) -> tuple[c.Send, ...]:
        return (c.Send("party", kind(epoch=said.epoch, seq=said.seq, receiver=0)),)

    def in_a_while(state: tuple[int, m.FetchPayload | None], event: Any) -> Any:
        left, asked = state
        if isinstance(event, c.Received):
            wanted = event.message if isinstance(event.message, m.FetchPayload) else None
            return (left, wanted), ()
        if asked is None or (event.call == "is lost" and not left):
            return None
        if event.call == "is lost":
            return (left - 1, None), tells(m.PayloadLost, asked)
        return (left, None), tells(m.PayloadArrived, asked)

    def at_once(left: int, event: c.Received) -> list[tuple[int, tuple[c.Send, ...]]]:
        said = event.message
        if not isinstance(said, m.FetchPayload):
            return [(left, ())]
        found = [(left, tells(m.PayloadArrived, said))]
        return [*found, (left - 1, tells(m.PayloadLost, said))] if left else found

    fails = made.deal.task_payload_fails
    if made.deal.task_payload_waits:
        party = made.world.party("task payloads", in_a_while, initial=(fails, None))
        made.world.may(party, "arrives")
        made.world.may(party, "is lost")
    else:
        party = made.world.party("task payloads", at_once, initial=fails)
    made.world.local(made.trainer.handle, party, "receivers", arrives_as="party")
    made.world.local(party, made.trainer.handle, "party", arrives_as="receivers")


def _job(made: Session) -> None:
    world, host, deal = made.world, made.host, made.deal
    job = world.party("job", lambda state, _event: (state, ()), initial=0)
    world.local(host.handle, job, "supervisor", arrives_as="host")

    def order(name: str, message: m.LaunchMessage, times: int, when: Expr | None = None) -> None:
        made.job[name] = world.may(host.handle, c.Received("supervisor", message), times=times, when=when, name=name)

    order("start", m.StartSession(launch=1), 1 + deal.host_restarts, host.at("session", HostSessionState.IDLE))
    ready = host.at("delivery", DeliveryState.IDLE, DeliveryState.CANCELLING) & host.at("session", HostSessionState.READY)
    order("execute", m.ExecuteTask(launch=1, receivers=max(1, deal.receivers), inline=True), deal.tasks, ready)
    orders = {"stop": m.StopTask(launch=1), "close": m.CloseSession(launch=1), "abort": m.AbortSession(launch=1)}
    begun = ~host.at("session", HostSessionState.IDLE, HostSessionState.CLOSED)
    for name in deal.orders:
        order(name, orders[name], 1, ~host.at("delivery", DeliveryState.IDLE, DeliveryState.CANCELLING) if name == "stop" else begun)


def _script(made: Session) -> None:
    world, trainer, deal = made.world, made.trainer, made.deal
    handle = trainer.handle
    free = ~trainer.some("calls")
    inline = deal.receivers == 0
    waits = trainer.some("ledger", LedgerState.HANDED)
    holds = trainer.some("ledger", LedgerState.DELIVERED)

    def may(name: str, event: c.Event, when: Expr | None, times: int | None = None) -> None:
        made.script[name] = world.may(handle, event, when=when, times=times, name=name)

    started = trainer.at("session", TrainerSessionState.NEW)
    if deal.launched:
        started = started & made.host.at("process", *ALIVE)
    may("init", c.Called("init", 1, m.InitArguments(control_rank=True)), started, deal.inits)
    published = trainer.some("publication", *(s for s in PublicationState if s is not PublicationState.ABSENT))
    waiting = trainer.some("calls")

    def sends(number: int, content: int) -> c.Called:
        return c.Called("send", number, m.SendArguments(content=content, inline=inline))

    known: dict[str, tuple[c.Event, Expr | None, int | None]] = {
        "receive": (c.Called("receive", 2), free & ~waits & trainer.at("session", *_LIVE), None),
        "take": (c.Called("take", 2), waits, None),
        "send": (sends(3, 0), free & holds, None),
        "resend": (sends(4, 0), free & published, 1),
        "other": (sends(4, 1), free & published, 1),
        "shutdown": (c.Called("shutdown", 5), None, 1),
        "give up init": (c.CallCancelled("init", 1), waiting, 1),
        "give up receive": (c.CallCancelled("receive", 2), waiting | waits, 1),
        "give up send": (c.CallCancelled("send", 3), waiting, 1),
    }
    for name in deal.calls:
        may(name, *known[name])


_LIVE = (TrainerSessionState.READY, TrainerSessionState.DRAINING)


def _process(made: Session) -> None:
    """A launched trainer's process."""
    world, host, trainer = made.world, made.host, made.trainer
    if not made.deal.launched:
        return
    world.may(
        host.handle, c.ProcessStarted(), when=host.at("process", ProcessState.SPAWNING, ProcessState.DOOMED), times=1, name="process starts"
    )
    if made.deal.strangers:
        budget = world.budget("strangers", made.deal.strangers)
        for name, epoch, claim in (("another rank", 0, m.Claim.WRONG_RANK), ("another session", 7, m.Claim.MATCHING)):
            hello = c.Received("control", m.Hello(epoch=epoch, claim=claim))
            world.may(host.handle, hello, times=budget, when=~host.at("session", HostSessionState.IDLE), name=f"HELLO of {name}")
    over = trainer.handle.is_down | trainer.at("session", *SETTLED_NOW)
    reaped = host.at("process", *ALIVE)
    world.may(host.handle, c.ProcessExited(), when=reaped & over, times=1, name="process exits")


def _crashes(made: Session, trainer_core: Watched, host_core: Watched) -> None:
    world, deal = made.world, made.deal
    both = (made.to_trainer, made.to_host)
    if deal.trainer_crashes:
        made.crashes["trainer"] = world.budget("trainer crashes", deal.trainer_crashes)
        world.crash(
            made.trainer.handle, made.crashes["trainer"], restarts=deal.trainer_restarts, keeps=keeps, restarted=restarts(trainer_core),
            drops=both if deal.trainer_restarts else (),
        )  # fmt: skip
    if deal.host_crashes:
        made.crashes["host"] = world.budget("host crashes", deal.host_crashes)
        world.crash(
            made.host.handle, made.crashes["host"], restarts=deal.host_restarts, keeps=keeps, restarted=restarts(host_core),
            drops=both if deal.host_restarts else (),
        )  # fmt: skip
        if deal.launched:
            world.may(made.trainer.handle, c.OwnerLost(), when=made.host.handle.is_down, times=1, name="owner lost")
