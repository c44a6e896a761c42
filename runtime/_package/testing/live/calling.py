"""The calls that users make, what the model says must come of them, and what did.

A call of the API makes one or several calls of a core: ``receive`` first waits for a task and then takes it, leaving the block of a
backend finalizes it. What the core of the model resolves decides what the user must see: a value, or the exception that the documentation
names for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import numpy as np
import trio
from attrs import define, field

from troth.runtime import errors as e
from troth.spec import messages as m
from troth.testing.live.parties import Wrong

O = m.Outcome  # noqa: E741 - a short name for a long table
_OVER: Mapping[Any, type[Exception]] = {
    O.STOPPED: e.SessionClosed,
    O.CLOSED: e.SessionClosed,
    O.ABORTED: e.SessionAborted,
    O.LOST: e.SessionLost,
    O.CANCELLED: e.CallCancelled,
    O.SUPERSEDED: e.SessionClosed,
}
RAISES: Mapping[str, Mapping[Any, type[Exception]]] = {
    "init": {**_OVER, O.REFUSED: e.JoinFailed, O.TIMEOUT: e.JoinFailed},
    "receive": {outcome: raised for outcome, raised in _OVER.items() if outcome is not O.STOPPED},
    "send": {**_OVER, O.REJECTED: e.ResultRejected, O.CONFLICT: e.ResultConflict, O.UNDELIVERED: e.ResultUndelivered},
    "start": {O.FAILED: e.JoinFailed, O.LOST: e.TrainerLost, O.CLOSED: e.SessionClosed},
    "execute": {
        O.REFUSED: e.TaskRefused,
        O.FAILED: e.TaskUndelivered,
        O.TIMEOUT: e.TaskTimeout,
        O.LOST: e.TrainerLost,
        O.CANCELLED: e.CallCancelled,
        O.ABORTED: e.SessionAborted,
        O.CLOSED: e.SessionClosed,
    },
}
"""Which exception says which outcome, as documented on the calls."""
RETURNS: Mapping[str, Mapping[Any, Any]] = {
    "init": {O.OK: True, O.PASSIVE: False},
    "receive": {O.STOPPED: None, O.PASSIVE: None},
    "send": {O.ACCEPTED: None, O.PASSIVE: None},
    "shutdown": {O.OK: True, O.DEFERRED: False},
    "start": {O.OK: None},
    "abort": {O.OK: None},
    "log": {O.OK: None},
    "finalize": {O.OK: True, O.FORCED: False},
    "leave": {O.OK: None, O.FORCED: None},
}
LAST_WORDS_S = 1.0
"""How long an error may wait to hear how the process ended."""
UNSET: Any = object()


def equal(one: Any, other: Any) -> bool:
    """Whether two trees are the same, arrays and their kinds included."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and bool(one == other)


@define(eq=False)
class Call:
    """A call that somebody made."""

    kind: str
    make: Callable[[], Awaitable[Any]]
    pending: list[str]
    """The calls of a core that it is about to make."""
    tree: Any = None
    """The payload that it brings."""
    large: bool = False
    """The payload is too large to ride in its message."""
    passive: bool = False
    """It is an init() of a rank that stays passive."""
    name: str = ""
    task_id: str = ""
    number: int = 0
    """What its core knows it by."""
    asked: str = ""
    """The call of its core that it waits for."""
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    done: bool = False
    value: Any = None
    error: BaseException | None = None
    given_up: bool = False
    outcome: Any = UNSET
    """What the model resolved it with."""
    at_s: float = 0.0
    """When it did."""
    seq: int = 0
    refused: str | None = None
    """Why the model does not take it, where it may not be made."""
    wants: Any = UNSET
    """The value that must come of it, where the outcome alone does not say."""

    async def run(self) -> None:
        """Make it."""
        try:
            with self.scope:
                self.value = await self.make()
        except Exception as error:
            self.error = error
        self.done = True

    def give_up(self) -> None:
        """Its caller does not wait any more."""
        self.given_up = True
        self.scope.cancel()

    def resolved(self, call: str, outcome: Any, value: int, now: float) -> None:
        """The model lets one of its core's calls return."""
        self.asked = ""
        if call == "receive" and outcome is O.TASK:
            self.pending = ["take"]
        elif call == "take" and outcome is not O.TASK:
            self.pending = ["receive"]
        elif self.kind == "start" and call == "start" and outcome is not O.OK:
            self.outcome, self.pending, self.at_s = outcome, ["abort", "finalize"], now
        elif (self.kind == "start" and call != "start") or (self.kind == "leave" and call == "abort"):
            pass
        else:
            self.outcome, self.seq, self.at_s = outcome, value, now

    def late(self, now: float) -> bool:
        """Whether it has to have returned, and has not."""
        if self.done or self.given_up:
            return False
        if self.refused is not None:
            return True
        if self.outcome is UNSET or self.pending:
            return False
        waits = self.kind == "start" or (self.kind == "execute" and self.outcome in (O.LOST, O.CLOSED))
        return now > self.at_s + LAST_WORDS_S if waits and self.outcome is not O.OK else True

    def silent(self, now: float, others: Iterable[Call]) -> bool:
        """Whether it has to have asked its core, and has not: it hangs before that. ``others``: the calls of the same user."""
        if not self.pending or self.asked:
            return False
        following = self.kind == "start" and self.pending[0] != "start"
        if self.given_up:  # it ends what it had begun all the same
            return following
        if self.pending[0] == "finalize" and any(other.asked == "finalize" for other in others):
            return False  # whoever asked first, asks for both
        return now > self.at_s + LAST_WORDS_S if following and self.pending[0] == "abort" else True

    def check(self) -> None:
        """Whether it returned as it had to. Raises ``Wrong``."""
        error = self.error
        if isinstance(error, e.RuntimeFault):
            raise Wrong("fault", f"{self.kind}() raised {error!r}")
        if self.given_up and self.scope.cancelled_caught:
            return
        if self.refused is not None:
            if not isinstance(error, e.Misuse):
                raise Wrong("calls", f"{self.kind}() came back with {error or self.value!r}, and may not be made: {self.refused}")
            return
        if self.pending and not self.given_up:
            raise Wrong("calls", f"{self.kind}() came back with {error or self.value!r}, and has not asked for {self.pending}")
        if self.outcome is UNSET:
            if not (self.given_up and isinstance(error, e.TrothError)):
                raise Wrong("calls", f"{self.kind}() came back with {error or self.value!r}, and nothing has resolved it")
            return
        self._compare(error)

    def _compare(self, error: BaseException | None) -> None:
        raises = RAISES.get(self.kind, {}).get(self.outcome)
        if raises is not None:
            if type(error) is not raises:
                raise Wrong("calls", f"{self.kind}() was resolved with {self.outcome}, and came back with {error or self.value!r}")
            return
        if error is not None:
            raise Wrong("calls", f"{self.kind}() was resolved with {self.outcome}, and raised {error!r}")
        if self.wants is not UNSET:
            self._content()
        elif self.value is not RETURNS[self.kind][self.outcome]:
            raise Wrong("calls", f"{self.kind}() was resolved with {self.outcome}, and returned {self.value!r}")

    def _content(self) -> None:
        found, wanted = self.value, self.wants
        if self.kind == "execute":
            right = found is not None and found.task_id == self.task_id and equal(found.payload, wanted)
        else:
            told = wanted.seq, wanted.task_id, wanted.name
            right = found is not None and (found.seq, found.task_id, found.name) == told and equal(found.payload, wanted.payload)
        if not right:
            raise Wrong("payload", f"{self.kind}() returned {found!r}, and not {wanted!r}")
