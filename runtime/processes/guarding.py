"""The guardian: starts what its host asks for, says when it is gone, and leaves nothing behind when the host is.

Only the standard library: it runs without anything else, as a process of its own, in one thread that waits in one place.

Rule 1.  The host is gone when the socket to it ends, or when its pidfd says so: a copy of the socket in a forked child of the host
         must not keep a dead host alive. Never a bare pid.
Rule 2.  Then, and on SIGTERM, everything gets TERM, and what is left after ``OWNER_DEATH_GRACE_S`` is killed. When nothing is left,
         or ``KILL_LIMIT_S`` later, the registered files go, and then the guardian. SIGINT and SIGHUP are ignored: they are the
         terminal's, and the host decides what they mean.
Rule 3.  When a leader has ended, what is left of its launch gets TERM, and is killed after ``DESCENDANTS_GRACE_S``. Its end is reported
         when nothing is left.
"""

from __future__ import annotations

import errno
import math
import os
import selectors
import signal
import socket
import sys
import time
from typing import Any

from troth.runtime.processes import child, table
from troth.runtime.processes.channel import Channel, ChannelError, Message
from troth.runtime.processes.groups import GroupWards
from troth.runtime.processes.leftovers import Leftovers
from troth.runtime.processes.wards import KILL_AGAIN_FIRST_S, KILL_AGAIN_LAST_S, Ward, Wards

PROTOCOL = 1
OWNER_DEATH_GRACE_S = 2.0
"""From TERM to KILL, when the host is gone."""
DESCENDANTS_GRACE_S = 2.0
"""From TERM to KILL, for what a leader left behind."""
KILL_LIMIT_S = 2.0
"""How long KILL is repeated, when the host is gone, before the guardian leaves too: who is left can run no code any more."""
LOOK_S = 1.0
"""How often the parents of new processes are noted, with more than one launch."""
REPORT_BYTES = 64
WAKE_BYTES = 4096


class Guarding:
    """The one loop."""

    def __init__(self, channel: Channel, wards: Wards) -> None:
        self._channel = channel
        self._wards = wards
        self._leftovers = Leftovers()
        self._selector = selectors.DefaultSelector()
        self._hears = True
        """Whether the host can still ask for something."""
        self._speaks = True
        """Whether the host still takes reports."""
        self._host: int | None = None
        self._terminated = False
        self._ending_since: float | None = None
        self._kill_at = math.inf
        """When everything is killed, once it is ending."""
        self._pause_s = KILL_AGAIN_FIRST_S
        self._look_again = False
        self._looked_at = 0.0

    # -- the loop ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until the host is gone and nothing is left."""
        self._catch_signals()
        self._say({"say": "ready", "protocol": PROTOCOL})
        while True:
            self._watch_channel()
            for key, _ in self._selector.select(self._wait_s()):
                key.data()
            if self._terminated:
                self._end()
            self._settle()
            if self._finished():
                break
        for line in self._leftovers.remove():
            complain(line)

    def save(self) -> None:
        """After an error of ours: kill everything, then remove what is registered."""
        until = time.monotonic() + KILL_LIMIT_S
        while self._wards.reap() and time.monotonic() < until:
            self._wards.kill(self._wards.live.values(), strays=True)
            self._wards.collect()
            looked = self._wards.look()
            for ward in list(self._wards.live.values()):
                if self._wards.gone(ward, looked):
                    self._wards.release(ward)
            time.sleep(KILL_AGAIN_FIRST_S)
        self._leftovers.remove()

    def _catch_signals(self) -> None:
        ours, theirs = os.pipe()
        for descriptor in (ours, theirs):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self._selector.register(ours, selectors.EVENT_READ, lambda: os.read(ours, WAKE_BYTES))

    def _on_term(self, _number: int, _frame: Any) -> None:
        self._terminated = True

    def _wait_s(self) -> float | None:
        if self._look_again:
            return 0.0
        due = [ward.kill_at for ward in self._wards.live.values()]
        if self._ending_since is not None:
            due += [self._kill_at, self._ending_since + OWNER_DEATH_GRACE_S + KILL_LIMIT_S]
        if len(self._wards.live) > 1:
            due.append(self._looked_at + LOOK_S)
        if any(ward.status is not None for ward in self._wards.live.values()):
            due.append(self._looked_at + self._wards.poll_s)
        first = min(due, default=math.inf)
        return None if first == math.inf else max(0.0, first - time.monotonic())

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Report the launches of which nothing is left, and see to what is left of the others."""
        some_ended = self._wards.collect()
        now = time.monotonic()
        self._look_again = False
        if some_ended or (len(self._wards.live) > 1 and now >= self._looked_at + LOOK_S):
            self._looked_at = now
            for ward in list(self._wards.live.values()):
                if ward.status is not None:
                    self._hear_start(ward)
            looked = self._wards.look()
            # A zombie hides what it left behind while we looked (Rule 3 of the wards). It is reaped now, so look again.
            self._look_again = some_ended and self._wards.reaped > 0
            for ward in [ward for ward in self._wards.live.values() if self._wards.gone(ward, looked)]:
                self._report_end(ward)
            self._grace(
                [ward for ward in self._wards.live.values() if ward.status is not None and ward.kill_at == math.inf], DESCENDANTS_GRACE_S
            )
        due = [ward for ward in self._wards.live.values() if now >= ward.kill_at]
        everything = now >= self._kill_at
        if due or everything:
            self._kill(due, everything)
        self._wards.reap()

    def _grace(self, wards: list[Ward], grace_s: float, strays: bool = False) -> None:
        if wards or strays:
            self._wards.term(wards, strays)
        for ward in wards:
            ward.kill_at = min(ward.kill_at, time.monotonic() + grace_s)

    def _kill(self, wards: list[Ward], everything: bool) -> None:
        self._wards.kill(self._wards.live.values() if everything else wards, strays=everything)
        now = time.monotonic()
        for ward in wards:
            ward.kill_at = now + ward.pause_s
            ward.pause_s = min(2 * ward.pause_s, KILL_AGAIN_LAST_S)
        if everything:
            self._kill_at = now + self._pause_s
            self._pause_s = min(2 * self._pause_s, KILL_AGAIN_LAST_S)

    def _report_end(self, ward: Ward) -> None:
        self._wards.release(ward)
        if ward.failure is not None:
            step, _, number = ward.failure.partition(" ")
            self._say({"say": "unable", "id": ward.launch_id, "step": step, "errno": int(number)})
        elif ward.status is not None:
            self._say({"say": "exited", "id": ward.launch_id, "code": ward.status.code, "signal": ward.status.signal})

    def _end(self) -> None:
        """The host is gone, or we are to go."""
        if self._ending_since is not None:
            return
        self._ending_since = time.monotonic()
        self._kill_at = self._ending_since + OWNER_DEATH_GRACE_S
        for ward in self._wards.live.values():
            ward.disown()
        self._grace(list(self._wards.live.values()), OWNER_DEATH_GRACE_S, strays=True)

    def _finished(self) -> bool:
        if self._ending_since is None:
            return False
        if not self._wards.live and not self._wards.reap():
            return True
        if time.monotonic() < self._ending_since + OWNER_DEATH_GRACE_S + KILL_LIMIT_S:
            return False
        left = sorted({ward.pid for ward in self._wards.live.values()})
        complain(f"some processes do not end, though they were killed; leaders among them: {left}")
        return True

    # -- the host ------------------------------------------------------------------------------------------------------

    def _watch_channel(self) -> None:
        wanted = (selectors.EVENT_READ if self._hears else 0) | (selectors.EVENT_WRITE if self._speaks and self._channel.waiting else 0)
        known = self._selector.get_map().get(self._channel)
        if known is None:
            if wanted:
                self._selector.register(self._channel, wanted, self._serve)
        elif not wanted:
            self._selector.unregister(self._channel)
        elif known.events != wanted:
            self._selector.modify(self._channel, wanted, self._serve)

    def _serve(self) -> None:
        try:
            if self._speaks:
                self._channel.flush()
        except OSError:
            self._speaks = False
        if not self._hears:
            return
        try:
            arrived = self._channel.take()
        except (EOFError, OSError, ChannelError) as error:
            if isinstance(error, ChannelError):
                complain(str(error))
            self._hears = False
            self._end()
            return
        for message, descriptors in arrived:
            self._obey(message, descriptors)

    def _say(self, message: Message, descriptors: list[int] | None = None) -> None:
        if not self._speaks:
            for descriptor in descriptors or ():
                os.close(descriptor)
            return
        try:
            self._channel.put(message, descriptors or ())
        except (OSError, ChannelError) as error:
            if isinstance(error, ChannelError):
                complain(str(error))
            self._speaks = False

    def _obey(self, message: Message, descriptors: list[int]) -> None:
        what = message["do"]
        if what == "spawn":
            self._spawn(message, descriptors)
        elif what == "signal":
            self._signal(message["id"], message["signal"])
        elif what == "register":
            self._leftovers.add(message["path"])
        elif what == "unregister":
            self._leftovers.drop(message["path"])
        elif what == "host":
            for self._host in descriptors:
                self._selector.register(self._host, selectors.EVENT_READ, self._host_gone)

    def _host_gone(self) -> None:
        if self._host is not None:
            self._selector.unregister(self._host)
            self._host = None
        self._end()

    def _spawn(self, message: Message, descriptors: list[int]) -> None:
        launch_id = message["id"]
        if self._ending_since is not None:
            os.close(descriptors[0])
            self._say({"say": "unable", "id": launch_id, "step": "prepare", "errno": errno.ECANCELED})
            return
        try:
            order = child.Order(launch_id, message["command"], message["environment"], message["directory"], descriptors[0])
            ward = Ward(launch_id, child.start(order))
        except OSError as error:
            self._say({"say": "unable", "id": launch_id, "step": "prepare", "errno": error.errno})
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._wards.live[launch_id] = ward
        self._selector.register(ward.report, selectors.EVENT_READ, lambda: self._hear_start(ward))

    def _hear_start(self, ward: Ward) -> None:
        """It has become its command, or says why it cannot, or has ended before either."""
        if ward.report < 0:
            return
        said = os.read(ward.report, REPORT_BYTES).decode("ascii")
        self._selector.unregister(ward.report)
        os.close(ward.report)
        ward.report = -1
        if said:
            ward.failure = said
            return
        ward.started = True
        self._say({"say": "started", "id": ward.launch_id, "pid": ward.pid}, table.handle(ward.pid))
        if ward.told:
            self._wards.term([ward])

    def _signal(self, launch_id: str, which: str) -> None:
        ward = self._wards.live.get(launch_id)
        if ward is None:
            return  # it has ended, and its end is on its way to the host
        if which == "kill":
            ward.kill_at = time.monotonic()
        else:
            self._wards.term([ward])


def complain(line: str) -> None:
    """Say something on our standard error, which the host logs while it is there."""
    try:
        print(f"guardian: {line}", file=sys.stderr, flush=True)
    except OSError:
        return  # the host is gone, and nobody else listens


def guard(descriptor: int, by: str) -> int:
    """Be the guardian of whoever has the other end of this socket; the exit status. ``by`` is what launches are known by: ``table``,
    which is for Linux, or ``groups``."""
    os.set_inheritable(descriptor, False)
    # A host that does not read what we complain of must not be able to hold us.
    os.set_blocking(sys.stderr.fileno(), False)
    if by == "table":
        child.prctl(child.PR_SET_CHILD_SUBREAPER, 1)
    guarding = Guarding(Channel(socket.socket(fileno=descriptor)), Wards() if by == "table" else GroupWards())
    try:
        guarding.run()
    except BaseException:
        import traceback  # noqa: PLC0415 -- it costs some milliseconds to load, and is not needed otherwise

        complain(traceback.format_exc())
        guarding.save()
        return 1
    return 0
