"""The messages of the protocol, as the cores see them.

Every field is a bounded int, a bool or an enum. A name, digest or array travels beside its message and waits in a side table under
the number that the message carries; what a core must know about it, it is told as an enum (a ``Claim``, say, is the runtime's
verdict on a job name, so that no core compares strings).

Control messages carry the session *epoch*. A task is named by its *sequence* within the epoch, a transmission of a task or result
by its *attempt*. Every request is repeated until it is answered, and every answer can be given again.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import attrs
from attrs import field, frozen

from troth.spec import limits
from troth.spec.core import Message


class Claim(Enum):
    """What a HELLO says of its sender, compared with what the launch expects."""

    MATCHING = "matching"
    WRONG_RANK = "wrong rank"
    WRONG_IDENTITY = "wrong version, job or site"


class FailReason(Enum):
    """Why a trainer does not have a task."""

    BUSY = "busy"
    PAYLOAD = "payload"
    STALE = "stale"
    MISMATCH = "mismatch"
    CANCELLED = "cancelled"
    ENDED = "ended"


class RejectReason(Enum):
    """Why a host does not take a result."""

    STALE = "stale"
    CONFLICT = "conflict"
    CANCELLED = "cancelled"
    EXHAUSTED = "exhausted"


class TaskOutcome(Enum):
    """How a task ended, for whoever asked for it."""

    RESULT = "result"
    REFUSED = "refused"
    UNDELIVERED = "undelivered"
    TIMEOUT = "timeout"
    RESULT_LOST = "result lost"
    CANCELLED = "cancelled"
    ABORTED = "aborted"
    TRAINER_LOST = "trainer lost"
    SESSION_OVER = "session over"


class Verdict(Enum):
    """How a session ended. The first one written stays, except that an orderly end that is not over yet can still turn into an
    abort or a loss."""

    NONE = "none"
    STOPPED = "stopped"
    ENDED = "ended"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    LOST = "lost"
    ABORTED = "aborted"


def _bounded(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    low, high = attribute.metadata["low"], attribute.metadata["high"]
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{type(instance).__name__}.{attribute.name}: must be an int from {low} to {high}, got {value!r}")


def _exactly(expected: type) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not expected:
            raise ValueError(f"{type(instance).__name__}.{attribute.name}: must be a {expected.__name__}, got {value!r}")

    return check


def _int(low: int, high: int) -> Any:
    return field(validator=_bounded, metadata={"low": low, "high": high})


def _enum(expected: type[Enum]) -> Any:
    return field(validator=_exactly(expected))


def _flag() -> Any:
    return field(validator=_exactly(bool))


def _epoch(low: int = 1) -> Any:
    return _int(low, limits.MAX_EPOCH)


def _seq() -> Any:
    return _int(1, limits.MAX_SEQUENCE)


def _attempt() -> Any:
    return _int(1, limits.MAX_ATTEMPT)


@frozen(kw_only=True)
class EpochMessage(Message):
    """A message of one session."""

    epoch: int = _epoch()


@frozen(kw_only=True)
class TaskMessage(EpochMessage):
    """A message about one task of one session."""

    seq: int = _seq()


# -- opening, a launched trainer ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Hello(Message):
    """Trainer: here I am. ``epoch`` 0 asks for a session, another resumes it after a lost link."""

    epoch: int = _epoch(0)
    claim: Claim = _enum(Claim)


@frozen(kw_only=True)
class HelloAccepted(EpochMessage):
    """Host: your session is ``epoch``."""


@frozen(kw_only=True)
class HelloRejected(Message):
    """Host: no session for the HELLO of ``epoch``. ``retry`` if another rank or a later try may succeed."""

    epoch: int = _epoch(0)
    retry: bool = _flag()


@frozen(kw_only=True)
class SessionReady(EpochMessage):
    """Trainer: I have taken your HELLO_ACCEPTED in. ``proven`` if the delegated credentials came with it, or none were needed."""

    proven: bool = _flag()


@frozen(kw_only=True)
class SessionConfirmed(EpochMessage):
    """Host: so have I; tasks may follow."""


# -- opening, an attached trainer --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SessionOpen(EpochMessage):
    """Host: be my trainer in session ``epoch``, or, to ``resume``, go on being it after a lost link.

    ``instance`` tells host instances apart: 0 for the first that this trainer hears of, n for the nth other one. A host that was started
    anew counts its epochs anew, so an equal epoch alone does not make a session the same.
    """

    instance: int = _int(0, limits.MAX_INSTANCES)
    resume: bool = _flag()


@frozen(kw_only=True)
class SessionAccepted(EpochMessage):
    """Trainer: I am."""


@frozen(kw_only=True)
class SessionRejected(Message):
    """Trainer: not in session ``opened``. ``epoch`` is the one I am in; ``retry`` if opening above it can succeed."""

    opened: int = _epoch()
    epoch: int = _epoch(0)
    retry: bool = _flag()


# -- tasks -------------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class TaskReady(TaskMessage):
    """Host: task ``seq``. Whatever is below ``floor`` is given up. ``content`` tells apart the contents seen under this sequence."""

    attempt: int = _attempt()
    floor: int = _seq()
    content: int = _int(0, limits.MAX_CONTENT)
    receivers: int = _int(1, limits.MAX_RECEIVERS)
    inline: bool = _flag()


@frozen(kw_only=True)
class TaskStatus(TaskMessage):
    """Host: do you have task ``seq``?"""


@frozen(kw_only=True)
class TaskAccepted(TaskMessage):
    """Trainer: task ``seq`` is queued, or further."""


@frozen(kw_only=True)
class TaskReserved(TaskMessage):
    """Trainer: task ``seq`` is coming in; ask again."""


@frozen(kw_only=True)
class TaskUnknown(TaskMessage):
    """Trainer: no task ``seq`` here."""


@frozen(kw_only=True)
class TaskFailed(TaskMessage):
    """Trainer: not task ``seq``; ``attempt`` is the offer this answers, 0 where it answers a question."""

    attempt: int = _int(0, limits.MAX_ATTEMPT)
    reason: FailReason = _enum(FailReason)


@frozen(kw_only=True)
class CancelTask(TaskMessage):
    """Host: task ``seq`` is over, wherever it is. No other task is touched."""


@frozen(kw_only=True)
class TaskCancelled(TaskMessage):
    """Trainer: task ``seq`` is over here and will never be taken again."""


# -- results -----------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ResultReady(TaskMessage):
    """Trainer: the result of task ``seq``; its payload rides along if ``inline``, else it waits at its source."""

    attempt: int = _attempt()
    content: int = _int(0, limits.MAX_CONTENT)
    inline: bool = _flag()


@frozen(kw_only=True)
class ResultStatus(TaskMessage):
    """Trainer: what became of my result, of which I sent ``attempt`` attempts? None will follow if that was the ``last``."""

    attempt: int = _attempt()
    last: bool = _flag()


@frozen(kw_only=True)
class ResultAccepted(TaskMessage):
    """Host: taken; ``attempt`` is the canonical one."""

    attempt: int = _attempt()


@frozen(kw_only=True)
class ResultRejected(TaskMessage):
    """Host: not taken, and it never will be."""

    reason: RejectReason = _enum(RejectReason)


@frozen(kw_only=True)
class ResultUnknown(TaskMessage):
    """Host: nothing came, and attempts up to ``attempt`` would now be dropped: send another."""

    attempt: int = _attempt()


@frozen(kw_only=True)
class ResultSourceSettled(TaskMessage):
    """Trainer: every receiver of the result is done; ``delivered`` if all of them hold it."""

    delivered: bool = _flag()


@frozen(kw_only=True)
class ResultSourceReleased(TaskMessage):
    """Host: noted."""


# -- the session -------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Heartbeat(EpochMessage):
    """Either side: I live. A host answers each one."""


@frozen(kw_only=True)
class Log(EpochMessage):
    """Trainer: a record for the host's log, best effort."""


@frozen(kw_only=True)
class Shutdown(EpochMessage):
    """Host: take no more tasks; finish what is being published."""


@frozen(kw_only=True)
class SessionDraining(EpochMessage):
    """Trainer: I will close, but a result is still being published or served."""


@frozen(kw_only=True)
class SessionClosed(EpochMessage):
    """Trainer: my side of the session is over."""


@frozen(kw_only=True)
class Abort(EpochMessage):
    """Host: drop everything."""


@frozen(kw_only=True)
class AbortAccepted(EpochMessage):
    """Trainer: dropped."""


# -- payloads, on data connections -------------------------------------------------------------------------------------


@frozen(kw_only=True)
class PayloadMessage(TaskMessage):
    """A message between the source of a payload and one of its receivers. A party's own receiver is number 0."""

    receiver: int = _int(0, limits.MAX_RECEIVERS - 1)


@frozen(kw_only=True)
class PayloadHeld(PayloadMessage):
    """Receiver: I hold the whole payload."""


@frozen(kw_only=True)
class PayloadReleased(PayloadMessage):
    """Source: then I may let go of it."""


@frozen(kw_only=True)
class PayloadAbandoned(PayloadMessage):
    """Receiver: I gave up on the payload."""


@frozen(kw_only=True)
class PayloadGone(PayloadMessage):
    """Source: the payload is no longer offered to you."""


# -- between cores of one process, on local links ----------------------------------------------------------------------


@frozen(kw_only=True)
class FetchPayload(TaskMessage):
    """A party to its receivers: fetch the payload of task ``seq`` (or decode it, if it came ``inline``)."""

    inline: bool = _flag()


@frozen(kw_only=True)
class DropPayload(TaskMessage):
    """A party to its receivers: stop fetching. ``lost`` if the source died, else nobody needs it any more."""

    lost: bool = _flag()


@frozen(kw_only=True)
class PayloadArrived(PayloadMessage):
    """A receiver to its party: the payload of task ``seq`` is here and decoded."""


@frozen(kw_only=True)
class PayloadLost(PayloadMessage):
    """A receiver to its party: the payload of task ``seq`` will not come."""


@frozen(kw_only=True)
class LaunchMessage(Message):
    """A message between a supervisor and the host of launch ``launch``."""

    launch: int = _int(1, limits.MAX_LAUNCHES)


@frozen(kw_only=True)
class StartSession(LaunchMessage):
    """Supervisor: get a trainer."""


@frozen(kw_only=True)
class ExecuteTask(LaunchMessage):
    """Supervisor: have this task done."""

    receivers: int = _int(1, limits.MAX_RECEIVERS)
    inline: bool = _flag()


@frozen(kw_only=True)
class StopTask(LaunchMessage):
    """Supervisor: cancel the task."""


@frozen(kw_only=True)
class CloseSession(LaunchMessage):
    """Supervisor: end the session in order."""


@frozen(kw_only=True)
class AbortSession(LaunchMessage):
    """Supervisor: end the session at once."""


@frozen(kw_only=True)
class SessionStarted(LaunchMessage):
    """Host: the trainer is ready."""


@frozen(kw_only=True)
class TaskEnded(LaunchMessage):
    """Host: the task is over."""

    outcome: TaskOutcome = _enum(TaskOutcome)


@frozen(kw_only=True)
class ResultLost(LaunchMessage):
    """Host: a result that was accepted died before every receiver had it."""


@frozen(kw_only=True)
class SessionEnded(LaunchMessage):
    """Host: nothing is left of the session, nor of the process unless it is ``stuck``: then it has survived KILL."""

    verdict: Verdict = _enum(Verdict)
    stuck: bool = _flag()


@frozen(kw_only=True)
class RunFailed(Message):
    """Supervisor to its job: the run has failed. Said once."""


# -- arguments of calls ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class InitArguments:
    """``init()``: whether this process is rank 0."""

    control_rank: bool = _flag()


@frozen(kw_only=True)
class SendArguments:
    """``send()``: the content number (0: the first content sent for this task) and whether the payload rides along."""

    content: int = _int(0, limits.MAX_CONTENT)
    inline: bool = _flag()


@frozen(kw_only=True)
class ExecuteArguments:
    """``execute()``: how many receivers the result has, and whether the task's payload rides along."""

    receivers: int = _int(1, limits.MAX_RECEIVERS)
    inline: bool = _flag()


class Outcome(Enum):
    """How a call returned."""

    OK = "ok"
    TASK = "task"
    NOTHING = "nothing"
    PASSIVE = "passive"
    ACCEPTED = "accepted"
    UNDELIVERED = "undelivered"
    REJECTED = "rejected"
    CONFLICT = "conflict"
    CANCELLED = "cancelled"
    DEFERRED = "deferred"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    ABORTED = "aborted"
    LOST = "lost"
    CLOSED = "closed"
    SUPERSEDED = "superseded"
    RESULT = "result"
    FAILED = "failed"
    FORCED = "forced"


@frozen
class Done:
    """What a machine tells the ``calls`` machine: return with this."""

    outcome: Outcome
    value: int = 0
