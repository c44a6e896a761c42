"""The jugs of the film "Die Hard 3": four gallons from a jug of five and one of three.

After Leslie Lamport's module DieHard in the repository tlaplus/Examples (``specifications/DieHard``): 16 distinct states, and the
shortest solution takes six steps.
"""

from __future__ import annotations

from typing import NamedTuple

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.world import World
from troth.spec.core import Called


class Jugs(NamedTuple):
    """Gallons in the small jug and in the big one."""

    small: int = 0
    big: int = 0


SMALL, BIG = 3, 5
ACTIONS = ("fill small", "fill big", "empty small", "empty big", "pour small into big", "pour big into small")


def jugs(state: Jugs, event: Called) -> tuple[Jugs, tuple[()]]:
    """Fill a jug, empty it, or pour it into the other until that is full."""
    small, big = state
    match event.call:
        case "fill small":
            small = SMALL
        case "fill big":
            big = BIG
        case "empty small":
            small = 0
        case "empty big":
            big = 0
        case "pour small into big":
            small, big = max(0, small + big - BIG), min(BIG, small + big)
        case _:
            small, big = min(SMALL, small + big), max(0, small + big - SMALL)
    return Jugs(small, big), ()


@blueprint("published/die_hard", GOAL=Bound(4, "gallons to be measured in the big jug", 1, BIG))
def die_hard(bounds: Bounds) -> World:
    """Four gallons of water from a jug of five and a jug of three."""
    world = World("published/die_hard", "four gallons of water from a jug of five and a jug of three")
    both = world.party("jugs", jugs, initial=Jugs(), observe={"small": lambda s: s.small, "big": lambda s: s.big})
    for action in ACTIONS:
        world.may(both, action)
    world.always("InRange", "no jug holds more than it can", (both.small <= SMALL) & (both.big <= BIG))
    world.sometimes("Solved", f"the big jug can hold {bounds.GOAL} gallons", both.big == bounds.GOAL)
    return world
