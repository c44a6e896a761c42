"""Closed worlds and the checker that explores them.

Everything a reader needs to check a protocol of their own is importable from here; see ``world`` for how one is declared.
"""

from __future__ import annotations

from troth.models.bounds import Blueprint, Bound, Bounds, blueprint
from troth.models.check import CheckResult, PropertyResult, Verdict, check
from troth.models.closing import Asked, Give
from troth.models.exploration import Limits, Progress
from troth.models.expressions import Expr, any_of, every
from troth.models.handles import Handle, LinkHandle, PartyHandle, jointly
from troth.models.properties import connects, deliver, restarts, ticks, timers
from troth.models.world import World, strong

__all__ = [
    "Asked",
    "Blueprint",
    "Bound",
    "Bounds",
    "CheckResult",
    "Expr",
    "Give",
    "Handle",
    "Limits",
    "LinkHandle",
    "PartyHandle",
    "Progress",
    "PropertyResult",
    "Verdict",
    "World",
    "any_of",
    "blueprint",
    "check",
    "connects",
    "deliver",
    "every",
    "jointly",
    "restarts",
    "strong",
    "ticks",
    "timers",
]
