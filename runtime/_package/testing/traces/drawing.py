"""A run from its traces, drawn: the story that the checker tells of a counterexample, told of what was recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from html import escape

from attrs import define, field, frozen

from troth.models.render.drawing import svg
from troth.models.render.flights import Fate, Flight
from troth.models.render.page import STYLE
from troth.models.render.parties import Fired, Part
from troth.models.render.story import Story, StoryStep, Told
from troth.models.render.text import told
from troth.models.render.words import Change, value
from troth.models.system import ActionKind
from troth.spec import core as c
from troth.spec.core import Message
from troth.spec.trace import Record
from troth.spec.views import Members, Slot, View
from troth.statemachines import RECEIVER, SUPERVISOR, TRAINER
from troth.statemachines.shared.words import CONTROL, DATA
from troth.testing.traces.actors import Mail, addressed
from troth.testing.traces.replica import Taken
from troth.testing.traces.run import PartyCheck
from troth.testing.traces.verdicts import Rejected
from troth.testing.traces.wires import on_the_wire


@frozen
class Wanted:
    """Which steps of a run are drawn. They are counted from 1, over all parties."""

    first: int = 1
    last: int | None = None
    task: int | None = None
    """Only steps about this task, by its sequence."""
    limit: int = 200
    """At most so many."""

    def has(self, number: int, record: Record) -> bool:
        """Whether a step is wanted, however many there are."""
        within = number >= self.first and (self.last is None or number <= self.last)
        return within and (self.task is None or self.task in set(_tasks(record)))


def _tasks(record: Record) -> Iterator[int]:
    """The tasks that a step is about, by their sequences."""
    for each in (record.event, *record.effects):
        seq = getattr(getattr(each, "message", None), "seq", None)
        key = getattr(each, "key", None)
        if isinstance(seq, int):
            yield seq
        elif isinstance(key, int):
            yield key
        elif isinstance(key, tuple) and key and isinstance(key[0], int):
            yield key[0]


@define(eq=False)
class Drawing:
    """The steps that were wanted, as they are read."""

    wanted: Wanted
    steps: list[StoryStep] = field(factory=list)
    flights: dict[int, Flight] = field(factory=dict)
    """Those whose sending is shown, and their end too if they came, by number."""
    lanes: dict[str, None] = field(factory=dict)
    count: int = 0
    """All steps that were read."""
    left_out: int = 0
    """Steps that were wanted, and are beyond the limit."""
    _flying: dict[str, deque[Flight]] = field(factory=dict)
    """What was sent to a lane and has not come, the oldest first."""
    _began_ns: int | None = None
    _said: int = 0

    def note(self, party: PartyCheck, record: Record, at_ns: int) -> None:
        """The next step. ``at_ns``: its time on one clock for all parties, as far as that can be known."""
        self.count += 1
        self._began_ns = at_ns if self._began_ns is None else self._began_ns
        lane = lane_of(party)
        taken = party.driver.latest
        shown = self.wanted.has(self.count, record)
        if shown and len(self.steps) >= self.wanted.limit:
            self.left_out += 1
            shown = False
        ended = tuple(self._ended(lane, record.event, kept=shown))
        sent = tuple(self._sent(lane, party, record, kept=shown))
        if shown:
            self.lanes.setdefault(lane)
            who, what, kind = _event(record.event)
            time = f"{(at_ns - self._began_ns) / 1e9:9.3f} s  {who}"
            parts = () if taken is None else tuple(_parts(taken))
            notes = tuple(_did(record))
            self.steps.append(StoryStep(self.count, time, what, what, kind, lane, (Told(lane, parts, notes),), sent, ended, (), None))

    def _ended(self, lane: str, event: c.Event, *, kept: bool) -> Iterator[Flight]:
        flying = self._flying.get(lane, deque())
        if isinstance(event, c.LinkLost):
            gone = [flight for flight in flying if flight.link == event.link]
        elif isinstance(event, c.Received):
            key = on_the_wire(event.message)
            gone = [flight for flight in flying if flight.raw == (event.link in (CONTROL, DATA), key)][:1]
        else:
            return
        for flight in gone:
            flying.remove(flight)
            flight.died = self.count
            flight.fate = Fate.LOST if isinstance(event, c.LinkLost) else Fate.DELIVERED
            if kept and flight.number in self.flights:
                yield flight
            else:  # an arrow has two ends
                self.flights.pop(flight.number, None)

    def _sent(self, lane: str, party: PartyCheck, record: Record, *, kept: bool) -> Iterator[Flight]:
        for effect in record.effects:
            if not isinstance(effect, c.Send):
                continue
            target = self._target(party, record, effect)
            if target is None:
                continue
            raw = effect.link in (CONTROL, DATA), on_the_wire(effect.message)
            self._said += 1
            flight = Flight(self._said, value(effect.message), effect.link, lane, target, self.count, raw)
            self._flying.setdefault(target, deque(maxlen=1_000)).append(flight)
            if kept:
                self.lanes.setdefault(target)
                self.flights[flight.number] = flight
                yield flight

    def _target(self, party: PartyCheck, record: Record, effect: c.Send) -> str | None:
        if effect.link in (CONTROL, DATA):
            launch = party.file.launch
            for other in party.run.parties:
                if other.file.launch is launch and other.driver is not party.driver and _hears(other, effect.link, effect.message):
                    return lane_of(other)
            return None
        actor = party.driver.actors.get(record.party) or party.driver.latest_actor
        mail: Mail | None = None if actor is None else addressed(actor, effect, party.driver.hosts)
        if mail is None:
            return None
        owner, _, rest = mail.to.partition("/")
        for other in party.run.parties:
            if other.driver is party.driver and other.file.header.party == owner and (other.file.core == RECEIVER.name) is bool(rest):
                return lane_of(other)
        return None

    def story(self) -> Story:
        """What was read, as a story."""
        shown = [flight for flight in self.flights.values() if flight.target in self.lanes]
        return Story(tuple(sorted(self.lanes, key=_place)), tuple(self.steps), tuple(shown))

    def text(self) -> str:
        """The story as text."""
        if not self.steps:
            return f"no step of the {self.count} that there are is wanted here"
        return told(self.story()) + self._rest()

    def _rest(self) -> str:
        if not self.left_out:
            return f"{len(self.steps)} of {self.count} steps"
        ahead = f"go on with --from {self.steps[-1].number + 1}, or raise --limit"
        return f"{len(self.steps)} of {self.count} steps, and {self.left_out} more that are wanted: {ahead}"

    def page(self, rejected: Rejected | None) -> str:
        """A page with the story drawn. Nothing is loaded from anywhere."""
        title = "troth trace: a recorded run"
        head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style>'
        parts = [f"<h1>{title}</h1>", f'<p class="soft">{escape(self._rest())}</p>']
        if rejected is not None:
            parts.append(f'<p class="violated">rejected: {escape(str(rejected))}</p>')
        if self.steps:
            story = self.story()
            parts += [
                f'<div class="picture">{svg(story, title)}</div>',
                f"<details><summary>as text</summary><pre>{escape(told(story))}</pre></details>",
            ]
        return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(parts) + "\n</body></html>\n"


def lane_of(party: PartyCheck) -> str:
    """What a party is called where all parties of a run meet: by its driver, and by its name in that. Receivers of a party are one."""
    header = party.file.header
    driver, _, life = header.driver.partition("/")
    name = driver.partition("@")[0] + (f"/{life}" if life else "")
    of = name if header.party == TRAINER.name else f"{name}.{header.party}"
    return f"{of}.receivers" if header.core == RECEIVER.name else of


def _place(lane: str) -> tuple[str, int, str]:
    """Supervisor, hosts, trainers; a backend's together."""
    order = 0 if lane.endswith(f".{SUPERVISOR.name}") else 1 if ".host" in lane else 2
    return lane.partition(".")[0], order, lane


def _hears(party: PartyCheck, link: str, message: Message) -> bool:
    """Whether a message on a link between processes is for the parties of that file."""
    answers = type(message).__name__ in ("PayloadReleased", "PayloadGone")
    return (party.file.core == RECEIVER.name) is (link == DATA and answers)


def _event(event: c.Event) -> tuple[str, str, ActionKind]:
    """Who brings it, what it is, and of which kind."""
    match event:
        case c.Received(link=link, message=message):
            return ("network" if link in (CONTROL, DATA) else "local"), value(message), ActionKind.DELIVER
        case c.TimerFired(timer=timer, key=key):
            return "clock", f"timer {timer}{'' if key is None else f'[{value(key)}]'} fires", ActionKind.TIMER
        case c.Called(call=call) | c.CallCancelled(call=call):
            given_up = isinstance(event, c.CallCancelled)
            return "user", f"{'gives up ' if given_up else ''}{call}()", ActionKind.CALL
        case c.LinkUp() | c.LinkLost():
            return "network", value(event), ActionKind.CONNECT
        case _:
            return "system", value(event), ActionKind.CALL


def _did(record: Record) -> Iterator[str]:
    """Effects that are no messages and no timers."""
    for effect in record.effects:
        if isinstance(effect, c.Resolve):
            yield f"{effect.call}() returns {effect.outcome.value}"
        elif not isinstance(effect, c.Send | c.SetTimer | c.CancelTimer):
            yield value(effect)


def _parts(taken: Taken) -> Iterator[Part]:
    """The rows that were taken, and which machines have moved, machine by machine."""
    rows: dict[str, list[Fired]] = {}
    for row in taken.step.rows:
        machine, _, name = row.partition(".")
        rows.setdefault(machine, []).append(Fired(row, "row", name))
    for machine, fired in rows.items():
        yield Part(machine, tuple(fired), tuple(_moved(machine, taken.before, taken.after)))


def _moved(machine: str, before: View, after: View) -> Iterator[Change]:
    one, other = before.__dict__.get(machine), after.__dict__.get(machine)
    if one is other or one is None or other is None:
        return
    if isinstance(one, Members) and isinstance(other, Members):
        for key in sorted({*one, *other}, key=str):
            if one[key].state is not other[key].state:
                yield Change(f"[{value(key)}]", str(one[key].state.value), str(other[key].state.value))
    elif isinstance(one, Slot) and isinstance(other, Slot) and one.state is not other.state:
        yield Change("", str(one.state.value), str(other.state.value))
