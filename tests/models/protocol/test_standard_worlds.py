"""The standard worlds are as large as the page says, hold, contain what they are about, and fit their bounds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from troth.cli.finding import find
from troth.models import Limits, Verdict, check
from troth.models.worlds import STANDARD
from troth.models.worlds.protocol.reach import NO_COUNTERPART, RACES
from troth.spec.properties import PROPERTIES, By

DOCS = Path(__file__).resolve().parents[3] / "docs"
spec = importlib.util.spec_from_file_location("troth_docs_worlds", DOCS / "worlds.py")
assert spec is not None
assert spec.loader is not None
pages: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)

COUNTS = pages.counts()["worlds"]
LOCAL_STATES_LIMIT = 100_000
QUICK_STATES, QUICK_EDGES = 120_000, 20_000
"""A world with more of either is explored by the slow tests only, as those of one party are, whose steps are many and dear."""


def is_slow(name: str) -> bool:
    """Whether a world takes more than a few seconds."""
    count = COUNTS.get(name, {"states": 0, "edges": 0})
    return bool(count["states"] > QUICK_STATES or (name.startswith("ledger") and count["edges"] > QUICK_EDGES))


def sized(names: tuple[str, ...]) -> list[Any]:
    """Each name, the large worlds marked slow."""
    return [pytest.param(name, marks=[pytest.mark.slow] if is_slow(name) else []) for name in names]


def claims(name: str) -> list[str]:
    """The ids of what a world claims."""
    return [claim.id for claim in find(name).build({}).properties]


@pytest.mark.parametrize("name", sized(STANDARD))
def test_a_world_holds_and_is_as_large_as_the_page_says(name: str) -> None:
    """Run ``python docs/worlds.py measure WORLD`` after changing a machine or a world."""
    result = check(find(name).build({}), limits=Limits(workers=1))

    assert result.verdict is Verdict.HOLDS, [p.property.id for p in result.properties if p.verdict is not Verdict.HOLDS]
    assert result.vacuous == ()
    assert result.truncated == 0
    assert max(one.local_states for one in result.components.values()) <= LOCAL_STATES_LIMIT
    assert (result.states, result.edges, result.depth) == tuple(COUNTS[name][part] for part in ("states", "edges", "depth"))


def test_the_page_is_current() -> None:
    """Run ``python docs/worlds.py`` after changing a world's declaration or the catalogue."""
    assert list(COUNTS) == list(STANDARD)
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page(pages.counts())


def test_every_race_is_reached_somewhere_or_says_why_not() -> None:
    """R1 to R30; and a race that has no counterpart is not claimed."""
    reached = {id_ for name in STANDARD for id_ in claims(name) if id_[0] == "R" and id_[1:].isdigit()}

    assert reached | {f"R{int(id_[1:]):02}" for id_ in NO_COUNTERPART} >= {f"R{n:02}" for n in range(1, 31)}
    assert reached & {f"R{int(id_[1:]):02}" for id_ in NO_COUNTERPART} == set()
    assert set(RACES) & {f"R{int(id_[1:]):02}" for id_ in NO_COUNTERPART} == set()


def test_every_property_for_worlds_is_claimed_in_one() -> None:
    """And those that are for other means are not claimed."""
    claimed = {id_.split()[0] for name in STANDARD for id_ in claims(name)}
    meant = {id_ for id_, found in PROPERTIES.items() if By.WORLDS in found.by}

    assert meant - claimed == set()
    assert claimed & (set(PROPERTIES) - meant) == set()


def test_a_claim_says_what_the_catalogue_says() -> None:
    """One statement an id, in every world."""
    for name in STANDARD:
        for claim in find(name).build({}).properties:
            if claim.id in PROPERTIES:
                assert claim.statement == PROPERTIES[claim.id].statement, (name, claim.id)
