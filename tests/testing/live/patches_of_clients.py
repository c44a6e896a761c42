"""Faults in the layer that scripts call: between them and the trainer session."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio

from troth.client.model import from_tree
from troth.client.session import Held, Prepared, Session
from troth.runtime.errors import TrothError


def swallow_an_error(patch: pytest.MonkeyPatch) -> None:
    """A send() that came to nothing returns as if it had come to something."""
    publish = Session.publish

    async def silent(session: Session, prepared: Prepared, clear_cache: bool) -> None:
        try:
            await publish(session, prepared, clear_cache)
        except TrothError:
            return

    patch.setattr(Session, "publish", silent)


def keep_what_it_holds(patch: pytest.MonkeyPatch) -> None:
    """The model of a task that was received once is given for the next one, too."""

    def unpack(session: Session, held: Held) -> Any:
        before = session._armed or held
        if held.model is None:
            held.model = before.model or from_tree(held.task.payload)
        session._armed = held
        return held.model

    patch.setattr(Session, "unpack", unpack)


def join_in_any_case(patch: pytest.MonkeyPatch) -> None:
    """An init() that has failed says nothing of it."""
    join = Session.join

    async def joined(session: Session) -> None:
        try:
            await join(session)
        except TrothError:
            await trio.lowlevel.checkpoint()

    patch.setattr(Session, "join", joined)


def let_go_early(patch: pytest.MonkeyPatch) -> None:
    """Nothing goes on behind the calls any more as soon as an end was asked for, whatever is still to be said."""
    shutdown, live = Session.shutdown, Session.live

    async def left(session: Session) -> bool:
        asked = await shutdown(session)
        session._gone.set()
        return asked

    async def lives(session: Session, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(live, session))
            task_status.started()
            await session._gone.wait()
            nursery.cancel_scope.cancel()

    patch.setattr(Session, "shutdown", left)
    patch.setattr(Session, "live", lives)
