"""What a scenario is, and how it is played."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from attrs import frozen

from tests.testing.live.promises import Watch
from tests.testing.live.scenarios.scene import Scene
from troth.spec.core import Step
from troth.testing.coverage import Coverage
from troth.testing.live.parties import Shadow
from troth.testing.live.playing import quietly
from troth.testing.live.stage import Setup, Stage
from troth.testing.live.target import counting


@frozen
class Scenario:
    """A play, and what it is for."""

    name: str
    play: Callable[[Scene], None]
    rows: tuple[str, ...]
    """What it must fire: ``party.machine.row``, and guards, ignores and refusals, by the names under which they are counted."""
    setup: Setup
    forged: bool


NAME = re.compile(r"[^\s\[]+(?:\[[^\]]*\])?")
"""A row, an answer of a guard, or an ignore or refusal with its guard."""
SCENARIOS: list[Scenario] = []
"""All of them, in the order in which they are declared."""


def scenario(*rows: str, forged: bool = False, **setup: Any) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Declares a scenario: the rows that it is for, as ``"party: machine.row machine.row"``, and how its stage is set."""

    def declared(play: Callable[[Scene], None]) -> Callable[[Scene], None]:
        names = []
        for line in rows:
            party, _, found = line.partition(": ")
            names += [f"{party}.{name}" for name in NAME.findall(found)]
        SCENARIOS.append(Scenario(play.__name__, play, tuple(names), Setup(**setup), forged))
        return play

    return declared


class Unplayed(AssertionError):
    """A scenario has not come to what it is for."""


def played(scenario: Scenario, coverage: Coverage) -> Scene:
    """Play it to its end, and count what fires. Raises ``Wrong`` where the runtime is, ``Unplayed`` if a row did not fire, and ``Broken``
    if a promise was not kept."""
    scene = Scene(scenario.setup, forged=scenario.forged)
    watching(scene.stage, coverage, scene.note)
    try:
        with quietly():
            scenario.play(scene)
            scene.finish()
    except BaseException:
        with quietly():
            scene.stage.drop()
        raise
    missing = [name for name in scenario.rows if name not in scene.fired]
    if missing:
        raise Unplayed(f"{scenario.name}: {', '.join(missing)} did not fire")
    return scene


def watching(stage: Stage, coverage: Coverage, note: Callable[[Shadow, Step], None] = lambda shadow, step: None) -> None:
    """Count what fires on a stage, and watch it for the promises."""
    watch, judge, count = Watch(), stage.judge, counting(coverage)

    def stepped(shadow: Shadow, step: Step) -> None:
        watch.stepped(shadow, step)
        note(shadow, step)
        count(shadow, step)

    judge.heard, judge.stepped = watch.heard, stepped
