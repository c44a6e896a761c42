"""What a counterexample says to a reader, word for word."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.models.random_worlds import random_world
from tests.models.toys import Msg, lock, stop_and_wait, tell
from troth.models import Limits, World, check
from troth.models.links import LinkComponent
from troth.models.mutants import mutated, of_worlds
from troth.models.render.flights import Fate, flights
from troth.models.render.sequence import sequence
from troth.models.render.story import story
from troth.models.render.text import text
from troth.models.render.words import changes, value
from troth.models.trace import Trace, edges
from troth.spec.core import Called

SMALL = Limits(max_states=2_000)
"""Random worlds may be large; what was seen of them is told all the same."""

MUTEX = """\
  1  user     acquire()         bob     idle → waiting
                                        → server: ACQUIRE
  2  network  delivers ACQUIRE  server  nobody → bob
                                        → bob: GRANT
  3  fault    server crashes    server  up → down
  4  restart  server restarts   server  down → up, as nobody
  5  user     acquire()         ann     idle → waiting
                                        → server: ACQUIRE
                                        in flight: ann>server ACQUIRE; server>bob GRANT
  6  network  delivers ACQUIRE  server  nobody → ann
                                        → ann: GRANT
                                        in flight: server>ann GRANT; server>bob GRANT
  7  network  delivers GRANT    ann     waiting → holding
                                        in flight: server>bob GRANT
  8  network  delivers GRANT    bob     waiting → holding
"""


def traced(world: World, claim: str) -> Trace:
    """The trace of one property of a world."""
    (found,) = check(world, properties=[claim]).properties
    assert found.trace is not None
    return found.trace


def walked(world: World, *actions: str) -> Trace:
    """The trace that takes these actions, each time the first edge of that name."""
    system = world.system()
    state, steps = system.initial, []
    for action in actions:
        step = next(edge for edge in edges(system, state) if edge.action.name == action)
        steps.append(step)
        state = step.state
    return Trace(system, system.initial, tuple(steps))


def test_a_counterexample_is_told_in_the_words_of_the_protocol() -> None:
    """Who, what, what changed, what was sent, and what is in flight where that is not plain."""
    assert text(traced(lock(), "MUTEX")) == MUTEX


def test_a_declared_party_names_machine_and_rows_and_what_they_ignored() -> None:
    """With the reason that the table gives."""
    trace = walked(
        stop_and_wait(),
        *("alice.send", "alice timer", "alice>bert:wire delivers", "alice>bert:wire delivers"),
        *("bert>alice:wire delivers", "bert>alice:wire delivers"),
    )
    told = [line.split("  ", 2)[-1].strip() for line in text(trace).splitlines()]

    assert "alice  sender S1: idle → waiting" in text(trace)
    assert "clock    timer retry fires      alice  sender S3" in text(trace)
    assert "bert   receiver R1: bit 0 → 1, count 0 → 1" in text(trace)
    assert "bert   receiver R2" in text(trace)
    assert any("alice  sender: ignores ack (a late copy)" in line for line in told)


def test_a_mutant_says_which_row_took_a_case_that_nothing_answers() -> None:
    """A dropped row reads as what it became: an ignore."""
    world = stop_and_wait(LIVE=0)
    (mutant,) = [m for m in of_worlds([world]) if m.name == "bert.receiver:R1:drop"]
    trace = walked(mutated(world, mutant), "alice.send", "alice>bert:wire delivers")

    assert "bert   receiver: ignores frame (a mutant: nothing answers this case any more)" in text(trace)


def test_what_is_lost_or_copied_or_finds_no_room_is_followed_to_its_end() -> None:
    """Each message has one life, and a copy one of its own."""

    def talker(state: int, event: Any) -> tuple[int, list[Any]] | None:
        return (state, [tell("b", n) for n in event.payload]) if isinstance(event, Called) else None

    world = World("talk")
    a, b = world.party("a", talker, initial=0), world.party("b", lambda s, e: (s + 1, []), initial=0)
    world.link(a, b, lossy=True, duplicating=True, capacity=2)
    world.may(a, "say", payload=(1, 2, 3))
    trace = walked(world, "a.say", "a>b loses", "a>b duplicates", "a>b delivers")
    found = [(f.message, f.born, f.copy, f.died, f.fate) for f in flights(trace)]

    assert found == [
        ("1", 1, False, 2, Fate.LOST),
        ("2", 1, False, 4, Fate.DELIVERED),
        ("3", 1, False, 1, Fate.FULL),
        ("2", 3, True, None, Fate.IN_FLIGHT),
    ]
    assert "→ b: 3, found no room" in text(trace)
    assert "a>b is full, 1 lost" in text(trace)


def test_a_crash_in_the_middle_of_a_step_says_how_far_it_came() -> None:
    """What was sent before it is sent."""

    def two(state: int, event: Any) -> tuple[int, list[Any]] | None:
        return (state + 1, [tell("b", "one"), tell("b", "two")]) if state == 0 else None

    world = World("crash")
    a, b = world.party("a", two, initial=0), world.party("b", lambda s, e: (s + 1, []), initial=0)
    world.link(a, b, capacity=2)
    world.may(a, "go")
    world.crash(a, restarts=False)
    world.never("P", "never down with one message", a.is_down & (b.where(lambda s: s == 1)))
    found = text(traced(world, "P"))

    assert "a crashes after 1 of 2 effects" in found
    assert "up → down" in found
    assert "→ b: one" in found
    assert "b: two" not in found


def test_a_lasso_marks_what_is_done_for_ever() -> None:
    """Text with a bracket, mermaid with a loop."""
    world = World("spin")
    party = world.party("a", lambda s, e: ((s % 3) + 1, []), initial=0)
    world.may(party, "go")
    world.always_eventually("BACK", "it comes back to the start", party.where(lambda s: s == 0), fair=["a.go"])
    trace = traced(world, "BACK")

    assert text(trace) == (
        "  1  user  go()  a  0 → 1\n"
        "     ┌─ from here on, over and over\n"
        " │ 2  user  go()  a  1 → 2\n"
        " │ 3  user  go()  a  2 → 3\n"
        " │ 4  user  go()  a  3 → 1\n"
        "     └─ back to where step 1 led\n"
    )
    assert "    loop for ever\n        Note over p0: 2 user: go()" in sequence(trace)
    assert sequence(trace).endswith("    end\n")


def test_a_violation_in_the_initial_state_has_no_steps() -> None:
    """And says so."""
    world = World("born wrong")
    party = world.party("a", lambda s, e: (s, []), initial=0)
    world.may(party, "go")
    world.never("P", "never zero", party.where(lambda s: s == 0))

    assert text(traced(world, "P")) == "  in the initial state\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (0, 1, ["0 → 1"]),
        ((1, (2, 3)), (1, (2, 4)), ["[1][1] 3 → 4"]),
        ((1,), (1, 2), ["(1) → (1, 2)"]),
        (Msg.GRANT, Msg.RELEASE, ["GRANT → RELEASE"]),
        (frozenset({2, 1}), frozenset({1}), ["{1, 2} → {1}"]),
        (1, True, ["1 → True"]),
        (5, 5, []),
    ],
)
def test_only_what_changed_is_said(before: Any, after: Any, said: list[str]) -> None:
    """As deep as the two have the same shape."""
    assert [str(change) for change in changes(before, after)] == said


def test_values_read_like_messages() -> None:
    """No quotes, no addresses, flags by name."""
    assert value(("a", None, True)) == "(a, none, True)"
    assert value("two words") == "'two words'"
    assert "0x" not in value(object())


@pytest.mark.parametrize("seed", range(60))
def test_every_random_trace_can_be_told_and_its_messages_add_up(seed: int) -> None:
    """After each step the messages that live are those that the links hold; every form of telling works."""
    result = check(random_world(seed), limits=SMALL, engine="scalar")
    for claim in result.properties:
        if claim.trace is None:
            continue
        trace = claim.trace
        known = list(flights(trace))
        for number, state in enumerate(trace.states):
            living = Counter(f.message for f in known if f.born <= number and (f.died is None or f.died > number))
            held: Counter[str] = Counter()
            for table, local in zip(trace.system.components, state, strict=True):
                if isinstance(table.component, LinkComponent):
                    held.update(value(m) for m in table.component.messages(table.states[local]))
            assert living == held
        assert len(story(trace).steps) == len(trace.steps)
        assert text(trace).endswith("\n")
        assert sequence(trace).startswith("sequenceDiagram\n")
