"""Each scenario fires what it is for, on the live runtime, and all of them together every row that can fire."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.testing.live.coverage import FLOORS, GATES, PAGE, Run, missing, page, problems, run
from tests.testing.live.promises import Broken, Watch
from tests.testing.live.scenarios import SCENARIOS, Scenario, Unplayed, played
from tests.testing.live.scenarios.playing import watching
from tests.testing.live.scenarios.scene import Scene
from troth.spec.core import EffectFailed, Offer, Step
from troth.testing.coverage import Allowed, Coverage, Floors
from troth.testing.live.reasons import UNANSWERED, UNREACHABLE
from troth.testing.live.target import Live

ROWS = GATES[:1]
"""What scenarios alone must come to."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_a_scenario_fires_what_it_is_for(scenario: Scenario) -> None:
    """And nothing is wrong on the way, and nothing is left behind."""
    played(scenario, Live().coverage())


@pytest.fixture(scope="module")
def all_played() -> Run:
    """All of them, counted together."""
    return run(SCENARIOS, walks=0)


def test_scenarios_fire_every_row_that_can_fire(all_played: Run) -> None:
    """Without any walk: what chance comes to is left to chance nowhere."""
    assert problems(all_played, Floors({}), ROWS) == []


def test_guards_answer_both_ways(all_played: Run) -> None:
    """As far as they can."""
    left = set(all_played.coverage.missing("guards")) - set(UNANSWERED)
    assert len(left) <= 2, left


def test_the_gate_names_what_is_not_played_any_more(all_played: Run) -> None:
    """A scenario is taken away: what only it fires is missing, by name."""
    name = "a_start_is_heard_of_after_kill"
    left = [scenario for scenario in SCENARIOS if scenario.name != name]
    assert problems(run(left, walks=0), Floors({}), ROWS) == ["host.process.X10: nothing fired it, and no reason is given"]

    rows = len(all_played.coverage.fired("rows"))
    assert problems(all_played, Floors({"rows": rows + 1}), ()) == [f"rows: {rows} of 384 fired, and {rows + 1} must"]


def test_the_gate_names_a_reason_that_is_wrong(all_played: Run) -> None:
    """It fired; and what has no reason is said to be missing."""
    wrong = {**UNREACHABLE, "host.session.H1": "nothing starts"}
    assert ["it fired" in line for line in problems(all_played, Floors({}), [Allowed(wrong)])] == [True]
    assert len(problems(all_played, Floors({}), [Allowed({})])) == len(UNREACHABLE)


def test_what_nothing_fired_is_written_down_with_its_reason(all_played: Run) -> None:
    """For a reader."""
    lines = missing(all_played.coverage)
    assert f"  host.session.H2: {UNREACHABLE['host.session.H2']}" in lines
    assert "rows: nothing fired 40 of 384" in lines
    assert set(FLOORS.counts) == {"guards", "pairs", "ignores", "refusals"}


def test_a_scenario_that_does_not_come_to_it_fails() -> None:
    """It says what did not fire."""
    scenario = evolve(SCENARIOS[0], rows=("host.session.H2",))
    with pytest.raises(Unplayed, match=r"host\.session\.H2 did not fire"):
        played(scenario, Live().coverage())


def test_a_promise_that_is_not_kept_is_seen() -> None:
    """What comes although it never does, what comes first that does not, and an answer that is never given."""
    scene = Scene()
    watching(scene.stage, Coverage())
    scene.join()
    judge = scene.stage.judge
    trainer, host = (
        scene.seat.side.parties["trainer"], judge.host.parties["host-1"],
    )  # fmt: skip
    heard, watch = judge.heard, Watch()
    assert heard is not None
    with pytest.raises(Broken, match="which never comes"):
        heard(trainer, EffectFailed(Offer("result", (1, 0))))
    with pytest.raises(Broken, match="first"):
        watch.heard(host, EffectFailed(Offer("task", (1, 0))))
    with pytest.raises(Broken, match=r"host\.session\.~launched is never said"):
        judge.stepped(host, Step((), (), (("session.launched", False),), None))
    scene.finish()


def test_the_page_is_current() -> None:
    """Written by ``python -m tests.testing.live.coverage --page``."""
    assert page() == PAGE.read_text()
