"""The gate: one task at a time through a backend, and what a caller of ``start`` and ``execute`` is told.

Rule 1.  One ``execute`` at a time. A second caller is refused at once and disturbs nothing.
Rule 2.  A persistent backend has one trainer, started once; if it is lost, it is lost for good. A per-task backend launches a
         trainer for every task, and a launch that fails fails its task only.
Rule 3.  At most so many trainers are kept alive for their sources; the next launch waits for room. That is back-pressure: an
         unsettled result holds the memory of a whole process.
Rule 4.  After the gate is shut nothing begins, and whoever waits is told.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.core import Key
from troth.spec.data import evolve
from troth.spec.emits import Firing, send, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import ExecuteTask, Outcome, StopTask, TaskOutcome
from troth.statemachines.shared.words import done, own
from troth.statemachines.supervisor.launches import HOSTS, LaunchState


class GateState(Enum):
    """Where the one task is."""

    NEW = "new"
    STARTING = "starting"
    IDLE = "idle"
    QUEUED = "queued"
    LAUNCHING = "launching"
    RUNNING = "running"
    SHUT = "shut"


S = GateState
BUSY = (S.QUEUED, S.LAUNCHING, S.RUNNING)


@frozen
class GateData:
    """The launch in use, and the task that waits for it."""

    launch: int = 0
    receivers: int = 0
    inline: bool = False


def use_free(data: GateData, event: Any) -> GateData:
    """The number that was found free."""
    return evolve(data, launch=event.launch)


def request(data: GateData, event: Any) -> GateData:
    """Remember the task until it can go out."""
    return evolve(data, receivers=event.payload.receivers, inline=event.payload.inline)


def lose_launch(data: GateData, event: Any) -> GateData:  # noqa: ARG001
    """There is no trainer any more."""
    return GateData()


@frozen
class Free:
    """A free launch number."""

    launch: int


def free_number(firing: Firing) -> Free:
    """The lowest launch number that is free."""
    taken = set(firing.view.launches)
    return Free(next(n for n in range(1, len(taken) + 2) if n not in taken))


persistent = atom("persistent", of=lambda view, event: view.config.persistent)
this_launch = atom("this_launch", of=lambda view, event: event.launch == view.own.data.launch)
has_result = atom("has_result", of=lambda view, event: event.outcome is TaskOutcome.RESULT)
room = atom("room", reads=["launches"], of=lambda view, event: len(view.launches) < view.config.limits.launches_limit)
trainer_open = atom(
    "trainer_open", reads=["launches"], of=lambda view, event: view.launches[view.own.data.launch].state is LaunchState.OPEN
)
waited_for = atom("waited_for", reads=["calls"], of=lambda view, event: "execute" in view.calls)

OUTCOMES = {
    TaskOutcome.RESULT: Outcome.RESULT,
    TaskOutcome.REFUSED: Outcome.REFUSED,
    TaskOutcome.UNDELIVERED: Outcome.FAILED,
    TaskOutcome.TIMEOUT: Outcome.TIMEOUT,
    TaskOutcome.RESULT_LOST: Outcome.LOST,
    TaskOutcome.CANCELLED: Outcome.CANCELLED,
    TaskOutcome.ABORTED: Outcome.ABORTED,
    TaskOutcome.TRAINER_LOST: Outcome.LOST,
    TaskOutcome.SESSION_OVER: Outcome.CLOSED,
}


def _current(firing: Firing) -> Key:
    return int(firing.data.launch)


def _previous(firing: Firing) -> Key:
    return int(firing.view.gate.data.launch)


EXECUTE = send(HOSTS, ExecuteTask, launch=own("launch"), receivers=own("receivers"), inline=own("inline"))
STOP = send(HOSTS, StopTask, launch=own("launch"))
find = signal("gate", "found", event=free_number)
launch = signal("launches", "launch", key=_current)
close = signal("launches", "close", key=_previous)
retain = signal("launches", "retain", key=_previous)
report = done("execute", lambda f: OUTCOMES[f.event.outcome])

# fmt: off
GATE = Machine(
    "gate", GateState, initial=S.NEW, final={S.SHUT}, data=GateData,
    live={S.NEW: (), S.STARTING: ("launch",), S.IDLE: ("launch",), S.RUNNING: ("launch",), S.SHUT: ("launch",)},
    rows=[
    # starting
    Row("G1",  S.NEW,      "start", persistent,  S.STARTING, keep, [find], "Rule 2"),
    Row("G2",  S.NEW,      "start", ~persistent, S.IDLE, keep, [done("start", Outcome.OK)], "Rule 2: launched when there is a task"),
    Row("G3",  S.IDLE,     "start", ~persistent | trainer_open, SAME, keep, [done("start", Outcome.OK)], "started already"),
    Row("G4",  S.IDLE,     "start", persistent & ~trainer_open, SAME, keep, [done("start", Outcome.LOST)], "Rule 2"),
    Row("G5",  BUSY,       "start", always, SAME, keep, [done("start", Outcome.OK)], "started already"),
    Row("G6",  (S.STARTING, S.LAUNCHING), "found", always, SAME, use_free, [launch], "a free number"),
    Row("G7",  S.STARTING, "started", always, S.IDLE, keep, [done("start", Outcome.OK)], "Rule 2"),
    Row("G8",  S.STARTING, "ended", this_launch, S.NEW, lose_launch, [done("start", Outcome.FAILED)], "the start may be tried again"),
    # a task
    Row("G9",  S.IDLE,     "execute", persistent & trainer_open,  S.RUNNING, request, [EXECUTE], "Rule 1"),
    Row("G10", S.IDLE,     "execute", persistent & ~trainer_open, SAME, keep, [done("execute", Outcome.LOST)], "Rule 2"),
    Row("G11", S.IDLE,     "execute", ~persistent & room,  S.LAUNCHING, request, [find], "Rule 2"),
    Row("G12", S.IDLE,     "execute", ~persistent & ~room, S.QUEUED, request, [], "Rule 3"),
    Row("G13", S.QUEUED,   "ended",   always, S.LAUNCHING, keep, [find], "Rule 3: now there is"),
    Row("G14", S.LAUNCHING, "started", always, S.RUNNING, keep, [EXECUTE], "Rule 2"),
    Row("G15", S.LAUNCHING, "ended",  this_launch, S.IDLE, lose_launch, [done("execute", Outcome.FAILED)], "Rule 2"),
    Row("G16", S.RUNNING,  "task_ended", this_launch & persistent,  S.IDLE, keep, [report], "Rule 1"),
    Row("G17", S.RUNNING,  "task_ended", this_launch & ~persistent & has_result,  S.IDLE, lose_launch, [report, retain], "Rule 2: kept for its source"),
    Row("G18", S.RUNNING,  "task_ended", this_launch & ~persistent & ~has_result, S.IDLE, lose_launch, [report, close], "Rule 2: there is nothing to keep it for"),
    Row("G19", S.RUNNING,  "ended",   this_launch, S.IDLE, lose_launch, [done("execute", Outcome.LOST)], "the trainer is gone"),
    # given up
    Row("G20", S.RUNNING,  "cancel", ~waited_for, SAME, keep, [STOP], "the host says what became of it"),
    Row("G21", S.QUEUED,   "cancel", ~waited_for, S.IDLE, lose_launch, [], "nothing was begun"),
    Row("G22", S.LAUNCHING, "cancel", ~waited_for, S.IDLE, lose_launch, [close], "the launch has no task any more"),
    # shut
    Row("G23", (S.NEW, S.STARTING, S.IDLE, S.QUEUED, S.LAUNCHING), "shut", always, S.SHUT, lose_launch, [done("start", Outcome.CLOSED), done("execute", Outcome.CLOSED)], "Rule 4"),
    Row("G24", S.RUNNING,  "shut",       always, S.SHUT, keep, [], "Rule 4: the task that is out has an outcome yet"),
    Row("G25", S.SHUT,     "task_ended", this_launch, SAME, keep, [report], "Rule 4: and here it is"),
    Row("G26", S.SHUT,     "ended",      this_launch, SAME, keep, [done("execute", Outcome.CLOSED)], "the trainer is gone"),
    Row("G27", S.SHUT,     "start",      always, SAME, keep, [done("start", Outcome.CLOSED)], "Rule 4"),
    Row("G28", S.SHUT,     "execute",    always, SAME, keep, [done("execute", Outcome.CLOSED)], "Rule 4"),
    ],
    ignore=[
    Ignore("start", S.STARTING, "the caller joins the start that is under way"),
    Ignore("started", (S.NEW, S.IDLE, S.QUEUED, S.RUNNING, S.SHUT), "nobody waits for this launch any more"),
    Ignore("ended", (S.STARTING, S.LAUNCHING, S.RUNNING, S.SHUT), "Rule 2: another launch", ~this_launch),
    Ignore("ended", (S.NEW, S.IDLE), "Rule 2: nobody was using it"),
    Ignore("task_ended", (S.RUNNING, S.SHUT), "another launch's task, given up before", ~this_launch),
    Ignore("task_ended", (S.NEW, S.STARTING, S.IDLE, S.QUEUED, S.LAUNCHING), "a task that was given up before"),
    Ignore("cancel", BUSY, "an earlier caller gave up, not this one", waited_for),
    Ignore("cancel", (S.NEW, S.STARTING, S.IDLE, S.SHUT), "nothing is under way"),
    Ignore("shut", S.SHUT, "shut already"),
    ],
    refuse=[
    Refuse("execute", S.NEW, "the backend was not started; call start() first"),
    Refuse("execute", S.STARTING, "start() has not returned yet"),
    Refuse("execute", BUSY, "one task at a time: wait for the one that is out"),
    Refuse("found", (S.NEW, S.IDLE, S.QUEUED, S.RUNNING, S.SHUT), "nobody looks for a launch number here"),
    ],
)
# fmt: on
