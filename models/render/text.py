"""A trace as text: numbered steps, one column each for who, what, and what each party made of it."""

from __future__ import annotations

from collections.abc import Iterator

from troth.models.render.flights import Fate, Flight
from troth.models.render.story import Story, StoryStep, story
from troth.models.system import ActionKind
from troth.models.trace import Trace

WHAT_WIDTH = 46
"""Columns that a long event may take before it pushes its line to the right."""


def text(trace: Trace) -> str:
    """The whole trace, a newline at its end."""
    return told(story(trace))


def told(of: Story) -> str:
    """A story that was told already, as text."""
    if not of.steps:
        return "  in the initial state" + (", where nothing need ever happen\n" if of.stands_still else "\n")
    who = max(len(step.who) for step in of.steps)
    what = min(WHAT_WIDTH, max(len(step.event) for step in of.steps))
    party = max([len(t.party) for step in of.steps for t in step.told] + [len(name) for name in of.parties] + [1])
    lines: list[str] = []
    for step in of.steps:
        looping = of.loop is not None and step.number > of.loop
        if looping and of.loop == step.number - 1:
            lines.append("     ┌─ from here on, over and over")
        first = f"{step.number:>3}  {step.who:<{who}}  {step.event:<{what}}"
        blank = " " * (7 + who + what)
        for place, rest in enumerate(_right(step, party) or [""]):
            mark = "│" if looping else " "
            line = first if place == 0 else blank
            lines.append(f" {mark}{line[1:]}  {rest}".rstrip() if looping else f"{line}  {rest}".rstrip())
    if of.stands_still:
        lines.append("     from here on nothing need happen, for ever")
    elif of.loop is not None:
        lines.append("     └─ " + (f"back to where step {of.loop} led" if of.loop else "back to the initial state"))
    return "\n".join(lines) + "\n"


def _right(step: StoryStep, width: int) -> list[str]:
    """The right half: a line for each machine that did something, each message sent, and the links that changed."""
    lines: list[str] = []
    sent = list(step.sent)
    for one in step.told:
        mine = [f for f in sent if f.source == one.party]
        said = [*one.lines, *_sent(mine)]
        sent = [f for f in sent if f not in mine]
        lines += [f"{one.party if place == 0 else '':<{width}}  {line}" for place, line in enumerate(said)]
    for flight in sent:
        lines += [f"{flight.source:<{width}}  {line}" for line in _sent([flight])]
    lines += [f"{'':<{width}}  {note}" for note in step.notes]
    if step.about and not lines and step.kind not in (ActionKind.LOSE, ActionKind.DUPLICATE):
        lines.append(f"{step.about:<{width}}  nothing changes")
    if worth_saying(step):
        lines.append(f"{'':<{width}}  in flight: {in_flight(step)}")
    return lines


def worth_saying(step: StoryStep) -> bool:
    """Whether what is in flight is news: not where it is nothing, or just what this step sent."""
    flying = [message for _, messages in step.in_flight or () for message in messages]
    return bool(flying) and sorted(flying) != sorted(f.message for f in step.sent if f.died != step.number)


def _sent(flights: list[Flight]) -> Iterator[str]:
    for flight in flights:
        instant = flight.link == ""
        lost = f", {flight.fate.value}" if flight.fate in (Fate.FULL, Fate.LOST, Fate.MERGED) and flight.died == flight.born else ""
        yield f"→ {flight.target}: {flight.message}{' (at once)' if instant else ''}{lost}"


def in_flight(step: StoryStep) -> str:
    """What the links carry after a step."""
    return "; ".join(f"{name} {', '.join(messages)}" for name, messages in step.in_flight or ()) or "nothing"
