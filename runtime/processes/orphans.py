"""What a host does about its launches when their guardian is gone: kill everything that is left of them.

Rule 1.  The leaders are held by pidfds, and the system kills them with the guardian anyway. Their groups are signalled through the same
         pidfds where the system can do that (Linux 6.9).
Rule 2.  Whoever was the guardian's child is now the child of one of the host's ancestors, of the host, or of process 1. Among those, the
         ones with the marker of a launch in their environment are ours, and so are all their descendants. Nothing else is touched: the
         marker alone proves nothing, as it is inherited by whatever a service starts on a trainer's behalf.
Rule 3.  Stop everything, then kill everything, and again until two looks in a row find nothing: without the guardian nobody keeps zombies
         for us, and one look can miss who has just lost its parent.
Rule 4.  Who forks and ends, over and over, is chased among the newest processes, as the guardian would do it (``wards``).

Where there is no process table, the leaders' groups are killed, and that is all that can be done.
"""

from __future__ import annotations

import os
import select
import signal
from typing import NamedTuple

import trio

from troth.runtime.processes import table
from troth.runtime.processes.table import Seen, Table

STOP_ROUNDS = 5
PAUSE_S = 0.02
PIDFD_SIGNAL_PROCESS_GROUP = 1 << 2


class Orphan(NamedTuple):
    """A launch without a guardian."""

    launch_id: str
    pid: int | None
    """Its leader, if it was heard to start."""
    pidfd: int | None


async def kill_orphans(orphans: list[Orphan], limit_s: float) -> set[str]:
    """Kill what is left of these launches; the ids of those of which nothing is left, at the latest after ``limit_s``."""
    if not table.SEES_PROCESSES:
        for orphan in orphans:
            _kill_group(orphan.pid)
        return {orphan.launch_id for orphan in orphans}
    left = {orphan.launch_id for orphan in orphans}
    clean = 0
    with trio.move_on_after(limit_s):
        while clean < 2:
            left = _round(orphans)
            clean = 0 if left else clean + 1
            await trio.sleep(0 if clean else PAUSE_S)
    return {orphan.launch_id for orphan in orphans} - left


def _round(orphans: list[Orphan]) -> set[str]:
    """One round of Rule 3; the launches of which something was still there."""
    left: set[str] = set()
    for orphan in orphans:
        if orphan.pidfd is not None and _signal_leader(orphan.pidfd):
            left.add(orphan.launch_id)
    wanted = {orphan.launch_id for orphan in orphans}
    stopped: dict[tuple[int, int], Seen] = {}
    hosts: set[int] = set()
    for _ in range(STOP_ROUNDS):
        seen = table.scan()
        hosts = hosts_in(seen)
        found = proved(seen, hosts, wanted)
        new = [process for process in found if process.identity not in stopped]
        for process in new:
            table.send(process, signal.SIGSTOP)
            stopped[process.identity] = process
            left.add(found[process])
        if not new:
            break
    for process in stopped.values():
        table.send(process, signal.SIGKILL)
    return left | _chase(hosts, wanted)


def _chase(hosts: set[int], wanted: set[str]) -> set[str]:
    """Rule 4; the launches of which somebody was caught."""
    of: dict[Seen, str] = {}

    def ours(newest: Table) -> dict[Seen, str]:
        found = proved(newest, hosts, wanted)
        of.update(found)
        return found

    return {of[process] for process in table.chase(ours)}


def hosts_in(seen: Table) -> set[int]:
    """Who may have become the parent of a child of the guardian: this process, its ancestors, and process 1."""
    hosts = {1}
    pid = os.getpid()
    while pid in seen and pid not in hosts:
        hosts.add(pid)
        pid = seen[pid].parent
    return hosts


def proved(seen: Table, hosts: set[int], launch_ids: set[str]) -> dict[Seen, str]:
    """The processes that certainly belong to one of these launches (Rule 2), each with its launch."""
    found: dict[Seen, str] = {}
    for process in seen.values():
        if process.parent not in hosts or process.pid in hosts or process.zombie:
            continue
        for launch_id in launch_ids.intersection(table.launches_of(process.pid)):
            for one in (process, *table.below(seen, [process.pid])):
                if not one.zombie:
                    found[one] = launch_id
    return found


def _signal_leader(pidfd: int) -> bool:
    """Kill a leader and its group through its pidfd; whether the leader is still there."""
    for flags in (0, PIDFD_SIGNAL_PROCESS_GROUP):
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL, None, flags)
        except OSError:
            continue  # gone, or the system does not know the flag
    waiting = select.poll()
    waiting.register(pidfd, select.POLLIN)
    return not waiting.poll(0)


def _kill_group(leader: int | None) -> None:
    if leader is None:
        return
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
