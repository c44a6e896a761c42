"""Random walks over the live runtime: whole sessions, each drawn from its own seed."""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import define, field

from troth.spec.limits import Limits
from troth.testing.live.actions import Play, Rule
from troth.testing.live.choices import Choices
from troth.testing.live.parties import Wrong
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
        most_at_once=(1 << 62, 1 << 62, 1 << 62, 1 << 62, 7)[choices.choose(5)],
        takes_term=choices.choose(4) == 3,
        fickle=fickle,
        secure=fickle and choices.choose(2) == 1,
        bytes_seed=choices.choose(1 << 30),
    )


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

    def __attrs_post_init__(self) -> None:
        self.stage = Stage(drawn_setup(self.choices), recording=self.recording)
        self.stage.says = self.choices.choose
        mood = MOODS[self.choices.choose(len(MOODS))]
        self.play = Play(self.stage, self.choices, self.choices.choose(mood.faults + 1), mood=mood)

    def run(self, until: Callable[[], bool] = lambda: False, most: int = STEPS) -> bool:
        """To its end. False if ``until`` broke it off. Raises ``Wrong``."""
        stage, play = self.stage, self.play
        while not stage.over or stage.living:
            if self.steps >= most and (play.open or not play.ending):
                self._end()
                continue
            if self.steps >= most + ENDING_STEPS or stage.stepper.clock.now > self.since_s + LIFE_S:
                raise Wrong("hang", f"it has not ended {self.steps - most} steps and {stage.stepper.clock.now - self.since_s} s later")
            self.step()
            if until():
                stage.drop()
                return False
        stage.close()
        return True

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

    def _end(self) -> None:
        """From now on nothing new is begun, but the way out."""
        play = self.play
        if play.open:
            play.stage.leave(by_error=False)
            self.told.append("leave")
            self.stage.settle()
        if not play.ending:
            play.ending, self.since_s = True, self.stage.stepper.clock.now

    def step(self) -> None:
        """One rule, settled. Raises ``Wrong``."""
        rule, options = self._drawn()
        option = options[self.choices.choose(len(options)) if len(options) > 1 else 0]
        self.take(rule, option, self.choices.choose(SHUFFLES))

    def take(self, rule: Rule, option: object, order: int) -> None:
        """Use a rule there, with tasks in that order, and judge. Raises ``Wrong``."""
        self.stage.schedule.state = order
        self.steps += 1
        self.told.append(rule.name)
        if rule.fault:
            self.play.faults_left -= 1
            self.play.faults.append(rule.name)
        rule.act(self.play, option)
        self.stage.settle(look=rule.name == "orphan")

    def _drawn(self) -> tuple[Rule, tuple[object, ...]]:
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
        return next((rule, tuple(options)) for bound, rule, options in found if at < bound)
