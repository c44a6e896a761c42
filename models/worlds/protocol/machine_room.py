"""Where a trainer's process lives: the guardian, the process, and what was not reported yet. The parties of world ``process``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, frozen

from troth.models.closing import Asked, Give
from troth.spec import messages as m
from troth.spec.core import (
    Called,
    EffectFailed,
    LinkLost,
    OwnerLost,
    ProcessExited,
    ProcessSignal,
    ProcessStarted,
    Received,
    SetTimer,
    SignalProcess,
    Spawn,
    TimerFired,
)


@frozen
class Room:
    """The machine room."""

    timed: bool = False
    """Whether grace and wait are measured here."""
    guardian: bool = True
    alone: bool = False
    """The host is gone, and the guardian knows."""
    wanted: bool = False
    """A process was asked for, once."""
    asked: bool = False
    """It was neither spawned nor refused yet."""
    refused: bool = False
    """That it cannot be spawned was reported."""
    orphan: bool = False
    """The host heard that the guardian is gone, and had a process."""
    ran: bool = False
    runs: bool = False
    warned: bool = False
    """TERM was sent."""
    termed: bool = False
    killed: bool = False
    starting: bool = False
    """The start is not reported yet."""
    exiting: bool = False
    """The exit is not reported yet."""
    reported: bool = False
    """The exit was reported."""
    grace: bool = False
    """TERM was sent less than its grace ago."""
    waiting: bool = False
    """KILL was sent less than its wait ago."""
    fault: bool = False
    """The host signalled whom, or when, it should not have."""


GRACE = SetTimer("grace", None, 0, "grace")
WAIT = SetTimer("wait", None, 0, "wait")


def room_step(room: Room, event: Any) -> Any:
    """What happens in the machine room."""
    match event:
        case Asked(effect=Spawn()):
            return evolve(room, asked=True, wanted=True, fault=room.wanted or room.fault), ()
        case Asked(effect=SignalProcess() as effect):
            return _signalled(room, effect)
        case TimerFired(timer="grace"):
            return evolve(room, grace=False), ()
        case TimerFired():
            return evolve(room, waiting=False), ()
        case LinkLost():
            return _host_gone(room)
        case Called(call=name):
            return HAPPENS[name](room)
    raise AssertionError(event)


def _signalled(room: Room, effect: SignalProcess) -> Any:
    """A signal; one that cannot be given may be reported as failed."""
    stray = not room.wanted or room.reported
    term = effect.signal is ProcessSignal.TERM
    early = not term and room.guardian and (not room.warned or room.grace)
    after = evolve(room, fault=room.fault or stray or early, warned=room.warned or term)
    if room.timed:
        after = evolve(after, grace=True) if term else evolve(after, waiting=True)
    timers = ((GRACE if term else WAIT),) if room.timed else ()
    if not room.runs:
        return [(after, timers), (after, (*timers, Give("host", EffectFailed(effect))))]
    heard = evolve(after, termed=True) if term else evolve(after, killed=True)
    # A process that is only just being started may miss it.
    return [(heard, timers), (after, timers)] if room.starting else (heard, timers)


def _host_gone(room: Room) -> Any:
    """The guardian sees the end of its host's pipe: it begins nothing more, and ends what runs."""
    if not room.guardian:
        return evolve(room, alone=True), ()
    return evolve(room, alone=True, asked=False, starting=False, exiting=False, termed=room.runs), ()


def _spawns(room: Room) -> Any:
    return (evolve(room, asked=False, ran=True, runs=True, starting=True), ()) if room.asked and room.guardian else None


def _cannot(room: Room) -> Any:
    return (evolve(room, asked=False, refused=True), (Give("host", EffectFailed(Spawn())),)) if room.asked else None


def _exits(room: Room) -> Any:
    return (evolve(room, runs=False, termed=False, killed=False, exiting=not room.alone), ()) if room.runs else None


def _obeys(room: Room) -> Any:
    return _exits(room) if room.killed else None


def _says_started(room: Room) -> Any:
    return (evolve(room, starting=False), (Give("host", ProcessStarted()),)) if room.starting else None


def _says_exited(room: Room) -> Any:
    """The start need not be reported any more then; if it still is, it means nothing."""
    if not room.exiting:
        return None
    said = (Give("host", ProcessExited()),)
    after = evolve(room, exiting=False, reported=True)
    return [(after, said), (evolve(after, starting=False), said)] if room.starting else (after, said)


def _guardian_dies(room: Room) -> Any:
    return (
        (evolve(room, guardian=False, orphan=room.wanted and not room.reported), (Give("host", OwnerLost()),))
        if room.guardian and not room.alone
        else None
    )


def _guardian_kills(room: Room) -> Any:
    return (evolve(room, killed=True), ()) if room.alone and room.guardian and room.runs and not room.killed else None


HAPPENS: Mapping[str, Callable[[Room], Any]] = {
    "spawns": _spawns,
    "cannot spawn": _cannot,
    "exits": _exits,
    "obeys KILL": _obeys,
    "reports the start": _says_started,
    "reports the exit": _says_exited,
    "guardian dies": _guardian_dies,
    "guardian kills": _guardian_kills,
}
"""What may happen in the room by itself."""


@frozen
class Told:
    """What a supervisor was told."""

    ended: int = 0
    stuck: bool = False


def told_step(told: Told, event: Any) -> Any:
    """A supervisor that only listens."""
    message = event.message if isinstance(event, Received) else None
    if isinstance(message, m.SessionEnded):
        return Told(min(told.ended + 1, 2), message.stuck), ()
    return told, ()
