"""The kinds of frames: one for each message that goes between processes, and five that only data connections know.

Rule 1.  A code is written out and never given to anything else: renumbering would let an old peer read one message as another.
Rule 2.  What the receiving runtime derives is not on the wire. A claim about a job's name, say, is the receiver's own verdict on the name
         that came beside the message; a sender has nothing to say about it.
Rule 3.  Each kind says how many of it may wait to be written. What is more closes the connection, for a queue that only grows hides a
         peer that has stopped. HEARTBEAT waits once, the newest of them; LOG is best effort and is dropped and counted.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal, TypeAlias

import attrs
from attrs import field, frozen

from troth.runtime.wire import besides, bounds
from troth.runtime.wire.frames import CHUNK_HEAD_BYTES, UNKNOWN
from troth.spec import limits
from troth.spec import messages as m
from troth.spec.core import Message

Role: TypeAlias = Literal["control", "data"]
CONTROL: Final = "control"
DATA: Final = "data"

# -- frames of data connections that no core sees ----------------------------------------------------------------------


class PayloadKind(Enum):
    """Whose payload it is."""

    TASK = "task"
    RESULT = "result"


class PullRefusal(Enum):
    """Why a source does not send."""

    GONE = "gone"
    """There is no such payload here, or no longer."""
    BEYOND = "beyond"
    """The payload ends before the offset."""
    BUSY = "busy"
    """Too many pulls at a time."""


def _int(low: int, high: int) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"{type(instance).__name__}.{attribute.name}: must be an int from {low} to {high}, got {value!r}")

    return field(validator=check, metadata={"low": low, "high": high})


def _exactly(expected: type) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not expected:
            raise ValueError(f"{type(instance).__name__}.{attribute.name}: must be a {expected.__name__}, got {value!r}")

    return field(validator=check)


@frozen(kw_only=True)
class DataFrame(Message):
    """A frame of one pull. ``request`` is the receiver's number for it, on this connection."""

    epoch: int = _int(1, limits.MAX_EPOCH)
    request: int = _int(0, bounds.MAX_REQUEST)


@frozen(kw_only=True)
class Pull(DataFrame):
    """Receiver: send me this payload, from ``offset`` on."""

    kind: PayloadKind = _exactly(PayloadKind)  # noqa: RUF009
    seq: int = _int(1, limits.MAX_SEQUENCE)
    receiver: int = _int(0, limits.MAX_RECEIVERS - 1)
    offset: int = _int(0, bounds.MAX_PAYLOAD_BYTES)


@frozen(kw_only=True)
class Chunk(DataFrame):
    """Source: bytes of the payload. The bytes follow in the same frame and are never in this object."""

    offset: int = _int(0, bounds.MAX_PAYLOAD_BYTES)


@frozen(kw_only=True)
class PullEnd(DataFrame):
    """Source: that was all of it, ``total`` bytes from the payload's start; or I cannot go on, if it is not ``ok``."""

    total: int = _int(0, bounds.MAX_PAYLOAD_BYTES)
    ok: bool = _exactly(bool)


@frozen(kw_only=True)
class PullRefused(DataFrame):
    """Source: no."""

    reason: PullRefusal = _exactly(PullRefusal)  # noqa: RUF009


@frozen(kw_only=True)
class PullStopped(DataFrame):
    """Receiver: no more of this."""


# -- the table ---------------------------------------------------------------------------------------------------------


class WhenFull(Enum):
    """What becomes of one more than may wait."""

    CLOSE = "close the connection"
    NEWEST = "take the place of the one that waits"
    DROP = "drop and count it"


def _longest(kind: Kind) -> int:
    """Bytes that a body of this kind can have: an array's head, nine an int, and the longest of the enums has less than 32."""
    fields = [f for f in attrs.fields(kind.message) if f.name != "epoch" and f.name not in kind.derived]
    beside_bytes = sum(f.metadata["bytes"] for f in attrs.fields(kind.beside)) if kind.beside else 0
    return 5 + 32 * len(fields) + beside_bytes


@frozen
class Kind:
    """A kind of frame."""

    code: int
    message: type[Message]
    link: Role
    outstanding: int
    """How many may wait to be written."""
    derived: tuple[str, ...] = ()
    """Fields of the message that the receiving runtime says, not the sender."""
    beside: type[Any] | None = None
    when_full: WhenFull = WhenFull.CLOSE
    max_body: int = field(kw_only=True, default=attrs.Factory(_longest, takes_self=True))
    """Bytes."""

    @property
    def name(self) -> str:
        """As errors and logs name it."""
        return self.message.__name__


PER_TASK = 256
"""One step can say one of these for every task that a side remembers."""
PER_SOURCE = 1024
"""One step can say one of these for many receivers of many tasks; more at once means that the peer has stopped reading."""

# fmt: off
KINDS: tuple[Kind, ...] = (
    #    code  message                 link     waiting
    Kind(1,    m.Hello,                CONTROL, 4, derived=("claim",), beside=besides.HelloBeside),
    Kind(2,    m.HelloAccepted,        CONTROL, 4, beside=besides.HelloAcceptedBeside),
    Kind(3,    m.HelloRejected,        CONTROL, 4),
    Kind(4,    m.SessionReady,         CONTROL, 4, derived=("proven",), beside=besides.SessionReadyBeside),
    Kind(5,    m.SessionConfirmed,     CONTROL, 4),
    Kind(6,    m.SessionOpen,          CONTROL, 4, derived=("instance",), beside=besides.SessionOpenBeside),
    Kind(7,    m.SessionAccepted,      CONTROL, 4),
    Kind(8,    m.SessionRejected,      CONTROL, 4),
    Kind(10,   m.TaskReady,            CONTROL, 8, derived=("content",), beside=besides.TaskBeside),
    Kind(11,   m.TaskStatus,           CONTROL, PER_TASK),
    Kind(12,   m.TaskAccepted,         CONTROL, PER_TASK),
    Kind(13,   m.TaskReserved,         CONTROL, PER_TASK),
    Kind(14,   m.TaskUnknown,          CONTROL, PER_TASK),
    Kind(15,   m.TaskFailed,           CONTROL, PER_TASK),
    Kind(16,   m.CancelTask,           CONTROL, PER_TASK),
    Kind(17,   m.TaskCancelled,        CONTROL, PER_TASK),
    Kind(20,   m.ResultReady,          CONTROL, 8, derived=("content",), beside=besides.ResultBeside),
    Kind(21,   m.ResultStatus,         CONTROL, PER_TASK),
    Kind(22,   m.ResultAccepted,       CONTROL, PER_TASK),
    Kind(23,   m.ResultRejected,       CONTROL, PER_TASK),
    Kind(24,   m.ResultUnknown,        CONTROL, PER_TASK),
    Kind(25,   m.ResultSourceSettled,  CONTROL, PER_TASK),
    Kind(26,   m.ResultSourceReleased, CONTROL, PER_TASK),
    Kind(30,   m.Heartbeat,            CONTROL, 1, when_full=WhenFull.NEWEST),
    Kind(31,   m.Log,                  CONTROL, 64, beside=besides.LogBeside, when_full=WhenFull.DROP, max_body=besides.MAX_LOG_BYTES),
    Kind(32,   m.Shutdown,             CONTROL, 4),
    Kind(33,   m.SessionDraining,      CONTROL, 4),
    Kind(34,   m.SessionClosed,        CONTROL, 4),
    Kind(35,   m.Abort,                CONTROL, 4),
    Kind(36,   m.AbortAccepted,        CONTROL, 4),
    Kind(64,   m.PayloadHeld,          DATA,    PER_SOURCE),
    Kind(65,   m.PayloadReleased,      DATA,    PER_SOURCE),
    Kind(66,   m.PayloadAbandoned,     DATA,    PER_SOURCE),
    Kind(67,   m.PayloadGone,          DATA,    PER_SOURCE),
    Kind(80,   Pull,                   DATA,    PER_SOURCE),
    Kind(81,   Chunk,                  DATA,    0, max_body=CHUNK_HEAD_BYTES + bounds.CHUNK_BYTES),
    Kind(82,   PullEnd,                DATA,    PER_SOURCE),
    Kind(83,   PullRefused,            DATA,    PER_SOURCE),
    Kind(84,   PullStopped,            DATA,    PER_SOURCE),
)
# fmt: on

BY_CODE: dict[int, Kind] = {kind.code: kind for kind in KINDS}
BY_CLASS: dict[type[Message], Kind] = {kind.message: kind for kind in KINDS}
CHUNK: Final = 81
HEARTBEAT: Final = 30
LOG: Final = 31

BODY_BOUNDS: tuple[int, ...] = tuple(BY_CODE[code].max_body if code in BY_CODE else UNKNOWN for code in range(256))
"""The longest body of each kind, by code."""
BOUNDS_OF_LINK: dict[Role, tuple[int, ...]] = {
    link: tuple(BY_CODE[code].max_body if code in BY_CODE and BY_CODE[code].link == link else UNKNOWN for code in range(256))
    for link in (CONTROL, DATA)
}
"""The same, of the kinds of one link: on a control connection there is no CHUNK."""
QUEUE_LIMIT: dict[Role, int] = {link: sum(kind.outstanding for kind in KINDS if kind.link == link) for link in (CONTROL, DATA)}
"""Frames that can wait on a connection: what its kinds may add up to."""
