"""Every defect of the reference, brought back by its patch, is found in a standard world; and the tables without it are not to blame."""

from __future__ import annotations

import json
from typing import Any

import pytest

from troth import cli
from troth.cli.finding import find
from troth.models import Limits, Verdict, check
from troth.models.mutants import DEFECTS, Patch, mutated
from troth.models.worlds import STANDARD
from troth.models.worlds.sizes import ABOUT, smallest_first
from troth.statemachines import PARTIES

SHOWN_BY_TABLES = [*range(1, 19), 20, 22, 23]
"""The numbers whose decision is shown by a mutant."""

STEPS = {
    "D1": 7, "D2": 16, "D3": 20, "D4": 7, "D5": 9, "D6": 19, "D7": 15, "D8": 23, "D9": 13, "D10": 16, "D11": 9, "D12": 12, "D13": 20,
    "D14": 17, "D15": 19, "D16": 5, "D17": 2, "D18": 2, "D20": 6, "D22": 12, "D23": 11,
}  # fmt: skip
"""How many steps the shortest run to it has, in the world that the patch names."""


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


def test_a_defect_is_found_without_naming_a_world(capsys: pytest.CaptureFixture[str]) -> None:
    """The command of the findings: it searches, prints the run, and says by its exit code that something is wrong."""
    code = cli.run(["check", "--mutant", "D11", "--workers", "1"])
    said = capsys.readouterr().out

    assert code == 1, said
    assert "external/patient   with D11" in said
    assert "P97  VIOLATED" in said
    assert "delivery D23: offering → idle" in said


def test_the_search_says_what_it_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON: the worlds that were asked, the last of which is the one that shows it."""
    code = cli.run(["check", "--mutant", "D5", "--workers", "1", "--json"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)

    assert code == 1
    assert told["verdict"] == "violated"
    assert [world["world"] for world in told["worlds"]] == ["lease"]
    assert told["worlds"][0]["properties"][0]["id"] == "P75"


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
