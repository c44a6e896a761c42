"""Attached trainers: nobody knows the other's process, the host opens the session, and either side may be started anew.

A host that was started anew is another instance and counts its epochs from one; a trainer that was started anew remembers nothing.
Each configuration takes one thing to two and leaves the others small; all have two attempts for tasks and results. Heartbeats are in
``lease``.
"""

from __future__ import annotations

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.world import World
from troth.models.worlds.protocol.configured import ALWAYS, FETCHED, NO_BEATS, SCRIPT, configured
from troth.models.worlds.protocol.session import Deal

IN_THE_END = ("P48", "P49", "P50", "P51", "P61", "P63", "P74")


@blueprint("attach", loss=Bound(1, "messages that may be lost", 0, 3), cuts=Bound(1, "how often the link may be cut", 0, 2))
def attach(bounds: Bounds) -> World:
    """An attached trainer over a link that is cut and loses a message, and everything that must end ends."""
    deal = Deal(receivers=1, losses=bounds.loss, cuts=bounds.cuts, without=NO_BEATS)
    reached = ("R01", "R02", "R03", "R04", "R06", "R08", "R09", "R13", "R15", "R16", "R21") if bounds.loss else ()
    return configured("attach", attach.doc, deal, (*ALWAYS, *FETCHED, *IN_THE_END, "P54", "P59"), reached)


@blueprint("attach/tasks")
def tasks(_bounds: Bounds) -> World:
    """Two tasks, one after the other, with a repeated message."""
    deal = Deal(
        tasks=2, duplicates=1, capacity_to_trainer=3, orders=("stop", "close"), calls=(*SCRIPT, "give up send"),
        without=NO_BEATS,
    )  # fmt: skip
    return configured("attach/tasks", tasks.doc, deal, (*ALWAYS, "P05", "P06", "P30", "P79"), ("R12", "R28"))


@blueprint("attach/repeats")
def repeats(_bounds: Bounds) -> World:
    """Any message is repeated, in either direction, and comes late."""
    deal = Deal(receivers=1, duplicates=1, capacity=2, without=NO_BEATS)
    return configured("attach/repeats", repeats.doc, deal, (*ALWAYS, *FETCHED))


@blueprint("attach/receivers")
def receivers(_bounds: Bounds) -> World:
    """Two tasks with two receivers each, and a lost message."""
    deal = Deal(tasks=2, receivers=2, losses=1, without=NO_BEATS)
    return configured("attach/receivers", receivers.doc, deal, (*ALWAYS, *FETCHED, "P05", "P06", "P30"))


@blueprint("attach/host_again")
def host_again(_bounds: Bounds) -> World:
    """The host dies and another instance opens above the session that the trainer is still in."""
    deal = Deal(tasks=2, epochs=2, host_crashes=1, host_restarts=True, without=NO_BEATS)
    return configured("attach/host_again", host_again.doc, deal, (*ALWAYS, "P50", "P61", "P63", "P74"), ("R29", "R30"))


@blueprint("attach/trainer_again")
def trainer_again(_bounds: Bounds) -> World:
    """The trainer dies and another process takes its place: its predecessor's session is over, and no task runs twice."""
    deal = Deal(tasks=2, receivers=1, trainer_crashes=1, trainer_restarts=True, inits=2, without=NO_BEATS)
    return configured("attach/trainer_again", trainer_again.doc, deal, (*ALWAYS, "P48", "P50", "P61", "P63", "P74"), ("R22", "R23", "R24"))
