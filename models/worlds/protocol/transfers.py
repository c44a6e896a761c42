"""One result on its way to its receivers: every party the real core, the bytes and the data links as unreliable as they can be.

The trainer serves; receiver 0 is the host's own and sits beside it; the others are elsewhere, and are told to fetch, or to stop, by
notices that may overtake each other. Messages between a receiver and its source may be lost. The control link loses nothing here: that
is ``attach``'s and ``external``'s.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, field, frozen

from troth.models import any_of, deliver, every, timers
from troth.models.claims import FairSelector
from troth.models.closing import Asked, Give
from troth.models.handles import ActionHandle, LinkHandle
from troth.models.world import World
from troth.models.worlds.protocol import agreement
from troth.models.worlds.protocol.inside import seen
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.single import waiting
from troth.models.worlds.protocol.trainer_alone import STEPS, any_wrong
from troth.models.worlds.protocol.watched import Watched, broken, keeps, never
from troth.models.worlds.protocol.watching_host import host_watches, receiver_watches
from troth.models.worlds.protocol.watching_trainer import trainer_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import HostConfig, ReceiverConfig, TrainerConfig
from troth.statemachines.host import HOST
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.host.delivery import DeliveryState
from troth.statemachines.host.process import ALIVE, ProcessState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.receiver import RECEIVER
from troth.statemachines.receiver import DownloadState as D
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.shared.source import SourceState
from troth.statemachines.trainer import TRAINER
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.states import TrainerSessionState

T, H = TrainerSessionState, HostSessionState
QUIET = frozenset({"lease", "beat", "join", "hello", "session", "again", "task", "budget", "result"})
"""Timers that are other worlds': who is given up, what is asked again."""


@frozen(kw_only=True)
class Way:
    """What may happen on the way."""

    receivers: int = 2
    own: bool = True
    """The host is receiver 0."""
    tries: int = 2
    losses: int = 0
    moves: int = 0
    """How often bytes move without an end, a receiver each."""
    breaks: int = 1
    """How often a download breaks off, all receivers together."""
    leases: bool = False
    """The trainer's lease may expire."""
    waits: bool = False
    """A source gives up only receivers that are done and whose word is not on its way, and bytes that can be had arrive."""
    dies: bool = False
    """The trainer's process may die."""
    orders: tuple[str, ...] = ()


@frozen(kw_only=True)
class Transfer:
    """The parts of such a world."""

    world: World
    way: Way
    trainer: Reading
    host: Reading
    receivers: tuple[Reading, ...]
    ends: list[ActionHandle] = field(factory=list)
    links: list[LinkHandle] = field(factory=list)
    said: list[LinkHandle] = field(factory=list)
    """From each receiver to the source."""
    fair: list[ActionHandle] = field(factory=list)
    watches: dict[str, frozenset[str]] = field(factory=dict)


# -- bytes -------------------------------------------------------------------------------------------------------------


@frozen
class Bytes:
    """Which receivers are pulling, and from which sources bytes can be had."""

    pulling: frozenset[int] = frozenset()
    offered: frozenset[int] = frozenset()


def bytes_step(state: Bytes, event: Any) -> Any:
    """Bytes move while they are pulled, and arrive only while they are offered."""
    if isinstance(event, Asked):
        return _asked(state, event.effect), ()
    which = event.number
    served = which in state.offered
    if which not in state.pulling or (event.call != "breaks off" and not served):
        return None
    key, name = (1, which), f"receiver {which}"
    if event.call == "moves":
        return state, (Give(name, c.TransferProgressed("payload", key)), Give("trainer", c.TransferProgressed("result", key)))
    outcome = c.TransferOutcome.COMPLETE if event.call == "arrives" else c.TransferOutcome.FAILED
    said = [Give(name, c.TransferEnded("payload", key, outcome))]
    if served:
        said.append(Give("trainer", c.TransferEnded("result", key, outcome)))
    return evolve(state, pulling=state.pulling - {which}), tuple(said)


def _asked(state: Bytes, effect: Any) -> Bytes:
    which = {effect.key[1]}
    match effect:
        case c.Pull():
            return evolve(state, pulling=state.pulling | which)
        case c.CancelTransfer():
            return evolve(state, pulling=state.pulling - which)
        case c.Offer():
            return evolve(state, offered=state.offered | which)
    return evolve(state, offered=state.offered - which)


def _bytes(made: Transfer) -> None:
    world, way = made.world, made.way
    party = world.party("bytes", bytes_step, initial=Bytes())
    for one in made.receivers:
        world.takes(party, c.Pull, c.CancelTransfer, by=one.handle)
    world.takes(party, c.Offer, c.Release, by=made.trainer.handle)
    breaks = world.budget("breaks", way.breaks)
    for number in range(way.receivers):
        made.ends.append(world.may(party, "arrives", number=number, name=f"{number} arrives"))
        if way.breaks:
            world.may(party, "breaks off", number=number, times=breaks, name=f"{number} breaks off")
        if way.moves:
            world.may(party, "moves", number=number, times=way.moves, name=f"{number} moves")


# -- messages ----------------------------------------------------------------------------------------------------------


def _data(made: Transfer) -> None:
    """Each receiver's data link with the source."""
    world, way, trainer = made.world, made.way, made.trainer.handle

    def exchange(state: int, event: Any) -> tuple[int, tuple[c.Send, ...]]:
        return state, (c.Send(f"to {event.message.receiver}", event.message),)

    party = world.party("exchange", exchange, initial=0)
    world.local(trainer, party, "data")
    losses = world.budget("losses", way.losses) if way.losses else False
    for number, one in enumerate(made.receivers):
        options: dict[str, Any] = {"lossy": losses, "capacity": 1, "full": "blocks"}
        made.said.append(world.link(one.handle, trainer, "data", **options))
        made.links.append(made.said[-1])
        made.links.append(world.link(party, one.handle, f"to {number}", arrives_as="data", **options))


def _notices(made: Transfer) -> None:
    """What the host says to receivers: its own hears at once, the others when it comes."""
    world, way, host = made.world, made.way, made.host.handle
    remote = range(1 if way.own else 0, way.receivers)

    def notify(state: int, event: c.Received) -> tuple[int, tuple[Any, ...]]:
        own = (Give("receiver 0", c.Received("party", event.message)),) if way.own else ()
        return state, (*own, *(c.Send(f"notice {number}", event.message) for number in remote))

    party = world.party("notices", notify, initial=0)
    world.local(host, party, "receivers")
    elsewhere = world.party("elsewhere", lambda state, _event: (state, ()), initial=0)
    for number, one in enumerate(made.receivers):
        if number in remote:
            made.links.append(
                world.link(party, one.handle, f"notice {number}", arrives_as="party", ordered=False, capacity=2, full="blocks")
            )
            world.local(one.handle, elsewhere, "party")
        else:
            world.local(one.handle, host, "party", arrives_as="receivers")


# -- who drives them ---------------------------------------------------------------------------------------------------


def _drivers(made: Transfer) -> None:
    world, trainer, host, way = made.world, made.trainer, made.host, made.way
    arrived = world.party(
        "task payload",
        lambda state, event: (
            (state, (c.Send("party", m.PayloadArrived(epoch=1, seq=event.message.seq, receiver=0)),))
            if isinstance(event.message, m.FetchPayload)
            else (state, ())
        ),
        initial=0,
    )
    world.local(trainer.handle, arrived, "receivers", arrives_as="party")
    world.local(arrived, trainer.handle, "party", arrives_as="receivers")
    job = world.party("job", lambda state, _event: (state, ()), initial=0)
    world.local(host.handle, job, "supervisor")

    def order(name: str, message: m.LaunchMessage, when: Any) -> None:
        world.may(host.handle, c.Received("supervisor", message), times=1, when=when, name=name)

    order("start", m.StartSession(launch=1), host.at("session", H.IDLE))
    world.may(host.handle, c.ProcessStarted(), when=host.at("process", ProcessState.SPAWNING), name="process starts")
    new = trainer.at("session", T.NEW) & host.at("process", ProcessState.RUNNING)
    world.may(trainer.handle, c.Called("init", 1, m.InitArguments(control_rank=True)), when=new, times=1, name="init")
    world.may(trainer.handle, c.LinkUp("control"), when=trainer.at("session", T.JOINING), times=1, name="link up")
    ready = host.at("delivery", DeliveryState.IDLE) & host.at("session", H.READY)
    order("execute", m.ExecuteTask(launch=1, receivers=way.receivers, inline=True), ready)
    out = ~host.at("delivery", DeliveryState.IDLE, DeliveryState.CANCELLING)
    live = ~host.at("session", H.IDLE, H.CLOSED)
    orders = {"stop": (m.StopTask(launch=1), out), "close": (m.CloseSession(launch=1), live), "abort": (m.AbortSession(launch=1), live)}
    for name in way.orders:
        order(name, *orders[name])
    world.may(trainer.handle, c.Called("receive", 2), when=trainer.some("ledger", LedgerState.QUEUED), name="receive")
    world.may(trainer.handle, c.Called("take", 2), when=trainer.some("ledger", LedgerState.HANDED), name="take")
    holds = trainer.some("ledger", LedgerState.DELIVERED)
    world.may(trainer.handle, c.Called("send", 3, m.SendArguments(content=0, inline=False)), when=holds, name="send")
    if way.dies:
        over = trainer.handle.is_down | trainer.at("session", T.ABORTED, T.CLOSED)
        exits = world.may(host.handle, c.ProcessExited(), when=host.at("process", *ALIVE) & over, times=1, name="process exits")
        made.fair.append(exits)


def transfer(name: str, doc: str, way: Way) -> Transfer:
    """Build it."""
    world = World(name, doc)
    quiet = QUIET - {"lease"} if way.leases else QUIET
    limits = Limits(ledger_limit=1, acceptance_limit=1, result_attempts=2, pull_attempts=way.tries)

    def watching(watches: Any) -> tuple[Any, ...]:
        return tuple(watch for watch in watches if watch.id in SAFE)

    trainer = Watched(
        TRAINER,
        [TrainerConfig(limits=limits)],
        watching((*trainer_watches(1, 1), *(never(id_, any_wrong(wrong)) for id_, wrong in STEPS.items()))),
        quiet,
    )
    host = Watched(HOST, [HostConfig(limits=limits, receives=way.own)], watching(host_watches(1, 1)), QUIET)
    made = Transfer(
        world=world,
        way=way,
        trainer=Reading(world.party("trainer", trainer, stale_timers=False), TRAINER),
        host=Reading(world.party("host", host, stale_timers=False), HOST),
        receivers=tuple(
            Reading(
                world.party(
                    f"receiver {n}",
                    Watched(RECEIVER, [ReceiverConfig(limits=limits, receiver=n)], watching(receiver_watches())),
                    stale_timers=False,
                ),
                RECEIVER,
            )
            for n in range(way.receivers)
        ),
    )
    for one, core in ((made.trainer, trainer), (made.host, host)):
        made.watches[one.handle.name] = frozenset(watch.id for watch in core.watches)
    made.watches.update((one.handle.name, frozenset({"P21"})) for one in made.receivers)
    made.links.extend(world.duplex(made.trainer.handle, made.host.handle, "control", capacity=5, full="truncates"))
    _data(made)
    _notices(made)
    _bytes(made)
    _drivers(made)
    world.ignores(made.trainer.handle, c.Resolve, c.CloseLink)
    world.ignores(made.host.handle, c.Spawn, c.SignalProcess, c.CloseLink)
    for number, one in enumerate(made.receivers if way.waits else ()):
        said_so = made.said[number].carries(lambda said: isinstance(said, m.PayloadHeld), "PAYLOAD_HELD is on its way")
        over = one.at("download", D.DONE, D.LOST, D.DROPPED) & ~said_so
        world.fires(made.trainer.handle, "source", key=(1, number), when=over)
    if way.dies:
        world.crash(made.trainer.handle, 1, restarts=False, keeps=keeps)
    return made


# -- what is claimed ---------------------------------------------------------------------------------------------------

SAFE = (
    "P08",
    "P09",
    "P12",
    "P13",
    "P21",
    "P24",
    "P28",
    "P33",
    "P35",
    "P36",
    "P38",
    "P41",
    "P42",
    "P47",
    "P58",
    "P73",
    "P81",
    "P84",
    "P88",
    "P89",
    "P90",
)
LIVE = ("P50", "P54", "P59", "P61", "P63")


def claims(made: Transfer, *also: str) -> World:
    """What is claimed of every one of them."""
    world, trainer, host = made.world, made.trainer, made.host
    held = {n: one.at("download", D.HELD, D.DONE) for n, one in enumerate(made.receivers)}
    for id_ in SAFE:
        watched = [~one.handle.see(broken(id_)) for one in (trainer, host, *made.receivers) if id_ in made.watches[one.handle.name]]
        if id_ == "P90" and made.way.waits:
            watched += [~(trainer.at("source", SourceState.FAILED, key=(1, n)) & held[n]) for n in held]
        if watched:
            world.always(id_, said(id_), every(*watched) if len(watched) > 1 else watched[0])
    settled = host.at("acceptance", AcceptanceState.SETTLED, key=1)
    world.always("P37", said("P37"), settled >> every(*held.values()))
    world.always("P62", said("P62"), every(*(trainer.at("source", SourceState.HELD, key=(1, n)) >> held[n] for n in held)))
    world.always("P85", said("P85"), every(*(seen(trainer.handle, TRAINER, one) for one in agreement.TRAINER_BELIEVES)))
    world.always("P99", said("P99"), every(*(seen(trainer.handle, TRAINER, one) for one in agreement.TRAINER_AGREES)))
    kinds = (c.RefusalKind.VIOLATION, c.RefusalKind.DRIVER)
    cores = [one.handle for one in (trainer, host, *made.receivers)]
    for handle in cores:
        handle.party.never_refuses = frozenset(kinds)
    world.always("P23", said("P23"), every(*(~handle.has_refused_as(kinds) for handle in cores)))
    fair: list[FairSelector] = [deliver, timers, *made.fair, *(made.ends if made.way.waits else ())]
    pulling = any_of(*(one.at("download", D.PULLING) for one in made.receivers))
    safe = host.some("acceptance", AcceptanceState.SAFE) & ~host.at("session", H.CLOSED)
    undecided = host.some("acceptance", AcceptanceState.ACCEPTED) | safe
    world.leads_to("P54", said("P54"), pulling, ~pulling, fair=fair)
    world.leads_to("P59", said("P59"), undecided, ~undecided, fair=fair)
    world.leads_to("P50", said("P50"), waiting(trainer, "send"), ~waiting(trainer, "send") | trainer.handle.is_down, fair=fair)
    told = every(*(one.at("download", D.HELD, D.DONE, D.LOST) for one in made.receivers))
    lost = host.at("acceptance", AcceptanceState.LOST, key=1)
    world.leads_to("P59 told", TOLD, lost, told, fair=fair)
    if "close" in made.way.orders:
        world.leads_to("P61", said("P61"), host.at("session", H.DRAINING), host.at("session", H.CLOSED), fair=fair)
    reached = {
        "settled": settled,
        "lost": lost,
        "retired": host.at("acceptance", AcceptanceState.RETIRED, key=1),
        "one of two": lost & held[0] & ~held[1] if len(held) > 1 else settled,
        "told before it began": any_of(*(one.at("download", D.LOST) & one.data("download", "attempt", 0) for one in made.receivers)),
        "during": trainer.handle.is_down & pulling & host.at("session", H.CLOSING, H.CLOSED),
        "safe": trainer.handle.is_down & host.at("acceptance", AcceptanceState.SAFE, key=1),
        "R17": trainer.at("lease", LeaseState.SUSPENDED) & trainer.some("source", SourceState.MOVING),
        "resumed": any_of(*(one.at("download", D.PULLING) & one.data("download", "attempt", 2) for one in made.receivers)),
    }
    for name in also:
        world.sometimes(name, REACHED[name], reached[name])
    return world


TOLD = "of a result that is lost every receiver hears, unless it has it"
REACHED = {
    "settled": "every receiver holds the result, and the host knows",
    "lost": "an accepted result is lost",
    "retired": "an accepted result is given up by its host",
    "one of two": "a result is lost although one of its receivers holds it",
    "told before it began": "a receiver hears of the loss before it was told to fetch",
    "during": "a download goes on though its source is dead and the host knows it",
    "safe": "the trainer is dead, and its result is safe with its host",
    "R17": "the trainer's lease is due while the payload moves",
    "resumed": "a download that broke off is taken up again",
}


def said(id_: str) -> str:
    """The property's statement."""
    return PROPERTIES[id_].statement
