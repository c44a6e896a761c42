"""A refusal that must not be is found, each property sees its own kinds, and no other property sees a difference."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from troth.models import World, check
from troth.models.check import Verdict
from troth.models.handles import PartyHandle
from troth.models.parties import Mode, RefusedLocal
from troth.spec.core import Called, Refusal, RefusalKind, SetTimer, Step, TimerFired

VIOLATION, DRIVER = RefusalKind.VIOLATION, RefusalKind.DRIVER


class Picky:
    """Refuses ``viol`` and ``drv``, arms a timer with ``arm``, and counts what it took."""

    def __init__(self) -> None:
        self.n = 0

    def handle(self, event: Any) -> Step:
        """One step."""
        if isinstance(event, Called) and event.call in ("viol", "drv"):
            kind = VIOLATION if event.call == "viol" else DRIVER
            return Step(refusal=Refusal(kind, "rule", event.call))
        if isinstance(event, Called) and event.call == "arm":
            return Step(effects=(SetTimer("t", None, 0, "L"),))
        self.n = 5 if isinstance(event, TimerFired) else 9
        return Step()

    def snapshot(self) -> int:
        """Its state."""
        return self.n

    def restore(self, state: Any) -> None:
        """Back to a state."""
        self.n = state

    def observe(self) -> Mapping[str, bool | int]:
        """``n``."""
        return {"n": self.n}


def picky(*calls: str) -> tuple[World, PartyHandle]:
    """A world with one such party, to which each of these calls is made once."""
    world = World("picky")
    party = world.party("c", Picky)
    for call in calls:
        world.may(party, call, times=1)
    return world, party


def verdicts(world: World, *ids: str) -> dict[str, Verdict]:
    """Of each property checked."""
    return {p.property.id: p.verdict for p in check(world, properties=ids or None).properties}


def test_two_properties_of_one_party_see_their_own_kinds() -> None:
    world, party = picky("viol")
    world.never_refused("A", "no violation", party, kinds=[VIOLATION])
    world.never_refused("B", "no driver", party, kinds=[DRIVER])

    assert verdicts(world, "A")["A"] is Verdict.VIOLATED
    assert verdicts(world, "B")["B"] is Verdict.HOLDS


def test_a_refusal_is_remembered_whatever_comes_after_it() -> None:
    world, party = picky("arm", "viol")
    world.crash(party)
    world.never_refused("A", "no violation", party)
    world.step("S", "what was refused was refused", ~party.has_refused | party.has_refused.next)
    world.sometimes("C", "also after a crash", party.has_refused & party.is_down)

    assert verdicts(world, "S", "C") == {"S": Verdict.HOLDS, "C": Verdict.HOLDS}
    assert verdicts(world, "A")["A"] is Verdict.VIOLATED


def test_no_other_property_sees_whether_refusals_are_watched_for() -> None:
    for watched in (False, True):
        world = World("leak")
        party = world.party("c", Picky)
        once = world.budget("once", 1)
        world.may(party, "viol", times=once)
        world.may(party, "bump", when=once.left == 0)
        if watched:
            world.never_refused("A", "no violation", party)
        world.never("N", "never 9", party.see("n") == 9)

        assert verdicts(world, "N")["N"] is Verdict.VIOLATED


def test_what_was_refused_survives_a_renaming_and_a_copy() -> None:
    local = RefusedLocal(Mode.UP, 1, (), (VIOLATION,))

    assert local._replace(state=2) == RefusedLocal(Mode.UP, 2, (), (VIOLATION,))
    assert pickle.loads(pickle.dumps(local)).refused == (VIOLATION,)
