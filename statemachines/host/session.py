"""The host's side of one session: getting a trainer, keeping it, and ending it; one machine for launched and attached trainers.

Rule 1.  A launched trainer is spawned and says HELLO; an attached one is opened. Nothing is released to either before it has shown
         that it took the session in, credentials included.
Rule 2.  A HELLO that does not match fails the launch only if it could have come from our own trainer: a wrong rank may still be
         followed by the right one.
Rule 3.  Losing the link is not losing the session: a HELLO that names the epoch, or a SESSION_OPEN that says so, resumes it. A
         trainer that begins anew although it was given tasks is refused: it has lost them, and the end of its process, or of its
         lease, will say so.
Rule 4.  A trainer that is in a lower session may be superseded: open above the epoch that it names. Whether to retry is said by
         the trainer, not guessed.
Rule 5.  SHUTDOWN and ABORT are repeated until they are answered. While an accepted source is live the session stays, its heartbeats
         are answered, and its lease is armed.
Rule 6.  Every way to the end is the same way: the task's outcome, the sources' fate, the lease, the link, the process; then one
         SESSION_ENDED, when nothing is left. The first verdict stays, except that an abort or a loss overrides an end in order.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from troth.spec.core import CloseLink, OpenLink
from troth.spec.data import evolve
from troth.spec.emits import Firing, cancel_timer, deliver, each, effect, send, set_timer, signal
from troth.spec.guards import always, atom
from troth.spec.limits import MAX_EPOCH
from troth.spec.machine import SAME, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import (
    Abort,
    Claim,
    HelloAccepted,
    HelloRejected,
    SessionConfirmed,
    SessionEnded,
    SessionOpen,
    SessionStarted,
    Shutdown,
    Verdict,
)
from troth.statemachines.host.acceptance import LIVE as UNDECIDED
from troth.statemachines.host.delivery import ACTIVE
from troth.statemachines.host.process import GONE, ProcessState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.words import CONTROL, SUPERVISOR, event_epoch, is_, own, own_epoch, own_launch, sets, then, those

S = HostSessionState
LAUNCH = (S.LAUNCHING, S.GREETED)
UNREADY = (*LAUNCH, S.OPENING)
BOUND = (S.READY, S.DRAINING)
ENDING = (S.DRAINING, S.ABORTING)
LIVE = (S.READY, S.DRAINING, S.ABORTING)
OVER = (S.CLOSING, S.CLOSED)


@frozen
class HostSessionData:
    """The epoch (0: none yet) and how the session ended."""

    epoch: int = 0
    verdict: Verdict = Verdict.NONE


def begin(data: HostSessionData, event: Any) -> HostSessionData:  # noqa: ARG001
    """The first epoch of this host's session."""
    return evolve(data, epoch=1)


def open_above(data: HostSessionData, event: Any) -> HostSessionData:
    """Rule 4."""
    return evolve(data, epoch=event.epoch + 1)


verdict_stopped = sets("verdict_stopped", verdict=Verdict.STOPPED)
verdict_ended = sets("verdict_ended", verdict=Verdict.ENDED)
verdict_refused = sets("verdict_refused", verdict=Verdict.REFUSED)
verdict_timeout = sets("verdict_timeout", verdict=Verdict.TIMEOUT)
verdict_lost = sets("verdict_lost", verdict=Verdict.LOST)
verdict_aborted = sets("verdict_aborted", verdict=Verdict.ABORTED)


def stuck(firing: Firing) -> bool:
    """Whether the process survived everything."""
    return bool(firing.view.process.state is ProcessState.STUCK)


launched = atom("launched", of=lambda view, event: view.config.launched)
matching = atom("matching", of=lambda view, event: event.claim is Claim.MATCHING)
wrong_rank = atom("wrong_rank", of=lambda view, event: event.claim is Claim.WRONG_RANK)
fresh = atom("fresh", of=lambda view, event: event.epoch == 0)
current = atom("current", of=lambda view, event: event.epoch == view.own.data.epoch)
answers_this = atom("answers_this", of=lambda view, event: event.opened == view.own.data.epoch)
untouched = atom("untouched", reads=["delivery"], of=lambda view, event: view.delivery.data.seq == 0)
proven = atom("proven", of=lambda view, event: event.proven)
retryable = atom("retryable", of=lambda view, event: event.retry)
process_gone = atom("process_gone", reads=["process"], of=lambda view, event: view.process.state in GONE)
above = atom("above", of=lambda view, event: view.own.data.epoch <= event.epoch < MAX_EPOCH)
orderly = atom("orderly", of=lambda view, event: view.own.data.verdict is Verdict.STOPPED)
task_out = atom("task_out", reads=["delivery"], of=lambda view, event: view.delivery.state in ACTIVE)

HELLO_ACCEPTED = send(CONTROL, HelloAccepted, epoch=own_epoch)
REJECT = send(CONTROL, HelloRejected, epoch=event_epoch, retry=is_(False))
REJECT_RETRY = send(CONTROL, HelloRejected, epoch=event_epoch, retry=is_(True))
CONFIRM = send(CONTROL, SessionConfirmed, epoch=own_epoch)
OPEN = send(CONTROL, SessionOpen, epoch=own_epoch, instance=lambda f: f.view.config.instance, resume=is_(False))
RESUME = send(CONTROL, SessionOpen, epoch=own_epoch, instance=lambda f: f.view.config.instance, resume=is_(True))
SHUTDOWN = send(CONTROL, Shutdown, epoch=own_epoch)
ABORT = send(CONTROL, Abort, epoch=own_epoch)
STARTED = send(SUPERVISOR, SessionStarted, launch=own_launch)
ENDED = send(SUPERVISOR, SessionEnded, launch=own_launch, verdict=own("verdict"), stuck=stuck)

listen = effect("open link", lambda _f: OpenLink(CONTROL))
hang_up = effect("close link", lambda _f: CloseLink(CONTROL))
again = set_timer("again", "open_retry_s")
quiet = [cancel_timer("session"), cancel_timer("again")]
stop_process = signal("process", "stop")
resume = signal("delivery", "retry")
life = signal("lease", "life")
check = signal("session", "check")
drop_all = [
    signal("delivery", "end"),
    signal("acceptance", "cancel", key=those("acceptance", *UNDECIDED)),
    signal("source", "release", key=each),
]
lose_all = [
    signal("delivery", "end"),
    signal("acceptance", "lose", key=those("acceptance", *UNDECIDED)),
    signal("source", "release", key=each),
]
wind_up = then(quiet, signal("lease", "end"), hang_up, check)


# fmt: off
SESSION = Machine(
    "session", HostSessionState, initial=S.IDLE, final={S.CLOSED}, data=HostSessionData, timers=("session", "again"),
    rows=[
    # getting a trainer
    Row("H1",  S.IDLE,     "start", launched,  S.LAUNCHING, begin, [listen, signal("process", "spawn"), set_timer("session", "launch_timeout_s")], "Rule 1"),
    Row("H2",  S.IDLE,     "start", ~launched, S.OPENING,   begin, [listen, set_timer("session", "attach_timeout_s")], "Rule 1"),
    Row("H3",  S.LAUNCHING, "hello", matching & fresh, S.GREETED, keep, [HELLO_ACCEPTED], "Rule 1"),
    Row("H4",  S.LAUNCHING, "hello", ~matching & wrong_rank, SAME, keep, [REJECT_RETRY], "Rule 2"),
    Row("H5",  S.LAUNCHING, "hello", ~matching & ~wrong_rank, S.CLOSING, verdict_refused, then(REJECT, stop_process, wind_up), "Rule 2"),
    Row("H6",  S.LAUNCHING, "hello", matching & ~fresh, SAME, keep, [REJECT], "it wants back into a session that is not this launch's"),
    Row("H7",  S.GREETED,  "hello", matching & (fresh | current), SAME, keep, [HELLO_ACCEPTED], "said again, answered again"),
    Row("H8",  S.GREETED,  "hello", ~(matching & (fresh | current)) & ~(~matching & wrong_rank), SAME, keep, [REJECT], "the launch has its trainer; this is not it"),
    Row("H9",  S.GREETED,  "hello", ~matching & wrong_rank, SAME, keep, [REJECT_RETRY], "Rule 2"),
    Row("H10", S.GREETED,  "ready", current & proven, S.READY, keep, then(CONFIRM, quiet, signal("lease", "grant"), STARTED), "Rule 1"),
    Row("H11", S.GREETED,  "ready", current & ~proven, S.CLOSING, verdict_refused, then(REJECT, stop_process, wind_up), "Rule 1: the credentials did not arrive"),
    Row("H12", BOUND,      "ready", current & proven, SAME, keep, [CONFIRM, life], "said again, answered again"),
    Row("H13", BOUND,      "ready", current & ~proven, S.CLOSING, verdict_lost, then(REJECT, lose_all, stop_process, wind_up), "Rule 1: an init() that is tried again proves its credentials again"),
    Row("H14", S.OPENING,  "link_up", always, SAME, keep, [OPEN, again], "Rule 1"),
    Row("H15", S.OPENING,  "retry", always, SAME, keep, [OPEN, again], "SESSION_OPEN or its answer was lost"),
    Row("H16", S.OPENING,  "accepted", current, S.READY, keep, then(quiet, signal("lease", "grant"), STARTED), "Rule 1"),
    Row("H17", S.OPENING,  "rejected", retryable & answers_this & above, SAME, open_above, [OPEN, again], "Rule 4"),
    Row("H18", S.OPENING,  "rejected", retryable & answers_this & ~above, S.CLOSING, verdict_refused, wind_up, "Rule 4: there is no epoch above it"),
    Row("H19", S.OPENING,  "rejected", ~retryable & answers_this, S.CLOSING, verdict_refused, wind_up, "Rule 4: it is ending"),
    Row("H20", UNREADY,    "silence", always, S.CLOSING, verdict_timeout, then(stop_process, wind_up), "no trainer came in time"),
    Row("H21", UNREADY,    "gone", always, S.CLOSING, verdict_lost, wind_up, "the process ended before it joined"),
    # keeping it
    Row("H22", BOUND,      "hello", matching & current & ~fresh, SAME, keep, [HELLO_ACCEPTED, life, resume], "Rule 3"),
    Row("H23", BOUND,      "hello", matching & fresh & untouched, SAME, keep, [HELLO_ACCEPTED], "Rule 3: its init() is tried again, and nothing was given to it yet"),
    Row("H24", S.ABORTING, "hello", matching & current, SAME, keep, [ABORT], "it has not heard yet"),
    Row("H25", BOUND,      "hello", ~(matching & current & ~fresh) & ~(matching & fresh & untouched), SAME, keep, [REJECT], "Rule 3: another session, or one that was lost"),
    Row("H26", S.ABORTING, "hello", ~(matching & current), SAME, keep, [REJECT], "it is ending"),
    Row("H27", (S.IDLE, S.OPENING, *OVER), "hello", always, SAME, keep, [REJECT], "there is no launch to join"),
    Row("H28", BOUND,      "link_up", ~launched, SAME, keep, [RESUME], "Rule 3"),
    Row("H29", S.ABORTING, "link_up", ~launched, SAME, keep, [ABORT], "it has not heard yet"),
    Row("H30", BOUND,      "accepted", current, SAME, keep, [life, resume], "Rule 3: resumed, so what was unanswered is asked again"),
    Row("H31", BOUND,      "rejected", ~retryable & answers_this, S.CLOSING, verdict_lost, then(lose_all, stop_process, wind_up), "the trainer is no longer in this session"),
    Row("H32", LIVE,       "message", current, SAME, keep, [deliver], "Rule 5: it is heard while anything depends on it"),
    # ending it
    Row("H33", S.READY,    "close", always, S.DRAINING, verdict_stopped, [SHUTDOWN, again, set_timer("session", "drain_limit_s")], "Rule 5"),
    Row("H34", S.IDLE,     "close", always, S.CLOSED, verdict_stopped, [ENDED], "nothing was begun"),
    Row("H35", UNREADY,    "close", always, S.CLOSING, verdict_stopped, then(stop_process, wind_up), "nothing is lost"),
    Row("H36", S.DRAINING, "retry", always, SAME, keep, [SHUTDOWN, again], "Rule 5"),
    Row("H37", S.IDLE,     "abort", always, S.CLOSED, verdict_aborted, [ENDED], "nothing was begun"),
    Row("H38", UNREADY,    "abort", always, S.CLOSING, verdict_aborted, then(stop_process, wind_up), "nothing is lost"),
    Row("H39", BOUND,      "abort", always, S.ABORTING, verdict_aborted, then(ABORT, drop_all, stop_process, again, set_timer("session", "abort_limit_s")), "Rules 5 and 6"),
    Row("H40", S.ABORTING, "retry", always, SAME, keep, [ABORT, again], "Rule 5"),
    Row("H41", S.ABORTING, "aborted", always, S.CLOSING, keep, wind_up, "Rule 5: the trainer has dropped everything"),
    Row("H42", S.READY,    "ended", always, S.CLOSING, verdict_ended, then(lose_all, signal("process", "leave"), wind_up), "the trainer closed by itself"),
    Row("H43", S.DRAINING, "ended", always, S.CLOSING, keep, then(lose_all, signal("process", "leave"), wind_up), "Rule 5: drained"),
    Row("H44", S.ABORTING, "ended", always, S.CLOSING, keep, wind_up, "it was closing anyway"),
    Row("H45", UNREADY,    "lost", always, S.CLOSING, verdict_lost, then(stop_process, wind_up), "the launch has no guardian any more"),
    Row("H46", BOUND,      "lost", always, S.CLOSING, verdict_lost, then(lose_all, stop_process, wind_up), "the lease has expired"),
    Row("H47", S.ABORTING, "lost", always, S.CLOSING, keep, wind_up, "it will not answer any more"),
    Row("H48", BOUND,      "gone", task_out, S.CLOSING, verdict_lost, then(lose_all, wind_up), "the process died with a task"),
    Row("H49", S.DRAINING, "gone", ~task_out, S.CLOSING, keep, then(lose_all, wind_up), "it ended while it was being ended"),
    Row("H50", S.READY,    "gone", ~task_out, S.CLOSING, verdict_ended, then(lose_all, wind_up), "the script ended without shutdown()"),
    Row("H51", S.ABORTING, "gone", always, S.CLOSING, keep, wind_up, "nothing is left to answer"),
    Row("H52", S.DRAINING, "silence", always, S.CLOSING, keep, then(lose_all, stop_process, wind_up), "it did not drain in time"),
    Row("H53", S.ABORTING, "silence", always, S.CLOSING, keep, wind_up, "it does not answer"),
    Row("H54", S.CLOSING,  "abort", orderly,  SAME, verdict_aborted, [stop_process], "Rule 6: no more waiting for the natural exit"),
    Row("H55", S.CLOSING,  "abort", ~orderly, SAME, keep, [stop_process], "Rule 6: no more waiting for the natural exit"),
    Row("H56", S.CLOSING,  "check", process_gone, S.CLOSED, keep, [ENDED], "Rule 6: nothing is left"),
    Row("H57", S.CLOSING,  "gone", always, S.CLOSED, keep, [ENDED], "Rule 6: nothing is left"),
    ],
    ignore=[
    Ignore("start", S.CLOSED, "ended before it was begun"),
    Ignore("ready", S.GREETED, "another session's", ~current),
    Ignore("ready", BOUND, "another session's", ~current),
    Ignore("ready", (S.IDLE, S.LAUNCHING, S.OPENING, S.ABORTING, *OVER), "nobody is waiting for it"),
    Ignore("link_up", (S.IDLE, *LAUNCH, *OVER), "the trainer speaks first"),
    Ignore("link_up", LIVE, "the trainer speaks first", launched),
    Ignore("link_lost", tuple(S), "Rule 3"),
    Ignore("retry", (S.IDLE, *LAUNCH, S.READY, *OVER), "nothing is unanswered"),
    Ignore("accepted", (S.OPENING, *BOUND), "another session's", ~current),
    Ignore("accepted", (S.IDLE, *LAUNCH, S.ABORTING, *OVER), "nobody is waiting for it"),
    Ignore("rejected", S.OPENING, "an answer to an earlier open", ~answers_this),
    Ignore("rejected", BOUND, "an answer to an earlier open", ~(~retryable & answers_this)),
    Ignore("rejected", (S.IDLE, *LAUNCH, S.ABORTING, *OVER), "nobody is waiting for it"),
    Ignore("message", (S.IDLE, *UNREADY, *OVER), "not in a session"),
    Ignore("message", LIVE, "another session's: it changes nothing", ~current),
    Ignore("draining", ENDING, "Rule 5: noted; it is asked again until it is done"),
    Ignore("draining", S.READY, "its user is ending it: it takes no more tasks, and closes by itself"),
    Ignore(("close", "abort", "check", "lost", "gone"), S.CLOSED, "over already"),
    Ignore("close", (*ENDING, S.CLOSING), "it is ending already"),
    Ignore("abort", S.ABORTING, "it is ending already"),
    Ignore("aborted", BOUND, "no abort was sent in this session"),
    Ignore("silence", (S.IDLE, S.READY, *OVER), "no wait is under way"),
    Ignore("lost", S.CLOSING, "it is ending already"),
    Ignore("check", S.CLOSING, "Rule 6: the process is still there", ~process_gone),
    ],
    refuse=[
    Refuse("start", (*UNREADY, *LIVE, S.CLOSING), "a host starts one session in its life"),
    Refuse(("draining", "ended", "aborted"), (S.IDLE, *UNREADY, *OVER), "the gate lets nothing through here"),
    Refuse("check", (S.IDLE, *UNREADY, *LIVE), "only an ending session asks what is left"),
    Refuse("lost", S.IDLE, "there is nothing to lose yet"),
    Refuse("gone", S.IDLE, "there is no process yet"),
    ],
)
# fmt: on
