"""What is wrong with a world is said in one sentence that names it and the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from troth.models import Bound, Bounds, World, blueprint, check
from troth.models.errors import ComponentFailed, NotCanonical, NotDeterministic, WorldError
from troth.spec.core import Offer, Pull, Send


def idle(state: Any, event: Any) -> Any:
    """A step that takes anything and does nothing."""
    return state, ()


def one_party(step: Any = idle, initial: Any = 0) -> World:
    """A world with one party that can be poked."""
    world = World("one")
    world.may(world.party("p", step, initial=initial, observe={"n": lambda s: s}), "poke")
    return world


def refused(declare: Callable[[], Any], *words: str, error: type[Exception] = WorldError) -> None:
    """``declare`` raises ``error`` with all these words in it."""
    with pytest.raises(error) as caught:
        declare()
    for word in words:
        assert word in str(caught.value)


def test_an_effect_that_nothing_takes_is_named_with_both_fixes() -> None:
    world = one_party(lambda s, e: (s, (Pull("model", 1),)))

    refused(lambda: check(world), "Pull", "of p", "world.takes", "world.ignores")


def test_a_message_to_a_link_that_is_not_there_names_those_that_are() -> None:
    world = World("w")
    p, q = world.party("p", lambda s, e: (s, (Send("nowhere", e),)), initial=0), world.party("q", idle, initial=0)
    world.link(p, q, "one")
    world.link(p, q, "two")
    world.may(p, "poke")

    refused(lambda: check(world), "'nowhere'", "one, two")


def test_ignored_effects_and_effects_of_other_classes_are_told_apart() -> None:
    world = World("w")
    p = world.party("p", lambda s, e: (s, (Offer("model", 1),)), initial=0)
    world.may(p, "poke")
    world.ignores(p, Offer)

    assert check(world).states == 1


def test_a_step_that_is_not_deterministic_is_named_with_state_and_event() -> None:
    calls: list[int] = []

    def step(state: int, event: Any) -> Any:
        calls.append(1)
        return len(calls) % 2, ()

    refused(lambda: check(one_party(step)), "p is not deterministic", "poke", error=NotDeterministic)


def test_a_step_that_raises_is_named_with_state_and_event() -> None:
    def step(state: int, event: Any) -> Any:
        raise KeyError("missing")

    refused(lambda: check(one_party(step)), "p raised KeyError", "poke", "in state 0", error=ComponentFailed)


@pytest.mark.parametrize("engine", ["scalar", "vector"])
def test_a_step_that_gives_something_else_is_told_what_to_give(engine: str) -> None:
    refused(lambda: check(one_party(lambda s, e: s + 1), engine=engine), "gave 1", "(new state, effects)")


def test_a_state_that_cannot_be_hashed_is_refused_where_it_is_declared() -> None:
    refused(lambda: one_party(initial=[]), "p: its initial state []", "tuples", error=NotCanonical)


def test_what_makes_no_core_is_refused() -> None:
    refused(lambda: World("w").party("p", dict), "party p", "makes no Core")


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda w, p, q: w.party("p", idle, initial=0), ["two components 'p'"]),
        (lambda w, p, q: w.link(p, q, full="explodes"), ["full='explodes'", "loses, blocks, truncates"]),
        (lambda w, p, q: w.link(p, q, capacity=0), ["capacity 0"]),
        (lambda w, p, q: (w.may(p, "x"), w.may(p, "x")), ["two actions 'p.x'", "name="]),
        (lambda w, p, q: w.budget("b", -1), ["-1 times"]),
        (lambda w, p, q: (w.crash(p), w.crash(p)), ["p already crashes"]),
        (lambda w, p, q: (w.always("A", "a", p.n == 0), w.always("A", "b", p.n == 0)), ["two properties 'A'"]),
        (lambda w, p, q: w.always("A", "a", p.n.next == 0), ["`.next` is for step properties"]),
        (lambda w, p, q: w.always("A", "a", "yes"), ["'yes' cannot be part of a property"]),
        (lambda w, p, q: w.clock({"short": 0}), ["'short' is 0 ticks"]),
        (lambda w, p, q: w.symmetric([p]), ["two parties or more"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_wrong_declaration_is_refused_at_once(declare: Callable[..., Any], words: list[str]) -> None:
    world = World("w")
    p = world.party("p", idle, initial=0, observe={"n": lambda s: s})
    q = world.party("q", idle, initial=0)

    refused(lambda: declare(world, p, q), *words)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda w, p: w.may(p, "x", when=(p.n == 0) | (p.n == 1)), None),
        (lambda w, p: w.link(p, p, "late", delay=1), ["has a delay but the world has no clock"]),
        (lambda w, p: w.stopwatch("s", p.n == 0, most=2), ["stopwatch s needs a clock"]),
    ],
)
def test_some_things_are_found_when_the_world_is_closed(declare: Callable[..., Any], words: list[str] | None) -> None:
    world = World("w")
    p = world.party("p", idle, initial=0, observe={"n": lambda s: s})
    world.may(p, "poke")
    declare(world, p)
    if words is None:
        assert world.system() is world.system()
    else:
        refused(world.system, *words)


def test_a_condition_on_two_components_at_once_is_refused() -> None:
    world = World("w")
    p = world.party("p", idle, initial=0, observe={"n": lambda s: s})
    q = world.party("q", idle, initial=0, observe={"n": lambda s: s})
    world.may(p, "x", when=p.n == q.n)

    refused(world.system, "action p.x", "2 components", "&")


def test_an_empty_world_is_refused() -> None:
    refused(World("w").system, "empty")


def test_a_closed_world_takes_no_more_components() -> None:
    world = one_party()
    world.system()

    refused(lambda: world.party("late", idle, initial=0), "closed", "'late'")


def test_an_unknown_observation_names_those_there_are() -> None:
    world = one_party()
    world.always("A", "a", world.handles[0].see("m") == 0)
    result = check(world)

    assert result.verdict.value == "error"
    assert "no observation 'm'; it has n" in result.properties[0].reason


def test_unknown_fairness_names_the_actions() -> None:
    world = one_party()
    world.always_eventually("L", "it comes back", world.handles[0].see("n") == 0, fair=["p.prod"])

    refused(world.system, "fair='p.prod'", "p.poke")


def test_an_expression_has_no_truth_value() -> None:
    p = one_party().handles[0]

    refused(lambda: bool(p.see("n") == 0), "& | ~ >>", error=TypeError)


@blueprint("sized", N=Bound(2, "coins", 1, 3))
def sized(bounds: Bounds) -> World:
    """A world of some size."""
    world = World("sized")
    world.may(world.party("p", lambda s, e: (s + 1, ()), initial=0), "coin", times=bounds.N)
    return world


def test_bounds_have_defaults_ranges_and_names() -> None:
    assert check(sized()).states == 3
    assert check(sized(N=3)).bounds == {"N": 3}
    assert sized.doc == "A world of some size."
    refused(lambda: sized(M=1), "no bound 'M'", "it has N")
    refused(lambda: sized(N=4), "N = 4 is out of range", "coins", "1 to 3")


GUARDED = {"trigger": "go", "source": "a", "dest": "a", "conditions": "ok"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"states": ["a"], "initial": "a"}, ["lacks 'transitions'"]),
        ({"states": ["a"], "initial": "b", "transitions": []}, ["initial state 'b'"]),
        ({"states": ["a"], "initial": "a", "transitions": [["go", "a", "c"]]}, ["unknown state 'c'"]),
        ({"states": ["a"], "initial": "a", "transitions": [["go", "a", "a"], ["go", "a", "a"]]}, ["the second is dead"]),
        (
            {"states": ["a"], "initial": "a", "transitions": [{"trigger": "go", "source": "a", "dest": "a", "conditions": "ok"}]},
            ["conditions"],
        ),
        ({"states": ["a"], "initial": "a", "transitions": [], "queued": True}, ["take queued out"]),
    ],
)
def test_a_configuration_that_hides_a_decision_is_refused(config: dict[str, Any], words: list[str]) -> None:
    refused(lambda: World("w").party("p", config), *words)
