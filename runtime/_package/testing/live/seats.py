"""The processes that trainers are in, as the model knows them."""

from __future__ import annotations

from typing import Any

import trio
from attrs import define, field, frozen

from troth.runtime.processes.bootstrap import Bootstrap
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession
from troth.testing.live.parties import Side
from troth.testing.live.scripts import Script


@frozen
class Task:
    """A task as its trainer must see it."""

    seq: int
    task_id: str
    name: str
    payload: Any


@define(eq=False)
class Seat:
    """One process, its session and its user."""

    number: int
    host: str
    """The party that launched it."""
    launch: bytes
    secret: bytes
    process: SimProcess
    bootstrap: Bootstrap
    session: TrainerSession
    side: Side
    ends: trio.Event = field(factory=trio.Event)
    """Set when its program comes to its end."""
    nursery: trio.Nursery | None = None
    code: int | None = None
    """Its exit status; ``None`` if something killed it."""
    gone: bool = False
    stuck: bool = False
    """No signal could end it for some time."""
    orphaned: bool = False
    """The pipe to its owner has ended."""
    bereft: bool = False
    """Its session has noticed that."""
    reported: bool = False
    """Its host was told of its end."""
    gone_s: float = 0.0
    first: dict[int, Any] = field(factory=dict)
    """The first result that was sent for each task."""
    current: int = 0
    """The task that its user holds."""
    joined: bool = False
    """Its user was told that it is in a session."""
    owner: tuple[int, int] | None = None
    """The ends of the pipe to its owner: what it reads, and what the owner holds."""
    script: Script = field(init=False)
    """Who calls its session."""

    def __attrs_post_init__(self) -> None:
        self.script = Script(self.bootstrap, self.session)

    def leave(self) -> None:
        """Nothing of it counts any more: what a dying process still says of itself is between it and its end."""
        self.side.records.clear()
        self.side.local.clear()
        self.side.parties.clear()
        self.side.numbers.clear()
        self.side.calls.clear()
