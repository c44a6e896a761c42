"""A host alone, among everything that its trainer's messages can be once a network has delayed and repeated them.

Any message that was ever right may come at any time, and its supervisor may give any order. What holds of a host here holds of it with
any trainer, over any network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from troth.models.expressions import Expr, every
from troth.models.world import World
from troth.models.worlds.protocol import agreement_host, answering_host, persisting, single
from troth.models.worlds.protocol.inside import Snapshot, seen
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.trainer_alone import any_wrong
from troth.models.worlds.protocol.watched import Seen, Watch, Watched, never
from troth.models.worlds.protocol.watching_host import host_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import HOST, HostConfig
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.host.delivery import DeliveryState
from troth.statemachines.host.states import HostSessionState

A, D, H = AcceptanceState, DeliveryState, HostSessionState

WATCHED = (
    "P07", "P08", "P09", "P11", "P18", "P21", "P24", "P27", "P28", "P32", "P34", "P36", "P38", "P53", "P57", "P58", "P76",
    "P97",
)  # fmt: skip

STEPS: Mapping[str, tuple[Callable[[Seen], bool], ...]] = {
    "P81": (answering_host.result_unanswered, answering_host.source_unanswered),
    "P84": (answering_host.asker_untold, answering_host.receivers_untold),
    "P88": (answering_host.trainer_untold, answering_host.asker_misled),
    "P89": (answering_host.deaf,),
    "P90": (answering_host.source_deaf,),
    "P101": (persisting.host_gives_up,),
    "P103": (persisting.host_asks_on,),
}


@frozen(kw_only=True)
class Desk:
    """What a world of this kind has."""

    tasks: int = 1
    room: int = 1
    receivers: int = 1
    own: bool = True
    """The host is receiver 0 of results."""
    inline: bool = True
    """Whether the task's payload rides along."""
    offers: int = 2
    """How often a task may be offered."""
    attempts: int = 2
    """How often a result may come."""
    about: tuple[str, ...] = ("task", "result")
    """Whose messages may come at any time: those about tasks, about results, about both; the others only where they matter."""
    orders: tuple[str, ...] = ("stop", "close", "abort")


def alone(name: str, doc: str, has: Desk) -> World:
    """A world of this kind."""
    world = World(name, doc)
    limits = Limits(acceptance_limit=has.room, task_attempts=has.offers, result_attempts=has.attempts)
    watches: list[Watch] = [watch for watch in host_watches(1, has.tasks) if watch.id in WATCHED]
    watches += [never(id_, any_wrong(wrong)) for id_, wrong in STEPS.items()]
    core = Watched(HOST, [HostConfig(limits=limits, launched=False, receives=has.own)], watches, frozenset({"lease", "session", "again"}))
    host = Reading(world.party("host", core, stale_timers=False), HOST)
    nobody = world.party("nobody", lambda state, _event: (state, ()), initial=0)
    for link in ("control", "data", "receivers", "supervisor"):
        world.local(host.handle, nobody, link)
    world.ignores(host.handle, c.CloseLink, c.Offer, c.Release)
    _orders(world, host, has)
    _tasks(world, host, has)
    _results(world, host, has)
    _claims(world, host, has, watches)
    return world


def _orders(world: World, host: Reading, has: Desk) -> None:
    def may(name: str, event: c.Event, times: int | None = None, when: Expr | None = None) -> None:
        world.may(host.handle, event, name=name, times=times, when=when)

    new, opening = host.at("session", H.IDLE), host.at("session", H.OPENING)
    may("start", c.Received("supervisor", m.StartSession(launch=1)), when=new)
    may("link up", c.LinkUp("control"), times=1, when=opening)
    may("SESSION_ACCEPTED", c.Received("control", m.SessionAccepted(epoch=1)), when=opening)
    free = host.at("delivery", D.IDLE, D.CANCELLING) & ~host.at("session", H.OPENING)
    execute = m.ExecuteTask(launch=1, receivers=has.receivers, inline=has.inline)
    may("execute", c.Received("supervisor", execute), times=has.tasks + 1, when=free)
    if "stop" in has.orders:
        may("stop", c.Received("supervisor", m.StopTask(launch=1)))
    live = host.at("session", H.READY, H.DRAINING)
    if "close" in has.orders:
        may("close", c.Received("supervisor", m.CloseSession(launch=1)), when=live)
        may("SESSION_CLOSED", c.Received("control", m.SessionClosed(epoch=1)), when=live)
    if "abort" in has.orders:
        may("abort", c.Received("supervisor", m.AbortSession(launch=1)), when=live)
        may("ABORT_ACCEPTED", c.Received("control", m.AbortAccepted(epoch=1)), when=host.at("session", H.ABORTING))


def _tasks(world: World, host: Reading, has: Desk) -> None:
    """The trainer's messages about tasks, and what happens to their payloads."""
    out = None if "task" in has.about else ~host.at("delivery", D.IDLE)

    def may(name: str, event: c.Event) -> None:
        world.may(host.handle, event, name=name, when=out)

    for seq in range(1, has.tasks + 1):
        for kind in (m.TaskAccepted, m.TaskReserved, m.TaskUnknown, m.TaskCancelled):
            may(f"{kind.__name__} {seq}", c.Received("control", kind(epoch=1, seq=seq)))
        for attempt in range(1, has.offers + 1):
            for reason in (m.FailReason.PAYLOAD, m.FailReason.BUSY):
                said = m.TaskFailed(epoch=1, seq=seq, attempt=attempt, reason=reason)
                may(f"TaskFailed {seq} {attempt} {reason.value}", c.Received("control", said))
        gone = m.TaskFailed(epoch=1, seq=seq, attempt=0, reason=m.FailReason.CANCELLED)
        may(f"TaskFailed {seq}", c.Received("control", gone))
        if has.inline:
            continue
        key = (seq, 0)
        may(f"PayloadHeld {seq}", c.Received("data", m.PayloadHeld(epoch=1, seq=seq, receiver=0)))
        may(f"PayloadAbandoned {seq}", c.Received("data", m.PayloadAbandoned(epoch=1, seq=seq, receiver=0)))
        may(f"payload {seq} progresses", c.TransferProgressed("task", key))
        may(f"payload {seq} ends", c.TransferEnded("task", key, c.TransferOutcome.COMPLETE))
        may(f"payload {seq} cannot be offered", c.EffectFailed(c.Offer("task", key)))


def _results(world: World, host: Reading, has: Desk) -> None:
    """The trainer's messages about results, and what the host's own receiver says of them."""
    late = "result" in has.about

    def may(name: str, event: c.Event, when: Expr | None = None) -> None:
        world.may(host.handle, event, name=name, when=when)

    for seq in range(1, has.tasks + 1):
        awaiting = host.at("acceptance", A.AWAITING, key=seq)
        when = None if late else awaiting
        for attempt in range(1, has.attempts + 1):
            for inline in (True, False) if late else (False,):
                said = m.ResultReady(epoch=1, seq=seq, attempt=attempt, content=0, inline=inline)
                may(f"ResultReady {seq} {attempt}{' inline' if inline else ''}", c.Received("control", said), when)
            if late:
                last = attempt == has.attempts
                asked = m.ResultStatus(epoch=1, seq=seq, attempt=attempt, last=last)
                may(f"ResultStatus {seq} {attempt}", c.Received("control", asked))
        if late:
            other = m.ResultReady(epoch=1, seq=seq, attempt=1, content=1, inline=True)
            may(f"ResultReady {seq} of other content", c.Received("control", other), ~awaiting)
        for delivered in (True, False):
            settled = m.ResultSourceSettled(epoch=1, seq=seq, delivered=delivered)
            may(f"ResultSourceSettled {seq} {delivered}", c.Received("control", settled), ~awaiting)
        if has.own:
            for receiver in range(has.receivers):
                about = {"epoch": 1, "seq": seq, "receiver": receiver}
                may(f"PayloadArrived {seq} {receiver}", c.Received("receivers", m.PayloadArrived(**about)))
                may(f"PayloadLost {seq} {receiver}", c.Received("receivers", m.PayloadLost(**about)))


def _claims(world: World, host: Reading, has: Desk, watches: list[Watch]) -> None:
    def promised(id_: str, expr: Expr) -> None:
        world.always(id_, PROPERTIES[id_].statement, expr)

    single.claim(world, host, [watch.id for watch in watches], single.of_host(host))

    def tried(now: Snapshot) -> bool:
        """No more often than may be."""
        return bool(now.data("delivery", "attempt") <= has.offers)

    promised("P06", (host.handle.remembered <= has.room) & seen(host.handle, HOST, tried))
    promised("P82", seen(host.handle, HOST, agreement_host.host_waits))
    promised("P85", every(*(seen(host.handle, HOST, one) for one in agreement_host.HOST_BELIEVES)))
    promised("P99", every(*(seen(host.handle, HOST, one) for one in agreement_host.HOST_AGREES)))
    kinds = (c.RefusalKind.VIOLATION, c.RefusalKind.DRIVER)
    host.handle.party.never_refuses = frozenset(kinds)
    promised("P23", ~host.handle.has_refused_as(kinds))
    for state in (D.DEFERRED, D.WAITING, D.CANCELLING):
        world.sometimes(f"task {state.value}", f"a task is {state.value}", host.at("delivery", state))
    for result in (A.SETTLED, A.LOST, A.RETIRED, A.REJECTED):
        world.sometimes(f"result {result.value}", f"a result is {result.value}", host.some("acceptance", result))
