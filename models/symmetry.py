"""Interchangeable parties: states that differ only by which is which count once.

The representative of a global state is the least of all its renamings, found by trying every permutation of the parties: exact, and
meant for a handful of parties. "Least" is by digest, so the choice depends on no numbering.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

from attrs import frozen

from troth.models.errors import WorldError
from troth.models.links import LinkComponent, LinkLocal
from troth.models.parties import PartyLocal
from troth.models.system import State, System

if TYPE_CHECKING:
    from troth.models.world import World

PARTIES_LIMIT = 6
"""Interchangeable parties in one group; 6! renamings are tried for every edge."""

Rename = Callable[[Any, Mapping[int, int]], Any]


@frozen
class Group:
    """One group: for each party the components that move with it, in the same order for all."""

    members: tuple[tuple[int, ...], ...]
    renames: Mapping[int, Rename]


class Symmetry:
    """The symmetry of a closed system."""

    def __init__(self, system: System, groups: Sequence[Group]) -> None:
        self.system = system
        self.groups = tuple(groups)
        self._renamed: dict[tuple[int, int, tuple[int, ...], int], int] = {}
        self._canonical: dict[State, State] = {}

    def canonical(self, state: State) -> State:
        """The representative of ``state``."""
        for number, group in enumerate(self.groups):
            variants = {self._permuted(number, group, state, order) for order in permutations(range(len(group.members)))}
            state = min(variants, key=self._key)
        return state

    def _key(self, state: State) -> tuple[int, ...]:
        return tuple(table.digest(local) for table, local in zip(self.system.components, state, strict=True))

    def _permuted(self, number: int, group: Group, state: State, order: tuple[int, ...]) -> State:
        """The party at place i moves to place ``order[i]``."""
        moved = list(state)
        for place, target in enumerate(order):
            for source, dest in zip(group.members[place], group.members[target], strict=True):
                moved[dest] = self._local(number, source, dest, order, state[source])
        inside = {i for member in group.members for i in member}
        for index in group.renames:
            if index not in inside:
                moved[index] = self._local(number, index, index, order, state[index])
        return tuple(moved)

    def _local(self, number: int, source: int, dest: int, order: tuple[int, ...], local: int) -> int:
        group = self.groups[number]
        key = (number, source, order, local)
        found = self._renamed.get(key)
        if found is None:
            raw = self.system.components[source].states[local]
            rename = group.renames.get(source)
            if rename is not None:
                raw = self._apply(rename, source, raw, dict(enumerate(order)))
            found = self._renamed[key] = self.system.components[dest].number(raw)
        return found

    def _apply(self, rename: Rename, index: int, raw: Hashable, mapping: Mapping[int, int]) -> Hashable:
        component = self.system.components[index].component
        if isinstance(component, LinkComponent) and isinstance(raw, LinkLocal):
            return component.renamed(raw, lambda message: rename(message, mapping))
        if isinstance(raw, PartyLocal):
            return raw._replace(state=rename(raw.state, mapping))
        renamed: Hashable = rename(raw, mapping)
        return renamed


def symmetry_of(world: World) -> Symmetry | None:
    """The declared symmetry of a world, or ``None``. Raises ``WorldError`` where the parties cannot be interchangeable."""
    if not world.symmetries:
        return None
    system = world.system()
    groups = []
    for parties, renames in world.symmetries:
        if len(parties) > PARTIES_LIMIT:
            raise WorldError(f"world {world.name}: {len(parties)} interchangeable parties; at most {PARTIES_LIMIT} are supported")
        inside = {p.index: place for place, p in enumerate(parties)}
        members = [[p.index] for p in parties]
        for plan in world._closing.links:  # noqa: SLF001 - the world's own plan
            ends = [inside[h.index] for h in (plan.source, plan.target) if h.index in inside]
            if len(ends) == 1:
                members[ends[0]].append(plan.handle.index)
            elif len(ends) == 2:
                raise WorldError(
                    f"world {world.name}: link {plan.handle.name} joins two interchangeable parties; that symmetry is not supported"
                )
        sizes = {len(m) for m in members}
        if len(sizes) != 1:
            raise WorldError(f"world {world.name}: {', '.join(p.name for p in parties)} have different links; they are not interchangeable")
        starts = {tuple(system.components[i].component.initial for i in m) for m in members}
        if len(starts) != 1:
            raise WorldError(f"world {world.name}: {', '.join(p.name for p in parties)} start differently; they are not interchangeable")
        groups.append(Group(tuple(tuple(m) for m in members), renames))
    return Symmetry(system, groups)
