"""``troth.testing``: tests that are generated from a declaration or a world, on the cores and on the live runtime.

``from troth.testing import ...`` imports what is asked for and nothing else: neither Hypothesis nor trio is loaded before a name that
needs it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troth.testing.cores import Cores, Play
    from troth.testing.coverage import Allowed, Coverage
    from troth.testing.live.machine import live_machine
    from troth.testing.machine import Violated, state_machine
    from troth.testing.single import alone
    from troth.testing.targets import BadToken, Failure, Fuzz, SessionResult, Target

__all__ = [
    "Allowed",
    "BadToken",
    "Cores",
    "Coverage",
    "Failure",
    "Fuzz",
    "Play",
    "SessionResult",
    "Target",
    "Violated",
    "alone",
    "live_machine",
    "state_machine",
]

_HOMES = {
    "Allowed": "coverage",
    "BadToken": "targets",
    "Cores": "cores",
    "Coverage": "coverage",
    "Failure": "targets",
    "Fuzz": "targets",
    "Play": "cores",
    "SessionResult": "targets",
    "Target": "targets",
    "Violated": "machine",
    "alone": "single",
    "live_machine": "live.machine",
    "state_machine": "machine",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
