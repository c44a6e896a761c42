"""Small worlds as plain data: what Hypothesis draws, what ``oracle`` searches by itself, and what ``built`` declares with the API.

A party's table says for each (state, trigger) what it may do: ways ``(new state, effects)``, none of which means that it cannot take
the trigger. Triggers are the messages, the calls, and what timers, cuts and openings say. An effect is ``("send", link, message)``,
``("tell", way, message)`` over a local way, ``("set",)`` or ``("cancel",)`` for the party's one timer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st

from troth.models import World, connects, deliver, restarts, strong, timers
from troth.spec.core import CancelTimer, LinkLost, LinkUp, Received, Send, SetTimer, TimerFired

MESSAGES = ("a", "b")
CALLS = ("x", "y")
TRIGGERS = (*MESSAGES, *CALLS, "fired", "lost", "up")

Effect = tuple[Any, ...]
Ways = list[tuple[int, tuple[Effect, ...]]]


class Link(NamedTuple):
    """``lossy`` and ``copies``: False, True or a number of times. ``cuts``: how often it may be cut. ``merges``: nothing is sent twice."""

    source: int
    target: int
    ordered: bool
    lossy: bool | int
    copies: bool | int
    capacity: int
    full: str
    cuts: int
    merges: bool


class Crash(NamedTuple):
    """A party that crashes: ``keeps`` its state or loses it; ``within`` its steps, too."""

    party: int
    times: int
    restarts: bool
    keeps: bool
    within: bool


class Described(NamedTuple):
    """A whole world. ``calls``: (party, call, times or None). ``local``: ways (source, target), always to a later party. ``gates``: whose

    timer fires only while another party is in a state: (party, (other, state)).
    """

    tables: tuple[Mapping[tuple[int, str], Ways], ...]
    links: tuple[Link, ...]
    local: tuple[tuple[int, int], ...]
    calls: tuple[tuple[int, str, int | None], ...]
    crashes: tuple[Crash, ...]
    gates: tuple[tuple[int, tuple[int, int]], ...]


FAIR = ("deliver", "timers", "restarts", "connects", "calls")


class Claims(NamedTuple):
    """Conditions are (party, value). ``fair``: pairs (one of ``FAIR``, strong)."""

    never: tuple[tuple[int, int], ...]
    premise: tuple[int, int]
    goal: tuple[int, int]
    fair: tuple[tuple[str, bool], ...]


# -- drawing -----------------------------------------------------------------------------------------------------------


@st.composite
def described(draw: st.DrawFn, *, most_parties: int = 3, most_links: int = 2) -> Described:
    """A world of up to three parties with up to three states each."""
    count = draw(st.integers(1, most_parties))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    links = tuple(draw(link(*pair)) for pair in draw(st.lists(ends, max_size=most_links)))
    local = tuple(pair for pair in draw(st.lists(ends, max_size=1)) if pair[0] < pair[1])
    tables = tuple(draw(table(party, links, local)) for party in range(count))
    times = st.sampled_from([None, 1, 2])
    calls = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.sampled_from(CALLS), times), min_size=1, max_size=3, unique_by=lambda c: c[:2])
    )
    gate = st.tuples(st.integers(0, count - 1), st.integers(1, max(1, count - 1)), st.integers(0, 2))
    gated = draw(st.lists(gate, min_size=1, max_size=2, unique_by=lambda g: g[0])) if count > 1 and draw(st.booleans()) else []
    some = st.builds(Crash, st.integers(0, count - 1), st.integers(1, 2), st.booleans(), st.booleans(), st.booleans())
    gates = tuple((party, ((party + further) % count, state)) for party, further, state in gated)
    return Described(tables, links, local, tuple(calls), tuple(draw(st.lists(some, max_size=1))), gates)


@st.composite
def link(draw: st.DrawFn, source: int, target: int) -> Link:
    """A link with faults."""
    fault = st.sampled_from([False, False, True, 1])
    full = st.sampled_from(["loses", "blocks", "truncates"])
    cuts = draw(st.sampled_from([0, 0, 1]))
    room = draw(st.integers(1, 2))
    return Link(source, target, draw(st.booleans()), draw(fault), draw(fault), room, draw(full), cuts, draw(st.booleans()))


@st.composite
def table(draw: st.DrawFn, party: int, links: tuple[Link, ...], local: tuple[tuple[int, int], ...]) -> Mapping[tuple[int, str], Ways]:
    """What a party does: mostly one way, sometimes two or none."""
    size = draw(st.integers(2, 3))
    effects: list[Effect] = [("set",), ("cancel",)]
    effects += [("send", i, m) for i, one in enumerate(links) if one.source == party for m in MESSAGES] * 2
    effects += [("tell", i, m) for i, pair in enumerate(local) if pair[0] == party for m in MESSAGES]
    way = st.tuples(st.integers(0, size - 1), st.lists(st.sampled_from(effects), max_size=2).map(tuple))
    ways = st.one_of(st.lists(way, min_size=1, max_size=1), st.lists(way, max_size=2, unique=True))
    return {(state, trigger): draw(ways) for state in range(size) for trigger in TRIGGERS}


@st.composite
def claims(draw: st.DrawFn, of: Described) -> Claims:
    """What to ask of it."""
    party = st.integers(0, len(of.tables) - 1)
    condition = st.tuples(party, st.integers(0, 2))
    fair = st.lists(st.tuples(st.sampled_from(FAIR), st.booleans()), max_size=4)
    return Claims(tuple(draw(st.lists(condition, min_size=1, max_size=2))), draw(condition), draw(condition), tuple(draw(fair)))


# -- building ----------------------------------------------------------------------------------------------------------


def _effect(effect: Effect) -> Any:
    match effect:
        case ("send", number, message):
            return Send(f"link {number}", message)
        case ("tell", number, message):
            return Send(f"way {number}", message)
        case ("set",):
            return SetTimer("t", None, 0, "limit")
        case _:
            return CancelTimer("t", None)


def _trigger(event: Any) -> str:
    match event:
        case Received(message=message):
            return str(message)
        case TimerFired():
            return "fired"
        case LinkLost():
            return "lost"
        case LinkUp():
            return "up"
        case _:
            return str(event.call)


def _step(ways: Mapping[tuple[int, str], Ways]) -> Any:
    def step(state: int, event: Any) -> Any:
        found = [(after, tuple(map(_effect, effects))) for after, effects in ways[state, _trigger(event)]]
        return found or None

    return step


def built(of: Described, asked: Claims | None = None) -> World:
    """The same world, declared with the API: its claims ``never``, ``leads to`` and ``always eventually``."""
    world = World("described")
    parties = [world.party(f"p{i}", _step(t), initial=0, observe={"n": lambda n: n}) for i, t in enumerate(of.tables)]
    for number, one in enumerate(of.links):
        made = world.link(
            parties[one.source],
            parties[one.target],
            f"link {number}",
            ordered=one.ordered,
            lossy=one.lossy,
            duplicating=one.copies,
            capacity=one.capacity,
            full=one.full,
            merges=one.merges,
        )
        if one.cuts:
            world.cut(made, times=one.cuts)
    for number, (source, target) in enumerate(of.local):
        world.local(parties[source], parties[target], f"way {number}")
    named = [world.may(parties[party], call, times=times) for party, call, times in of.calls]
    for party, times, again, keeps, within in of.crashes:
        kept = {"keeps": lambda n: n, "restarted": lambda n: n} if keeps else {}
        world.crash(parties[party], times, restarts=again, within_steps=within, **kept)  # type: ignore[arg-type]
    for party, (other, state) in of.gates:
        world.fires(parties[party], "t", when=parties[other].n == state)
    if asked is not None:
        _claim(world, of, asked, named)
    return world


def possible_fairness(of: Described, asked: Claims) -> tuple[tuple[str, bool], ...]:
    """The fairness that speaks of something in this world; the API refuses any other."""
    there = {"timers", "calls"}
    there |= {"deliver"} if of.links else set()
    there |= {"restarts"} if any(crash.restarts for crash in of.crashes) else set()
    there |= {"connects"} if any(one.cuts for one in of.links) else set()
    return tuple(f for f in asked.fair if f[0] in there)


def _claim(world: World, of: Described, asked: Claims, named: list[Any]) -> None:
    kinds: dict[str, list[Any]] = {
        "deliver": [deliver],
        "timers": [timers],
        "restarts": [restarts],
        "connects": [connects],
        "calls": named,
    }
    fair = [strong(s) if is_strong else s for kind, is_strong in possible_fairness(of, asked) for s in kinds[kind]]

    def met(condition: tuple[int, int]) -> Any:
        return world.handles[condition[0]].n == condition[1]

    joined = met(asked.never[0])
    for condition in asked.never[1:]:
        joined = joined & met(condition)
    world.never("never", "never all at once", joined)
    world.leads_to("leads", "the premise leads to the goal", met(asked.premise), met(asked.goal), fair=fair)
    world.always_eventually("often", "the goal again and again", met(asked.goal), fair=fair)
