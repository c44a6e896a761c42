"""A trainer's session alone: handshake, link, orders, ends and lease, among everything that a host, a network and a user can do.

One task may come, with its payload at once, so that the session can be busy with a result. Timers are those of the session and its
lease; a result is not asked about again here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from troth.models.expressions import Expr, every
from troth.models.handles import PartyHandle, jointly
from troth.models.world import World
from troth.models.worlds.protocol import agreement, answering, answering_session, persisting, single
from troth.models.worlds.protocol.inside import seen, snapshot
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.trainer_alone import any_wrong
from troth.models.worlds.protocol.watched import Seen, Watched, never
from troth.models.worlds.protocol.watching_trainer import trainer_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import TRAINER, TrainerConfig
from troth.statemachines.shared.source import SourceState
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import OPEN, PublicationState
from troth.statemachines.trainer.session import BOUND
from troth.statemachines.trainer.states import TrainerSessionState

S, N, K = TrainerSessionState, PublicationState, LedgerState

WATCHED = (
    "P02", "P03", "P11", "P12", "P13", "P14", "P15", "P18", "P25", "P31", "P32", "P35", "P42", "P47", "P57", "P58", "P60", "P72", "P73",
    "P77", "P79", "P95", "P98",
)  # fmt: skip

STEPS: Mapping[str, tuple[Callable[[Seen], bool], ...]] = {
    "P71": (persisting.orphan_stays,),
    "P81": (
        answering_session.open_unanswered,
        answering_session.welcome_unanswered,
        answering_session.orders_unanswered,
        answering.trainer_unanswered,
        answering.payload_unsaid,
    ),
    "P84": (answering_session.told_wrong, answering.told_wrong),
    "P86": (answering.forgotten_early,),
    "P88": (answering_session.greets_wrong, answering_session.ends_wrong, answering_session.beats_wrong, answering.publishes_wrong),
    "P89": (answering_session.goes_wrong, answering_session.resumed_wrong, answering_session.lease_wrong),
    "P100": (persisting.quiet,),
    "P101": (persisting.trainer_gives_up,),
    "P103": (persisting.trainer_asks_on,),
    "P104": (answering_session.leaves_quietly,),
    "P105": (persisting.trainer_misjudges,),
}


@frozen(kw_only=True)
class Joining:
    """What a world of this kind has."""

    launched: bool = True
    one_shot: bool = False
    patient: bool = True
    task: bool = True
    """A task may come."""
    large: bool = False
    """Its result waits at a source, and bytes move."""
    strangers: bool = True
    """Messages of another session come, too."""


def link_step(_wanted: bool, event: Any) -> Any:
    """The link: whether its party wants it open."""
    return isinstance(event.effect, c.OpenLink), ()


def _payload(state: int, event: Any) -> Any:
    said = event.message
    here = (c.Send("party", m.PayloadArrived(epoch=said.epoch, seq=said.seq, receiver=0)),)
    return state, here if isinstance(said, m.FetchPayload) else ()


def alone(name: str, doc: str, has: Joining) -> World:
    """A world of this kind."""
    world = World(name, doc)
    config = TrainerConfig(
        limits=Limits(ledger_limit=1, result_attempts=1), launched=has.launched, one_shot=has.one_shot, fail_unresponsive=not has.patient
    )
    watches = [watch for watch in trainer_watches(2, 1) if watch.id in WATCHED]
    watches += [never(id_, any_wrong(wrong)) for id_, wrong in STEPS.items()]
    watches.append(persisting.TRAINER_LEASE)
    trainer = Reading(
        world.party("trainer", Watched(TRAINER, [config], watches, frozenset({"result", "source"})), stale_timers=False), TRAINER
    )
    link = world.party("link", link_step, initial=False, observe={"wanted": lambda wanted: wanted})
    payload = world.party("task payload", _payload, initial=0)
    nobody = world.party("nobody", lambda state, _event: (state, ()), initial=0)
    world.local(trainer.handle, payload, "receivers", arrives_as="party")
    world.local(payload, trainer.handle, "party", arrives_as="receivers")
    world.local(trainer.handle, nobody, "control")
    world.local(trainer.handle, nobody, "data")
    world.takes(link, c.OpenLink, c.CloseLink, by=trainer.handle)
    world.ignores(trainer.handle, c.Resolve, c.Offer, c.Release)
    _user(world, trainer, has)
    _host(world, trainer, link, has)
    _claims(world, trainer, link, has, [watch.id for watch in watches])
    return world


def _user(world: World, trainer: Reading, has: Joining) -> None:
    def may(name: str, event: c.Event, when: Expr | None = None) -> None:
        world.may(trainer.handle, event, name=name, when=when)

    for rank in (True, False):
        may(f"init {'0' if rank else '1'}", c.Called("init", 1, m.InitArguments(control_rank=rank)))
    may("give up init", c.CallCancelled("init", 1))
    may("give up another init", c.CallCancelled("init", 9))
    may("shutdown", c.Called("shutdown", 5))
    may("log", c.Called("log", 6))
    if has.task:
        may("receive", c.Called("receive", 2), trainer.at("session", *BOUND) & ~trainer.some("ledger", K.HANDED))
        may("take", c.Called("take", 2), trainer.some("ledger", K.HANDED))
        content = m.SendArguments(content=0, inline=not has.large)
        may("send", c.Called("send", 3, content), trainer.some("ledger", K.DELIVERED))


def _host(world: World, trainer: Reading, link: PartyHandle, has: Joining) -> None:
    def may(name: str, event: c.Event, when: Expr | None = None) -> None:
        world.may(trainer.handle, event, name=name, when=when)

    may("link up", c.LinkUp("control"), link.wanted)
    may("link lost", c.LinkLost("control"))
    may("cannot send", c.EffectFailed(c.Send("control", m.Heartbeat(epoch=1))))
    may("cannot dial", c.EffectFailed(c.OpenLink("control")))
    may("owner lost", c.OwnerLost())
    new = trainer.at("session", S.JOINING) | trainer.data("session", "epoch", 1)
    for epoch in (1, 2) if has.strangers else (1,):
        # A launched trainer has one host, with one epoch: it never gets another one's acceptance while it joins.
        if has.launched:
            may(
                f"HELLO_ACCEPTED {epoch}",
                c.Received("control", m.HelloAccepted(epoch=epoch)),
                None if epoch == 1 else ~trainer.at("session", S.JOINING),
            )
            may(f"SESSION_CONFIRMED {epoch}", c.Received("control", m.SessionConfirmed(epoch=epoch)))
            for retry in (True, False):
                said = m.HelloRejected(epoch=epoch, retry=retry)
                may(f"HELLO_REJECTED {epoch} {'retry' if retry else 'final'}", c.Received("control", said))
        for kind in (m.Shutdown, m.Abort, m.Heartbeat):
            may(f"{kind.__name__} {epoch}", c.Received("control", kind(epoch=epoch)))
    if has.launched:
        may("HELLO_REJECTED 0", c.Received("control", m.HelloRejected(epoch=0, retry=False)))
    else:
        for epoch, instance, resume in ((1, 0, False), (1, 0, True), (1, 1, False), (2, 1, False), (2, 1, True)):
            said_ = m.SessionOpen(epoch=epoch, instance=instance, resume=resume)
            may(f"SESSION_OPEN {epoch} of {instance}{' again' if resume else ''}", c.Received("control", said_))
    if has.task:
        offer = m.TaskReady(epoch=1, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=True)
        may("TASK_READY", c.Received("control", offer), new)
        open_, settling = trainer.at("publication", *OPEN, key=1), trainer.at("publication", N.SETTLING, key=1)
        may("RESULT_ACCEPTED", c.Received("control", m.ResultAccepted(epoch=1, seq=1, attempt=1)), open_)
        may("RESULT_SOURCE_RELEASED", c.Received("control", m.ResultSourceReleased(epoch=1, seq=1)), settling)
        may("CANCEL_TASK", c.Received("control", m.CancelTask(epoch=1, seq=1)), open_)
    if has.large:
        may("bytes move", c.TransferProgressed("result", (1, 0)), trainer.at("source", SourceState.OFFERED, SourceState.MOVING, key=(1, 0)))
        may("PAYLOAD_HELD", c.Received("data", m.PayloadHeld(epoch=1, seq=1, receiver=0)), trainer.some("publication", N.ACCEPTED))
        may("task bytes move", c.TransferProgressed("task", (1, 0)))


def _linked(raw: Any, wanted: bool) -> bool:
    now = snapshot(TRAINER, raw)
    return now is None or answering_session.linked(now, wanted=wanted)


def _claims(world: World, trainer: Reading, link: PartyHandle, has: Joining, watched: list[str]) -> None:
    def promised(id_: str, expr: Expr) -> None:
        world.always(id_, PROPERTIES[id_].statement, expr)

    single.claim(world, trainer, watched, single.of_trainer(trainer))
    believes = [*agreement.TRAINER_BELIEVES, agreement.reads_again]
    believes += [answering_session.one_shot_agrees] if has.one_shot else []
    so = every(*(seen(trainer.handle, TRAINER, fn) for fn in believes))
    promised("P82", seen(trainer.handle, TRAINER, answering_session.waits))
    promised("P85", so & jointly(_linked, trainer.handle, link))
    promised("P99", every(*(seen(trainer.handle, TRAINER, fn) for fn in (*agreement.TRAINER_AGREES, answering_session.agrees))))
    kinds = (c.RefusalKind.VIOLATION, c.RefusalKind.DRIVER)
    trainer.handle.party.never_refuses = frozenset(kinds)
    promised("P23", ~trainer.handle.has_refused_as(kinds))
    for state in (S.PASSIVE, S.READY, S.ABORTED, S.CLOSED, *([S.DRAINING] if has.task else [])):
        world.sometimes(f"session {state.value}", f"the session is {state.value}", trainer.at("session", state))
