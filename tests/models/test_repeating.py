"""Links that merge what is said again, and timers that fire only while something else is so."""

from __future__ import annotations

from typing import Any

import pytest

from troth.models import Limits, Verdict, World, check, deliver, timers
from troth.models.errors import WorldError
from troth.models.render.text import text
from troth.models.tla.tables import said
from troth.spec import Called, Received, Send, SetTimer

AGAIN = SetTimer("again", None, 0, "patience")


def say(message: Any) -> Send:
    """A message here is a word."""
    return Send("line", message)


def asker(heard: int, event: Any) -> Any:
    """Asks, and asks again until it is answered; and it can mumble something else."""
    match event:
        case Called("mumble"):
            return heard, [say("mumble")]
        case Received():
            return 1, []
    return (heard, [say("question"), AGAIN]) if not heard else (heard, [])


def conversation(**options: Any) -> World:
    """Somebody who asks, and somebody who answers every question."""
    world = World("conversation")
    one = world.party("one", asker, initial=0, stale_timers=False, observe={"heard": lambda n: n})
    other = world.party("other", lambda n, e: (n, [say("answer")] if e.message == "question" else []), initial=0)
    world.link(one, other, "line", **options)
    world.link(other, one, "line", **options)
    world.may(one, "ask", times=1)
    return world


@pytest.mark.parametrize("engine", ["scalar", "vector"])
def test_a_link_that_merges_carries_each_message_once(engine: str) -> None:
    """However often it is said, and whatever else is on its way."""
    world = conversation(capacity=2, full="truncates", merges=True)
    world.may(world.handles[0], "mumble")  # type: ignore[arg-type]
    there = world.handles[2]
    world.sometimes("both", "both are on their way", there.length == 2)
    world.never("twice", "one is there twice", there.where(lambda local: len(set(local.messages)) < len(local.messages)))

    found = check(world, engine=engine)

    assert found.verdict is Verdict.HOLDS
    assert found.truncated == 0


def test_a_trace_says_what_was_merged() -> None:
    """And goes on to say rightly what is on its way."""
    world = World("two")
    twice = [say("one"), say("two")]
    one = world.party("one", lambda n, e: (n + 1, twice[: n + 1]) if n < 2 else None, initial=0)
    other = world.party("other", lambda said, e: ((*said, e.message), []), initial=())
    world.link(one, other, "line", capacity=2, full="truncates", merges=True)
    world.may(one, "say")
    world.never("two", "two arrives", other.where(lambda said: said == ("one", "two"), "both"))
    (found,) = check(world).properties

    assert found.trace is not None
    lines = [line.split("  ")[-1].strip() for line in text(found.trace).splitlines()]
    assert "→ other: one, on its way already" in lines
    assert "in flight: one>other one, two" in lines


def test_a_message_that_was_delivered_is_sent_again() -> None:
    """Merging is with what is on its way, not with what arrived."""
    world = conversation(capacity=2, full="truncates", merges=True)
    world.sometimes(
        "again",
        "the question is on its way while its answer is",
        ~world.handles[2].empty & ~world.handles[3].empty,
    )

    assert check(world).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"capacity": 1, "full": "blocks"}, Verdict.HOLDS),
        ({"capacity": 2, "full": "truncates", "merges": True}, Verdict.HOLDS),
        ({"capacity": 2, "full": "truncates", "merges": True, "lossy": 1}, Verdict.HOLDS),
        ({"capacity": 2, "full": "truncates", "merges": True, "lossy": True}, Verdict.VIOLATED),
        ({"capacity": 2, "full": "truncates"}, Verdict.UNKNOWN),
    ],
)
def test_who_asks_again_is_answered_under_weak_fairness(options: dict[str, Any], verdict: Verdict) -> None:
    """If the network loses so many and no more. Without merging, repeating oneself fills any link."""
    world = conversation(**options)
    one = world.handles[0]
    asking = one.where(lambda heard: heard == 0, "unanswered")
    world.leads_to("answered", "a question is answered", asking & ~world.handles[2].empty, ~asking, fair=[deliver, timers])

    assert check(world, limits=Limits(workers=1)).verdict is verdict


def patience(*, gate: bool) -> World:
    """Somebody who waits for a peer, and gives up when a timer fires."""
    world = World("patience")
    waiter = world.party(
        "waiter",
        lambda gone, e: ("waits", [AGAIN]) if isinstance(e, Called) else ("gave up", []),
        initial="new",
        observe={"gave_up": lambda s: s == "gave up"},
        stale_timers=False,
    )
    peer = world.party("peer", lambda there, _e: (False, []) if there else None, initial=True, observe={"there": bool})
    world.may(waiter, "wait", times=1)
    world.may(peer, "go")
    if gate:
        world.fires(waiter, "again", when=~peer.there)
    world.never("early", "it gives up while its peer is there", waiter.gave_up & peer.there)
    waits = waiter.where(lambda s: s == "waits", "waits")
    world.leads_to("ends", "it gives up a peer that is gone", waits & ~peer.there, ~waits, fair=[timers])
    return world


@pytest.mark.parametrize("engine", ["scalar", "vector"])
@pytest.mark.parametrize(("gate", "verdict"), [(True, Verdict.HOLDS), (False, Verdict.VIOLATED)])
def test_a_timer_can_wait_for_what_it_is_about(engine: str, gate: bool, verdict: Verdict) -> None:
    """It never fires before, and is fair like any other from then on."""
    result = check(patience(gate=gate), engine=engine)

    early, ends = result.properties
    assert early.verdict is verdict
    assert ends.verdict is Verdict.HOLDS
    assert not ends.vacuous


def test_a_trace_says_which_timer_fired() -> None:
    """Although somebody else was asked as well."""
    world = patience(gate=True)
    world.never("never", "it gives up", world.handles[0].gave_up)
    (found,) = (one for one in check(world).properties if one.property.id == "never")

    assert found.trace is not None
    assert "timer again fires  waiter  waits" in text(found.trace)
    assert said(found.trace.steps[-1].action.items[0][1]) == "has timer again fire"


def test_a_condition_of_the_party_itself_is_refused() -> None:
    """Its own rows say what a timer does."""
    world = patience(gate=False)
    waiter = world.handles[0]
    world.fires(waiter, "again", when=waiter.gave_up)  # type: ignore[arg-type]

    with pytest.raises(WorldError, match="looks at waiter itself"):
        world.system()


def test_a_timer_waits_for_one_condition() -> None:
    """Two would be a question of which."""
    world = patience(gate=True)

    with pytest.raises(WorldError, match="said twice when waiter timer again fires"):
        world.fires(world.handles[0], "again", when=world.handles[1].there)  # type: ignore[arg-type]


def test_timers_of_one_name_wait_each_for_its_own() -> None:
    """By key; one of which nothing is said does not fire."""
    world = World("keys")
    both = [SetTimer("again", key, 0, "patience") for key in ("left", "right", "middle")]

    def waiter(over: tuple[str, ...], event: Any) -> Any:
        return (over, both) if isinstance(event, Called) else ((*over, event.key), [])

    one = world.party("one", waiter, initial=(), stale_timers=False)
    peers = {name: world.party(name, lambda there, _e: (False, []) if there else None, initial=True) for name in ("left", "right")}
    world.may(one, "wait", times=1)
    world.may(peers["left"], "go")
    for name, peer in peers.items():
        world.fires(one, "again", key=name, when=peer.where(lambda there: not there, "gone"))
    world.always("left", "only the timer of the one who is gone fires", one.where(lambda over: over in ((), ("left",)), "left only"))
    world.sometimes("fires", "it fires", one.where(lambda over: over == ("left",), "left"))

    assert check(world).verdict is Verdict.HOLDS
    with pytest.raises(WorldError, match="is closed"):
        world.fires(one, "again", key="middle", when=peers["left"].where(bool))


def test_a_clock_says_when_timers_fire() -> None:
    """Both would contradict each other."""
    world = patience(gate=True)
    world.clock({"patience": 2})

    with pytest.raises(WorldError, match="the world has a clock, which says when it fires"):
        world.system()
