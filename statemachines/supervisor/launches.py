"""The launches: one entry a host session that this backend has, keyed by launch number.

Rule 1.  A launch that fails is that launch's failure: the others do not hear of it.
Rule 2.  A trainer that was launched for one task and has a result is kept until its session has ended: that is what keeps the
         result's source alive. It closes by itself when its receivers are done; it is told to close only when the run ends.
Rule 3.  A launch number is free again only when nothing of its session or process is left, or nothing more can be done about it.
"""

from __future__ import annotations

from enum import Enum

from troth.spec.emits import send, signal
from troth.spec.guards import always
from troth.spec.machine import Family, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import AbortSession, CloseSession, StartSession
from troth.statemachines.shared.words import own_key

HOSTS = "hosts"
"""The local links from a supervisor to its hosts; ``launch`` in the message says which."""


class LaunchState(Enum):
    """Where one launch is."""

    ABSENT = "absent"
    STARTING = "starting"
    OPEN = "open"
    RETAINED = "retained"
    CLOSING = "closing"
    ABORTING = "aborting"


S = LaunchState
LIVE = (S.STARTING, S.OPEN, S.RETAINED, S.CLOSING, S.ABORTING)
ENDING = (S.CLOSING, S.ABORTING)

START = send(HOSTS, StartSession, launch=own_key)
CLOSE = send(HOSTS, CloseSession, launch=own_key)
ABORT = send(HOSTS, AbortSession, launch=own_key)
started = signal("gate", "started")
freed = [signal("gate", "ended"), signal("teardown", "check")]

# fmt: off
LAUNCHES = Machine(
    "launches", LaunchState, initial=S.ABSENT, family=Family("launch", "launches_limit"),
    rows=[
    Row("U1", S.ABSENT,   "launch",  always, S.STARTING, keep, [START], "Rule 3: a free number"),
    Row("U2", S.STARTING, "started", always, S.OPEN, keep, [started], "the trainer is ready"),
    Row("U3", S.OPEN,     "retain",  always, S.RETAINED, keep, [], "Rule 2"),
    Row("U4", (S.STARTING, S.OPEN, S.RETAINED), "close", always, S.CLOSING, keep, [CLOSE], "Rule 2"),
    Row("U5", (S.STARTING, S.OPEN, S.RETAINED, S.CLOSING), "abort", always, S.ABORTING, keep, [ABORT], "at once"),
    Row("U6", LIVE,       "ended",   always, S.ABSENT, keep, freed, "Rule 3"),
    ],
    ignore=[
    Ignore("started", ENDING, "it is being ended already"),
    Ignore("close", ENDING, "it is being ended already"),
    Ignore("retain", (S.ABSENT, *ENDING), "it is being ended already"),
    Ignore("abort", S.ABORTING, "it is being ended already"),
    Ignore(("close", "abort"), S.ABSENT, "it has ended already"),
    ],
    refuse=[
    Refuse("launch", LIVE, "the launch number is taken"),
    Refuse("started", (S.ABSENT, S.OPEN, S.RETAINED), "no session was being started"),
    Refuse("retain", (S.STARTING, S.RETAINED), "there is no result to keep it for"),
    Refuse("ended", S.ABSENT, "there is no such launch"),
    ],
)
# fmt: on
