"""Every property that is checked in worlds is broken by a mutant, in the world that the table of witnesses names.

That the worlds hold without it is for ``test_standard_worlds`` to say. Properties that no world checks have tests of their own, in
``tests/promises``.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from troth import cli
from troth.cli.finding import find
from troth.models import Verdict
from troth.models.errors import WorldError
from troth.models.mutants import LAPSES, mutated
from troth.models.mutants.patches import unbounded
from troth.models.mutants.witnesses import WITNESSES, mutant_named
from troth.models.replaying import violated_by
from troth.models.tokens import replay, token
from troth.models.worlds import STANDARD
from troth.spec.errors import BadRow
from troth.spec.properties import PROPERTIES, By
from troth.statemachines import PARTIES

DOCS = Path(__file__).resolve().parents[3] / "docs"
spec = importlib.util.spec_from_file_location("troth_docs_witnesses", DOCS / "witnesses.py")
assert spec is not None
assert spec.loader is not None
pages: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)

CHECKED = [id_ for id_, found in PROPERTIES.items() if By.WORLDS in found.by]
DEPTHS = pages.depths()
QUICK_S = 6


def quick(id_: str) -> bool:
    """Whether the search for its witness is for every run of the tests. One that was never measured is."""
    return bool(DEPTHS.get(id_, {"seconds": 0})["seconds"] <= QUICK_S)


@pytest.mark.parametrize("id_", [pytest.param(id_, marks=[] if quick(id_) else [pytest.mark.slow]) for id_ in CHECKED])
def test_a_property_is_broken_by_its_witness(id_: str) -> None:
    """In as many steps as the page says; and the run breaks it again, taken step by step in a world that was made anew."""
    witness = WITNESSES[id_]
    found = pages.searched(id_)

    assert found.verdict is Verdict.VIOLATED
    assert len(found.trace.steps) == DEPTHS[id_]["depth"]
    anew = mutated(find(witness.world).build({}), mutant_named(witness.mutant))
    again = replay(anew.system(), token(found.trace))
    assert [one.action.name for one in again.steps] == [one.action.name for one in found.trace.steps]
    assert violated_by(again, next(claim for claim in anew.properties if claim.id == id_))


def test_there_is_a_witness_against_every_property_that_is_checked_in_worlds() -> None:
    """And against no other; in a standard world."""
    assert list(WITNESSES) == CHECKED
    assert {witness.world for witness in WITNESSES.values()} <= set(STANDARD)


def test_the_page_is_current() -> None:
    """Run ``python docs/witnesses.py`` after changing a witness or a statement, ``... measure P01`` after changing what it runs in."""
    assert list(DEPTHS) == list(WITNESSES)
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page(DEPTHS)


def test_every_lapse_is_a_witness_and_says_which_rows_it_is_in() -> None:
    """By the property that it is named after; it changes the machines that it says, and no other."""
    for patch in LAPSES:
        assert WITNESSES[patch.name.partition("-")[0]].mutant == patch.name
        assert " row" in (patch.change.__doc__ or "") or " Rule" in (patch.change.__doc__ or "")
        party = PARTIES[patch.party]
        made = patch.mutant().of(party)
        assert {one.name for one, other in zip(party.machines, made.machines, strict=True) if one is not other} == set(patch.machines)


def test_a_witness_is_shown_by_the_command_that_the_page_gives(capsys: pytest.CaptureFixture[str]) -> None:
    """With its run."""
    code = cli.run(["check", "ledger/callers", "--mutant", "P04-again", "--property", "P04"])
    said = capsys.readouterr().out

    assert code == 1, said
    assert "P04  VIOLATED" in said
    assert re.search(r"ledger P04\b.*: \[1\] delivered → ", said), "the row that gives a task out again is not in the run"


@pytest.mark.parametrize("name", ["P99-nothing", "host.session:H54:sideways", "nobody.session:H54:drop"])
def test_a_mutant_that_there_is_not_is_named(name: str) -> None:
    """As an error."""
    with pytest.raises(WorldError, match=f"no party of the protocol has a mutant '{name}'"):
        mutant_named(name)


def test_only_a_family_has_a_limit_to_lift() -> None:
    """A patch that lifts another one is mistaken."""
    with pytest.raises(BadRow, match="session is no family, so it has no limit"):
        unbounded(PARTIES["host"].by_name["session"])
