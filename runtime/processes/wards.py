"""The launches of a guardian: who belongs to which, who is signalled, and when nothing of one is left.

Only the standard library: the guardian runs without anything else.

Rule 1.  The leader of a launch is not reaped before everything else of the launch is gone. So its number, which is its group's and its
         session's too, cannot be given to a stranger as long as we may signal it.
Rule 2.  Only descendants of the guardian are ever signalled. A descendant belongs to the launch whose leader's session or group it is
         in, else to that of its parent, else to the one that an earlier look found, else to the one whose marker it was started with,
         else, if there is only one launch, to that. What is still nobody's is ended with the last launch.
Rule 3.  Whoever loses its parent becomes our child, because we are the subreaper. So a launch is gone when none of our children
         belongs to it: a child of ours cannot disappear during a look, as nobody but us can reap it. A zombie that a look finds may
         have left children behind after they were looked at, so only a look that finds no zombie counts.
Rule 4.  To kill is to stop everything first, until a look finds nothing new, and then to kill it; and again, until nothing is left.
Rule 5.  Who forks and ends, over and over, is gone before a look at the whole table is over, every time. It is chased: among the numbers
         that the system gave away last there is, at any moment, where it is now, and to look at those takes less time than to fork.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterable
from typing import NamedTuple

from troth.runtime.processes import table
from troth.runtime.processes.child import Child
from troth.runtime.processes.table import Seen, Table

STOP_ROUNDS = 5
"""Looks for new processes between stopping and killing."""
KILL_AGAIN_FIRST_S = 0.01
KILL_AGAIN_LAST_S = 0.5
"""Pauses between two rounds of killing, from the first to the longest."""


class Status(NamedTuple):
    """How a leader ended."""

    code: int | None
    signal: int | None


class Ward:
    """One launch."""

    def __init__(self, launch_id: str, child: Child) -> None:
        self.launch_id = launch_id
        self.pid = child.pid
        self.owner = child.owner
        self.report = child.report
        self.started = False
        """Whether it has become its command. Before that it may have no group of its own."""
        self.failure: str | None = None
        self.status: Status | None = None
        """Set once the leader has ended."""
        self.told = False
        """Whether TERM was asked for before it had started."""
        self.kill_at = math.inf
        """When what is left of it is killed."""
        self.pause_s = KILL_AGAIN_FIRST_S

    def disown(self) -> None:
        """Let the owner pipe end."""
        if self.owner >= 0:
            os.close(self.owner)
            self.owner = -1


class Wards:
    """All launches of this guardian. Everything is done by the one thread that it has."""

    def __init__(self) -> None:
        self.live: dict[str, Ward] = {}
        self.reaped = 0
        """Zombies that the last look found and reaped."""
        self.poll_s = math.inf
        """How often to look for what is left of a launch; without a signal for each end, that is."""
        self._me = os.getpid()
        self._known: dict[tuple[int, int], Ward] = {}

    # -- who ended -----------------------------------------------------------------------------------------------------

    def collect(self) -> bool:
        """Note which leaders have ended, without reaping them; whether any launch waits for its end."""
        for ward in self.live.values():
            if ward.status is None:
                ward.status = _ended(ward.pid)
        return any(ward.status is not None for ward in self.live.values())

    def reap(self) -> bool:
        """Reap whoever has ended and leads no launch, if that can be told without a look; False if we have no child at all."""
        leaders = {ward.pid for ward in self.live.values()}
        while True:
            try:
                found = _peek()
            except ChildProcessError:
                return False
            if found is None or found in leaders:
                return True  # a leader that is kept hides who else has ended: a look finds them
            os.waitpid(found, 0)

    # -- who belongs to whom -------------------------------------------------------------------------------------------

    def look(self) -> dict[Ward | None, list[Seen]]:
        """All our descendants but the leaders, by launch, zombies reaped as they are found; ``None`` for what is nobody's."""
        seen = table.scan()
        leaders = {ward.pid: ward for ward in self.live.values()}
        found: dict[Ward | None, list[Seen]] = {ward: [] for ward in leaders.values()}
        known: dict[tuple[int, int], Ward] = {}
        of: dict[int, Ward | None] = dict(leaders)
        self.reaped = 0
        for process in table.below(seen, [self._me]):
            if process.pid in leaders:
                continue
            ward = of[process.pid] = self._owner_of(process, leaders, of)
            found.setdefault(ward, []).append(process)
            if ward is not None:
                known[process.identity] = ward
            if process.zombie and process.parent == self._me:
                self.reaped += os.waitpid(process.pid, os.WNOHANG)[0] != 0
        self._known = known
        return found

    def _owner_of(self, process: Seen, leaders: dict[int, Ward], of: dict[int, Ward | None]) -> Ward | None:
        ward = leaders.get(process.session) or leaders.get(process.group) or of.get(process.parent) or self._known.get(process.identity)
        if ward is None or ward.launch_id not in self.live:
            ward = next((self.live[launch_id] for launch_id in table.launches_of(process.pid) if launch_id in self.live), None)
        if ward is None and len(self.live) == 1:
            ward = next(iter(self.live.values()))
        return ward

    def gone(self, ward: Ward, looked: dict[Ward | None, list[Seen]]) -> bool:
        """Whether a look that began after the leader had ended shows that nothing else of the launch is left (Rule 3)."""
        return ward.status is not None and not looked.get(ward)

    def release(self, ward: Ward) -> None:
        """Reap the leader of a launch of which nothing else is left, and forget the launch."""
        self.bury(ward)
        del self.live[ward.launch_id]
        ward.disown()

    def bury(self, ward: Ward) -> None:
        """Reap the leader."""
        os.waitpid(ward.pid, 0)

    # -- signals -------------------------------------------------------------------------------------------------------

    def term(self, wards: Iterable[Ward], strays: bool = False) -> None:
        """TERM to everything in these launches, and to what is nobody's with ``strays``. Who is stopped is continued, or it could not
        heed it."""
        wards = list(wards)
        # Before the leaders hear of it: when they are gone, nobody knows any more whose children their children were.
        looked = self.look()
        for ward in wards:
            if ward.started:
                to_group(ward.pid, signal.SIGTERM, signal.SIGCONT)
            else:
                ward.told = True
            for process in looked[ward]:
                if process.group != ward.pid:
                    table.send(process, signal.SIGTERM, signal.SIGCONT)
        for process in looked.get(None, ()) if strays else ():
            table.send(process, signal.SIGTERM, signal.SIGCONT)

    def kill(self, wards: Iterable[Ward], strays: bool = False) -> None:
        """One round of Rule 4."""
        wards = list(wards)
        chosen: set[Ward | None] = {*wards, None} if strays else {*wards}
        stopped: dict[tuple[int, int], Seen] = {}
        for number in range(STOP_ROUNDS):
            looked = self.look()
            new = [process for ward in chosen for process in looked.get(ward, ()) if process.identity not in stopped]
            for process in new:
                table.send(process, signal.SIGSTOP)
                stopped[process.identity] = process
            if number == 0:
                self._kill_leaders(wards)
            elif not new:
                break
        for process in stopped.values():
            table.send(process, signal.SIGKILL)
        self._chase(chosen)

    def _chase(self, chosen: set[Ward | None]) -> None:
        """Rule 5."""
        leaders = {ward.pid: ward for ward in self.live.values()}

        def ours(newest: Table) -> list[Seen]:
            of: dict[int, Ward | None] = dict(leaders)
            below = [process for process in table.below(newest, [self._me, *leaders]) if process.pid not in leaders]
            for process in below:
                of[process.pid] = self._owner_of(process, leaders, of)
            return [process for process in below if of[process.pid] in chosen]

        table.chase(ours)

    def _kill_leaders(self, wards: list[Ward]) -> None:
        for ward in wards:
            if ward.started:
                to_group(ward.pid, signal.SIGKILL)
            else:
                os.kill(ward.pid, signal.SIGKILL)


def _peek() -> int | None:
    found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if found is None else found.si_pid


def _ended(pid: int) -> Status | None:
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    if found.si_code == os.CLD_EXITED:
        return Status(found.si_status, None)
    return Status(None, found.si_status)


def to_group(leader: int, *numbers: int) -> None:
    """Signal the group of a leader that is not reaped, so the number is certainly its group's."""
    for number in numbers:
        try:
            os.killpg(leader, number)
        except (ProcessLookupError, PermissionError):
            return
