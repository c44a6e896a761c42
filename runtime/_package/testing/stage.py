"""A world, made ready to be walked: its rules by number, its tables, and its properties by what they look at.

A *rule* is what may be chosen next: an action of the world, or an event that no row expects, given to one of its cores, or, where a party
stands alone, any event of its alphabet. What a rule leads to is looked up in the world's tables, which are filled by the real cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeAlias

from attrs import define, field, frozen

from troth.models.behaviours import CoreBehaviour, Taken
from troth.models.expressions import Const, Evaluator, boolean
from troth.models.parties import Mode, PartyComponent, PartyLocal
from troth.models.properties import Property, PropertyKind
from troth.models.system import Branch, State, System
from troth.models.world import World
from troth.models.worlds.protocol.watched import Watched
from troth.spec import Party
from troth.spec.engine import PartyCore
from troth.testing.alphabet import Alphabet
from troth.testing.chance import Chance

LOCALS_LIMIT = 60_000
"""Local states that the tables may hold before they are emptied. Only time depends on it."""
VERDICTS_LIMIT = 100_000
"""Verdicts on combinations of local states that are remembered for a group of properties."""
CRASH_EVERY = 32
"""One step in so many, of a party that may crash within one, is broken off by a crash."""
CRASHES = " crashes after "
"""What the note of such a branch says."""

Branches: TypeAlias = tuple[Branch, ...]


class RuleKind(Enum):
    """What a rule does."""

    ACTION = "action"
    """Something that the world lets happen."""
    ILLEGAL = "illegal"
    """An event that no row expects: it must be refused, or ignored, and change nothing."""
    EVENT = "event"
    """An event of a party that stands alone, whatever its rows say of it."""


@frozen
class Rule:
    """One thing that may be chosen. ``component`` is whose event it is; ``route`` which of its alphabet, or -1."""

    name: str
    kind: RuleKind
    items: tuple[int, ...] = ()
    component: int = -1
    route: int = -1


@define(eq=False)
class Group:
    """Properties that look at the same components, with what was found out about combinations of their local states."""

    components: tuple[int, ...]
    claims: list[tuple[Property, Evaluator]]
    steps: bool
    known: dict[tuple[int, ...], Property | None] = field(factory=dict)

    def violated(self, before: State, after: State) -> Property | None:
        """The first of them that is violated, after a step that changed one of their components."""
        if self.steps:
            key = (*(before[i] for i in self.components), *(after[i] for i in self.components))
        else:
            key = tuple(after[i] for i in self.components)
        found = self.known.get(key, Ellipsis)
        if found is Ellipsis:
            if len(self.known) >= VERDICTS_LIMIT:
                self.known.clear()
            source = before if self.steps else after
            bad = next((claim for claim, holds in self.claims if not boolean(holds(source, after), claim.expr)), None)
            self.known[key] = found = bad
        return found if isinstance(found, Property) else None


class Asked:
    """A behaviour whose latest answers are kept, so that what a core does live can be compared with them, effects and all."""

    def __init__(self, behaviour: CoreBehaviour) -> None:
        self.inner = behaviour
        self.initial = behaviour.initial
        self.core = behaviour.core
        self.latest: dict[tuple[object, object], Taken] = {}

    def take(self, state: object, event: object) -> Sequence[Taken] | None:
        """What the behaviour says; kept."""
        found = self.inner.take(state, event)
        if found:
            if len(self.latest) > 256:
                self.latest.clear()
            self.latest[state, event] = found[0]
        return found

    def observe(self, state: object) -> object:
        """What the behaviour says."""
        return self.inner.observe(state)

    def taken(self, state: object, event: object) -> Taken | None:
        """The answer to ``event`` in ``state``, asked for again if it is not among the latest."""
        known = self.latest.get((state, event))
        if known is None:
            self.take(state, event)
            known = self.latest.get((state, event))
        return known


class Stage:
    """See the module. ``open_to`` names the parties that may be given any event of their alphabet."""

    def __init__(self, world: World, *, open_to: Sequence[str] = (), illegal: bool = True) -> None:
        self.world = world
        self.name = world.name
        self.open_to = tuple(open_to)
        system = world.system()
        self.properties = tuple(world.properties)
        self.cores: dict[int, PartyCore] = {}
        self.asked: dict[int, Asked] = {}
        self.alphabets: dict[int, Alphabet] = {}
        for index, table in enumerate(system.components):
            component = table.component
            if not isinstance(component, PartyComponent):
                continue
            behaviour = component.behaviour
            if isinstance(behaviour, CoreBehaviour):
                behaviour = component.behaviour = Asked(behaviour)  # type: ignore[assignment]
            if isinstance(behaviour, Asked):
                self.asked[index] = behaviour
                if isinstance(behaviour.core, PartyCore) and type(behaviour.core).snapshot in (PartyCore.snapshot, Watched.snapshot):
                    self.cores[index] = behaviour.core
                    self.alphabets[index] = Alphabet(behaviour.core.party)
        self._illegal = illegal
        self._numbers: dict[object, int] = {}
        self.system = system
        self._ready(system)

    @property
    def parties(self) -> tuple[Party, ...]:
        """The declared parties of the world, each once."""
        return tuple({core.party.name: core.party for core in self.cores.values()}.values())

    def _ready(self, system: System) -> None:
        self.system = system
        self.rules = tuple(self._rules(system))
        self.actions = tuple(n for n, rule in enumerate(self.rules) if rule.kind is not RuleKind.ILLEGAL)
        self.strange = tuple(n for n, rule in enumerate(self.rules) if rule.kind is RuleKind.ILLEGAL)
        self.effects: dict[tuple[int, int, int, object], tuple[object, ...] | None] = {}
        """By component, local state, item and variant: the effects that the core had when it was first asked."""
        self._situations: dict[tuple[int, int], int] = {}
        self._choices: dict[tuple[int, int, int], tuple[Branches, Branches]] = {}
        self.groups = tuple(self._groups(system))
        self._watched: dict[tuple[int, ...], tuple[Group, ...]] = {}
        self.ends: tuple[tuple[Property, Evaluator], ...] = tuple(
            (claim, (Const(value=False) if claim.then is None else claim.then).compiled(system))
            for claim in self.properties
            if claim.kind is PropertyKind.NO_DEADLOCK
        )

    def _rules(self, system: System) -> list[Rule]:
        found = [
            Rule(action.name, RuleKind.ACTION, system.symbols[root][1]) for action, root in zip(system.actions, system.roots, strict=True)
        ]
        for index, alphabet in self.alphabets.items():
            name = system.name(index)
            if name in self.open_to:
                found += [Rule(f"{name} {text}", RuleKind.EVENT, (), index, n) for n, text in enumerate(alphabet.names)]
        if self._illegal:
            found += [Rule(f"{system.name(index)} unexpected", RuleKind.ILLEGAL, (), index) for index in self.asked]
        return found

    def _groups(self, system: System) -> list[Group]:
        found: dict[tuple[tuple[int, ...], bool], Group] = {}
        for claim in self.properties:
            if claim.kind not in (PropertyKind.ALWAYS, PropertyKind.STEP):
                continue
            where = tuple(sorted(claim.expr.components))
            steps = claim.kind is PropertyKind.STEP
            group = found.setdefault((where, steps), Group(where, [], steps))
            group.claims.append((claim, claim.expr.compiled(system)))
        return list(found.values())

    def refreshed(self) -> None:
        """Empty the tables where they have grown too large. To be called between sessions."""
        if sum(len(table.states) for table in self.system.components) > LOCALS_LIMIT or len(self.effects) > 4 * LOCALS_LIMIT:
            self._ready(System([table.component for table in self.system.components], self.system.actions))

    def watched(self, changed: tuple[int, ...]) -> tuple[Group, ...]:
        """The groups of properties that look at one of the components that changed."""
        found = self._watched.get(changed)
        if found is None:
            found = tuple(group for group in self.groups if not set(changed).isdisjoint(group.components))
            self._watched[changed] = found
        return found

    def choice(self, component: int, local: int, item: int, branches: Branches, chance: Chance) -> Branches:
        """What may come of a reaction, as it is chosen from: a crash within the step only now and then, never what is cut out."""
        key = component, local, item
        known = self._choices.get(key)
        if known is None:
            whole = [branch for branch in branches if not branch.truncated]
            broken = tuple(branch for branch in whole if CRASHES in branch.note)
            known = self._choices[key] = (tuple(branch for branch in whole if branch not in broken), broken)
        usual, broken = known
        return broken if broken and (not usual or chance.below(CRASH_EVERY) == 0) else usual

    def situated(self, component: int, local: int) -> int:
        """A number for where the machines of a core are, whatever their data. Of a core without a declaration: for its whole state."""
        key = component, local
        found = self._situations.get(key)
        if found is None:
            table = self.system.components[component]
            where: object = table.states[local]
            if component in self.cores and isinstance(where, PartyLocal) and where.mode is Mode.UP:
                where = _machines(self.cores[component], where.state)
            found = self._situations[key] = self._numbers.setdefault((component, where), len(self._numbers))
        return found

    def enabled(self, state: State, rule: int) -> bool:
        """Whether an action can happen in ``state``, in some way."""
        chosen = self.rules[rule]
        if chosen.kind is not RuleKind.ACTION:
            return True
        return _possible(self.system, list(state), list(chosen.items), 0)

    def property(self, id: str) -> Property | None:  # noqa: A002
        """The world's property of that id."""
        return next((claim for claim in self.properties if claim.id == id), None)


def _machines(core: PartyCore, state: object) -> tuple[object, ...]:
    """Where each machine is; of a family, in which states it has instances."""
    parts: Any = state[0] if isinstance(core, Watched) else state  # type: ignore[index]
    found: list[object] = []
    for machine, part in zip(core.party.machines, parts, strict=False):
        found.append(tuple(sorted({one[1] for one in part})) if machine.family else part[0])
    return tuple(found)


def _possible(system: System, state: list[int], items: list[int], done: int) -> bool:
    if done == len(items):
        return True
    component = system.items[items[done]][0]
    local = state[component]
    for branch in system.call(component, local, items[done]):
        if branch.truncated:
            continue
        state[component] = branch.target
        possible = _possible(system, state, [*items, *branch.emits], done + 1)
        state[component] = local
        if possible:
            return True
    return False
