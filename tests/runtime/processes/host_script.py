"""A host to be killed: ``python host_script.py DIRECTORY PART...`` starts a launch for each part, says ``host PID`` and waits.

With ``thread`` as the first part all this happens in another thread. With ``forked`` the host has a forked child that outlives it; with
``leaky`` it was forked in C, so that it has copies of everything.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from functools import partial
from pathlib import Path

import trio

from troth.runtime.ports import Launch
from troth.runtime.processes.guardian import Guardian

PLAY = Path(__file__).with_name("play.py")


def say(directory: Path, word: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.sendto(f"{word} {os.getpid()}".encode(), str(directory / "r"))


def pipes_and_sockets() -> set[str]:
    links = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}
    return {link for link in links if link.startswith(("pipe:", "socket:"))}


def fork_a_child(directory: Path, before: set[str], behind_pythons_back: bool) -> None:
    if (ctypes.CDLL(None).fork() if behind_pythons_back else os.fork()) == 0:
        kept = pipes_and_sockets() - before
        say(directory, "leaky" if kept else "forked")
        time.sleep(1000)
        os._exit(0)


async def main(directory: Path, parts: list[str]) -> None:
    mark = os.environ["TROTH_TEST_MARK"]
    forks, parts = {"forked", "leaky"} & set(parts), [part for part in parts if part not in ("forked", "leaky")]
    kept = directory / "kept"
    bound = socket.socket(socket.AF_UNIX)
    before = pipes_and_sockets()
    async with Guardian() as guardian:
        guardian.register(kept)
        guardian.register(kept / "bootstrap.json")
        guardian.register(kept / "socket")
        kept.mkdir(mode=0o700)
        (kept / "bootstrap.json").write_text("{}")
        bound.bind(str(kept / "socket"))
        for number, part in enumerate(parts):
            command = [sys.executable, "-I", "-S", str(PLAY), str(directory / "r"), *part.split("-")]
            await guardian.spawn(Launch(f"{mark[:8]}.{number}", part, command, dict(os.environ), directory))
        if forks:
            fork_a_child(directory, before, "leaky" in forks)
        say(directory, "host")
        await trio.sleep_forever()


if __name__ == "__main__":
    # Whoever runs the tests may ignore these (nohup, a job in the background), and that is inherited.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments = sys.argv[2:]
    run = partial(trio.run, partial(main, Path(sys.argv[1]), [part for part in arguments if part != "thread"]))
    if "thread" in arguments:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()
