"""Snapshots: canonical, complete, and never taken from somebody else."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.test_families import some
from tests.spec.test_timers import lease
from tests.spec.toys import TURNSTILE_PARTY, everything
from troth.spec import Called, PartyCore, TimerFired
from troth.spec.errors import CoreError

CALLS = st.lists(st.tuples(st.sampled_from(["add", "finish", "evict"]), st.integers(1, 2)), max_size=12)
LEASES = st.lists(st.sampled_from([Called("take"), Called("free"), TimerFired("hold"), TimerFired("hold", None, 1)]), max_size=12)


@given(CALLS)
def test_a_family_is_what_its_snapshot_says(calls: list[tuple[str, int]]) -> None:
    """``restore(snapshot())`` is the identity, in this core and in a fresh one, before every step."""
    subject, other = some(), some()
    for name, key in calls:
        before = everything(subject)
        other.restore(subject.snapshot())
        subject.restore(subject.snapshot())
        assert everything(subject) == everything(other) == before
        assert subject.handle(Called(name, key)) == other.handle(Called(name, key))
        assert everything(subject) == everything(other)


@given(LEASES)
def test_timers_are_in_the_snapshot(events: list[Any]) -> None:
    """The running one, and the generation that may still come late."""
    subject = lease()
    for event in events:
        other = lease()
        other.restore(subject.snapshot())
        assert everything(subject) == everything(other)
        assert subject.handle(event) == other.handle(event)
        assert everything(subject) == everything(other)


def test_a_snapshot_is_plain_and_hashable() -> None:
    """Names of states and values of fields, machine by machine; then the timers."""
    gate = PartyCore(TURNSTILE_PARTY)
    gate.handle(Called("coin"))

    assert gate.snapshot() == (("OPEN", 1), (), ())
    assert len({gate.snapshot(), PartyCore(TURNSTILE_PARTY).snapshot()}) == 2


def test_a_snapshot_does_not_change_with_its_core() -> None:
    """It is a value."""
    subject = some(1)
    kept = subject.snapshot()
    copy = (*kept,) if isinstance(kept, tuple) else ()
    subject.handle(Called("add", 2))

    assert kept == copy
    assert kept != subject.snapshot()


FOREIGN: dict[str, Hashable] = {
    "not a tuple": "LOCKED",
    "nothing": (),
    "a machine too few": ((), ()),
    "a machine too many": (("LOCKED", 0), ("LOCKED", 0), (), ()),
    "an unknown state": (("AJAR", 0), (), ()),
    "a field too few": (("LOCKED",), (), ()),
    "a field too many": (("LOCKED", 0, 0), (), ()),
    "no state at all": ((), (), ()),
    "another's timer": (("LOCKED", 0), ((("hold", None), 0),), ()),
    "half a timer": (("LOCKED", 0), (("hold", None),), ()),
    "a number for a machine": (7, (), ()),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_snapshot_is_refused_and_changes_nothing(foreign: Hashable) -> None:
    """A core that took half of it would be in a state that no run leads to."""
    gate = PartyCore(TURNSTILE_PARTY)
    gate.handle(Called("coin"))
    before = everything(gate)
    with pytest.raises(CoreError, match="this is not a snapshot of turnstile"):
        gate.restore(foreign)

    assert everything(gate) == before


@pytest.mark.parametrize(
    "foreign",
    [
        (("FREE",), ((("hold", None), 2),), ()),
        (("FREE",), (), ((("hold", None), -1),)),
        (("HELD",), ((("grip", None), 0),), ()),
    ],
)
def test_a_timer_that_cannot_run_is_refused(foreign: Hashable) -> None:
    """A generation that is never given, or a timer that nobody owns."""
    with pytest.raises(CoreError, match=r"this is not a snapshot of toy \(no timer"):
        lease().restore(foreign)


def test_an_instance_that_is_absent_is_not_kept() -> None:
    """Two snapshots for one state would break the checker's count."""
    with pytest.raises(CoreError, match=r"this is not a snapshot of toy \(jobs keeps an instance that is absent\)"):
        some().restore((((1, "ABSENT"),), (), ()))


def test_the_snapshot_of_another_party_is_refused() -> None:
    """The likely slip."""
    with pytest.raises(CoreError, match="this is not a snapshot of toy"):
        some().restore(PartyCore(TURNSTILE_PARTY).snapshot())
