"""Dining philosophers, in the solution of Chandy and Misra and without any.

``RULE`` 0 is the solution: a fork is dirty after a meal; who holds a dirty fork cleans it and hands it to the neighbour; who has two
clean forks eats. After Jeff Hemphill's module DiningPhilosophers in the repository tlaplus/Examples, whose manifest gives 67 distinct
states and nobody who starves, for five philosophers.

``RULE`` 1 is the problem: everybody takes the left fork first, and keeps it. It ends with a fork in every left hand (Dijkstra,
"Hierarchical ordering of sequential processes", Acta Informatica 1, 1971). ``RULE`` 2 is the other classic remedy: the last one takes
the right fork first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from attrs import frozen

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.closing import Give
from troth.models.expressions import any_of
from troth.models.handles import ActionHandle, PartyHandle
from troth.models.world import World
from troth.spec.core import Called

CHANDY_MISRA, ALL_LEFT_FIRST = 0, 1


class Fork(NamedTuple):
    """A fork of Chandy and Misra: who holds it, and whether it is clean."""

    holder: int
    clean: bool = False


class Table(NamedTuple):
    """All the forks: fork ``i`` lies to the left of philosopher ``i``."""

    forks: tuple[Fork, ...]

    def hand_over(self, fork: int, to: int) -> Table:
        """The table after ``fork`` was cleaned and given away."""
        return Table((*self.forks[:fork], Fork(to, clean=True), *self.forks[fork + 1 :]))


@frozen
class Looks:
    """Philosopher ``who`` looks at both forks, hands over a dirty one, and sees whether there is a meal."""

    who: int


@frozen
class Eats:
    """Philosopher ``who`` eats: both forks are dirty now."""

    who: int


class Philosopher(NamedTuple):
    """``at`` is where a philosopher is: at the table (``loop``), eating or thinking."""

    at: str = "loop"
    hungry: bool = True


def polite_table(state: Table, event: Any) -> tuple[Table, tuple[Give, ...]]:
    """The forks, and what looking at them shows."""
    size, who = len(state.forks), event.who
    left, right = who, (who + 1) % size
    if isinstance(event, Eats):
        dirty = (Fork(f.holder) if i in (left, right) else f for i, f in enumerate(state.forks))
        return Table(tuple(dirty)), ()
    if state.forks[left] == Fork(who):
        state = state.hand_over(left, (who - 1) % size)
    elif state.forks[right] == Fork(who):
        state = state.hand_over(right, right)
    ready = all(state.forks[fork] == Fork(who, clean=True) for fork in (left, right))
    return state, (Give(f"philosopher {who}", ready),)


def polite(who: int) -> Any:
    """A philosopher of Chandy and Misra. A bool is what the table answers."""

    def step(state: Philosopher, event: Any) -> tuple[Philosopher, tuple[Give, ...]]:
        if isinstance(event, bool):
            if not state.hungry:
                return state._replace(at="thinks"), ()
            return state._replace(at="eats" if event else "loop"), ()
        if state.at == "loop":
            return state, (Give("table", Looks(who)),)
        if state.at == "eats":
            return Philosopher("loop", hungry=False), (Give("table", Eats(who)),)
        return Philosopher("loop", hungry=True), ()

    return step


def fork(state: bool, event: Called) -> tuple[bool, tuple[()]] | None:
    """A fork of the others: taken or not."""
    if event.call == "take":
        return None if state else (True, ())
    return False, ()


def stubborn(order: tuple[int, int]) -> Any:
    """A philosopher who takes one fork, then the other, and puts both back after the meal. The state: how many are taken."""

    def step(state: int, event: Called) -> tuple[int, tuple[Give, ...]]:  # noqa: ARG001 - there is one call only
        if state < 2:
            return state + 1, (Give(f"fork {order[state]}", Called("take")),)
        return 0, tuple(Give(f"fork {one}", Called("put")) for one in order)

    return step


@blueprint(
    "published/dining_philosophers",
    N=Bound(5, "philosophers", 2, 8),
    RULE=Bound(0, "0 clean forks, 1 all left first, 2 one right first", 0, 2),
)
def dining_philosophers(bounds: Bounds) -> World:
    """Dining philosophers who hand their forks over when they are dirty: nobody starves."""
    world = World("published/dining_philosophers", "dining philosophers; RULE=1 lets them all take the left fork first")
    if bounds.RULE == CHANDY_MISRA:
        _polite(world, bounds.N)
    else:
        _stubborn(world, bounds.N, one_right_first=bounds.RULE != ALL_LEFT_FIRST)
    return world


def _polite(world: World, size: int) -> None:
    forks = tuple(Fork(0 if i == 1 else i) for i in range(size))
    everybody = [
        world.party(
            f"philosopher {i}", polite(i), initial=Philosopher(), observe={"eats": lambda s: s.at == "eats", "hungry": lambda s: s.hungry}
        )
        for i in range(size)
    ]
    world.party("table", polite_table, initial=Table(forks))
    moves = [world.may(one, "moves") for one in everybody]
    _claims(world, everybody, moves)
    for i, one in enumerate(everybody):
        world.always_eventually(f"Fed{i}", f"philosopher {i} does not stay hungry", ~one.hungry, fair=moves)


def _stubborn(world: World, size: int, *, one_right_first: bool) -> None:
    orders = [(i, (i + 1) % size) for i in range(size)]
    if one_right_first:
        orders[-1] = (orders[-1][1], orders[-1][0])
    everybody = [
        world.party(f"philosopher {i}", stubborn(order), initial=0, observe={"eats": lambda taken: taken == 2})
        for i, order in enumerate(orders)
    ]
    for i in range(size):
        world.party(f"fork {i}", fork, initial=False)
    moves = [world.may(one, "moves") for one in everybody]
    _claims(world, everybody, moves)


def _claims(world: World, everybody: list[PartyHandle], moves: list[ActionHandle]) -> None:
    for i, one in enumerate(everybody):
        neighbour = everybody[(i + 1) % len(everybody)]
        world.never(f"Alone{i}", f"philosophers {i} and {(i + 1) % len(everybody)} do not eat at once", one.eats & neighbour.eats)
    world.no_deadlock("Moves", "somebody can always do something")
    world.always_eventually("Meals", "somebody eats again and again", any_of(*(one.eats for one in everybody)), fair=moves)
