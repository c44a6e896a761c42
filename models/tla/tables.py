"""What a search learnt about a system, numbered so that the numbers mean the same in every run.

The engines number local states, items and lists of items as they meet them. Here they are numbered from 1, as TLA+ counts, in an
order that their text decides: local states with the initial one first, then those in which the component can be found between two
actions, then those that are only passed through by actions that are blocked later on; items in the order in which the actions name
them, then by text.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from attrs import frozen

from troth.models.canonical import spelled
from troth.models.links import LinkComponent, LinkLocal, LinkOp, Status
from troth.models.parties import Fire, Mode, PartyComponent, PartyLocal, PartyOp, Push, timer_text
from troth.models.render.parties import summary
from troth.models.render.words import value
from troth.models.system import Action, Check, Component, System, Tabulated
from troth.spec.core import Called, Received


class Way(NamedTuple):
    """One thing that may come of ``item``: the new local state, and the list of items that it gives. All are numbers from 1."""

    item: int
    target: int
    gives: int


@frozen
class ComponentTable:
    """One component: ``states[n - 1]`` is local state ``n``, ``rows[n - 1]`` the ways out of it."""

    index: int
    name: str
    kind: str
    states: tuple[Hashable, ...]
    texts: tuple[str, ...]
    resting: int
    """States 1 to ``resting`` are those that occur in global states."""
    rows: tuple[tuple[Way, ...], ...]
    numbers: Mapping[int, int]
    """The engines' number of a local state to the one here."""


@frozen
class Tables:
    """A system in numbers."""

    components: tuple[ComponentTable, ...]
    owners: tuple[int, ...]
    """``owners[i - 1]``: the place, from 1, of the component that item ``i`` is for."""
    items: tuple[str, ...]
    """What each item is, for a reader."""
    gives: tuple[tuple[int, ...], ...]
    """Lists of items; the first is empty."""
    actions: tuple[tuple[Action, tuple[int, ...]], ...]


def tabulated(system: System, resting: Sequence[Collection[int]]) -> Tables:
    """The tables of a system that was searched completely, by one process. ``resting``: the local numbers in global states."""
    numbers = _item_numbers(system)
    order = [_ordered(system, index, rests) for index, rests in enumerate(resting)]
    gives: dict[tuple[int, ...], int] = {(): 1}
    components = tuple(
        _component(system.components[index], locals_, len(resting[index]), numbers, gives) for index, locals_ in enumerate(order)
    )
    items = sorted(numbers, key=numbers.__getitem__)
    return Tables(
        components=components,
        owners=tuple(system.items[item][0] + 1 for item in items),
        items=tuple(f"{system.name(system.items[item][0])} {said(system.items[item][1])}" for item in items),
        gives=tuple(gives),
        actions=tuple((a, tuple(numbers[system.item(i)] for i in a.items)) for a in system.actions),
    )


def _item_numbers(system: System) -> dict[int, int]:
    """The engines' number of an item to the one here, for all items that occur."""
    named = list(dict.fromkeys(system.item(item) for action in system.actions for item in action.items))
    given = {item for t in system.components for ways in t.calls.values() for branch in ways for item in branch.emits}
    rest = sorted(given.difference(named), key=lambda i: (system.items[i][0], said(system.items[i][1]), spelled(system.items[i][1])))
    return {item: number for number, item in enumerate([*named, *rest], 1)}


def _ordered(system: System, index: int, resting: Collection[int]) -> list[int]:
    """The engines' numbers of a component's local states, in the order of the numbers here."""
    table = system.components[index]
    passed = {branch.target for ways in table.calls.values() for branch in ways if not branch.truncated}
    initial = system.initial[index]

    def key(local: int) -> tuple[bool, bool, str, int]:
        return local != initial, local not in resting, table.component.spelled(table.states[local]), table.digest(local)

    return sorted({initial, *resting, *passed}, key=key)


def _component(
    table: Tabulated,
    order: Sequence[int],
    resting: int,
    items: Mapping[int, int],
    gives: dict[tuple[int, ...], int],
) -> ComponentTable:
    numbers = {local: number for number, local in enumerate(order, 1)}
    found: list[list[Way]] = [[] for _ in order]
    calls = sorted(
        (numbers[local], items[item], branches) for (local, item), branches in table.calls.items() if local in numbers and item in items
    )
    for number, item, branches in calls:
        for branch in branches:
            if not branch.truncated:
                given = gives.setdefault(tuple(items[e] for e in branch.emits), len(gives) + 1)
                found[number - 1].append(Way(item, numbers[branch.target], given))
    states = tuple(table.states[local] for local in order)
    return ComponentTable(
        index=table.index,
        name=table.component.name,
        kind=table.component.kind,
        states=states,
        texts=tuple(told(table.component, state) for state in states),
        resting=resting,
        rows=tuple(tuple(ways) for ways in found),
        numbers=numbers,
    )


def told(component: Component, state: Hashable) -> str:
    """A local state for a reader."""
    if isinstance(component, LinkComponent) and isinstance(state, LinkLocal):
        carries = ", ".join(value(message) for message in state.messages) or "empty"
        return carries if state.status is Status.UP else f"{state.status.value}, {carries}"
    if isinstance(component, PartyComponent) and isinstance(state, PartyLocal):
        if state.mode is not Mode.UP:  # what a crash keeps is no state of the core
            return f"{state.mode.value}; {value(state.state)}"
        parts = [summary(component, state.state), *(f"timer {timer_text(timer)}" for timer in state.timers)]
        return "; ".join(parts)
    return component.spelled(state)


def said(operation: Any) -> str:  # noqa: PLR0911 - one line for each kind of operation
    """An operation, put to a component, for a reader."""
    match operation:
        case Check():
            return f"may go on if {operation.text}"
        case Push():
            return "takes " + ", ".join(value(message) for message in operation.messages)
        case Received():
            return f"receives {value(operation.message)} on {operation.link}"
        case Called():
            return f"is called: {operation.call}" + (f" {operation.number}" if operation.number else "")
        case LinkOp() | PartyOp():
            return OPERATIONS[operation]
        case Fire():
            return f"has timer {operation.timer}{'' if operation.key is None else f'[{value(operation.key)}]'} fire"
        case Enum():
            return f"does: {operation.value}"
        case _:
            return f"takes {value(operation)}"


OPERATIONS: Mapping[Hashable, str] = {
    PartyOp.FIRE: "has a timer fire",
    PartyOp.TICK: "lets a tick pass",
    PartyOp.CRASH: "crashes",
    PartyOp.RESTART: "restarts",
    LinkOp.DELIVER: "delivers",
    LinkOp.LOSE: "loses",
    LinkOp.DUPLICATE: "duplicates",
    LinkOp.CUT: "is cut",
    LinkOp.DROP: "goes down",
    LinkOp.OPEN: "is opened",
    LinkOp.CLOSE: "is closed",
    LinkOp.TICK: "lets a tick pass",
}
