"""Following a counterexample: its actions, as far as they exist, on the live runtime and in a world beside it.

The world says what must come of each action: the one that the mutant was made of, or the mutated one itself. So a live run that goes
through is a run of that world, and what the checker has shown of the world holds of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from attrs import define, field, frozen

from tests.testing.live.paths.conducting import Conductor, Diverged, named
from troth.models.expressions import Expr, boolean
from troth.models.properties import LIVENESS, Property
from troth.models.replaying import violated_by
from troth.models.system import State, System
from troth.models.trace import Trace, TraceStep, edges

AtOnce = Callable[[TraceStep], "str | None"]


@frozen
class Followed:
    """What came of following a counterexample."""

    run: Trace
    """What the live runtime did, as a run of the world beside it."""
    skipped: tuple[str, ...]
    """Actions of the counterexample that do not exist here: nothing is on its way, no timer runs, nobody waits."""
    apart: str | None
    """The action at which the mutant did something else; ``None`` if it never did."""

    def violates(self, claim: Property) -> bool:
        """Whether the run is a counterexample itself."""
        return violated_by(self.run, claim)


@define(eq=False)
class Follower:
    """One run of a world and a conductor side by side."""

    system: System
    conductor: Conductor
    at_once: AtOnce
    steps: list[TraceStep] = field(factory=list)
    done: list[str] = field(factory=list)
    _since: list[TraceStep] = field(factory=list)

    @property
    def state(self) -> State:
        """Where the world is."""
        return self.steps[-1].state if self.steps else self.system.initial

    def take(self, step: TraceStep, ahead: list[TraceStep]) -> str | None:
        """Perform an edge of the world, and compare; the action that has come in the same moment. Raises ``Diverged``."""
        self.done.append(named(step))
        self._since.append(step)
        together = self.at_once(step)
        self.conductor.perform(step, ahead)
        self.steps.append(step)
        if together is not None:
            other = next(edge for edge in edges(self.system, step.state) if edge.action.name == together)
            self._since.append(other)
            self.conductor.perform(other, ahead)
            self.steps.append(other)
        found = self.conductor.differences(self._since, self.state)
        if found:
            raise Diverged(self.done, found)
        self._since.clear()
        return together

    def like(self, wanted: TraceStep) -> TraceStep | None:
        """The edge that is this one, from where the world is."""
        found = [edge for edge in edges(self.system, self.state) if edge.action.name == wanted.action.name]
        same = [edge for edge in found if edge.label.variants == wanted.label.variants]
        return next(iter(same), None)

    def run(self, story: Trace | None = None) -> Trace:
        """What was done; a lasso where it came back to where it was before, or stands still for ever as ``story`` does."""
        states = [self.system.initial, *(step.state for step in self.steps)]
        first = states.index(states[-1])
        still = story is not None and story.loop == len(story.steps)
        loop = first if first < len(states) - 1 or still else None
        return Trace(self.system, self.system.initial, tuple(self.steps), loop)

    def apart(self, story: Trace, state: State) -> bool:
        """Whether the world is elsewhere than the story."""
        return self._objects(self.system, self.state) != self._objects(story.system, state)

    @staticmethod
    def _objects(system: System, state: State) -> list[object]:
        return [table.states[local] for table, local in zip(system.components, state, strict=True)]

    def reach(self, claim: Property, then: Expr) -> bool:
        """Go on, by what is fair, to where the claim's consequence is true. False if no way leads there."""
        fair = frozenset[int]().union(*(one.actions for one in claim.fair))
        for step in _way(self.system, self.state, fair, then):
            self.take(step, [])
        return _true(self.system, then, self.state)


def follow(system: System, conductor: Conductor, story: Trace, at_once: AtOnce) -> tuple[Follower, Followed]:
    """Perform the actions of ``story``. Raises ``Diverged`` if the live runtime does not do what ``system`` does."""
    follower = Follower(system, conductor, at_once)
    skipped: list[str] = []
    early = Counter[str | None]()
    apart: str | None = None
    for at, wanted in enumerate(story.steps):
        if early[wanted.action.name]:
            early[wanted.action.name] -= 1  # it has come already, in the moment of what came before it
        else:
            step = follower.like(wanted)
            if step is None:
                skipped.append(named(wanted))
            else:
                together = follower.take(step, list(story.steps[at + 1 :]))
                if together in {later.action.name for later in story.steps[at + 1 :]}:
                    early[together] += 1
        if apart is None and not early.total() and follower.apart(story, wanted.state):
            apart = named(wanted)
    return follower, Followed(follower.run(story), tuple(skipped), apart)


def kept(follower: Follower, claim: Property) -> bool:
    """Whether the claim holds of the run: at every moment, and what it promises for later comes."""
    run = follower.run()
    if claim.kind not in LIVENESS:
        return not violated_by(run, claim)
    then = claim.then
    if then is None:
        raise AssertionError(f"{claim.id} is not of the form that is followed here")
    return follower.reach(claim, then)


def _true(system: System, expr: Expr, state: State) -> bool:
    return boolean(expr.compiled(system)(state, state), expr)


def _way(system: System, start: State, fair: frozenset[int], then: Expr) -> list[TraceStep]:
    """The shortest way by fair actions to where ``then`` is true; none if there is none."""
    came: dict[State, TraceStep | None] = {start: None}
    before: dict[State, State] = {}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if _true(system, then, state):
            found: list[TraceStep] = []
            while (step := came[state]) is not None:
                found.append(step)
                state = before[state]
            return found[::-1]
        for edge in edges(system, state):
            if edge.label.action in fair and edge.state not in came:
                came[edge.state], before[edge.state] = edge, state
                waiting.append(edge.state)
    return []
