"""Running commands for a benchmark: wall time of the whole process, and memory of all its processes together."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

POLL_S = 0.005
"""Between two looks at the memory of a tree of processes."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@frozen
class Run:
    """One run of a command.

    ``cpu_s`` is the processor time of all its processes, ``peak_bytes`` the largest resident memory of one process, or that of all
    together, shared pages once, if it was polled.
    """

    seconds: float
    cpu_s: float
    peak_bytes: int
    stdout: str
    stderr: str
    code: int


def run(command: Sequence[str], cwd: Path, *, polled: bool = False, env: Mapping[str, str] | None = None) -> Run:
    """Run ``command``; ``polled`` looks at its whole tree of processes while it runs, which is for memory and not for time."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(env or {})})
        peak = _polled(process) if polled else 0
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    scale = 1 if platform.system() == "Darwin" else 1024
    # The kernel's figure is never less than what the parent had at the fork: good enough for large processes, which are not polled.
    return Run(seconds, usage.ru_utime + usage.ru_stime, peak if polled else usage.ru_maxrss * scale, *said, process.returncode)


def _polled(process: subprocess.Popen[bytes]) -> int:
    """The largest sum of the memory of a process and its descendants. A page that several share counts once (proportional set size)."""
    peak = 0
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        peak = max(peak, sum(_resident(pid) for pid in _tree(process.pid)))
        time.sleep(POLL_S)
    return peak


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
    return found


def _resident(pid: int) -> int:
    """The process's share of the memory that it has resident; all of it where the kernel keeps no shares."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass  # it ended meanwhile, or this kernel has no such file
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (FileNotFoundError, ProcessLookupError):
        return 0


def commit(folder: Path) -> str:
    """The commit that ``folder`` is checked out at, with a plus where files differ from it; empty outside a repository."""
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        dirty = subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=folder, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head}+" if dirty.strip() else head


def cpus() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def row(name: str, **values: Any) -> dict[str, Any]:
    """One row of a benchmark's output. ``ok`` is ``None`` where nothing could be measured."""
    fixed: dict[str, Any] = {
        "name": name,
        "n": 0,
        "median_s": None,
        "min_s": None,
        "peak_mb": None,
        "ratio": None,
        "bound": None,
        "ok": True,
    }
    return fixed | values


def report(bench: str, folder: Path, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> int:
    """Print the rows; the exit code says whether all bounds were kept."""
    if as_json:
        print(json.dumps({"bench": bench, "commit": commit(folder), "cpus": cpus(), "rows": list(rows)}))
    missed = [r["name"] for r in rows if r["ok"] is False]
    if missed:
        print(f"{bench}: bound missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0
