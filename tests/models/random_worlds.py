"""Small random worlds: parties with random tables, links and faults of every kind, timers, crashes, properties of every kind."""

from __future__ import annotations

from random import Random
from typing import Any

from troth.models import World, jointly
from troth.models.handles import LinkHandle, PartyHandle
from troth.spec.core import CancelTimer, LinkLost, LinkUp, Received, Send, SetTimer, TimerFired

MESSAGES = ("a", "b")
CALLS = ("x", "y")


letter: Any = Send  # a core's messages are Message objects; a world of step functions takes any hashable


def answer(random: Random, size: int, links: list[str]) -> tuple[int, tuple[Any, ...]]:
    """A random new state and effects."""
    count = random.choice([0, 0, 1, 1, 2]) if links else 0
    effects: list[Any] = [letter(random.choice(links), random.choice(MESSAGES)) for _ in range(count)]
    if random.random() < 0.15:
        effects.append(SetTimer("t", None, 0, "short") if random.random() < 0.7 else CancelTimer("t", None))
    return random.randrange(size), tuple(effects)


def step_function(random: Random, size: int, links: list[str]) -> Any:
    """A random total table from (state, event) to new state and effects; some calls are blocked, some answers are alternatives."""
    table: dict[tuple[int, str], Any] = {}

    for state in range(size):
        for event in (*MESSAGES, *CALLS, "fired"):
            draw = random.random()
            if event in CALLS and draw < 0.4:
                table[state, event] = None
            elif draw > 0.9:
                table[state, event] = [answer(random, size, links), answer(random, size, links)]
            else:
                table[state, event] = answer(random, size, links)

    def step(state: int, event: Any) -> Any:
        match event:
            case Received(message=message):
                return table[state, str(message)]
            case TimerFired():
                return table[state, "fired"]
            case LinkUp() | LinkLost():
                return state, ()
            case _:
                return table[state, event.call]

    return step


def _link(random: Random, world: World, source: PartyHandle, target: PartyHandle, name: str, *, truncates: bool) -> LinkHandle:
    faults: list[bool | int] = [False, False, True, 1, 2]
    return world.link(
        source,
        target,
        name,
        ordered=random.random() < 0.6,
        lossy=random.choice(faults),
        duplicating=random.choice([False, False, False, 1]),
        capacity=random.choice([1, 2]),
        full=random.choice(["loses", "blocks", "truncates"] if truncates else ["loses", "blocks"]),
    )


def random_world(seed: int, *, truncates: bool = False) -> World:
    """The world of that seed."""
    random = Random(seed)
    world = World(f"random {seed}")
    sizes = [random.randrange(2, 5) for _ in range(random.choice([1, 2, 2, 3]))]
    ways = [(a, b) for a in range(len(sizes)) for b in range(len(sizes)) if a != b and random.random() < 0.5]
    parties = []
    for place, size in enumerate(sizes):
        names = [f"to {b}" for a, b in ways if a == place]
        step = step_function(random, size, names)
        parties.append(world.party(f"p{place}", step, initial=0, observe={"n": lambda s: s, "zero": lambda s: s == 0}))
    links = [_link(random, world, parties[a], parties[b], f"to {b}", truncates=truncates) for a, b in ways]
    for party in parties:
        for call in CALLS:
            when = random.choice(parties).n < 2 if random.random() < 0.3 else None
            if random.random() < 0.7:
                world.may(party, call, times=random.choice([None, None, 1, 2]), when=when)
    if random.random() < 0.4:
        world.crash(random.choice(parties), times=1, restarts=random.random() < 0.7, drops=[*links[:1]])
    _claims(random, world, parties, links)
    return world


def _claims(random: Random, world: World, parties: list[PartyHandle], links: list[LinkHandle]) -> None:
    one, other = random.choice(parties), random.choice(parties)
    world.always("sum", "a sum is bounded", one.n + other.n < random.randrange(2, 7))
    world.always("implied", "an implication", one.zero >> (other.n <= random.randrange(4)))
    world.step("moves", "no large jumps", one.n.next <= one.n + random.randrange(1, 4))
    world.sometimes("both", "both are away from zero", ~one.zero & ~other.zero)
    world.no_deadlock("goes on", "it goes on", ends=one.zero)
    if links:
        link = random.choice(links)
        world.always("joint", "a joint predicate", jointly(lambda n, messages: len(messages) < 2 or n != 1, one, link))
        world.never("b", "no b while at 1", link.carries(lambda m: m == "b") & (one.n == 1) & other.zero)
