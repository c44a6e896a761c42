"""Every defect of the reference, brought back by its patch, is found in a standard world; and the tables without it are not to blame."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from troth import cli
from troth.cli.finding import find
from troth.models import Limits, Verdict, check
from troth.models.mutants import DEFECTS, Patch, mutated
from troth.models.mutants.derived import declared
from troth.models.worlds import STANDARD
from troth.models.worlds.sizes import ABOUT, smallest_first
from troth.statemachines import PARTIES

SHOWN_BY_TABLES = [*range(1, 19), 20, 22, 23]
"""The numbers whose decision is shown by a mutant."""

STEPS = {
    "D1": 7, "D2": 16, "D3": 20, "D4": 7, "D5": 9, "D6": 19, "D7": 15, "D8": 23, "D9": 10, "D10": 16, "D11": 9, "D12": 12, "D13": 20,
    "D14": 17, "D15": 19, "D16": 5, "D17": 6, "D18": 19, "D20": 6, "D22": 12, "D23": 11,
}  # fmt: skip
"""How many steps the shortest run to it has, in the world that the patch names."""


FIRST = {
    "D1": ("supervisor/tasks", "P39"), "D2": ("ledger/relay", "P34"), "D3": ("ledger/relay", "P85"), "D4": ("session/attached", "P95"),
    "D5": ("session/host_strict", "P75"), "D6": ("ledger/relay", "P09"), "D7": ("answers/orphan", "P96"), "D8": ("answers", "P10"),
    "D9": ("ledger", "P05"), "D10": ("ledger/callers", "P84"), "D11": ("ledger/relay", "P97"), "D12": ("ledger/relay", "P97"),
    "D13": ("ledger/relay", "P81"), "D14": ("session/one_shot", "P40"), "D15": ("session/one_shot", "P12"), "D16": ("ledger", "P60"),
    "D17": ("answers/backend", "P19"), "D18": ("transfer/download", "P81"), "D20": ("session/host_attached", "P98"),
    "D22": ("session/attached", "P25"), "D23": ("ledger/relay", "P82"),
}  # fmt: skip
"""In which world a search finds each, and by which promise."""
QUICK = ("D4", "D5", "D11", "D14", "D17", "D18", "D20")
"""Those that are found at once."""


def test_every_defect_that_a_table_can_show_has_a_patch_of_its_number() -> None:
    """And each is told: what the reference does, and which property minds."""
    assert [patch.name for patch in DEFECTS] == [f"D{number}" for number in SHOWN_BY_TABLES]
    for patch in DEFECTS:
        assert patch.change.__doc__
        assert patch.property in patch.change.__doc__
        assert patch.world in STANDARD


@pytest.mark.parametrize("patch", DEFECTS, ids=lambda patch: patch.name)
def test_the_defect_is_found(patch: Patch) -> None:
    """In the world that its patch names, which claims the property of the defect, after as many steps as are pinned here."""
    world = mutated(find(patch.world).build({}), patch.mutant())
    result = check(world, properties=[patch.property], limits=Limits(stop_at_violation=True, workers=1))
    (claim,) = result.properties

    assert claim.verdict is Verdict.VIOLATED
    assert claim.trace is not None
    assert len(claim.trace.steps) == STEPS[patch.name]


def test_a_patch_changes_what_it_says_and_nothing_else() -> None:
    """The machines that it names, of the party that it names."""
    for patch in DEFECTS:
        party = PARTIES[patch.party]
        made = patch.mutant().of(party)
        changed = {one.name for one, other in zip(party.machines, made.machines, strict=True) if one is not other}
        assert changed == set(patch.machines)


@cache
def parties(world: str) -> frozenset[str]:
    """The declared parties that a world holds."""
    return frozenset(party.name for party in declared(find(world).build({})).values())


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in FIRST])
def test_a_search_finds_the_defect_in_the_smallest_world_that_minds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By a promise; every smaller world that holds the machine was asked before, and promises all of them."""
    code = cli.run(["check", "--mutant", name, "--workers", "1", "--json"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    *before, last = told["worlds"]
    violated = {claim["id"]: claim["trace"]["length"] for claim in last["properties"] if claim["verdict"] == "violated"}
    world, promise = FIRST[name]
    holding = {patch.name: patch.party for patch in DEFECTS}

    assert (code, told["verdict"], last["world"]) == (1, "violated", world)
    assert promise in violated
    assert {claim["role"] for world in told["worlds"] for claim in world["properties"]} == {"promise"}
    assert len(set(violated.values())) == 1, "a search stops at the first"
    assert [world["verdict"] for world in before] == ["holds"] * len(before)
    smaller = [one for one in smallest_first(STANDARD) if holding[name] in parties(one)]
    assert [world["world"] for world in told["worlds"]] == smaller[: len(told["worlds"])]


def test_the_search_tells_how_an_old_task_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    """Offered, lost, passed by a newer one, offered again by a late copy, and taken by the user."""
    code = cli.run(["check", "--mutant", "D9", "--workers", "1"])
    said = capsys.readouterr().out
    story = said[said.index("ledger   with D9") :]

    assert code == 1, said
    assert "P05  VIOLATED   a task that was passed, fenced or evicted is never given to the user" in story
    assert "UNKNOWN" not in said
    steps = ["payload 1/1 is lost", "[2] absent → reserved", "TASK_READY 1/1", "[1] absent → reserved", "[1] handed → delivered"]
    place = 0
    for step in steps:
        place = story.index(step, place)  # each comes after the one before
    assert "replay: troth check ledger --mutant D9 --property P05" in story


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mutant", "D99"], "no standard world has a mutant 'D99'"),
        (["--mutant", "D9", "--property", "P999"], "no standard world that holds the mutant claims P999"),
        (["--mutant", "D9", "--bound", "loss=2"], "--bound needs a WORLD"),
    ],
)
def test_a_search_that_cannot_begin_says_why(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do about it."""
    assert cli.run(["check", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_order_of_the_search_is_of_worlds_that_there_are() -> None:
    """One that is not in it is searched last."""
    assert set(ABOUT) <= set(STANDARD)
    assert smallest_first(["races", "unheard of", "process"]) == ["process", "races", "unheard of"]
