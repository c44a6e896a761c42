"""A trace as an SVG sequence diagram, with nothing outside the text: no scripts, no fonts, no links.

Time runs down, one band a step. A message is a slanted arrow from the step that sent it to the step that delivered it; one that is
lost ends in a cross half way, one that is still in flight runs out at the bottom, a copy begins where the network made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import wrap

from attrs import define, field

from troth.models.render.flights import Fate, Flight
from troth.models.render.story import Story, StoryStep
from troth.models.system import ActionKind

LINE = 15
"""Pixels a line of text."""
LETTER = 6.6
"""Pixels a letter, about: the font is whatever monospace the reader has."""
GUTTER = 270
COLUMN = 330
"""Pixels between two lifelines: room for what a party did, and beyond it for the names of messages."""
BESIDE = 205
"""Pixels of that for what a party did."""
TOP = 46
BAND = 14
"""Pixels between two steps."""
BRACKET = 44


@define
class Canvas:
    """Where everything is, and what was drawn so far."""

    story: Story
    x: dict[str, int] = field(factory=dict)
    y: dict[int, int] = field(factory=dict)
    height: int = 0
    shapes: list[str] = field(factory=list)

    @property
    def width(self) -> int:
        """Of the whole picture."""
        return GUTTER + COLUMN * max(1, len(self.x)) + (BRACKET if self.story.loop is not None else 0)

    def put(self, shape: str) -> None:
        """Draw."""
        self.shapes.append(shape)

    def text(self, x: float, y: float, words: str, cls: str = "", title: str = "") -> None:
        """A line of text; ``title`` is shown when the pointer rests on it."""
        tip = f"<title>{escape(title)}</title>" if title else ""
        kind = f' class="{cls}"' if cls else ""
        self.put(f'<text x="{x:g}" y="{y:g}"{kind}>{tip}{escape(words)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str) -> None:
        """A straight line."""
        self.put(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{cls}"/>')


def svg(story: Story, label: str) -> str:
    """The diagram; ``label`` says what it shows to those who cannot see it."""
    canvas = Canvas(story)
    canvas.x = {name: GUTTER + COLUMN * place + 20 for place, name in enumerate(story.parties)}
    canvas.height = _rows(canvas)
    for drawn in (_bands, _lifelines, _flights, _steps, _loop):
        drawn(canvas)
    size = f'viewBox="0 0 {canvas.width} {canvas.height}" width="{canvas.width}" height="{canvas.height}"'
    body = "\n".join(canvas.shapes)
    return f'<svg {size} role="img" aria-label="{escape(label)}">\n{body}\n</svg>\n'


def _event(step: StoryStep) -> list[str]:
    return wrap(step.event, int((GUTTER - 50) / LETTER)) or [""]


def _lines(step: StoryStep, party: str) -> list[tuple[str, str]]:
    """What stands beside a party's lifeline in a step, with the reason for its tip."""
    found: list[tuple[str, str]] = []
    for told in step.told:
        if told.party != party:
            continue
        for part in told.parts:
            why = "; ".join(f"{f.id}: {f.why}" for f in part.fired if f.why)
            found += [(line, why) for line in _wrapped(part.text)]
        found += [(line, "") for note in told.notes for line in _wrapped(note)]
    return found


def _wrapped(words: str) -> list[str]:
    return wrap(words, int(BESIDE / LETTER), subsequent_indent="  ") or [""]


def _rows(canvas: Canvas) -> int:
    """Give each step its place; answer the height of all."""
    y = TOP + BAND
    for step in canvas.story.steps:
        canvas.y[step.number] = y + LINE
        beside = max((len(_lines(step, party)) for party in canvas.x), default=0)
        left = 1 + len(_event(step)) + len(step.notes)
        y += max(beside, left) * LINE + BAND
    return y + 26 + LINE * sum(f.fate is Fate.IN_FLIGHT for f in canvas.story.flights)


def _bands(canvas: Canvas) -> None:
    """Every second step has a band behind it, so that a line of text is read across."""
    steps = canvas.story.steps
    for place, step in enumerate(steps):
        top = canvas.y[step.number] - LINE - BAND / 2 + 2
        bottom = canvas.y[steps[place + 1].number] - LINE - BAND / 2 + 2 if place + 1 < len(steps) else canvas.height - 20
        if place % 2 == 0:
            canvas.put(f'<rect x="0" y="{top:g}" width="{canvas.width}" height="{bottom - top:g}" class="band"/>')


def _lifelines(canvas: Canvas) -> None:
    bottom = canvas.height - 18
    for name, x in canvas.x.items():
        half = max(34, len(name) * LETTER / 2 + 12)
        left = max(GUTTER - 20, x - half)
        canvas.put(f'<rect x="{left:g}" y="8" width="{2 * half:g}" height="26" rx="6" class="head"/>')
        canvas.text(left + half, 25, name, "name")
        y: float = 34
        for at, down in _crashes(canvas, name):
            canvas.line(x, y, x, at, "down" if not down else "life")
            y = at
        is_down = any(True for _ in _crashes(canvas, name)) and list(_crashes(canvas, name))[-1][1]
        canvas.line(x, y, x, bottom, "down" if is_down else "life")


def _crashes(canvas: Canvas, party: str) -> Iterator[tuple[float, bool]]:
    """Where a party goes down (``True``) and comes back (``False``)."""
    for step in canvas.story.steps:
        for told in step.told:
            if told.party == party and (told.crashed or told.restarted):
                yield canvas.y[step.number] - 4, told.crashed


def _flights(canvas: Canvas) -> None:
    for flight in canvas.story.flights:
        if flight.source in canvas.x and flight.target in canvas.x:
            _flight(canvas, flight)


def _flight(canvas: Canvas, flight: Flight) -> None:
    begin, end = float(canvas.x[flight.source]), float(canvas.x[flight.target])
    top = canvas.y[flight.born] - 4.0
    bottom = canvas.y[flight.died] - 4.0 if flight.died is not None else _end(canvas, flight)
    half = begin + COLUMN * (0.85 if end > begin else -0.5)
    cls = "arrow"
    if flight.copy:
        begin += (end - begin) * 0.25
        canvas.put(f'<circle cx="{begin:g}" cy="{top:g}" r="4" class="copy"/>')
        cls = "arrow copied"
    if flight.source == flight.target:
        canvas.text(begin + 8, top + LINE, f"to itself: {flight.message}", "message")
        return
    if flight.fate is Fate.DELIVERED:
        shrink = 7 if end > begin else -7
        canvas.line(begin, top, end - shrink, bottom, cls)
        _head(canvas, end, bottom, forwards=end > begin, slope=(bottom - top) / (end - shrink - begin))
    elif flight.fate is Fate.IN_FLIGHT:
        canvas.line(begin, top, half, bottom, f"{cls} flying")
    else:
        if bottom == top:
            bottom += 6
        canvas.line(begin, top, half, bottom, f"{cls} lost")
        for sign in (1, -1):
            canvas.line(half - 5, bottom - 5 * sign, half + 5, bottom + 5 * sign, "cross")
    _label(canvas, flight, (begin, end if flight.fate is Fate.DELIVERED else half), (top, bottom))


def _end(canvas: Canvas, flight: Flight) -> float:
    """How far down a message goes that is in flight at the end: each to a line of its own."""
    flying = [f.number for f in canvas.story.flights if f.fate is Fate.IN_FLIGHT]
    return canvas.height - 26.0 - LINE * (len(flying) - 1 - flying.index(flight.number))


def _label(canvas: Canvas, flight: Flight, ends: tuple[float, float], heights: tuple[float, float]) -> None:
    """The message's name on its arrow, in the part of a column where no party's text stands."""
    (begin, end), (top, bottom) = ends, heights
    segment = min(begin, end) + COLUMN * (max(1, round(abs(end - begin) / COLUMN)) // 2)
    x = min(segment + COLUMN * 0.8, max(begin, end) - 20)
    words = flight.message if len(flight.message) <= 34 else f"{flight.message[:33]}…"
    words += {Fate.LOST: " lost", Fate.FULL: " no room", Fate.MERGED: " again", Fate.IN_FLIGHT: " in flight"}.get(flight.fate, "")
    y = top + (bottom - top) * (x - begin) / (end - begin) - 5
    if flight.fate is Fate.IN_FLIGHT:  # beyond the end of its line, where nothing else is
        x, y = end + (1 if end > begin else -1) * (len(words) * LETTER / 2 + 8), bottom + 4
    canvas.text(x, y, words, "message gone" if flight.fate is Fate.LOST else "message", flight.message)


def _head(canvas: Canvas, x: float, y: float, *, forwards: bool, slope: float) -> None:
    """An arrow's head, turned the way the arrow goes."""
    sign = -1 if forwards else 1
    tilt = max(-3.0, min(3.0, slope * sign)) * 4
    points = f"{x:g},{y:g} {x + sign * 10:g},{y + tilt - 4:.1f} {x + sign * 10:g},{y + tilt + 4:.1f}"
    canvas.put(f'<polygon points="{points}" class="tip"/>')


def _steps(canvas: Canvas) -> None:
    for step in canvas.story.steps:
        y = canvas.y[step.number]
        canvas.text(8, y, f"{step.number}", "number")
        canvas.text(36, y, step.who, "who")
        for place, line in enumerate(_event(step), start=1):
            canvas.text(36, y + LINE * place, line, "event")
        for place, note in enumerate(step.notes, start=1 + len(_event(step))):
            canvas.text(36, y + LINE * place, note, "note")
        for told in step.told:
            x = canvas.x[told.party]
            _mark(canvas, step, x, y - 4.0, crashed=told.crashed)
            for place, (line, why) in enumerate(_lines(step, told.party)):
                canvas.text(x + 15, y + LINE * place, line, "did", why)


def _mark(canvas: Canvas, step: StoryStep, x: float, y: float, *, crashed: bool) -> None:
    if crashed:
        for sign in (1, -1):
            canvas.line(x - 7, y - 7 * sign, x + 7, y + 7 * sign, "cross")
        return
    cls = {ActionKind.TIMER: "dot timer", ActionKind.TICK: "dot timer"}.get(step.kind, "dot")
    canvas.put(f'<circle cx="{x:g}" cy="{y:g}" r="4.5" class="{cls}"/>')


def _loop(canvas: Canvas) -> None:
    loop = canvas.story.loop
    if loop is None or loop + 1 not in canvas.y:
        return
    top, bottom, right = canvas.y[loop + 1] - LINE - 2, canvas.height - 20, canvas.width - 26
    canvas.put(f'<path d="M {right - 10} {top} H {right} V {bottom} H {right - 10}" class="loop"/>')
    canvas.put(f'<path d="M {right - 4} {top - 4} l -7 4 l 7 4 z" class="tip loophead"/>')
    middle = (top + bottom) / 2
    canvas.put(f'<text x="{right + 14}" y="{middle:g}" class="loopname" transform="rotate(90 {right + 14} {middle:g})">for ever</text>')
