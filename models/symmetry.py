"""Interchangeable parties: states that differ only by which is which count once.

The representative of a global state is the least of all its renamings, found by trying every permutation of the parties: exact, and
meant for a handful of parties. "Least" is by digest, so the choice depends on no numbering.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import frozen

from troth.models.errors import WorldError
from troth.models.links import LinkComponent, LinkLocal
from troth.models.parties import PartyLocal
from troth.models.system import State, System

if TYPE_CHECKING:
    from troth.models.handles import PartyHandle
    from troth.models.world import World

PARTIES_LIMIT = 6
"""Interchangeable parties in one group; 6! renamings are tried for every edge."""

Rename = Callable[[Any, Mapping[int, int]], Any]


class Move(NamedTuple):
    """What one renaming does to one component. ``known``: local number to (digest, number) at its new place, as far as it was asked."""

    source: int
    dest: int
    mapping: Mapping[int, int]
    rename: Rename | None
    known: dict[int, tuple[int, int]]


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
        self.plans = tuple(tuple(self._plan(g, o) for o in permutations(range(len(g.members)))) for g in self.groups)

    def _plan(self, group: Group, order: tuple[int, ...]) -> tuple[Move, ...]:
        """The party at place i moves to place ``order[i]``: what that does to each component, by where it goes to."""
        pairs = [pair for place, target in enumerate(order) for pair in zip(group.members[place], group.members[target], strict=True)]
        inside = {i for member in group.members for i in member}
        pairs += [(index, index) for index in group.renames if index not in inside]
        mapping = dict(enumerate(order))
        return tuple(Move(source, dest, mapping, group.renames.get(source), {}) for source, dest in sorted(pairs, key=lambda p: p[1]))

    def canonical(self, state: State) -> State:
        """The representative of ``state``."""
        for plans in self.plans:
            best: list[tuple[int, int]] | None = None
            places: tuple[Move, ...] = ()
            for plan in plans:
                # Digests come first, so that the least list is that of the least digests, component by component.
                moved = [move.known.get(state[move.source]) or self.moved(move, state[move.source]) for move in plan]
                if best is None or moved < best:
                    best, places = moved, plan
            changed = list(state)
            for move, (_, local) in zip(places, best or (), strict=True):
                changed[move.dest] = local
            state = tuple(changed)
        return state

    def moved(self, move: Move, local: int) -> tuple[int, int]:
        """What a local state becomes at its new place: its digest and number."""
        raw = self.system.components[move.source].states[local]
        if move.rename is not None:
            raw = self._apply(move.rename, move.source, raw, move.mapping)
        table = self.system.components[move.dest]
        number = table.number(raw)
        found = move.known[local] = table.digest(number), number
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
    return Symmetry(system, [Group(_members(world, system, parties), renames) for parties, renames in world.symmetries])


def _members(world: World, system: System, parties: Sequence[tuple[PartyHandle, ...]]) -> tuple[tuple[int, ...], ...]:
    """For each member its parties, and whatever belongs to those alone: links, and budgets of links, actions and crashes."""
    if len(parties) > PARTIES_LIMIT:
        raise WorldError(f"world {world.name}: {len(parties)} interchangeable parties; at most {PARTIES_LIMIT} are supported")
    inside = {p.index: place for place, member in enumerate(parties) for p in member}
    members = [[p.index for p in member] for member in parties]
    for index, owners in world.owned():
        places = {inside.get(owner, -1) for owner in owners}
        ours = places - {-1}
        if len(ours) > 1 and isinstance(system.components[index].component, LinkComponent):
            raise WorldError(
                f"world {world.name}: link {system.name(index)} joins two interchangeable parties; that symmetry is not supported"
            )
        if len(ours) == 1 and index not in members[min(ours)]:
            members[min(ours)].append(index)
    names = ", ".join(" + ".join(p.name for p in member) for member in parties)
    shapes = {tuple(_shape(system, i) for i in m) for m in members}
    if len(shapes) != 1:
        raise WorldError(
            f"world {world.name}: {names} are not interchangeable: they have different links or budgets, start or act differently"
        )
    if len({world.actions_of(member) for member in parties}) != 1:
        raise WorldError(f"world {world.name}: {names} are not interchangeable: different things may be done to them")
    return tuple(tuple(m) for m in members)


def _shape(system: System, index: int) -> Hashable:
    component = system.components[index].component
    ends = (component.ordered, component.capacity, component.full) if isinstance(component, LinkComponent) else ()
    return component.kind, component.initial, ends
