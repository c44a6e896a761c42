"""The data link over the system's own sockets."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pytest
import trio

from tests.runtime.payloads.rig import COMPLETE, EPOCH, KEY, Side
from tests.runtime.payloads.trees import differs
from troth.runtime.system.network import SocketStream
from troth.runtime.wire.challenge import Authenticated
from troth.runtime.wire.kinds import DATA

pytestmark = pytest.mark.trio


async def test_a_hundred_megabytes_each_way_over_unix_sockets(nursery: trio.Nursery) -> None:
    host, trainer = Side("task", "result"), Side("result", "task")
    for side, end in zip((host, trainer), socket.socketpair(), strict=True):
        end.setblocking(False)
        nursery.start_soon(side.link.serve, Authenticated(SocketStream(end), DATA, bytes(16), EPOCH, bytes(64)))
    while not (host.link.up and trainer.link.up):
        await trio.lowlevel.checkpoint()
    task: dict[str, Any] = {f"layer{n}": np.full((1000, 2500), n, np.float32) for n in range(10)}
    result = {name: array + 1 for name, array in task.items()}
    assert trainer.pull(host.offer(task))
    assert host.pull(trainer.offer(result))
    with trio.fail_after(60):
        assert (await trainer.done(), await host.done()) == (COMPLETE, COMPLETE)

    assert differs(task, trainer.trees[KEY][0]) is None
    assert differs(result, host.trees[KEY][0]) is None
    nursery.cancel_scope.cancel()
