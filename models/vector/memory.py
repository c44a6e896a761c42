"""Memory: how much there is, how the C allocator is told to keep what is freed, and arrays that grow where they are."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TUNED = False
_NORESERVE = 0x4000
"""MAP_NORESERVE on Linux; the ``mmap`` module does not name it in every supported version."""
FALLBACK_BYTES = 4 << 30
SHARE = 0.8
"""Of the memory that is available when a search starts, the part that it may use."""


def tune_allocator() -> None:
    """Let glibc keep freed temporaries: returning them to the system at every chunk costs a quarter of the time. Harmless elsewhere."""
    global _TUNED  # noqa: PLW0603 - the allocator is one per process
    if _TUNED or not sys.platform.startswith("linux"):
        return
    _TUNED = True
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library: its own policy is as good as any
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3
    mallopt(mmap_threshold, 1 << 30)
    mallopt(trim_threshold, 2**31 - 1)
    mallopt(top_pad, 4 << 20)


def available_bytes() -> int:
    """Memory that can be used without swapping, by the system's own estimate."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return FALLBACK_BYTES
    return FALLBACK_BYTES


def shared(slots: int) -> NDArray[np.uint64]:
    """Zeros that processes forked later see and write in common; only pages that are written cost memory."""
    size = slots * 8
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NORESERVE
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint64)


def reserved(slots: int) -> NDArray[np.uint64]:
    """Zeros for ``slots`` numbers, of which only the pages that are written cost memory."""
    size = slots * 8
    if sys.platform.startswith("linux"):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        area = mmap.mmap(-1, size, flags=flags)
        # Random access to a large table is bound by page walks; 2 MiB pages halve that.
        area.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(area, np.uint64)
    return np.zeros(slots, np.uint64)
