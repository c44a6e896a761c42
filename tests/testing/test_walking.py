"""The seeded walker: it finds what is wrong, says how to come to it again, and is the same for the same seed."""

from __future__ import annotations

import pytest

from tests.testing.toys import GENEROUS, TURNSTILE, Forgetful, Greedy, door, fare, long_fare
from troth.cli.finding import find
from troth.models import World
from troth.models.mutants import DEFECTS, mutated
from troth.spec import Party, PartyCore
from troth.testing import BadToken, Cores, Coverage, Play, alone, programs
from troth.testing.ours import PLAYS
from troth.testing.stage import Stage
from troth.testing.walker import Walked, played, sessions, shortened, walk

PATCHES = {patch.name: patch for patch in DEFECTS}


def first_wrong(stage: Stage, seed: int, most: int) -> Walked | None:
    """The first session of the seed in which something is wrong, among ``most`` of them."""
    walking = sessions(stage, seed, Coverage(), lambda: False)
    return next((walked for _, walked in (next(walking) for _ in range(most)) if walked.wrong is not None), None)


def staged(of: World | Party | PartyCore) -> Stage:
    """A world, or a party alone."""
    if isinstance(of, World):
        return Stage(of)
    world, handle = alone(of)
    return Stage(world, open_to=[handle.name])


@pytest.mark.parametrize("seed", range(4))
def test_a_property_of_a_users_world_is_violated_and_made_short(seed: int) -> None:
    """A coin that is copied passes twice; four steps show it, and nothing shorter does."""
    stage = staged(fare())
    found = first_wrong(stage, seed, 50)

    assert found is not None
    assert found.wrong is not None
    assert found.wrong.property == "ONCE"
    assert len(shortened(stage, found.moves, "ONCE")) == 4


@pytest.mark.parametrize("seed", range(4))
def test_a_sound_world_is_walked_without_a_fault(seed: int) -> None:
    """The same, with the bug mended."""
    assert first_wrong(staged(fare(sound=True)), seed, 50) is None
    assert first_wrong(staged(TURNSTILE), seed, 3) is None


@pytest.mark.parametrize(
    ("core", "property_"), [(Greedy(), "ignored"), (Forgetful(), "effects")], ids=["changes on an ignored event", "remembers beside"]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_core_that_is_not_what_its_table_says_is_found(core: PartyCore, property_: str, seed: int) -> None:
    """Whoever keeps an ignored coin is told apart by the event that no row expects; whoever has a memory beside it by its effects."""
    found = first_wrong(staged(core), seed, 20)

    assert found is not None
    assert found.wrong is not None
    assert found.wrong.property == property_


def test_a_core_without_a_declaration_must_be_as_it_was_when_it_refuses() -> None:
    """It is offered again what it was given before."""
    found = first_wrong(staged(door()), 1, 20)

    assert found is not None
    assert found.wrong is not None
    assert found.wrong.property == "ignored"


def test_what_is_claimed_of_a_party_alone_is_watched() -> None:
    """A turnstile that one coin opens for good."""
    world, gate = alone(GENEROUS)
    world.always("FARE", "no more passages than coins", gate.passed <= gate.coins)
    found = first_wrong(Stage(world, open_to=["turnstile"]), 1, 20)

    assert found is not None
    assert found.wrong is not None
    assert found.wrong.property == "FARE"


FOUND = {
    "D1": "supervisor/tasks", "D2": "ledger/host", "D3": "ledger/host", "D4": "attach/host_again", "D5": "lease", "D6": "ledger/outcomes",
    "D7": "answers/orphan", "D8": "external/returns", "D9": "ledger", "D10": "external/calls", "D11": "ledger/host",
    "D12": "external/patient", "D13": "ledger/outcomes", "D14": "session/one_shot", "D15": "session/one_shot", "D16": "ledger/eviction",
    "D17": "supervisor/tasks", "D18": "transfer/download", "D20": "attach", "D22": "attach/host_again", "D23": "ledger/outcomes",
}  # fmt: skip
"""Defects of the reference, and a world in which a walk soon shows each."""
STANDARD_STEPS = 300_000
"""What a standard walk of a minute takes at the least. Most defects are found within a tenth of it."""


def test_every_defect_of_our_tables_is_among_those_that_must_be_found() -> None:
    """A new one would be left out silently otherwise."""
    assert set(FOUND) == set(PATCHES)


@pytest.mark.parametrize(("name", "world"), FOUND.items())
def test_a_defect_of_the_reference_is_found(name: str, world: str) -> None:
    """Brought back into our tables, and walked into within the standard budget, by the property that it breaks."""
    stage = staged(mutated(find(world).build({}), PATCHES[name].mutant()))
    steps = 0
    found: Walked | None = None
    for _, walked in sessions(stage, 1, Coverage(), lambda: False):
        steps += walked.steps
        found = walked if walked.wrong is not None else None
        if found is not None or steps >= STANDARD_STEPS:
            break

    assert found is not None, f"nothing is wrong in {steps} steps"
    assert found.wrong is not None
    assert found.wrong.property.startswith("P"), found.wrong


@pytest.mark.parametrize("name", ["ledger", "attach", "external", *(name for name in PLAYS if not name.startswith("wide"))])
def test_nothing_is_wrong_with_our_own(name: str) -> None:
    """Worlds as they are, and parties alone at the limits of production."""
    stage = PLAYS[name].stage() if name in PLAYS else staged(find(name).build({}))
    walking = sessions(stage, 7, Coverage(), lambda: False, most=120)

    assert [str(walked.wrong) for _, walked in (next(walking) for _ in range(12)) if walked.wrong] == []


@pytest.mark.parametrize("name", [name for name in PLAYS if name.startswith("wide")])
def test_nothing_is_wrong_with_sessions_that_have_more_of_everything(name: str) -> None:
    """Beyond the bounds of every world that is searched whole."""
    walking = sessions(PLAYS[name].stage(), 7, Coverage(), lambda: False, most=120)

    assert [str(walked.wrong) for _, walked in (next(walking) for _ in range(12)) if walked.wrong] == []


def test_a_hundred_walks_of_one_seed_are_the_same() -> None:
    """Whatever the tables have learnt in between."""
    stage = staged(find("external/tasks").build({}))
    traces = {walk(stage, 5, Coverage(), most=40, traced=True).trace for _ in range(100)}

    assert len(traces) == 1
    assert len(next(iter(traces))) > 10


def test_a_token_is_the_program_it_was_made_of() -> None:
    """And of no other world; one that was cut or made up says so."""
    stage = staged(fare())
    found = first_wrong(stage, 1, 50)
    assert found is not None
    text = programs.token(stage, found.moves)

    assert programs.program(stage, text) == found.moves
    assert str(played(stage, programs.program(stage, text)).wrong) == str(found.wrong)
    with pytest.raises(BadToken, match="another world"):
        programs.program(staged(long_fare.build()), text)
    for bad in (text[:-1], f"{text}A", "core.", "runtime.AAAA", "core.!"):
        with pytest.raises(BadToken):
            programs.program(stage, bad)


def test_a_failure_tells_the_example_the_checkers_trace_and_hypothesis_own() -> None:
    """All three, and a token that plays it again."""
    target = Cores((Play("fare", fare),))
    results = target.fuzz(seed=1, until=lambda: False, coverage=target.coverage())
    failure = next(result.failure for result in results if result.failure is not None)

    assert "the checker's shortest trace to it, 4 steps:" in failure.told
    assert "state.slot_pay(choice=0)" in failure.told
    assert "network  duplicates coin" in failure.told
    again = target.replay(failure.token, coverage=target.coverage())
    assert again.failure is not None
    assert again.failure.property == "ONCE"


def test_the_bounds_of_a_world_can_be_chosen() -> None:
    """Beyond those that it is checked at."""
    stage = staged(long_fare.build(COINS=40))
    found = first_wrong(stage, 1, 5)

    assert found is not None
    assert len(shortened(stage, found.moves, "KEPT")) == 40
