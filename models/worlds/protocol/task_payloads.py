"""A task's payload on its way from its host to the trainer: both real, and a real receiver for every fetch of the trainer's.

Messages between a receiver and the host's source may be lost; bytes break off; the host may be unable to offer the payload at all. The
control link loses nothing here.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from troth.models import any_of, deliver, every, timers
from troth.models.claims import FairSelector
from troth.models.closing import Asked, Give
from troth.models.expressions import Expr
from troth.models.world import World
from troth.models.worlds.protocol import agreement, agreement_host
from troth.models.worlds.protocol.inside import seen
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.transfers import QUIET
from troth.models.worlds.protocol.watched import Watched, broken
from troth.models.worlds.protocol.watching_host import host_watches, receiver_watches
from troth.models.worlds.protocol.watching_trainer import trainer_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import HostConfig, ReceiverConfig, TrainerConfig
from troth.statemachines.host import HOST
from troth.statemachines.host.delivery import ACTIVE, UNANSWERED, DeliveryState
from troth.statemachines.host.process import ProcessState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.receiver import RECEIVER
from troth.statemachines.receiver import DownloadState as D
from troth.statemachines.shared.source import SourceState
from troth.statemachines.trainer import TRAINER
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.states import TrainerSessionState

T, H, K = TrainerSessionState, HostSessionState, LedgerState
KEY = (1, 0)
FETCHES = 2
WATCHED = ("P02", "P03", "P05", "P07", "P18", "P21", "P27", "P31", "P34", "P53", "P57", "P58")


@frozen
class Bytes:
    """Which of the trainer's receivers pulls, and whether the host offers."""

    pulling: str = ""
    offered: bool = False


def bytes_step(state: Bytes, event: Any) -> Any:
    """Bytes move while they are pulled, and arrive only while they are offered."""
    match event:
        case Asked(by=by, effect=c.Pull()):
            return evolve(state, pulling=by), ()
        case Asked(by=by, effect=c.CancelTransfer()):
            return evolve(state, pulling="" if state.pulling == by else state.pulling), ()
        case Asked(effect=effect):
            return evolve(state, offered=isinstance(effect, c.Offer)), ()
    if not state.pulling or (event.call == "arrives" and not state.offered):
        return None
    outcome = c.TransferOutcome.COMPLETE if event.call == "arrives" else c.TransferOutcome.FAILED
    said = [Give(state.pulling, c.TransferEnded("payload", KEY, outcome))]
    if state.offered:
        said.append(Give("host", c.TransferEnded("task", KEY, outcome)))
    return evolve(state, pulling=""), tuple(said)


def maker_step(made: int, event: Any) -> Any:
    """Whoever drives the trainer: makes a receiver for every fetch, and tells the last one what is meant for it."""
    said = event.message
    made += isinstance(said, m.FetchPayload)
    link = "party" if isinstance(said, m.FetchPayload | m.DropPayload) else "data"
    return made, (Give(f"receiver {made}", c.Received(link, said)),) if made else ()


def payload(name: str, doc: str) -> World:
    """Build it."""
    world = World(name, doc)
    limits = Limits(ledger_limit=1, acceptance_limit=1, task_attempts=FETCHES, pull_attempts=2)

    def watched(party: Any, config: Any, watches: Any) -> Watched:
        return Watched(party, [config], tuple(watch for watch in watches if watch.id in WATCHED), QUIET)

    trainer = Reading(
        world.party("trainer", watched(TRAINER, TrainerConfig(limits=limits), trainer_watches(1, 1)), stale_timers=False), TRAINER
    )
    host = Reading(world.party("host", watched(HOST, HostConfig(limits=limits), host_watches(1, 1)), stale_timers=False), HOST)
    receivers = [
        Reading(
            world.party(f"receiver {n}", watched(RECEIVER, ReceiverConfig(limits=limits), receiver_watches()), stale_timers=False), RECEIVER
        )
        for n in range(1, FETCHES + 1)
    ]
    world.duplex(trainer.handle, host.handle, "control", capacity=4, full="truncates")
    losses, maker = world.budget("losses", 1), world.party("maker", maker_step, initial=0)
    state = world.party("bytes", bytes_step, initial=Bytes())
    nobody = world.party("nobody", lambda state, _event: (state, ()), initial=0)
    world.local(trainer.handle, maker, "receivers")
    world.link(host.handle, maker, "data", lossy=losses, capacity=2, full="blocks")
    for one in receivers:
        world.local(one.handle, trainer.handle, "party", arrives_as="receivers")
        world.link(one.handle, host.handle, "data", lossy=losses, capacity=1, full="blocks")
        world.takes(state, c.Pull, c.CancelTransfer, by=one.handle)
    world.takes(state, c.Offer, c.Release, by=host.handle)
    world.local(host.handle, nobody, "supervisor")
    world.local(host.handle, nobody, "receivers")
    world.ignores(trainer.handle, c.Resolve, c.CloseLink)
    world.ignores(host.handle, c.Spawn, c.SignalProcess, c.CloseLink)
    world.may(state, "arrives", name="payload arrives")
    world.may(state, "breaks off", times=2, name="payload breaks off")
    live = host.at("source", SourceState.OFFERED, SourceState.MOVING, key=KEY)
    world.may(host.handle, c.EffectFailed(c.Offer("task", KEY)), times=1, when=live, name="payload cannot be offered")
    _drivers(world, trainer, host)
    _claims(world, trainer, host, receivers)
    return world


def _drivers(world: World, trainer: Reading, host: Reading) -> None:
    def order(message: m.LaunchMessage, when: Expr) -> None:
        world.may(host.handle, c.Received("supervisor", message), times=1, when=when, name=type(message).__name__)

    order(m.StartSession(launch=1), host.at("session", H.IDLE))
    world.may(host.handle, c.ProcessStarted(), when=host.at("process", ProcessState.SPAWNING), name="process starts")
    new = trainer.at("session", T.NEW) & host.at("process", ProcessState.RUNNING)
    world.may(trainer.handle, c.Called("init", 1, m.InitArguments(control_rank=True)), when=new, times=1, name="init")
    world.may(trainer.handle, c.LinkUp("control"), when=trainer.at("session", T.JOINING), times=1, name="link up")
    ready = host.at("delivery", DeliveryState.IDLE) & host.at("session", H.READY)
    order(m.ExecuteTask(launch=1, receivers=1, inline=False), ready)
    order(m.StopTask(launch=1), host.at("delivery", *ACTIVE))
    order(m.AbortSession(launch=1), host.at("delivery", *UNANSWERED))


def _claims(world: World, trainer: Reading, host: Reading, receivers: list[Reading]) -> None:
    def promised(id_: str, expr: Expr) -> None:
        world.always(id_, PROPERTIES[id_].statement, expr)

    of = {"trainer": {w.id for w in trainer_watches(1, 1)}, "host": {w.id for w in host_watches(1, 1)}}
    for id_ in WATCHED:
        parts = [~one.handle.see(broken(id_)) for one in (trainer, host) if id_ in of[one.handle.name]]
        parts += [~one.handle.see(broken(id_)) for one in receivers if id_ == "P21"]
        promised(id_, every(*parts) if len(parts) > 1 else parts[0])
    held = any_of(*(one.at("download", D.HELD, D.DONE) for one in receivers))
    promised("P62", host.at("source", SourceState.HELD, key=KEY) >> held)
    promised("P85", _believe(trainer, host, receivers))
    promised("P99", _agree(trainer, host))
    kinds = (c.RefusalKind.VIOLATION, c.RefusalKind.DRIVER)
    cores = [one.handle for one in (trainer, host, *receivers)]
    for handle in cores:
        handle.party.never_refuses = frozenset(kinds)
    promised("P23", every(*(~handle.has_refused_as(kinds) for handle in cores)))
    fair: list[FairSelector] = [deliver, timers]
    pulling = any_of(*(one.at("download", D.PULLING) for one in receivers))
    unanswered = host.at("delivery", *UNANSWERED)
    world.leads_to("P51", PROPERTIES["P51"].statement, unanswered, ~unanswered, fair=fair)
    world.leads_to("P54", PROPERTIES["P54"].statement, pulling, ~pulling, fair=fair)
    world.sometimes(
        "again",
        "a task is queued whose payload came only at the second offer",
        trainer.at("ledger", K.QUEUED, key=1) & receivers[0].at("download", D.LOST),
    )
    world.sometimes(
        "undelivered",
        "a task is given up because its payload never came",
        host.at("delivery", DeliveryState.CANCELLING) & receivers[1].at("download", D.LOST),
    )


def _believe(trainer: Reading, host: Reading, receivers: list[Reading]) -> Expr:
    """What each party believes is so; and a task is coming in as long as a receiver fetches it."""
    fetching = any_of(*(one.at("download", D.PULLING) for one in receivers))
    both = [seen(trainer.handle, TRAINER, fn) for fn in agreement.TRAINER_BELIEVES]
    both += [seen(host.handle, HOST, fn) for fn in agreement_host.HOST_BELIEVES]
    return every(*both) & (trainer.at("ledger", K.RESERVED, key=1) == fetching)


def _agree(trainer: Reading, host: Reading) -> Expr:
    """The machines of each party agree."""
    both = [seen(trainer.handle, TRAINER, fn) for fn in agreement.TRAINER_AGREES]
    return every(*both, *(seen(host.handle, HOST, fn) for fn in agreement_host.HOST_AGREES))
