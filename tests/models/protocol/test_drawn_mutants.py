"""Mutants of the protocol: a hundred that a seed draws in every run, all of them at night, and what the docs say of them.

The whole campaign says which world killed each mutant (``docs/mutants.json``). So a drawn one is judged where it died: it must die there
again, and by the same sort of property. One that was found equivalent must be it in every world that this run explores anyway.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from troth import cli
from troth.cli.finding import find
from troth.models import Limits, Verdict, check
from troth.models.errors import ComponentFailed
from troth.models.mutants import CORE, Fate, Mutant, Prepared, judged, mutated, prepared
from troth.models.worlds import STANDARD
from troth.models.worlds.sizes import about
from troth.spec.properties import Role

DOCS = Path(__file__).resolve().parents[3] / "docs"
spec = importlib.util.spec_from_file_location("troth_docs_mutants", DOCS / "mutants.py")
assert spec is not None
assert spec.loader is not None
pages: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)

SEED = int(os.environ.get("TROTH_SEED", "20260829"))
"""Another seed draws others: ``TROTH_SEED=7 pytest tests/models/protocol/test_drawn_mutants.py``."""
DRAWN = 100
SMALL = 5_000
"""Worlds of up to so many states are explored whole; in a larger one only as far as the mutant's end."""

ONE = Limits(workers=1)


def explored(name: str) -> Prepared:
    """A world, searched once."""
    world = find(name).build({})
    return prepared(world, check(world, limits=ONE))


def dies(mutant: Mutant, of: Any, worlds: dict[str, Prepared]) -> bool:
    """Whether a property of the role that killed it kills the mutant again, in the world that did."""
    if of.world in worlds:
        found = judged(mutant, [worlds[of.world]], ONE)
        return found.fate is Fate.KILLED and found.role in (of.role, Role.PROMISE)
    world = find(of.world).build({})
    claims = [claim.id for claim in world.properties if claim.role is of.role]
    limits = Limits(workers=1, stop_at_violation=True)
    try:
        return check(mutated(world, mutant), properties=claims, limits=limits).verdict is Verdict.VIOLATED
    except ComponentFailed:
        return bool(of.property == CORE)


def test_none_of_a_hundred_mutants_survives() -> None:
    """Each dies where the campaign says that it does, or changes nothing."""
    every, known = pages.every(), pages.fates(pages.told())
    drawn = random.Random(SEED).sample(sorted(name for name in every if ":" in name), DRAWN)
    names = sorted({known[name].world for name in drawn if known[name].role is not None and about(known[name].world) <= SMALL})
    worlds = {name: explored(name) for name in names}
    left = [name for name in drawn if known[name].role is not None and not dies(every[name], known[name], worlds)]
    fates = {name: judged(every[name], list(worlds.values()), ONE).fate for name in drawn if known[name].role is None}

    assert left == []
    assert {name: fate for name, fate in fates.items() if fate is not Fate.EQUIVALENT} == {}


def test_the_campaign_is_of_the_mutants_that_there_are() -> None:
    """Run the campaign again after a change of a table, as the page of mutants says, and ``python docs/mutants.py take FILE``."""
    known = pages.fates(pages.told())

    assert set(known) == set(pages.every())
    assert {fate.world for fate in known.values() if fate.role is not None} <= set(STANDARD)


def test_most_mutants_are_killed_by_a_promise() -> None:
    """Four of five, of those that are killed; and few change nothing."""
    fates = pages.fates(pages.told()).values()
    roles = ["equivalent" if fate.role is None else CORE if fate.property == CORE else fate.role.value for fate in fates]
    killed = len(roles) - roles.count("equivalent")

    assert roles.count("promise") >= 0.8 * killed
    assert roles.count("equivalent") < 0.1 * len(roles)


def test_the_page_of_mutants_is_current() -> None:
    """Run ``python docs/mutants.py``."""
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page(pages.told())


@pytest.mark.slow
def test_no_mutant_survives_the_standard_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    """The whole campaign: nothing survives, nothing is unknown, and each mutant dies as the page says."""
    code = cli.run(["check", "--mutants", "--json"])
    said = json.loads(capsys.readouterr().out)
    now, known = pages.fates(pages.taken(said)), pages.fates(pages.told())

    assert code == 0
    assert (said["survived"], said["unknown"]) == ([], [])
    worse = {name: (fate, known[name]) for name, fate in now.items() if fate.role not in (known[name].role, Role.PROMISE)}
    assert worse == {}
