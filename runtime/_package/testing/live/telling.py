"""What a failure of the live runtime says: the steps that lead there with what each is about, and what came of it.

Nothing of this is kept while a walk walks. A program is played once more for it, by a walk that looks more closely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from attrs import define, field

from troth.runtime.sim.faults import Direction
from troth.spec.core import Step
from troth.spec.properties import PROPERTIES
from troth.testing.live import programs, showing
from troth.testing.live.actions import Option, Rule
from troth.testing.live.calling import Call
from troth.testing.live.choices import Listed
from troth.testing.live.lines import HEADER, OPENING
from troth.testing.live.parties import Shadow
from troth.testing.live.playing import Found, Shortener, play
from troth.testing.live.programs import Program
from troth.testing.live.recording import Recording
from troth.testing.live.seats import Seat
from troth.testing.live.walking import Walk, drawn_setup, opened
from troth.testing.telling import BROKEN_OFF, headed, indented, searched

END_STEPS = 12
"""Steps of a session's end that are told at its beginning, and before what is wrong."""
BY_CALL = ("init", "receive", "send", "shutdown", "give up")
"""Rules whose place is seen in the call that is made, or given up."""
WORLDS = (
    "external/answers", "external/tasks", "external/calls", "session", "session/host", "supervisor", "ledger",
)  # fmt: skip
"""Where the checker looks for what was violated: the first of them that claims it. A launched trainer and its host first, the small before
the large; then parties alone, which claim what is said of one side only."""


@define(eq=False)
class Told(Walk):
    """A walk that notes what a reader wants to know."""

    stories: list[list[str]] = field(factory=list, init=False)
    """The lines of each step."""
    code: list[str] = field(factory=list, init=False)
    """What does the same on the machine of Hypothesis, of the moves that were given."""
    given: int | None = field(default=None, init=False)
    """How many steps were given, once they are all done and there is nothing left but the end."""
    _frames: dict[tuple[int, Direction], tuple[int, int]] = field(factory=dict, init=False)
    """By connection and direction: frames that were told, and where in its bytes the next one begins."""
    _calls: dict[int, tuple[str, Call]] = field(factory=dict, init=False)
    """Calls that have not returned, and whose they are."""
    _given_up: set[int] = field(factory=set, init=False)
    _seats: dict[int, bool] = field(factory=dict, init=False)
    """Processes, and whether they are gone."""
    _steps: list[str] = field(factory=list, init=False)

    def use(self, rule: Rule, option: Option) -> None:
        """See ``Walk``."""
        before, since = len(self.choices.taken), self.stage.stepper.clock.now
        about = ["" if rule.name in BY_CALL else showing.place(option), showing.waits(option)]
        waiting = showing.waits(option, 1 + self._next()) if rule.name == "overtake" else ""
        if waiting:
            about[1] = f"{waiting}, before {about[1]}"

        def act() -> None:
            rule.act(self.play, option)
            about.append(showing.details(rule.name, self.play, option, self.choices.taken[before:]))

        def settle() -> None:
            self.stage.settle(look=rule.name == "orphan")

        self._told(rule.name, about, since, act, settle)

    def leave(self) -> None:
        """See ``Walk``."""
        stage = self.stage
        self._told("leave", [], stage.stepper.clock.now, lambda: stage.leave(by_error=False), stage.settle)

    def take(self, rule: Rule, options: Sequence[Option], where: int, order: int) -> None:
        """See ``Walk``."""
        try:
            super().take(rule, options, where, order)
        finally:
            if self.given is None and isinstance(self.choices, Listed):
                said = [f"where={where}"] if where else []
                said += [f"order={order}"] if order else []
                said += [f"choice={self.choices.number}"] if self.choices.taken and (order or self.choices.number) else []
                self.code.append(f"state.{rule.name.replace(' ', '_')}({', '.join(said)})")

    def end(self) -> None:
        """See ``Walk``."""
        if self.given is None:
            self.code.append("state.end()")
        super().end()

    def finish(self) -> None:
        """See ``Walk``."""
        self.given = len(self.stories)
        super().finish()

    @property
    def lines(self) -> list[str]:
        """The steps."""
        given = len(self.stories) if self.given is None else self.given
        lines = [line for story in self.stories[:given] for line in story]
        end = self.stories[given:]
        if end:
            lines.append("     then it is brought to its end:")
        if len(end) > 2 * END_STEPS:
            left = [f"     … {len(end) - 2 * END_STEPS} steps"]
            end = [*end[:END_STEPS], left, *end[-END_STEPS:]]
        return [*lines, *(line for story in end for line in story)]

    # -- looking -------------------------------------------------------------------------------------------------------

    def _next(self) -> int:
        """What will be drawn next, of a program."""
        given = self.choices.given if isinstance(self.choices, Listed) else ()
        return given[0] if given else 0

    def _told(self, name: str, about: list[str], since: float, act: Callable[[], object], settle: Callable[[], object]) -> None:
        judge, lines = self.stage.judge, list[str]()
        inner = judge.stepped

        def stepped(shadow: Shadow, step: Step) -> None:
            inner(shadow, step)
            self._steps.append(_step(shadow, step))

        judge.stepped = stepped
        self.stories.append(lines)
        try:
            try:
                act()
            finally:
                about += self._made()
                now = self.stage.stepper.clock.now
                about += [f"{since:g} s → {now:g} s"] if now > since else []
                said = "; ".join(filter(None, about))
                lines.append(f"{len(self.stories):>3}  {name:<13} {said}".rstrip())
            settle()
        finally:
            judge.stepped = inner
            lines += [f"       {line}" for line in self._came()]

    def _made(self) -> Iterator[str]:
        """Calls that were made, and given up."""
        stage = self.stage
        for side in (stage.judge.host, *(seat.side for seat in stage.seats)):
            for call in side.calls:
                if id(call) not in self._calls:
                    self._calls[id(call)] = side.name, call
                    yield f"{side.name}: {showing.call(call)}" if side is not stage.judge.host else showing.call(call)
        for number, (name, call) in self._calls.items():
            if call.given_up and number not in self._given_up:
                self._given_up.add(number)
                yield f"{name} gives {showing.call(call)} up"

    def _came(self) -> Iterator[str]:
        """What came of it."""
        steps, self._steps = self._steps, []
        yield from steps
        for sim in self.stage.network.connections:
            for way, pipe in sim.pipes.items():
                told, at = self._frames.get((sim.number, way), (0, OPENING[way]))
                for seen in pipe.frames[told:]:
                    size = HEADER + seen.length
                    if at + size > len(pipe.written):
                        break
                    yield f"{showing.connection(sim)}, {way.value}: {showing.frame(bytes(pipe.written[at : at + size]))} was written"
                    told, at = told + 1, at + size
                self._frames[sim.number, way] = told, at
        for number, (name, call) in list(self._calls.items()):
            if call.done:
                del self._calls[number]
                yield f"{name}: {showing.returned(call)}"
        for seat in self.stage.seats:
            if self._seats.get(seat.number) != seat.gone:
                self._seats[seat.number] = seat.gone
                yield f"the process of {seat.host} {_ended(seat) if seat.gone else 'runs'}"


def _ended(seat: Seat) -> str:
    return "was killed" if seat.code is None else f"has ended with status {seat.code}"


def _step(shadow: Shadow, step: Step) -> str:
    name = shadow.name if shadow.seat is None else f"{shadow.name} of {shadow.seat.host}"
    if step.refusal is not None:
        return f"{name}: refused ({step.refusal.row}: {step.refusal.why})"
    return f"{name}: {' '.join(row.removeprefix(f'{shadow.kind}.') for row in step.rows)}"


# -- all of it ---------------------------------------------------------------------------------------------------------


CHECKED_STATES = 200_000
"""How far the checker looks in one of our own worlds, which are finite: some seconds."""


def story(found: Found, walk: Told, whole: int = 0, *, interrupted: bool = False) -> tuple[str, bool]:
    """All of it: what is wrong, the example in words and as a test, and the checker's shortest trace. ``whole`` is how many steps the
    example had before it was made shorter. And whether there was an interrupt, before or meanwhile: the checker is not asked then."""
    beyond = [BROKEN_OFF]
    if not interrupted:
        try:
            beyond = checked(found.property)
        except KeyboardInterrupt:
            interrupted = True
    claim = PROPERTIES.get(found.property)
    lines = [found.what] if claim is None else [f"{found.property}: {claim.statement}", found.what]
    count = len(walk.moves)
    told = showing.setup(walk.stage.setup)
    about = f", with {told}" if told else ""
    lines.append(headed(count, whole, about) if count else f"no step is needed: a session that begins and ends is enough{about}:")
    lines += indented(walk.lines)
    lines += [*beyond, "the example as a Hypothesis test, on its machine:", *indented(test(walk))]
    return "\n".join(lines), interrupted


def test(walk: Told) -> list[str]:
    """The lines that do the same without a draw, on the machine whose rules Hypothesis draws."""
    return [
        "from troth.testing import live_machine",
        "state = live_machine()()",
        f"state.begin(setup={setting(walk.program)})",
        *walk.code,
        "state.teardown()",
    ]


def setting(program: Program) -> int:
    """How its stage is set, as one number."""
    large, *drawn = program.opening or (0,)
    chosen = Listed(drawn)
    drawn_setup(chosen)
    return large + 2 * chosen.number


def checked(id: str) -> list[str]:  # noqa: A002
    """The checker's own shortest trace to the same violation, or why there is none."""
    if id not in PROPERTIES:
        return ["the checker has no trace to it: it is about the runtime beside the model, which only a run can show"]
    from troth.cli.finding import find  # noqa: PLC0415 - nothing but a failure needs the worlds

    for name in WORLDS:
        world = find(name).build({})
        if any(claim.id == id for claim in world.properties):
            return searched(id, world, name, CHECKED_STATES)
    return ["the checker has no trace to it: no built-in world claims it of these parties"]


class Failed(NamedTuple):
    """A failure made shorter."""

    found: Found
    """What is wrong."""
    program: Program
    """What shows it."""
    story: str
    interrupted: bool = False
    """There was an interrupt: it might be shorter, and there might be more to say of it."""


def failed(program: Program, found: Found) -> Failed:
    """A failure made shorter, from which nothing can be left out, as far as the limits allow, or an interrupt."""
    shortener, interrupted = Shortener(found, program), False
    try:
        shortener.run()
    except KeyboardInterrupt:
        interrupted = True
    short = shortener.best
    walk = opened(Told, short.opening, Recording())
    done = play(walk, short.moves)
    if done.found is not None and found.same(done.found):
        return Failed(done.found, short, *story(done.found, walk, len(program.moves), interrupted=interrupted))
    again = "it could not be repeated: the same steps, taken once more, do something else"
    told = f"{found.what}\n{again}\nafter:\n" + "\n".join(f"  {programs.name(move)}" for move in program.moves)
    return Failed(found, program, told, interrupted)
