"""A clock does not hide that a world stands still, and nobody can hold it up."""

from __future__ import annotations

from typing import Any

import pytest

from troth.models import World, check
from troth.models.check import Verdict
from troth.models.errors import WorldError
from troth.spec.core import Called, Received, Send, SetTimer, TimerFired


def once(*effects: Any) -> Any:
    """A step function that has these effects when it is called, and then takes nothing but what it is told to take."""

    def step(state: int, event: Any) -> Any:
        return (1, effects) if isinstance(event, Called) else None

    return step


@pytest.mark.parametrize("engine", ["scalar", "vector"])
@pytest.mark.parametrize("watched", [False, True])
def test_a_world_in_which_only_time_passes_is_a_deadlock(engine: str, *, watched: bool) -> None:
    world = World("still")
    p = world.party("p", once(), initial=0, observe={"n": lambda s: s})
    world.may(p, "go", times=1)
    world.clock({"L": 2})
    if watched:
        world.stopwatch("since", p.see("n") == 1, 3)
    world.no_deadlock("D", "never stuck")
    result = check(world, engine=engine)

    assert result.verdict is Verdict.VIOLATED
    assert (result.states, result.depth) == ((5, 4) if watched else (2, 1))


def test_waiting_for_a_timer_or_a_message_is_no_deadlock() -> None:
    def p(state: int, event: Any) -> Any:
        match event:
            case TimerFired() | Received():
                return 0, (SetTimer("t", None, 0, "L"), Send("line", "m"))  # type: ignore[arg-type]
            case _:
                return 0, (SetTimer("t", None, 0, "L"),)

    world = World("going")
    one = world.party("p", p, initial=0)
    two = world.party("q", lambda s, e: (s, ()), initial=0)
    world.link(one, two, "line", delay=1)
    world.may(one, "go", times=1)
    world.clock({"L": 2})
    world.no_deadlock("D", "never stuck")

    assert check(world).verdict is Verdict.HOLDS


def test_who_does_not_take_a_timer_that_is_due_is_named() -> None:
    world = World("timer")
    world.may(world.party("p", once(SetTimer("t", None, 0, "L")), initial=0), "go", times=1)
    world.clock({"L": 2})

    with pytest.raises(WorldError, match=r"p does not take timer t in 0, which is due, in state 1; .* clock would stand still"):
        check(world)


def test_who_does_not_take_a_message_that_has_arrived_is_named() -> None:
    def late(delay: int | None) -> World:
        world = World("message")
        p = world.party("p", once(Send("line", "m")), initial=0)  # type: ignore[arg-type]
        world.link(p, world.party("q", once(), initial=0), "line", arrives_as="inbox", delay=delay)
        world.may(p, "go", times=1)
        world.clock({"L": 2})
        return world

    with pytest.raises(WorldError, match=r"q does not take 'm', which has arrived over 'inbox', in state 0; .* clock would stand still"):
        check(late(1))
    assert check(late(None)).states == 2
