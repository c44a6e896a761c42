"""What lets a conductor say when things happen: tasks that are held back, and limits that are never reached by themselves.

Nothing of the runtime is replaced. A scheduler may let a task wait for its turn as long as it likes; a duration may be long.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

import attrs
from attrs import define, field

from troth.runtime.driver import Driver
from troth.spec.core import Key
from troth.spec.limits import Limits
from troth.testing.live.stepping import Stepper

LONG = 1e5
"""How much longer every limit is. So nothing is due before somebody says so, and the order of limits stays."""


def longer(limits: Limits, **counts: int) -> Limits:
    """The same limits, in a time that passes slowly."""
    durations: dict[str, Any] = {f.name: getattr(limits, f.name) for f in attrs.fields(Limits) if f.metadata["unit"] == "s"}
    later: dict[str, Any] = {name: None if value is None else value * LONG for name, value in durations.items()}
    return attrs.evolve(limits, **later, **counts)


def due(driver: Driver, party: str, timer: str, key: Key, now: float) -> int:
    """A timer that runs is due now; its generation. Raises ``KeyError`` if it does not run."""
    _, _, generation = driver.timers._running[party, timer, key]
    driver.timers.set(party, timer, key, generation, 0.0, now=now)
    return generation


@define(eq=False)
class Held:
    """A schedule in which some tasks get no turn until they are let go."""

    tasks: set[Any] = field(factory=set)
    """Whoever is in here waits, once it could run."""
    waiting: list[Any] = field(factory=list)
    """Those that could run."""

    def shuffle(self, batch: MutableSequence[Any]) -> None:
        """See ``stepping.Schedule``."""
        for task in [task for task in batch if task in self.tasks]:
            batch.remove(task)
            self.waiting.append(task)

    def random(self) -> float:
        """See ``stepping.Schedule``."""
        return 0.0

    def let_go(self, task: Any, stepper: Stepper) -> None:
        """It has its turn, at once if it could run before."""
        self.tasks.discard(task)
        if task in self.waiting:
            self.waiting.remove(task)
            stepper._runner.runq.append(task)
