"""Timers: generations, stale firings, and what a machine must have stopped when it is over."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.toys import Lamp, core, everything, lamp, row
from troth.spec import (
    Called,
    CancelTimer,
    Family,
    Ignore,
    Machine,
    PartyCore,
    Refuse,
    SetTimer,
    TimerFired,
    To,
    called,
    cancel_timer,
    effect,
    set_timer,
    timer,
)
from troth.spec.core import Refusal, RefusalKind
from troth.spec.errors import CoreError

OFF, ON, BROKEN = Lamp.OFF, Lamp.ON, Lamp.BROKEN


class Lease(Enum):
    """A lease as small as can be."""

    FREE = "free"
    HELD = "held"
    LOST = "lost"


HOLD = set_timer("hold", "WAIT_S")

LEASE = Machine(
    "lease",
    Lease,
    initial=Lease.FREE,
    final={Lease.LOST},
    timers=["hold"],
    rows=[
        row("H1", Lease.FREE, "take", Lease.HELD, [HOLD]),
        row("H2", Lease.HELD, "take", Lease.HELD, [HOLD]),
        row("H3", Lease.HELD, "free", Lease.FREE, [cancel_timer("hold")]),
        row("H4", Lease.HELD, "due", Lease.LOST),
    ],
    ignore=[Ignore(("take", "free"), Lease.LOST, "it is over"), Ignore("free", Lease.FREE, "it is free")],
    refuse=[Refuse("due", (Lease.FREE, Lease.LOST), "no timer runs")],
)
ROUTES = [called("take", To("lease", "take")), called("free", To("lease", "free")), timer("hold", To("lease", "due"))]
TAKE, FREE = Called("take"), Called("free")


def lease() -> PartyCore:
    """A lease."""
    return core(LEASE, routes=ROUTES)


def generation(step: Any) -> int:
    """The generation of the one timer that a step set."""
    [found] = [e.generation for e in step.effects if isinstance(e, SetTimer)]
    return int(found)


def test_a_firing_of_the_running_generation_is_taken() -> None:
    """And the timer no longer runs."""
    subject = lease()
    now = generation(subject.handle(TAKE))
    assert subject.armed == {("hold", None): now}

    step = subject.handle(TimerFired("hold", None, now))

    assert step.rows == ("lease.H4",)
    assert subject.armed == {}


def test_a_firing_of_the_generation_before_is_dropped() -> None:
    """It was under way when the timer was set anew; no row sees it."""
    subject = lease()
    old = generation(subject.handle(TAKE))
    new = generation(subject.handle(TAKE))
    before = everything(subject)

    step = subject.handle(TimerFired("hold", None, old))

    assert old != new
    assert step.rows == ("timer.hold.stale",)
    assert step.effects == ()
    assert everything(subject) == before


def test_a_firing_after_a_cancel_is_dropped() -> None:
    """The same, when the timer was stopped."""
    subject = lease()
    old = generation(subject.handle(TAKE))
    subject.handle(FREE)

    assert subject.handle(TimerFired("hold", None, old)).rows == ("timer.hold.stale",)
    assert subject.state("lease") is Lease.FREE


def test_a_cancelled_firing_does_not_pass_for_the_next_one() -> None:
    """The generation goes on from the one that was cancelled."""
    subject = lease()
    old = generation(subject.handle(TAKE))
    subject.handle(FREE)
    new = generation(subject.handle(TAKE))

    assert old != new
    assert subject.handle(TimerFired("hold", None, old)).rows == ("timer.hold.stale",)
    assert subject.handle(TimerFired("hold", None, new)).rows == ("lease.H4",)


def test_a_cancel_is_an_effect_even_when_nothing_runs() -> None:
    """The driver's cancel is idempotent; only the core knows what runs."""
    machine = lamp(row("L1", OFF, "push", ON, [cancel_timer("hold")]), row("L2", ON, "push", BROKEN), timers=["hold"])
    subject = core(machine, routes=[called("push", To("lamp", "push")), timer("hold", To("lamp", "push"))])

    assert subject.handle(Called("push")).effects == (CancelTimer("hold", None),)
    assert subject.armed == {}


def test_generations_are_few() -> None:
    """A counter would make every state of the lease a new one, for ever."""
    subject = lease()
    seen = set()
    for _ in range(6):
        subject.handle(TAKE)
        seen.add(subject.snapshot())

    assert len(seen) == 2


def test_a_refused_firing_is_still_to_come() -> None:
    """The whole step is rolled back, the firing of the timer too."""
    machine = lamp(
        row("L1", OFF, "push", ON, [set_timer("glow", "WAIT_S")]),
        row("L2", ON, "push", BROKEN, [cancel_timer("glow")]),
        timers=["glow"],
        refuse=[Refuse("due", Lamp, "not now")],
    )
    subject = core(machine, routes=[called("push", To("lamp", "push")), timer("glow", To("lamp", "due"))])
    now = generation(subject.handle(Called("push")))
    before = everything(subject)

    step = subject.handle(TimerFired("glow", None, now))

    assert step.refusal == Refusal(RefusalKind.DRIVER, "lamp.on.due", "not now")
    assert everything(subject) == before


def test_a_refusal_takes_back_the_timers_that_were_set_and_stopped_on_the_way() -> None:
    """Generations and all: the snapshot is identical."""
    machine = lamp(
        row("L1", OFF, "start", ON, [set_timer("old", "WAIT_S")]),
        row("L2", ON, "push", BROKEN, [set_timer("new", "WAIT_S"), cancel_timer("old")]),
        timers=["old", "new"],
        fill=True,
    )
    never = lamp(row("N1", OFF, "start", ON), row("N2", ON, "start", BROKEN), name="never", refuse=[Refuse("push", Lamp, "no")])
    routes = [
        called("start", To("lamp", "start")),
        called("push", To("lamp", "push"), To("never", "push")),
        called("other", To("never", "start")),
        timer("old", To("lamp", "push")),
        timer("new", To("lamp", "push")),
    ]
    subject = core(machine, never, routes=routes)
    subject.handle(Called("start"))
    before = everything(subject)

    step = subject.handle(Called("push"))

    assert step.refusal is not None
    assert step.rows == ("lamp.L2", "never.off.push")
    assert everything(subject) == before


def test_a_machine_that_is_over_has_stopped_its_timers() -> None:
    """One that fires into a final state would be a decision that nobody wrote down."""
    machine = lamp(
        row("L1", OFF, "push", ON, [set_timer("glow", "WAIT_S")]),
        row("L2", ON, "push", BROKEN),
        timers=["glow"],
        final={BROKEN},
    )
    subject = core(machine, routes=[called("push", To("lamp", "push")), timer("glow", To("lamp", "push"))])
    subject.handle(Called("push"))
    before = everything(subject)
    with pytest.raises(CoreError, match=r"lamp is over \(BROKEN\) but its timer 'glow' still runs; cancel it in the row"):
        subject.handle(Called("push"))

    assert everything(subject) == before


def test_an_effect_cannot_set_a_timer_that_its_machine_does_not_own() -> None:
    """``effect`` is opaque at import, so this one is found when it is met."""
    sly = effect("sly", lambda firing: SetTimer("glow", None, 0, "WAIT_S"))
    subject = core(lamp(row("L1", OFF, "push", ON, [sly]), row("L2", ON, "push", BROKEN)))
    with pytest.raises(CoreError, match="row lamp.L1: timer 'glow' is not owned by lamp; add it to timers="):
        subject.handle(Called("push"))


def keyed() -> PartyCore:
    """A family in which each instance has a timer of its own."""
    machine = lamp(
        row("L1", OFF, "push", ON, [set_timer("glow", "WAIT_S", keyed=True)]),
        row("L2", ON, "push", OFF, [cancel_timer("glow", keyed=True)]),
        row("L3", ON, "due", BROKEN),
        row("L4", BROKEN, "push", OFF),
        timers=["glow"],
        family=Family("number", 3),
    )
    routes = [
        called("push", To("lamp", "push", lambda view, event: event.number)),
        timer("glow", To("lamp", "due", lambda view, event: event.key)),
    ]
    return core(machine, routes=routes)


def test_each_instance_has_a_timer_of_its_own() -> None:
    """Under its own key."""
    subject = keyed()
    subject.handle(Called("push", 1))
    subject.handle(Called("push", 2))
    assert subject.armed == {("glow", 1): 0, ("glow", 2): 0}

    subject.handle(TimerFired("glow", 2, 0))

    assert subject.state("lamp", 1) is ON
    assert subject.state("lamp", 2) is BROKEN
    assert subject.armed == {("glow", 1): 0}


def test_an_instance_that_goes_leaves_no_timer_behind() -> None:
    """Neither running nor remembered."""
    subject = keyed()
    fresh = subject.snapshot()
    subject.handle(Called("push", 1))
    subject.handle(Called("push", 1))

    assert subject.snapshot() == fresh


@given(st.lists(st.sampled_from(["take", "free", "due", "late"]), max_size=20))
def test_a_stale_firing_never_moves_a_lease(plan: list[str]) -> None:
    """Whatever is set and stopped: the one firing that may be late is the one before the last, and it is dropped."""
    subject = lease()
    last: int | None = None
    for what in plan:
        running = subject.armed.get(("hold", None))
        before = subject.snapshot()
        if what == "due" and running is not None:
            subject.handle(TimerFired("hold", None, running))
            last = None
        elif what == "late" and last is not None and last != running:
            assert subject.handle(TimerFired("hold", None, last)).rows == ("timer.hold.stale",)
            assert subject.snapshot() == before
        elif what in ("take", "free"):
            subject.handle(Called(what))
            last = running if running is not None else last
            assert last is None or last != subject.armed.get(("hold", None))
