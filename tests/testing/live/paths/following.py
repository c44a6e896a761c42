"""Following a counterexample: its actions, as far as they exist, on the live runtime and in a world beside it.

The world says what must come of each action: the one that the mutant was made of, or the mutated one itself. So a live run that goes
through is a run of that world, and what the checker has shown of the world holds of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from attrs import define, field, frozen

from tests.testing.live.paths.asking import in_vain
from tests.testing.live.paths.conducting import CannotPerform, Conductor, Diverged, named
from tests.testing.live.paths.projecting import alike
from troth.models.expressions import Expr, boolean
from troth.models.properties import LIVENESS, Property
from troth.models.replaying import violated_by
from troth.models.system import State, System
from troth.models.trace import Trace, TraceStep, edges
from troth.testing.paths import Bars, Place

AtOnce = Callable[[TraceStep], "str | None"]


@frozen
class Followed:
    """What came of following a counterexample."""

    run: Trace
    """What the live runtime did, as a run of the world beside it."""
    skipped: tuple[str, ...]
    """Actions of the counterexample that do not exist here, and why."""
    apart: str | None
    """The action at which the mutant does something else, or which it alone has; ``None`` if there is none."""

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

    @property
    def state(self) -> State:
        """Where the world is."""
        return self.steps[-1].state if self.steps else self.system.initial

    def take(self, step: TraceStep, ahead: list[TraceStep]) -> list[TraceStep]:
        """Perform an edge of the world, and compare; it, and what has come in the same moment. Raises ``Diverged``, ``CannotPerform``."""
        together = self.at_once(step)
        self.conductor.perform(step, ahead)
        taken = [step]
        if together is not None:
            taken.append(next(edge for edge in edges(self.system, step.state) if edge.action.name == together))
            self.conductor.perform(taken[-1], ahead)
        self.done += map(named, taken)
        self.steps += taken
        found = self.conductor.differences(taken, self.state)
        if found:
            raise Diverged(self.done, found)
        return taken

    def tried(self, step: TraceStep, ahead: list[TraceStep]) -> list[TraceStep] | str:
        """The same, or why it cannot be performed."""
        try:
            return self.take(step, ahead)
        except CannotPerform as reason:
            return str(reason)

    def asked(self, wanted: TraceStep) -> str:
        """Why the live runtime does not do what the world has not here: it is asked all the same, and answers for itself. Raises
        ``Diverged`` if it does it, or if anything else comes of it."""
        answer = in_vain(self.conductor, wanted)
        found = self.conductor.differences([], self.state)
        if answer is None or found:
            what = "the world has no such thing here, and the runtime has"
            raise Diverged([*self.done, named(wanted)], [*([what] if answer is None else []), *found])
        return answer

    def like(self, wanted: TraceStep) -> TraceStep | None:
        """The edge that is this one, from where the world is."""
        return like(self.system, self.state, wanted)

    def run(self, story: Trace | None = None) -> Trace:
        """What was done; a lasso where it came back to where it was before, or stands still for ever as ``story`` does."""
        states = [self.system.initial, *(step.state for step in self.steps)]
        first = states.index(states[-1])
        still = story is not None and story.loop == len(story.steps)
        loop = first if first < len(states) - 1 or still else None
        return Trace(self.system, self.system.initial, tuple(self.steps), loop)

    def reach(self, claim: Property, then: Expr) -> bool:
        """Go on, by what is fair, to where the claim's consequence is true. False if no way leads there."""
        fair = frozenset[int]().union(*(one.actions for one in claim.fair))
        for step in _way(self.system, self.state, fair, then):
            self.take(step, [])
        return _true(self.system, then, self.state)


def shortest(system: System, claim: Property, at_once: AtOnce, bars: Bars) -> Trace | None:
    """The shortest run that breaks the claim, of those that the runtime can be led along. ``None`` if there is none, or if the claim is
    about what comes in the end."""
    start: Place = (system.initial, None)
    came: dict[Place, tuple[TraceStep, Place] | None] = {start: None}
    waiting: deque[Place] = deque([start])
    while waiting and claim.kind not in LIVENESS:
        here = waiting.popleft()
        state, forced = here
        for step in edges(system, state):
            if forced not in (None, step.action.name) or bars(state, step) is not None:
                continue
            after = step.state, at_once(step)
            if after not in came:
                came[after] = step, here
                waiting.append(after)
            if violated_by(Trace(system, state, (step,)), claim):
                return Trace(system, system.initial, (*_steps(came, here), step))
    return None


def _steps(came: dict[Place, tuple[TraceStep, Place] | None], place: Place) -> list[TraceStep]:
    found: list[TraceStep] = []
    while (before := came[place]) is not None:
        found.append(before[0])
        place = before[1]
    return found[::-1]


@define
class Twin:
    """The world of the counterexample, which does what is performed, for as long as it is where the live one is."""

    system: System
    state: State
    apart: str | None = None

    def does(self, taken: TraceStep, system: System) -> None:
        """The live runtime has taken an edge of its own world."""
        if self.apart is None:
            found = like(self.system, self.state, taken)
            if found is None or not alike(system, taken.state, self.system, found.state):
                self.apart = named(taken)
            else:
                self.state = found.state

    def misses(self, wanted: TraceStep) -> None:
        """It did not do that: there is no such thing."""
        if self.apart is None and like(self.system, self.state, wanted) is not None:
            self.apart = named(wanted)


def follow(system: System, conductor: Conductor, story: Trace, at_once: AtOnce) -> tuple[Follower, Followed]:
    """Perform the actions of ``story``. Raises ``Diverged`` if the live runtime does not do what ``system`` does."""
    follower, twin = Follower(system, conductor, at_once), Twin(story.system, story.start)
    skipped: list[str] = []
    early = Counter[str]()
    for at, wanted in enumerate(story.steps):
        if early[wanted.action.name]:
            early[wanted.action.name] -= 1  # it has come already, in the moment of what came before it
            continue
        step = follower.like(wanted)
        taken = follower.asked(wanted) if step is None else follower.tried(step, list(story.steps[at + 1 :]))
        if isinstance(taken, str):
            skipped.append(f"{named(wanted)}: {taken}")
            twin.misses(wanted)
            continue
        early.update({edge.action.name for edge in taken[1:]} & {later.action.name for later in story.steps[at + 1 :]})
        for edge in taken:
            twin.does(edge, system)
    return follower, Followed(follower.run(story), tuple(skipped), twin.apart)


def like(system: System, state: State, wanted: TraceStep) -> TraceStep | None:
    """The edge that is called like ``wanted``, from there."""
    found = (edge for edge in edges(system, state) if edge.action.name == wanted.action.name)
    return next((edge for edge in found if edge.label.variants == wanted.label.variants), None)


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
