"""A trace as a mermaid ``sequenceDiagram``.

Mermaid draws level arrows only, so a message is drawn where it arrives or is lost; that it was sent is noted at its sender.
"""

from __future__ import annotations

from collections.abc import Iterator

from troth.models.render.flights import Fate, Flight
from troth.models.render.story import Story, StoryStep, story
from troth.models.trace import Trace

INDENT = "    "


def sequence(trace: Trace) -> str:
    """The diagram, a newline at its end."""
    return drawn(story(trace))


def drawn(of: Story) -> str:
    """A story that was told already, as a diagram."""
    names = {name: f"p{place}" for place, name in enumerate(of.parties)}
    lines = ["sequenceDiagram", *(f"{INDENT}participant {short} as {_text(name)}" for name, short in names.items())]
    indent = INDENT
    for step in of.steps:
        if of.loop is not None and step.number == of.loop + 1:
            lines.append(f"{indent}loop for ever")
            indent += INDENT
        lines += [f"{indent}{line}" for line in _step(step, names)]
    if of.stands_still:
        ends = ",".join(dict.fromkeys((*list(names.values())[:1], *list(names.values())[-1:])))
        lines += [f"{INDENT}Note over {ends}: nothing need happen, for ever"] if ends else []
    elif of.loop is not None:
        lines.append(f"{INDENT}end")
    for flight in of.flights:
        if flight.fate is Fate.IN_FLIGHT:
            lines.append(f"{INDENT}Note over {_both(flight, names)}: in flight: {_text(flight.message)}")
    return "\n".join(lines) + "\n"


def _step(step: StoryStep, names: dict[str, str]) -> Iterator[str]:
    arrived = False
    for flight in step.ended:
        arrow, note = ("->>", "") if flight.fate is Fate.DELIVERED else ("-x", " (lost)")
        yield f"{names[flight.source]}{arrow}{names[flight.target]}: {step.number} {_text(flight.message)}{note}"
        arrived = True
    for told in step.told:
        lines = [*told.lines, *(f"sends {f.message}" for f in step.sent if f.source == told.party and f.link)]
        if not arrived and told.party == step.about:
            lines.insert(0, f"{step.number} {step.who}: {step.event}")
            arrived = True
        yield f"Note over {names[told.party]}: {'<br/>'.join(_text(line) for line in lines)}"
    for flight in step.sent:
        if not flight.link:
            yield f"{names[flight.source]}->>{names[flight.target]}: {_text(flight.message)}"
        elif flight.died == step.number:
            yield f"{names[flight.source]}-x{names[flight.target]}: {_text(flight.message)} ({flight.fate.value})"
    if not arrived and names:
        everybody = [next(iter(names.values())), list(names.values())[-1]]
        yield f"Note over {','.join(dict.fromkeys(everybody))}: {step.number} {_text(f'{step.who}: {step.event}')}"


def _both(flight: Flight, names: dict[str, str]) -> str:
    return ",".join(dict.fromkeys([names[flight.source], names[flight.target]]))


def _text(value: str) -> str:
    """A label without the characters that end one, or that begin a tag."""
    for found, instead in (("#", "#35;"), (";", ","), ("\n", " "), ("<", "&lt;"), (">", "&gt;"), ("%%", "%")):
        value = value.replace(found, instead)
    return value
