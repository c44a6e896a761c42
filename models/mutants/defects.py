"""The reference's defects, brought back into our own tables: a named patch for each one that a table can show.

Each is as faithful as a table of ours allows. Where the reference's mistake has no place to stand in, because what made it possible
is not there any more, the patch makes the mistake where ours would be made, and says so. ``docs/findings.md`` tells their stories.
"""

from __future__ import annotations

from troth.models.mutants.defects_of_hosts import HOSTS
from troth.models.mutants.defects_of_trainers import TRAINERS
from troth.models.mutants.patches import Patch, register

DEFECTS: tuple[Patch, ...] = tuple(sorted((*HOSTS, *TRAINERS), key=lambda patch: int(patch.name.removeprefix("D"))))
"""All of them, by number."""

for _patch in DEFECTS:
    register(_patch)
