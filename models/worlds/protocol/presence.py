"""Who is there: limits that end a wait for somebody fire only once that one is gone, so that whatever else ends a wait is an answer.

A world of a session lets every timer fire, also the limit of a wait for a peer who is just about to answer. That is right for what must
hold at all times, and it hides whether anything but the limit ever ends a wait. Here the limits are as good as they can be:

- a *lease*, the wait in init() and the waits of an opening and of an end are over only once the other side is gone: dead, out of the
  session, or not in it because nobody began;
- TERM and KILL have their time only with a process whose trainer is in no session, and so hears of no end;
- the limits of what else may take its time (a result, a download, a source) never fire at all, but for a download whose source is
  gone, and dead whoever would have said so.

What is asked again is asked again at any time, as everywhere. The control link *merges* (``Deal.merges``), so no step is held back, and
everything is claimed under weak fairness: what can happen from some point on without a break happens. Losses and cuts are finite, but in
``answers/lossy``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from troth.models.claims import FairSelector, strong
from troth.models.expressions import Expr
from troth.models.properties import connects, deliver, timers
from troth.models.world import World
from troth.models.worlds.protocol.configured import NO_BEATS, breakable
from troth.models.worlds.protocol.promises import IN_THE_END, promise
from troth.models.worlds.protocol.session import Deal, Session, session
from troth.spec.properties import PROPERTIES
from troth.statemachines.host.delivery import UNANSWERED, DeliveryState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.trainer.session import BOUND, OPENING
from troth.statemachines.trainer.states import TrainerSessionState

T, H = TrainerSessionState, HostSessionState

TOO_LATE = frozenset({"budget", "source"})
"""Limits that never fire here: on the time that a task and a receiver may take."""
EXPIRES = frozenset({"lease", "join", "session", "stall"})
"""Limits that end a wait for one who is gone."""
ACTS = ("receive", "take", "send")
"""What a script that goes on does. Only P51 needs one that does."""
ROOM = 9
"""Messages in one direction; more than there are different ones, or the verdict would be unknown."""


def host_gone(s: Session) -> Expr:
    """The host is dead, or in no session and opening none."""
    return s.host.handle.is_down | s.host.at("session", H.IDLE, H.CLOSING, H.CLOSED)


def trainer_gone(s: Session) -> Expr:
    """The trainer is dead, or in no session and joining none. One that was aborted still answers."""
    return s.trainer.handle.is_down | s.trainer.at("session", T.NEW, T.PASSIVE, T.CLOSED)


def _limits(s: Session) -> None:
    world, trainer, host = s.world, s.trainer.handle, s.host.handle
    for timer in ("lease", "join"):
        world.fires(trainer, timer, when=host_gone(s))
    for timer in ("lease", "session"):
        world.fires(host, timer, when=trainer_gone(s))
    for one in s.receivers.of.values():
        world.fires(one.handle, "stall", when=trainer_gone(s) & host.is_down)
    if s.deal.launched:
        world.fires(host, "process", when=s.trainer.at("session", T.NEW, T.PASSIVE, *OPENING))


def answering(name: str, doc: str, promises: tuple[str, ...], *, expiry: bool = True, **deal: Any) -> Session:
    """A session in which nobody is given up who is there; without ``expiry`` those who are gone are not given up either."""
    world = World(name, doc)
    without = NO_BEATS | TOO_LATE | (frozenset() if expiry else EXPIRES)
    has = Deal(merges=True, capacity=ROOM, full="truncates", without=without, **deal)
    kept = tuple(id_ for id_ in promises if breakable(has, id_))
    made = session(world, has, kept)
    _limits(made)
    promise(made, (id_ for id_ in kept if id_ not in IN_THE_END))
    for id_ in kept:
        if id_ in IN_THE_END:
            when, then = IN_THE_END[id_](made)
            world.leads_to(id_, PROPERTIES[id_].statement, when, then, fair=fair(made, ACTS if id_ == "P51" else ()))
    _heard(made)
    expired = {one: one.at("lease", LeaseState.EXPIRED) for one in (made.trainer, made.host)}
    rightly = (expired[made.trainer] >> host_gone(made)) & (expired[made.host] >> ~made.trainer.at("session", *BOUND))
    world.always("given up", "who was given up is gone", rightly)
    return made


def _heard(s: Session) -> None:
    """What the trainer answers by itself, whatever its script does."""
    waits: list[tuple[str, str, tuple[DeliveryState, ...]]] = [
        ("P51 heard", "a task that goes out is acknowledged or refused, whatever the script does", UNANSWERED)
    ]
    if s.deal.losses or s.deal.unreliable or "stop" in s.deal.orders:
        waits.append(("P51 cancelled", "that a task was given up is acknowledged", (DeliveryState.CANCELLING,)))
    for name, statement, states in waits:
        s.world.leads_to(name, statement, s.host.at("delivery", *states), ~s.host.at("delivery", *states), fair=fair(s))


def fair(s: Session, acts: Iterable[str] = ()) -> list[FairSelector]:
    """What has its turn: the network, timers, bytes that can be had, a process that has nothing left to do; and these acts of a script.

    All of it weakly fair, but for the delivery of what may be lost any number of times: whoever says a thing again and again gets through.
    """
    found: list[FairSelector] = [
        strong(deliver) if s.deal.unreliable else deliver,
        timers,
        *s.receivers.arrive,
        *(s.script[name] for name in acts),
    ]
    if s.deal.cuts:
        found.append(connects)
    if s.deal.launched:
        found.append("host.process exits")
    if s.deal.launched and s.deal.host_crashes:
        found.append("trainer.owner lost")
    return found
