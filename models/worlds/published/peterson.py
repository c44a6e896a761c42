"""Peterson's mutual exclusion for two processes (G. L. Peterson, "Myths about the mutual exclusion problem", IPL 12(3), 1981).

In the steps of the module Peterson by Cousineau, Doligez, Lamport, Merz, Ricketts and Vanzetto ("TLA+ proofs", FM 2012; repository
tlaplus/tlapm, ``examples/Peterson.tla``), for which TLC finds 58 distinct states and all of its properties true.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from attrs import frozen

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.closing import Give
from troth.models.world import World


class Memory(NamedTuple):
    """What both processes see: who wants to enter, and whose turn it is."""

    wants: tuple[bool, bool] = (False, False)
    turn: int = 0


@frozen
class Write:
    """Process ``who`` writes its own flag, or (``wants`` is ``None``) gives the turn away."""

    who: int
    wants: bool | None = None


@frozen
class Read:
    """Process ``who`` asks for the other's flag, or whether the turn is the other's; it is answered with a bool."""

    who: int
    what: str


AFTER = {"rests": "raises", "raises": "yields", "yields": "looks", "critical": "leaves", "leaves": "rests"}
"""Where a process goes next, where it does not depend on what it reads."""


def memory(state: Memory, event: Any) -> tuple[Memory, tuple[Give, ...]]:
    """The shared memory: one read or write a step."""
    other = 1 - event.who
    if isinstance(event, Read):
        seen = state.wants[other] if event.what == "flag" else state.turn == other
        return state, (Give(f"process {event.who}", seen),)
    if event.wants is None:
        return state._replace(turn=other), ()
    wants = (event.wants, state.wants[1]) if event.who == 0 else (state.wants[0], event.wants)
    return state._replace(wants=wants), ()


def process(who: int) -> Any:
    """One process. It waits in two steps: at ``looks`` for the other's flag, at ``waits`` for the turn. A bool answers a read."""

    def step(state: str, event: Any) -> tuple[str, tuple[Give, ...]]:
        if isinstance(event, bool):
            if not event:
                return "critical", ()
            return ("waits" if state == "looks" else "looks"), ()
        if state in ("looks", "waits"):
            return state, (Give("memory", Read(who, "flag" if state == "looks" else "turn")),)
        writes = {"raises": Write(who, wants=True), "yields": Write(who), "leaves": Write(who, wants=False)}
        return AFTER[state], tuple(Give("memory", writes[at]) for at in [state] if at in writes)

    return step


@blueprint("published/peterson", FAIR=Bound(1, "1: each process moves on while it can", 0, 1))
def peterson(bounds: Bounds) -> World:
    """Peterson's mutual exclusion: never both, and whoever waits gets in."""
    world = World("published/peterson", "Peterson's mutual exclusion: never both, and whoever waits gets in")
    see = {"critical": lambda at: at == "critical", "waiting": lambda at: at in ("looks", "waits")}
    both = [world.party(f"process {i}", process(i), initial="rests", observe=see) for i in (0, 1)]
    world.party("memory", memory, initial=Memory())
    moves = [world.may(one, "moves") for one in both]
    fair = moves if bounds.FAIR else []
    world.never("Exclusive", "never are both in the critical section", both[0].critical & both[1].critical)
    for i, one in enumerate(both):
        world.leads_to(f"Enters{i}", f"when process {i} waits it gets in", one.waiting, one.critical, fair=fair)
    world.always_eventually("Again0", "process 0 gets in again and again", both[0].critical, fair=fair)
    return world
