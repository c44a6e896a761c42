"""Every mutant of the parties of some worlds, judged: killed, equivalent, survived, or unknown.

A mutant is *killed* in a world in which a property is violated; the search stops there, and the smallest world that can tell the
mutant from the original is asked first. It is *equivalent* if in every world that holds its machine the labelled reachable graph is the
original's: computed, never assumed. A mutant that was not decided within its limit is *unknown*, which is not killed.

Most equivalent mutants never need a search. If every call that the original's exploration made answers as before, then, step by step
from the initial state, the same calls are all that the mutant's exploration makes, and the graph is the same. Where a call answers
differently and yet no property minds, the two graphs are walked side by side.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum

from attrs import evolve, frozen

from troth.models.check import CheckResult, Verdict, check
from troth.models.errors import ComponentFailed, NotCanonical, NotDeterministic, TooWide, WorldError
from troth.models.exploration import Limits
from troth.models.mutants.derived import Derived, Known, declared, derived, known
from troth.models.mutants.machines import Mutant, mutants
from troth.models.mutants.patches import registered
from troth.models.system import TRUNCATED, Branch, State, System
from troth.models.world import World
from troth.spec import Party

CORE = "core"
"""The property that a mutant violates whose core cannot go on: it leaves a timer behind, outgrows a family, signals without end."""

SPARE = 4
"""How many times the original's states a mutant may have, by default, before it is given up as unknown."""
SPARE_STATES = 20_000
"""And how many more."""


class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    EQUIVALENT = "equivalent"
    SURVIVED = "survived"
    UNKNOWN = "unknown"


@frozen
class Judged:
    """One mutant's fate. ``property``, ``world`` and ``depth`` say what killed it; ``reason`` why it is unknown, or how a core failed."""

    name: str
    what: str
    fate: Fate
    property: str = ""
    world: str = ""
    depth: int | None = None
    reason: str = ""
    worlds: int = 0
    """Worlds that hold its machine and were asked."""


@frozen(eq=False)
class Prepared:
    """A world that holds, explored to the end, with what is known of its declared parties."""

    world: World
    result: CheckResult
    parties: Mapping[int, Known]


def prepared(world: World, result: CheckResult) -> Prepared:
    """``world`` with its own result. Raises ``WorldError`` if it does not hold: nothing can be said against such a world."""
    if result.verdict is not Verdict.HOLDS:
        why = f" ({result.reason})" if result.reason else ""
        raise WorldError(f"world {world.name} is {result.verdict.value}{why}; mutants are judged in worlds that hold")
    return Prepared(world, result, known(world))


def of_worlds(worlds: Sequence[World]) -> list[Mutant]:
    """The mutants of every declared party in these worlds, named patches first. Raises ``WorldError`` if there is no such party."""
    parties: dict[str, Party] = {}
    for world in worlds:
        for party in declared(world).values():
            parties.setdefault(party.name, party)
    if not parties:
        raise WorldError(f"there is nothing to mutate in {', '.join(w.name for w in worlds)}: no party is a declared one (PartyCore)")
    named = [patch.mutant() for party in parties.values() for patch in registered(party)]
    return named + [mutant for party in parties.values() for mutant in mutants(party)]


def mutated(world: World, mutant: Mutant) -> World:
    """``world`` with ``mutant`` in it, nothing explored yet."""
    of = {index: Known(index, party, {}, {}) for index, party in declared(world).items()}
    return derived(world, of, mutant).world


# -- one mutant --------------------------------------------------------------------------------------------------------


def judged(mutant: Mutant, worlds: Sequence[Prepared], limits: Limits | None = None) -> Judged:
    """The fate of one mutant in these worlds, smallest first. ``limits.max_states`` bounds each search."""
    holding = [p for p in worlds if any(k.party.name == mutant.party for k in p.parties.values())]
    found = [Fate.EQUIVALENT]
    reasons: list[str] = []
    for one in sorted(holding, key=lambda p: p.result.states):
        answer = _in_world(mutant, one, limits or Limits())
        if answer.fate is Fate.KILLED:
            return evolve(answer, worlds=len(holding))
        found.append(answer.fate)
        if answer.reason:
            reasons.append(f"{one.world.name}: {answer.reason}")
    for fate in (Fate.UNKNOWN, Fate.SURVIVED):
        if fate in found:
            return Judged(mutant.name, mutant.what, fate, reason="; ".join(reasons), worlds=len(holding))
    return Judged(mutant.name, mutant.what, Fate.EQUIVALENT, worlds=len(holding))


def _in_world(mutant: Mutant, prepared_: Prepared, limits: Limits) -> Judged:
    try:
        made = derived(prepared_.world, prepared_.parties, mutant)
        if not _differs(prepared_, made):
            return Judged(mutant.name, mutant.what, Fate.EQUIVALENT)
        most = limits.max_states or SPARE * prepared_.result.states + SPARE_STATES
        result = check(made.world, limits=evolve(limits, max_states=most, stop_at_violation=True, workers=1))
    except ComponentFailed as error:
        reason = str(error.__cause__ or error)
        return Judged(mutant.name, mutant.what, Fate.KILLED, CORE, prepared_.world.name, None, reason)
    except (WorldError, NotDeterministic, NotCanonical, TooWide) as error:
        return Judged(mutant.name, mutant.what, Fate.UNKNOWN, reason=f"{type(error).__name__}: {error}")
    return _from_result(mutant, prepared_, made, result)


def _from_result(mutant: Mutant, of: Prepared, made: Derived, result: CheckResult) -> Judged:
    if result.verdict is Verdict.VIOLATED:
        first = min(
            (p for p in result.properties if p.verdict is Verdict.VIOLATED),
            key=lambda p: (len(p.trace.steps) if p.trace else result.depth, p.property.id),
        )
        depth = len(first.trace.steps) if first.trace else result.depth
        return Judged(mutant.name, mutant.what, Fate.KILLED, first.property.id, of.world.name, depth)
    if result.verdict is not Verdict.HOLDS:
        return Judged(mutant.name, mutant.what, Fate.UNKNOWN, reason=result.reason or result.verdict.value)
    same = (result.states, result.edges, result.depth) == (of.result.states, of.result.edges, of.result.depth)
    if same and _same_graph(of.world.system(), made.world.system()):
        return Judged(mutant.name, mutant.what, Fate.EQUIVALENT)
    return Judged(mutant.name, mutant.what, Fate.SURVIVED)


# -- equivalence -------------------------------------------------------------------------------------------------------


def _differs(of: Prepared, made: Derived) -> bool:
    """Whether any call that the original made answers differently; rows and guards aside, which are not part of the graph."""
    base, system = of.world.system(), made.world.system()
    for index, again in made.affected.items():
        table, calls = system.components[index], of.parties[index].calls
        if table.states[0] != base.components[index].states[0]:
            return True
        for local, item in calls if again is None else again:
            try:
                answer = system.call(index, local, item)
            except ComponentFailed:
                return True  # whether a mutant's own search gets here is for the search to say
            if [_outcome(b) for b in answer] != [_outcome(b) for b in calls[local, item]]:
                return True
    return False


def _outcome(branch: Branch) -> tuple[object, ...]:
    return branch.target, branch.emits, branch.variant, branch.truncated


def _same_graph(base: System, other: System) -> bool:
    """Both graphs side by side, from the initial state, until an edge differs. The two systems number everything alike."""
    if any(b.states[0] != o.states[0] for b, o in zip(base.components, other.components, strict=True)):
        return False
    seen = {base.initial}
    level = [base.initial]
    while level:
        after: list[State] = []
        for state in level:
            edges = _labelled(base, state)
            if edges != _labelled(other, state):
                return False
            for target, _ in edges:
                if target not in seen:
                    seen.add(target)
                    after.append(target)
        level = after
    return True


def _labelled(system: System, state: State) -> Counter[tuple[State, object]]:
    edges = system.successors(state, labelled=True)
    return Counter((target, None if symbol == TRUNCATED else system.label_of(symbol)) for target, symbol in edges)


# -- all of them -------------------------------------------------------------------------------------------------------

_work: tuple[Sequence[Mutant], Sequence[Prepared], Limits] | None = None
"""What the forked workers of ``campaign`` see: the worlds are explored before the fork, and nothing has to be sent."""


def campaign(
    all_of: Sequence[Mutant],
    worlds: Sequence[Prepared],
    limits: Limits | None = None,
    report: Callable[[int, int, Judged], None] | None = None,
) -> list[Judged]:
    """Judge every mutant, ``limits.processes`` at a time. The answer and its order depend on neither the number nor the timing."""
    limits = limits or Limits()
    found: list[Judged] = []
    for answer in _answers(all_of, worlds, limits):
        found.append(answer)
        if report is not None:
            report(len(found), len(all_of), answer)
    return found


def _answers(all_of: Sequence[Mutant], worlds: Sequence[Prepared], limits: Limits) -> Iterator[Judged]:
    global _work  # noqa: PLW0603 - inherited by the fork
    processes = min(limits.processes, len(all_of)) if can_fork() else 1
    if processes < 2:
        for mutant in all_of:
            yield judged(mutant, worlds, limits)
        return
    _work = all_of, worlds, limits
    try:
        with multiprocessing.get_context("fork").Pool(processes, _start) as pool:
            yield from pool.imap(_one, range(len(all_of)))
    finally:
        _work = None


def can_fork() -> bool:
    """Whether this platform starts processes by copying: the worlds that were explored need not be sent then."""
    return "fork" in multiprocessing.get_all_start_methods()


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle; it ends its workers


def _one(place: int) -> Judged:
    if _work is None:
        raise AssertionError("a worker without work")
    all_of, worlds, limits = _work
    return judged(all_of[place], worlds, limits)
