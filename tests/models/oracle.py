"""What the checker must say, worked out without it: a naive search over plain Python objects, and liveness by its definition.

It shares no code with ``troth.models``: parties are asked through their tables, links are tuples, and what a link, a timer or a crash
does is written down here once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from tests.models.described import Claims, Described, possible_fairness

UP, DOWN = "up", "down"
CUT = None
"""What comes of an edge that a bound cut off."""


class Party(NamedTuple):
    mode: str
    state: Any
    timers: frozenset[str] = frozenset()
    """Of ``armed`` and ``stale``."""


class State(NamedTuple):
    parties: tuple[Party, ...]
    links: tuple[tuple[str, tuple[str, ...]], ...]
    left: tuple[tuple[Any, int], ...]
    """What is left of each budget."""


Todo = list[tuple[Any, ...]]


def put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def initial(of: Described) -> State:
    left: dict[Any, int] = {("call", p, c): times for p, c, times in of.calls if times is not None}
    for i, link in enumerate(of.links):
        left |= {("lose", i): link.lossy, ("copy", i): link.copies, ("cut", i): link.cuts}
    left |= {("crash", crash.party): crash.times for crash in of.crashes}
    return State((Party(UP, 0),) * len(of.tables), ((UP, ()),) * len(of.links), tuple(left.items()))


def spend(now: State, what: Any) -> list[tuple[State, Todo]]:
    amounts = dict(now.left)
    if what not in amounts or amounts[what] is True:
        return [(now, [])]
    if not amounts[what]:
        return []
    return [(now._replace(left=tuple((amounts | {what: amounts[what] - 1}).items())), [])]


def retimed(timers: frozenset[str], effects: tuple[Any, ...]) -> frozenset[str]:
    for effect in effects:
        if effect[0] in ("set", "cancel"):
            timers = frozenset(timers | {"stale"}) if "armed" in timers else timers
            timers = timers - {"armed"} if effect[0] == "cancel" else timers | {"armed"}
    return timers


def takes(of: Described, now: State, p: int, trigger: str, fired: str | None = None) -> Iterator[tuple[State, Todo]]:
    """Everything that may come of a trigger at a party."""
    party = now.parties[p]
    if party.mode == DOWN:
        if trigger not in ("x", "y"):
            yield now, []
        return
    for after, effects in of.tables[p][party.state, trigger]:
        sent: Todo = [e for e in effects if e[0] in ("send", "tell")]
        timers = retimed(party.timers - {fired}, effects)
        yield now._replace(parties=put(now.parties, p, Party(UP, after, timers))), list(sent)
        for crash in of.crashes:
            if crash.party == p and crash.within:
                down = now._replace(parties=put(now.parties, p, Party(DOWN, after if crash.keeps else None)))
                for count in range(len(sent)):
                    yield down, [("spend", ("crash", p)), *sent[:count]]


def sends(of: Described, now: State, i: int, message: str, *, copied: bool) -> list[tuple[State | None, Todo]]:
    """What the network copies is not merged."""
    (status, messages), link = now.links[i], of.links[i]
    if status == DOWN or (link.merges and not copied and message in messages):
        return [(now, [])]
    if len(messages) < link.capacity:
        return [(now._replace(links=put(now.links, i, (UP, (*messages, message)))), [])]
    full: dict[str, list[tuple[State | None, Todo]]] = {"loses": [(now, [])], "blocks": [], "truncates": [(CUT, [])]}
    return full[link.full]


def perform(of: Described, now: State, what: tuple[Any, ...]) -> Any:
    match what:
        case ("spend", budget):
            return spend(now, budget)
        case ("send" | "copy" as how, i, message):
            return sends(of, now, i, message, copied=how == "copy")
        case ("tell", i, message):
            return takes(of, now, of.local[i][1], message)
        case ("event", p, trigger):
            return takes(of, now, p, trigger)
        case ("fire", p, timer):
            return takes(of, now, p, "fired", timer)
        case ("become", after):
            return [(after, [])]
    raise AssertionError(what)


def settled(of: Described, now: State | None, todo: Todo) -> Iterator[State | None]:
    """All the ways to do everything that is to be done, in order; what follows from it comes last."""
    if now is None or not todo:
        yield now
        return
    for after, more in perform(of, now, todo[0]):
        yield from settled(of, after, [*todo[1:], *more])


def actions(of: Described, now: State) -> Iterator[tuple[Any, Todo]]:
    """Everything that may begin: what fairness calls it, and what is to be done."""
    for p, call, _ in of.calls:
        yield ("calls", p, call), [("spend", ("call", p, call)), ("event", p, call)]
    gated = {p for p, condition in of.gates if not meets(of, now, condition)}
    for p, party in enumerate(now.parties):
        for timer in sorted(party.timers) if p not in gated else ():
            yield ("timers", p, timer), [("fire", p, timer)]
    for i in range(len(of.links)):
        yield from of_link(of, now, i)
    for crash in of.crashes:
        p, party = crash.party, now.parties[crash.party]
        down, up = Party(DOWN, party.state if crash.keeps else None), Party(UP, party.state if crash.keeps else 0)
        if party.mode == UP:
            gone = now._replace(parties=put(now.parties, p, down))
            yield ("crash", p), [("become", gone), ("spend", ("crash", p))]
        elif crash.restarts:
            yield ("restarts", p), [("become", now._replace(parties=put(now.parties, p, up)))]


def of_link(of: Described, now: State, i: int) -> Iterator[tuple[Any, Todo]]:
    (status, messages), link = now.links[i], of.links[i]
    for place, message in enumerate(messages):
        if link.lossy and not (place and message == messages[place - 1]):
            lost = now._replace(links=put(now.links, i, (UP, messages[:place] + messages[place + 1 :])))
            yield ("lose", i, message), [("become", lost), ("spend", ("lose", i))]
        if (place and link.ordered) or message in messages[:place]:
            continue
        without = now._replace(links=put(now.links, i, (UP, messages[:place] + messages[place + 1 :])))
        yield ("deliver", i, message), [("become", without), ("event", link.target, message)]
        if link.copies and (len(messages) < link.capacity or link.full == "truncates"):
            yield ("copy", i, message), [("spend", ("copy", i)), ("copy", i, message)]
    if link.cuts and status == UP:
        gone = now._replace(links=put(now.links, i, (DOWN, ())))
        yield ("cut", i), [("become", gone), ("spend", ("cut", i)), ("event", link.target, "lost")]
    if link.cuts and status == DOWN:
        back = now._replace(links=put(now.links, i, (UP, ())))
        yield ("connects", i), [("become", back), ("event", link.target, "up")]


def canonical(of: Described, now: State) -> State:
    """A link without an order is a bag."""
    links = tuple((s, m if link.ordered else tuple(sorted(m))) for (s, m), link in zip(now.links, of.links, strict=True))
    return now._replace(links=links)


class Search(NamedTuple):
    """Everything that is reachable: edges with what fairness calls them, and the depth of each state."""

    depths: dict[State, int]
    out: dict[State, list[tuple[Any, State]]]
    cut: int

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """States, edges, depth, edges cut off."""
        return len(self.depths), sum(map(len, self.out.values())), max(self.depths.values()), self.cut


def search(of: Described, most: int) -> Search | None:
    """Breadth first. ``None`` for a world of more than ``most`` states."""
    start = initial(of)
    depths, level, out, cut = {start: 0}, [start], {}, 0
    while level:
        new: list[State] = []
        for state in level:
            edges = [(turn, after) for turn, todo in actions(of, state) for after in settled(of, state, todo)]
            out[state] = [(turn, canonical(of, after)) for turn, after in edges if after is not None]
            cut += len(edges) - len(out[state])
            for _, after in out[state]:
                if after not in depths:
                    depths[after] = depths[state] + 1
                    new.append(after)
        if len(depths) > most:
            return None
        level = new
    return Search(depths, out, cut)


# -- properties --------------------------------------------------------------------------------------------------------


def meets(of: Described, state: State, condition: tuple[int, int]) -> bool:
    """A party that is down shows what it would show after a restart."""
    party = state.parties[condition[0]]
    shown = 0 if party.mode == DOWN and party.state is None else party.state
    return bool(shown == condition[1])


def first_violation(of: Described, found: Search, asked: Claims) -> int | None:
    """The least depth at which all of ``never`` holds."""
    bad = [depth for state, depth in found.depths.items() if all(meets(of, state, c) for c in asked.never)]
    return min(bad, default=None)


def reach(found: Search, starts: set[State], within: set[State]) -> set[State]:
    """What can be reached from ``starts`` inside ``within``."""
    seen = starts & within
    todo = list(seen)
    while todo:
        for _, after in found.out[todo.pop()]:
            if after in within and after not in seen:
                seen.add(after)
                todo.append(after)
    return seen


def pending(of: Described, found: Search, asked: Claims, *, always: bool) -> set[State]:
    """The states in which a run may be that has reached the premise and since then not seen the goal."""
    outside = {state for state in found.depths if not meets(of, state, asked.goal)}
    starts = {state for state in outside if always or meets(of, state, asked.premise)}
    return reach(found, starts, outside)


def leads_to(of: Described, found: Search, asked: Claims, *, always: bool) -> bool:
    """By definition: no run reaches the premise without the goal and then, fairly, never the goal.

    The states that such a run visits again and again are some set of states, strongly connected (or one state, where it stands
    still); the fairest run in it takes each of its edges again and again. So all sets are tried.
    """
    among = list(pending(of, found, asked, always=always))
    fair = possible_fairness(of, asked)
    sets = (set(chosen) for size in range(1, len(among) + 1) for chosen in combinations(among, size))
    return not any(stays_fairly(found, chosen, fair) for chosen in sets)


def stays_fairly(found: Search, chosen: set[State], fair: tuple[tuple[str, bool], ...]) -> bool:
    """Whether a fair run may visit exactly these states again and again."""
    first = next(iter(chosen))
    if len(chosen) > 1 and (reach(found, {first}, chosen) != chosen or any(first not in reach(found, {s}, chosen) for s in chosen)):
        return False
    taken = {turn for state in chosen for turn, after in found.out[state] if after in chosen}
    for kind, is_strong in fair:
        for turn in {turn for state in chosen for turn, _ in found.out[state] if turn[0] == kind}:
            possible = [any(turn == other for other, _ in found.out[state]) for state in chosen]
            if turn not in taken and (any(possible) if is_strong else all(possible)):
                return False
    return True
