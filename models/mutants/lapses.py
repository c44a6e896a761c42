"""Lapses: for a property that no generic mutant breaks, or none that a reader would understand, the mistake that it is there to catch.

Each is named after its property, and changes rows, guards or emissions as somebody might who had not thought of it. ``witnesses`` says
where each one shows.
"""

from __future__ import annotations

from troth.models.mutants.lapses_of_hosts import HOSTS
from troth.models.mutants.lapses_of_trainers import TRAINERS
from troth.models.mutants.patches import Patch, register

LAPSES: tuple[Patch, ...] = tuple(sorted((*HOSTS, *TRAINERS), key=lambda patch: patch.name))
"""All of them, by name."""

for _patch in LAPSES:
    register(_patch)
