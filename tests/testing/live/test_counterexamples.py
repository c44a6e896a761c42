"""Every counterexample of every named mutant, on the live runtime: it does not happen there, and with the mutant's tables it does.

The mutants are those of the registry. Where the world that tells a mutant's story best cannot be staged, the story is searched anew in one
that can be; ``ELSEWHERE`` says which, and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from attrs import frozen

from tests.testing.live.paths.alone import NO_CONNECTION
from tests.testing.live.paths.asking import RUNS
from tests.testing.live.paths.conducting import CannotPerform, Diverged
from tests.testing.live.paths.following import follow, kept, shortest
from tests.testing.live.paths.staging import Staging, staging
from tests.testing.live.paths.worlds import STAGED
from troth.cli.finding import find
from troth.models import Limits, check
from troth.models.mutants import DEFECTS, LAPSES, Patch, mutated
from troth.models.mutants.patches import registered
from troth.models.mutants.witnesses import WITNESSES
from troth.models.properties import Property
from troth.models.trace import Trace
from troth.models.world import World
from troth.runtime.errors import Misuse
from troth.spec.properties import PROPERTIES
from troth.statemachines import PARTIES

ATTACHED = "it is of an attached pair, and the runtime launches its trainers; here the party is attached, and its peer is played"
HANGS_UP = "in its world a host hangs up while messages are on their way, and they arrive all the same; here it waits"
HELD_BACK = "in its world a full link holds back the step that Troth would take; here no link is full"
PLAYED = "here both sides are live, where the world of its witness has one of them"
ELSEWHERE: Mapping[str, tuple[str, str, str]] = {
    "D4": ("P95", "session/attached", ATTACHED),
    "D5": ("P75", "paths/beats", "it is of an attached pair with a clock; here the same messages meet between a launched one"),
    "D8": ("P10", "paths/ends", HANGS_UP),
    "D11": ("P97", "paths/ends", HELD_BACK),
    "D14": ("P40", "paths/ends", HANGS_UP),
    "D18": ("P90", "paths/bytes", "its world has a second receiver, which is in no process of ours"),
    "D20": ("P98", "session/host_attached", ATTACHED),
    "D22": ("P25", "session/attached", ATTACHED),
    "P01-unconfirmed": ("P01", "paths/ends", PLAYED),
    "P13-impatient": ("P13", "paths/ends", PLAYED),
    "P77-unasked": ("P77", "paths/ends", PLAYED),
    "P98-unplugged": ("P98", "external/answers", PLAYED),
}
"""For a mutant: the property, the world, and why not its own."""
KEPT_OUT: Mapping[str, str] = {
    "P58-reopened": "its tables take a session that is opened to a trainer that has closed; the runtime closes the link of such a trainer "
    "in the same step, or has never dialled one, so no SESSION_OPEN ever comes",
}
"""Mutants whose tables alone do not bring the mistake back, because the runtime has another guard; and which."""
NOT_FETCHED = "fetcher.payload 1/1 arrives: nobody fetches (1, 1)"
ASKED: Mapping[str, tuple[str, ...]] = {
    "D2": ("host timer: ('timer', 'budget', None): host: timer budget None does not run",),
    "D7": (f"trainer timer: ('timer', 'result', 1): {RUNS}",),
    "D9": (NOT_FETCHED, "trainer.take 2: its receive() was handed nothing"),
    "D12": ("host>trainer:control delivers: Abort(epoch=1): host>trainer:control: Abort(epoch=1) does not come next",),
    "D18": (f"trainer timer source[(1, 0)]: ('timer', 'source', (1, 0)): {RUNS}",),
    "P04-again": ("trainer.take 12: its receive() was handed nothing",),
    "P30-passed": (NOT_FETCHED, "trainer.take 2: its receive() has returned"),
    "P58-reopened": (f"trainer.SESSION_OPEN 2 of 1: {NO_CONNECTION}",),
    "P66-second": ("callers.execute: execute() is refused: execute(): one task at a time: wait for the one that is out",),
}
"""What does not come of a mutant's actions on the live runtime, and why, as it answers for itself; of all others everything comes."""
PATCHES = {patch.name: patch for party in PARTIES.values() for patch in registered(party) if patch in (*DEFECTS, *LAPSES)}
WITNESSED = {witness.mutant: (id_, witness.world) for id_, witness in WITNESSES.items()}


@frozen
class Story:
    """A counterexample, and what it is about."""

    patch: Patch
    world: World
    mutant: World
    claim: Property
    broken: Property
    """The same claim of the mutated world."""
    trace: Trace
    staging: Staging


def where(patch: Patch) -> tuple[str, str]:
    """The property that a mutant breaks, and the world in which its story is told here."""
    if patch.name in ELSEWHERE:
        return ELSEWHERE[patch.name][:2]
    return (patch.property, patch.world) if patch.world else WITNESSED[patch.name]


def built(name: str) -> World:
    """A world of that name, ours too."""
    ours = next((world for world in STAGED if world.name == name), None)
    return find(name).build({}) if ours is None else ours.build()


@cache
def story(name: str) -> Story:
    """The shortest run to the mistake, of those that can be performed where the very shortest cannot."""
    patch = PATCHES[name]
    id_, at = where(patch)
    world, mutant = built(at), mutated(built(at), patch.mutant())
    (found,) = check(mutant, properties=[id_], limits=Limits(stop_at_violation=True, workers=1)).properties
    trace = found.trace
    assert trace is not None, f"{name} does not break {id_} in {at} ({found.verdict.value}): choose another world for it in ELSEWHERE"
    stage = staging(trace.system)
    assert stage is not None, f"{at}, the world of {name}, has parties that the runtime has not: choose another one in ELSEWHERE"
    bars = stage.bars(trace.system)
    if name not in KEPT_OUT and any(bars(before, step) for before, step in zip(trace.states, trace.steps, strict=False)):
        trace = shortest(trace.system, found.property, stage.at_once, bars) or trace
    claim = next(claim for claim in world.properties if claim.id == id_)
    return Story(patch, world, mutant, claim, found.property, trace, stage)


@pytest.mark.parametrize("name", PATCHES)
def test_the_counterexample_of_a_named_mutant_does_not_happen_on_the_live_runtime(name: str) -> None:
    """Its actions are performed as far as they exist; where the mutant makes its mistake the runtime does otherwise, and at no moment is
    the property broken. What the property promises for later comes, too."""
    told = story(name)
    system = told.world.system()
    with told.staging.conductor(system, PARTIES[told.patch.party]) as conductor:
        follower, found = follow(system, conductor, told.trace, told.staging.at_once)
        assert found.apart is not None, "the mutant did the same all along"
        assert found.skipped == ASKED.get(name, ())
        assert not found.violates(told.claim)
        assert kept(follower, told.claim)
        conductor.close()


@pytest.mark.parametrize("name", [name for name in PATCHES if name not in KEPT_OUT])
def test_with_the_tables_of_a_named_mutant_its_counterexample_happens_on_the_live_runtime(name: str) -> None:
    """So the replay could have failed: the same runtime, led along the same actions, breaks the property if its tables are the mutant's."""
    told = story(name)
    with told.staging.conductor(told.trace.system, told.patch.mutant().of(PARTIES[told.patch.party])) as conductor:
        _, found = follow(told.trace.system, conductor, told.trace, told.staging.at_once)
    assert found.skipped == ()
    assert found.apart is None
    assert found.violates(told.broken)


def test_a_second_execute_is_made_and_refused_by_the_runtime_itself() -> None:
    """The world has no such call to make. A runtime that took it would not go unnoticed: one with the mutant's tables takes it."""
    told = story("P66-second")
    system, party = told.world.system(), PARTIES[told.patch.party]
    with told.staging.conductor(system, party) as conductor:
        follower, _ = follow(system, conductor, told.trace, told.staging.at_once)
        with pytest.raises(CannotPerform, match="one task at a time") as refused:
            conductor.perform(told.trace.steps[-1], [])
        assert isinstance(refused.value.__cause__, Misuse)
        assert told.trace.steps[-1].action.name == "callers.execute"
        assert follower.like(told.trace.steps[-1]) is None
    with (
        told.staging.conductor(system, told.patch.mutant().of(party)) as conductor,
        pytest.raises(Diverged, match="the world has no such thing here, and the runtime has"),
    ):
        follow(system, conductor, told.trace, told.staging.at_once)


@pytest.mark.parametrize("name", KEPT_OUT)
def test_a_mutant_that_is_kept_out_otherwise_is_so(name: str) -> None:
    """The list goes stale silently otherwise."""
    told = story(name)
    with told.staging.conductor(told.trace.system, told.patch.mutant().of(PARTIES[told.patch.party])) as conductor:
        _, found = follow(told.trace.system, conductor, told.trace, told.staging.at_once)
    assert found.skipped
    assert not found.violates(told.broken)


def test_every_named_mutant_is_replayed() -> None:
    """No patch is left out, and none of the lists names one that there is not."""
    registry = {patch.name for party in PARTIES.values() for patch in registered(party)}

    assert {patch.name for patch in (*DEFECTS, *LAPSES)} <= registry
    assert len(PATCHES) == len(DEFECTS) + len(LAPSES)
    assert set(ELSEWHERE) <= set(PATCHES)
    assert set(KEPT_OUT) <= set(PATCHES)
    assert set(ASKED) <= set(PATCHES)
    assert all(id_ in PROPERTIES and why for id_, _, why in ELSEWHERE.values())


@pytest.mark.parametrize("name", [name for name, (_, _, why) in ELSEWHERE.items() if why not in (HANGS_UP, HELD_BACK, PLAYED)])
def test_a_world_that_is_passed_over_cannot_be_staged(name: str) -> None:
    """Else its own world would do."""
    assert staging(built(PATCHES[name].world).system()) is None
