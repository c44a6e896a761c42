"""A script in a process of its own, under the real backend; what it says over the log steers the test."""

from __future__ import annotations

import math
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from troth.client.model import FLModel, from_tree, to_tree
from troth.runtime.backend import ExternalProcess
from troth.runtime.wire.besides import LogBeside

TIME_LIMIT_S = 60
PREAMBLE = """
import os, signal, sys, threading
import numpy as np
import troth.client as flare

def say(text):
    flare.log("said", text, "TEXT")
"""


@define(eq=False)
class Staged:
    """A running script."""

    trainer: ExternalProcess
    said: trio.MemoryReceiveChannel[LogBeside]
    logs: list[LogBeside] = field(factory=list)

    async def hear(self, text: str) -> None:
        """Wait until the script has said this."""
        async for record in self.said:
            self.logs.append(record)
            if (record.key, record.value) == ("said", text):
                return
        raise AssertionError(f"the script never said {text!r}")

    async def do(self, name: str = "train", **fields: Any) -> FLModel:
        """Let it work on a model."""
        result = await self.trainer.execute(name, to_tree(FLModel(**({"metrics": {}} | fields))))
        return from_tree(result.payload)

    def kill(self, number: signal.Signals) -> None:
        """Send it a signal."""
        pid = self.trainer.status().pid
        assert pid is not None
        os.kill(pid, number)


@asynccontextmanager
async def script(tmp_path: Path, text: str, **options: Any) -> AsyncIterator[Staged]:
    """Run a script; at the end of the block the session is finalized."""
    path = tmp_path / "script.py"
    path.write_text(PREAMBLE + textwrap.dedent(text))
    tell, said = trio.open_memory_channel[LogBeside](math.inf)
    trainer = ExternalProcess(
        [sys.executable, str(path)], on_log=lambda _name, record: tell.send_nowait(record), log_directory=tmp_path, **options
    )
    async with trainer:
        yield Staged(trainer, said)


def within_limit(main: Callable[[], Awaitable[None]]) -> None:
    """Run a test; it fails if it takes too long."""

    async def bounded() -> None:
        with trio.fail_after(TIME_LIMIT_S):
            await main()

    trio.run(bounded)
