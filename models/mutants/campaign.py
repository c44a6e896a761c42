"""Every mutant of the parties of some worlds, judged: killed, equivalent, survived, or unknown.

A mutant is *killed* in a world in which a property is violated; the search stops there, and the smallest world that can tell the
mutant from the original is asked first. Promises are asked before anything else, in every world that is searched; then what the worlds
must reach; and conformance, which tells the tables a second time and so minds every change that can be seen at all, is asked last.
``Judged.role`` says which it was.

A mutant is *equivalent* if in every world that holds its machine the labelled reachable graph is the original's: computed, never
assumed. A mutant that was not decided within its limit is *unknown*, which is not killed.

Most equivalent mutants never need a search. If every call that the original's exploration made answers as before, then, step by step
from the initial state, the same calls are all that the mutant's exploration makes, and the graph is the same. Where a call answers
differently and yet no property minds, the two graphs are walked side by side.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Self

from attrs import define, evolve, field, frozen

from troth.models.check import CheckResult, Verdict, check
from troth.models.errors import ComponentFailed, NotCanonical, NotDeterministic, PropertyFailed, TooWide, WorldError
from troth.models.exploration import Limits
from troth.models.mutants.alike import differs, same_graph
from troth.models.mutants.derived import Derived, Known, declared, derived, known
from troth.models.mutants.machines import Mutant, mutants
from troth.models.mutants.patches import registered
from troth.models.world import World
from troth.spec import Party
from troth.spec.properties import Role

CORE = "core"
"""The property that a mutant violates whose core cannot go on: it leaves a timer behind, outgrows a family, signals without end."""

SPARE = 4
"""How many times the original's states a mutant may have, by default, before it is given up as unknown."""
SPARE_STATES = 20_000
"""And how many more."""
PATIENCE = 10_000
"""States, counted in originals, in which promises are looked for in vain before a mutant is put to what is asked after them. Worlds
beyond are searched for mutants that nothing minds before."""


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
    """Worlds that hold its machine."""
    role: Role | None = None
    """What sort of property killed it."""
    asked: int = 0
    """How many of the worlds were searched for a violated promise, or were found to be the original's."""


@frozen(eq=False)
class Prepared:
    """A world that holds, explored to the end, with what is known of its declared parties."""

    world: World
    result: CheckResult
    parties: Mapping[int, Known]

    def holds(self, mutant: Mutant) -> bool:
        """Whether the mutant's party is in it."""
        return any(one.party.name == mutant.party for one in self.parties.values())


def prepared(world: World, result: CheckResult) -> Prepared:
    """``world`` with its own result. Raises ``WorldError`` if it does not hold: nothing can be said against such a world."""
    if result.verdict is not Verdict.HOLDS:
        why = f" ({result.reason})" if result.reason else ""
        raise WorldError(f"world {world.name} is {result.verdict.value}{why}; mutants are judged in worlds that hold")
    if result.exploration.processes > 1:
        what = "was searched by several processes, and what they asked stayed with them"
        raise WorldError(f"world {world.name} {what}; use Limits(workers=1)")
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


@define
class Case:
    """What is known of a mutant that is not judged yet: what each world said. It is sent between processes, so no world is in it."""

    found: dict[int, Judged] = field(factory=dict)
    """By the world's place: what came of looking for promises there."""
    spent: int = 0
    """States of the worlds that were searched in vain."""
    tried: set[int] = field(factory=set)
    """Worlds in which what comes after promises was asked."""


def judged(mutant: Mutant, worlds: Sequence[Prepared], limits: Limits | None = None, patience: int | None = None) -> Judged:
    """The fate of one mutant in these worlds, smallest first. ``limits.max_states`` bounds each search."""
    found = advanced(mutant, Case(), worlds, limits or Limits(), PATIENCE if patience is None else patience, last=True)
    if not isinstance(found, Judged):
        raise TypeError(f"{mutant.name} was judged in every world, and is not decided")
    return found


def advanced(mutant: Mutant, case: Case, worlds: Sequence[Prepared], limits: Limits, patience: int, *, last: bool) -> Judged | Case:
    """Go on judging a mutant in worlds that it was not asked in yet; where these are not the ``last``, it may stay undecided."""
    holding = sorted((place for place, one in enumerate(worlds) if one.holds(mutant)), key=lambda place: worlds[place].result.states)
    for place in holding:
        one = worlds[place]
        if place in case.found:
            continue
        if case.spent + one.result.states > patience and (killed := _second(mutant, case, worlds, limits)):
            return _counted(killed, case, len(holding))
        answer = _in_world(mutant, one, limits, (Role.PROMISE, Role.REACH))
        case.found[place] = answer
        if answer.role is Role.PROMISE:
            return _counted(answer, case, len(holding))
        case.spent += one.result.states if answer.fate is not Fate.EQUIVALENT else 0
    if not last:
        return case
    return _counted(_second(mutant, case, worlds, limits) or _undecided(mutant, case, worlds), case, len(holding))


def _second(mutant: Mutant, case: Case, worlds: Sequence[Prepared], limits: Limits) -> Judged | None:
    """What minds the mutant although no promise does, in the worlds that were searched."""
    reached = next((answer for answer in case.found.values() if answer.role is Role.REACH), None)
    if reached is not None:
        return reached
    for place, answer in case.found.items():
        if place in case.tried or answer.fate is Fate.EQUIVALENT:
            continue
        case.tried.add(place)
        if any(claim.role is Role.CONFORMANCE for claim in worlds[place].world.properties):
            found = _in_world(mutant, worlds[place], limits, (Role.CONFORMANCE,))
            if found.fate is Fate.KILLED:
                return found
    return None


def _undecided(mutant: Mutant, case: Case, worlds: Sequence[Prepared]) -> Judged:
    for fate in (Fate.UNKNOWN, Fate.SURVIVED):
        of = {place: answer for place, answer in case.found.items() if answer.fate is fate}
        if of:
            reason = "; ".join(f"{worlds[place].world.name}: {answer.reason}" for place, answer in of.items() if answer.reason)
            return Judged(mutant.name, mutant.what, fate, reason=reason)
    return Judged(mutant.name, mutant.what, Fate.EQUIVALENT)


def _counted(answer: Judged, case: Case, worlds: int) -> Judged:
    return evolve(answer, worlds=worlds, asked=len(case.found))


def _in_world(mutant: Mutant, of: Prepared, limits: Limits, roles: tuple[Role, ...]) -> Judged:
    """What claims of these roles say of the mutant in one world."""
    claims = [claim.id for claim in of.world.properties if claim.role in roles]
    try:
        made = derived(of.world, of.parties, mutant)
        if not differs(of.world.system(), of.parties, made):
            return Judged(mutant.name, mutant.what, Fate.EQUIVALENT)
        most = limits.max_states or SPARE * of.result.states + SPARE_STATES
        result = check(made.world, properties=claims, limits=evolve(limits, max_states=most, stop_at_violation=True, workers=1))
    except ComponentFailed as error:
        reason = str(error.__cause__ or error)
        if isinstance(error.__cause__, PropertyFailed):  # it is the watch that could not go on, so nothing is known of the core
            return Judged(mutant.name, mutant.what, Fate.UNKNOWN, reason=reason)
        return Judged(mutant.name, mutant.what, Fate.KILLED, CORE, of.world.name, None, reason, role=Role.PROMISE)
    except (WorldError, NotDeterministic, NotCanonical, TooWide) as error:
        return Judged(mutant.name, mutant.what, Fate.UNKNOWN, reason=f"{type(error).__name__}: {error}")
    return _from_result(mutant, of, made, result)


def _from_result(mutant: Mutant, of: Prepared, made: Derived, result: CheckResult) -> Judged:
    if result.verdict is Verdict.VIOLATED:
        first = min(
            (p for p in result.properties if p.verdict is Verdict.VIOLATED),
            key=lambda p: (p.property.role is Role.REACH, len(p.trace.steps) if p.trace else result.depth, p.property.id),
        )
        depth = len(first.trace.steps) if first.trace else result.depth
        name, role = first.property.id, first.property.role
        return Judged(mutant.name, mutant.what, Fate.KILLED, name, of.world.name, depth, role=role)
    if result.verdict is not Verdict.HOLDS:
        return Judged(mutant.name, mutant.what, Fate.UNKNOWN, reason=result.reason or result.verdict.value)
    same = (result.states, result.edges, result.depth) == (of.result.states, of.result.edges, of.result.depth)
    if same and same_graph(of.world.system(), made.world.system()):
        return Judged(mutant.name, mutant.what, Fate.EQUIVALENT)
    return Judged(mutant.name, mutant.what, Fate.SURVIVED)


# -- all of them -------------------------------------------------------------------------------------------------------

Reporter = Callable[[int, int, Judged], None]
"""Called after each mutant that was judged: how many there are by now, of how many, and this one."""


@frozen(eq=False)
class Work:
    """What the forked workers see: the worlds are explored before the fork, and nothing has to be sent."""

    mutants: Sequence[Mutant]
    cases: Sequence[Case]
    worlds: Sequence[Prepared]
    limits: Limits
    patience: int
    last: bool
    note: Callable[[Judged], None] | None

    def one(self, place: int) -> Judged | Case:
        """The next step of one of them."""
        case = self.cases[place]
        found = advanced(self.mutants[place], case, self.worlds, self.limits, self.patience, last=self.last)
        if self.note is not None and isinstance(found, Judged):
            self.note(found)
        return found


_work: Work | None = None


def campaign(
    all_of: Sequence[Mutant],
    worlds: Sequence[Prepared],
    limits: Limits | None = None,
    report: Reporter | None = None,
    patience: int | None = None,
) -> list[Judged]:
    """Judge every mutant, ``limits.processes`` at a time. The answer and its order depend on neither the number nor the timing."""
    return in_stages(all_of, [lambda: worlds], limits, report, patience=patience)


def in_stages(
    all_of: Sequence[Mutant],
    stages: Sequence[Callable[[], Sequence[Prepared]]],
    limits: Limits | None = None,
    report: Reporter | None = None,
    *,
    patience: int | None = None,
    known: Mapping[str, Judged] | None = None,
    note: Callable[[Judged], None] | None = None,
) -> list[Judged]:
    """The same, where worlds are explored as they are needed: a stage gives further ones, larger than those before.

    While the mutants are judged in one stage the worlds of the next are explored already. What is ``known`` is not asked again. ``note``
    is called with each fate as soon as there is one, in the process that found it.
    """
    limits = limits or Limits()
    done = dict(known or {})
    cases = {mutant.name: Case() for mutant in all_of}
    upcoming = stages[0]()
    worlds: list[Prepared] = []
    for place in range(len(stages)):
        open_ = [mutant for mutant in all_of if mutant.name not in done]
        if not open_:
            break
        worlds = [*worlds, *upcoming]
        last = place == len(stages) - 1
        of = [cases[mutant.name] for mutant in open_]
        work = Work(open_, of, worlds, limits, PATIENCE if patience is None else patience, last, note)
        with _Answers(work) as answers:
            upcoming = () if last else stages[place + 1]()
            for mutant, answer in zip(open_, answers.all(), strict=True):
                if isinstance(answer, Case):
                    cases[mutant.name] = answer
                    continue
                done[mutant.name] = answer
                if report is not None:
                    report(len(done), len(all_of), answer)
    return [done[mutant.name] for mutant in all_of]


class _Answers:
    """The answers of some work, which is begun at once where there are processes for it."""

    def __init__(self, work: Work) -> None:
        global _work  # noqa: PLW0603 - inherited by the fork
        self.work = work
        places = range(len(work.mutants))
        processes = min(work.limits.processes, len(places)) if can_fork() else 1
        self.pool = None
        self.found: Iterable[Judged | Case] = map(work.one, places)
        if processes > 1:
            _work = work
            self.pool = multiprocessing.get_context("fork").Pool(processes, _start)
            self.found = self.pool.imap(_one, places)

    def all(self) -> Iterable[Judged | Case]:
        """One a mutant, in their order."""
        return self.found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_of: object) -> None:
        global _work  # noqa: PLW0603
        _work = None
        if self.pool is not None:
            self.pool.terminate()
            self.pool.join()


def can_fork() -> bool:
    """Whether this platform starts processes by copying: the worlds that were explored need not be sent then."""
    return "fork" in multiprocessing.get_all_start_methods()


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle; it ends its workers
    gc.freeze()  # the worlds that were explored are there to stay, so nobody looks through them for garbage


def _one(place: int) -> Judged | Case:
    if _work is None:
        raise AssertionError("a worker without work")
    return _work.one(place)
