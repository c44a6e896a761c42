"""How often a transfer says that bytes moved: at its first bytes, then at most four times a second, and once more at its end."""

from __future__ import annotations

import math

import trio

PROGRESS_S = 0.25
"""Far below every limit on silence, and far above what a message to a core costs."""


class Pace:
    """What one transfer has said so far, on trio's clock."""

    __slots__ = ("_said_at", "unsaid")

    def __init__(self) -> None:
        self._said_at = -math.inf
        self.unsaid = False
        """Whether bytes moved that were not spoken of."""

    def moved(self) -> bool:
        """Bytes moved: whether to say so."""
        now = trio.current_time()
        self.unsaid = now - self._said_at < PROGRESS_S
        if not self.unsaid:
            self._said_at = now
        return not self.unsaid
