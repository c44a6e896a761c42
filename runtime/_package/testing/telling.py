"""What a failure says: the example, step by step, what it violates, and the checker's shortest trace to the same property."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from troth.models.canonical import spelled
from troth.models.check import check
from troth.models.errors import WorldError
from troth.models.exploration import Ending, Limits
from troth.models.properties import PropertyKind
from troth.models.render.text import text
from troth.models.trace import Trace, TraceStep, edges
from troth.models.world import World
from troth.spec.core import Step
from troth.testing.chance import Recorded
from troth.testing.coverage import Coverage
from troth.testing.session import Move, Session
from troth.testing.stage import RuleKind, Stage
from troth.testing.twin import Wrong

RAISED = ("core", "error", "world")
"""What is said of code that raises."""
CHECKED_STATES = 20_000
"""How far the checker looks for its own trace to the same violation: some seconds at most, also where states grow from one to the next."""
BROKEN_OFF = "interrupted: nobody has looked any further; the replay line shows it again"
"""What is told last of a failure where an interrupt came while it was made shorter, or while more was found out about it."""


def told(stage: Stage, wrong: Wrong, moves: Sequence[Move], make: Callable[[], World] | None = None, whole: int = 0) -> str:
    """All of it. ``whole`` is how many steps the example had before it was made shorter."""
    return "\n".join([*case(stage, wrong, moves, whole), *shortest(stage, wrong.property, make)])


def case(stage: Stage, wrong: Wrong, moves: Sequence[Move], whole: int = 0) -> list[str]:
    """What is wrong, and the example: what is known without looking any further."""
    claim = stage.property(wrong.property)
    head = f"{wrong.property}: {claim.statement}" if claim is not None else str(wrong)
    return [head, headed(len(moves), whole), *indented(example(stage, moves))]


def headed(steps: int, whole: int = 0, about: str = "") -> str:
    """The line above an example of so many steps."""
    cut = f", shortened from {whole}" if whole > steps else ""
    if steps == 0:
        return f"no step is needed: it is so from the beginning{about}"
    return f"the example, {steps} step{'' if steps == 1 else 's'}{cut}{about}:"


def indented(lines: Sequence[str]) -> list[str]:
    """Lines of a part."""
    return [f"  {line}" if line else line for line in lines]


def example(stage: Stage, moves: Sequence[Move]) -> list[str]:
    """A program as a reader follows it: drawn like a trace of the checker, where all of it is of the world. None of one without steps."""
    if not moves:
        return []
    try:
        session, found = _played(stage, moves)
    except Exception:  # it is what is told of
        return ["no step of it is needed: it is so from the beginning"]
    if len(found) == len(moves) and all(isinstance(one, TraceStep) for one in found):
        steps: Any = tuple(found)
        return text(Trace(stage.system, stage.system.initial, steps)).rstrip().splitlines()
    lines = []
    for number, (settled, one) in enumerate(zip(session.settled or (), [*found, None], strict=False), start=1):
        what = f"{one.action.who} {one.action.name}" if isinstance(one, TraceStep) else settled.rule.name
        lines.append(f"{number:>3}  {what}")
        lines += [f"       {party} {spelled(event)}: {_did(step)}" for party, event, step in settled.events]
    return lines


def _did(step: Step) -> str:
    if step.refusal is not None:
        return f"refused ({step.refusal.row}: {step.refusal.why})"
    effects = f" → {', '.join(spelled(effect) for effect in step.effects)}" if step.effects else ""
    return f"{' '.join(step.rows)}{effects}"


def _played(stage: Stage, moves: Sequence[Move]) -> tuple[Session, list[TraceStep | None]]:
    """The session of a program up to what is wrong, and for each step that the world has an edge for, that edge."""
    session = Session(stage, Coverage(), traced=True)
    found: list[TraceStep | None] = []
    for move in moves:
        before = session.state
        stopped = False
        try:
            if not session.take(move.rule, Recorded(move.answers)):
                continue
        except Exception:  # it is what is told of
            stopped = True
        rule = stage.rules[move.rule]
        edge = None
        if rule.kind is RuleKind.ACTION:
            action = stage.system.actions[move.rule]
            with suppress(Exception):  # of a step that raises there is no edge
                edge = next((e for e in edges(stage.system, before) if e.action is action and e.state == session.state), None)
        found.append(edge)
        if stopped:
            break
    return session, found


def shortest(stage: Stage, id: str, make: Callable[[], World] | None = None) -> list[str]:  # noqa: A002
    """The checker's own trace to the same violation, or why there is none."""
    claim = stage.property(id)
    if id in RAISED:
        return ["the checker has no trace to it: what raises ends its search, too"]
    if stage.open_to:
        return ["the checker has no trace to it: a party alone may be given anything, which is no closed world"]
    if claim is None or claim.kind not in (PropertyKind.ALWAYS, PropertyKind.STEP, PropertyKind.NO_DEADLOCK):
        return ["the checker has no trace to it: it is about the core beside its table, which only a run can show"]
    return searched(id, make() if make else stage.world, stage.name)


def searched(id: str, world: World, name: str, states: int = CHECKED_STATES) -> list[str]:  # noqa: A002
    """The shortest trace that the checker finds to a violation of ``id`` in a world that claims it, or that it finds none.

    It stops at the first. The plain engine does it in any case: a world without end may be as deep as it has states, and the other one
    takes its time for every level.
    """
    try:
        limits = Limits(max_states=states, workers=1, stop_at_violation=True)
        result = check(world, properties=[id], limits=limits, engine="scalar")
    except WorldError as error:
        return [f"the checker has no trace to it: {error}"]
    found = next((one for one in result.properties if one.property.id == id), None)
    if found is None or found.trace is None:
        if result.ending is Ending.COMPLETE:
            return [f"the checker finds none: the model keeps it, in all {result.states:,} states of {name}"]
        return [f"the checker finds no trace to it among the first {result.states:,} states of {name}"]
    count = len(found.trace.steps)
    head = f"the checker's shortest trace to it, {count} step{'' if count == 1 else 's'}:"
    return [head, *indented(text(found.trace).rstrip().splitlines())]
