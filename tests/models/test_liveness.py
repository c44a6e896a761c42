"""Liveness verdicts that are known beforehand, each from a world small enough to be drawn on paper; in both forms of the graph."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.models.lassos import assert_fair_and_real
from troth.models import Limits, Verdict, World, check, deliver, strong
from troth.models.check import CheckResult
from troth.models.exploration import Exploration, Progress
from troth.models.liveness import estimated_bytes
from troth.models.trace import Trace
from troth.spec.core import Called, Received, Send

ENGINES = ("scalar", "vector")

Arrows = Mapping[str, Iterable[tuple[int, int]]]


def drawn(arrows: Arrows, at: int = 0) -> World:
    """A world that is a graph: each action has its arrows between numbered places."""
    world = World("drawn")

    def step(place: int, event: Any) -> list[tuple[int, tuple[()]]] | None:
        targets = [b for a, b in arrows[event.call] if a == place]
        return [(b, ()) for b in targets] or None

    walker = world.party("walker", step, initial=at, observe={"at": lambda place: place})
    for name in arrows:
        world.may(walker, name)
    return world


def arrives(arrows: Arrows, goal: int, fair: Iterable[Any] = (), *, engine: str = "scalar") -> CheckResult:
    """Check that the walker comes to ``goal`` again and again."""
    world = drawn(arrows)
    world.always_eventually("L", "it arrives", world.handles[0].at == goal, fair=fair)
    return check(world, engine=engine)


def verdict(result: CheckResult) -> Verdict:
    (only,) = result.properties
    if only.verdict is Verdict.VIOLATED:
        assert_fair_and_real(result, "L")
    return only.verdict


def trace_of(result: CheckResult) -> Trace:
    trace = result.properties[0].trace
    assert trace is not None
    return trace


@pytest.mark.parametrize("engine", ENGINES)
class TestKnownVerdicts:
    def test_a_chain_that_ends_elsewhere_never_gets_there(self, engine: str) -> None:
        result = arrives({"go": [(0, 1), (1, 2)]}, 9, ["walker.go"], engine=engine)

        assert verdict(result) is Verdict.VIOLATED

    def test_a_chain_gets_to_its_end_under_weak_fairness(self, engine: str) -> None:
        assert verdict(arrives({"go": [(0, 1), (1, 2)]}, 2, ["walker.go"], engine=engine)) is Verdict.HOLDS

    def test_standing_still_for_ever_counts_where_nothing_is_fair(self, engine: str) -> None:
        result = arrives({"go": [(0, 1)]}, 1, engine=engine)

        assert verdict(result) is Verdict.VIOLATED
        assert trace_of(result).steps == ()
        assert trace_of(result).loop == 0

    def test_standing_still_does_not_count_where_a_fair_step_is_possible(self, engine: str) -> None:
        assert verdict(arrives({"go": [(0, 1)]}, 1, ["walker.go"], engine=engine)) is Verdict.HOLDS

    def test_a_cycle_that_passes_the_goal_passes_it_again_and_again(self, engine: str) -> None:
        assert verdict(arrives({"go": [(0, 1), (1, 2), (2, 0)]}, 1, ["walker.go"], engine=engine)) is Verdict.HOLDS

    def test_a_cycle_beside_the_goal_can_be_taken_for_ever(self, engine: str) -> None:
        result = arrives({"go": [(0, 1), (1, 2), (2, 1)], "leave": [(2, 3)]}, 3, ["walker.go"], engine=engine)

        assert verdict(result) is Verdict.VIOLATED
        assert {step.action.name for step in trace_of(result).steps} == {"walker.go"}

    def test_a_goal_passed_once_is_not_passed_again_and_again(self, engine: str) -> None:
        result = arrives({"go": [(0, 1), (1, 2), (2, 2)]}, 1, ["walker.go"], engine=engine)

        assert verdict(result) is Verdict.VIOLATED

    def test_a_retry_loop_ends_under_weak_fairness_of_success(self, engine: str) -> None:
        loop = {"retry": [(0, 0)], "succeed": [(0, 1)]}

        assert verdict(arrives(loop, 1, ["walker.succeed"], engine=engine)) is Verdict.HOLDS

    def test_a_retry_loop_need_not_end_under_weak_fairness_of_the_retry(self, engine: str) -> None:
        loop = {"retry": [(0, 0)], "succeed": [(0, 1)]}
        result = arrives(loop, 1, ["walker.retry"], engine=engine)

        assert verdict(result) is Verdict.VIOLATED
        assert [step.action.name for step in trace_of(result).steps] == ["walker.retry"]

    def test_weak_fairness_is_not_enough_for_what_is_possible_now_and_then(self, engine: str) -> None:
        blinking = {"blink": [(0, 1), (1, 0)], "catch": [(1, 2)]}

        assert verdict(arrives(blinking, 2, ["walker.blink", "walker.catch"], engine=engine)) is Verdict.VIOLATED

    def test_strong_fairness_is_enough_for_what_is_possible_now_and_then(self, engine: str) -> None:
        blinking = {"blink": [(0, 1), (1, 0)], "catch": [(1, 2)]}

        assert verdict(arrives(blinking, 2, ["walker.blink", strong("walker.catch")], engine=engine)) is Verdict.HOLDS

    def test_strong_fairness_of_one_way_out_leaves_a_way_round(self, engine: str) -> None:
        # 0 and 1 blink; 3 and 4 do too, out of reach of "catch": that loop is fair once 1 is left behind.
        arrows = {"blink": [(0, 1), (1, 0), (3, 4), (4, 3)], "slip": [(0, 3)], "catch": [(1, 2)]}

        assert verdict(arrives(arrows, 2, ["walker.blink", strong("walker.catch")], engine=engine)) is Verdict.VIOLATED

    def test_a_join_is_not_reached_by_the_branch_that_escapes(self, engine: str) -> None:
        fork = {"left": [(0, 1), (1, 3)], "right": [(0, 2)], "escape": [(2, 4), (4, 2)]}

        assert verdict(arrives(fork, 3, ["walker.left", "walker.right", "walker.escape"], engine=engine)) is Verdict.VIOLATED

    def test_a_join_is_reached_where_both_branches_lead_to_it(self, engine: str) -> None:
        fork = {"left": [(0, 1), (1, 3)], "right": [(0, 2), (2, 3)]}

        assert verdict(arrives(fork, 3, ["walker.left", "walker.right"], engine=engine)) is Verdict.HOLDS

    def test_two_branches_that_meet_in_a_bad_state_are_both_looked_at(self, engine: str) -> None:
        # The bad state 3 is reached first through the good state 1, then through the bad state 2: only the second is a violation.
        diamond = {"a": [(0, 1), (0, 2)], "b": [(1, 3), (2, 3)], "c": [(3, 3)]}
        world = drawn(diamond)
        at = world.handles[0].at
        world.leads_to("L", "from 2 to 1", at == 2, at == 1, fair=["walker.a", "walker.b", "walker.c"])

        assert verdict(check(world, engine=engine)) is Verdict.VIOLATED


@pytest.mark.parametrize("engine", ENGINES)
class TestLeadsTo:
    def test_what_is_true_at_the_same_time_answers(self, engine: str) -> None:
        world = drawn({"go": [(0, 1)]})
        at = world.handles[0].at
        world.leads_to("L", "0 leads to at most 0", at == 0, at <= 0)

        assert verdict(check(world, engine=engine)) is Verdict.HOLDS

    def test_an_answer_before_the_premise_is_none(self, engine: str) -> None:
        world = drawn({"go": [(0, 1), (1, 2)]})
        at = world.handles[0].at
        world.leads_to("L", "2 leads to 1", at == 2, at == 1, fair=["walker.go"])

        result = check(world, engine=engine)

        assert verdict(result) is Verdict.VIOLATED
        assert len(trace_of(result).steps) == 2

    def test_a_premise_that_never_comes_true_is_reported_as_vacuous(self, engine: str) -> None:
        world = drawn({"go": [(0, 1)]})
        at = world.handles[0].at
        world.leads_to("L", "7 leads to 8", at == 7, at == 8)

        result = check(world, engine=engine)

        assert (verdict(result), result.vacuous) == (Verdict.HOLDS, ("L",))

    def test_an_implication_that_never_applies_is_reported_as_vacuous(self, engine: str) -> None:
        world = drawn({"go": [(0, 1)]})
        at = world.handles[0].at
        world.always_eventually("L", "if 7 then 8", (at == 7) >> (at == 8))

        result = check(world, engine=engine)

        assert (verdict(result), result.vacuous) == (Verdict.HOLDS, ("L",))

    def test_an_implication_that_applies_is_not_vacuous(self, engine: str) -> None:
        world = drawn({"go": [(0, 1)]})
        at = world.handles[0].at
        world.always_eventually("L", "0 is not 1", (at == 0) >> (at != 1))

        assert check(world, engine=engine).vacuous == ()


def mailbox(*, lossy: bool = False, answers: int = 1) -> World:
    """A sender repeats a letter; the reader takes it in one of ``answers`` ways, of which only the last one counts."""
    world = World("mailbox")

    def sends(state: int, event: Called) -> tuple[int, tuple[Send, ...]]:
        return state, (Send("reader", "letter"),)  # type: ignore[arg-type]

    def reads(state: int, event: Received) -> list[tuple[int, tuple[()]]]:
        return [(max(state, int(i == answers - 1)), ()) for i in range(answers)]

    sender = world.party("sender", sends, initial=0)
    reader = world.party("reader", reads, initial=0, observe={"read": lambda n: n > 0})
    world.link(sender, reader, lossy=lossy)
    world.may(sender, "post")
    return world


@pytest.mark.parametrize("engine", ENGINES)
class TestFairnessOfTheNetwork:
    def test_a_letter_is_read_when_delivery_is_fair_and_posting_too(self, engine: str) -> None:
        world = mailbox()
        world.always_eventually("L", "it is read", world.handles[1].read, fair=[deliver, "sender.post"])

        assert verdict(check(world, engine=engine)) is Verdict.HOLDS

    def test_a_network_that_may_lose_every_letter_needs_strong_fairness(self, engine: str) -> None:
        weakly, strongly = mailbox(lossy=True), mailbox(lossy=True)
        weakly.always_eventually("L", "it is read", weakly.handles[1].read, fair=[deliver, "sender.post"])
        strongly.always_eventually("L", "it is read", strongly.handles[1].read, fair=[strong(deliver), "sender.post"])

        assert verdict(check(weakly, engine=engine)) is Verdict.VIOLATED
        assert verdict(check(strongly, engine=engine)) is Verdict.HOLDS

    def test_fair_delivery_does_not_force_the_answer_of_the_reader(self, engine: str) -> None:
        world = mailbox(answers=2)
        world.always_eventually("L", "it is read", world.handles[1].read, fair=[strong(deliver), "sender.post"])

        assert verdict(check(world, engine=engine)) is Verdict.VIOLATED

    def test_fair_delivery_does_not_force_a_crash(self, engine: str) -> None:
        world = World("crashing")
        reader = world.party("reader", lambda n, e: (n, (Send("sender", "ok"),)), initial=0)  # type: ignore[arg-type]
        sender = world.party("sender", lambda n, e: (n, (Send("reader", "letter"),)), initial=0)  # type: ignore[arg-type]
        world.link(sender, reader, duplicating=True, capacity=2)
        back = world.link(reader, sender, capacity=2)
        world.ignores(sender, Send)
        world.may(sender, "post", times=2)
        world.crash(reader, times=1, restarts=False)
        world.always_eventually("L", "it crashes", reader.is_down, fair=[strong(deliver)])
        assert back.link.capacity == 2

        assert verdict(check(world, engine=engine)) is Verdict.VIOLATED


class TestHonesty:
    def test_a_search_that_was_cut_off_leaves_liveness_unknown(self) -> None:
        world = drawn({"go": [(i, i + 1) for i in range(50)]})
        world.always_eventually("L", "it arrives", world.handles[0].at == 50, fair=["walker.go"])

        result = check(world, limits=Limits(max_states=10))

        assert result.properties[0].verdict is Verdict.UNKNOWN
        assert "stopped at 10 states" in result.properties[0].reason

    def test_a_bound_that_cut_edges_off_leaves_liveness_unknown(self) -> None:
        world = World("truncated")
        sender = world.party("sender", lambda n, e: (n, (Send("reader", "letter"),)), initial=0)  # type: ignore[arg-type]
        reader = world.party("reader", lambda n, e: (1, ()), initial=0, observe={"read": lambda n: n > 0})
        world.link(sender, reader, full="truncates")
        world.may(sender, "post")
        world.always_eventually("L", "it is read", reader.read, fair=[deliver, "sender.post"])

        result = check(world)

        assert result.properties[0].verdict is Verdict.UNKNOWN
        assert "cut off" in result.properties[0].reason

    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_goal_that_cannot_be_evaluated_is_an_error_with_the_state_shown(self, engine: str) -> None:
        world = drawn({"go": [(0, 1), (1, 2)]})
        world.always_eventually("L", "one over it", world.handles[0].where(lambda at: 1 // (2 - at) >= 0))

        (result,) = check(world, engine=engine).properties

        assert result.verdict is Verdict.ERROR
        assert "ZeroDivisionError" in result.reason
        assert result.trace is not None
        assert len(result.trace.steps) == 2

    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_graph_that_does_not_fit_is_unknown_with_the_reason(self, engine: str) -> None:
        world = drawn({"go": [(i, i + 1) for i in range(50)]})
        world.always_eventually("L", "it arrives", world.handles[0].at == 50, fair=["walker.go"])
        found = check(world, engine=engine).exploration
        needed = estimated_bytes(Exploration(states=found.states, edges=found.edges), 1, plain=engine == "scalar")

        from troth.models.liveness import decide

        (result,) = decide(world, found, world.properties, Limits(max_bytes=needed - 1))

        assert result.verdict is Verdict.UNKNOWN
        assert "liveness graph" in result.reason
        (enough,) = decide(world, found, world.properties, Limits(max_bytes=needed))
        assert enough.verdict is Verdict.HOLDS

    @pytest.mark.parametrize("engine", ENGINES)
    def test_progress_names_the_phases(self, engine: str) -> None:
        world = drawn({"go": [(0, 1), (1, 0)]})
        world.always_eventually("L", "it arrives", world.handles[0].at == 7)
        told: list[Progress] = []

        check(world, engine=engine, report=told.append)

        phases = [p.phase.removeprefix("liveness ") for p in told if p.phase.startswith("liveness")]
        assert phases == ["graph", "components of L", "components of L", "fairness of L", "counterexample to L"]
        assert all(p.states > 0 for p in told)

    @pytest.mark.parametrize("engine", ENGINES)
    def test_what_cannot_be_heard_from_is_announced_with_its_size_and_what_remains(self, engine: str) -> None:
        """Looking for components is one call: before it, states, edges and how long at most, by the pace of what came before; after it,
        how long it took. A second round goes by the pace of the first."""
        world = drawn({"go": [(0, 1), (1, 0), (1, 2), (2, 2)], "out": [(0, 3)]})
        world.always_eventually("L", "it arrives", world.handles[0].at == 3, fair=[strong("walker.out")])
        told: list[Progress] = []

        check(world, engine=engine, report=told.append)

        rounds = [p for p in told if p.phase == "liveness components of L"]
        assert len(rounds) % 2 == 0
        assert len(rounds) > 2
        for before, after in zip(rounds[::2], rounds[1::2], strict=True):
            assert (before.states, before.edges) == (after.states, after.edges)
            assert before.remaining_s is not None
            assert before.remaining_s > 0 or not before.edges
            assert after.remaining_s == 0
            assert after.elapsed_s > before.elapsed_s
        assert [p.states for p in rounds[::2]] == sorted((p.states for p in rounds[::2]), reverse=True)

    def test_a_small_world_needs_neither_numpy_nor_scipy(self) -> None:
        script = (
            "import sys; from troth.models import check; from troth.models.worlds.published.peterson import peterson;"
            "assert check(peterson(FAIR=0)).verdict.value == 'violated';"
            "print([m for m in ('numpy', 'scipy') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)

        assert done.stdout.strip() == "[]"
