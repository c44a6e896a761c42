"""One session of a world: from its first state, one rule after the other, with everything compared after every step.

After every step: the world's properties; each core against its table (rows, guards, effects, state, timers), where the core has lived
through the whole session and the table knows one step; events that no row takes against the declaration. At the end: every core's life
once more, by a new core.
"""

from __future__ import annotations

import traceback
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from attrs import frozen

from troth.models.canonical import digest, spelled
from troth.models.errors import ComponentFailed, NotDeterministic, WorldError
from troth.models.parties import Fire, PartyLocal, PartyOp
from troth.models.system import CHAIN_LIMIT, Branch, Check, State
from troth.spec.core import Step, TimerFired
from troth.spec.errors import TrothError
from troth.testing.alphabet import numbers_in
from troth.testing.chance import Chance, Noted
from troth.testing.coverage import Coverage
from troth.testing.stage import Rule, RuleKind, Stage
from troth.testing.twin import Beside, Life, Wrong, replay

ILLEGAL_TRIES = 4
"""Events that are drawn, one after the other, to find one that no row takes."""


class Reaction(NamedTuple):
    """What one component did within a step."""

    component: int
    before: int
    item: int
    branch: Branch


class Move(NamedTuple):
    """One step of a program: which rule, and what was chosen within it."""

    rule: int
    answers: tuple[int, ...]


@frozen
class Settled:
    """One step that was taken, for a trace."""

    rule: Rule
    move: Move
    events: tuple[tuple[str, Any, Step], ...]
    """What cores did in it: party, event, step."""
    state: State


class Session:
    """See the module. Raises ``Wrong`` where something is not as it must be."""

    def __init__(self, stage: Stage, coverage: Coverage, *, traced: bool = False) -> None:
        self.stage = stage
        self.system = stage.system
        self.coverage = coverage
        self.state: State = self.system.initial
        self.moves: list[Move] = []
        self.settled: list[Settled] | None = [] if traced else None
        self.cores = {index: Beside(self.system.components[index].component, core) for index, core in stage.cores.items()}  # type: ignore[arg-type]
        self._events: list[tuple[str, Any, Step]] = []
        self._given: dict[int, list[Any]] = {}
        for index in self.cores:
            coverage.begin(self._party(index), self.system.name(index))
        self._initially()

    def _party(self, index: int) -> str:
        return self.stage.cores[index].party.name

    def _initially(self) -> None:
        for group in self.stage.groups:
            bad = None if group.steps else group.violated(self.state, self.state)
            if bad is not None:
                raise Wrong(bad.id, f"{bad.statement}: it is so from the beginning that it is not")

    # -- steps ---------------------------------------------------------------------------------------------------------

    def take(self, rule: int, chance: Chance) -> bool:
        """Take one rule, if it can be taken now. Raises ``Wrong``; the step is then among ``moves``."""
        chosen = self.stage.rules[rule]
        noted = Noted(chance)
        self._events = []
        try:
            if chosen.kind is RuleKind.ACTION:
                taken = self._act(chosen.items, noted)
            elif chosen.kind is RuleKind.ILLEGAL:
                taken = self._unexpected(chosen, noted)
            else:
                taken = self._event(chosen, noted)
        except Wrong:
            self._note(rule, chosen, noted)
            raise
        except Exception as error:
            self._note(rule, chosen, noted)
            raise raised(error) from error
        if taken:
            self._note(rule, chosen, noted)
        return taken

    def _note(self, rule: int, chosen: Rule, noted: Noted) -> None:
        move = Move(rule, tuple(noted.answers))
        self.moves.append(move)
        if self.settled is not None:
            self.settled.append(Settled(chosen, move, tuple(self._events), self.state))

    def _act(self, items: tuple[int, ...], chance: Chance) -> bool:
        reactions = self._reactions(items, chance)
        if reactions is None:
            return False
        before = self.state
        after = list(before)
        for reaction in reactions:
            after[reaction.component] = reaction.branch.target
        self.state = tuple(after)
        for reaction in reactions:
            if reaction.component in self.cores:
                self._live(reaction)
            elif reaction.component in self.stage.asked:
                self._remember(reaction)
        self._watch(before, self.state)
        return True

    def _reactions(self, items: tuple[int, ...], chance: Chance) -> list[Reaction] | None:
        """What each component does, in order; ``None`` where one of them cannot."""
        system = self.system
        found: list[Reaction] = []
        queue, moved = list(items), dict[int, int]()
        place = 0
        while place < len(queue):
            if place > CHAIN_LIMIT:
                raise WorldError(f"an action takes more than {CHAIN_LIMIT} reactions; components answer each other")
            item = queue[place]
            place += 1
            component = system.items[item][0]
            local = moved.get(component)
            if local is None:
                local = self.state[component]
            branches = system.components[component].calls.get((local, item)) or system.call(component, local, item)
            if len(branches) > 1 or (branches and branches[0].truncated):
                branches = self.stage.choice(component, local, item, branches, chance)
            if not branches:
                return None
            branch = branches[0] if len(branches) == 1 else branches[chance.below(len(branches))]
            found.append(Reaction(component, local, item, branch))
            moved[component] = branch.target
            queue.extend(branch.emits)
        return found

    def _remember(self, reaction: Reaction) -> None:
        """What a core without a declaration was given: its alphabet is what came."""
        event: Any = self.system.items[reaction.item][1]
        if not isinstance(event, PartyOp | Fire | Check):
            known = self._given.setdefault(reaction.component, [])
            if event not in known:
                known.append(event)

    def _live(self, reaction: Reaction) -> None:
        """Let the core itself live through a reaction of its table, and compare."""
        component, before, item, branch = reaction
        beside = self.cores[component]
        states = self.system.components[component].states
        operation, local, after = self.system.items[item][1], states[before], states[branch.target]
        if operation is PartyOp.RESTART:
            beside.born(after)
            self.coverage.begin(self._party(component), beside.name)
            return
        if operation is PartyOp.FIRE or isinstance(operation, Fire):
            operation = _fired(local, branch)
            if branch.variant[0] == "stale":  # type: ignore[index]
                beside.late(operation)
        elif isinstance(operation, PartyOp | Check) or branch.note.endswith(", lost"):
            return
        event: Any = beside.due(operation) if isinstance(operation, TimerFired) else operation
        step = beside.take(event)
        self._events.append((beside.name, event, step))
        self.coverage.step(self._party(component), step, beside.name)
        key = component, before, item, branch.variant
        effects = self.stage.effects.get(key, ...)
        if effects is ...:
            taken = self.stage.asked[component].taken(local.state if isinstance(local, PartyLocal) else local, operation)
            effects = self.stage.effects[key] = taken.effects if taken else None
        beside.agrees(step, branch, after, effects)

    def _watch(self, before: State, after: State) -> None:
        for group in self.stage.watched(tuple(i for i, (was, now) in enumerate(zip(before, after, strict=True)) if was != now)):
            bad = group.violated(before, after)
            if bad is not None:
                raise Wrong(bad.id, bad.statement)

    # -- events of an alphabet -----------------------------------------------------------------------------------------

    def _drawn(self, index: int, route: int, chance: Chance) -> Any:
        beside, alphabet = self.cores[index], self.stage.alphabets[index]
        return alphabet.event(route, chance, numbers_in(beside.twin.snapshot()))

    def _unexpected(self, rule: Rule, chance: Chance) -> bool:
        """Give a core an event that its table says no row takes."""
        index = rule.component
        local = self.system.components[index].states[self.state[index]]
        if isinstance(local, PartyLocal) and local.mode.value != "up":
            return False
        if index not in self.cores:
            return self._refused(index, chance)
        beside, alphabet = self.cores[index], self.stage.alphabets[index]
        for _ in range(ILLEGAL_TRIES):
            place = chance.below(len(alphabet.samples) + len(alphabet.timers))
            if place < len(alphabet.samples):
                event = self._drawn(index, place, chance)
            else:
                event = self._late(beside, alphabet.timers[place - len(alphabet.samples)], chance)
            try:
                step = beside.offered(event)
            except Wrong:
                raise
            except Exception as error:
                raise Wrong("core", f"{beside.name}: {type(error).__name__}: {error}, asked about {event!r}") from error
            if step is not None:
                self._events.append((beside.name, event, step))
                self.coverage.step(self._party(index), step, beside.name)
                return True
        return False

    def _refused(self, index: int, chance: Chance) -> bool:
        """Give a core without a declaration something that it was given before. If it refuses, it must be as it was."""
        seen = self._given.get(index)
        local: Any = self.system.components[index].states[self.state[index]]
        if not seen:
            return False
        event, core, name = seen[chance.below(len(seen))], self.stage.asked[index].core, self.system.name(index)
        core.restore(local.state)
        step = core.handle(event)
        if step.refusal is None:
            return False
        if step.effects or core.snapshot() != local.state:
            raise Wrong("ignored", f"{name} refused {event!r}, but it caused {step.effects} and went to {core.snapshot()!r}")
        self._events.append((name, event, step))
        return True

    def _late(self, beside: Beside, timer: str, chance: Chance) -> TimerFired:
        """A firing that is not the one that was set."""
        armed = [where for where in beside.twin.armed if where[0] == timer]
        key = armed[chance.below(len(armed))][1] if armed else None
        running = beside.twin.armed.get((timer, key), -1)
        return TimerFired(timer, key, (running + 1 + chance.below(3)) % 4 if running >= 0 else chance.below(4))

    def _event(self, rule: Rule, chance: Chance) -> bool:
        event = self._drawn(rule.component, rule.route, chance)
        return self._act((self.system.item((rule.component, event)),), chance)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def able(self) -> list[int]:
        """The actions that can be taken now."""
        return [rule for rule in self.stage.actions if self.stage.enabled(self.state, rule)]

    def situation(self) -> tuple[int, ...]:
        """Where the machines of all cores are, without their data."""
        return tuple(self.stage.situated(index, self.state[index]) for index in self.stage.asked)

    def stuck(self) -> None:
        """Nothing can happen any more. Raises ``Wrong`` where that is not an end that the world permits."""
        if self.stage.open_to:
            return
        for claim, ends in self.stage.ends:
            if not ends(self.state, self.state):
                raise Wrong(claim.id, f"{claim.statement}: nothing can happen any more")

    @property
    def lives(self) -> list[Life]:
        """What every core lived through."""
        return [life for beside in self.cores.values() for life in beside.lives]

    def finished(self) -> None:
        """What is compared once a session is over: every life, again."""
        for beside in self.cores.values():
            beside.round_trip()
        replay(self.lives)

    def trace(self) -> tuple[str, ...]:
        """The session as lines: the same in every process."""
        lines = []
        for number, one in enumerate(self.settled or ()):
            name = digest("", tuple(self.system.spelled(one.state).items()))
            lines.append(f"{number} {one.rule.name} {' '.join(map(str, one.move.answers))} -> {name:016x}")
            lines += [f"  {party} {spelled(event)} {' '.join(step.rows)} {spelled(step.effects)}" for party, event, step in one.events]
        return tuple(lines)


KINDS: Mapping[type[Exception], str] = {ComponentFailed: "core", NotDeterministic: "effects", WorldError: "world"}


def raised(error: Exception) -> Wrong:
    """What is wrong where something raised: a core, a property, an observation, of ours or of whoever wrote the world. With the traceback
    of what is not of our own making, and ``error`` for what nobody foresaw."""
    if isinstance(error, Wrong):
        return error
    kind = KINDS.get(type(error), "error")
    own = isinstance(error, TrothError)
    cause = error.__cause__ if own else error
    what = str(error) if own else f"{type(error).__name__}: {error}"
    return Wrong(kind, "\n".join([what, *map(str.rstrip, traceback.format_exception(cause) if cause is not None else ())]))


def _fired(local: Hashable, branch: Branch) -> TimerFired:
    """Which timer a branch of ``FIRE`` is about: its variant begins with ``timer`` or ``stale``, the name and the key."""
    variant: Any = branch.variant
    stale, name, key = variant[0] == "stale", variant[1], variant[2]
    timers = local.timers if isinstance(local, PartyLocal) else ()
    timer = next(t for t in timers if (t.stale, t.timer, t.key) == (stale, name, key))
    return TimerFired(name, key, timer.generation)
