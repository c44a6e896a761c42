"""The properties of one party, watched at every step that it takes: in a trace, and on the live runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrs import define, field

from troth.spec.core import Event, Step
from troth.spec.properties import PROPERTIES, Property
from troth.spec.views import View
from troth.statemachines import HOST, RECEIVER, SUPERVISOR, TRAINER
from troth.testing.traces.replica import Replayed

if TYPE_CHECKING:
    from troth.models.worlds.protocol.watched import Watch

BROKE = "broke "
"""How the names of observations begin that say that a property was broken."""


@lru_cache(1)
def watches() -> Mapping[str, tuple[Watch, ...]]:
    """What is watched of each party: what the worlds watch."""
    from troth.models.worlds.protocol import watching_host, watching_supervisor, watching_trainer  # noqa: PLC0415 - loads the checker

    return {
        TRAINER.name: watching_trainer.trainer_watches(0, 0),
        HOST.name: watching_host.host_watches(0, 0),
        RECEIVER.name: watching_host.receiver_watches(),
        SUPERVISOR.name: watching_supervisor.WATCHES,
    }


@define(eq=False)
class Watcher:
    """What was seen of one core from its first step on."""

    core: Replayed
    _watches: list[tuple[Watch, Sequence[Callable[[Any], bool | int]]]] = field(init=False)
    """Each with what tells of its memory that the property was broken."""
    _memory: list[Any] = field(init=False)
    _machines: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        found = watches()[self.core.party.name]
        self._watches = [(watch, [of for name, of in watch.observe.items() if name.startswith(BROKE)]) for watch in found]
        self._memory = [watch.start for watch in found]
        self._machines = tuple(self.core.party.by_name)

    def look(self, event: Event, step: Step, before: View, *, timers: bool) -> Property | None:
        """The core has just taken that step: the first property that does not hold, if any. ``timers``: the same ones run as before."""
        from troth.models.worlds.protocol.watched import Again, Seen  # noqa: PLC0415 - loads the checker

        if step.refusal is not None:
            return None
        core, memory = self.core, self._memory
        seen = Seen(event, step.effects, before, core.view(), self._machines, timers, lambda: Again(*core.again(event)))
        for place, (watch, broke) in enumerate(self._watches):
            found = watch.after(memory[place], seen)
            if found is not memory[place]:
                memory[place] = found
                if any(of(found) for of in broke):
                    return PROPERTIES[watch.id]
        return None
