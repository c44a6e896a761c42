"""How the guardian starts a process: fork, a few lines in the child, exec.

Only the standard library. The guardian has one thread, so a fork of it is safe, and it is small, so a fork of it is quick.

The child gets: a session of its own, its directory, ``/dev/null`` as its input, one pipe for its output and its errors, the end of its
owner pipe as descriptor 3, every signal as the system gives it, and nothing else of ours.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from troth.runtime.processes.table import LAUNCH_VARIABLE, LINE_VARIABLE

OWNER_FD_VARIABLE = "TROTH_OWNER_FD"
"""In the environment of a launched process: the descriptor whose end of file says that its owner's side is gone."""
OWNER_PIPE_VARIABLE = "TROTH_OWNER_PIPE"
"""Beside it: which pipe that is, as DEVICE:INODE. A descendant to which the descriptor was not passed on can tell."""
OWNER_FD = 3

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

CANNOT_EXECUTE = 127


def prctl(option: int, value: int) -> bool:
    """Whether the system has this option, and has now set it. Linux; False elsewhere."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0)


class Order(NamedTuple):
    """What to start."""

    launch_id: str
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    output: int
    """The write end of the pipe for output and errors. It stays open."""


class Child(NamedTuple):
    """A process that was forked, and may not have become its command yet."""

    pid: int
    owner: int
    """The write end of its owner pipe. Only the guardian has it."""
    report: int
    """Where it says, in text, ``STEP ERRNO`` if it cannot become its command; the end of file without that says that it did."""


def start(order: Order) -> Child:
    """Fork it. Raises ``OSError`` if there is no room for it."""
    opened: list[int] = []
    try:
        owned, owner = os.pipe()
        opened += [owned, owner]
        report, reporting = os.pipe()
        opened += [report, reporting]
        guardian = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(order, owned, reporting, guardian)
    except OSError:
        for descriptor in opened:
            os.close(descriptor)
        raise
    os.close(owned)
    os.close(reporting)
    return Child(pid, owner, report)


def _become(order: Order, owned: int, reporting: int, guardian: int) -> NoReturn:
    step = "prepare"
    try:
        signal.set_wakeup_fd(-1)
        reporting = fcntl.fcntl(reporting, fcntl.F_DUPFD_CLOEXEC, OWNER_FD + 1)
        os.setsid()
        # If the guardian is killed together with the host, the system still ends the leaders.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:
            os._exit(CANNOT_EXECUTE)
        environment = dict(order.environment)
        environment[LAUNCH_VARIABLE] = order.launch_id
        # Ours, and not what the host wants the trainer to have: a host that runs in a launch itself started us with the line of that.
        environment[LINE_VARIABLE] = ",".join(filter(None, (os.environ.get(LINE_VARIABLE), order.launch_id)))
        environment[OWNER_FD_VARIABLE] = str(OWNER_FD)
        pipe = os.fstat(owned)
        environment[OWNER_PIPE_VARIABLE] = f"{pipe.st_dev}:{pipe.st_ino}"
        # Our own 0, 1 and 2 are open, so none of the sources is one of the first three targets.
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(order.output, 1)
        os.dup2(order.output, 2)
        os.dup2(owned, OWNER_FD)
        os.set_inheritable(OWNER_FD, True)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) not in (signal.SIG_DFL, None):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        step = "directory"
        os.chdir(order.directory)
        step = "command"
        os.execvpe(order.command[0], list(order.command), environment)  # noqa: S606 -- that is what we are for
    except OSError as error:
        _say(reporting, f"{step} {error.errno}")
    except BaseException:
        _say(reporting, f"{step} 0")
    os._exit(CANNOT_EXECUTE)


def _say(descriptor: int, text: str) -> None:
    try:
        os.write(descriptor, text.encode())
    except OSError:
        os._exit(CANNOT_EXECUTE)
