"""A receiver alone: one download, with everything that its party, its source and its bytes can do.

Messages may come at any time and more than once; bytes move, stop, break off and arrive as they like, but only while they are pulled,
and not for ever.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from troth.models import jointly, timers
from troth.models.closing import Asked, Give
from troth.models.expressions import Expr
from troth.models.world import World
from troth.models.worlds.protocol import persisting
from troth.models.worlds.protocol.inside import Snapshot, seen, snapshot
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.watched import Seen, Watched, broken, never
from troth.models.worlds.protocol.watching_host import receiver_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import ReceiverConfig
from troth.statemachines.receiver import OVER, RECEIVER, DownloadState

S = DownloadState
KEY = (1, 0)
TRIES = 2


@frozen
class Wire:
    """The bytes, and how often they were asked for."""

    pulled: int = 0
    active: bool = False
    paused: bool = False
    """It broke off, or could not begin, and was not asked for again."""
    fresh: bool = False
    """Bytes moved a moment ago. Only where there is a clock."""
    timed: bool = False
    fault: bool = False
    """It was asked for while it was under way, and moving."""


def wire_step(wire: Wire, event: Any) -> Any:
    """One download's bytes."""
    match event:
        case Asked(effect=c.Pull()):
            again = evolve(wire, pulled=min(wire.pulled + 1, TRIES + 1), active=True, paused=False, fresh=False)
            return evolve(again, fault=wire.fault or wire.active or wire.fresh), ()
        case Asked():
            return evolve(wire, active=False, paused=False), ()
        case c.TimerFired():
            return evolve(wire, fresh=False), ()
    if not wire.active:
        return None
    if event.call == "progress":
        said = Give("receiver", c.TransferProgressed("payload", KEY))
        return (evolve(wire, fresh=True), (said, FRESH)) if wire.timed else (wire, (said,))
    what = {
        "complete": c.TransferEnded("payload", KEY, c.TransferOutcome.COMPLETE),
        "break off": c.TransferEnded("payload", KEY, c.TransferOutcome.FAILED),
        "fail": c.EffectFailed(c.Pull("payload", KEY)),
    }[event.call]
    return evolve(wire, active=False, fresh=False, paused=event.call != "complete"), (Give("receiver", what),)


FRESH = c.SetTimer("fresh", None, 0, "fresh")
TICKS = {"transfer_stall_s": 3, "pull_pause_s": 1, "result_retry_s": 2, "fresh": 2}
"""``fresh``: one tick less than a stall."""


def party_step(told: tuple[str, ...], event: Any) -> Any:
    """Whom it fetches for: remembers what it was told."""
    return (*told, type(event.message).__name__)[:2], ()


# -- what each step must be --------------------------------------------------------------------------------------------


def unsaid(step: Seen) -> bool:
    """Its source hears that it holds the payload, or that it gave up; unless the source has said itself that it is gone."""
    before, after = step.before.download, step.after.download
    inline, said = after.data.inline or before.data.inline, step.message
    held, gave_up = len(step.sent(m.PayloadHeld)), len(step.sent(m.PayloadAbandoned))
    again = any(isinstance(effect, c.SetTimer) and effect.limit == "result_retry_s" for effect in step.effects)
    if again != bool(held):
        return True  # what is not answered is said again
    if after.state is S.HELD:
        repeats = before.state is S.HELD and isinstance(step.event, c.TimerFired)
        return held != (1 if before.state is not S.HELD or repeats else 0) or gave_up != 0
    source_went = isinstance(said, m.PayloadGone) or (isinstance(said, m.DropPayload) and said.lost)
    ends = before.state is S.PULLING and after.state in (S.LOST, S.DROPPED) and not inline and not source_went
    return held != 0 or gave_up != int(ends)


def untold(step: Seen) -> bool:
    """Its party hears that the payload is here, or will not come, when that is so; of what it needs no more it hears nothing."""
    before, after = step.before.download.state, step.after.download.state
    arrived = before is S.PULLING and after in (S.HELD, S.DONE)
    missing = before in (S.IDLE, S.PULLING) and after is S.LOST
    return (len(step.sent(m.PayloadArrived)), len(step.sent(m.PayloadLost))) != (int(arrived), int(missing))


def unmoved(step: Seen) -> bool:
    """What happens to the download, and what it is told of it, is taken in."""
    before, after, said = step.before.download, step.after.download, step.message
    mine = isinstance(said, m.TaskMessage) and (said.epoch, said.seq) == (before.data.epoch, before.data.seq)
    mine = mine and getattr(said, "receiver", 0) == step.before.config.receiver
    if isinstance(step.event, c.Received):
        return _unheard(step, mine=mine)
    pulling, left = before.state is S.PULLING, before.data.attempt < step.before.config.limits.pull_attempts
    wrong = False
    match step.event:
        case c.TransferEnded(outcome=c.TransferOutcome.COMPLETE):
            first = before.data.inline or after.data.attempt == 1  # it is said from the first time on
            wrong = pulling and not (first and after.state is (S.DONE if before.data.inline else S.HELD))
        case c.TransferEnded() | c.EffectFailed(effect=c.Pull()):
            wrong = pulling and after.state is not (S.PULLING if left and not before.data.inline else S.LOST)
        case c.TimerFired():
            again = left and not (pulling and before.data.inline)
            wanted = before.state if again else {S.PULLING: S.LOST, S.HELD: S.DONE}.get(before.state, before.state)
            wrong = after.state is not wanted or (again and after.data.attempt != before.data.attempt + 1)
    return wrong


def _unheard(step: Seen, *, mine: bool) -> bool:
    """Whether a message does not lead where it must; one that is not about this download leads nowhere."""
    before, after, said = step.before.download, step.after.download, step.message
    goes: dict[DownloadState, DownloadState] = {}
    match said:
        case m.FetchPayload():
            return before.state is S.IDLE and after.state is not S.PULLING
        case m.DropPayload():
            if before.state is S.IDLE:
                return after.state is not (S.LOST if said.lost else S.DROPPED) or after.data.seq != 0
            goes = {S.PULLING: S.LOST if said.lost and not before.data.inline else S.DROPPED, S.HELD: S.DONE}
        case m.PayloadGone():
            goes = {S.PULLING: S.LOST, S.HELD: S.DONE}
        case m.PayloadReleased():
            goes = {S.HELD: S.DONE}
    return after.state is not (goes.get(before.state, before.state) if mine else before.state)


STEPS = {"P81": unsaid, "P84": untold, "P89": unmoved, "P90": persisting.receiver_misled, "P103": persisting.receiver_asks_on}


# -- what each state must be -------------------------------------------------------------------------------------------


def waits(now: Snapshot) -> bool:
    """P82."""
    return now.runs("stall") == now.at("download", S.PULLING, S.HELD)


def pulls(raw: Any, wire: Wire) -> bool:
    """P85: bytes are pulled only while they are wanted, and as often as is noted."""
    now = snapshot(RECEIVER, raw)
    if now is None:
        return True
    if wire.fault or (wire.active and not now.at("download", S.PULLING)):
        return False
    tried = wire.pulled == now.data("download", "attempt")
    return wire.pulled <= TRIES and (tried or not now.at("download", S.PULLING))


SEES = {"active": lambda wire: wire.active, "paused": lambda wire: wire.paused, "silent": lambda wire: wire.active and not wire.fresh}


def alone(name: str, doc: str, *, inline: bool = False, timed: bool = False) -> World:
    """One download."""
    world = World(name, doc)
    watches = (*receiver_watches(), *(never(id_, wrong) for id_, wrong in STEPS.items()))
    config = ReceiverConfig(limits=Limits(pull_attempts=TRIES))
    receiver = Reading(world.party("receiver", Watched(RECEIVER, [config], watches), stale_timers=False), RECEIVER)
    wire = world.party("wire", wire_step, initial=Wire(timed=timed), observe=SEES, stale_timers=False)
    party = world.party("party", party_step, initial=(), observe={"told": len})
    source = world.party("source", lambda state, _event: (state, ()), initial=0)
    world.local(receiver.handle, party, "party")
    world.local(receiver.handle, source, "data")
    world.takes(wire, c.Pull, c.CancelTransfer, by=receiver.handle)
    about = {"epoch": 1, "seq": 1}
    for name_, link, message in (
        ("is told to fetch", "party", m.FetchPayload(inline=inline, **about)),
        ("is told of the loss", "party", m.DropPayload(lost=True, **about)),
        ("is told to stop", "party", m.DropPayload(lost=False, **about)),
        ("hears of another loss", "party", m.DropPayload(lost=True, epoch=1, seq=2)),
        ("is released", "data", m.PayloadReleased(receiver=0, **about)),
        ("hears another released", "data", m.PayloadReleased(receiver=1, **about)),
        ("is told of the end", "data", m.PayloadGone(receiver=0, **about)),
        ("hears of another end", "data", m.PayloadGone(receiver=0, epoch=1, seq=2)),
    ):
        world.may(receiver.handle, c.Received(link, message), name=name_)
    world.may(wire, "progress", times=2, name="bytes move")
    for call in ("complete", "break off", "fail"):
        world.may(wire, call, name=f"bytes {call}")

    def claim(id_: str, expr: Expr) -> None:
        world.always(id_, PROPERTIES[id_].statement, expr)

    for watch in watches:
        claim(watch.id, ~receiver.handle.see(broken(watch.id)))
    claim("P82", seen(receiver.handle, RECEIVER, waits))
    claim("P85", jointly(pulls, receiver.handle, wire) & (party.told <= 1))
    kinds = (c.RefusalKind.VIOLATION, c.RefusalKind.DRIVER)
    receiver.handle.party.never_refuses = frozenset(kinds)
    claim("P23", ~receiver.handle.has_refused_as(kinds))
    begun = receiver.at("download", S.PULLING, S.HELD)
    if timed:
        _clock(world, receiver, wire)
        return world
    world.leads_to("P54", PROPERTIES["P54"].statement, begun, receiver.at("download", *OVER), fair=[timers])
    for state in (S.DONE, S.LOST, S.DROPPED):
        world.sometimes(f"download {state.value}", f"a download is {state.value}", receiver.at("download", state))
    return world


def _clock(world: World, receiver: Reading, wire: Any) -> None:
    """How long a download may do nothing."""
    world.clock(TICKS)
    paused = world.stopwatch("paused", wire.paused, most=3)
    silent = world.stopwatch("silent", wire.silent, most=7)
    pulling = receiver.at("download", S.PULLING)
    world.always("P91", PROPERTIES["P91"].statement, pulling >> ((paused.ticks <= 1) & (silent.ticks <= 6)))
    world.sometimes("stalls", "a download stalls", silent.ticks == 6)
