"""Encoding without holding up the event loop: a large tree is read, for its digest, in a thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import trio

from troth.runtime.payloads.arrays import Payload, encode

HEAVY_BYTES = 4 * 1024 * 1024
"""From this size on reading the arrays takes longer than handing them to a thread and back."""
HEAVY_NODES = 2000
"""A tree of so many values is not looked through to the end: it takes a while by itself."""


def heavy(tree: Any) -> bool:
    """Whether encoding takes so long that heartbeats should not wait for it."""
    waiting, nodes, nbytes = [tree], 0, 0
    while waiting:
        value = waiting.pop()
        nodes += 1
        if isinstance(value, np.ndarray):
            nbytes += value.nbytes
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, bytes | str):
            nbytes += len(value)
        if nbytes > HEAVY_BYTES or nodes > HEAVY_NODES:
            return True
    return False


async def encode_aside(tree: Any) -> Payload:
    """``encode``, in a thread if the tree is large. The caller must not write to its arrays meanwhile. Raises ``PayloadRefused``."""
    if heavy(tree):
        return await trio.to_thread.run_sync(encode, tree)
    return encode(tree)
