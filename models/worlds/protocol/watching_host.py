"""What is watched of a host and of a receiver: one watch a property that speaks of their steps, or of their past."""

from __future__ import annotations

from typing import Any

from troth.models.worlds.protocol.watched import Seen, Watch, answers, broken, never
from troth.models.worlds.protocol.watching_trainer import (
    BROKEN,
    Session,
    expired_wrongly,
    lost_with_the_link,
    of_session,
    remembers,
    result,
    results,
    steered_by_others,
)
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.views import View
from troth.statemachines.host.acceptance import OVER as DECIDED
from troth.statemachines.host.acceptance import TAKEN, AcceptanceState
from troth.statemachines.host.delivery import ACTIVE, OFFERED
from troth.statemachines.host.process import ProcessState
from troth.statemachines.host.session import LIVE
from troth.statemachines.host.states import HostSessionState as S
from troth.statemachines.receiver import DownloadState

A = AcceptanceState
FORWARD = {
    A.ABSENT: (A.AWAITING,),
    A.AWAITING: (A.ACCEPTED, A.SAFE, A.REJECTED),
    A.ACCEPTED: (A.SAFE, A.SETTLED, A.LOST, A.RETIRED),
    A.SAFE: (A.SETTLED,),
    A.SETTLED: (A.ABSENT,),
    A.LOST: (A.ABSENT,),
    A.RETIRED: (A.ABSENT,),
    A.REJECTED: (A.ABSENT,),
}
"""Where a decision about a result may go from where it is."""


def verdict_rewritten(seen: Seen) -> bool:
    """P11: the verdict changed, and not from an orderly end that was not over."""
    old, new = seen.before.session.data.verdict, seen.after.session.data.verdict
    if old is new or old is m.Verdict.NONE:
        return False
    overridden = old is m.Verdict.STOPPED and new in (m.Verdict.ABORTED, m.Verdict.LOST)
    return not overridden or seen.before.session.state is S.CLOSED


def touched_another(seen: Seen) -> bool:
    """P24: a task was cancelled, and what was decided about another one moved."""
    if not isinstance(seen.message, m.StopTask):
        return False
    out = seen.before.delivery.data.seq
    return any(seen.after.acceptance[key] != slot for key, slot in seen.before.acceptance.items() if key != out)


def failed_by_a_stranger(seen: Seen) -> bool:
    """P26: a HELLO that cannot be the own trainer's ended the launch."""
    said = seen.message
    if not isinstance(said, m.Hello) or seen.before.session.state not in (S.LAUNCHING, S.GREETED):
        return False
    strange = said.claim is m.Claim.WRONG_RANK or (said.claim is m.Claim.MATCHING and said.epoch != 0)
    return strange and seen.after.session.state not in (S.LAUNCHING, S.GREETED)


def given_out_wrongly(seen: Seen) -> bool:
    """P27: a task went out while the session was not ready."""
    return seen.after.delivery.data.seq != seen.before.delivery.data.seq and seen.before.session.state is not S.READY


def accepted_late(seen: Seen) -> bool:
    """P28: a result was taken outside of the session's life."""
    fresh = [key for key in seen.became("acceptance", *TAKEN) if seen.after.acceptance[key].state in (A.ACCEPTED, A.SAFE)]
    return bool(fresh) and seen.before.session.state not in (S.READY, S.DRAINING)


def replaced(seen: Seen) -> bool:
    """P32: another content was taken for a result that there is."""
    said = seen.message
    if not isinstance(said, m.ResultReady) or not of_session(seen):
        return False
    before = seen.before.acceptance[said.seq]
    other = before.state in TAKEN and before.data.content != said.content
    return other and (seen.after.acceptance[said.seq] != before or bool(seen.sent(m.ResultAccepted)))


def denied(seen: Seen) -> bool:
    """P34: whoever asked was told that nothing came, although it did."""
    bad = (m.TaskOutcome.UNDELIVERED, m.TaskOutcome.TIMEOUT, m.TaskOutcome.REFUSED)
    said = [message for message in seen.sent(m.TaskEnded) if message.outcome in bad]
    out = seen.before.delivery
    return bool(said) and out.state in ACTIVE and seen.before.acceptance[out.data.seq].state in TAKEN


def moved_back(seen: Seen) -> bool:
    """P36: a decision went where it may not go, or at the word of another task's notice."""
    moved = {
        k for k in {*seen.before.acceptance, *seen.after.acceptance} if seen.before.acceptance[k].state != seen.after.acceptance[k].state
    }
    for key in moved:
        if seen.after.acceptance[key].state not in FORWARD[seen.before.acceptance[key].state]:
            return True
    return isinstance(seen.message, m.ResultSourceSettled) and bool(moved - {seen.message.seq})


def lost_wrongly(seen: Seen) -> bool:
    """P38: a loss of what was not waiting for its source."""
    said = [message.seq for message in seen.sent(m.DropPayload) if message.lost]
    return any(seen.before.acceptance[seq].state is not A.ACCEPTED for seq in said) or len(seen.sent(m.ResultLost)) > len(said)


def left_waiting(seen: Seen) -> bool:
    """P53: a cancel that was not answered."""
    return isinstance(seen.message, m.StopTask) and seen.before.delivery.state in ACTIVE and not seen.sent(m.TaskEnded)


def stirred(seen: Seen) -> bool:
    """P58: something arrived after the end, and moved a machine, touched a timer, or was passed on to somebody else."""
    if not isinstance(seen.event, c.Received) or seen.before.session.state is not S.CLOSED:
        return False
    told = seen.from_outside and not all(map(answers, seen.effects))
    return told or not seen.timers or not seen.same(seen.before, seen.after)


def left_running(seen: Seen) -> bool:
    """P69: a process that was given up has started, and was not signalled."""
    given_up = seen.before.process.state in (ProcessState.DOOMED, ProcessState.STUCK)
    signalled = any(isinstance(effect, c.SignalProcess) for effect in seen.effects)
    return isinstance(seen.event, c.ProcessStarted) and given_up and not signalled


def beat_unanswered(seen: Seen) -> bool:
    """P75: a beat of the session got no answer."""
    return isinstance(seen.message, m.Heartbeat) and of_session(seen) and seen.before.session.state in LIVE and not seen.sent(m.Heartbeat)


def given_up_quietly(seen: Seen) -> bool:
    """P97: told that the task came to nothing, and no CANCEL_TASK; or an offer that fences less than everything before it."""
    lost = (m.TaskOutcome.UNDELIVERED, m.TaskOutcome.TIMEOUT, m.TaskOutcome.CANCELLED)
    given_up = any(said.outcome in lost for said in seen.sent(m.TaskEnded))
    cancelled = any(said.seq == seen.before.delivery.data.seq for said in seen.sent(m.CancelTask))
    return (given_up and not cancelled) or any(offer.floor != offer.seq for offer in seen.sent(m.TaskReady))


def ended_by_the_way(seen: Seen) -> bool:
    """P98: the link was lost, or something was to be said again, and a session ended for it."""
    again = isinstance(seen.event, c.TimerFired) and seen.event.timer == "again"
    ended = seen.before.session.state in LIVE and seen.after.session.state not in LIVE
    return lost_with_the_link(seen) or (again and ended)


# -- memories ----------------------------------------------------------------------------------------------------------


def session_of(seen: Seen, epoch: int) -> Session:
    """The session of that epoch that this host opened."""
    return seen.after.config.instance, epoch


def one_out(memory: Any, seen: Seen) -> Any:
    """P07: whether a task is out whose asker was not told yet."""
    rise = seen.after.delivery.data.seq - seen.before.delivery.data.seq
    if memory == BROKEN or rise not in (0, 1) or (rise and memory):
        return BROKEN
    return (bool(memory) or rise > 0) and not seen.sent(m.TaskEnded)


def canonical(memory: Any, seen: Seen) -> Any:
    """P08: which attempt was said to be the canonical one, as (session, sequence, attempt)."""
    if memory == BROKEN or not seen.sent(m.ResultAccepted):
        return memory
    known = {(of, seq): attempt for of, seq, attempt in memory}
    for said in seen.sent(m.ResultAccepted):
        if known.setdefault((session_of(seen, said.epoch), said.seq), said.attempt) != said.attempt:
            return BROKEN
    return tuple((of, seq, attempt) for (of, seq), attempt in sorted(known.items()))


def decided(memory: Any, seen: Seen) -> Any:
    """P09: which results were said to be rejected, or accepted, as (session, sequence, accepted)."""
    if memory == BROKEN or not seen.sent(m.ResultAccepted, m.ResultRejected):
        return memory
    known = {(of, seq): taken for of, seq, taken in memory}
    said = [(one, True) for one in seen.sent(m.ResultAccepted)]
    final = (m.RejectReason.CANCELLED, m.RejectReason.EXHAUSTED)
    said += [(one, False) for one in seen.sent(m.ResultRejected) if one.reason in final]
    for one, taken in said:
        if known.setdefault((session_of(seen, one.epoch), one.seq), taken) != taken:
            return BROKEN
    return tuple((of, seq, taken) for (of, seq), taken in sorted(known.items()))


def accepted(memory: Any, seen: Seen) -> Any:
    """P10: which results were accepted, as (session, sequence)."""
    fresh = {(session_of(seen, said.epoch), said.seq) for said in seen.sent(m.ResultAccepted)}
    return tuple(sorted({*memory, *fresh})) if fresh else memory


def signalled(memory: Any, seen: Seen) -> Any:
    """P16: whether TERM was sent, and whether the guardian is gone. What is being killed may be killed again."""
    if memory == BROKEN:
        return BROKEN
    termed, orphaned = memory
    orphaned |= isinstance(seen.event, c.OwnerLost)
    waited = termed and isinstance(seen.event, c.TimerFired) and seen.event.timer == "process"
    waited |= seen.before.process.state is ProcessState.KILLING
    for effect in seen.effects:
        if isinstance(effect, c.SignalProcess):
            kills = effect.signal is c.ProcessSignal.KILL
            if not seen.after.config.launched or (kills and not (waited or orphaned)):
                return BROKEN
            termed |= not kills
    return termed, orphaned


def ended(memory: Any, seen: Seen) -> Any:
    """P17: whether the end was said, and whether a process was asked for that is not reported gone."""
    if memory == BROKEN:
        return BROKEN
    over, spawned = memory
    spawned |= any(isinstance(effect, c.Spawn) for effect in seen.effects)
    failed = isinstance(seen.event, c.EffectFailed) and isinstance(seen.event.effect, c.Spawn)
    spawned &= not (failed or isinstance(seen.event, c.ProcessExited))
    said = seen.sent(m.SessionEnded)
    if len(said) + over > 1 or any(not message.stuck and spawned for message in said):
        return BROKEN
    return over or bool(said), spawned


def losses(memory: Any, seen: Seen) -> Any:
    """P21: which losses were told, as (session, sequence): to the receivers, to the supervisor, each once."""
    if memory == BROKEN:
        return BROKEN
    now = session_of(seen, seen.after.session.data.epoch)
    lost = sorted((now, key) for key in seen.became("acceptance", A.LOST))
    said = sorted((session_of(seen, one.epoch), one.seq) for one in seen.sent(m.DropPayload) if one.lost)
    if said != lost or len(seen.sent(m.ResultLost)) != len(lost) or set(said) & set(memory):
        return BROKEN
    return (*memory, *said)


def promised(memory: Any, seen: Seen) -> Any:
    """P76: the last attempt that was answered UNKNOWN, as (session, sequence, attempt)."""
    if memory == BROKEN:
        return BROKEN
    now = session_of(seen, seen.after.session.data.epoch)
    known = {(of, seq): attempt for of, seq, attempt in memory}
    for key in seen.became("acceptance", A.ACCEPTED, A.SAFE):
        if seen.before.acceptance[key].state is A.AWAITING and seen.after.acceptance[key].data.canonical <= known.get((now, key), 0):
            return BROKEN
    for said in seen.sent(m.ResultUnknown):
        at = session_of(seen, said.epoch), said.seq
        known[at] = max(said.attempt, known.get(at, 0))
    live = {at: attempt for at, attempt in known.items() if seen.after.acceptance[at[1]].state not in DECIDED}
    return tuple((of, seq, attempt) for (of, seq), attempt in sorted(live.items()))


def accepted_of(session: Session, seq: int) -> str:
    """The observation that this result was accepted at some time."""
    return f"accepted {result(session, seq)}"


def twice_is_more(seen: Seen) -> bool:
    """P57: the same message once more did something. A task that was offered may be asked about: after a HELLO that comes twice, a task
    for which there was no room is offered again, and then it is asked for."""
    return seen.from_outside and seen.twice_is_more(lambda one, other: not seen.same(_offered(one), _offered(other)))


def _offered(view: View) -> View:
    """The same moment, but a task that was asked about is no further than one that is offered."""
    out = view.delivery
    return view.at("delivery", None, OFFERED[0], out.data) if out.state in OFFERED else view


def host_watches(epochs: int, tasks: int, instances: int = 1) -> tuple[Watch, ...]:
    """Every watch of a host; ``epochs``, ``tasks`` and ``instances`` are as many as a world has."""
    names = {accepted_of(*one): (lambda memory, one=one: one in memory) for one in results(instances, epochs, tasks)}
    steps = {
        "P11": verdict_rewritten, "P14": expired_wrongly, "P18": steered_by_others, "P24": touched_another, "P26": failed_by_a_stranger,
        "P27": given_out_wrongly, "P28": accepted_late, "P32": replaced, "P34": denied, "P36": moved_back, "P38": lost_wrongly,
        "P53": left_waiting, "P57": twice_is_more, "P58": stirred, "P69": left_running, "P75": beat_unanswered,
        "P97": given_up_quietly, "P98": ended_by_the_way,
    }  # fmt: skip
    return (
        *(never(id_, wrong) for id_, wrong in steps.items()),
        remembers("P07", False, one_out, lasts=False),
        remembers("P08", (), canonical),
        remembers("P09", (), decided),
        remembers("P16", (False, False), signalled, lasts=False),
        remembers("P17", (False, False), ended, lasts=False),
        remembers("P21", (), losses),
        remembers("P76", (), promised),
        Watch("P10", (), accepted, names),
    )


def receiver_watches() -> tuple[Watch, ...]:
    """Every watch of a receiver."""

    def lost_what_it_holds(seen: Seen) -> bool:
        held = seen.before.download.state in (DownloadState.HELD, DownloadState.DONE)
        return held and seen.after.download.state not in (DownloadState.HELD, DownloadState.DONE)

    return (never("P21", lost_what_it_holds),)


__all__ = ["accepted_of", "broken", "host_watches", "receiver_watches"]
