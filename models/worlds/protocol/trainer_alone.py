"""A trainer alone, among everything that its host's messages can be once a network has delayed and repeated them.

Any message that was ever right may come at any time, and its user may make any call at any time. What holds of a trainer here holds of
it with any host, over any network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from troth.models.closing import Give
from troth.models.expressions import Expr, every
from troth.models.world import World
from troth.models.worlds.protocol import agreement, answering, persisting, single
from troth.models.worlds.protocol.inside import Snapshot, seen
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.single import waiting
from troth.models.worlds.protocol.watched import Seen, Watch, Watched, broken, never
from troth.models.worlds.protocol.watching_trainer import trainer_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import TRAINER, TrainerConfig
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import OPEN, PublicationState
from troth.statemachines.trainer.states import TrainerSessionState

T, N = TrainerSessionState, PublicationState

WATCHED = (
    "P02", "P03", "P04", "P05", "P11", "P12", "P13", "P15", "P18", "P25", "P29", "P30", "P31", "P32", "P33", "P35", "P42", "P47", "P57",
    "P58", "P60", "P72", "P73", "P77", "P79",
)  # fmt: skip
"""What is watched of any trainer."""

STEPS: Mapping[str, tuple[Callable[[Seen], bool], ...]] = {
    "P81": (answering.trainer_unanswered, answering.payload_unsaid, answering.source_unanswered),
    "P84": (answering.told_wrong,),
    "P86": (answering.forgotten_early,),
    "P88": (answering.publishes_wrong,),
    "P89": (answering.deaf,),
    "P90": (answering.sources_jump,),
    "P101": (persisting.trainer_gives_up,),
    "P103": (persisting.trainer_asks_on,),
}
"""What is watched here beside."""


@frozen(kw_only=True)
class Memory:
    """What a world of this kind has."""

    tasks: int = 1
    room: int = 1
    epochs: int = 1
    receivers: int = 0
    """Receivers of a result's payload; 0: it rides in its message."""
    attempts: int = 1
    """How often a result may be published."""
    callers: int = 1
    """Threads that call receive()."""
    unlucky: bool = True
    """A task's payload may be lost."""
    other: bool = True
    """The user may also send other content, and give up."""
    ends: tuple[str, ...] = ("shutdown", "SHUTDOWN", "ABORT")
    tasks_are: tuple[str, ...] = ("offered", "asked about", "cancelled", "mistaken")
    late: bool = True
    """What the host says of results, and of the session, may also come when it means nothing any more."""
    only: tuple[str, ...] = ()
    """What is watched, where it is not everything: a memory of what came makes more states."""
    reached: tuple[str, ...] = ()
    """Races that the world contains."""


def alone(name: str, doc: str, has: Memory) -> World:
    """A world of this kind."""
    world = World(name, doc)
    config = TrainerConfig(limits=Limits(ledger_limit=has.room, result_attempts=has.attempts), launched=False)
    watches = [watch for watch in trainer_watches(has.epochs, has.tasks) if watch.id in WATCHED]
    watches += [never(id_, any_wrong(wrong)) for id_, wrong in STEPS.items()]
    watches.append(Watch("P87", (0, 0), answering.second_chance, {broken("P87"): lambda memory: memory == "broken"}))
    watches = [watch for watch in watches if not has.only or watch.id in has.only]
    core = Watched(TRAINER, [config], watches, frozenset({"lease", "beat", "join", "hello"}))
    trainer = Reading(world.party("trainer", core, stale_timers=False), TRAINER)
    nobody = world.party("nobody", lambda state, _event: (state, ()), initial=0)
    world.local(trainer.handle, nobody, "control")
    world.local(trainer.handle, nobody, "data")
    world.ignores(trainer.handle, c.Resolve, c.CloseLink, c.Offer, c.Release)
    _payloads(world, trainer, has)
    _user(world, trainer, has)
    _tasks(world, trainer, has)
    _results(world, trainer, has)
    _claims(world, trainer, has, watches)
    return world


def any_wrong(wrong: tuple[Callable[[Seen], bool], ...]) -> Callable[[Seen], bool]:
    """A watch for any of several faults."""
    return lambda step: any(one(step) for one in wrong)


# -- the surroundings --------------------------------------------------------------------------------------------------


def _fetching(known: frozenset[tuple[int, int]], event: Any) -> Any:
    """The trainer's receiver: fetches what it is told to, until it is told not to."""
    if isinstance(event, c.Received):
        said: Any = event.message
        one = (said.epoch, said.seq)
        return (known | {one} if isinstance(said, m.FetchPayload) else known - {one}), ()
    if event.payload not in known:
        return None
    epoch, seq = event.payload
    kind = m.PayloadArrived if event.call == "arrives" else m.PayloadLost
    return known - {event.payload}, (Give("trainer", c.Received("receivers", kind(epoch=epoch, seq=seq, receiver=0))),)


def _payloads(world: World, trainer: Reading, has: Memory) -> None:
    fetcher = world.party("fetcher", _fetching, initial=frozenset())
    world.local(trainer.handle, fetcher, "receivers")
    for epoch, seq in _pairs(has):
        for what in ("arrives", "is lost") if has.unlucky else ("arrives",):
            world.may(fetcher, what, payload=(epoch, seq), name=f"payload {epoch}/{seq} {what}")


def _pairs(has: Memory) -> list[tuple[int, int]]:
    return [(epoch, seq) for epoch in range(1, has.epochs + 1) for seq in range(1, has.tasks + 1)]


def _user(world: World, trainer: Reading, has: Memory) -> None:
    handle = trainer.handle

    def may(name: str, event: c.Event, when: Expr | None = None, times: int | None = None) -> None:
        world.may(handle, event, name=name, when=when, times=times)

    may("init", c.Called("init", 1, m.InitArguments(control_rank=True)), trainer.at("session", T.NEW), 1)
    for thread in range(has.callers):
        number = 2 + 10 * thread
        handed = trainer.some("ledger", LedgerState.HANDED)
        may(f"receive {number}", c.Called("receive", number), ~handed if has.callers == 1 else None)
        may(f"take {number}", c.Called("take", number), ~waiting(trainer, "receive") if has.callers == 1 else None)
        may(f"give up receive {number}", c.CallCancelled("receive", number))
    inline = has.receivers == 0
    may("send", c.Called("send", 3, m.SendArguments(content=0, inline=inline)))
    if has.other:
        may("send other", c.Called("send", 4, m.SendArguments(content=1, inline=inline)))
        may("give up send", c.CallCancelled("send", 3))
    if "shutdown" in has.ends:
        may("shutdown", c.Called("shutdown", 5))


def _tasks(world: World, trainer: Reading, has: Memory) -> None:
    """The host's messages about tasks, and about the session."""

    def may(message: c.Message, name: str, when: Expr | None = None) -> None:
        world.may(trainer.handle, c.Received("control", message), name=name, when=when)

    for epoch in range(1, has.epochs + 1):
        may(
            m.SessionOpen(epoch=epoch, instance=0, resume=False),
            f"SESSION_OPEN {epoch}",
            None if has.late else trainer.at("session", T.JOINING) | ~trainer.data("session", "epoch", epoch),
        )
        if "SHUTDOWN" in has.ends:
            may(m.Shutdown(epoch=epoch), f"SHUTDOWN {epoch}")
        if "ABORT" in has.ends:
            may(m.Abort(epoch=epoch), f"ABORT {epoch}")
    for epoch, seq in _pairs(has):
        at = f"{epoch}/{seq}"
        offer: dict[str, Any] = {"epoch": epoch, "seq": seq, "floor": seq, "receivers": max(1, has.receivers), "inline": True}
        may(m.TaskReady(attempt=1, content=0, **offer), f"TASK_READY {at}")
        if "mistaken" in has.tasks_are and (epoch, seq) == (1, 1):
            may(m.TaskReady(attempt=2, content=0, **offer), f"TASK_READY {at} again")
            may(m.TaskReady(attempt=2, content=1, **offer), f"TASK_READY {at} of other content")
        if "asked about" in has.tasks_are:
            may(m.TaskStatus(epoch=epoch, seq=seq), f"TASK_STATUS {at}")
        if "cancelled" in has.tasks_are:
            may(m.CancelTask(epoch=epoch, seq=seq), f"CANCEL_TASK {at}")


def _results(world: World, trainer: Reading, has: Memory) -> None:
    """The host's messages about results, and what happens to their payloads."""

    def may(event: c.Event, name: str, when: Expr | None = None) -> None:
        world.may(trainer.handle, event, name=name, when=when)

    for epoch, seq in _pairs(has):
        at, key = f"{epoch}/{seq}", seq
        rejected = trainer.at("publication", N.REJECTED, key=key)
        open_ = None if has.late else trainer.at("publication", *OPEN, key=key)
        settling = None if has.late else trainer.at("publication", N.SETTLING, key=key)
        for attempt in range(1, has.attempts + 1):
            # A host that has rejected a result does not accept it afterwards; it says UNKNOWN only of an attempt that is not the last.
            said = c.Received("control", m.ResultAccepted(epoch=epoch, seq=seq, attempt=attempt))
            may(said, f"RESULT_ACCEPTED {at} {attempt}", ~rejected if has.late else open_)
            if attempt < has.attempts:
                may(c.Received("control", m.ResultUnknown(epoch=epoch, seq=seq, attempt=attempt)), f"RESULT_UNKNOWN {at} {attempt}")
        may(c.Received("control", m.ResultRejected(epoch=epoch, seq=seq, reason=m.RejectReason.STALE)), f"RESULT_REJECTED {at}", open_)
        may(c.Received("control", m.ResultSourceReleased(epoch=epoch, seq=seq)), f"RESULT_SOURCE_RELEASED {at}", settling)
        for receiver in range(has.receivers):
            about = {"epoch": epoch, "seq": seq, "receiver": receiver}
            place, where = (seq, receiver), f"{at} {receiver}"
            may(c.Received("data", m.PayloadHeld(**about)), f"PAYLOAD_HELD {where}")
            may(c.Received("data", m.PayloadAbandoned(**about)), f"PAYLOAD_ABANDONED {where}")
            if epoch == 1:
                may(c.TransferProgressed("result", place), f"{where} progresses")
                may(c.TransferEnded("result", place, c.TransferOutcome.COMPLETE), f"{where} ends")
                may(c.EffectFailed(c.Offer("result", place)), f"{where} cannot be offered")


# -- races -------------------------------------------------------------------------------------------------------------


def _forgotten(now: Snapshot) -> bool:
    """A task was forgotten, and could be offered again by a late message."""
    return now.data("intake", "evicted") > 0 and now.at("session", T.READY)


def _passed(now: Snapshot) -> bool:
    """The reservation of the first task came to nothing, and the second was reserved since."""
    marks = (now.data("intake", "highest"), now.data("intake", "retry"), now.data("intake", "evicted"), now.data("intake", "floor"))
    return marks == (2, 0, 0, 2) and not now.keys("ledger", LedgerState.CANCELLED) and now.keys("ledger") == (2,)


RACES: Mapping[str, tuple[str, Callable[[Snapshot], bool]]] = {
    "R18": ("an offer comes again while its payload is coming in", lambda now: bool(now.keys("ledger", LedgerState.RESERVED))),
    "R19": ("an offer comes again after its task is over and forgotten", _forgotten),
    "R20": ("the late offer of a task whose reservation failed, after a newer one", _passed),
}
"""In this world any message may come next in any state, so a race is reached where its state is."""


# -- what is claimed ---------------------------------------------------------------------------------------------------


def _claims(world: World, trainer: Reading, has: Memory, watches: list[Watch]) -> None:
    def promised(id_: str, expr: Expr) -> None:
        world.always(id_, PROPERTIES[id_].statement, expr)

    watched = [watch.id for watch in watches]
    # A promise that needs something which this world does not have would only hold for the want of it.
    wants = {"P12": "ABORT" in has.ends, "P35": has.receivers > 0, "P44": "shutdown" in has.ends or "SHUTDOWN" in has.ends}
    promises = {id_: expr for id_, expr in single.of_trainer(trainer).items() if wants.get(id_, True) or id_ in watched}
    single.claim(world, trainer, watched, promises)
    promised("P06", trainer.handle.ledger_size <= has.room)
    promised("P82", seen(trainer.handle, TRAINER, agreement.trainer_waits))
    believes = (*agreement.TRAINER_BELIEVES, *([agreement.reads_again] if has.callers == 1 else []))
    promised("P85", every(*(seen(trainer.handle, TRAINER, one) for one in believes)))
    promised("P99", every(*(seen(trainer.handle, TRAINER, one) for one in agreement.TRAINER_AGREES)))
    kinds = (c.RefusalKind.VIOLATION, c.RefusalKind.DRIVER)
    trainer.handle.party.never_refuses = frozenset(kinds)
    promised("P23", ~trainer.handle.has_refused_as(kinds))
    states = (LedgerState.QUEUED, LedgerState.DELIVERED, LedgerState.COMPLETE, LedgerState.CANCELLED)
    for state in states:
        world.sometimes(f"task {state.value}", f"a task is {state.value}", trainer.some("ledger", state))
    for result in (N.SETTLED, N.REJECTED, N.CANCELLED):
        world.sometimes(f"result {result.value}", f"a result is {result.value}", trainer.some("publication", result))
    for race in has.reached:
        what, comes = RACES[race]
        world.sometimes(race, what, seen(trainer.handle, TRAINER, comes))
    world.sometimes("waits", "somebody waits in receive()", waiting(trainer, "receive"))
