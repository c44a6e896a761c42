"""A process that plays a trainer, or one of its descendants: ``python play.py SOCKET PART ARGUMENT...``.

It says what it does, with its pid, to the datagram socket at SOCKET. Only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time

HERE = os.path.abspath(__file__)
HOPS_S = 120


def say(word: str) -> None:
    """Report a word and who says it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.sendto(f"{word} {os.getpid()}".encode(), sys.argv[1])


def close_everything() -> None:
    """Close every descriptor, the owner pipe and the output too."""
    os.closerange(0, 4096)


def sleep() -> None:
    """For longer than any test takes."""
    while True:
        time.sleep(1000)


def daemon(word: str) -> bool:
    """Fork twice, with a session of its own in between; True in the grandchild, whose parent is nobody that we know."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    say(word)
    close_everything()
    return True


def ignore_term() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def heed(_number: int, _frame: object) -> None:
    say("term")
    os._exit(7)


def hold_the_gil() -> None:
    """A system call that never returns, and does not let go of the interpreter: no Python signal handler runs."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)  # it may still come in time for that
    signal.siginterrupt(signal.SIGTERM, False)
    read, _ = os.pipe()
    say("ready")
    ctypes.PyDLL(None).read(read, ctypes.create_string_buffer(1), ctypes.c_size_t(1))


def fork_when_told() -> None:
    """On TERM, start more descendants, each in a session of its own, and each of them does that as well."""

    def more(_number: int, _frame: object) -> None:
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                return

    signal.signal(signal.SIGTERM, more)
    say("ready")
    sleep()


def hop() -> None:
    """Run away: fork, end, and go on in the child; not for ever, as nobody else would end it where a test fails to."""
    say("ready")
    end = time.monotonic() + HOPS_S
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()


def watch_owner() -> None:
    """Say when the owner pipe ends, and stay."""
    ignore_term()
    say("ready")
    os.read(int(os.environ["TROTH_OWNER_FD"]), 1)
    say("orphaned")
    sleep()


def main() -> None:  # noqa: C901, PLR0912
    part, arguments = sys.argv[2], sys.argv[3:]
    if part == "exit":
        sys.exit(int(arguments[0]))
    elif part == "sleep":
        say("ready")
        sleep()
    elif part == "stubborn":
        ignore_term()
        say("ready")
        sleep()
    elif part == "heeds":
        signal.signal(signal.SIGTERM, heed)
        say("ready")
        sleep()
    elif part == "gil":
        hold_the_gil()
    elif part == "daemon":
        # A leader that ends, or stays, with a daemon that ignores TERM or does not.
        if daemon("daemon"):
            if "stubborn" in arguments:
                ignore_term()
            sleep()
        say("ready")
        if "stay" in arguments:
            sleep()
    elif part == "clean":
        # The same with nothing in its environment: not even the marker.
        if daemon("daemon"):
            os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"], {})
        say("ready")
        if "stay" in arguments:
            sleep()
    elif part == "forks":
        fork_when_told()
    elif part == "hops":
        if daemon("daemon"):
            sleep()
        if os.fork() == 0:
            os.setsid()
            hop()
        sleep()
    elif part == "host":
        # A trainer that is a host itself.
        script = os.path.join(os.path.dirname(HERE), "host_script.py")
        os.execve(sys.executable, [sys.executable, script, os.path.dirname(sys.argv[1]), *arguments], dict(os.environ))
    elif part == "owner":
        watch_owner()
    else:
        sys.exit(f"no such part: {part}")


if __name__ == "__main__":
    main()
