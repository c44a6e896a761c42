"""A party alone: a declaration, without a world, among all events of its alphabet.

Nothing is known of what a user's declaration must do but what its tables say and what the user claims of it. So any event may come at any
time, whatever its fields say, timers fire as they were set, or late; and what must be true after every step is that the core does what
its table says, and the claims. ``alone`` gives a ``World`` with one party, of which more can be claimed before it is walked::

    world, gate = alone(TURNSTILE)
    world.always("FARE", "nobody passes without a coin", gate.passed <= gate.coins)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from troth.models.handles import PartyHandle
from troth.models.world import World
from troth.models.worlds.protocol.watched import Watch, Watched
from troth.spec import Party
from troth.spec import core as c
from troth.spec.engine import PartyCore

EFFECTS: tuple[type, ...] = tuple(kind for kind in get_args(c.Effect) if kind not in (c.SetTimer, c.CancelTimer))


class Alone(World):
    """A world of one party that may be given any event of its alphabet."""


def alone(party: Party | PartyCore, config: Any = None, *, watches: Sequence[Watch] = (), name: str = "") -> tuple[World, PartyHandle]:
    """A world of ``party`` alone, and its handle. A core brings its configuration; ``config`` overrides the declaration's own."""
    core = party if isinstance(party, PartyCore) else _core(party, party.config() if config is None else config, watches)
    declared = core.party
    world = Alone(name or declared.name, f"{declared.name} alone, among all events of its alphabet")
    # A watched core does not number its timers, so it cannot tell a late firing; those come as events that no row takes.
    handle = world.party(declared.name, core, stale_timers=not isinstance(core, Watched))
    world.ignores(handle, *EFFECTS)
    return world, handle


def _core(party: Party, config: Any, watches: Sequence[Watch]) -> PartyCore:
    return Watched(party, [config], watches) if watches else PartyCore(party, config)


def all_alone(world: World) -> tuple[str, ...]:
    """The parties that may be given anything: the one of a world that ``alone`` made, and none of any other."""
    return tuple(handle.name for handle in world.handles if isinstance(handle, PartyHandle)) if isinstance(world, Alone) else ()
