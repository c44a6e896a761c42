"""A counterexample as data: what acted, what each component did about it, and what changed.

Rendering (text, diagrams, JSON) is elsewhere; everything it needs is here, as plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from attrs import frozen

from troth.models.system import CHAIN_LIMIT, Action, Branch, Label, State, System


@frozen
class Reaction:
    """What one component did within a step."""

    component: int
    name: str
    operation: Hashable
    before: Hashable
    after: Hashable
    rows: tuple[str, ...]
    guards: tuple[tuple[str, bool], ...]
    emits: tuple[tuple[int, Hashable], ...]
    """(component index, operation) of what it gave to others: a message to a link, an event to a party."""
    note: str
    variant: Hashable = None


@frozen
class TraceStep:
    """One edge: the action, what each component did, in order, and the state after it."""

    action: Action
    label: Label
    reactions: tuple[Reaction, ...]
    state: State


@frozen(eq=False)
class Trace:
    """A run from the initial state. ``loop`` is the index of the state that the last step leads back to, in a lasso; else ``None``."""

    system: System
    start: State
    steps: tuple[TraceStep, ...]
    loop: int | None = None

    @property
    def states(self) -> tuple[State, ...]:
        """All states of the run, one more than steps."""
        return (self.start, *(step.state for step in self.steps))

    @property
    def choices(self) -> tuple[int, ...]:
        """For replay: at each step, which of ``edges`` was taken."""
        found = []
        for before, step in zip(self.states, self.steps, strict=False):
            places = [i for i, edge in enumerate(edges(self.system, before)) if edge.state == step.state and edge.label == step.label]
            found.append(places[0])
        return tuple(found)


def edges(system: System, state: State) -> list[TraceStep]:
    """Every edge out of ``state`` with everything that happens on it, in the order of ``System.successors`` (truncated ones left out)."""
    found: list[TraceStep] = []
    for root in system.labelled_roots:
        _follow(system, state, root, (), found)
    return found


def _follow(system: System, state: State, symbol: int, done: tuple[Reaction, ...], found: list[TraceStep]) -> None:
    head = system.heads[symbol]
    if head < 0:
        if symbol > 1:
            label = system.label_of(symbol)
            found.append(TraceStep(system.actions[label.action], label, done, state))
        return
    if len(done) > CHAIN_LIMIT:
        raise AssertionError("an action never ends")
    _, items = system.symbols[symbol]
    local = state[head]
    branches = system.call(head, local, items[0])
    for branch, (target, after) in zip(branches, system.resolve(symbol, local), strict=True):
        moved = (*state[:head], target, *state[head + 1 :])
        _follow(system, moved, after, (*done, _reaction(system, head, local, items[0], branch)), found)


def _reaction(system: System, head: int, local: int, item: int, branch: Branch) -> Reaction:
    table = system.components[head]
    emits = tuple(system.items[e] for e in branch.emits)
    return Reaction(
        head,
        table.component.name,
        system.items[item][1],
        table.states[local],
        table.states[branch.target],
        branch.rows,
        branch.guards,
        emits,
        branch.note,
        branch.variant,
    )


def trace_along(
    system: System, path: Sequence[State], loop: int | None = None, *, canonical: Callable[[State], State] | None = None
) -> Trace:
    """The trace along these states: at each step the first edge, in the order of the actions, that leads to the next state.

    With symmetry, ``path`` is of representatives and ``canonical`` gives the representative of a state; the trace is a real run.
    """
    same = canonical or _itself
    start = state = system.initial if canonical else path[0]
    steps: list[TraceStep] = []
    for after in path[1:]:
        wanted = same(after)
        step = next((edge for edge in edges(system, state) if same(edge.state) == wanted), None)
        if step is None:
            raise AssertionError(f"no edge leads from {system.spelled(state)} to {system.spelled(after)}")
        steps.append(step)
        state = step.state
    return Trace(system, start, tuple(steps), loop)


def _itself(state: State) -> State:
    return state
