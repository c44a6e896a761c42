"""What a party must answer, in the step in which it is asked, and what it says of its calls."""

from __future__ import annotations

from typing import Any

from troth.models.worlds.protocol.watched import Seen
from troth.models.worlds.protocol.watching_trainer import HEARS, of_session
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines.shared.calls import kind_of
from troth.statemachines.shared.source import LIVE, SourceState
from troth.statemachines.trainer.ledger import ACCEPTED, TERMINAL, UNPUBLISHED, LedgerState
from troth.statemachines.trainer.publication import BUSY, OPEN, PublicationState
from troth.statemachines.trainer.states import OUTCOMES, TrainerSessionState

S, K, N, O = TrainerSessionState, LedgerState, PublicationState, SourceState  # noqa: E741 - as the rows are named

ABOUT_TASKS = (m.TaskAccepted, m.TaskReserved, m.TaskUnknown, m.TaskFailed, m.TaskCancelled)


def trainer_unanswered(seen: Seen) -> bool:
    """A question, offer or cancel of the session has exactly one answer, and the answer is what is so afterwards."""
    said = seen.message
    if not of_session(seen) or seen.before.session.state not in HEARS:
        return False
    match said:
        case m.TaskReady():
            return _offer_unanswered(seen, said)
        case m.TaskStatus():
            answers = seen.sent(*ABOUT_TASKS)
            return len(answers) != 1 or not _told_right(seen, said.seq, answers[0])
        case m.CancelTask():
            return _cancel_unanswered(seen, said)
    return False


def _offer_unanswered(seen: Seen, said: m.TaskReady) -> bool:
    answers, fetched = seen.sent(*ABOUT_TASKS), seen.sent(m.FetchPayload)
    if len(answers) + len(fetched) != 1:
        return True
    if not answers:
        return not _reserved_right(seen, said, fetched[0])
    # Where the offer is heard, what becomes of the payload is said of the last one that was.
    unheard = isinstance(answers[0], m.TaskReserved) and seen.after.ledger[said.seq].data.attempt < said.attempt
    return unheard or not _told_right(seen, said.seq, answers[0])


def _cancel_unanswered(seen: Seen, said: m.CancelTask) -> bool:
    gone = seen.after.ledger[said.seq].state not in (*UNPUBLISHED, K.PUBLISHING)
    return [(type(one), one.seq) for one in seen.sent(*ABOUT_TASKS)] != [(m.TaskCancelled, said.seq)] or not gone


def _unfenced(seen: Seen) -> bool:
    """A cancel fences what is below it, and is noted as a fence."""
    said = seen.message
    if not isinstance(said, m.CancelTask) or not of_session(seen) or seen.before.session.state not in HEARS:
        return False
    fenced = not any(key < said.seq and slot.state in UNPUBLISHED for key, slot in seen.after.ledger.items())
    return not fenced or seen.after.intake.data.floor < said.seq


def _told_right(seen: Seen, seq: int, answer: Any) -> bool:
    """The answer is about this task, and says what the ledger says of it."""
    state = seen.after.ledger[seq].state
    if answer.seq != seq:
        return False
    match answer:
        case m.TaskAccepted():
            return state in ACCEPTED
        case m.TaskReserved():
            return state is K.RESERVED
        case m.TaskUnknown():
            return state is K.ABSENT
        case m.TaskFailed():
            return _failed_right(seen, seq, answer)
    return False


def _failed_right(seen: Seen, seq: int, answer: m.TaskFailed) -> bool:
    """TASK_FAILED has a reason that is true."""
    state, offer = seen.after.ledger[seq].state, seen.message
    open_ = seen.after.session.state is S.READY
    answered = isinstance(offer, m.TaskReady) and answer.attempt == offer.attempt
    match answer.reason:
        case m.FailReason.CANCELLED:
            return state is K.CANCELLED and (answered or answer.attempt == 0)
        case m.FailReason.ENDED:
            return state is K.ABSENT and not open_ and answered
        case m.FailReason.MISMATCH:
            return isinstance(offer, m.TaskReady) and offer.content > 0 and answered
        case m.FailReason.BUSY:
            full = len(seen.after.ledger) >= seen.after.config.limits.ledger_limit and not seen.after.ledger.count(*TERMINAL)
            return state is K.ABSENT and open_ and answered and full
        case m.FailReason.STALE:
            intake = seen.before.intake.data
            return state is K.ABSENT and open_ and answered and not (seq > intake.highest and seq > intake.evicted)
    return False


def _reserved_right(seen: Seen, offer: m.TaskReady, fetch: m.FetchPayload) -> bool:
    """What is fetched is what was offered, and is noted as such."""
    slot = seen.after.ledger[offer.seq]
    noted = slot.state is K.RESERVED and (slot.data.attempt, slot.data.receivers) == (offer.attempt, offer.receivers)
    return noted and (fetch.seq, fetch.inline, fetch.epoch) == (offer.seq, offer.inline, offer.epoch)


def payload_unsaid(seen: Seen) -> bool:
    """A payload that came, or did not, is told to the host; and one that nobody needs any more is dropped."""
    said = seen.message
    if isinstance(said, m.PayloadArrived | m.PayloadLost) and of_session(seen) and seen.before.session.state in HEARS:
        before = seen.before.ledger[said.seq]
        if before.state is not K.RESERVED:
            return bool(seen.sent(*ABOUT_TASKS))
        if isinstance(said, m.PayloadArrived):
            return [one.seq for one in seen.sent(m.TaskAccepted)] != [said.seq]
        failed = [(one.seq, one.attempt, one.reason) for one in seen.sent(m.TaskFailed)]
        return failed != [(said.seq, before.data.attempt, m.FailReason.PAYLOAD)]
    dropped = {one.seq for one in seen.sent(m.DropPayload)}
    still = {key for key, slot in seen.before.ledger.items() if slot.state is K.RESERVED} - {
        key for key, slot in seen.after.ledger.items() if slot.state is K.RESERVED
    }
    return dropped != still


def forgotten_early(seen: Seen) -> bool:
    """A task was forgotten before it was over, or a mark went back."""
    if (
        seen.before.session.data.epoch != seen.after.session.data.epoch
        or seen.before.session.data.instance != seen.after.session.data.instance
    ):
        return False
    gone = [key for key, slot in seen.before.ledger.items() if key not in seen.after.ledger and slot.state not in TERMINAL]
    if isinstance(seen.message, m.TaskReady):
        gone = [key for key in gone if key >= seen.message.floor]  # what is fenced is over, and may be evicted at once
    unkept = [key for key in seen.before.publication if key not in seen.after.publication and key in seen.after.ledger]
    lost = [seen.message.seq] if isinstance(seen.message, m.PayloadLost) else []
    old, new = seen.before.intake.data, seen.after.intake.data
    back = new.highest < old.highest or new.evicted < old.evicted or new.floor < old.floor
    return gone not in ([], lost) or back or unkept != []


def second_chance(memory: Any, seen: Seen) -> Any:
    """A task whose payload did not come, and that nothing has passed, fenced or cancelled since, is taken in when it is offered again.

    (epoch, the one that has a second chance): by what came, not by what the intake notes.
    """
    if memory == "broken":
        return memory
    now = seen.after.session.data.epoch
    said, second = seen.message, memory[1] if memory[0] == now else 0
    mine = of_session(seen) and seen.before.session.state is S.READY
    if mine and isinstance(said, m.TaskReady) and said.seq == second == said.floor and said.content == 0:
        full = len(seen.before.ledger) >= seen.before.config.limits.ledger_limit and not seen.before.ledger.count(*TERMINAL)
        if not full and seen.after.ledger[second].state is not K.RESERVED:
            return "broken"
    if isinstance(said, m.CancelTask) and of_session(seen) and said.seq >= second:
        second = 0
    if isinstance(said, m.TaskReady) and of_session(seen) and said.floor > second:
        second = 0
    if seen.became("ledger", K.RESERVED):
        second = 0
    if isinstance(said, m.PayloadLost) and of_session(seen) and seen.before.ledger[said.seq].state is K.RESERVED:
        second = said.seq if said.seq == seen.before.intake.data.highest else second
    return now, second


def told_wrong(seen: Seen) -> bool:
    """A call of the trainer's user returns with what is so; and only a caller who is told gets a task."""
    call = seen.event
    if isinstance(call, c.Called) and call.call == "take" and len(seen.resolved("take")) != 1:
        return True
    if isinstance(call, c.CallCancelled) and any(s.state is K.HANDED and s.data.number == call.number for s in seen.after.ledger.values()):
        return True
    if isinstance(call, c.CallCancelled) and not _cancelled_right(seen, call):
        return True
    handed = [(k, seen.after.ledger[k].data.number) for k in seen.became("ledger", K.HANDED)]
    told = [(e.value, e.number) for e in seen.resolved("receive") if e.outcome is m.Outcome.TASK]
    mine = (
        isinstance(call, c.Called)
        and call.call == "take"
        and any(s.state is K.HANDED and s.data.number == call.number for s in seen.before.ledger.values())
    )
    if mine and not seen.became("ledger", K.DELIVERED):
        return True
    if isinstance(call, c.Called) and call.call == "send" and call.payload.content > 0:
        known = seen.before.publication[seen.before.intake.data.current].state in (*BUSY, N.SETTLED)
        if known and [effect.outcome for effect in seen.resolved("send")] != [m.Outcome.CONFLICT]:
            return True
    return not set(handed) <= set(told) or any(not _said_right(seen, effect) for effect in seen.effects if isinstance(effect, c.Resolve))


def _cancelled_right(seen: Seen, call: c.CallCancelled) -> bool:
    """Whoever gives up waiting returns at once."""
    mine = [k for k, slot in seen.before.calls.items() if kind_of(k) == call.call and slot.data.number == call.number]
    told = [effect.outcome for effect in seen.resolved(call.call) if effect.number == call.number]
    return told == [m.Outcome.CANCELLED] * len(mine)


def _said_right(seen: Seen, effect: c.Resolve) -> bool:
    if effect.outcome in OUTCOMES.values() and effect.outcome is not m.Outcome.CLOSED and effect.call != "shutdown":
        return OUTCOMES[seen.after.session.data.verdict] is effect.outcome
    match effect.call:
        case "receive" | "take":
            return _received_right(seen, effect)
        case "send":
            return _sent_right(seen, effect)
    return True


def _received_right(seen: Seen, effect: c.Resolve) -> bool:
    ledger, intake = seen.after.ledger, seen.after.intake.data
    if effect.outcome is m.Outcome.NOTHING:
        mine = [s for s in seen.before.ledger.values() if s.state is K.HANDED and s.data.number == effect.number]
        return effect.call == "take" and not mine and ledger[intake.current].state is not K.DELIVERED
    if effect.outcome is not m.Outcome.TASK:
        return effect.outcome is m.Outcome.CANCELLED
    slot = ledger[effect.value]
    if effect.call == "take":
        return slot.state is K.DELIVERED and intake.current == effect.value
    again = slot.state is K.DELIVERED and intake.current == effect.value
    return again or (slot.state is K.HANDED and slot.data.number == effect.number)


def _sent_right(seen: Seen, effect: c.Resolve) -> bool:
    seq, now, was = effect.value, seen.after.publication[effect.value], seen.before.publication[effect.value]
    right = False
    match effect.outcome:
        case m.Outcome.ACCEPTED | m.Outcome.UNDELIVERED:
            known = now if now.state is N.SETTLED else was
            right = known.state in (N.SETTLED, N.SETTLING) and known.data.delivered == (effect.outcome is m.Outcome.ACCEPTED)
        case m.Outcome.REJECTED:
            right = now.state is N.REJECTED
        case m.Outcome.CONFLICT:
            right = now.state in (*BUSY, N.SETTLED) and isinstance(seen.event, c.Called) and seen.event.payload.content > 0
        case m.Outcome.SUPERSEDED:
            right = seen.after.intake.data.superseded and (seq == 0 or was.state in (*OPEN, N.ACCEPTED))
        case m.Outcome.CANCELLED:
            given_up = isinstance(seen.event, c.CallCancelled) and seen.event.number == effect.number
            right = given_up or (_revoked(seen, seq) and not _ended_with_session(seen, now))
    return right


def _revoked(seen: Seen, seq: int) -> bool:
    """The host gave the task up."""
    return seq > 0 and seen.after.ledger[seq].state in (K.CANCELLED, K.ABSENT)


def _ended_with_session(seen: Seen, now: Any) -> bool:
    """It was the end of the session that cancelled the result, and that is what is said."""
    ended = seen.after.session.state is S.ABORTED and seen.before.session.state is not S.ABORTED
    return ended or bool(now.state is N.CANCELLED and now.data.aborted)


def source_unanswered(seen: Seen) -> bool:
    """A receiver that says that it holds the payload is told that it may be let go; one whose source goes away is told that."""
    said = seen.message
    if isinstance(said, m.PayloadHeld) and of_session(seen) and seen.before.session.state in HEARS:
        told = [(one.seq, one.receiver) for one in seen.sent(m.PayloadReleased)]
        if told != [(said.seq, said.receiver)]:
            return True
    live = (SourceState.OFFERED, SourceState.MOVING)
    ended = {k for k, s in seen.before.source.items() if s.state in live and seen.after.source[k].state not in live}
    held = {(said.seq, said.receiver)} if isinstance(said, m.PayloadHeld | m.PayloadAbandoned) else set()
    gone = {(one.seq, one.receiver) for one in seen.sent(m.PayloadGone)}
    released = {e.key for e in seen.effects if isinstance(e, c.Release)}
    begun = {k for k, s in seen.after.source.items() if s.state in live and seen.before.source[k].state not in live}
    offered = {e.key for e in seen.effects if isinstance(e, c.Offer)}
    return gone != ended - held or released != ended or offered != begun


def publishes_wrong(seen: Seen) -> bool:
    """What goes out about a result is what is so: one message for every send() that is taken, every UNKNOWN and every timer."""
    out = [*seen.sent(m.ResultReady, m.ResultStatus, m.ResultSourceSettled)]
    limit = seen.after.config.limits.result_attempts
    for one in out:
        data = seen.after.publication[one.seq].data
        match one:
            case m.ResultReady():
                right = (one.attempt, one.inline, one.content) == (data.attempt, data.inline, 0)
            case m.ResultStatus():
                right = (one.attempt, one.last) == (data.attempt, data.attempt >= limit)
            case _:
                right = one.delivered == data.delivered
        if not right:
            return True
    for key in seen.became("publication", N.SETTLING):
        held = all(slot.state is O.HELD for place, slot in seen.after.source.items() if place[0] == key)
        if seen.after.publication[key].data.delivered != held:
            return True
    kinds = {N.SENDING: m.ResultReady, N.ASKING: m.ResultStatus, N.SETTLING: m.ResultSourceSettled}
    moved = [key for key, slot in seen.after.publication.items() if slot != seen.before.publication[key] and slot.state in kinds]
    opened = isinstance(seen.message, m.HelloAccepted) or bool(seen.sent(m.SessionAccepted))
    resumed = opened and of_session(seen) and seen.before.session == seen.after.session
    if resumed:
        moved = [key for key, slot in seen.after.publication.items() if slot.state in kinds]
    if isinstance(seen.event, c.TimerFired) and seen.event.timer == "result":
        moved = [seen.event.key] if seen.after.publication[seen.event.key].state in kinds else []
        if seen.after.publication[seen.event.key].state is N.SENDING:
            return True  # an answer that did not come is asked for, before anything is sent again
    return sorted((one.seq, type(one).__name__) for one in out) != sorted(
        (key, kinds[seen.after.publication[key].state].__name__) for key in moved
    )


def deaf(seen: Seen) -> bool:
    """What the host says of a result is taken in; what happens to a source is noted; and an abort ends every result."""
    if seen.after.session.state is S.ABORTED and seen.before.session.state is not S.ABORTED:
        ended = [seen.after.publication[k] for k, slot in seen.before.publication.items() if slot.state in (*OPEN, N.ACCEPTED)]
        return any(slot.state is not N.CANCELLED or not slot.data.aborted for slot in ended)
    return _unfenced(seen) or _host_unheard(seen) or _receiver_unheard(seen) or _source_unmoved(seen)


def _host_unheard(seen: Seen) -> bool:
    said = seen.message
    if not of_session(seen) or seen.before.session.state not in HEARS or not isinstance(said, m.TaskMessage):
        return False
    before, after = (view.publication[said.seq] for view in (seen.before, seen.after))
    wrong = False
    match said:
        case m.ResultAccepted():
            wrong = before.state in OPEN and after.state not in (N.ACCEPTED, N.SETTLING)
        case m.ResultRejected():
            wrong = before.state in OPEN and after.state is not N.REJECTED
        case m.ResultSourceReleased():
            wrong = before.state is N.SETTLING and after.state is not N.SETTLED
        case m.ResultUnknown():
            asking = before.state is N.ASKING
            again = asking and after.state is N.SENDING and after.data.attempt == before.data.attempt + 1
            wrong = (asking and said.attempt == before.data.attempt) != again
    return wrong


def _receiver_unheard(seen: Seen) -> bool:
    said = seen.message
    if not of_session(seen) or seen.before.session.state not in HEARS or not isinstance(said, m.PayloadHeld | m.PayloadAbandoned):
        return False
    was, now = (view.source[said.seq, said.receiver].state for view in (seen.before, seen.after))
    if isinstance(said, m.PayloadAbandoned):
        return now in LIVE
    return was is not O.ABSENT and now not in (O.HELD, O.ABSENT)


def _source_unmoved(seen: Seen) -> bool:
    event, wrong = seen.event, False
    match event:
        case c.TransferProgressed(kind="result") | c.TransferEnded(kind="result"):
            was, now = seen.before.source[event.key].state, seen.after.source[event.key].state
            wanted = O.MOVING if isinstance(event, c.TransferProgressed) else O.OFFERED
            wrong = now is not (wanted if was in LIVE else was)
        case c.EffectFailed(effect=c.Offer(key=key)):
            wrong = seen.after.source[key].state in LIVE
        case c.TimerFired(timer="source"):
            was, now = seen.before.source[event.key].state, seen.after.source[event.key].state
            wrong = now is not O.OFFERED if was is O.MOVING else was is O.OFFERED and now is O.OFFERED
    return wrong


def _failed_by_itself(event: c.Event, key: Any) -> bool:
    """The source could not be offered, or its receiver did not come."""
    match event:
        case c.EffectFailed(effect=c.Offer(key=of)) | c.TimerFired(timer="source", key=of):
            return bool(of == key)
    return False


def sources_jump(seen: Seen) -> bool:
    """A source is held only because its receiver said so, and fails only because it gave up, did not come, or cannot be served."""
    said, event = seen.message, seen.event
    for key in {*seen.before.source, *seen.after.source}:
        before, after = seen.before.source[key].state, seen.after.source[key].state
        if after is before:
            continue
        mine = isinstance(said, m.PayloadMessage) and (said.seq, said.receiver) == key
        if after is O.MOVING and not isinstance(event, c.TransferProgressed):
            return True
        if after is O.HELD and not (mine and isinstance(said, m.PayloadHeld)):
            return True
        if after is O.FAILED and not (mine and isinstance(said, m.PayloadAbandoned)) and not _failed_by_itself(event, key):
            return True
    return False
