"""The process of a launched trainer: from spawning to the certainty that nothing of it is left.

Rule 1.  A process that was asked for is ours even before it runs: whoever gives up in between kills it when it starts.
Rule 2.  An end in order waits for the natural exit, then TERM, then KILL. An end at once begins with TERM; the grace between TERM
         and KILL stays.
Rule 3.  Every wait is bounded, the last one too: a process that survives KILL is given up as stuck, and said to be.
Rule 4.  Without its guardian nobody can be asked for an orderly end, so the process is killed.

An attached trainer has no process here: the machine stays in NONE, and nothing is ever signalled.
"""

from __future__ import annotations

from enum import Enum

from troth.spec.core import ProcessSignal, SignalProcess, Spawn
from troth.spec.emits import cancel_timer, effect, set_timer, signal
from troth.spec.guards import always
from troth.spec.machine import SAME, Ignore, Machine, Refuse, Row, keep


class ProcessState(Enum):
    """What is left of the process."""

    NONE = "none"
    SPAWNING = "spawning"
    DOOMED = "doomed"
    RUNNING = "running"
    LEAVING = "leaving"
    TERMINATING = "terminating"
    KILLING = "killing"
    STUCK = "stuck"
    EXITED = "exited"


S = ProcessState
GONE = (S.NONE, S.STUCK, S.EXITED)
ENDING = (S.LEAVING, S.TERMINATING, S.KILLING)
ALIVE = (S.RUNNING, *ENDING)

spawn = effect("spawn", lambda _f: Spawn())
term = [effect("signal TERM", lambda _f: SignalProcess(ProcessSignal.TERM)), set_timer("process", "term_grace_s")]
kill = [effect("signal KILL", lambda _f: SignalProcess(ProcessSignal.KILL)), set_timer("process", "kill_wait_s")]
quiet = cancel_timer("process")
gone = signal("session", "gone")

# fmt: off
PROCESS = Machine(
    "process", ProcessState, initial=S.NONE, final={S.EXITED}, timers=("process",),
    rows=[
    Row("X1",  S.NONE,     "spawn",    always, S.SPAWNING, keep, [spawn], "a launch"),
    Row("X2",  S.SPAWNING, "started",  always, S.RUNNING, keep, [], "it runs"),
    Row("X3",  S.SPAWNING, "unable",   always, S.EXITED, keep, [gone], "there is no process, so nothing is left of it"),
    Row("X4",  (S.DOOMED, *ENDING), "unable", always, S.EXITED, keep, [quiet, gone], "there is no process, so nothing is left of it"),
    Row("X5",  S.SPAWNING, "stop",     always, S.DOOMED, keep, [set_timer("process", "kill_wait_s")], "Rule 1"),
    Row("X6",  S.DOOMED,   "started",  always, S.TERMINATING, keep, term, "Rule 1"),
    Row("X7",  S.DOOMED,   "silence",  always, S.STUCK, keep, [gone], "Rule 3: whether there is a process is not known"),
    Row("X8",  S.STUCK,    "started",  always, S.TERMINATING, keep, term, "Rule 1: it was given up before it was heard to start"),
    Row("X9",  S.TERMINATING, "started", always, SAME, keep, term, "Rule 1: it may have been too early for TERM"),
    Row("X10", S.KILLING,  "started",  always, S.KILLING, keep, kill, "Rules 1 and 4: it was given up before it was heard to start"),
    Row("X11", (S.SPAWNING, S.RUNNING), "leave",    always, S.LEAVING, keep, [set_timer("process", "natural_exit_s")], "Rule 2"),
    Row("X12", (S.RUNNING, S.LEAVING), "stop", always, S.TERMINATING, keep, term, "Rule 2"),
    Row("X13", S.LEAVING,  "silence",  always, S.TERMINATING, keep, term, "Rule 2: it did not leave by itself"),
    Row("X14", S.TERMINATING, "silence", always, S.KILLING, keep, kill, "Rule 2: it did not heed TERM"),
    Row("X15", S.KILLING,  "silence",  always, S.STUCK, keep, [gone], "Rule 3"),
    Row("X16", S.SPAWNING, "exited",   always, S.EXITED, keep, [gone], "it ended before it was heard to start"),
    Row("X17", S.DOOMED,   "exited",   always, S.EXITED, keep, [quiet, gone], "it ended before it was heard to start"),
    Row("X18", S.RUNNING,  "exited",   always, S.EXITED, keep, [gone], "it ended by itself"),
    Row("X19", ENDING,     "exited",   always, S.EXITED, keep, [quiet, gone], "and is reaped, with its descendants"),
    Row("X20", S.STUCK,    "exited",   always, S.EXITED, keep, [], "after all"),
    Row("X21", (S.SPAWNING, S.DOOMED, S.RUNNING, S.LEAVING, S.TERMINATING), "orphaned", always, S.KILLING, keep, [*kill, signal("session", "lost")], "Rule 4"),
    ],
    ignore=[
    Ignore(("leave", "stop"), (S.NONE, S.STUCK, S.EXITED), "there is nothing to end"),
    Ignore("leave", (S.DOOMED, *ENDING), "it is being ended already"),
    Ignore("stop", (S.DOOMED, S.TERMINATING, S.KILLING), "it is being ended already"),
    Ignore("orphaned", (S.NONE, S.KILLING, S.STUCK, S.EXITED), "there is nothing more to do about it"),
    Ignore("silence", (S.NONE, S.SPAWNING, S.RUNNING, S.STUCK, S.EXITED), "no wait is under way"),
    Ignore("started", S.LEAVING, "its session was over before it was heard to start"),
    Ignore("started", S.EXITED, "it is gone already"),
    Ignore("unable", (S.RUNNING, S.STUCK, S.EXITED), "it was started, or is given up"),
    Ignore("unsignalled", tuple(S), "it is gone already, and its exit is reported by itself"),
    Ignore("exited", S.EXITED, "reported twice"),
    ],
    refuse=[
    Refuse("spawn", tuple(s for s in S if s is not S.NONE), "a host launches one process in its life"),
    Refuse("started", (S.NONE, S.RUNNING), "no start was asked for, or it was heard of before"),
    Refuse(("exited", "unable"), S.NONE, "there is no process"),
    ],
)
# fmt: on
