"""The client API for trio programs: the calls of ``troth.client``, to be awaited::

    async with open_session() as session:
        async for model in session:
            params, metrics = await train(model.params)
            await session.send(FLModel(params=params, metrics=metrics))

The calls that only look something up (``is_train``, ``get_job_id``, ...) are plain methods here as there. A session is over when its
block is left, in order also when an exception or a cancellation leaves it; what it was still sending is waited for, at most as long as
the host's ``drain_limit_s`` and 5 seconds.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from troth.client.model import FLModel, NotAModel, ParamsType
from troth.client.records import AnalyticsDataType
from troth.client.session import Session, connect
from troth.client.settings import find_file, find_rank, read
from troth.runtime.errors import alone

__all__ = ["AnalyticsDataType", "FLModel", "NotAModel", "ParamsType", "Session", "open_session"]


@asynccontextmanager
async def open_session(rank: int | str | None = None, config_file: str | os.PathLike[str] | None = None) -> AsyncIterator[Session]:
    """Join a session, as ``troth.client.init`` does, and close it at the end of the block. Raises what ``init`` raises."""
    settings = read(find_rank(rank), find_file(config_file))
    session = Session(settings) if settings.passive else Session(settings, connect(settings))
    background = trio.CancelScope(shield=True)  # a program that is cancelled still closes its session in order

    async def live(*, task_status: trio.TaskStatus[None]) -> None:
        with background:
            await session.live(task_status=task_status)

    try:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope(shield=True):  # a start() that is cancelled waits for its task to end, which here it would not
                await nursery.start(live)
            try:
                await session.join()
                yield session
            finally:
                with trio.CancelScope(shield=True):
                    await session.finish()
                background.cancel()
    except BaseExceptionGroup as group:
        # The nursery is nobody's business: what one thing went wrong is raised as it is, and says what it said about its own past.
        one = alone(group)
        context = one.__context__
        try:
            raise one
        finally:
            one.__context__ = context
            del one, context
