"""What of the live runtime must be what of the model: the projection, and what is left out of it.

Compared after every action are: each party's machines, with all their data; which of its timers run; the events that it took; and the
messages on their way. What effects leave behind is compared with the live steps: see ``effects``. Left out, because the worlds leave them
out:

- the *generations* of timers, which tell a late firing from the one that counts. In the worlds of the protocol no timer fires late, and
  the driver does not let one fire late either.
- the timers that *never fire* in a world (``Deal.without``). The live ones run, and are never due here.
- *how* a process ended: in the worlds it always ends well, and no row asks.
- *durations*. Every limit is long, and a timer is due when a path says so. The walks hold each to its limit.
- the *numbers* of calls. The model's are constants, the runtime's are counted.
- *bytes*. A world says that a transfer is complete, or has failed; that bytes moved before is the runtime's own, and so are the links that
  they move over, and what is heard of them.
- *LINK_UP and LINK_LOST* where a world has no such thing: it is told only of cuts.
- a *take* that changes nothing: receive() finds the task that its caller holds already, and takes it once more; or the task that was
  handed to it was cancelled before it had its turn, and it waits on. In a world the script would call receive() again.
- what a *receiver* is told before it has begun and once it is over: the runtime has none then. In the world it is there, and nothing
  comes of it.
- what a receiver *derives* of a message that is still on its way (``Hello.claim`` and the like): it is not there yet. It is compared once
  the message has been taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, get_args

from attrs import evolve

from troth.models.parties import Mode, PartyLocal
from troth.models.system import State, System
from troth.models.trace import TraceStep
from troth.models.worlds.protocol.reading import layout
from troth.models.worlds.protocol.watched import Watched
from troth.spec import core as c
from troth.spec.engine import PartyCore

EVENTS = get_args(c.Event)
WIRED = (c.LinkUp, c.LinkLost, c.TransferProgressed, c.TransferEnded)
"""Events that come of links and bytes, of which a world need not have an action."""
RECEIVE, AGAIN = c.Called("receive", 0), c.Called("take", 0)


def watched(system: System, index: int) -> Watched | None:
    """The core of a component, if it is a party of the protocol."""
    core = getattr(getattr(system.components[index].component, "behaviour", None), "core", None)
    return core if isinstance(core, Watched) else None


def machines(snapshot: Any, without: Iterable[str]) -> Hashable:
    """A core's snapshot, projected: its machines, and the timers that run."""
    *parts, armed, _stale = snapshot
    return tuple(parts), frozenset(where for where, _ in armed if where[0] not in without)


def of_model(system: System, index: int, local: Hashable) -> Hashable | None:
    """A party's state, projected; ``None`` while it is down."""
    core = watched(system, index)
    if not isinstance(local, PartyLocal) or core is None:
        raise TypeError(f"{local!r} is not the state of a party of the protocol")
    if local.mode is not Mode.UP:
        return None
    snapshot: Any = local.state
    return machines(snapshot[0], core.without)


def of_live(core: PartyCore, without: Iterable[str]) -> Hashable:
    """The same of a live core."""
    return machines(core.snapshot(), without)


def told(parts: Any, other: Any) -> str:
    """What differs between two projections."""
    found = [f"{one} where the model has {two}" for one, two in zip(parts[0], other[0], strict=True) if one != two]
    if parts[1] != other[1]:
        found.append(f"timers {sorted(map(str, parts[1]))} where the model has {sorted(map(str, other[1]))}")
    return "; ".join(found)


def plain(event: c.Event) -> c.Event:
    """An event without what is counted: numbers of calls, generations of timers."""
    if isinstance(event, c.Called | c.CallCancelled):
        return evolve(event, number=0)
    if isinstance(event, c.ProcessExited):
        return c.ProcessExited()
    return evolve(event, generation=0) if isinstance(event, c.TimerFired) else event


def events_of(step: TraceStep, index: int) -> list[c.Event]:
    """What a party takes on an edge, in order."""
    found: list[c.Event] = []
    for reaction in step.reactions:
        operation: Any = reaction.operation
        if reaction.component != index:
            continue
        if isinstance(reaction.variant, tuple) and reaction.variant[:1] == ("timer",):
            found.append(c.TimerFired(reaction.variant[1], reaction.variant[2], 0))
        elif isinstance(operation, EVENTS):
            found.append(plain(operation))
    return found


def without_wires(events: Iterable[c.Event], expected: list[c.Event]) -> list[c.Event]:
    """The events that a world speaks of: those that it has here, and all that do not come of links, bytes or a task taken again."""
    found: list[c.Event] = []
    took = [plain(event) for event in events]
    for at, event in enumerate(took):
        beside = RECEIVE in (*took[max(0, at - 1) : at], *took[at + 1 : at + 2])
        if event not in expected and (isinstance(event, WIRED) or (event == AGAIN and beside)):
            continue
        found.append(event)
    return found


def alike(system: System, state: State, other: System, there: State) -> bool:
    """Whether two systems of one world are in the same state, but for what the machines of one remember besides."""
    pairs = zip(system.components, state, other.components, there, strict=True)
    return all(
        table.states[local] == twin.states[far] or _alike(watched(system, index), table.states[local], twin.states[far])
        for index, (table, local, twin, far) in enumerate(pairs)
    )


def _alike(core: Watched | None, one: Any, other: Any) -> bool:
    if core is None or one.mode is not Mode.UP or other.mode is not Mode.UP:
        return False
    (here, seen), (there, met) = one.state, other.state
    if (one.timers, here[-2:], seen) != (other.timers, there[-2:], met):
        return False
    families = layout(core.party).families
    for machine, part, far in zip(core.party.by_name, here, there, strict=False):
        slots, others = (part, far) if machine in families else ((part,), (far,))
        if len(slots) != len(others) or any(slot != more[: len(slot)] for slot, more in zip(slots, others, strict=True)):
            return False
    return True
