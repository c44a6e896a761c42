"""A host's session alone: getting a trainer, keeping it and ending it, among everything that trainers, networks and orders can do.

One task may be out, so that the end of a session has something to end. Its process starts, ends and loses its guardian as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from troth.models.expressions import Expr, every
from troth.models.handles import PartyHandle, jointly
from troth.models.world import World
from troth.models.worlds.protocol import agreement_host, answering_host, answering_host_session, persisting, single
from troth.models.worlds.protocol.inside import Snapshot, seen, snapshot
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.session_alone import link_step
from troth.models.worlds.protocol.trainer_alone import any_wrong
from troth.models.worlds.protocol.watched import Seen, Watched, never
from troth.models.worlds.protocol.watching_host import host_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import HOST, HostConfig
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.host.delivery import ACTIVE, DeliveryState
from troth.statemachines.host.process import ALIVE, ProcessState
from troth.statemachines.host.session import BOUND, UNREADY
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.source import SourceState

S, D, A, X = HostSessionState, DeliveryState, AcceptanceState, ProcessState

WATCHED = ("P11", "P14", "P17", "P18", "P26", "P57", "P58", "P69", "P75", "P98")
OF_TASKS = ("P07", "P21", "P24", "P27", "P28", "P34", "P36", "P38", "P53", "P97")
"""Where no task goes out nothing could break these, so they are not claimed."""

STEPS: Mapping[str, tuple[Callable[[Seen], bool], ...]] = {
    "P81": (
        answering_host_session.hello_unanswered,
        answering_host_session.orders_unheard,
        answering_host.result_unanswered,
        answering_host.source_unanswered,
    ),
    "P84": (answering_host_session.supervisor_untold, answering_host.asker_untold, answering_host.receivers_untold),
    "P88": (
        answering_host_session.says_wrong,
        answering_host_session.beat_wrong,
        answering_host.trainer_untold,
        answering_host.asker_misled,
    ),
    "P89": (answering_host_session.goes_wrong, answering_host_session.lease_wrong, answering_host.deaf),
    "P101": (persisting.host_gives_up,),
    "P103": (persisting.host_asks_on,),
    "P105": (persisting.host_misjudges,),
}


@frozen(kw_only=True)
class Hosting:
    """What a world of this kind has."""

    launched: bool = True
    patient: bool = True
    task: bool = True
    inline: bool = True
    """Whether the task's payload rides along."""
    room: int = 1
    """Tasks that are remembered: with two, an accepted result may wait for its source while another task is out."""


def alone(name: str, doc: str, has: Hosting) -> World:
    """A world of this kind."""
    world = World(name, doc)
    limits = Limits(acceptance_limit=has.room, task_attempts=1, result_attempts=1)
    config = HostConfig(limits=limits, launched=has.launched, fail_unresponsive=not has.patient)
    watched = (*WATCHED, *OF_TASKS) if has.task else WATCHED
    watches = [watch for watch in host_watches(3, 1) if watch.id in watched]
    watches += [never(id_, any_wrong(wrong)) for id_, wrong in STEPS.items()]
    watches.append(persisting.HOST_LEASE)
    core = Watched(HOST, [config], watches, frozenset({"budget", "source"}))
    host = Reading(world.party("host", core, stale_timers=False), HOST)
    link = world.party("link", link_step, initial=False, observe={"wanted": lambda wanted: wanted})
    nobody = world.party("nobody", lambda state, _event: (state, ()), initial=0)
    for called in ("control", "data", "receivers", "supervisor"):
        world.local(host.handle, nobody, called)
    world.takes(link, c.OpenLink, c.CloseLink, by=host.handle)
    world.ignores(host.handle, c.Offer, c.Release, c.Spawn, c.SignalProcess)
    _orders(world, host, has)
    _trainer(world, host, link, has)
    _process(world, host, has)
    _claims(world, host, link, has, [watch.id for watch in watches])
    return world


def _orders(world: World, host: Reading, has: Hosting) -> None:
    def may(message: m.LaunchMessage, when: Expr | None = None, times: int | None = None) -> None:
        world.may(host.handle, c.Received("supervisor", message), name=type(message).__name__, when=when, times=times)

    may(m.StartSession(launch=1), host.at("session", S.IDLE, S.CLOSED))
    may(m.CloseSession(launch=1))
    may(m.AbortSession(launch=1))
    if has.task:
        free = ~host.at("delivery", *ACTIVE) & ~host.at("session", *UNREADY)
        may(m.ExecuteTask(launch=1, receivers=has.room, inline=has.inline), free, 2)
        may(m.StopTask(launch=1), host.at("delivery", *ACTIVE))


def _trainer(world: World, host: Reading, link: PartyHandle, has: Hosting) -> None:
    def may(name: str, event: c.Event, when: Expr | None = None) -> None:
        world.may(host.handle, event, name=name, when=when)

    may("link up", c.LinkUp("control"), link.wanted)
    may("link lost", c.LinkLost("control"))
    may("cannot send", c.EffectFailed(c.Send("control", m.Heartbeat(epoch=1))))
    may("cannot listen", c.EffectFailed(c.OpenLink("control")))
    said: list[Any] = [m.Heartbeat(epoch=1), m.Heartbeat(epoch=2), m.Log(epoch=1), m.SessionClosed(epoch=1), m.SessionClosed(epoch=2)]
    said += [m.AbortAccepted(epoch=1), m.SessionDraining(epoch=1)]
    said += [m.Hello(epoch=e, claim=claim) for e in (0, 1, 2) for claim in m.Claim]
    if has.launched:
        said += [m.SessionReady(epoch=e, proven=proven) for e in (1, 2) for proven in (True, False)]
    else:
        said += [m.SessionAccepted(epoch=e) for e in (1, 2, 3)]
        said += [m.SessionRejected(opened=o, epoch=e, retry=r) for o, e, r in ((1, 1, True), (1, 0, True), (1, 1, False), (2, 2, False))]
    for message in said:
        fields = " ".join(str(value) for value in _fields(message))
        may(f"{type(message).__name__} {fields}", c.Received("control", message))
    if has.task:
        for message in (m.TaskAccepted(epoch=1, seq=1), m.TaskCancelled(epoch=1, seq=1)):
            may(type(message).__name__, c.Received("control", message))
        result = m.ResultReady(epoch=1, seq=1, attempt=1, content=0, inline=has.inline)
        may("ResultReady", c.Received("control", result), host.at("acceptance", A.AWAITING, key=1))
        if has.room > 1:
            elsewhere = m.ResultReady(epoch=1, seq=1, attempt=1, content=0, inline=False)
            may("ResultReady elsewhere", c.Received("control", elsewhere), host.at("acceptance", A.AWAITING, key=1))
            arrived = m.PayloadArrived(epoch=1, seq=1, receiver=0)
            may("PayloadArrived", c.Received("receivers", arrived), host.at("delivery", D.FETCHING))
    if not has.inline:
        live = host.at("source", SourceState.OFFERED, SourceState.MOVING, key=(1, 0))
        may("bytes move", c.TransferProgressed("task", (1, 0)), live)
        may("result bytes move", c.TransferProgressed("result", (1, 0)))
        may("PayloadArrived", c.Received("receivers", m.PayloadArrived(epoch=1, seq=1, receiver=0)), host.at("delivery", D.FETCHING))


def _fields(message: Any) -> list[Any]:
    return [getattr(value, "value", value) for value in (getattr(message, one.name) for one in type(message).__attrs_attrs__)]


def _process(world: World, host: Reading, has: Hosting) -> None:
    if not has.launched:
        return
    coming = host.at("process", X.SPAWNING, X.DOOMED)
    world.may(host.handle, c.ProcessStarted(), when=coming, name="process starts")
    world.may(host.handle, c.EffectFailed(c.Spawn()), when=coming, name="process cannot start")
    world.may(host.handle, c.ProcessExited(), when=host.at("process", X.SPAWNING, X.DOOMED, *ALIVE), name="process exits")
    world.may(host.handle, c.OwnerLost(), name="guardian dies")


def _claims(world: World, host: Reading, link: PartyHandle, has: Hosting, watched: list[str]) -> None:
    def promised(id_: str, expr: Expr) -> None:
        world.always(id_, PROPERTIES[id_].statement, expr)

    def process(now: Snapshot) -> bool:
        return answering_host_session.process_agrees(now, launched=has.launched)

    def linked(raw: Any, wanted: bool) -> bool:
        now = snapshot(HOST, raw)
        return now is None or answering_host_session.linked(now, wanted=wanted)

    single.claim(world, host, watched, single.of_host_session(host))
    so = every(*(seen(host.handle, HOST, fn) for fn in (*agreement_host.HOST_BELIEVES, process)))
    agree = (*agreement_host.HOST_AGREES, answering_host_session.agrees)
    promised("P82", seen(host.handle, HOST, answering_host_session.waits))
    promised("P85", so & jointly(linked, host.handle, link))
    promised("P99", every(*(seen(host.handle, HOST, fn) for fn in agree)))
    kinds = (c.RefusalKind.VIOLATION, c.RefusalKind.DRIVER)
    host.handle.party.never_refuses = frozenset(kinds)
    promised("P23", ~host.handle.has_refused_as(kinds))
    for state in (*BOUND, S.ABORTING, S.CLOSED):
        world.sometimes(f"session {state.value}", f"the session is {state.value}", host.at("session", state))
