"""Random bytes: ids, tokens and nonces, and beside time all that would make two runs of one program differ.

Rule 1.  Whoever needs random bytes asks here, and nowhere else.
Rule 2.  They come from the system, unless a test says otherwise for what it runs itself: the source belongs to a context, never to the
         process.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Gives that many bytes."""

_source: ContextVar[RandomBytes] = ContextVar("troth_random_bytes", default=secrets.token_bytes)


def random_bytes(nbytes: int) -> bytes:
    """Bytes that nobody can guess."""
    return _source.get()(nbytes)


@contextmanager
def random_bytes_from(source: RandomBytes) -> Iterator[None]:
    """Within the block, and in the tasks that are started in it, random bytes come from ``source``. For tests: what comes from it is no
    secret."""
    before = _source.set(source)
    try:
        yield
    finally:
        _source.reset(before)
