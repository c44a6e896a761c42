"""A trace told step by step: who did what, what each party made of it, what was sent, what is in flight. Only what changed.

Text, diagrams, JSON and the page all tell this one story; none of them looks at a trace by itself.
"""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from troth.models.links import LinkComponent, StopwatchComponent
from troth.models.parties import Mode, PartyComponent, PartyLocal
from troth.models.render.flights import Flight, Tracker
from troth.models.render.parties import Part, parts
from troth.models.render.words import Change, value
from troth.models.system import ActionKind
from troth.models.trace import Reaction, Trace, TraceStep
from troth.spec.core import CallCancelled, Called


@frozen
class Told:
    """What one party did within a step."""

    party: str
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    crashed: bool = False
    restarted: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """Part by part, then the notes."""
        return (*(part.text for part in self.parts), *self.notes)


@frozen
class StoryStep:
    """One step. ``about`` is the party that the event is for; ``in_flight`` is ``None`` where the links did not change."""

    number: int
    who: str
    event: str
    action: str
    kind: ActionKind
    about: str
    told: tuple[Told, ...]
    sent: tuple[Flight, ...]
    ended: tuple[Flight, ...]
    notes: tuple[str, ...]
    in_flight: tuple[tuple[str, tuple[str, ...]], ...] | None


@frozen
class Story:
    """A whole run. ``loop`` is the number of the last step before the part that repeats for ever, or ``None``."""

    parties: tuple[str, ...]
    steps: tuple[StoryStep, ...]
    flights: tuple[Flight, ...]
    loop: int | None = None
    """Equal to the number of the last step where nothing happens any more."""
    start: dict[str, str] = field(factory=dict)

    @property
    def stands_still(self) -> bool:
        """Whether nothing happens any more after the last step: for ever, so that it violates a liveness property."""
        return self.loop == len(self.steps)


def story(trace: Trace) -> Story:
    """Tell ``trace``."""
    tracker = Tracker(trace.system)
    steps: list[StoryStep] = []
    flying: dict[str, tuple[str, ...]] = {}
    for number, step in enumerate(trace.steps, start=1):
        tracker.step(number, step.reactions)
        now = tracker.in_flight()
        moved = None if now == flying else tuple(now.items())
        flying = now
        steps.append(_step(trace, number, step, tracker.flights, moved))
    names = [t.component.name for t in trace.system.components if isinstance(t.component, PartyComponent)]
    involved = {told.party for step in steps for told in step.told} | {end for f in tracker.flights for end in (f.source, f.target)}
    return Story(tuple(n for n in names if n in involved), tuple(steps), tuple(tracker.flights), trace.loop)


def _step(
    trace: Trace, number: int, step: TraceStep, known: list[Flight], moved: tuple[tuple[str, tuple[str, ...]], ...] | None
) -> StoryStep:
    by_party: dict[int, list[Reaction]] = {}
    notes: list[str] = []
    for reaction in step.reactions:
        component = trace.system.components[reaction.component].component
        if isinstance(component, PartyComponent):
            by_party.setdefault(reaction.component, []).append(reaction)
        elif reaction.note:
            notes.append(reaction.note)
        if isinstance(component, StopwatchComponent) and reaction.before != reaction.after:
            notes.append(f"{reaction.name} {Change('', value(reaction.before), value(reaction.after))}")
    told = tuple(_told(trace, index, reactions) for index, reactions in by_party.items())
    who, event, about = _event(trace, step)
    return StoryStep(
        number,
        who,
        event,
        step.action.name,
        step.action.kind,
        about,
        tuple(t for t in told if t.lines),
        tuple(f for f in known if f.born == number and not f.copy),
        tuple(f for f in known if f.died == number and f.born != number),
        tuple(dict.fromkeys(notes)),
        moved,
    )


def _told(trace: Trace, index: int, reactions: list[Reaction]) -> Told:
    component = trace.system.components[index].component
    if not isinstance(component, PartyComponent):
        raise TypeError(f"{component.name} is not a party")
    modes = [local.mode for local in (reactions[0].before, reactions[-1].after) if isinstance(local, PartyLocal)]
    notes = [_note(r.note) for r in reactions if r.note]
    return Told(
        component.name,
        tuple(parts(component, reactions)),
        tuple(dict.fromkeys(n for n in notes if n)),
        crashed=modes[0] is Mode.UP and modes[-1] is Mode.DOWN,
        restarted=modes[0] is Mode.DOWN and modes[-1] is Mode.UP,
    )


def _note(note: str) -> str:
    return "" if note.startswith("refused: ") and len(note) == len("refused: ") else note


def _event(trace: Trace, step: TraceStep) -> tuple[str, str, str]:  # noqa: PLR0911
    """Who acts, what happens, and to which party."""
    action, variants = step.action, step.label.variants
    first = variants[0] if variants else None
    head = trace.system.components[action.items[0][0]].component
    link = head if isinstance(head, LinkComponent) else None
    target = trace.system.name(link.target) if link else ""
    match action.kind:
        case ActionKind.CALL:
            return _call(trace, step)
        case ActionKind.DELIVER if first == "closed":
            return "network", f"tells that {action.name.removesuffix(' delivers')} was closed", target
        case ActionKind.DELIVER:
            return "network", f"delivers {value(first)}", target
        case ActionKind.LOSE:
            return "network", f"loses {value(first)}", target
        case ActionKind.DUPLICATE:
            return "network", f"duplicates {value(first)}", target
        case ActionKind.TIMER:
            return "clock", _timer(first), head.name
        case ActionKind.TICK:
            return "clock", "one tick passes", ""
        case ActionKind.CUT | ActionKind.CONNECT:
            return "network", action.name, ""
        case ActionKind.CRASH | ActionKind.RESTART:
            return "fault" if action.kind is ActionKind.CRASH else "restart", action.name, head.name


def _timer(variant: Any) -> str:
    if not isinstance(variant, tuple) or len(variant) < 3:
        return "a timer fires"
    key = "" if variant[2] is None else f"[{value(variant[2])}]"
    return f"{'late firing of' if variant[0] == 'stale' else 'timer'} {variant[1]}{key}{'' if variant[0] == 'stale' else ' fires'}"


def _call(trace: Trace, step: TraceStep) -> tuple[str, str, str]:
    index, event = step.action.items[-1]
    party = trace.system.name(index)
    label = step.action.name.removeprefix(f"{party}.")
    if not isinstance(event, Called | CallCancelled):
        return "environment", label if label != type(event).__name__ else value(event), party
    if label != event.call:
        return "user", label, party
    arguments = [value(a) for a in (getattr(event, "payload", None),) if a is not None]
    if event.number:
        arguments.append(f"call {event.number}")
    cancelled = "gives up " if isinstance(event, CallCancelled) else ""
    return "user", f"{cancelled}{label}({', '.join(arguments)})", party
