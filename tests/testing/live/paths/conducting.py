"""Leading the live runtime along an edge of a world's graph, and what every conductor has.

A *conductor* is made for one run of a world. It performs an edge's action by whatever means an outsider has: calls, frames that arrive or
do not, timers that are due, processes that end. Then it says in what the live state differs from the model's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

from attrs import define, field

from tests.testing.live.paths import projecting
from troth.models.links import LinkLocal, Status
from troth.models.system import State, System
from troth.models.trace import TraceStep
from troth.spec import core as c
from troth.spec.engine import PartyCore


class Diverged(AssertionError):
    """The live runtime did not do what the model does."""

    def __init__(self, done: Sequence[str], differences: Sequence[str]) -> None:
        told = "".join(f"\n  {number}. {name}" for number, name in enumerate(done, 1))
        super().__init__("after" + told + "".join(f"\n- {one}" for one in differences))
        self.done = tuple(done)
        self.differences = tuple(differences)


class CannotPerform(Exception):
    """There is no way to bring this about from outside: what, and why."""


class Conductor(Protocol):
    """See the module."""

    def perform(self, step: TraceStep, ahead: Sequence[TraceStep]) -> bool:
        """Bring the action about and let everything settle. ``ahead`` is what will be performed after it. Raises ``CannotPerform``.

        False if the next action of the path was done in the same moment, so that there is nothing to compare in between.
        """
        ...

    def differences(self, steps: Sequence[TraceStep], state: State) -> list[str]:
        """In what the live state differs, after the ``steps`` since the last comparison, which led to ``state``."""
        ...

    def close(self) -> None:
        """End everything. Raises if something is left behind."""
        ...

    def drop(self) -> None:
        """Let go of a run that went wrong."""
        ...


def named(step: TraceStep) -> str:
    """An edge for a reader."""
    variants = ", ".join(str(variant) for variant in step.label.variants if variant is not None)
    return f"{step.action.name}{f': {variants}' if variants else ''}"


def lead(conductor: Conductor, path: Sequence[TraceStep]) -> None:
    """Perform a path and compare after every action. Raises ``Diverged`` at the first difference, or at what cannot be performed."""
    done: list[str] = []
    since: list[TraceStep] = []
    for at, step in enumerate(path):
        done.append(named(step))
        since.append(step)
        try:
            settled = conductor.perform(step, path[at + 1 :])
        except CannotPerform as reason:
            raise Diverged(done, [f"{named(step)} cannot be performed: {reason}"]) from reason
        if settled:
            found = conductor.differences(since, step.state)
            if found:
                raise Diverged(done, found)
            since.clear()
    conductor.close()


@define(eq=False)
class Parties:
    """The parties of a world beside the live cores that stand for them."""

    system: System
    cores: dict[str, PartyCore] = field(factory=dict)
    """By the name of the world's party. One that is not here was not begun yet, and is where it begins."""
    events: dict[str, list[c.Event]] = field(factory=lambda: defaultdict(list))
    """What each took since the last comparison."""
    indices: dict[str, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        components = self.system.components
        self.indices = {
            table.component.name: index for index, table in enumerate(components) if projecting.watched(self.system, index) is not None
        }

    def config(self, name: str) -> Any:
        """What the world gives a party."""
        core = projecting.watched(self.system, self.indices[name])
        return None if core is None else core.config

    def took(self, name: str, core: PartyCore, event: c.Event) -> None:
        """A live core took a step."""
        self.cores[name] = core
        self.events[name].append(event)

    def differences(self, steps: Sequence[TraceStep], state: State, lenient: Iterable[str] = ()) -> list[str]:
        """What differs of the parties; of the ``lenient`` ones only the machines are compared, not what they took."""
        found: list[str] = []
        for name, index in self.indices.items():
            core = projecting.watched(self.system, index)
            local = self.system.components[index].states[state[index]]
            wanted = projecting.of_model(self.system, index, local)
            if core is None or wanted is None:
                continue
            if name in self.cores:
                here = projecting.of_live(self.cores[name], core.without)
            else:
                here = projecting.of_model(self.system, index, self.system.components[index].component.initial)
            if here != wanted:
                found.append(f"{name}: {projecting.told(here, wanted)}")
            expected = [event for step in steps for event in projecting.events_of(step, index)]
            events = projecting.without_wires(self.events[name], expected)
            if name not in lenient and events != expected:
                found.append(f"{name} took {events}, and in the model {expected}")
        self.events.clear()
        return found


def messages_of(system: System, state: State, name: str) -> tuple[Status, tuple[Hashable, ...]]:
    """What is on a link of the model."""
    index = next(index for index, table in enumerate(system.components) if table.component.name == name)
    component: Any = system.components[index].component
    local: LinkLocal = system.components[index].states[state[index]]  # type: ignore[assignment]
    return local.status, component.messages(local)
