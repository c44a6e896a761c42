"""Class 9 of the field reports, pains with checkers, tried on ours. Each test names its report and the public thread.

Of 9-G, 9-H and 9-M this is the checker's half; what concerns generated tests and random walks is tested with those.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.field import worlds_9 as worlds
from tests.models.lassos import assert_fair_and_real
from troth.models import CheckResult, Limits, Verdict, check
from troth.models.errors import NotDeterministic, WorldError
from troth.models.exploration import Progress
from troth.models.render.text import text
from troth.models.tokens import replay, token
from troth.models.trace import Trace
from troth.models.vector import driver

WORLDS = Path(worlds.__file__)
MODES: tuple[dict[str, Any], ...] = (
    {"engine": "scalar"},
    {"engine": "vector"},
    {"engine": "vector", "limits": Limits(workers=2)},
    {"engine": "vector", "limits": Limits(workers=8)},
    {"engine": "auto"},
    {"engine": "scalar", "limits": Limits(stop_at_violation=True)},
)


@pytest.fixture(autouse=True)
def share_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let several workers share even the smallest frontier."""
    monkeypatch.setattr(driver, "FORK_FRONTIER", 2)


def said(result: CheckResult) -> tuple[Any, ...]:
    """Everything that a reader sees of a result, times aside."""
    return (
        result.verdict,
        (result.states, result.edges, result.depth),
        [(p.property.id, p.verdict, p.reason, p.vacuous, p.trace and (text(p.trace), token(p.trace))) for p in result.properties],
    )


def trace_of(result: CheckResult, id_: str) -> Trace:
    trace = next(p.trace for p in result.properties if p.property.id == id_)
    assert trace is not None
    return trace


def verdict_of(result: CheckResult, id_: str) -> Verdict:
    return next(p.verdict for p in result.properties if p.property.id == id_)


def troth(*arguments: str, seed: int = 0) -> subprocess.CompletedProcess[str]:
    """``troth ...`` in a process of its own, with this hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "troth", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120)


class TestA:
    """9-A, tlaplus/tlaplus#971, #961, #972: with several workers a violation of liveness is missed."""

    RUNS = 5

    @pytest.mark.parametrize("workers", [1, 2, 8])
    def test_every_number_of_workers_gives_the_same_verdict_and_count_in_every_run(self, workers: int) -> None:
        expected = said(check(worlds.grid(), engine="scalar"))
        for _ in range(self.RUNS):
            result = check(worlds.grid(), engine="vector", limits=Limits(workers=workers))

            assert verdict_of(result, "Meet") is Verdict.VIOLATED
            assert said(result) == expected

    @pytest.mark.slow
    @pytest.mark.parametrize("workers", [2, 8])
    def test_two_hundred_runs_agree(self, workers: int) -> None:
        expected = said(check(worlds.grid(), engine="scalar"))
        for _ in range(200):
            assert said(check(worlds.grid(), engine="vector", limits=Limits(workers=workers))) == expected


class TestB:
    """9-B, tlaplus/tlaplus#361, #570: a parallel run gives a bogus counterexample, or other counts in every run."""

    def test_counts_and_traces_are_the_same_bytes_in_every_run(self) -> None:
        runs = {str(said(check(worlds.inbox(checks=False), engine="scalar"))) for _ in range(25)}
        runs |= {str(said(check(worlds.inbox(checks=False), engine="vector"))) for _ in range(25)}

        assert len(runs) == 1

    @pytest.mark.parametrize("world", ["INBOX", "GRID"])
    def test_counts_and_traces_are_the_same_bytes_for_every_hash_seed(self, world: str) -> None:
        outputs = []
        for seed in (0, 1, 2):
            done = troth("check", f"{WORLDS}:{world}", "--json", seed=seed)
            assert done.returncode == 1
            outputs.append([line for line in done.stdout.splitlines() if '"seconds"' not in line and '"tabulation_s"' not in line])

        assert outputs[0] == outputs[1] == outputs[2]

    @pytest.mark.parametrize("engine", ["scalar", "vector"])
    def test_what_a_bound_cut_off_is_said_in_the_verdict(self, engine: str) -> None:
        result = check(worlds.crowded(), engine=engine)

        assert (result.verdict, result.truncated) == (Verdict.UNKNOWN, 1)
        assert {p.reason for p in result.properties} == {"1 edge was cut off by a bound of the world"}

    def test_every_counterexample_is_a_run_of_the_model(self) -> None:
        for mode in MODES:
            result = check(worlds.inbox(checks=False), **mode)
            trace = trace_of(result, "Once")

            again = replay(worlds.inbox(checks=False).system(), token(trace))

            assert text(again) == text(trace)


class TestC:
    """9-C, tlaplus/tlaplus#59, #644, #816: symmetry and liveness miss violations and invent others."""

    def test_symmetry_and_liveness_together_are_refused(self) -> None:
        with pytest.raises(WorldError, match="symmetry and liveness do not go together"):
            check(worlds.trainers(symmetric=True, live=True))

    def test_symmetry_may_be_kept_for_the_other_properties(self) -> None:
        result = check(worlds.trainers(symmetric=True, live=True), properties=["AtMostTwo", "NotBoth"])

        assert result.states < check(worlds.trainers(symmetric=False, live=False)).states
        assert verdict_of(result, "NotBoth") is Verdict.VIOLATED

    def test_a_trace_found_under_symmetry_is_a_run_of_the_full_model(self) -> None:
        reduced = trace_of(check(worlds.trainers(symmetric=True, live=False)), "NotBoth")
        full = check(worlds.trainers(symmetric=False, live=False))

        again = replay(full.system, token(reduced))

        assert text(again) == text(reduced)
        assert len(again.steps) == len(trace_of(full, "NotBoth").steps)


class TestD:
    """9-D, tlaplus/tlaplus#1440: what cannot be evaluated in the initial state ends with success, and hides a violation one step on."""

    @pytest.mark.parametrize("depth", [0, 3])
    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_a_property_that_raises_is_an_error_with_the_state_shown(self, depth: int, mode: dict[str, Any]) -> None:
        result = check(worlds.raising(depth), **mode)
        (failed,) = [p for p in result.properties if p.property.id == "Raises"]

        assert (result.verdict, failed.verdict) == (Verdict.ERROR, Verdict.ERROR)
        assert "ZeroDivisionError" in failed.reason
        assert failed.trace is not None
        assert len(failed.trace.steps) == depth
        assert failed.trace.system.spelled(failed.trace.states[-1])["counter"] == str(depth)

    def test_what_was_not_looked_at_any_more_does_not_hold(self) -> None:
        assert verdict_of(check(worlds.raising(0)), "Next") is Verdict.UNKNOWN

    @pytest.mark.parametrize("world", ["INITIAL", "LATER"])
    def test_the_command_does_not_exit_as_if_all_were_well(self, world: str) -> None:
        done = troth("check", f"{WORLDS}:{world}")

        assert done.returncode == 3
        assert "ERROR" in done.stdout
        assert "ZeroDivisionError" in done.stdout


class TestE:
    """9-E, tlaplus/tlaplus#636: the checker stalls at 0 states a minute, in its first liveness check, without a word."""

    @pytest.mark.parametrize("engine", ["scalar", "vector"])
    def test_progress_names_the_liveness_phase_its_size_and_its_time(self, engine: str) -> None:
        told: list[Progress] = []
        result = check(worlds.grid(fair=True), engine=engine, report=told.append)

        phases = [p for p in told if p.phase.startswith("liveness")]

        assert [p.phase for p in phases] == [
            "liveness graph",
            "liveness components of Meet",
            "liveness components of Meet",
            "liveness fairness of Meet",
            "liveness counterexample to Meet",
        ]
        assert [p.states for p in phases[:3]] == [result.states, result.states - 1, result.states - 1]
        assert all(0 < p.edges <= result.edges for p in phases)
        assert all(a.elapsed_s <= b.elapsed_s for a, b in pairwise(phases))

    def test_progress_claims_no_rate_where_no_states_are_found(self) -> None:
        told: list[Progress] = []
        check(worlds.grid(fair=True), engine="scalar", report=told.append)

        assert {p.rate_per_s for p in told if p.phase.startswith("liveness")} == {0.0}
        assert {p.phase for p in told if p.remaining_s is not None} == {"liveness components of Meet"}


class TestF:
    """9-F, tlaplus/tlaplus#544: one search mode does not check liveness, and says that all is well."""

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_every_mode_checks_liveness(self, mode: dict[str, Any]) -> None:
        result = check(worlds.one_step(fair=False), **mode)

        assert verdict_of(result, "One") is Verdict.VIOLATED

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_a_search_that_stops_early_does_not_say_that_liveness_holds(self, mode: dict[str, Any]) -> None:
        workers = mode.get("limits", Limits()).workers
        limits = Limits(max_states=20, workers=workers, stop_at_violation=True)
        result = check(worlds.grid(fair=True), **{**mode, "limits": limits})
        (meet,) = [p for p in result.properties if p.property.id == "Meet"]

        assert (meet.verdict, result.verdict) == (Verdict.UNKNOWN, Verdict.UNKNOWN)
        assert "stopped at" in meet.reason


class TestG:
    """9-G, quint-co/quint#1376, tlaplus/tlaplus#400: counterexamples with steps that could be left out."""

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_a_counterexample_is_as_short_as_can_be(self, mode: dict[str, Any]) -> None:
        trace = trace_of(check(worlds.detour(), **mode), "Core")

        assert [step.action.name for step in trace.steps] == ["walker.on"] * 5


class TestH:
    """9-H, quint-co/quint#1160, #1569, #1379: from a counterexample to a run of it without copying by hand."""

    @pytest.mark.parametrize("world", ["INBOX", "ONE_STEP"])
    def test_the_printed_line_replays_the_counterexample_in_another_process(self, world: str) -> None:
        found = troth("check", f"{WORLDS}:{world}", seed=1)
        *blocks, _ = found.stdout.split("  replay: troth ")
        lines = [part.splitlines()[0].split("      as a page")[0] for part in found.stdout.split("  replay: troth ")[1:]]

        assert lines
        for block, line in zip(blocks, lines, strict=True):
            again = troth(*shlex.split(line), seed=2)
            steps = [line for line in block.splitlines() if re.match(r"    +(\d+ |in the initial state)", line)]

            assert again.returncode == 1
            assert steps
            assert all(step.strip() in again.stdout for step in steps)


class TestI:
    """9-I, quint-co/quint#712: a value that was chosen is drawn anew at each use within one step."""

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_guard_and_act_see_the_same_choice(self, mode: dict[str, Any]) -> None:
        result = check(worlds.choosing(), **mode)

        assert result.verdict is Verdict.HOLDS
        assert result.states == 4


class TestJ:
    """9-J, HypothesisWorks/hypothesis#4206, #4615, #3690, #2338; schemathesis/schemathesis#1083: flaky, without saying what is."""

    @pytest.mark.parametrize("how", ["counter", "set", "time", "history"])
    def test_a_step_that_depends_on_something_else_is_named_with_the_state(self, how: str) -> None:
        with pytest.raises(NotDeterministic, match=r"dice is not deterministic: asked twice about Called\(.*\) in state \d+, it went to"):
            check(worlds.unsteady(how))

    def test_a_guard_that_depends_on_a_global_is_named(self) -> None:
        with pytest.raises(NotDeterministic, match="moody is not deterministic: asked twice about check moody is happy in state 0"):
            check(worlds.guard_by_global())

    def test_the_command_says_that_the_model_is_at_fault_and_not_that_it_is_violated(self) -> None:
        done = troth("check", f"{WORLDS}:TIME")

        assert done.returncode == 3
        assert "not deterministic" in done.stdout + done.stderr
        assert "VIOLATED" not in done.stdout

    def test_a_model_that_depends_on_the_order_of_a_set_does_not_replay_under_another_seed(self) -> None:
        # Within one process a set has one order, so that asking twice cannot show it; asking another process does.
        refused = 0
        for seed in range(1, 6):
            line = next(line for line in troth("check", f"{WORLDS}:SET_ORDER", seed=seed).stdout.splitlines() if "--replay" in line)
            words = shlex.split(line.split("replay: troth ")[1].split("      as a page")[0])
            again = troth(*words, seed=seed + 1)
            refused += again.returncode not in (0, 1)
            assert again.returncode in (1, 2, 3)

        assert refused >= 1


class TestK:
    """9-K, thomascothran/pavlov#16: a search that was cut off still says "impossible"."""

    @pytest.mark.parametrize("engine", ["scalar", "vector"])
    def test_what_was_not_reached_is_unknown(self, engine: str) -> None:
        world, counter = worlds.counting(50)
        world.always("Below", "it never gets to 40", counter.n < 40)
        world.sometimes("There", "it can get to 40", counter.n == 40)

        result = check(world, engine=engine, limits=Limits(max_states=10))

        assert result.verdict is Verdict.UNKNOWN
        assert {p.verdict for p in result.properties} == {Verdict.UNKNOWN}
        assert all("stopped at" in p.reason for p in result.properties)

    def test_what_was_reached_before_is_still_said(self) -> None:
        world, counter = worlds.counting(50)
        world.always("Below", "it never gets to 5", counter.n < 5)

        assert check(world, limits=Limits(max_states=10)).verdict is Verdict.VIOLATED


class TestL:
    """9-L, fabracht/tla-rs#62, #59, #64: stuttering is forgotten, fairness looked for in the wrong place, arrows that are no steps."""

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_standing_still_violates_what_nothing_makes_happen(self, mode: dict[str, Any]) -> None:
        result = check(worlds.one_step(fair=False), **mode)

        assert result.verdict is Verdict.VIOLATED
        assert_fair_and_real(result, "One")
        assert "nothing need ever happen" in text(trace_of(result, "One"))

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_weak_fairness_makes_it_happen(self, mode: dict[str, Any]) -> None:
        assert check(worlds.one_step(fair=True), **mode).verdict is Verdict.HOLDS

    @pytest.mark.parametrize("mode", MODES[:4], ids=str)
    def test_every_arrow_of_a_lasso_is_a_step_of_the_model(self, mode: dict[str, Any]) -> None:
        trace = assert_fair_and_real(check(worlds.grid(fair=True), **mode), "Meet")

        assert trace.loop is not None
        assert {step.action.name for step in trace.steps[trace.loop :]} == {"walker 0.walk", "walker 1.walk"}

    def test_fairness_of_what_does_not_exist_is_refused(self) -> None:
        world, counter = worlds.counting(1)
        world.always_eventually("One", "x becomes 1", counter.n == 1, fair=["counter.cuont"])

        with pytest.raises(WorldError, match=r"counter\.cuont.*names no action"):
            check(world)


class TestM:
    """9-M, ankurah/ankurah#494, HypothesisWorks/hypothesis#4864: the same seed, another trace; and oracles that repeat the code."""

    def test_a_hundred_runs_give_the_same_trace_from_its_first_event(self) -> None:
        traces = {text(trace_of(check(worlds.inbox(checks=False)), "Once")) for _ in range(100)}

        assert len(traces) == 1

    def test_without_the_check_for_duplicates_the_model_is_violated(self) -> None:
        assert check(worlds.inbox(checks=True)).verdict is Verdict.HOLDS
        assert verdict_of(check(worlds.inbox(checks=False)), "Once") is Verdict.VIOLATED
