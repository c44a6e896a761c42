"""The seeded walker: session after session through the same rules as the Hypothesis machine, without its cost.

Every session has *tastes* of its own: each rule gets a weight, in some sessions drawn from 1 to 4096, so that one hardly ever lets a
timer fire and another one can hardly wait for it. With equal weights most sessions would be over, by an order or a timer, before they had
begun. For the same reason a walker keeps a *map*: for each situation that it came to, which is where the machines of all cores are, without
their data, the program that led there. Three sessions in four begin with the program of a situation from which little was tried yet, and go
on from there.

The map comes from the sessions before, so session number n of a seed is the same wherever it is walked after those before it. What a
session did is itself a program, which needs no map to be played again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from attrs import frozen

from troth.models.system import ActionKind
from troth.testing.chance import Chance, Dice, Recorded, derived
from troth.testing.coverage import Coverage
from troth.testing.session import Move, Session, raised
from troth.testing.stage import RuleKind, Stage
from troth.testing.twin import Wrong

STEPS_LIMIT = 400
"""Steps of one session, unless it is told otherwise; it is over earlier where nothing can happen any more."""
STRANGE_EVERY = 12
"""One step in so many is an event that no row expects."""
BLIND_TRIES = 32
"""Rules that are tried blindly, before those are looked for that can be taken."""
BASES = (1, 2, 4)
"""How far apart a session's weights lie: not at all, somewhat, or much."""

TASTES = {
    ActionKind.DELIVER: (6, 6),
    ActionKind.TICK: (4, 6),
    ActionKind.CALL: (1, 6),
    ActionKind.TIMER: (0, 4),
    ActionKind.RESTART: (2, 5),
    ActionKind.CONNECT: (2, 5),
}
"""Exponents of a session's base between which a rule's weight lies, by the kind of its action: what keeps a session going is liked more."""
OTHERS = (0, 2)
ALONE = (0, 4)


@frozen
class Walked:
    """One session of the walker."""

    steps: int
    wrong: Wrong | None
    moves: tuple[Move, ...]
    trace: tuple[str, ...]


class Map:
    """The situations that a walker came to: how to get there, and how often it set out from there."""

    def __init__(self) -> None:
        self.ways: list[tuple[Move, ...]] = []
        self.visits: list[int] = []
        self.known: set[tuple[int, ...]] = set()

    def start(self, chance: Chance) -> tuple[Move, ...]:
        """The way to a situation from which little was tried: of a few, drawn, the one from which it set out least often."""
        if not self.ways or chance.below(4) == 0:
            return ()
        drawn = [chance.below(len(self.ways)) for _ in range(DRAWN)]
        place = min(drawn, key=lambda one: self.visits[one])
        self.visits[place] += 1
        return self.ways[place]

    def learn(self, moves: Sequence[Move], situations: Sequence[tuple[int, ...]]) -> None:
        """From a session that is over: its moves, and the situation after each."""
        for place, situation in enumerate(situations):
            if situation not in self.known and len(self.known) < SITUATIONS_LIMIT and place < WAY_LIMIT:
                self.known.add(situation)
                self.ways.append(tuple(moves[: place + 1]))
                self.visits.append(0)


DRAWN = 5
SITUATIONS_LIMIT = 20_000
WAY_LIMIT = 200
"""Steps of a way that is kept; a situation that is further away is none to set out from."""


class Tastes:
    """How much a session likes each rule."""

    def __init__(self, stage: Stage, chance: Chance) -> None:
        weights = []
        base = BASES[chance.below(len(BASES))]
        for rule in stage.actions:
            low, high = ALONE
            if stage.rules[rule].kind is RuleKind.ACTION:
                low, high = TASTES.get(stage.system.actions[rule].kind, OTHERS)
            weights.append(base ** (low + chance.below(high - low + 1)))
        self.rules = stage.actions
        self.weights = dict(zip(stage.actions, weights, strict=True))
        self.sums = tuple(accumulate(weights))

    def any(self, chance: Chance) -> int:
        """A rule, whether it can be taken or not."""
        return self.rules[bisect_right(self.sums, chance.below(self.sums[-1]))]

    def among(self, rules: Sequence[int], chance: Chance) -> int:
        """One of these rules."""
        sums = tuple(accumulate(self.weights[rule] for rule in rules))
        return rules[bisect_right(sums, chance.below(sums[-1]))]


def walk(stage: Stage, seed: int, coverage: Coverage, *, most: int = STEPS_LIMIT, traced: bool = False, known: Map | None = None) -> Walked:
    """One session from ``seed``: at most ``most`` steps, to its end or to the first thing that is wrong."""
    chance = Dice(seed)
    stage.refreshed()
    session: Session | None = None
    wrong: Wrong | None = None
    situations: list[tuple[int, ...]] = []
    try:
        session = Session(stage, coverage, traced=traced)
        tastes = Tastes(stage, chance)
        for move in known.start(chance) if known is not None else ():
            session.take(move.rule, Recorded(move.answers))
            situations.append(session.situation())
        most = max(most, len(session.moves) + 1)
        while len(session.moves) < most and _step(session, tastes, chance):
            situations.append(session.situation())
        session.finished()
    except Exception as error:
        wrong = raised(error)
    moves = tuple(session.moves) if session else ()
    if known is not None:
        known.learn(moves, situations)
    return Walked(len(moves), wrong, moves, session.trace() if session else ())


def _step(session: Session, tastes: Tastes, chance: Chance) -> bool:
    """One step; false where nothing can happen any more."""
    strange = session.stage.strange
    if strange and chance.below(STRANGE_EVERY) == 0 and session.take(strange[chance.below(len(strange))], chance):
        return True
    for _ in range(BLIND_TRIES):
        if session.take(tastes.any(chance), chance):
            return True
    while able := session.able():
        for _ in range(BLIND_TRIES):  # with what is chosen within it, a rule may not be able after all
            if session.take(tastes.among(able, chance), chance):
                return True
    session.stuck()
    return False


def sessions(
    stage: Stage, seed: int, coverage: Coverage, until: Callable[[], bool], *, most: int = STEPS_LIMIT, traced: bool = False
) -> Iterator[tuple[int, Walked]]:
    """The sessions of ``seed``, one after the other, each with the seed of its own."""
    number = 0
    known = Map()
    while not until():
        own = derived(seed, stage.name, number)
        yield own, walk(stage, own, coverage, most=most, traced=traced, known=known)
        number += 1


def played(stage: Stage, moves: Sequence[Move], *, coverage: Coverage | None = None, traced: bool = False) -> Walked:
    """A program, played once more: what cannot be taken is passed over. At its end it is looked at as a whole session is."""
    session: Session | None = None
    wrong: Wrong | None = None
    try:
        session = Session(stage, Coverage() if coverage is None else coverage, traced=traced)
        for move in moves:
            session.take(move.rule, Recorded(move.answers))
        if not session.able():
            session.stuck()
        session.finished()
    except Exception as error:
        wrong = raised(error)
    taken = tuple(session.moves) if session else ()
    return Walked(len(taken), wrong, taken, session.trace() if session else ())


PLAYS_LIMIT = 2_000
"""How often a failing program may be played to make it shorter."""


def shortened(stage: Stage, moves: Sequence[Move], id: str) -> tuple[Move, ...]:  # noqa: A002
    """A part of ``moves`` that still violates ``id``, from which nothing can be left out; as far as ``PLAYS_LIMIT`` allows."""
    *_, last = shorter(stage, moves, id)
    return last


def shorter(stage: Stage, moves: Sequence[Move], id: str) -> Iterator[tuple[Move, ...]]:  # noqa: A002
    """``moves``, then the shorter parts of it that are found to violate ``id``, one after the other, to the one of ``shortened``."""
    kept = tuple(moves)
    yield kept
    plays = 0
    size = max(1, len(kept) // 2)
    while size:
        place = 0
        while place < len(kept) and plays < PLAYS_LIMIT:
            tried = kept[:place] + kept[place + size :]
            plays += 1
            found = played(stage, tried)
            if found.wrong is not None and found.wrong.property == id:
                kept = found.moves if len(found.moves) < len(kept) else tried
                yield kept
            else:
                place += size
        size //= 2
