"""Launches where there is no process table: what is known of one is the group of its leader.

Only the standard library: the guardian runs without anything else. For POSIX systems other than Linux.

What this cannot do: a descendant that leaves the group, as a daemon does, is not seen; it is neither waited for nor ended, and has only
its owner pipe to learn from. And a leader is reaped before its group is known to be empty. POSIX keeps the number from new processes as
long as the group exists, so a signal can go astray only if the group empties and its number is given away between two system calls.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from troth.runtime.processes.table import Seen
from troth.runtime.processes.wards import Status, Ward, Wards, to_group

POLL_S = 0.05


class GroupWards(Wards):
    """All launches of this guardian."""

    def __init__(self) -> None:
        super().__init__()
        self.poll_s = POLL_S

    def collect(self) -> bool:
        """Note which leaders have ended, and reap them; whether any launch waits for its end."""
        for ward in self.live.values():
            if ward.status is None:
                pid, said = os.waitpid(ward.pid, os.WNOHANG)
                if pid:
                    code = os.waitstatus_to_exitcode(said)
                    ward.status = Status(code, None) if code >= 0 else Status(None, -code)
        return any(ward.status is not None for ward in self.live.values())

    def reap(self) -> bool:
        """Whether we have a child; only leaders are children of ours."""
        return any(ward.status is None for ward in self.live.values())

    def look(self) -> dict[Ward | None, list[Seen]]:
        """There is nothing to look at."""
        self.reaped = 0
        return {ward: [] for ward in self.live.values()}

    def gone(self, ward: Ward, looked: dict[Ward | None, list[Seen]]) -> bool:  # noqa: ARG002
        """Whether the leader has ended and its group is empty."""
        return ward.status is not None and not (ward.started and _exists(ward.pid))

    def bury(self, ward: Ward) -> None:
        """It is reaped already."""

    def term(self, wards: Iterable[Ward], strays: bool = False) -> None:  # noqa: ARG002
        """TERM to the groups."""
        for ward in wards:
            if ward.started:
                to_group(ward.pid, signal.SIGTERM, signal.SIGCONT)
            else:
                ward.told = True

    def kill(self, wards: Iterable[Ward], strays: bool = False) -> None:  # noqa: ARG002
        """KILL to the groups."""
        for ward in wards:
            if ward.started:
                to_group(ward.pid, signal.SIGKILL)
            elif ward.status is None:
                os.kill(ward.pid, signal.SIGKILL)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
