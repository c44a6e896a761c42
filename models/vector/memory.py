"""Memory: how much there is, how the C allocator is told to keep what is freed, and arrays that grow where they are."""

from __future__ import annotations

import ctypes
import errno
import mmap
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TUNED = False
_NORESERVE = 0x4000
"""MAP_NORESERVE on Linux; the ``mmap`` module does not name it in every supported version."""
FALLBACK_BYTES = 4 << 30
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
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
    """Memory that this process can still take: the least of what the machine, its control groups and RLIMIT_AS leave."""
    return max(0, min(_machine_bytes(), _cgroup_bytes(), _address_bytes()))


def _machine_bytes() -> int:
    """Without swapping, by the system's own estimate."""
    try:
        for line in (PROC / "meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return FALLBACK_BYTES
    return FALLBACK_BYTES


def _cgroup_bytes() -> int:
    """What this process's control group and those above it leave, in version 2 and in version 1. Page cache in use counts as free."""
    least = sys.maxsize
    try:
        lines = (PROC / "self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return least
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = CGROUPS / "memory" if controllers else CGROUPS
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        own = top / path.lstrip("/")
        # In a container the path may be the host's, and its group be mounted at the top.
        for group in (own, *own.parents):
            if group.is_relative_to(top):
                limit, used = (_number(group / name) for name in names)
                if limit is not None:
                    least = min(least, limit - max(0, (used or 0) - _file_pages(group)))
    return least


def _number(path: Path) -> int | None:
    """The number in a file; ``None`` if there is none (``max``, or no such file)."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _file_pages(group: Path) -> int:
    """Bytes of a control group that the system takes back at need."""
    try:
        found = dict(line.split(None, 1) for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        return int(found.get("total_inactive_file", found.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0


def _address_bytes() -> int:
    """What RLIMIT_AS leaves."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return sys.maxsize
    limit: int = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit in (resource.RLIM_INFINITY, -1):
        return sys.maxsize
    try:
        pages = int((PROC / "self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        pages = 0
    return limit - pages * mmap.PAGESIZE


def exhausted(error: BaseException) -> bool:
    """Whether this says that the system gave no more memory, or no more processes."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in (errno.ENOMEM, errno.EAGAIN))


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
        with suppress(OSError):  # a kernel without them
            area.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(area, np.uint64)
    return np.zeros(slots, np.uint64)
