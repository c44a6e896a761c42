"""What either side remembers: redelivery, staleness, eviction, the second chance, the fence, and what was decided about results.

One real core at a time, a Trainer or a Host, whose memory has room for few tasks; and every message that its peer can have sent, delayed
and repeated by a network, at any time. What holds here holds with any peer, over any network. Leases are left out, as if they never
ended.
"""

from __future__ import annotations

from troth.models.bounds import Bounds, blueprint
from troth.models.world import World
from troth.models.worlds.protocol import host_alone, trainer_alone
from troth.models.worlds.protocol.host_alone import Desk
from troth.models.worlds.protocol.trainer_alone import Memory

FEW = ("offered", "cancelled")
"""Of a host's messages about tasks, those that change something."""


@blueprint("ledger")
def ledger(_bounds: Bounds) -> World:
    """A trainer with two tasks and room for one: redelivery, the second chance, the fence, and every end."""
    return trainer_alone.alone("ledger", ledger.doc, Memory(tasks=2, reached=("R18", "R19", "R20")))


@blueprint("ledger/eviction")
def eviction(_bounds: Bounds) -> World:
    """A trainer with three tasks and room for two: the oldest that is over is forgotten, and stays forgotten."""
    only = ("P03", "P05", "P30", "P31", "P60", "P81", "P86")
    has = Memory(tasks=3, room=2, ends=(), other=False, unlucky=False, late=False, tasks_are=FEW, only=only, reached=("R19",))
    return trainer_alone.alone("ledger/eviction", eviction.doc, has)


@blueprint("ledger/anew")
def anew(_bounds: Bounds) -> World:
    """A trainer whose host opens a second session: the first one's tasks and results are gone, and its messages mean nothing."""
    has = Memory(epochs=2, receivers=1, ends=("ABORT",), late=False, tasks_are=FEW)
    return trainer_alone.alone("ledger/anew", anew.doc, has)


@blueprint("ledger/callers")
def callers(_bounds: Bounds) -> World:
    """A trainer with two threads in receive(): each task is handed to one of them, and put back if that one gives up."""
    only = ("P03", "P04", "P15", "P31", "P72", "P79", "P81", "P84")
    has = Memory(tasks=2, room=2, callers=2, other=False, unlucky=False, late=False, ends=("SHUTDOWN",), tasks_are=FEW, only=only)
    return trainer_alone.alone("ledger/callers", callers.doc, has)


@blueprint("ledger/results")
def results(_bounds: Bounds) -> World:
    """A trainer with one result, two attempts to publish it, and two receivers that come, stall, give up or hold it."""
    only = ("P12", "P13", "P32", "P33", "P35", "P42", "P47", "P57", "P73", "P77", "P81", "P84", "P86", "P88", "P89", "P90", "P101", "P103")
    has = Memory(receivers=2, attempts=2, unlucky=False, tasks_are=FEW, only=only)
    return trainer_alone.alone("ledger/results", results.doc, has)


@blueprint("ledger/host")
def host(_bounds: Bounds) -> World:
    """A host with two tasks and room for one: offers, questions, cancels, budgets, and every answer late or twice."""
    return host_alone.alone("ledger/host", host.doc, Desk(tasks=2, about=("task",), attempts=1))


@blueprint("ledger/payload")
def payload(_bounds: Bounds) -> World:
    """A host that keeps a task's payload for its trainer, who fetches it, stalls, or cannot be served."""
    return host_alone.alone("ledger/payload", payload.doc, Desk(inline=False, about=("task",)))


@blueprint("ledger/outcomes")
def outcomes(_bounds: Bounds) -> World:
    """A host and one result in two attempts, of which it is the only receiver."""
    return host_alone.alone("ledger/outcomes", outcomes.doc, Desk(about=("result",), offers=1, orders=("stop", "abort")))


@blueprint("ledger/receivers")
def receivers(_bounds: Bounds) -> World:
    """A host whose results have another receiver beside itself."""
    return host_alone.alone("ledger/receivers", receivers.doc, Desk(receivers=2, about=("result",), attempts=1, offers=1))


@blueprint("ledger/relay")
def relay(_bounds: Bounds) -> World:
    """A host that receives no results itself: it accepts them, and others fetch them."""
    return host_alone.alone("ledger/relay", relay.doc, Desk(own=False, about=("result",), attempts=1, offers=1))
