"""What a round of the runtime costs beside a raw ping-pong of the same event loop over the same kind of socket, in one run.

    python tests/benchmarks/roundtrip.py               # about a minute
    python tests/benchmarks/roundtrip.py --rounds 500 --json

``ping-pong`` is 200 bytes there and back between two processes, each a trio program around a ``trio.SocketStream``. ``control round`` is
a whole task: an empty payload down, an empty one up, accepted, its source settled and noted, with a trainer that is an asynchronous
program; ``blocking round`` is the same with a script on the blocking API, whose thread and event loop hand over a few times a round.
The two are measured in turn, in short blocks, so that whatever else the machine does falls on both. ``ratio`` is the median of the
rounds over the median of the ping-pongs of the same kind of socket.

Each of the two processes is given a processor of its own, in both measurements: left alone, the kernel likes to wake the one that is
written to on the processor of the one that writes, and then neither has anything of the second processor. ``as it comes`` is without
that, and has no bound. Exit code: 0 all bounds are kept, 1 one is missed.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for the siblings, wherever the script is run from; troth itself is the installed one

import trio  # noqa: E402

from tests.benchmarks.measuring import report, row  # noqa: E402
from troth.client.model import FLModel, to_tree  # noqa: E402
from troth.runtime.backend import ExternalProcess  # noqa: E402

Transport = Literal["unix", "tcp"]
TRANSPORTS: tuple[Transport, ...] = ("unix", "tcp")
BYTES = 200
BLOCK = 50
"""Rounds in a row before it is the other's turn."""
BOUND = 10.0
"""Ping-pongs that a control round may last."""

PLACED = """
import os
os.sched_setaffinity(0, [{processor}])
"""
"""What a process begins with that has a processor for itself."""

ECHO = f"""
import socket, sys, trio
async def main():
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=int(sys.argv[1]))))
    await stream.send_all(b"!")
    while data := await stream.receive_some({BYTES}):
        await stream.send_all(data)
trio.run(main)
"""

TRAINER = """
import trio
from troth.runtime.processes.bootstrap import bootstrap_path, read
from troth.runtime.system.network import SystemNetwork
from troth.runtime.trainer import TrainerSession
async def main():
    session = TrainerSession(read(bootstrap_path()), SystemNetwork())
    async with trio.open_nursery() as nursery:
        await nursery.start(session.run)
        await session.init()
        while (task := await session.receive()) is not None:
            await session.send(task.payload)
        nursery.cancel_scope.cancel()
trio.run(main)
"""

SCRIPT = """
import troth.client as flare
flare.init()
while flare.is_running():
    flare.send(flare.receive())
"""


def _pair(transport: Transport) -> tuple[socket.socket, socket.socket]:
    """Two connected sockets."""
    if transport == "unix":
        return socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    for end in (here, there):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return here, there


@asynccontextmanager
async def _echo(transport: Transport, first: str) -> AsyncIterator[trio.SocketStream]:
    """A stream to a process that sends everything back."""
    here, there = _pair(transport)
    with there:
        process = subprocess.Popen([sys.executable, "-c", first + ECHO, str(there.fileno())], pass_fds=[there.fileno()])
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(here))
    async with stream:
        await stream.receive_some(1)
        yield stream
    process.wait()


async def _ping(stream: trio.SocketStream, rounds: int, times: list[float]) -> None:
    message = b"x" * BYTES
    for _ in range(rounds):
        began = time.perf_counter()
        await stream.send_all(message)
        missing = BYTES
        while missing:
            missing -= len(await stream.receive_some(missing))
        times.append(time.perf_counter() - began)


async def _execute(trainer: ExternalProcess, payload: Any, rounds: int, times: list[float]) -> None:
    for _ in range(rounds):
        began = time.perf_counter()
        await trainer.execute("train", payload)
        times.append(time.perf_counter() - began)


async def _measure(transport: Transport, program: str, rounds: int, first: str) -> tuple[list[float], list[float]]:
    """Seconds of ping-pongs and of rounds; both kinds of process begin with ``first``."""
    pings: list[float] = []
    found: list[float] = []
    payload = to_tree(FLModel(metrics={"loss": 0.0})) if program is SCRIPT else {}
    command = [sys.executable, "-c", first + program]
    async with _echo(transport, first) as stream, ExternalProcess(command, transport=transport) as trainer:
        await _ping(stream, BLOCK, [])
        await _execute(trainer, payload, 2 * BLOCK, [])
        for _ in range(max(1, rounds // BLOCK)):
            await _ping(stream, BLOCK, pings)
            await _execute(trainer, payload, BLOCK, found)
    return pings, found


def _row(name: str, times: list[float], ratio: float, bound: float | None = None) -> dict[str, Any]:
    ok = bound is None or ratio <= bound
    return row(name, n=len(times), median_s=median(times), min_s=min(times), ratio=ratio, bound=bound, ok=ok)


def _rows(rounds: int) -> Iterator[dict[str, Any]]:
    processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(processors) > 1:
        os.sched_setaffinity(0, processors[:-1])
        first = PLACED.format(processor=processors[-1])
        for transport in TRANSPORTS:
            suffix = "" if transport == "unix" else f", {transport}"
            pings, times = trio.run(_measure, transport, TRAINER, rounds, first)
            yield _row(f"ping-pong{suffix}", pings, 1.0)
            yield _row(f"control round{suffix}", times, median(times) / median(pings), BOUND)
        pings, times = trio.run(_measure, "unix", SCRIPT, rounds, first)
        yield _row("blocking round", times, median(times) / median(pings))
        os.sched_setaffinity(0, processors)
    for transport in TRANSPORTS:
        suffix = ", as it comes" if transport == "unix" else f", {transport}, as it comes"
        pings, times = trio.run(_measure, transport, TRAINER, rounds, "")
        yield _row(f"ping-pong{suffix}", pings, 1.0)
        yield _row(f"control round{suffix}", times, median(times) / median(pings), None if len(processors) > 1 else BOUND)


def _say(found: dict[str, Any]) -> None:
    median_us, least_us = found["median_s"] * 1e6, found["min_s"] * 1e6
    print(f"{found['name']:32} {found['n']:6}  median {median_us:8.1f} us  min {least_us:8.1f} us  ratio {found['ratio']:5.2f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description="what a round of the runtime costs beside a raw ping-pong")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    options = parser.parse_args(arguments)
    found = []
    for each in _rows(options.rounds):
        found.append(each)
        if not options.json:
            _say(each)
    return report("roundtrip", ROOT, found, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
