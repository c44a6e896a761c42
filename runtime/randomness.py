"""Random bytes: ids, tokens and nonces, and beside time all that would make two runs of one program differ.

Rule 1.  Whoever needs random bytes asks here, and nowhere else.
Rule 2.  They come from the system, unless a test says otherwise for what it runs itself: the source belongs to a context, never to the
         process.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeAlias

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Gives that many bytes."""

RANDOM_SOURCE: ContextVar[RandomBytes] = ContextVar("troth_random_bytes", default=secrets.token_bytes)
"""Where they come from. What anything else but the default gives is no secret."""


def random_bytes(nbytes: int) -> bytes:
    """Bytes that nobody can guess."""
    return RANDOM_SOURCE.get()(nbytes)
