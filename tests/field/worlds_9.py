"""The worlds that the class 9 reports are tried on. A file of worlds for ``troth check FILE:ATTR``, too."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from troth.models import World, deliver
from troth.models.handles import PartyHandle
from troth.spec.core import Called, Send


def counting(most: int, name: str = "counter") -> tuple[World, PartyHandle]:
    """One party that counts up to ``most``."""
    world = World(name)
    party = world.party("counter", lambda n, _: (n + 1, ()) if n < most else None, initial=0, observe={"n": lambda n: n})
    world.may(party, "count")
    return world, party


def grid(size: int = 12, *, fair: bool = False) -> World:
    """Two walkers on a ring each, so that most states are reached by several ways. They need not ever meet at the far end."""
    world = World("grid")
    walkers = [world.party(f"walker {i}", lambda n, _: ((n + 1) % size, ()), initial=0, observe={"at": lambda n: n}) for i in range(2)]
    moves = [world.may(walker, "walk") for walker in walkers]
    meet = (walkers[0].at == size - 1) & (walkers[1].at == size - 1)
    world.always_eventually("Meet", "both are at the far end again and again", meet, fair=moves if fair else [])
    world.never("Never", "they are never both at the far end", meet)
    return world


def trainers(*, symmetric: bool, live: bool) -> World:
    """Two interchangeable trainers that answer one host."""
    world = World("trainers")
    host = world.party("host", lambda n, _: (n + 1, ()), initial=0, observe={"n": lambda n: n})
    both = [world.party(f"trainer {i}", _trainer, initial="idle", observe={"done": lambda s: s == "done"}) for i in range(2)]
    for one in both:
        world.link(one, host)
        world.may(one, "start")
        world.may(one, "finish")
    world.always("AtMostTwo", "the host hears of no more than two", host.n <= 2)
    world.never("NotBoth", "they are not both done", both[0].done & both[1].done)
    if live:
        world.always_eventually("Both", "the host hears of both", host.n == 2, fair=[deliver])
    if symmetric:
        world.symmetric(both)
    return world


def _trainer(state: str, event: Called) -> tuple[str, tuple[Send, ...]] | None:
    if event.call == "start":
        return ("busy", ()) if state == "idle" else None
    return ("done", (Send("host", "result"),)) if state == "busy" else None  # type: ignore[arg-type]


def raising(depth: int) -> World:
    """A property that cannot be evaluated at ``depth``, and another that is violated one step on."""
    world, counter = counting(9, "raising")
    world.always("Raises", "one over what is left", counter.where(lambda n: 1 // (depth - n) <= 1 or n > depth, "one over it"))
    world.always("Next", "one step on it is too much", counter.n <= depth)
    return world


class Long(NamedTuple):
    """A walk with a detour."""

    core: int = 0
    detour: int = 0


def detour() -> World:
    """What is violated after five steps can be reached by walks of any length: there are thousands of steps that do nothing for it."""
    world = World("detour")

    def step(state: Long, event: Called) -> tuple[Long, tuple[()]] | None:
        if event.call == "on":
            return (state._replace(core=state.core + 1), ()) if state.core < 5 else None
        return state._replace(detour=(state.detour + 1) % 40), ()

    party = world.party("walker", step, initial=Long(), observe={"core": lambda s: s.core})
    world.may(party, "round and round")
    world.may(party, "on")
    world.never("Core", "five steps on", party.core == 5)
    return world


class Choice(NamedTuple):
    """What was chosen, and what the guard and the action saw."""

    guard: int = 0
    act: int = 0


def choosing() -> World:
    """``x = choose(1, 2, 3); guard(x); act(x)`` within one step, in one party and handed on to another."""
    from troth.models import Give

    world = World("choosing")

    def chooses(state: Choice, event: Called) -> list[tuple[Choice, tuple[Give, ...]]]:
        return [(Choice(x, x), (Give("other", x),)) for x in (1, 2, 3) if x != state.guard]

    one = world.party("one", chooses, initial=Choice(), observe={"guard": lambda c: c.guard, "act": lambda c: c.act})
    other = world.party("other", lambda n, x: (x, ()), initial=0, observe={"n": lambda n: n})
    world.may(one, "choose")
    world.always("Same", "guard and act see the same", one.guard == one.act)
    world.always("HandedOn", "so does the other", one.act == other.n)
    world.sometimes("Three", "every value can be chosen", one.guard == 3)
    return world


def unsteady(how: str) -> World:
    """A step that depends on something beside its state and event."""
    calls: list[int] = []
    seen: set[int] = set()

    def by_counter(n: int, _: Any) -> tuple[int, tuple[()]]:
        calls.append(n)
        return ((n + len(calls)) % 5, ())

    def by_set(n: int, _: Any) -> tuple[int, tuple[()]]:
        first = n not in seen
        seen.add(n)
        return ((n + 1) % 5 if first else n, ())

    def by_time(n: int, _: Any) -> tuple[int, tuple[()]]:
        return (time.perf_counter_ns(), ())

    def by_history(n: int, event: Called) -> tuple[int, tuple[()]] | None:
        # Twice in a row it answers alike: only what happened elsewhere meanwhile changes it.
        calls.append(n)
        if event.call == "step":
            return (n + 1, ()) if n < 100 else None
        return (0, ()) if len(calls) < 40 else (1, ())

    steps = {"counter": by_counter, "set": by_set, "time": by_time, "history": by_history}
    world = World(f"unsteady by {how}")
    party = world.party("dice", steps[how], initial=0)
    world.may(party, "step")
    world.may(party, "look")
    return world


def guard_by_global() -> World:
    """The guard of an action looks at a global that the steps change."""
    mood = {"happy": True}

    def step(n: int, event: Called) -> tuple[int, tuple[()]] | None:
        mood["happy"] &= n < 3
        return (n + 1, ()) if n < 9 else None

    world = World("guard by global")
    party = world.party("moody", step, initial=0)
    world.may(party, "go")
    world.may(party, "sing", when=party.where(lambda n: mood["happy"] and n == 0, "moody is happy"))
    return world


def one_step(*, fair: bool) -> World:
    """``x`` goes from 0 to 1, once."""
    world, counter = counting(1, "one step")
    world.always_eventually("One", "x becomes 1", counter.n == 1, fair=["counter.count"] if fair else [])
    return world


def inbox(*, checks: bool = True) -> World:
    """Results may arrive twice; a host that ``checks`` accepts each once."""
    world = World("inbox")

    def host(seen: tuple[int, ...], event: Any) -> tuple[tuple[int, ...], tuple[()]]:
        return (seen if checks and event.message in seen else (*seen, event.message), ())

    sender = world.party("trainer", lambda n, _: (n + 1, (Send("host", n),)) if n < 2 else None, initial=0)
    receiver = world.party("host", host, initial=(), observe={"twice": lambda seen: len(seen) != len(set(seen))})
    world.link(sender, receiver, duplicating=1, ordered=False, capacity=2, full="blocks")
    world.may(sender, "publish")
    world.never("Once", "no result is accepted twice", receiver.twice)
    world.always_eventually(
        "Both", "both are accepted", receiver.where(lambda seen: len(seen) >= 2, "both"), fair=[deliver, "trainer.publish"]
    )
    return world


def crowded() -> World:
    """A link with room for one message, and a sender who sends two: the second has nowhere to go, and the world says so."""
    world = World("crowded")
    sender = world.party("sender", lambda n, _: (n + 1, (Send("reader", n),)) if n < 2 else None, initial=0)
    reader = world.party("reader", lambda n, _: (n + 1, ()), initial=0, observe={"n": lambda n: n})
    world.link(sender, reader, full="truncates")
    world.may(sender, "send")
    world.always("AtMostTwo", "no more than two arrive", reader.n <= 2)
    world.always_eventually("Two", "both arrive", reader.n == 2, fair=[deliver, "sender.send"])
    return world


def set_order(names: Iterable[str] = ("ann", "bob", "cy", "dot", "eve", "fay")) -> World:
    """A party that takes what a set gives first: it depends on the hash seed, alike within one process."""
    world = World("set order")

    def step(state: str, _: Any) -> tuple[str, tuple[()]]:
        return (next(iter({*names} - {state})), ())

    party = world.party("picker", step, initial="ann")
    world.may(party, "pick")
    world.never("Moved", "somebody else is picked", party.where(lambda s: s != "ann"))
    return world


GRID = grid()
SET_ORDER = set_order()
INITIAL = raising(0)
LATER = raising(3)
INBOX = inbox(checks=False)
TIME = unsteady("time")
ONE_STEP = one_step(fair=False)
