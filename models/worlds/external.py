"""Launched trainers: the process, its guardian's reports, HELLO and the drain, under faults.

Each configuration takes one thing to two and leaves the others small: tasks, receivers, callers of the API, faults of the link, deaths of
processes. All of them have two attempts for tasks and results, and timers that may fire whenever they are armed; heartbeats are in
``lease``. A timer that is armed fires in the end, also that of a lease, whoever answers; that no wait needs a lease while its peer is there
shows in ``external/answers`` and in ``answers``. A policy ``on_unresponsive = "wait"`` only makes a lease wait
longer, so these have ``"fail"``, but for ``external/patient``.
"""

from __future__ import annotations

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.world import World
from troth.models.worlds.protocol.configured import ALWAYS, FETCHED, NO_BEATS, SCRIPT, configured
from troth.models.worlds.protocol.presence import answering
from troth.models.worlds.protocol.session import Deal

LAUNCHED = (*ALWAYS, "P55", "P69")
IN_THE_END = ("P48", "P49", "P50", "P51", "P61", "P63", "P70", "P74")
GIVEN_UP = ("give up init", "give up receive", "give up send")


@blueprint("external", loss=Bound(1, "messages that may be lost", 0, 3), crashes=Bound(1, "1: either side may crash", 0, 1))
def external(bounds: Bounds) -> World:
    """A launched trainer, a lost message, and the death of either process."""
    deal = Deal(
        launched=True, receivers=1, losses=bounds.loss, trainer_crashes=bounds.crashes, host_crashes=bounds.crashes, without=NO_BEATS,
    )  # fmt: skip
    promises = (*LAUNCHED, *FETCHED, "P50", "P54", "P59", "P61", "P63", *(("P71",) if bounds.crashes else ()))
    reached = ("R02", "R06", "R07", "R08", "R10", "R16", "R21", "R22", "R23", "R24", "R26") if bounds.loss and bounds.crashes else ()
    return configured("external", external.doc, deal, promises, reached, held_back=())


@blueprint("external/returns")
def returns(_bounds: Bounds) -> World:
    """Every call of a launched trainer returns, and every process and session ends."""
    deal = Deal(launched=True, receivers=1, losses=1, without=NO_BEATS)
    return configured("external/returns", returns.doc, deal, (*LAUNCHED, *FETCHED, *IN_THE_END, "P54", "P59"))


@blueprint(
    "external/answers",
    loss=Bound(1, "messages that may be lost", 0, 3),
    cuts=Bound(1, "how often the link may be cut", 0, 2),
)
def answers(bounds: Bounds) -> World:
    """Nobody orders an end and no lease expires: what was lost is asked for until it is answered, and so every call returns."""
    promises = (*LAUNCHED, *FETCHED, "P48", "P50", "P51", "P54", "P59", "P74")
    return answering(
        "external/answers", answers.doc, promises, launched=True, receivers=1, losses=bounds.loss, cuts=bounds.cuts, orders=(),
        calls=(*SCRIPT, "give up receive"),
    ).world  # fmt: skip


@blueprint("external/tasks")
def tasks(_bounds: Bounds) -> World:
    """Two tasks, one after the other, with a lost message."""
    deal = Deal(launched=True, tasks=2, losses=1, without=NO_BEATS)
    return configured("external/tasks", tasks.doc, deal, (*LAUNCHED, "P05", "P06", "P30", "P79"), ("R01", "R21"))


@blueprint("external/receivers")
def receivers(_bounds: Bounds) -> World:
    """A trainer launched for one task, whose result two receivers fetch."""
    deal = Deal(launched=True, one_shot=True, receivers=2, host_receives=False, losses=1, without=NO_BEATS)
    return configured("external/receivers", receivers.doc, deal, (*LAUNCHED, *FETCHED, "P43", "P50", "P54", "P59"))


@blueprint("external/calls")
def calls(_bounds: Bounds) -> World:
    """A script that gives up waiting, sends twice, sends something else, and shuts down at any time."""
    deal = Deal(
        launched=True, calls=(*SCRIPT, "resend", "other", "shutdown", *GIVEN_UP), orders=("stop", "close"), strangers=1, without=NO_BEATS,
    )  # fmt: skip
    return configured(
        "external/calls",
        calls.doc,
        deal,
        (*LAUNCHED, "P26", "P32", "P33", "P72", "P79", "P49", "P50"),
        ("R05",),
        held_back=("P49", "P50"),
    )


@blueprint("external/cut")
def cut(_bounds: Bounds) -> World:
    """The link is cut and opened again, at any time: the session goes on."""
    deal = Deal(launched=True, receivers=1, cuts=1, capacity=2, without=NO_BEATS)
    return configured("external/cut", cut.doc, deal, (*LAUNCHED, *FETCHED))


@blueprint("external/patient")
def patient(_bounds: Bounds) -> World:
    """A peer whose process lives is waited for, up to the limit."""
    deal = Deal(launched=True, fail_unresponsive=False, without=NO_BEATS)
    return configured("external/patient", patient.doc, deal, (*LAUNCHED, *IN_THE_END))
