"""Interchangeable parties: states that differ only by which is which count once.

The representative of a global state is the least of all its renamings, found by trying every permutation of the parties: exact, and
meant for a handful of parties. "Least" is by digest, so the choice depends on no numbering.

That the parties are interchangeable is not believed. Links, faults, crashes and what may be done to them are compared as declared, and
before the search, for ``LOOKED_AT`` renamings of the states nearest to the initial one: a renamed state must have the renamed steps, and
every property the same value. So different behaviours, ``when=`` conditions, ``renames`` that do not rename, and properties that tell the
parties apart are found, as far as they show in those states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import frozen

from troth.models.errors import WorldError
from troth.models.expressions import Evaluator
from troth.models.links import LinkComponent, LinkLocal
from troth.models.parties import PartyComponent, PartyLocal
from troth.models.properties import PropertyKind
from troth.models.system import TRUNCATED, ActionKind, State, System

if TYPE_CHECKING:
    from troth.models.handles import PartyHandle
    from troth.models.world import World

PARTIES_LIMIT = 6
"""Interchangeable parties in one group; 6! renamings are tried for every edge."""

LOOKED_AT = 6_000
"""Renamings of states that are compared before a search."""
ALL_ORDERS = 3
"""Up to so many parties every order is compared, beyond that every exchange of two."""

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

    def renamed(self, plan: Sequence[Move], state: State) -> State:
        """``state`` after one renaming."""
        changed = list(state)
        for move in plan:
            local = state[move.source]
            changed[move.dest] = (move.known.get(local) or self.moved(move, local))[1]
        return tuple(changed)

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
    symmetry = Symmetry(system, [Group(_members(world, system, parties), renames) for parties, renames in world.symmetries])
    _Comparing(world, symmetry).run()
    return symmetry


class _Comparing:
    """Whether exchanging the parties changes nothing, in the states nearest to the initial one."""

    def __init__(self, world: World, symmetry: Symmetry) -> None:
        self.world = world
        self.symmetry = symmetry
        self.system = symmetry.system
        self.plans = [(group, plan) for group, plans in enumerate(symmetry.plans) for plan in plans[1:] if _compared(plan)]
        self.claims = [(p, e.compiled(self.system)) for p in world.properties for e in (p.expr, p.then) if e is not None]

    def run(self) -> None:
        """Breadth first, until all states or enough of them were compared."""
        level, left = [self.symmetry.canonical(self.system.initial)], LOOKED_AT
        seen = set(level)
        while level:
            after: list[State] = []
            for state in level:
                edges = self.system.successors(state)
                for group, plan in self.plans:
                    self._compare(group, plan, state, edges)
                left -= max(1, len(self.plans))
                if left <= 0:
                    return
                for target, symbol in edges:
                    if symbol != TRUNCATED and (reached := self.symmetry.canonical(target)) not in seen:
                        seen.add(reached)
                        after.append(reached)
            level = after

    def _compare(self, group: int, plan: Sequence[Move], state: State, edges: Sequence[tuple[State, int]]) -> None:
        symmetry = self.symmetry
        other = symmetry.renamed(plan, state)
        expected = Counter((symmetry.renamed(plan, t) if symbol != TRUNCATED else other, symbol == TRUNCATED) for t, symbol in edges)
        try:
            found = Counter((t if symbol != TRUNCATED else other, symbol == TRUNCATED) for t, symbol in self.system.successors(other))
        except Exception as error:
            raise self._differ(group, f"{self._shown(other)}, which is {self._shown(state)} renamed: {error}") from error
        if expected != found:
            mine, theirs = self._names(state), self._names(other)
            raise self._differ(
                group, f"in {self._shown(state)} there may happen {mine}; with the parties exchanged, in {self._shown(other)}, {theirs}"
            )
        for claim, evaluate in self.claims:
            pairs = [(state, other, state, other)]
            if claim.kind is PropertyKind.STEP:
                pairs = [(state, other, t, symmetry.renamed(plan, t)) for t, symbol in edges if symbol != TRUNCATED]
            for one, two, one_after, two_after in pairs:
                if (a := _value(evaluate, one, one_after)) != (b := _value(evaluate, two, two_after)):
                    raise self._differ(
                        group, f"property {claim.id} tells them apart: it is {a} in {self._shown(one)} and {b} in {self._shown(two)}"
                    )

    def _names(self, state: State) -> str:
        edges = self.system.successors(state, labelled=True)
        found = [self.system.actions[self.system.label_of(symbol).action].name for _, symbol in edges if symbol != TRUNCATED]
        return ", ".join(found) or "nothing"

    def _shown(self, state: State) -> str:
        return "(" + ", ".join(f"{name}: {text}" for name, text in self.system.spelled(state).items()) + ")"

    def _differ(self, group: int, why: str) -> WorldError:
        names = ", ".join(" + ".join(p.name for p in member) for member in self.world.symmetries[group][0])
        return WorldError(f"world {self.world.name}: {names} are not interchangeable: {why}")


def _compared(plan: Sequence[Move]) -> bool:
    order = plan[0].mapping
    return len(order) <= ALL_ORDERS or sum(place != target for place, target in order.items()) == 2


def _value(evaluate: Evaluator, state: State, after: State) -> object:
    """A property's value; what cannot be evaluated is reported by the search, not here."""
    try:
        return evaluate(state, after)
    except Exception as error:
        return f"{type(error).__name__}"


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
    _same_shapes(f"world {world.name}: {names} are not interchangeable", system, members)
    if len({world.actions_of(member) for member in parties}) != 1:
        raise WorldError(f"world {world.name}: {names} are not interchangeable: different things may be done to them")
    return tuple(tuple(m) for m in members)


def _same_shapes(refusal: str, system: System, members: Sequence[Sequence[int]]) -> None:
    """What moves together must be declared alike."""
    for member in members[1:]:
        if len(member) != len(members[0]):
            raise WorldError(f"{refusal}: they have different links or budgets")
        for one, other in zip(members[0], member, strict=True):
            mine, theirs = _shape(system, one), _shape(system, other)
            for what in sorted(mine.keys() | theirs.keys()):
                if mine.get(what) != theirs.get(what):
                    raise WorldError(
                        f"{refusal}: {system.name(one)} has {what} {mine.get(what)}, {system.name(other)} has {theirs.get(what)}"
                    )


def _shape(system: System, index: int) -> dict[str, Hashable]:
    """What must be the same of components that are exchanged, by what it is called."""
    component = system.components[index].component
    found: dict[str, Hashable] = {"kind": component.kind, "initial state": component.initial}
    if isinstance(component, LinkComponent):
        names = ("ordered", "capacity", "full", "delay", "loses")
        found |= {name: getattr(component, name) for name in names}
        kinds = {action.kind for action in system.actions for at, _ in action.items if at == index}
        found |= {"losses": ActionKind.LOSE in kinds, "duplicates": ActionKind.DUPLICATE in kinds, "cuts": ActionKind.CUT in kinds}
    if isinstance(component, PartyComponent):
        crash = component.crash
        found |= {"stale timers": component.stale, "crashes": crash is not None}
        if crash is not None:
            found |= {"crashes within steps": crash.within_steps, "links dropped": len(crash.cuts)}
            found |= {"keeps": crash.keeps is not None, "restarted": crash.restarts is not None}
    return found
