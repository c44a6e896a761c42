"""A search with nothing in it to go wrong: no numbers, no tables, no packing. It asks the components about Python objects, every time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from troth.models import World
from troth.models.system import Check

Locals = tuple[Hashable, ...]


class Naive(NamedTuple):
    """What a naive search counts; ``first`` is the depth at which each property was first violated."""

    states: int
    edges: int
    depth: int
    cut: int
    deadlocks: int


def successors(world: World, state: Locals) -> Iterator[Locals | None]:
    """Every edge, ``None`` for one that was truncated."""
    system = world.system()
    components = [table.component for table in system.components]
    for action in system.actions:
        todo: list[tuple[Locals, tuple[Any, ...]]] = [(state, action.items)]
        while todo:
            now, items = todo.pop()
            if not items:
                yield now
                continue
            (index, operation), rest = items[0], items[1:]
            if isinstance(operation, Check):
                if operation.holds(system, system.components[index].number(now[index])):
                    todo.append((now, rest))
                continue
            for outcome in components[index].react(now[index], operation):
                if outcome.truncated:
                    yield None
                else:
                    todo.append(((*now[:index], outcome.state, *now[index + 1 :]), rest + outcome.emits))


def search(world: World) -> Naive:
    """Breadth first, with a set of tuples."""
    start: Locals = tuple(table.component.initial for table in world.system().components)
    seen, level, depth, edges, cut, deadlocks = {start}, [start], 0, 0, 0, 0
    while True:
        after: list[Locals] = []
        for state in level:
            found = list(successors(world, state))
            deadlocks += not found
            for target in found:
                edges += target is not None
                cut += target is None
                if target is not None and target not in seen:
                    seen.add(target)
                    after.append(target)
        if not after:
            return Naive(len(seen), edges, depth, cut, deadlocks)
        level, depth = after, depth + 1
