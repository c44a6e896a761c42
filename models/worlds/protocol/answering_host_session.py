"""What a host must say and do about its session, step by step: handshake, orders, ends, and the lease."""

from __future__ import annotations

from typing import Any

from troth.models.worlds.protocol.answering_host import resumes
from troth.models.worlds.protocol.inside import Snapshot
from troth.models.worlds.protocol.watched import Seen
from troth.models.worlds.protocol.watching_trainer import of_session
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines.host.delivery import ACTIVE, DeliveryState
from troth.statemachines.host.process import ENDING, GONE, ProcessState
from troth.statemachines.host.session import BOUND, LAUNCH, OVER, UNREADY
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.lease import WATCHING, LeaseState

S, L, V, X = HostSessionState, LeaseState, m.Verdict, ProcessState
SPEAKS = (m.HelloAccepted, m.HelloRejected, m.SessionConfirmed, m.SessionOpen, m.Shutdown, m.Abort)
"""What a host says of its session."""

Fate = tuple[HostSessionState, m.Verdict]
ENDED = S.CLOSED
"""Stands for the end, whether something is left to wait for or not."""


def _fate(seen: Seen) -> Fate:
    now = seen.after.session
    return (ENDED if now.state in OVER else now.state), now.data.verdict


def _stays(seen: Seen) -> Fate:
    was = seen.before.session
    return (ENDED if was.state in OVER else was.state), was.data.verdict


# -- what it says ------------------------------------------------------------------------------------------------------


def says_wrong(seen: Seen) -> bool:
    """Every HELLO and SESSION_READY is answered, every silence and every order said; and nothing else."""
    said = seen.sent(*SPEAKS)
    again = any(isinstance(effect, c.SetTimer) and effect.timer == "again" for effect in seen.effects)
    if seen.after.session.state is S.OPENING and again != bool(seen.sent(m.SessionOpen)):
        return True  # what is not answered is said again
    return said != _says(seen)


def hello_unanswered(seen: Seen) -> bool:
    """Every HELLO is answered, and every SESSION_READY of a session that is there: let in is who proved it, refused who did not."""
    said, was, now = seen.message, seen.before.session, seen.after.session
    answers = seen.sent(m.HelloAccepted, m.HelloRejected, m.SessionConfirmed, m.Abort)
    if isinstance(said, m.Hello):
        if len(answers) != 1:
            return True
        mine = said.claim is m.Claim.MATCHING and said.epoch in (0, was.data.epoch)
        if isinstance(answers[0], m.HelloAccepted):
            return not mine or now.state not in (S.GREETED, *BOUND) or answers[0].epoch != now.data.epoch
        again = mine and said.epoch == was.data.epoch > 0 and was.state in (S.GREETED, *BOUND, S.ABORTING)
        return again and (isinstance(answers[0], m.Abort) != (was.state is S.ABORTING) or isinstance(answers[0], m.HelloRejected))
    if isinstance(said, m.SessionReady) and said.epoch == was.data.epoch and was.state in (S.GREETED, *BOUND):
        confirmed = [type(one) for one in answers] == [m.SessionConfirmed] and now.state in BOUND
        refused = [type(one) for one in answers] == [m.HelloRejected] and now.state in OVER
        return not (confirmed if said.proven else refused)
    return bool(seen.sent(m.HelloAccepted, m.HelloRejected, m.SessionConfirmed))


def orders_unheard(seen: Seen) -> bool:
    """An order to end a session, or to begin one, is carried out: by the word to the trainer, or by the end."""
    said, was, now = seen.message, seen.before.session.state, seen.after.session.state
    if isinstance(said, m.CloseSession) and was is S.READY:
        return now is not S.DRAINING or len(seen.sent(m.Shutdown)) != 1
    if isinstance(said, m.AbortSession) and was in BOUND:
        return now is not S.ABORTING or len(seen.sent(m.Abort)) != 1
    if isinstance(said, m.CloseSession | m.AbortSession) and was in (S.IDLE, *UNREADY):
        return now not in OVER
    return isinstance(said, m.StartSession) and was is S.IDLE and now not in UNREADY


def _says(seen: Seen) -> list[c.Message]:
    was, now = seen.before.session.state, seen.after.session.state
    message, event = seen.message, seen.event
    if isinstance(message, m.Hello):
        return _to_hello(seen, message)
    if isinstance(message, m.SessionReady):
        return _to_ready(seen, message)
    epoch = max(1, seen.after.session.data.epoch)
    instance = seen.after.config.instance
    opens, order = m.SessionOpen(epoch=epoch, instance=instance, resume=False), {S.DRAINING: m.Shutdown, S.ABORTING: m.Abort}
    if now in order and was is not now:
        return [order[now](epoch=epoch)]
    if isinstance(event, c.TimerFired) and event.timer == "again":
        return [opens] if was is S.OPENING else [order[was](epoch=epoch)] if was in order else []
    if isinstance(event, c.LinkUp) and not seen.before.config.launched:
        again = m.SessionOpen(epoch=epoch, instance=instance, resume=True)
        said: dict[HostSessionState, c.Message] = {S.OPENING: opens, S.READY: again, S.DRAINING: again, S.ABORTING: m.Abort(epoch=epoch)}
        return [said[was]] if was in said else []
    reopened = was is now is S.OPENING and seen.before.session.data.epoch != epoch
    return [opens] if reopened else []


def _to_hello(seen: Seen, said: m.Hello) -> list[Any]:
    was, epoch = seen.before.session.state, seen.before.session.data.epoch
    matching, current = said.claim is m.Claim.MATCHING, said.epoch == epoch
    untouched = said.epoch == 0 and seen.before.delivery.data.seq == 0
    takes = {
        S.LAUNCHING: said.epoch == 0,
        S.GREETED: said.epoch == 0 or current,
        S.READY: current or untouched,
        S.DRAINING: current or untouched,
    }
    if matching and takes.get(was, False):
        return [m.HelloAccepted(epoch=epoch)]
    if matching and current and was is S.ABORTING:
        return [m.Abort(epoch=epoch)]
    later = said.claim is m.Claim.WRONG_RANK and was in LAUNCH
    return [m.HelloRejected(epoch=said.epoch, retry=later)]


def _to_ready(seen: Seen, said: m.SessionReady) -> list[Any]:
    was = seen.before.session
    if said.epoch != was.data.epoch or was.state not in (S.GREETED, *BOUND):
        return []
    return [m.SessionConfirmed(epoch=said.epoch)] if said.proven else [m.HelloRejected(epoch=said.epoch, retry=False)]


def supervisor_untold(seen: Seen) -> bool:
    """That the session has begun is said when it has, and that it is over when nothing is left."""
    was, now = seen.before.session.state, seen.after.session.state
    begun = now is S.READY and was in UNREADY
    over = now is S.CLOSED and was is not S.CLOSED
    ended = [(one.verdict, one.stuck) for one in seen.sent(m.SessionEnded)]
    stuck = seen.after.process.state is X.STUCK
    return len(seen.sent(m.SessionStarted)) != int(begun) or ended != ([(seen.after.session.data.verdict, stuck)] if over else [])


# -- what it does ------------------------------------------------------------------------------------------------------


def goes_wrong(seen: Seen) -> bool:
    """The session goes where what happened leads, with the verdict that it has, and stays where nothing does."""
    wanted = _goes(seen)
    was, now = seen.before.session, seen.after.session
    if isinstance(seen.message, m.AbortSession) and was.state is S.CLOSING and seen.after.process.state is X.LEAVING:
        return True  # nobody waits for the natural exit any more
    epoch = was.data.epoch
    if isinstance(seen.message, m.SessionRejected) and was.state is now.state is S.OPENING and _answers(seen) and seen.message.retry:
        epoch = seen.message.epoch + 1
    if was.state is S.IDLE and now.state in UNREADY:
        epoch = 1
    return (wanted is not None and _fate(seen) != wanted) or now.data.epoch != epoch


def _answers(seen: Seen) -> bool:
    said = seen.message
    return isinstance(said, m.SessionRejected) and said.opened == seen.before.session.data.epoch


def _goes(seen: Seen) -> Fate | None:
    """Where the session is afterwards; ``None`` where something else decides it."""
    if seen.after.process.state in GONE and seen.before.process.state not in GONE:
        return _gone(seen)
    if _expired(seen) or isinstance(seen.event, c.OwnerLost):
        return _lost(seen)
    if isinstance(seen.event, c.TimerFired):
        return _silent(seen) if seen.event.timer == "session" else _stays(seen)
    if isinstance(seen.message, m.LaunchMessage):
        return _ordered(seen)
    if isinstance(seen.message, m.Hello | m.SessionReady | m.SessionAccepted | m.SessionRejected):
        return _joined(seen)
    return _heard(seen) if isinstance(seen.message, m.EpochMessage) else _stays(seen)


def _expired(seen: Seen) -> bool:
    return seen.after.lease.state is L.EXPIRED and seen.before.lease.state is not L.EXPIRED


def _gone(seen: Seen) -> Fate:
    """The process is gone, or given up."""
    was, verdict = seen.before.session.state, seen.before.session.data.verdict
    if was is S.READY:
        verdict = V.LOST if seen.before.delivery.state in ACTIVE else V.ENDED
    elif (was is S.DRAINING and seen.before.delivery.state in ACTIVE) or was in UNREADY:
        verdict = V.LOST
    return ENDED, verdict


def _lost(seen: Seen) -> Fate:
    was, verdict = seen.before.session.state, seen.before.session.data.verdict
    orphan = isinstance(seen.event, c.OwnerLost)
    unmoved = orphan and seen.before.process.state in (*GONE, X.KILLING)
    if unmoved or was is S.IDLE:
        return _stays(seen)
    return ENDED, (V.LOST if was in (*UNREADY, *BOUND) else verdict)


def _silent(seen: Seen) -> Fate:
    was, verdict = seen.before.session.state, seen.before.session.data.verdict
    return ENDED, (V.TIMEOUT if was in UNREADY else verdict)


def _ordered(seen: Seen) -> Fate:
    was, verdict = seen.before.session.state, seen.before.session.data.verdict
    idle = was in (S.IDLE, *UNREADY)
    match seen.message:
        case m.StartSession() if was is S.IDLE:
            return (S.LAUNCHING if seen.before.config.launched else S.OPENING), V.NONE
        case m.CloseSession() if idle or was is S.READY:
            return (ENDED if idle else S.DRAINING), V.STOPPED
        case m.AbortSession() if idle or was in BOUND:
            return (ENDED if idle else S.ABORTING), V.ABORTED
        case m.AbortSession() if was is S.CLOSING and verdict is V.STOPPED:
            return ENDED, V.ABORTED
    return _stays(seen)


def _joined(seen: Seen) -> Fate:
    was, said = seen.before.session, seen.message
    current = isinstance(said, m.EpochMessage) and said.epoch == was.data.epoch
    found = _stays(seen)
    match said:
        case m.Hello(claim=claim) if was.state is S.LAUNCHING:
            greeted = claim is m.Claim.MATCHING and said.epoch == 0
            found = (S.GREETED, V.NONE) if greeted else (ENDED, V.REFUSED) if claim is m.Claim.WRONG_IDENTITY else found
        case m.SessionReady(proven=proven) if current and was.state in (S.GREETED, *BOUND):
            unproven = (ENDED, V.REFUSED if was.state is S.GREETED else V.LOST)
            found = unproven if not proven else (S.READY, V.NONE) if was.state is S.GREETED else found
        case m.SessionAccepted() if current and was.state is S.OPENING:
            found = S.READY, V.NONE
        case m.SessionRejected(retry=retry) if _answers(seen):
            above = retry and said.epoch >= was.data.epoch
            found = (ENDED, V.REFUSED) if was.state is S.OPENING and not above else found
            found = (ENDED, V.LOST) if was.state in BOUND and not retry else found
    return found


def _heard(seen: Seen) -> Fate:
    was, verdict = seen.before.session.state, seen.before.session.data.verdict
    if not of_session(seen):
        return _stays(seen)
    match seen.message:
        case m.SessionClosed() if was in (S.READY, S.DRAINING, S.ABORTING):
            return ENDED, (V.ENDED if was is S.READY else verdict)
        case m.AbortAccepted() if was is S.ABORTING:
            return ENDED, verdict
    return _stays(seen)


def lease_wrong(seen: Seen) -> bool:
    """As the trainer's, but for who is known to live; and a session that is heard or resumed has its lease armed."""
    was, now = seen.before.lease.state, seen.after.lease.state
    if was in WATCHING and now is L.UNARMED:
        return True
    watched = was in WATCHING and now in WATCHING
    ready = isinstance(seen.message, m.SessionReady) and seen.message.epoch == seen.before.session.data.epoch
    mine = of_session(seen) and not isinstance(
        seen.message, m.SessionAccepted | m.Hello | m.SessionReady | m.SessionClosed | m.AbortAccepted
    )
    alive = (
        resumes(seen) or (ready and seen.before.session.state in BOUND) or (mine and isinstance(seen.event, c.Received) and _control(seen))
    )
    if watched and isinstance(seen.event, c.Received):
        return now is not (L.ARMED if alive else was)
    if isinstance(seen.event, c.TransferProgressed):
        return now is not (L.ARMED if was in WATCHING else was)
    if not (isinstance(seen.event, c.TimerFired) and seen.event.timer == "lease"):
        return now is not was and now in (L.SUSPENDED, L.SUSPECT, L.UNRESPONSIVE, L.EXPIRED)
    view = seen.before
    moving = any(s.state.name == "MOVING" for s in view.source.values()) or view.delivery.state is DeliveryState.FETCHING
    patient = view.process.state is X.RUNNING and not view.config.fail_unresponsive
    wanted = {
        L.ARMED: L.SUSPENDED if moving else L.SUSPECT,
        L.SUSPENDED: L.SUSPECT,
        L.SUSPECT: L.UNRESPONSIVE if patient else L.EXPIRED,
        L.UNRESPONSIVE: L.EXPIRED,
    }
    return now is not wanted.get(was)  # nobody else has such a timer


def _control(seen: Seen) -> bool:
    return isinstance(seen.event, c.Received) and seen.event.link == "control"


def beat_wrong(seen: Seen) -> bool:
    """A host beats only to answer a beat."""
    answered = isinstance(seen.message, m.Heartbeat) and of_session(seen) and seen.before.lease.state in WATCHING
    return len(seen.sent(m.Heartbeat)) != int(answered)


# -- what is so in every state -----------------------------------------------------------------------------------------


def waits(now: Snapshot) -> bool:
    """P82."""
    session = now.runs("session") == now.at("session", *UNREADY, S.DRAINING, S.ABORTING)
    ending = now.at("session", S.DRAINING, S.ABORTING)
    again = now.runs("again") == ending or (now.at("session", S.OPENING) and now.runs("again"))
    process = now.runs("process") == now.at("process", X.DOOMED, *ENDING)
    return session and again and process and now.runs("lease") == now.at("lease", *WATCHING)


def agrees(now: Snapshot) -> bool:
    """P99: state, verdict, epoch, lease and process say the same."""
    verdict = now.data("session", "verdict")
    fixed = {S.DRAINING: V.STOPPED, S.ABORTING: V.ABORTED}
    state = S[now.name("session")]
    right = verdict is not V.NONE if state in OVER else verdict is fixed.get(state, V.NONE)
    bound = state in (*BOUND, S.ABORTING)
    watched = now.at("lease", *WATCHING) if bound else now.at("lease", L.UNARMED, L.RELEASED, L.EXPIRED)
    closing = state is not S.CLOSING or not now.at("process", *GONE)
    begun = state in (S.IDLE, S.CLOSED) or now.data("session", "epoch") > 0
    return right and watched and closing and begun


def process_agrees(now: Snapshot, *, launched: bool) -> bool:
    """P85: a session of a launched trainer has its process, and an attached trainer's has none."""
    if not launched:
        return now.at("process", X.NONE)
    if now.at("session", S.IDLE):
        return now.at("process", X.NONE)
    if now.at("session", *LAUNCH, *BOUND):
        return now.at("process", X.SPAWNING, X.RUNNING)
    return now.at("session", S.CLOSED) or now.at("process", X.DOOMED, *ENDING)


def linked(now: Snapshot, *, wanted: bool) -> bool:
    """P85: the link is wanted as long as there is a session, or one to come."""
    return wanted == (not now.at("session", S.IDLE, *OVER))
