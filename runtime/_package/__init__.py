"""Troth: a formally modelled state-machine library with a verified session runtime.

The names here are what a host needs: a trainer in a process of its own, what it may raise, and jobs of many trainers. A training script
imports ``troth.client``; a protocol of one's own is declared with ``troth.spec`` and checked with ``troth.models``. A name is looked up
where it is defined when it is first used, so that importing one part does not wait for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.client.model import FLModel, ParamsType
    from troth.jobs.errors import BadJob
    from troth.jobs.job import Job
    from troth.jobs.report import JobReport
    from troth.jobs.running import run_job
    from troth.runtime.backend import ExternalProcess
    from troth.runtime.errors import (
        BootstrapError,
        CallCancelled,
        JoinFailed,
        Misuse,
        PayloadRefused,
        ResultConflict,
        ResultLost,
        ResultRejected,
        ResultUndelivered,
        SessionAborted,
        SessionClosed,
        SessionError,
        SessionLost,
        SpawnFailed,
        TaskRefused,
        TaskTimeout,
        TaskUndelivered,
        TrainerLost,
        TrothError,
    )
    from troth.runtime.processes.bootstrap import TaskNames
    from troth.runtime.processes.guardian import Guardian
    from troth.runtime.processes.sharing import shared
    from troth.runtime.status import TaskResult, TrainerStatus
    from troth.runtime.wire.besides import Credentials
    from troth.spec.limits import Limits

__version__ = "0.1.0"

__all__ = [
    "BadJob",
    "BootstrapError",
    "CallCancelled",
    "Credentials",
    "ExternalProcess",
    "FLModel",
    "Guardian",
    "Job",
    "JobReport",
    "JoinFailed",
    "Limits",
    "Misuse",
    "ParamsType",
    "PayloadRefused",
    "ResultConflict",
    "ResultLost",
    "ResultRejected",
    "ResultUndelivered",
    "SessionAborted",
    "SessionClosed",
    "SessionError",
    "SessionLost",
    "SpawnFailed",
    "TaskNames",
    "TaskRefused",
    "TaskResult",
    "TaskTimeout",
    "TaskUndelivered",
    "TrainerLost",
    "TrainerStatus",
    "TrothError",
    "__version__",
    "run_job",
    "shared",
]

_WHERE = {
    "troth.client.model": ("FLModel", "ParamsType"),
    "troth.jobs.errors": ("BadJob",),
    "troth.jobs.job": ("Job",),
    "troth.jobs.report": ("JobReport",),
    "troth.jobs.running": ("run_job",),
    "troth.runtime.backend": ("ExternalProcess",),
    "troth.runtime.errors": (
        "BootstrapError",
        "CallCancelled",
        "JoinFailed",
        "Misuse",
        "PayloadRefused",
        "ResultConflict",
        "ResultLost",
        "ResultRejected",
        "ResultUndelivered",
        "SessionAborted",
        "SessionClosed",
        "SessionError",
        "SessionLost",
        "SpawnFailed",
        "TaskRefused",
        "TaskTimeout",
        "TaskUndelivered",
        "TrainerLost",
        "TrothError",
    ),
    "troth.runtime.processes.bootstrap": ("TaskNames",),
    "troth.runtime.processes.guardian": ("Guardian",),
    "troth.runtime.processes.sharing": ("shared",),
    "troth.runtime.status": ("TaskResult", "TrainerStatus"),
    "troth.runtime.wire.besides": ("Credentials",),
    "troth.spec.limits": ("Limits",),
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'troth' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
