"""What a walk finds."""

from __future__ import annotations

from troth.testing.live.target import Live
from troth.testing.targets import Failure

BUDGET = 30_000
"""Steps: what a standard walk of a minute takes at the least. Most faults are found within a few hundred."""


def first_failure(seed: int = 0) -> Failure:
    """The first failure of a walk. There must be one within the budget."""
    target = Live()
    steps = 0
    for found in target.fuzz(seed=seed, until=lambda: False, coverage=target.coverage()):
        steps += found.steps
        assert steps <= BUDGET, f"nothing was found in {BUDGET} steps"
        if found.failure is not None:
            return found.failure
    raise AssertionError("a walk goes on for ever")
