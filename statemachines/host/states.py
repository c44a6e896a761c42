"""The states of a host's session: what its sibling machines must know of it."""

from __future__ import annotations

from enum import Enum


class HostSessionState(Enum):
    """Where the host is with its trainer."""

    IDLE = "idle"
    LAUNCHING = "launching"
    GREETED = "greeted"
    OPENING = "opening"
    READY = "ready"
    DRAINING = "draining"
    ABORTING = "aborting"
    CLOSING = "closing"
    CLOSED = "closed"
