"""What is watched of a trainer: one watch a property that speaks of its steps, or of its past."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from troth.models.worlds.protocol.watched import Seen, Watch, answers, broken, never
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.views import View
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.shared.source import LIVE as SERVED
from troth.statemachines.shared.words import CONTROL
from troth.statemachines.trainer.ledger import ACCEPTED, TERMINAL, UNPUBLISHED, LedgerState
from troth.statemachines.trainer.publication import BUSY, PublicationState
from troth.statemachines.trainer.states import TrainerSessionState as S

OVER = (S.ABORTED, S.CLOSED)
HEARS = (S.READY, S.DRAINING, S.ABORTED)
"""Where a trainer takes messages of its session. Before, it passes over them as if they had been lost: Rule 2 of its session."""
DOUBTING = (LeaseState.SUSPECT, LeaseState.UNRESPONSIVE)
OPENING = (m.HelloAccepted, m.SessionOpen, m.Hello, m.SessionRejected, m.HelloRejected)
"""Messages that may name another epoch than the session's own."""
HANDSHAKE = (*OPENING, m.SessionReady, m.SessionConfirmed, m.SessionAccepted, m.Abort, m.AbortAccepted, m.SessionClosed)
"""Messages that begin or end a session: what they do to its lease is theirs to say."""
BROKEN = "broken"
TOLD_TAKEN = (m.Outcome.ACCEPTED, m.Outcome.UNDELIVERED)


def epoch_of(seen: Seen) -> int:
    """The session's epoch, after the step."""
    return int(seen.after.session.data.epoch)


Session: TypeAlias = tuple[int, int]
"""What tells a session from every other one: the host instance that opened it, and its epoch. Where both sides were started anew neither
remembers an epoch, and they begin at one again; but the host is another instance then."""


def session_of(view: View) -> Session:
    """The session that a trainer is in."""
    return view.session.data.instance, view.session.data.epoch


def of_session(seen: Seen) -> bool:
    """The event is a message of the session that the party was in."""
    return isinstance(seen.message, m.EpochMessage) and seen.message.epoch == seen.before.session.data.epoch


def queued_late(seen: Seen) -> bool:
    """P02: queued while not ready. A task that is put back was queued before."""
    fresh = [key for key in seen.became("ledger", LedgerState.QUEUED) if seen.before.ledger[key].state is not LedgerState.HANDED]
    return bool(fresh) and seen.before.session.state is not S.READY


def accepted_early(seen: Seen) -> bool:
    """P03: accepted but not queued."""
    return any(seen.after.ledger[said.seq].state not in ACCEPTED for said in seen.sent(m.TaskAccepted))


def verdict_rewritten(seen: Seen) -> bool:
    """P11: the verdict changed, and not from an orderly end that was not over."""
    old, new = seen.before.session.data.verdict, seen.after.session.data.verdict
    if old is new or old is m.Verdict.NONE:
        return False
    return seen.before.session.state in OVER or new not in (m.Verdict.ABORTED, m.Verdict.LOST)


def abort_unheard(seen: Seen) -> bool:
    """P12: an ABORT of this session did not end it."""
    in_session = seen.before.session.state not in (S.NEW, S.PASSIVE, S.JOINING)
    return isinstance(seen.message, m.Abort) and of_session(seen) and in_session and seen.after.session.state not in OVER


def order_cancelled(seen: Seen) -> bool:
    """P13: an orderly end touched a result that was under way, or was over before it."""
    ordered = isinstance(seen.message, m.Shutdown) or (isinstance(seen.event, c.Called) and seen.event.call == "shutdown")
    busy = [key for key, slot in seen.before.publication.items() if slot.state in BUSY]
    cancelled = any(seen.after.publication[key].state not in BUSY for key in busy)
    return ordered and bool(busy) and (cancelled or seen.after.session.state in OVER)


def expired_wrongly(seen: Seen) -> bool:
    """P14: expired by something else than its own timer, or still in doubt after a message of the session."""
    now, was = seen.after.lease.state, seen.before.lease.state
    if now is LeaseState.EXPIRED and was is not LeaseState.EXPIRED:
        return not (isinstance(seen.event, c.TimerFired) and seen.event.timer == "lease" and was in DOUBTING)
    heard = isinstance(seen.event, c.Received) and seen.event.link == CONTROL and of_session(seen)
    return heard and not isinstance(seen.message, HANDSHAKE) and now in DOUBTING


def steered_by_others(seen: Seen) -> bool:
    """P18: a message of another epoch had an effect."""
    foreign = isinstance(seen.message, m.EpochMessage) and not isinstance(seen.message, OPENING) and not of_session(seen)
    return foreign and not (seen.same(seen.before, seen.after) and seen.effects == ())


def lost_with_the_link(seen: Seen) -> bool:
    """P98: the link was lost, and a machine moved."""
    return isinstance(seen.event, c.LinkLost) and not seen.same(seen.before, seen.after)


def bound_late(seen: Seen) -> bool:
    """P25: another epoch after the end began."""
    ending = seen.before.session.state in (S.DRAINING, *OVER)
    return ending and seen.before.session.data.epoch != seen.after.session.data.epoch


def took_other_content(seen: Seen) -> bool:
    """P29: a sequence that was seen with other content had an effect on its entry."""
    said = seen.message
    if not isinstance(said, m.TaskReady) or said.content == 0:
        return False
    return seen.after.ledger[said.seq] != seen.before.ledger[said.seq] and seen.after.ledger[said.seq].state is not LedgerState.CANCELLED


def failed_but_kept(seen: Seen) -> bool:
    """P31: TASK_FAILED of a task that is to be run."""
    failed = [said.seq for said in seen.sent(m.TaskFailed) if said.reason is not m.FailReason.MISMATCH]
    return any(seen.after.ledger[seq].state in UNPUBLISHED for seq in failed)


def replaced(seen: Seen) -> bool:
    """P32: other content moved a publication, or was called accepted."""
    call = seen.event
    if not isinstance(call, c.Called) or call.call != "send" or call.payload.content == 0:
        return False
    seq = seen.before.intake.data.current
    known = seen.before.publication[seq].state is not PublicationState.ABSENT
    told = any(effect.outcome in TOLD_TAKEN and effect.number == call.number for effect in seen.resolved("send"))
    return known and (seen.after.publication[seq] != seen.before.publication[seq] or (told and epoch_of(seen) > 0))


def source_dropped(seen: Seen) -> bool:
    """P35: a source of an accepted result went away while it was being served."""
    accepted = [k for k, slot in seen.after.publication.items() if slot.state is PublicationState.ACCEPTED]
    kept = [k for k in accepted if seen.before.publication[k].state is PublicationState.ACCEPTED]
    return any(k[0] in kept and k not in seen.after.source for k in seen.before.source)


def settled_early(seen: Seen) -> bool:
    """P42: the notice goes out although a receiver is not done."""
    told = {said.seq for said in seen.sent(m.ResultSourceSettled)}
    return any(key[0] in told and slot.state in SERVED for key, slot in seen.after.source.items())


def offered_in_vain(seen: Seen) -> bool:
    """P47: a source of a result that came to nothing."""
    void = (PublicationState.REJECTED, PublicationState.CANCELLED)
    return any(slot.state in SERVED and seen.after.publication[key[0]].state in void for key, slot in seen.after.source.items())


def twice_is_more(seen: Seen) -> bool:
    """P57: the same message once more did something."""
    return seen.from_outside and seen.twice_is_more()


def stirred(seen: Seen) -> bool:
    """P58: something arrived after the end, and moved a machine, touched a timer, or was passed on to somebody else."""
    if not isinstance(seen.event, c.Received) or seen.before.session.state is not S.CLOSED:
        return False
    told = seen.from_outside and not all(map(answers, seen.effects))
    return told or not seen.timers or not seen.same(seen.before, seen.after)


def busy_for_nothing(seen: Seen) -> bool:
    """P60: BUSY although something could have been forgotten."""
    refused = any(said.reason is m.FailReason.BUSY for said in seen.sent(m.TaskFailed))
    return refused and seen.after.ledger.count(*TERMINAL) > 0


def not_put_back(seen: Seen) -> bool:
    """P72: the caller gave up, and the task is neither queued nor another caller's."""
    call = seen.event
    if not isinstance(call, c.CallCancelled) or call.call != "receive":
        return False
    before = [k for k, slot in seen.before.ledger.items() if slot.state is LedgerState.HANDED and slot.data.number == call.number]
    after = [seen.after.ledger[k] for k in before]
    elsewhere = [slot for slot in after if slot.state is LedgerState.HANDED and slot.data.number != call.number]
    return any(slot.state is not LedgerState.QUEUED and slot not in elsewhere for slot in after)


def closed_early(seen: Seen) -> bool:
    """P73: SESSION_CLOSED with something under way."""
    under_way = seen.after.publication.count(*BUSY) + seen.after.source.count(*SERVED)
    return bool(seen.sent(m.SessionClosed)) and under_way > 0


def sent_again_unasked(seen: Seen) -> bool:
    """P77: another attempt without UNKNOWN for the one before."""
    said = seen.message
    for attempt in seen.sent(m.ResultReady):
        answered = isinstance(said, m.ResultUnknown) and (said.seq, said.attempt) == (attempt.seq, attempt.attempt - 1)
        if attempt.attempt > 1 and not answered:
            return True
    return False


def cached_first(seen: Seen) -> bool:
    """P79: the task that the user has, although one waits."""
    asked = isinstance(seen.event, c.Called) and seen.event.call == "receive"
    waits = seen.before.ledger.first(LedgerState.QUEUED)
    told = [effect.value for effect in seen.resolved("receive") if effect.outcome is m.Outcome.TASK]
    return asked and waits is not None and told != [waits]


def kept_the_old(seen: Seen) -> bool:
    """P95: ready, and a session that was opened anew was neither taken nor refused for now only."""
    said, own = seen.message, seen.before.session
    if not isinstance(said, m.SessionOpen) or said.resume or own.state is not S.READY or seen.before.config.launched:
        return False
    if (said.epoch, said.instance) == (own.data.epoch, own.data.instance):
        return False
    if said.epoch > own.data.epoch:
        return bool(seen.after.session.data.epoch != said.epoch)
    return not any(answer.retry for answer in seen.sent(m.SessionRejected))


# -- memories ----------------------------------------------------------------------------------------------------------


def _waiting(view: Any) -> list[tuple[str, int]]:
    return [(str(key).partition("/")[0], slot.data.number) for key, slot in view.calls.items()]


def told_already(memory: Any, seen: Seen) -> Any:
    """P15: who was told already, although the trainer takes them to be waiting still, as (call, number). Logging waits for nothing."""
    if memory == BROKEN:
        return BROKEN
    waiting = [one for one in _waiting(seen.before) if one not in memory]
    if isinstance(seen.event, c.Called) and seen.event.call != "log":
        waiting.append((seen.event.call, seen.event.number))
    for effect in seen.effects:
        if isinstance(effect, c.Resolve):
            if (effect.call, effect.number) not in waiting:
                return BROKEN
            waiting.remove((effect.call, effect.number))
    return tuple(sorted(one for one in _waiting(seen.after) if one not in waiting))


def delivered(memory: Any, seen: Seen) -> Any:
    """P04: which tasks were delivered, as (session, sequence)."""
    for key in seen.became("ledger", LedgerState.DELIVERED):
        one = (session_of(seen.after), key)
        if memory == BROKEN or one in memory:
            return BROKEN
        memory = (*memory, one)
    return memory


def rising(memory: Any, seen: Seen) -> Any:
    """P30: the last task that was delivered, as (session, sequence). Sessions that one host opened rise, too."""
    for key in seen.became("ledger", LedgerState.DELIVERED):
        one = (session_of(seen.after), key)
        if memory == BROKEN or (one[0][0] == memory[0][0] and one <= memory):
            return BROKEN
        memory = one
    return memory


def passed(memory: Any, seen: Seen) -> Any:
    """P05: by its own count of what came, whether what is given to the user may still come.

    (session, highest, second chance, floor, cancelled, what was reserved although it may not come any more).
    """
    now = session_of(seen.after)
    if memory == BROKEN:
        return BROKEN
    _, highest, second, floor, cancelled, old = memory if memory[0] == now else (now, 0, 0, 0, 0, ())
    said = seen.message
    if of_session(seen) and seen.before.session.state in HEARS:
        floor = max(floor, said.floor) if isinstance(said, m.TaskReady) else floor
        if isinstance(said, m.CancelTask):
            floor, cancelled = max(floor, said.seq), max(cancelled, said.seq)
    for key in seen.became("ledger", LedgerState.RESERVED):
        if key < floor or key <= cancelled or not (key > highest or key == second):
            old = (*old, key)
        highest, second = max(highest, key), 0
    if isinstance(said, m.PayloadLost) and seen.effects and said.seq == highest:
        second = said.seq
    if set(seen.became("ledger", LedgerState.DELIVERED)) & set(old):
        return BROKEN
    return now, highest, second, floor, cancelled, old


def told(memory: Any, seen: Seen) -> Any:
    """P10: of which results send() said that the host has them, as (session, sequence)."""
    # A new session lets the callers of the old one return: what they are told is about that one.
    of = session_of(seen.before)
    fresh = {(of, effect.value) for effect in seen.resolved("send") if effect.outcome in TOLD_TAKEN}
    return tuple(sorted({*memory, *fresh})) if fresh else memory


def refused(memory: Any, seen: Seen) -> Any:
    """P96: of which results send() said that the host will not take them, as (session, sequence)."""
    of = session_of(seen.before)
    fresh = {(of, effect.value) for effect in seen.resolved("send") if effect.outcome is m.Outcome.REJECTED}
    return tuple(sorted({*memory, *fresh})) if fresh else memory


def consistent(memory: Any, seen: Seen) -> Any:
    """P33: what send() said last of each result that is remembered, as (session, sequence, taken or not)."""
    if memory == BROKEN:
        return BROKEN
    now = session_of(seen.after)
    known = {(of, seq): taken for of, seq, taken in memory if of == now and seq in seen.after.ledger}
    for effect in seen.resolved("send"):
        if effect.outcome not in (*TOLD_TAKEN, m.Outcome.REJECTED, m.Outcome.CANCELLED) or effect.value not in seen.after.ledger:
            continue
        taken = effect.outcome in TOLD_TAKEN
        if known.setdefault((now, effect.value), taken) != taken:
            return BROKEN
    return tuple((of, seq, taken) for (of, seq), taken in sorted(known.items()))


def remembers(id_: str, start: Any, after: Callable[[Any, Seen], Any], *, lasts: bool = True) -> Watch:
    """A watch whose memory says by itself that the property was broken."""
    return Watch(id_, start, after, {broken(id_): lambda memory: memory == BROKEN}, lasts)


def told_of(session: Session, seq: int) -> str:
    """The observation that send() said that the host has this result."""
    return f"told {result(session, seq)}"


def refused_of(session: Session, seq: int) -> str:
    """The observation that send() said that the host will not take this result."""
    return f"refused {result(session, seq)}"


def result(session: Session, seq: int) -> str:
    """A result, as the names of observations have it."""
    instance, epoch = session
    return f"{epoch}/{seq} of host {instance}" if instance else f"{epoch}/{seq}"


def results(instances: int, epochs: int, tasks: int) -> list[tuple[Session, int]]:
    """Every result that there can be, as (session, sequence)."""
    return [((i, e), s) for i in range(instances) for e in range(1, epochs + 1) for s in range(1, tasks + 1)]


def trainer_watches(epochs: int, tasks: int, instances: int = 1) -> tuple[Watch, ...]:
    """Every watch of a trainer; ``epochs``, ``tasks`` and host ``instances`` are as many as a world has."""
    every = results(instances, epochs, tasks)
    names = {told_of(*one): (lambda memory, one=one: one in memory) for one in every}
    rejected = {refused_of(*one): (lambda memory, one=one: one in memory) for one in every}
    steps = {
        "P02": queued_late, "P03": accepted_early, "P11": verdict_rewritten, "P12": abort_unheard, "P13": order_cancelled,
        "P14": expired_wrongly, "P18": steered_by_others, "P25": bound_late, "P29": took_other_content,
        "P31": failed_but_kept, "P32": replaced, "P35": source_dropped, "P42": settled_early, "P47": offered_in_vain,
        "P57": twice_is_more, "P58": stirred, "P60": busy_for_nothing, "P72": not_put_back, "P73": closed_early,
        "P77": sent_again_unasked, "P79": cached_first,
        "P95": kept_the_old, "P98": lost_with_the_link,
    }  # fmt: skip
    return (
        *(never(id_, wrong) for id_, wrong in steps.items()),
        remembers("P04", (), delivered),
        remembers("P15", (), told_already, lasts=False),
        remembers("P05", ((0, 0), 0, 0, 0, 0, ()), passed),
        remembers("P30", ((0, 0), 0), rising),
        remembers("P33", (), consistent),
        Watch("P10", (), told, names),
        Watch("P96", (), refused, rejected),
    )
