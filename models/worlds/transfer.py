"""How a payload moves: one download by itself, and a result on its way from its trainer to its receivers.

Progress, stalls, breaks, resumption, the loss of a receiver, and the death of a source before a download and during it.
"""

from __future__ import annotations

from troth.models.bounds import Bounds, blueprint
from troth.models.world import World
from troth.models.worlds.protocol.receiver_alone import alone
from troth.models.worlds.protocol.task_payloads import payload
from troth.models.worlds.protocol.transfers import Way, claims, transfer


@blueprint("transfer/download")
def download(_bounds: Bounds) -> World:
    """One download: bytes that move, stop, break off or arrive, and messages of its source and its party at any time."""
    return alone("transfer/download", download.doc)


@blueprint("transfer/inline")
def inline(_bounds: Bounds) -> World:
    """A payload that came with its message: it is only decoded, and its source hears nothing."""
    return alone("transfer/inline", inline.doc, inline=True)


@blueprint("transfer/clock")
def clock(_bounds: Bounds) -> World:
    """How long one download may stand still, by the clock."""
    return alone("transfer/clock", clock.doc, timed=True)


@blueprint("transfer/result")
def result(_bounds: Bounds) -> World:
    """A result and two receivers, two breaks, and a lost message between a receiver and the source."""
    made = transfer("transfer/result", result.doc, Way(losses=1, breaks=2, moves=1))
    return claims(made, "settled", "lost", "one of two", "resumed")


@blueprint("transfer/death")
def death(_bounds: Bounds) -> World:
    """A result, two receivers, and a trainer that may die before the downloads, during them and after them."""
    made = transfer("transfer/death", death.doc, Way(breaks=1, dies=True, orders=("close",)))
    return claims(made, "settled", "lost", "one of two", "told before it began", "during")


@blueprint("transfer/given_up")
def given_up(_bounds: Bounds) -> World:
    """A result that its host gives up, by cancelling the task or by an abort, while two receivers fetch it."""
    made = transfer("transfer/given_up", given_up.doc, Way(breaks=0, tries=1, orders=("stop", "abort")))
    return claims(made, "settled", "lost", "retired")


@blueprint("transfer/sole")
def sole(_bounds: Bounds) -> World:
    """A result whose only receiver is the host itself: once it is here it is safe, whatever becomes of the trainer."""
    made = transfer("transfer/sole", sole.doc, Way(receivers=1, breaks=1, losses=1, dies=True, orders=("stop", "close")))
    return claims(made, "settled", "lost", "retired", "safe")


@blueprint("transfer/lease")
def lease(_bounds: Bounds) -> World:
    """A result that moves while the trainer's lease is due: bytes are life, and a stall is none."""
    made = transfer("transfer/lease", lease.doc, Way(receivers=1, breaks=1, moves=2, leases=True))
    return claims(made, "settled", "lost", "R17")


@blueprint("transfer/task")
def task(_bounds: Bounds) -> World:
    """A task's payload on its way to the trainer: offered, fetched, lost, offered again, and given up."""
    return payload("transfer/task", task.doc)
