"""What a caller is told: the outcome of a call as a value or an exception, and what says it in words.

Nothing is decided here. Each outcome that a core can resolve a call with has its line; one that has none is a fault of the runtime.
"""

from __future__ import annotations

from collections.abc import Mapping

from troth.runtime import errors
from troth.runtime.calls import Resolved
from troth.runtime.errors import RuntimeFault, SessionError
from troth.spec.messages import Outcome

Failure = tuple[type[SessionError], str]

_ENDED: Mapping[Outcome, Failure] = {
    Outcome.STOPPED: (errors.SessionClosed, "the host has ended the session"),
    Outcome.CLOSED: (errors.SessionClosed, "the session is closed"),
    Outcome.ABORTED: (errors.SessionAborted, "the host has aborted the session"),
    Outcome.LOST: (errors.SessionLost, "the host is gone, or was silent for too long"),
    Outcome.CANCELLED: (errors.CallCancelled, "the host has cancelled the task"),
    Outcome.SUPERSEDED: (errors.SessionClosed, "the task belongs to a session that another has replaced"),
}

INIT: Mapping[Outcome, Failure] = {
    **_ENDED,
    Outcome.REFUSED: (errors.JoinFailed, "the host refused this trainer; its rank, job, site or version is not what the launch expects"),
    Outcome.TIMEOUT: (errors.JoinFailed, "no host answered within join_timeout_s; init() may be tried again"),
}

RECEIVE: Mapping[Outcome, Failure] = _ENDED

SEND: Mapping[Outcome, Failure] = {
    **_ENDED,
    Outcome.REJECTED: (errors.ResultRejected, "the host does not take this result: its task is over, or it came too often or too late"),
    Outcome.CONFLICT: (errors.ResultConflict, "another result was sent for this task before; a task has one result"),
    Outcome.UNDELIVERED: (errors.ResultUndelivered, "the host accepted the result, but not every receiver got it"),
}

EXECUTE: Mapping[Outcome, Failure] = {
    Outcome.REFUSED: (errors.TaskRefused, "did not take the task"),
    Outcome.FAILED: (errors.TaskUndelivered, "was not reached with the task"),
    Outcome.TIMEOUT: (errors.TaskTimeout, "has the task, but sent no result within result_wait_s"),
    Outcome.LOST: (errors.TrainerLost, "was lost with the task"),
    Outcome.CANCELLED: (errors.CallCancelled, "was told to drop the task"),
    Outcome.ABORTED: (errors.SessionAborted, "was aborted with the task"),
    Outcome.CLOSED: (errors.SessionClosed, "has ended its session, and the task with it"),
}

START: Mapping[Outcome, Failure] = {
    Outcome.FAILED: (errors.JoinFailed, "did not join"),
    Outcome.LOST: (errors.TrainerLost, "is gone; a lost trainer is not started again"),
    Outcome.CLOSED: (errors.SessionClosed, "is closed"),
}


def failure(table: Mapping[Outcome, Failure], found: Resolved, call: str, *, who: str = "", more: str = "") -> SessionError:
    """The exception for an outcome. ``who`` begins its text, ``more`` ends it."""
    line = table.get(found.outcome) if isinstance(found.outcome, Outcome) else None
    if line is None:
        raise RuntimeFault(f"{call}() was resolved with {found.outcome}, which it has no line for")
    kind, text = line
    return kind(" ".join(part for part in (who, text) if part) + (f": {more}" if more else ""))


def check_init(found: Resolved) -> bool:
    """Whether the caller is in a session, or a passive rank."""
    if found.outcome in (Outcome.OK, Outcome.PASSIVE):
        return found.outcome is Outcome.OK
    raise failure(INIT, found, "init")


def check_receive(found: Resolved) -> None:
    """Nothing will come, or nothing more: in order, or else an exception."""
    if found.outcome not in (Outcome.STOPPED, Outcome.PASSIVE):
        raise failure(RECEIVE, found, "receive")


def check_send(found: Resolved) -> None:
    """The result was accepted, and every receiver has it; or this rank has nothing to send."""
    if found.outcome not in (Outcome.ACCEPTED, Outcome.PASSIVE):
        raise failure(SEND, found, "send")
