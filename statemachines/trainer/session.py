"""The trainer's session: from ``init()`` to the end, and which end it is.

Rule 1.  A launched trainer says HELLO and is asked in; an attached one is opened by its host. Both then know one epoch.
Rule 2.  A task may come only after the trainer has taken the epoch in *and* heard that the host knows: before that, only the end
         may come.
Rule 3.  Losing the link is not losing the session. The trainer redials and says which session it is in; only the lease, ABORT or
         SHUTDOWN ends it.
Rule 4.  A host may open above the epoch that the trainer is in: the old session's tasks are dropped, the new one starts empty. A
         session is the same if epoch *and* host instance are; a trainer process that was started anew is in none. A trainer that is
         ending refuses every open, and says whether to try again.
Rule 5.  SHUTDOWN stops the taking of tasks, not the publication of a result: while one is published or served, the session drains.
Rule 6.  ABORT drops everything, in every state that has an epoch. An abort or a loss beats an orderly end that is not over yet.
         The first verdict of an ended session stays.
Rule 7.  An ``init()`` that failed leaves nothing behind and may be tried again.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from troth.spec.core import CloseLink, OpenLink
from troth.spec.data import evolve
from troth.spec.emits import cancel_timer, deliver, each, effect, send, set_timer, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Ignore, Machine, Refuse, Row, keep
from troth.spec.messages import (
    AbortAccepted,
    Claim,
    Hello,
    Log,
    Outcome,
    SessionAccepted,
    SessionClosed,
    SessionDraining,
    SessionReady,
    SessionRejected,
    Verdict,
)
from troth.statemachines.shared.words import CONTROL, done, event_epoch, is_, own_epoch, sets, then, those
from troth.statemachines.trainer.ledger import UNPUBLISHED, LedgerState
from troth.statemachines.trainer.publication import BUSY
from troth.statemachines.trainer.states import OUTCOMES, TrainerSessionState

S = TrainerSessionState
OPENING = (S.JOINING, S.BINDING)
BOUND = (S.READY, S.DRAINING)
UNBORN = (S.NEW, S.PASSIVE)
OVER = (S.ABORTED, S.CLOSED)


@frozen
class TrainerSessionData:
    """The epoch (0: none yet), the host instance that opened it, and how the session ended."""

    epoch: int = 0
    instance: int = 0
    verdict: Verdict = Verdict.NONE


def bind(data: TrainerSessionData, event: Any) -> TrainerSessionData:
    """Take the epoch that the host names."""
    return evolve(data, epoch=event.epoch)


def bind_to_instance(data: TrainerSessionData, event: Any) -> TrainerSessionData:
    """Take the epoch, and remember whose it is."""
    return evolve(data, epoch=event.epoch, instance=event.instance)


def unbind(data: TrainerSessionData, event: Any) -> TrainerSessionData:  # noqa: ARG001
    """Forget the epoch: this init() came to nothing."""
    return TrainerSessionData()


stop = sets("stop", verdict=Verdict.STOPPED)
"""The session ends in order."""

abort = sets("abort", verdict=Verdict.ABORTED)
"""The session ends by ABORT."""

lose = sets("lose", verdict=Verdict.LOST)
"""The session ends because the host is gone, or as good as gone."""

control_rank = atom("control_rank", of=lambda view, event: event.payload.control_rank)
launched = atom("launched", of=lambda view, event: view.config.launched)
one_shot = atom("one_shot", of=lambda view, event: view.config.one_shot)
current = atom("current", of=lambda view, event: event.epoch == view.own.data.epoch)
same_session = atom("same_session", of=lambda view, event: event.epoch == view.own.data.epoch and event.instance == view.own.data.instance)
resumes = atom("resumes", of=lambda view, event: event.resume)
newer = atom("newer", of=lambda view, event: event.epoch > view.own.data.epoch)
retryable = atom("retryable", of=lambda view, event: event.retry)
busy = atom("busy", reads=["publication"], of=lambda view, event: view.publication.count(*BUSY) > 0)
waited_for = atom("waited_for", reads=["calls"], of=lambda view, event: "init" in view.calls)

HELLO = send(CONTROL, Hello, epoch=own_epoch, claim=is_(Claim.MATCHING))
SESSION_READY = send(CONTROL, SessionReady, epoch=own_epoch, proven=is_(True))
ACCEPTED = send(CONTROL, SessionAccepted, epoch=own_epoch)
REJECTED_RETRY = send(CONTROL, SessionRejected, opened=event_epoch, epoch=own_epoch, retry=is_(True))
REJECTED = send(CONTROL, SessionRejected, opened=event_epoch, epoch=own_epoch, retry=is_(False))
DRAINING = send(CONTROL, SessionDraining, epoch=own_epoch)
SAY_CLOSED = send(CONTROL, SessionClosed, epoch=own_epoch)
ABORT_ACCEPTED = send(CONTROL, AbortAccepted, epoch=own_epoch)
LOG = send(CONTROL, Log, epoch=own_epoch)

dial = effect("open link", lambda _f: OpenLink(CONTROL))
hang_up = effect("close link", lambda _f: CloseLink(CONTROL))
hello_again = set_timer("hello", "hello_retry_s")
quiet = [cancel_timer("join"), cancel_timer("hello")]
grant = signal("lease", "grant")
release = signal("lease", "end")
resume = signal("publication", "retry", key=those("publication", *BUSY))
life = signal("lease", "life")
no_more_tasks = [signal("ledger", "stop", key=those("ledger", *UNPUBLISHED)), done("receive", Outcome.STOPPED)]
drop_everything = [
    signal("publication", "abort", key=those("publication", *BUSY)),
    signal("ledger", "cancel", key=those("ledger", *UNPUBLISHED, LedgerState.PUBLISHING)),
    done("receive", lambda f: OUTCOMES[f.data.verdict]),
]
start_over = [signal("ledger", "forget", key=each), signal("publication", "forget", key=each), signal("intake", "forget")]
close = [SAY_CLOSED, release, hang_up]


def fail_init(outcome: Outcome) -> list[Any]:
    """Undo what an init() had begun, and let it return."""
    return then(quiet, hang_up, done("init", outcome))


# fmt: off
SESSION = Machine(
    "session", TrainerSessionState, initial=S.NEW, final={S.CLOSED}, data=TrainerSessionData, timers=("join", "hello"),
    rows=[
    # joining
    Row("S1",  S.NEW,     "init", control_rank,  S.JOINING, keep, [dial, set_timer("join", "join_timeout_s")], "only the control rank speaks to the host"),
    Row("S2",  S.NEW,     "init", ~control_rank, S.PASSIVE, keep, [done("init", Outcome.PASSIVE)], "the other ranks are silent, and their calls say so"),
    Row("S3",  S.PASSIVE, "init", always, SAME, keep, [done("init", Outcome.PASSIVE)], "the first rank stays"),
    Row("S4",  BOUND,     "init", always, SAME, keep, [done("init", Outcome.OK)], "the session is there already"),
    Row("S5",  OVER,      "init", always, SAME, keep, [done("init", lambda f: OUTCOMES[f.data.verdict])], "an ended session is not begun again"),
    Row("S6",  S.JOINING, "link_up", launched, SAME, keep, [HELLO, hello_again], "Rule 1"),
    Row("S7",  S.JOINING, "retry", always, SAME, keep, [HELLO, hello_again], "the HELLO or its answer was lost"),
    Row("S8",  S.JOINING, "hello_accepted", launched, S.BINDING, bind, [SESSION_READY, hello_again], "Rule 2"),
    Row("S9",  S.BINDING, "hello_accepted", current, SAME, keep, [SESSION_READY, hello_again], "said again after a lost link"),
    Row("S10", S.BINDING, "retry", always, SAME, keep, [SESSION_READY, hello_again], "SESSION_READY or its answer was lost"),
    Row("S11", S.BINDING, "link_up", always, SAME, keep, [HELLO, hello_again], "Rule 3"),
    Row("S12", S.BINDING, "confirmed", current, S.READY, keep, then(quiet, grant, done("init", Outcome.OK)), "Rule 2: both sides know"),
    Row("S13", S.JOINING, "opened", ~launched & ~resumes, S.READY, bind_to_instance, then(ACCEPTED, quiet, grant, done("init", Outcome.OK)), "Rule 1"),
    Row("S14", S.JOINING, "opened", ~launched & resumes, SAME, keep, [REJECTED], "Rule 4: that session was another process's, and its tasks with it"),
    Row("S15", OPENING,   "hello_rejected", current & ~retryable, S.NEW, unbind, fail_init(Outcome.REFUSED), "Rule 7"),
    Row("S16", OPENING,   "silence", always, S.NEW, unbind, fail_init(Outcome.TIMEOUT), "Rule 7"),
    Row("S17", OPENING,   "init_cancelled", ~waited_for, S.NEW, unbind, then(quiet, hang_up), "Rule 7: the caller gave up"),
    # the link, and other hosts' opens
    Row("S18", BOUND,     "link_up", launched, SAME, keep, [HELLO], "Rule 3: redialled, with the epoch it is in"),
    Row("S19", BOUND,     "hello_accepted", current, SAME, keep, [life, resume], "Rule 3: resumed, so what was unanswered is asked again"),
    Row("S20", BOUND,     "opened", ~launched & same_session, SAME, keep, [ACCEPTED, life, resume], "said again, or after a lost link"),
    Row("S21", S.READY,   "opened", ~launched & ~same_session & ~resumes & newer, S.READY, bind_to_instance, then(ACCEPTED, start_over, grant), "Rule 4"),
    Row("S22", S.READY,   "opened", ~launched & ~same_session & ~resumes & ~newer, SAME, keep, [REJECTED_RETRY], "Rule 4: open above this epoch"),
    Row("S23", S.READY,   "opened", ~launched & ~same_session & resumes, SAME, keep, [REJECTED], "Rule 4: that session is not this process's any more, or never was"),
    Row("S24", S.DRAINING, "opened", ~launched & ~same_session, SAME, keep, [REJECTED], "Rule 4: it is ending"),
    Row("S25", S.ABORTED, "opened", ~launched, SAME, keep, [REJECTED], "Rule 4: it has ended"),
    # messages of the session
    Row("S26", (*BOUND, S.ABORTED), "message", current, SAME, keep, [deliver], "it belongs to this session"),
    Row("S27", (S.BINDING, *BOUND, S.ABORTED), "order", current, SAME, keep, [deliver], "Rule 2: the end may come at any time"),
    Row("S28", BOUND,     "log", always, SAME, keep, [LOG], "best effort"),
    # the end
    Row("S29", S.BINDING, "shutdown", always, S.CLOSED, stop, then(quiet, done("init", Outcome.STOPPED), SAY_CLOSED, hang_up), "nothing was begun"),
    Row("S30", S.READY,   "shutdown", ~busy, S.CLOSED, stop, then(no_more_tasks, close), "Rule 5"),
    Row("S31", S.READY,   "shutdown", busy, S.DRAINING, stop, then(DRAINING, no_more_tasks), "Rule 5"),
    Row("S32", S.DRAINING, "shutdown", always, SAME, keep, [DRAINING], "asked again, answered again"),
    Row("S33", S.ABORTED, "shutdown", always, SAME, keep, [SAY_CLOSED], "over already"),
    Row("S34", S.BINDING, "abort", always, S.ABORTED, abort, then(ABORT_ACCEPTED, quiet, hang_up, done("init", Outcome.ABORTED)), "Rule 6: nothing was begun"),
    Row("S35", BOUND,     "abort", always, S.ABORTED, abort, then(ABORT_ACCEPTED, drop_everything), "Rule 6: and it stays to say so again, as long as its lease lasts"),
    Row("S36", S.ABORTED, "abort", always, SAME, keep, [ABORT_ACCEPTED], "asked again, answered again"),
    Row("S37", S.DRAINING, "settled", ~busy, S.CLOSED, keep, close, "Rule 5: drained"),
    Row("S38", S.READY,   "settled", one_shot & ~busy, S.CLOSED, stop, then(no_more_tasks, close), "launched for one task, and it is done"),
    Row("S39", OPENING,   "lost", always, S.ABORTED, lose, then(quiet, done("init", Outcome.LOST), hang_up), "there is no host to join"),
    Row("S40", BOUND,     "lost", always, S.ABORTED, lose, then(drop_everything, SAY_CLOSED, release, hang_up), "Rule 3: the lease is what ends it; if the host hears, it need not wait"),
    Row("S41", BOUND,     "hello_rejected", current & ~retryable, S.ABORTED, lose, then(drop_everything, release, hang_up), "the host has no such session"),
    Row("S42", S.ABORTED, "lost", always, SAME, keep, [release, hang_up], "Rule 6: nobody will ask again"),
    Row("S43", UNBORN,    "lost", always, S.ABORTED, lose, [], "the host is gone before anything began"),
    # the user's shutdown()
    Row("S44", UNBORN,    "leave", always, S.CLOSED, stop, [done("shutdown", Outcome.OK)], "nothing to close"),
    Row("S45", S.JOINING, "leave", always, S.CLOSED, stop, then(quiet, hang_up, done("init", Outcome.CLOSED), done("shutdown", Outcome.OK)), "init() returns too"),
    Row("S46", S.BINDING, "leave", always, S.CLOSED, stop, then(quiet, SAY_CLOSED, hang_up, done("init", Outcome.CLOSED), done("shutdown", Outcome.OK)), "init() returns too"),
    Row("S47", S.READY,   "leave", ~busy, S.CLOSED, stop, then(no_more_tasks, close, done("shutdown", Outcome.OK)), "Rule 5"),
    Row("S48", S.READY,   "leave", busy, S.DRAINING, stop, then(DRAINING, no_more_tasks, done("shutdown", Outcome.DEFERRED)), "Rule 5: closed by the send() that is under way"),
    Row("S49", S.DRAINING, "leave", always, SAME, keep, [done("shutdown", Outcome.DEFERRED)], "Rule 5"),
    Row("S50", S.ABORTED, "leave", always, S.CLOSED, keep, [release, hang_up, done("shutdown", Outcome.OK)], "Rule 6: the verdict stays"),
    Row("S51", S.CLOSED,  "leave", always, SAME, keep, [done("shutdown", Outcome.OK)], "as often as one likes"),
    ],
    ignore=[
    Ignore("link_up", (*UNBORN, *OVER), "nobody is waiting for a link"),
    Ignore("link_up", (S.JOINING, *BOUND), "an attached trainer waits to be opened", ~launched),
    Ignore("link_lost", tuple(S), "Rule 3"),
    Ignore("retry", (*UNBORN, *BOUND, *OVER), "the handshake is over"),
    Ignore("silence", (*UNBORN, *BOUND, *OVER), "the handshake is over"),
    Ignore("hello_accepted", (*UNBORN, *OVER), "nobody is waiting for a session"),
    Ignore("hello_accepted", (S.BINDING, *BOUND), "an answer to another HELLO", ~current),
    Ignore("hello_rejected", (*UNBORN, *OVER), "nobody is waiting for a session"),
    Ignore("hello_rejected", (*OPENING, *BOUND), "another HELLO was meant, or trying again may succeed", ~(current & ~retryable)),
    Ignore("confirmed", (*UNBORN, S.JOINING, *OVER), "nobody is waiting for it"),
    Ignore("confirmed", BOUND, "known already"),
    Ignore("confirmed", S.BINDING, "another session's", ~current),
    Ignore("opened", (S.NEW, S.PASSIVE, S.CLOSED), "nobody is listening"),
    Ignore("message", (*UNBORN, *OPENING, S.CLOSED), "Rule 2: not in a session; the host will say it again"),
    Ignore("message", (*BOUND, S.ABORTED), "another session's: it changes nothing", ~current),
    Ignore("order", (*UNBORN, S.JOINING, S.CLOSED), "there is nothing to end"),
    Ignore("order", (S.BINDING, *BOUND, S.ABORTED), "another session's: it changes nothing", ~current),
    Ignore("log", (*UNBORN, *OPENING, *OVER), "dropped: there is no host to tell"),
    Ignore("settled", S.DRAINING, "another result is still being published or served", busy),
    Ignore("settled", S.READY, "the next task may come", ~(one_shot & ~busy)),
    Ignore("settled", (*UNBORN, *OPENING, *OVER), "Rule 6: the end has come already"),
    Ignore("lost", S.CLOSED, "Rule 6: the first verdict stays"),
    Ignore("init_cancelled", (*UNBORN, *BOUND, *OVER), "init() has returned"),
    Ignore("init_cancelled", OPENING, "an earlier caller gave up, not this one", waited_for),
    ],
    refuse=[
    Refuse("init", OPENING, "init() is already under way in another thread"),
    Refuse("hello_accepted", S.JOINING, "an attached trainer says no HELLO, so there is nothing to accept", ~launched),
    Refuse("opened", S.JOINING, "a launched trainer says HELLO; it is not opened", launched),
    Refuse("opened", S.BINDING, "a launched trainer says HELLO; it is not opened"),
    Refuse("opened", (*BOUND, S.ABORTED), "a launched trainer says HELLO; it is not opened", launched),
    Refuse("shutdown", (*UNBORN, S.JOINING, S.CLOSED), "the gate lets no order through here"),
    Refuse("abort", (*UNBORN, S.JOINING, S.CLOSED), "the gate lets no order through here"),
    ],
)
# fmt: on
