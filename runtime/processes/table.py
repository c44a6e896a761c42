"""The process table, and signals that reach exactly the process that was looked at.

Only the standard library: the guardian runs without anything else. Linux; elsewhere groups have to do (``groups``).

Rule 1.  A number is not a process. A process is its number and its start time, and is signalled through a pidfd whose start time was
         compared after it was opened: numbers are given away again, pidfds are not.
Rule 2.  A scan is not a photograph: processes come and go while it is taken. What may be concluded from one is said where it is.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

LAUNCH_VARIABLE = "TROTH_LAUNCH_ID"
"""In the environment of everything that a launch consists of: its launch id."""
LINE_VARIABLE = "TROTH_LAUNCH_LINE"
"""Beside it: the launches in which the host of this one runs, from the outermost on, and this one, with commas between them."""
ENVIRONMENT_LIMIT_BYTES = 8 * 1024 * 1024
CHASE_ROUNDS = 200
CHASE_IDLE_ROUNDS = 3
"""Looks at the newest processes in one chase, and how many in a row may catch nobody before it is over."""
NEWEST_BEFORE = 6
NEWEST_AFTER = 3
"""How many numbers before the one that was given away last are looked at for who is new, and how many from it on."""


def _sees_processes() -> bool:
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return os.path.exists("/proc/self/stat")


SEES_PROCESSES = _sees_processes()
"""Whether there is a process table to look at, with pidfds: Linux from 5.3 on, with /proc."""


class Seen(NamedTuple):
    """A process as one look saw it."""

    pid: int
    parent: int
    group: int
    session: int
    start: int
    """Clock ticks from boot to its start."""
    zombie: bool

    @property
    def identity(self) -> tuple[int, int]:
        """What no other process has, as long as this machine runs."""
        return self.pid, self.start


Table = dict[int, Seen]


def look(pid: int) -> Seen | None:
    """One process; ``None`` if there is none of this number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in brackets, and may hold brackets and blanks itself.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return Seen(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), fields[0] in (b"Z", b"X"))


def scan() -> Table:
    """Every process that this one can see."""
    found: Table = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := look(int(name))) is not None:
            found[seen.pid] = seen
    return found


def newest() -> Table:
    """The processes with the numbers that were given away last: far quicker than a scan, and who has only just started is among them."""
    try:
        with open("/proc/loadavg", "rb") as file:
            last = int(file.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return {}
    return {pid: seen for pid in range(last - NEWEST_BEFORE, last + NEWEST_AFTER) if (seen := look(pid)) is not None}


def below(table: Table, roots: Iterable[int]) -> list[Seen]:
    """All descendants of ``roots``, the roots not among them, parents before their children."""
    children: dict[int, list[Seen]] = {}
    for seen in table.values():
        children.setdefault(seen.parent, []).append(seen)
    found: list[Seen] = []
    reached = set(roots)
    front = list(reached)
    while front:
        for child in children.get(front.pop(0), ()):
            if child.pid not in reached:
                reached.add(child.pid)
                found.append(child)
                front.append(child.pid)
    return found


def launches_of(pid: int) -> list[str]:
    """The launch ids in the environment that a process was started with; none if it has none or does not let us see."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = file.read(ENVIRONMENT_LIMIT_BYTES)
    except OSError:
        return []
    wanted = f"{LINE_VARIABLE}=".encode()
    for entry in text.split(b"\0"):
        if entry.startswith(wanted):
            return entry[len(wanted) :].decode("utf-8", "replace").split(",")
    return []


def handle(pid: int) -> list[int]:
    """A pidfd of a child that is not reaped; none if the system has no such thing."""
    return [os.pidfd_open(pid)] if SEES_PROCESSES else []


def send(seen: Seen, *numbers: int) -> bool:
    """Signal exactly the process that was seen; False if it is gone, or is not ours to signal any more."""
    if seen.zombie or not SEES_PROCESSES:
        return False
    try:
        descriptor = os.pidfd_open(seen.pid)
    except OSError:
        return False
    try:
        now = look(seen.pid)
        if now is None or now.identity != seen.identity:
            return False
        for number in numbers:
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)
    return True


def chase(ours: Callable[[Table], Collection[Seen]]) -> set[Seen]:
    """Kill who forks and ends, over and over, and is elsewhere before a scan is over; who was caught. ``ours`` says which of the newest
    processes are to be killed."""
    caught: set[Seen] = set()
    idle = 0
    for _ in range(CHASE_ROUNDS):
        if idle == CHASE_IDLE_ROUNDS:
            break
        idle += 1
        for process in ours(newest()):
            if send(process, signal.SIGKILL):
                caught.add(process)
                idle = 0
    return caught
