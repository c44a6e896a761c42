"""One configuration of a session as a world: what every one of them claims, and how it is put together."""

from __future__ import annotations

from troth.models.world import World
from troth.models.worlds.protocol.promises import promise
from troth.models.worlds.protocol.reach import acceptances, races
from troth.models.worlds.protocol.session import Deal, session

ALWAYS = (
    "P01", "P02", "P03", "P04", "P07", "P08", "P09", "P10", "P11", "P12", "P13", "P14", "P15", "P16", "P17", "P18", "P21", "P23", "P24",
    "P25", "P27", "P28", "P31", "P34", "P35", "P36", "P38", "P40", "P41", "P42", "P44", "P47", "P53", "P56", "P57", "P58", "P73", "P76",
    "P77", "P95", "P96", "P97", "P98",
)  # fmt: skip
"""What is claimed of every session in which it could be broken."""

FETCHED = ("P37", "P62")
"""And where receivers fetch the results."""

NO_BEATS = frozenset({"beat"})
"""Heartbeats are what ``lease`` is about. Elsewhere they are left out: that a lease is kept is a timer that does not fire."""

SCRIPT = ("receive", "take", "send")
"""The calls of a script that does what it should."""


HELD_BACK = ("P43", "P50")
"""What needs more than weak fairness where a full link holds the trainer's steps back. In ``answers`` none does."""


def breakable(deal: Deal, id_: str) -> bool:
    """Whether anything in such a world could break the property; where nothing can, it is not claimed."""
    match id_:
        case "P55":
            return "shutdown" in deal.calls
        case "P95":
            return not deal.launched
        case "P98":
            return deal.cuts > 0
    return True


def configured(
    name: str, doc: str, deal: Deal, promises: tuple[str, ...], reached: tuple[str, ...] = (), *, held_back: tuple[str, ...] = HELD_BACK
) -> World:
    """The world of ``deal``, which keeps these promises, as far as they could be broken in it, and contains these races.

    Of ``held_back`` more than weak fairness is assumed, because a full link holds steps back; see ``promise``.
    """
    promises = tuple(id_ for id_ in promises if breakable(deal, id_))
    world = World(name, doc)
    made = session(world, deal, promises, [acceptances()] if reached else [])
    promise(made, promises, held_back)
    races(made, reached)
    return world
