"""What a host must say in the step in which it has reason to: to its trainer, to the receivers, to whoever asked for a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from troth.models.worlds.protocol.watched import Seen
from troth.models.worlds.protocol.watching_trainer import of_session
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines.host.acceptance import TAKEN, AcceptanceState
from troth.statemachines.host.delivery import ACTIVE, OFFERED, UNANSWERED, DeliveryState
from troth.statemachines.host.session import LIVE
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.source import LIVE as SERVED
from troth.statemachines.shared.source import SourceState

D, A, H, O = DeliveryState, AcceptanceState, HostSessionState, SourceState  # noqa: E741 - as the rows are named
OUTCOME = m.TaskOutcome


def resumes(seen: Seen) -> bool:
    """The trainer is back in the session that it was in."""
    said, was = seen.message, seen.before.session
    if was.state not in BOUND or not isinstance(said, m.Hello | m.SessionAccepted) or said.epoch != was.data.epoch:
        return False
    return isinstance(said, m.SessionAccepted) or said.claim is m.Claim.MATCHING


def hears(seen: Seen) -> bool:
    """The event is a message of the session that the host is in."""
    return of_session(seen) and seen.before.session.state in LIVE


def result_unanswered(seen: Seen) -> bool:
    """A result, a question about one and a settlement have one answer each, and it is what is so."""
    said = seen.message
    answers = seen.sent(m.ResultAccepted, m.ResultRejected, m.ResultUnknown, m.ResultSourceReleased)
    if not hears(seen) or not isinstance(said, m.ResultReady | m.ResultStatus | m.ResultSourceSettled):
        return bool(answers)
    before, after = (view.acceptance[said.seq] for view in (seen.before, seen.after))
    if isinstance(said, m.ResultSourceSettled):
        return [type(one) for one in answers] != [m.ResultSourceReleased] or answers[0].seq != said.seq
    if isinstance(said, m.ResultReady) and before.state is A.AWAITING and said.attempt <= before.data.fenced:
        return answers != [] or after != before
    if len(answers) != 1 or answers[0].seq != said.seq:
        return True
    return not _decided_right(said, answers[0], before, after)


def _decided_right(said: Any, answer: Any, before: Any, after: Any) -> bool:
    match answer:
        case m.ResultAccepted():
            same = isinstance(said, m.ResultStatus) or said.content == after.data.content
            return after.state in TAKEN and answer.attempt == after.data.canonical and same
        case m.ResultUnknown():
            fresh = isinstance(said, m.ResultStatus) and not said.last and answer.attempt == said.attempt
            return fresh and after.state is A.AWAITING and after.data.fenced >= said.attempt
        case m.ResultRejected(reason=m.RejectReason.CONFLICT):
            return after == before and after.state in TAKEN and said.content != after.data.content
        case m.ResultRejected(reason=m.RejectReason.STALE):
            return after.state is A.ABSENT
        case m.ResultRejected():
            exhausts = isinstance(said, m.ResultStatus) and said.last and before.state is A.AWAITING
            known = after.state is A.REJECTED and (before.state is A.REJECTED or exhausts)
            return (
                known
                and answer.reason is after.data.reason
                and (exhausts is (answer.reason is m.RejectReason.EXHAUSTED) or after == before)
            )
    return False


def receivers_untold(seen: Seen) -> bool:
    """Receivers are told to fetch what is accepted and not here; of a loss, and that it is one; to stop, when it is given up."""
    fetch = [one.seq for one in seen.sent(m.FetchPayload)]
    drops = sorted((one.seq, one.lost) for one in seen.sent(m.DropPayload))
    accepted, lost, retired = (seen.became("acceptance", state) for state in (A.ACCEPTED, A.LOST, A.RETIRED))
    told = sorted([(key, True) for key in lost] + [(key, False) for key in retired])
    return fetch != accepted or drops != told or len(seen.sent(m.ResultLost)) != len(lost)


def trainer_untold(seen: Seen) -> bool:
    """An offer goes out for every attempt, a question for every silence, a cancel when the task is given up and for every silence after."""
    before, after = seen.before.delivery, seen.after.delivery
    # A session that is resumed is asked again what was unanswered, as after a silence.
    fired = (isinstance(seen.event, c.TimerFired) and seen.event.timer == "task") or resumes(seen)
    offers, asks, cancels = (seen.sent(kind) for kind in (m.TaskReady, m.TaskStatus, m.CancelTask))
    offered = after.state is D.OFFERING and (after.data != before.data or before.state is not D.OFFERING)
    if len(offers) != int(offered):
        return True
    for one in offers:
        data = after.data
        mine = (one.seq, one.attempt, one.floor, one.content, one.receivers, one.inline)
        if mine != (data.seq, data.attempt, data.seq, 0, data.receivers, data.inline):
            return True
        kept = seen.after.source[data.seq, 0].state in (*SERVED, O.HELD)
        if before.state is not D.DEFERRED and not (data.inline or kept):
            return True
    given_up = after.state is D.CANCELLING and before.state is not D.CANCELLING
    asking = fired and before.state in OFFERED
    nagging = fired and before.state is D.CANCELLING
    if asks and after.state is not D.ASKING:
        return True
    wrong = [one.seq for one in (*asks, *cancels) if one.seq != before.data.seq]
    return bool(wrong) or len(asks) != int(asking) or len(cancels) != int(given_up or nagging)


def asker_untold(seen: Seen) -> bool:
    """Whoever asked for a task is told its outcome once, when it is decided, and the outcome is true."""
    told = [one.outcome for one in seen.sent(m.TaskEnded)]
    before, after = seen.before.delivery, seen.after.delivery
    if isinstance(seen.message, m.ExecuteTask) and after.state is D.OFFERING:
        wanted = (seen.message.receivers, seen.message.inline)
        noted = seen.after.acceptance[after.data.seq].data.receivers, after.data.inline
        return told != [] or noted != wanted
    if isinstance(seen.message, m.ExecuteTask):
        return len(told) != 1 or told[0] is OUTCOME.RESULT
    over = before.state in ACTIVE and after.state not in ACTIVE
    return len(told) != int(over) or (over and not _true(seen, told[0])) or (not over and _fetched(seen))


def _fetched(seen: Seen) -> bool:
    """The host's own receiver has the payload that the asker waits for, or will not get it."""
    said, out = seen.message, seen.before.delivery
    if not isinstance(said, m.PayloadArrived | m.PayloadLost) or not hears(seen):
        return False
    return out.state is D.FETCHING and (said.seq, said.receiver) == (out.data.seq, 0)


def _true(seen: Seen, outcome: m.TaskOutcome) -> bool:
    """What the asker is told of its task is so."""
    was, now = (view.acceptance[seen.before.delivery.data.seq].state for view in (seen.before, seen.after))
    ends = {OUTCOME.ABORTED: m.Verdict.ABORTED, OUTCOME.TRAINER_LOST: m.Verdict.LOST}
    if outcome is OUTCOME.RESULT:
        here = isinstance(seen.message, m.PayloadArrived) or now in (A.SAFE, A.SETTLED)
        return here or (now in TAKEN and not seen.before.config.receives)
    if outcome in ends or outcome is OUTCOME.SESSION_OVER:
        over = seen.before.session.state in BOUND and seen.after.session.state not in BOUND
        verdict = seen.after.session.data.verdict
        return over and (verdict is ends[outcome] if outcome in ends else verdict not in ends.values())
    return outcome is OUTCOME.RESULT_LOST or was not in TAKEN or (outcome is OUTCOME.CANCELLED and isinstance(seen.message, m.StopTask))


def asker_misled(seen: Seen) -> bool:
    """What a task comes to is what happened to it, case by case."""
    told = [one.outcome for one in seen.sent(m.TaskEnded)]
    if isinstance(seen.message, m.ExecuteTask):
        return any(outcome not in _not_begun(seen) for outcome in told)
    return any(outcome not in _why(seen) for outcome in told)


def _not_begun(seen: Seen) -> set[m.TaskOutcome]:
    if seen.before.session.state is H.READY:
        return {OUTCOME.REFUSED}
    return {_by_verdict(seen)}


def _by_verdict(seen: Seen) -> m.TaskOutcome:
    ends = {m.Verdict.ABORTED: OUTCOME.ABORTED, m.Verdict.LOST: OUTCOME.TRAINER_LOST}
    return ends.get(seen.after.session.data.verdict, OUTCOME.SESSION_OVER)


def _why(seen: Seen) -> set[m.TaskOutcome]:
    said, event = seen.message, seen.event
    if seen.before.session.state is not seen.after.session.state:
        return {_by_verdict(seen)}
    found: set[m.TaskOutcome] = set()
    match said:
        case m.ResultReady():
            here = said.inline or not seen.before.config.receives
            found = {OUTCOME.RESULT} if here and seen.after.acceptance[said.seq].state in TAKEN else set()
        case m.PayloadArrived():
            found = {OUTCOME.RESULT}
        case m.ResultStatus() | m.PayloadLost():
            found = {OUTCOME.RESULT_LOST}
        case m.StopTask():
            found = {OUTCOME.CANCELLED}
        case m.TaskUnknown():
            found = {OUTCOME.UNDELIVERED}
        case m.TaskFailed():
            found = {OUTCOME.UNDELIVERED} if said.reason is m.FailReason.PAYLOAD else {OUTCOME.REFUSED}
        case None if isinstance(event, c.TimerFired) and event.timer == "budget":
            found = {OUTCOME.TIMEOUT} if seen.before.delivery.state is D.WAITING else {OUTCOME.UNDELIVERED}
    return found


BOUND = (H.READY, H.DRAINING)
LOSES = {A.AWAITING: (A.REJECTED, m.RejectReason.CANCELLED), A.ACCEPTED: (A.LOST, None), A.SAFE: (A.SETTLED, None)}
DROPS = {A.AWAITING: (A.REJECTED, m.RejectReason.CANCELLED), A.ACCEPTED: (A.RETIRED, None), A.SAFE: (A.SAFE, None)}
"""What becomes of a result when its session ends: by a loss or a close, and by an abort."""


def _ended_wrongly(seen: Seen) -> bool:
    aborted = seen.after.session.state is H.ABORTING
    for key, slot in seen.before.acceptance.items():
        wanted = (DROPS if aborted else LOSES).get(slot.state)
        now = seen.after.acceptance[key]
        if wanted is not None and (now.state is not wanted[0] or (wanted[1] is not None and now.data.reason is not wanted[1])):
            return True
    return False


def deaf(seen: Seen) -> bool:
    """What the trainer says of its task or its result is taken in, if it is of this task and attempt; and so is the session's end."""
    if seen.before.session.state in BOUND and seen.after.session.state not in BOUND:
        return _ended_wrongly(seen)
    said = seen.message
    if not isinstance(said, m.TaskMessage) or (isinstance(said, m.ResultReady | m.ResultStatus)):
        return False
    before, after = seen.before.delivery, seen.after.delivery
    mine = hears(seen) and said.seq == before.data.seq
    expected = WANTED.get(type(said))
    if expected is not None:
        wanted = expected(seen) if mine else None
        return (after.state, after.data.attempt) != (wanted or (before.state, before.data.attempt))
    if isinstance(said, m.ResultSourceSettled) and hears(seen):
        was, now = seen.before.acceptance[said.seq].state, seen.after.acceptance[said.seq].state
        return now is not {A.ACCEPTED: A.SETTLED if said.delivered else A.LOST, A.SAFE: A.SETTLED}.get(was, was)
    if isinstance(said, m.PayloadArrived | m.PayloadLost) and hears(seen) and before.state is D.FETCHING:
        own = mine and said.receiver == 0
        was, now = seen.before.acceptance[said.seq], seen.after.acceptance[said.seq]
        sole = own and isinstance(said, m.PayloadArrived) and was.state is A.ACCEPTED and was.data.receivers == 1
        return own != (after.state is D.IDLE) or now.state is not (A.SAFE if sole else was.state)
    return False


def _again(seen: Seen) -> tuple[DeliveryState, int]:
    """Another attempt, if there is one left."""
    data = seen.before.delivery.data
    left = data.attempt < seen.before.config.limits.task_attempts
    # Where nothing is offered any more the attempt is forgotten.
    return (D.OFFERING, data.attempt + 1) if left else (D.CANCELLING, seen.after.delivery.data.attempt)


def _accepted(seen: Seen) -> tuple[DeliveryState, int] | None:
    return (D.WAITING, seen.after.delivery.data.attempt) if seen.before.delivery.state in UNANSWERED else None


def _reserved(seen: Seen) -> tuple[DeliveryState, int] | None:
    return (D.ASKING, seen.before.delivery.data.attempt) if seen.before.delivery.state in UNANSWERED else None


def _unknown(seen: Seen) -> tuple[DeliveryState, int] | None:
    return _again(seen) if seen.before.delivery.state is D.ASKING else None


def _failed(seen: Seen) -> tuple[DeliveryState, int] | None:
    said, before = seen.message, seen.before.delivery
    if not isinstance(said, m.TaskFailed) or before.state not in UNANSWERED:
        return None
    this = said.attempt == before.data.attempt
    if said.reason is m.FailReason.PAYLOAD:
        return _again(seen) if this else None
    if said.reason is m.FailReason.BUSY:
        return (D.DEFERRED, before.data.attempt) if this else None
    return D.IDLE, seen.after.delivery.data.attempt


def _cancelled(seen: Seen) -> tuple[DeliveryState, int] | None:
    return (D.IDLE, seen.after.delivery.data.attempt) if seen.before.delivery.state is D.CANCELLING else None


WANTED: dict[type, Callable[[Seen], tuple[DeliveryState, int] | None]] = {
    m.TaskAccepted: _accepted,
    m.TaskReserved: _reserved,
    m.TaskUnknown: _unknown,
    m.TaskFailed: _failed,
    m.TaskCancelled: _cancelled,
}


def source_unanswered(seen: Seen) -> bool:
    """A trainer that holds a task's payload is told that it may be let go; one that is still fetching is told when it goes away."""
    said = seen.message
    held = isinstance(said, m.PayloadHeld) and hears(seen)
    if isinstance(said, m.PayloadHeld) and held:
        released = [(one.seq, one.receiver) for one in seen.sent(m.PayloadReleased)]
        now = seen.after.source[said.seq, said.receiver].state
        if released != [(said.seq, said.receiver)] or now not in (O.HELD, O.ABSENT):
            return True
    began = {k for k, s in seen.after.source.items() if s.state in SERVED and seen.before.source[k].state not in SERVED}
    ended = {k for k, s in seen.before.source.items() if s.state in SERVED and seen.after.source[k].state not in SERVED}
    gone = {(one.seq, one.receiver) for one in seen.sent(m.PayloadGone)}
    offered = {effect.key for effect in seen.effects if isinstance(effect, c.Offer)}
    let_go = {effect.key for effect in seen.effects if isinstance(effect, c.Release)}
    mine = {(said.seq, said.receiver)} if isinstance(said, m.PayloadHeld) else set()
    return gone != ended - mine or offered != began or let_go != ended


def source_deaf(seen: Seen) -> bool:
    """A source moves as its bytes do, fails only if it cannot be offered, and is held only because its receiver says so."""
    event, said = seen.event, seen.message
    for key in {*seen.before.source, *seen.after.source}:
        was, now = seen.before.source[key].state, seen.after.source[key].state
        wanted = was
        if isinstance(event, c.TransferProgressed) and (event.kind, event.key) == ("task", key) and was in SERVED:
            wanted = O.MOVING
        elif isinstance(event, c.TransferEnded) and (event.kind, event.key) == ("task", key) and was in SERVED:
            wanted = O.OFFERED
        elif isinstance(event, c.TimerFired) and (event.timer, event.key) == ("source", key):
            wanted = O.OFFERED if was is O.MOVING else was
        elif isinstance(event, c.EffectFailed) and isinstance(event.effect, c.Offer) and event.effect.key == key and was in SERVED:
            wanted = O.FAILED
        elif isinstance(said, m.PayloadHeld) and hears(seen) and (said.seq, said.receiver) == key and was is not O.ABSENT:
            wanted = O.HELD
        elif now is O.ABSENT or now is O.OFFERED:
            continue  # offered by the delivery, or let go: what the delivery has is said elsewhere
        if now is not wanted:
            return True
    return False
