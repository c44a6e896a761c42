"""Short plays on the live stage, for rows that walks come to seldom or never.

Each names the rows that it is for, and must fire them: on the real runtime, before the same judge, with everything compared.
"""

from tests.testing.live.scenarios import backends, ending, forged, joining, misuse, results, silence, tasks
from tests.testing.live.scenarios.playing import SCENARIOS, Scenario, Unplayed, played

__all__ = [
    "SCENARIOS",
    "Scenario",
    "Unplayed",
    "backends",
    "ending",
    "forged",
    "joining",
    "misuse",
    "played",
    "results",
    "silence",
    "tasks",
]
