"""What the two sides of a session have in common, and what all launches of a backend have.

The version of the protocol and the rank that speaks are agreed on here; both are said in HELLO and judged by the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from troth.runtime.payloads import Payload
from troth.runtime.processes.bootstrap import TaskNames
from troth.runtime.tracing import Goal
from troth.runtime.wire.besides import Credentials, LogBeside
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits

PROTOCOL_VERSION = 1
CONTROL_RANK = 0
"""The rank of a process group that speaks with the host."""


def forget_oldest(table: dict[int, Any], kept: int) -> None:
    """Keep the ``kept`` entries that were made last."""
    while len(table) > kept:
        del table[next(iter(table))]


def session_epoch(core: Any) -> int | None:
    """The epoch that a trainer's or host's core is in."""
    return core.data("session").epoch or None


@frozen
class Setting:
    """What all launches of a backend have in common."""

    name: str
    command: tuple[str, ...]
    job_id: str
    site_name: str
    endpoint: str
    folder: Path
    """The private directory of the backend."""
    directory: Path
    environment: Mapping[str, str] = field(repr=False)
    limits: Limits
    persistent: bool
    fail_unresponsive: bool
    credentials: Credentials | None
    tasks: TaskNames
    transfer_type: str
    trace: Goal | None
    on_log: Callable[[str, LogBeside], None]


@frozen
class Order:
    """A task on its way to a trainer."""

    task_id: str
    name: str
    payload: Payload


@define(eq=False)
class Counts:
    """What a view shows of a trainer, all its launches together."""

    accepted: int = 0
    settled: int = 0
    retries: int = 0
    down: int = 0
    up: int = 0


@define(eq=False)
class Marks:
    """The highest task of one launch that was counted: an answer can be given again, and each launch counts its tasks anew."""

    accepted: int = 0
    settled: int = 0

    def said(self, message: c.Message, counts: Counts) -> None:
        """The host said this."""
        match message:
            case m.ResultAccepted(seq=seq) if seq > self.accepted:
                self.accepted = seq
                counts.accepted += 1
            case m.ResultSourceReleased(seq=seq) if self.settled < seq <= self.accepted:
                self.settled = seq
                counts.settled += 1
            case m.TaskReady(attempt=attempt) if attempt > 1:
                counts.retries += 1
            case m.TaskStatus():
                counts.retries += 1
            case _:
                pass
