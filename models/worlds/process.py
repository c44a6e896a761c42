"""The process of a launched trainer, from its launch to the certainty that nothing of it is left.

A real Host; the machine room, with the guardian and the process in it; a supervisor that counts what it is told. The trainer's own
words may come whenever its process runs, as far as an honest trainer can say them. The lease is left out: it is another world's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from troth.models import jointly, timers
from troth.models.bounds import Bounds, blueprint
from troth.models.expressions import Expr
from troth.models.handles import ActionHandle
from troth.models.world import World
from troth.models.worlds.protocol.inside import Snapshot, seen, snapshot
from troth.models.worlds.protocol.machine_room import HAPPENS, Room, Told, room_step, told_step
from troth.models.worlds.protocol.watched import Watched, keeps
from troth.spec import messages as m
from troth.spec.core import CloseLink, Received, SignalProcess, Spawn
from troth.spec.properties import PROPERTIES
from troth.statemachines import HOST, HostConfig
from troth.statemachines.host.process import ENDING as SIGNALLED
from troth.statemachines.host.process import ProcessState
from troth.statemachines.host.states import HostSessionState

S, H = ProcessState, HostSessionState
ENDING = (S.DOOMED, *SIGNALLED)

TICKS = {
    "launch_timeout_s": 3, "drain_limit_s": 2, "abort_limit_s": 2, "open_retry_s": 1, "natural_exit_s": 2, "term_grace_s": 3,
    "kill_wait_s": 2, "grace": 2, "wait": 1,
}  # fmt: skip
"""``grace`` and ``wait`` are measured in the room, one tick short: whatever comes on the tick comes after it."""

LONGEST = sum(TICKS[name] for name in ("drain_limit_s", "natural_exit_s", "term_grace_s", "term_grace_s", "kill_wait_s"))
"""From the beginning of an end to its report. The grace counts twice: a start that is heard late has its own."""

SAYS = (
    m.Hello(epoch=0, claim=m.Claim.MATCHING),
    m.SessionReady(epoch=1, proven=True),
    m.SessionClosed(epoch=1),
    m.AbortAccepted(epoch=1),
)
"""What the trainer may say while its process runs."""


class Launch:
    """The parts of these worlds."""

    def __init__(self, name: str, doc: str, *, timed: bool = False) -> None:
        self.world = world = World(name, doc)
        core = Watched(HOST, [HostConfig()], without=frozenset({"lease"}))
        self.host = world.party("host", core, stale_timers=False)
        self.room = world.party("room", room_step, initial=Room(timed=timed), observe=_seen_of_room, stale_timers=False)
        self.told = world.party("supervisor", told_step, initial=Told(), observe=lambda told: {"ended": told.ended, "stuck": told.stuck})
        nobody = world.party("nobody", lambda state, _event: (state, ()), initial=0)
        world.local(self.host, self.told, "supervisor", arrives_as="host")
        world.local(self.host, nobody, "control")
        world.local(self.host, nobody, "receivers")
        world.takes(self.room, Spawn, SignalProcess, by=self.host)
        world.ignores(self.host, CloseLink)
        for order in (m.StartSession(launch=1), m.CloseSession(launch=1), m.AbortSession(launch=1)):
            world.may(self.host, Received("supervisor", order), times=1, name=type(order).__name__)
        for message in SAYS:
            world.may(self.host, Received("control", message), when=self.room.runs, name=f"hears {type(message).__name__}")
        self.happen: dict[str, ActionHandle] = {}

    def happens(self, *names: str) -> list[ActionHandle]:
        """These things may happen in the room."""
        self.happen.update({name: self.world.may(self.room, name) for name in names})
        return [self.happen[name] for name in names]

    def state(self, fn: Callable[[Snapshot], bool], *, down: bool = True) -> Expr:
        """``fn`` of the host's machines."""
        return seen(self.host, HOST, fn, down=down)


def _seen_of_room(room: Room) -> dict[str, bool]:
    return {name: getattr(room, name) for name in ("runs", "guardian", "waiting", "fault")} | {"left": room.asked or room.runs}


# -- what is so in every state -----------------------------------------------------------------------------------------


def _waits(host: Snapshot) -> bool:
    """P82."""
    process = host.runs("process") == host.at("process", *ENDING)
    session = host.runs("session") == host.at("session", H.LAUNCHING, H.GREETED, H.DRAINING, H.ABORTING)
    return process and session and host.runs("again") == host.at("session", H.DRAINING, H.ABORTING)


def _believes(raw: Any, room: Room, told: Told) -> bool:
    """P85: what the host believes of the process is what it was told, and what it did about it."""
    host = snapshot(HOST, raw)
    if host is None:
        return True
    heard = room.ran and not room.starting
    cases = (
        (host.at("process", S.NONE), not room.wanted),
        (host.at("process", S.EXITED), not room.asked and not room.runs),
        (room.refused, host.at("process", S.STUCK)),
        (room.orphan and not told.ended, host.at("process", S.KILLING)),
        (host.at("process", S.SPAWNING, S.DOOMED), not heard),
        (room.starting or host.at("process", S.STUCK), True),
    )
    signalled = {S.TERMINATING.name: room.termed, S.KILLING.name: room.killed}.get(host.name("process"), True)
    return next((so for applies, so in cases if applies), (heard or room.orphan) and (signalled or not room.runs))


def _goes_on(host: Snapshot) -> bool:
    """P85: a session has a process that nobody is ending; what is ending is being ended."""
    if host.at("session", H.IDLE):
        return host.at("process", S.NONE)
    if host.at("session", H.CLOSED):
        return host.at("process", S.NONE, S.EXITED, S.STUCK, *ENDING)
    return host.at("process", *(ENDING if host.at("session", H.ABORTING, H.CLOSING) else (S.SPAWNING, S.RUNNING)))


def _honest(raw: Any, told: Told) -> bool:
    """P17: what was not reported as stuck is gone."""
    host = snapshot(HOST, raw)
    return host is None or not told.ended or told.stuck or host.at("process", S.NONE, S.EXITED)


def _joining(host: Snapshot) -> bool:
    return host.at("session", H.LAUNCHING, H.GREETED)


def _ending(host: Snapshot) -> bool:
    return host.at("session", H.DRAINING, H.ABORTING, H.CLOSING)


def _lingers(host: Snapshot) -> bool:
    """The trainer has closed its session by itself, and something of its process has to be ended."""
    return host.at("session", H.CLOSING) and host.data("session", "verdict") is m.Verdict.ENDED and host.at("process", S.TERMINATING)


def _claims(launch: Launch) -> None:
    world, host, room, told = launch.world, launch.host, launch.room, launch.told
    world.never("P16", PROPERTIES["P16"].statement, room.fault)
    gone = (told.ended <= 1) & ((told.ended == 1) >> (told.stuck | ~room.left))
    world.always("P17", PROPERTIES["P17"].statement, gone & jointly(_honest, host, told))
    world.always("P82", PROPERTIES["P82"].statement, launch.state(_waits))
    world.always("P85", PROPERTIES["P85"].statement, jointly(_believes, host, room, told) & launch.state(_goes_on))


@blueprint("process")
def process(_bounds: Bounds) -> World:
    """A launched trainer's process: launch, exit, TERM, KILL, reap, and the guardian's death."""
    launch = Launch("process", process.doc)
    world, host, room, told = launch.world, launch.host, launch.room, launch.told
    launch.happens(*(name for name in HAPPENS if name != "guardian kills"))
    fair = [launch.happen[name] for name in ("obeys KILL", "reports the start", "reports the exit")]
    _claims(launch)
    world.always("P17 said", "the end of a session is said when it is over", host.closed == (told.ended == 1))
    world.leads_to("P61", PROPERTIES["P61"].statement, host.draining, host.closed, fair=[timers])
    world.leads_to("P63", PROPERTIES["P63"].statement, launch.state(_ending), host.closed, fair=[timers])
    world.leads_to("P70", PROPERTIES["P70"].statement, host.closed, ~room.runs, fair=[timers, *fair])
    world.leads_to("P74", PROPERTIES["P74"].statement, launch.state(_joining), ~launch.state(_joining), fair=[timers])
    world.sometimes("survives", "a process survives KILL", told.stuck & room.runs)
    world.sometimes("unguarded", "a session whose guardian died is over", host.closed & ~told.stuck & ~room.guardian)
    world.sometimes("R25", "the trainer has ended, and something of its process lives on and is ended", launch.state(_lingers) & room.runs)
    return world


@blueprint("process/death")
def death(_bounds: Bounds) -> World:
    """The host dies, also between two effects of a step, and its guardian leaves nothing behind."""
    launch = Launch("process/death", death.doc)
    world, host, room = launch.world, launch.host, launch.room
    launch.happens(*(name for name in HAPPENS if name != "guardian dies"))
    pipe = world.link(host, room, "pipe")
    world.crash(host, 1, restarts=False, drops=[pipe], keeps=keeps)
    _claims(launch)
    fair = [launch.happen[name] for name in ("obeys KILL", "reports the start", "reports the exit", "guardian kills")]
    world.leads_to("P70", PROPERTIES["P70"].statement, host.closed | host.is_down, ~room.runs, fair=[timers, *fair])
    world.sometimes("alone", "the host is dead and the process lives", host.is_down & room.runs)
    return world


@blueprint("process/clock")
def clock(_bounds: Bounds) -> World:
    """How long an end may take, and that TERM has its grace and KILL its wait, by the clock."""
    launch = Launch("process/clock", clock.doc, timed=True)
    world, room, told = launch.world, launch.room, launch.told
    world.clock(TICKS)
    launch.happens(*(name for name in HAPPENS if name != "guardian kills"))
    _claims(launch)
    world.step("P94", PROPERTIES["P94"].statement, told.stuck | ~told.stuck.next | ~room.waiting)
    watch = world.stopwatch("ending", launch.state(_ending), most=LONGEST + 2)
    world.always("P93", PROPERTIES["P93"].statement, watch.ticks <= LONGEST)
    world.sometimes("longest", "an end takes as long as it may", watch.ticks == LONGEST)
    return world
