"""What an application is shown of a trainer: how it is, what it made of a task, and how its process ended, in words."""

from __future__ import annotations

import signal
from typing import Any

from attrs import frozen

from troth.runtime.ports import ExitStatus


@frozen
class TaskResult:
    """What a trainer made of a task."""

    payload: Any
    """The tree that it sent."""
    task_id: str
    seconds: float
    """From ``execute`` to its return."""


@frozen
class TrainerStatus:
    """How a trainer is, for whoever watches."""

    name: str
    pid: int | None
    state: str
    """The state of its session, as the tables name it."""
    task: str | None
    """The task that is out."""
    lease_age_s: float | None
    """Since the trainer was last heard."""
    bytes_down: int
    bytes_up: int
    accepted: int
    settled: int
    retries: int
    exit: ExitStatus | None


def signal_name(number: int) -> str:
    """What a signal is called: not every number that a process can die of has a name.

    >>> signal_name(9), signal_name(-1)
    ('SIGKILL', 'signal -1')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
