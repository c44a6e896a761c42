"""A hundred mutants drawn by a seed: most die in small worlds already, and all of them in the standard ones, or change nothing.

The whole campaign, ``troth check --mutants``, is for the night. This is what every run of the tests can afford.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

from troth.cli.finding import find
from troth.models import Limits, check
from troth.models.mutants import Fate, Judged, Prepared, campaign, mutants, prepared
from troth.models.mutants.derived import declared
from troth.models.worlds import STANDARD
from troth.models.worlds.sizes import smallest_first
from troth.statemachines import PARTIES

SEED = int(os.environ.get("TROTH_SEED", "20260829"))
"""Another seed draws others: ``TROTH_SEED=7 pytest tests/models/protocol/test_drawn_mutants.py``."""
DRAWN = 100
QUICK = (
    "supervisor", "supervisor/tasks", "process", "transfer/download", "transfer/sole", "external/patient", "external/returns",
)  # fmt: skip
"""Small worlds that together hold every machine."""


def explored(names: Sequence[str]) -> list[Prepared]:
    """These worlds, each searched once."""
    worlds = [find(name).build({}) for name in names]
    return [prepared(world, check(world, limits=Limits(workers=1))) for world in worlds if declared(world)]


def judged(names: Sequence[str]) -> list[Judged]:
    """The same hundred mutants, judged in these worlds."""
    every = [mutant for party in PARTIES.values() for mutant in mutants(party)]
    return campaign(random.Random(SEED).sample(every, DRAWN), explored(names), Limits(workers=2))


def test_most_of_a_hundred_mutants_die_in_small_worlds() -> None:
    """Or are shown to change nothing there; what is left is for larger worlds to kill."""
    found = judged(QUICK)
    left = [one.name for one in found if one.fate in (Fate.SURVIVED, Fate.UNKNOWN)]
    killed = [one for one in found if one.fate is Fate.KILLED]

    assert len(left) <= DRAWN // 5, left
    assert len(killed) >= DRAWN // 3
    assert all(one.property and one.world for one in killed)


@pytest.mark.slow
def test_none_of_a_hundred_mutants_survives_the_standard_worlds() -> None:
    """In all of them."""
    found = judged(smallest_first(STANDARD))

    assert [one for one in found if one.fate in (Fate.SURVIVED, Fate.UNKNOWN)] == []
