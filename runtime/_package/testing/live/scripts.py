"""A training script, as the stage runs it: its calls go through the client's own session, on which the blocking API stands, too.

What a script calls is ``troth.client.session.Session``: a task becomes a model there, a model a payload, and a result is for the task that
was received last. Two things are left to the trainer session itself, for the client refuses them before anybody is asked: a rank that is
told to be passive by its core, and a result where the client holds no task.

Not here: the thread of the blocking API, which is a thread; results as differences; and the bounds on waits.
"""

from __future__ import annotations

from typing import Any

import trio
from attrs import define, field

from troth.client.model import FLModel, from_tree, to_tree
from troth.client.session import Session
from troth.client.settings import CONTROL_RANK, Settings
from troth.runtime.processes.bootstrap import Bootstrap
from troth.runtime.trainer import Task, TrainerSession
from troth.runtime.wire.besides import LogBeside


def model_of(params: dict[str, Any]) -> dict[str, Any]:
    """A payload that is a model with these parameters."""
    return to_tree(FLModel(params=params))


@define(eq=False)
class Script:
    """One script of one process."""

    bootstrap: Bootstrap
    session: TrainerSession
    client: Session = field(init=False)
    passive: bool = field(default=False, init=False)
    """It was told so by its core."""

    def __attrs_post_init__(self) -> None:
        self.client = Session(Settings(CONTROL_RANK, self.bootstrap), self.session)

    async def live(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """What goes on behind its calls."""
        await self.client.live(task_status=task_status)

    @property
    def let_go(self) -> bool:
        """Whether nothing goes on behind its calls any more: its session is closed, and whatever it has left to do is nobody's concern."""
        return self.client._gone.is_set()

    async def init(self, *, control_rank: bool = True) -> bool:
        """It joins. Whether it is in a session."""
        if self.passive or not control_rank:
            joined = await self.session.init(control_rank=control_rank)
            self.passive = not joined
            return joined
        await self.client.join()
        return True

    async def receive(self) -> Task | None:
        """The task that comes next, with the model that it is."""
        held = await self.client.take(None)
        if held is None:
            return None
        task: Any = held.task
        return Task(task.seq, task.task_id, task.name, to_tree(self.client.unpack(held)))

    async def send(self, tree: dict[str, Any]) -> None:
        """The result of the task that it received last. After every second task it lets its models be emptied."""
        held = self.client._held
        if held is None or held is not self.client._armed:
            await self.session.send(tree)
            return
        task: Any = held.task
        await self.client.send(from_tree(tree), clear_cache=task.seq % 2 == 0)

    async def shutdown(self) -> bool:
        """It ends its session."""
        return await self.client.shutdown()

    def log(self, record: LogBeside) -> None:
        """It logs something, which after the end of a session tells nobody but the core."""
        if self.session.over:
            self.session.log(record)
        else:
            self.client.hand_over(record)
