"""Every race of SHUTDOWN, ABORT, CANCEL_TASK and RESULT_ACCEPTED, with crashes of either side and leases that may expire at any time.

One task, a result in up to two attempts whose payload waits at its source for one receiver, an attached trainer. One message may be
lost, one repeated, and each side may crash once, between any two effects of a step. Timers fire whenever they are armed, however many
messages wait: an observer that is stalled is the same as one whose messages are slow. Heartbeats are left out (``lease`` has them);
what they are here for, that a lease may be kept or expire, is contained in timers that may fire or not.
"""

from __future__ import annotations

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.world import World
from troth.models.worlds.protocol.order import pairs
from troth.models.worlds.protocol.promises import promise
from troth.models.worlds.protocol.reach import acceptances, races
from troth.models.worlds.protocol.session import Deal, session

PROMISES = (
    "P01", "P02", "P03", "P04", "P07", "P08", "P09", "P10", "P11", "P12", "P13", "P14", "P15", "P17", "P18", "P21", "P23", "P24", "P25",
    "P27", "P28", "P31", "P34", "P35", "P36", "P37", "P38", "P40", "P41", "P42", "P44", "P47", "P53", "P56", "P57", "P58", "P62", "P73",
    "P76", "P77",
)  # fmt: skip
RACES = ("R01", "R02", "R03", "R04", "R06", "R07", "R08", "R09", "R13", "R15", "R16", "R21", "R22", "R23", "R24")


def deal(bounds: Bounds) -> Deal:
    """What the world has. With it, and less to watch, ``Settlement`` is checked to be what the world refines."""
    return Deal(
        receivers=1,
        capacity=bounds.room,
        capacity_to_trainer=3 if bounds.duplication else bounds.room,
        losses=bounds.loss,
        duplicates=bounds.duplication,
        trainer_crashes=bounds.crashes,
        host_crashes=bounds.crashes,
        without=frozenset({"beat"}),
    )


@blueprint(
    "races",
    loss=Bound(1, "messages that may be lost", 0, 4),
    duplication=Bound(1, "messages that may be repeated", 0, 4),
    crashes=Bound(1, "1: each side may crash", 0, 1),
    room=Bound(1, "messages on their way to the host; with 2 these may be repeated too", 1, 3),
)
def build(bounds: Bounds) -> World:
    """One task through every race of its end: SHUTDOWN, ABORT, cancel, acceptance, lease, crashes."""
    world = World("races", "one task through every race of its end: SHUTDOWN, ABORT, cancel, acceptance, lease, crashes")
    made = session(world, deal(bounds), PROMISES, [acceptances()])
    promise(made, PROMISES)
    if bounds.loss and bounds.duplication and bounds.crashes:
        pairs(made)
        races(made, RACES)
    return world
