"""Mutants: what the properties would not notice if it were gone.

``machines`` makes them, ``patches`` holds the named ones, ``derived`` puts one into a world that was explored already, and
``campaign`` judges them all.
"""

from __future__ import annotations

from troth.models.mutants.campaign import CORE, Fate, Judged, Prepared, campaign, in_stages, judged, mutated, of_worlds, prepared
from troth.models.mutants.defects import DEFECTS
from troth.models.mutants.lapses import LAPSES
from troth.models.mutants.machines import Mutant, filled, mutants
from troth.models.mutants.patches import Patch, added, altered, register, registered, without

__all__ = [
    "CORE",
    "DEFECTS",
    "LAPSES",
    "Fate",
    "Judged",
    "Mutant",
    "Patch",
    "Prepared",
    "added",
    "altered",
    "campaign",
    "filled",
    "in_stages",
    "judged",
    "mutants",
    "mutated",
    "of_worlds",
    "prepared",
    "register",
    "registered",
    "without",
]
