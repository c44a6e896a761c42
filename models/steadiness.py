"""Steps that are not what the checker takes them for: functions of their state and event alone.

The first steps of each component are asked for twice at once. When a search is over, a sample of all of them is asked for once more,
in another order: by then a step that depends on what happened before, on a global or on the time answers differently.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from troth.models.canonical import spelled
from troth.models.errors import ComponentFailed, NotDeterministic, WorldError

if TYPE_CHECKING:
    from troth.models.system import Branch, Component, Outcome, System, Tabulated


def twice(calls: int) -> bool:
    """Which calls are made twice to see whether the answers agree: the first ones of each component, then every sixteenth."""
    return calls < 64 or calls % 16 == 0


def ask(component: Component, state: Hashable, operation: Hashable) -> tuple[Outcome, ...]:
    """What a component answers; whatever its own code raises is ``ComponentFailed``."""
    try:
        return component.react(state, operation)
    except (WorldError, NotDeterministic):
        raise
    except Exception as error:
        where = f"it was asked {told(operation)} in state {component.spelled(state)}"
        raise ComponentFailed(f"{component.name} raised {type(error).__name__}: {error}; {where}") from error


AGAIN = 256
"""Answers of each component that are asked for once more when a search is over."""


def ask_again(system: System, most: int = AGAIN) -> None:
    """Compare at most ``most`` answers of each component, spread evenly over the search. Raises ``NotDeterministic``."""
    for table in system.components:
        step = -(-len(table.calls) // most) or 1
        sample = list(islice(table.calls.items(), 0, None, step))
        # In another order than the first time: what depends on the calls before it would else answer as it did.
        Random(len(sample)).shuffle(sample)  # noqa: S311 - the same order in every run
        for (local, item), known in sample:
            compare(system, table, local, system.items[item][1], known)


def compare(system: System, table: Tabulated, local: int, operation: Hashable, known: tuple[Branch, ...]) -> None:
    """Ask once more; another answer than ``known`` is an error that names what differs."""
    again = system.answered(table, local, operation)
    if again == known:
        return
    guards = sorted({name for one, other in zip(known, again, strict=False) for name, _ in set(one.guards) ^ set(other.guards)})
    which = f" (guard {', '.join(guards)})" if guards else ""
    went = " and then to ".join(_went(system, table, branches) for branches in (known, again))
    asked = f"asked twice about {told(operation)} in state {table.component.spelled(table.states[local])}"
    raise NotDeterministic(
        f"{table.component.name} is not deterministic: {asked}, it went to {went}{which}; a step must depend on its state and event alone"
    )


def _went(system: System, table: Tabulated, branches: tuple[Branch, ...]) -> str:
    found = []
    for branch in branches:
        gave = ", ".join(told(system.items[e][1]) for e in branch.emits)
        found.append(table.component.spelled(table.states[branch.target]) + (f" giving {gave}" if gave else ""))
    return " or ".join(found) or "nothing"


def told(operation: Any) -> str:
    """An operation for a reader, cut where it is long. A condition that is checked is no data, and says itself what it is."""
    text = str(operation) if hasattr(operation, "holds") else spelled(operation)
    return text if len(text) <= 120 else text[:117] + "..."
