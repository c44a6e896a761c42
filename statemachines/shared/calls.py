"""The calls: who is waiting in the API, and what they are told.

Rule 1.  A call returns once. Whatever decides its outcome says ``done``; if nobody waits any more, nothing happens.
Rule 2.  One caller a kind, and for ``send`` a task: a second thread in the same call is told so at once, and the first is not
         disturbed. An outcome is told to the caller whom it is about, never to one that waits for another task.
Rule 3.  A caller that gives up is forgotten; what it asked for goes on.

The family is keyed by the kind of call, ``send`` by kind and task (``send/3``); its number is the caller's own, given back in
``Resolve``.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.core import Effect, Key, Resolve
from troth.spec.data import evolve
from troth.spec.emits import Firing, effect
from troth.spec.guards import always, atom
from troth.spec.machine import Family, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import Outcome


class CallState(Enum):
    """Whether anybody waits."""

    ABSENT = "absent"
    WAITING = "waiting"


ABSENT, WAITING = CallState.ABSENT, CallState.WAITING


@frozen
class CallData:
    """The caller."""

    number: int = 0


def take_number(data: CallData, event: Any) -> CallData:
    """Remember who waits."""
    return evolve(data, number=event.number)


same_call = atom("same_call", of=lambda view, event: view.own.data.number == event.number)


def _resolve(firing: Firing) -> Effect:
    return Resolve(kind_of(firing.key), firing.data.number, firing.event.outcome, firing.event.value)


def _given_up(firing: Firing) -> Effect:
    return Resolve(kind_of(firing.key), firing.data.number, Outcome.CANCELLED)


def kind_of(key: Key) -> str:
    """The kind of call that a key is about."""
    return str(key).partition("/")[0]


CALLS_LIMIT = 1024
"""Calls that can wait at the same time: a kind each, and a thread in ``send`` for every task that is remembered."""

# fmt: off
CALLS = Machine(
    "calls", CallState, initial=ABSENT, data=CallData, family=Family("kind of call", CALLS_LIMIT),
    rows=[
    Row("C1", ABSENT,  "wait",   always,    WAITING, take_number, [], "the call now waits for its outcome"),
    Row("C2", WAITING, "done",   always,    ABSENT,  keep, [effect("resolve", _resolve)], "Rule 1"),
    Row("C3", WAITING, "cancel", same_call, ABSENT,  keep, [effect("resolve CANCELLED", _given_up)], "Rule 3"),
    ],
    ignore=[
    Ignore("done",   ABSENT,  "Rule 1: nobody waits any more"),
    Ignore("cancel", ABSENT,  "the call returned before it could be given up"),
    Ignore("cancel", WAITING, "an earlier caller gave up, not this one", ~same_call),
    ],
    refuse=[Refuse("wait", WAITING, "another thread is already waiting in this call; wait for it, or call from one thread")],
)
# fmt: on
