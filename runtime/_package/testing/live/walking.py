"""Walks over the live runtime: whole sessions, each drawn from its own seed, or given as a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import define, evolve, field

from troth.spec.limits import Limits
from troth.testing.live.actions import PLAIN, Option, Play, Rule
from troth.testing.live.choices import Choices, Listed
from troth.testing.live.parties import Wrong
from troth.testing.live.programs import END, Move, Program, plain
from troth.testing.live.recording import Recording
from troth.testing.live.rules import MOODS, RULES
from troth.testing.live.stage import LIFE_S, Setup, Stage

STEPS = 60
"""Steps after which a session is brought to its end, if it did not end by itself."""
ENDING_STEPS = 2_000
"""Steps that the end may take, before it is said to hang."""
SHUFFLES = 1 << 16
TIGHT = {"task_attempts": 1, "result_attempts": 1, "pull_attempts": 1, "ledger_limit": 1, "acceptance_limit": 1, "retained_limit": 1}
ALL_LIMITS = (
    Limits(),
    Limits(ledger_limit=2, acceptance_limit=2, task_attempts=2, result_attempts=2, pull_attempts=2, retained_limit=2, result_wait_s=40.0),
    Limits(**TIGHT),
    Limits(**TIGHT, delivery_budget_s=9.0, drain_limit_s=9.0, source_idle_s=30.0, unresponsive_limit_s=60.0),
)


UNCUT = Setup().most_at_once
"""A read gives all that is there."""


def drawn_setup(choices: Choices) -> Setup:
    """How a stage is set: mostly plainly."""
    plain = choices.choose(3)
    if plain == 0:
        return Setup(bytes_seed=choices.choose(1 << 30))
    fickle = choices.choose(12) == 11
    return Setup(
        persistent=choices.choose(3) < 2,
        fail_unresponsive=choices.choose(3) == 2,
        limits=ALL_LIMITS[choices.choose(len(ALL_LIMITS))],
        capacity=(1 << 16, 1 << 16, 1 << 16, 400, 64)[choices.choose(5)],
        most_at_once=(UNCUT, UNCUT, UNCUT, UNCUT, 7)[choices.choose(5)],
        takes_term=choices.choose(4) == 3,
        fickle=fickle,
        secure=fickle and choices.choose(2) == 1,
        bytes_seed=choices.choose(1 << 30),
    )


ENOUGH = 1 << 30
"""As many faults as somebody likes who says himself which there are."""
LARGE = evolve(PLAIN, name="large", large=True)
PLACES = {rule.name: place for place, rule in enumerate(RULES)}


@define(eq=False)
class Walk:
    """One session."""

    choices: Choices
    recording: Recording | None = None
    play: Play = field(init=False)
    stage: Stage = field(init=False)
    steps: int = field(default=0, init=False)
    since_s: float = field(default=math.inf, init=False)
    """When its end began."""
    told: list[str] = field(factory=list, init=False)
    """What was done, step by step."""
    moves: list[Move] = field(factory=list, init=False)
    """The same, so that it can be done again."""
    opening: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.stage = Stage(drawn_setup(self.choices), recording=self.recording)
        self.opening = tuple(self.choices.taken)
        mood = MOODS[self.choices.choose(len(MOODS))]
        self.play = Play(self.stage, self.choices, self.choices.choose(mood.faults + 1), mood=mood)
        self.stage.says = lambda bound: self.play.choices.choose(bound)  # noqa: PLW0108 - of whatever is drawn from by then
        self.opening = (int(mood.large), *self.opening)

    @property
    def program(self) -> Program:
        """What was done so far."""
        return Program(plain(self.opening), tuple(Move.of(move.rule, move.numbers) for move in self.moves))

    def draw_from(self, choices: Choices) -> None:
        """Let all that is drawn from now on come from there."""
        self.choices = self.play.choices = choices

    def run(self, until: Callable[[], bool] = lambda: False, most: int = STEPS) -> bool:
        """To its end. False if ``until`` broke it off. Raises ``Wrong``."""
        stage, play = self.stage, self.play
        while not stage.over or stage.living:
            if self.steps >= most and (play.open or not play.ending):
                self.end()
                continue
            if self.steps >= most + ENDING_STEPS or stage.stepper.clock.now > self.since_s + LIFE_S:
                raise Wrong("hang", f"it has not ended {self.steps - most} steps and {stage.stepper.clock.now - self.since_s} s later")
            self.step()
            if until():
                stage.drop()
                return False
        stage.close()
        return True

    def finish(self) -> None:
        """Bring it to its end, by what is plainest. Raises ``Wrong``."""
        self.draw_from(Listed(()))
        self.run(most=self.steps)

    @property
    def trace(self) -> tuple[str, ...]:
        """All that happened: what was done, what the parties did, and what was on the wire. Needs a recording."""
        assert self.recording is not None
        wire = [
            f"wire {line.number} {way.value} {bytes(pipe.written).hex()}"
            for line in self.stage.network.connections
            for way, pipe in line.pipes.items()
        ]
        return (*(f"rule {name}" for name in self.told), *self.recording.lines, *wire)

    def end(self) -> None:
        """From now on nothing new is begun, but the way out. Raises ``Wrong``."""
        play = self.play
        self.moves.append(Move(END))
        leaves = play.open
        if not play.ending:
            play.ending, self.since_s = True, self.stage.stepper.clock.now
        if leaves:
            self.told.append("leave")
            self.leave()

    def leave(self) -> None:
        """The application leaves its block, and what comes of it is judged. Raises ``Wrong``."""
        self.play.stage.leave(by_error=False)
        self.stage.settle()

    def step(self) -> None:
        """One rule, settled. Raises ``Wrong``."""
        rule, options = self._drawn()
        where = self.choices.choose(len(options)) if len(options) > 1 else 0
        self.take(rule, options, where, self.choices.choose(SHUFFLES))

    def take(self, rule: Rule, options: Sequence[Option], where: int, order: int) -> None:
        """Use a rule at the place with that number, with tasks in that order, and judge. Raises ``Wrong``."""
        taken = self.choices.taken
        before = len(taken)
        self.stage.schedule.state = order
        self.steps += 1
        self.told.append(rule.name)
        if rule.fault:
            self.play.faults_left -= 1
            self.play.faults.append(rule.name)
        try:
            self.use(rule, options[where])
        finally:
            self.moves.append(Move(PLACES[rule.name], where, order, tuple(taken[before:])))

    def use(self, rule: Rule, option: Option) -> None:
        """Do it, let it settle, and judge. Raises ``Wrong``."""
        rule.act(self.play, option)
        self.stage.settle(look=rule.name == "orphan")

    def again(self, move: Move) -> bool:
        """Take a step of a program. False if that cannot be done here. Raises ``Wrong``."""
        if move.rule == END:
            self.end()
            return True
        rule = RULES[move.rule]
        options = rule.options(self.play)
        if not options:
            return False
        self.draw_from(Listed(move.answers))
        self.take(rule, options, min(move.where, len(options) - 1), move.order)
        return True

    def _drawn(self) -> tuple[Rule, Sequence[Option]]:
        play = self.play
        found, total, oftener = [], 0, play.mood.oftener
        for rule in RULES:
            options = rule.options(play)
            if options:
                total += rule.weight(play, options) * oftener.get(rule.name, 1)
                found.append((total, rule, options))
        if not found:
            raise Wrong("hang", "nothing can be done, and it has not ended")
        at = self.choices.choose(total)
        return next((rule, options) for bound, rule, options in found if at < bound)


W = TypeVar("W", bound=Walk)


def opened(kind: type[W], opening: Sequence[int], recording: Recording | None = None) -> W:
    """A walk whose stage was set like that, on which as much may go wrong as somebody likes."""
    large, *drawn = opening or (0,)
    walk = kind(Listed(drawn), recording)
    walk.opening = (int(large > 0), *walk.opening[1:])
    walk.play.faults_left = ENOUGH
    walk.play.mood = LARGE if large else PLAIN
    return walk
