"""What a trainer must say and do about its session, step by step: handshake, orders, ends, and the lease."""

from __future__ import annotations

from typing import Any

from troth.models.worlds.protocol.inside import Snapshot
from troth.models.worlds.protocol.watched import Seen
from troth.models.worlds.protocol.watching_trainer import of_session
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines.shared.lease import WATCHING, LeaseState
from troth.statemachines.shared.words import CONTROL
from troth.statemachines.trainer.publication import BUSY, PublicationState
from troth.statemachines.trainer.session import BOUND, OPENING
from troth.statemachines.trainer.states import TrainerSessionState

S, L = TrainerSessionState, LeaseState
ENDED = (S.ABORTED, S.CLOSED)
HANDSHAKE = (m.Hello, m.SessionReady, m.SessionAccepted, m.SessionRejected)
ENDINGS = (m.SessionDraining, m.SessionClosed, m.AbortAccepted)


def _mine(seen: Seen) -> bool:
    """A message of the session that the trainer is in, over the control link."""
    return isinstance(seen.event, c.Received) and seen.event.link == CONTROL and of_session(seen)


# -- what it says ------------------------------------------------------------------------------------------------------


def greets_wrong(seen: Seen) -> bool:
    """HELLO for every link and every silence, SESSION_READY for every acceptance; and nothing else unasked."""
    said = [(type(one), _about(one)) for one in seen.sent(*HANDSHAKE)]
    again = any(isinstance(effect, c.SetTimer) and effect.timer == "hello" for effect in seen.effects)
    if said and seen.before.config.launched and again != (seen.after.session.state in OPENING):
        return True  # what is said while joining is said again
    return not isinstance(seen.message, m.SessionOpen) and said != _greets(seen)


def _about(message: Any) -> tuple[Any, ...]:
    if isinstance(message, m.Hello):
        return message.epoch, message.claim
    return (message.epoch, message.proven) if isinstance(message, m.SessionReady) else (message.epoch,)


def _greets(seen: Seen) -> list[tuple[Any, Any]]:
    was, epoch, launched = seen.before.session.state, seen.before.session.data.epoch, seen.before.config.launched
    hello = (m.Hello, (epoch, m.Claim.MATCHING))
    match seen.event:
        case c.LinkUp() if launched and was in (*OPENING, *BOUND):
            return [hello]
        case c.TimerFired(timer="hello"):
            return [hello] if was is S.JOINING else [(m.SessionReady, (epoch, True))]
        case c.Received(message=m.HelloAccepted(epoch=given)) if was is S.JOINING or (was is S.BINDING and given == epoch):
            return [(m.SessionReady, (given, True))]
    return []


def welcome_unanswered(seen: Seen) -> bool:
    """HELLO_ACCEPTED is answered with SESSION_READY, and with a proof, while the trainer is joining the session that it names."""
    said, was = seen.message, seen.before.session
    if not isinstance(said, m.HelloAccepted) or not (was.state is S.JOINING or (was.state is S.BINDING and of_session(seen))):
        return False
    return [(one.epoch, one.proven) for one in seen.sent(m.SessionReady)] != [(said.epoch, True)]


def open_unanswered(seen: Seen) -> bool:
    """An attached trainer that listens answers each one: with the session it is in then, or with why not."""
    said, was, now = seen.message, seen.before.session, seen.after.session
    answers = seen.sent(*HANDSHAKE)
    if not isinstance(said, m.SessionOpen):
        return False
    if was.state in (S.NEW, S.PASSIVE, S.CLOSED):
        return answers != []
    same = (said.epoch, said.instance) == (was.data.epoch, was.data.instance) and was.state in BOUND
    begins = not said.resume and (was.state is S.JOINING or (was.state is S.READY and not same and said.epoch > was.data.epoch))
    if same or begins:
        bound = now.state in BOUND and (now.data.epoch, now.data.instance) == (said.epoch, said.instance)
        return [(type(one), one.epoch) for one in answers] != [(m.SessionAccepted, said.epoch)] or not bound
    retry = was.state is S.READY and not said.resume
    wanted = [m.SessionRejected(opened=said.epoch, epoch=was.data.epoch, retry=retry)]
    return answers != wanted or now != was


def _ordered(seen: Seen) -> bool:
    listens = seen.before.session.state not in (S.NEW, S.PASSIVE, S.JOINING, S.CLOSED)
    return _mine(seen) and listens and isinstance(seen.message, m.Abort | m.Shutdown)


def orders_unanswered(seen: Seen) -> bool:
    """SHUTDOWN and ABORT are answered by what became of the session."""
    said, now = [type(one) for one in seen.sent(*ENDINGS)], seen.after.session.state
    if not _ordered(seen):
        return False
    if isinstance(seen.message, m.Abort):
        return said != [m.AbortAccepted] or now is not S.ABORTED
    wanted = m.SessionDraining if now is S.DRAINING else m.SessionClosed
    return said != [wanted] or now not in (S.DRAINING, *ENDED)


def leaves_quietly(seen: Seen) -> bool:
    """P104: the trainer left its session unasked, and did not say so. Of a refusal its host need not be told."""
    was, now = seen.before.session.state, seen.after.session.state
    left = was in BOUND and now in (S.DRAINING, *ENDED) and now is not was
    refused = isinstance(seen.message, m.HelloRejected)
    return left and not refused and not _ordered(seen) and len(seen.sent(m.SessionDraining, m.SessionClosed)) != 1


def ends_wrong(seen: Seen) -> bool:
    """An end that is not asked for is said too, and nothing else is said of ends."""
    said = [type(one) for one in seen.sent(*ENDINGS)]
    return not _ordered(seen) and said != _says_of_end(seen, seen.before.session.state, seen.after.session.state)


def _says_of_end(seen: Seen, was: TrainerSessionState, now: TrainerSessionState) -> list[type]:
    """What is said of an end that no order of the host brought."""
    if now is was or was not in (S.BINDING, *BOUND) or now in (S.NEW, S.READY):
        return []
    if now is S.DRAINING:
        return [m.SessionDraining]
    unheard = isinstance(seen.message, m.HelloRejected) or was is S.BINDING
    return [] if now is S.ABORTED and unheard else [m.SessionClosed]


def beats_wrong(seen: Seen) -> bool:
    """A beat for every time that one is due, a log record for every log(), in a session."""
    due = isinstance(seen.event, c.TimerFired) and seen.event.timer == "beat" and seen.before.lease.state in WATCHING
    logged = isinstance(seen.event, c.Called) and seen.event.call == "log" and seen.before.session.state in BOUND
    return len(seen.sent(m.Heartbeat)) != int(due) or len(seen.sent(m.Log)) != int(logged)


# -- what it does ------------------------------------------------------------------------------------------------------


def goes_wrong(seen: Seen) -> bool:
    """The session goes where what happened leads, and stays where nothing does."""
    was, now = seen.before.session, seen.after.session
    wanted = _goes(seen)
    if wanted is None:
        return False
    epoch = isinstance(seen.message, m.HelloAccepted) and was.state is S.JOINING and now.data.epoch != seen.message.epoch
    return now.state is not wanted or epoch


def _goes(seen: Seen) -> TrainerSessionState | None:
    """Where the session is afterwards; ``None`` where it is said elsewhere."""
    was = seen.before.session.state
    if seen.before.lease.state is not seen.after.lease.state and seen.after.lease.state is L.EXPIRED:
        return S.ABORTED
    found: TrainerSessionState | None = None
    match seen.event:
        case c.OwnerLost():
            found = was if was is S.CLOSED else S.ABORTED
        case c.TimerFired(timer="join"):
            found = S.NEW
        case c.CallCancelled(call="init", number=number):
            mine = "init" in seen.before.calls and seen.before.calls["init"].data.number == number
            found = S.NEW if mine and was in OPENING else was
        case c.Called(call="init", payload=payload):
            began = S.JOINING if payload.control_rank else S.PASSIVE
            found = began if was is S.NEW else was
        case c.Called(call="shutdown"):
            found = _leaves(seen)
        case c.Received():
            found = _heard(seen)
        case c.LinkUp() | c.LinkLost() | c.EffectFailed():
            found = was
    return found


def _leaves(seen: Seen) -> TrainerSessionState:
    was = seen.before.session.state
    busy = was is S.READY and seen.before.publication.count(*BUSY) > 0
    return S.DRAINING if busy or was is S.DRAINING else S.CLOSED


def _heard(seen: Seen) -> TrainerSessionState | None:
    was, said = seen.before.session, seen.message
    mine = isinstance(said, m.EpochMessage | m.HelloRejected) and said.epoch == was.data.epoch
    found: TrainerSessionState | None = None
    match said:
        case m.HelloAccepted():
            found = S.BINDING if was.state is S.JOINING else was.state
        case m.SessionConfirmed():
            found = S.READY if was.state is S.BINDING and mine else was.state
        case m.HelloRejected():
            ends = S.NEW if was.state in OPENING else S.ABORTED if was.state in BOUND else was.state
            found = ends if mine and not said.retry else was.state
        case m.Shutdown() if mine and was.state in (S.BINDING, *BOUND):
            found = _leaves(seen)
        case m.TaskMessage() if was.state is S.DRAINING:
            found = S.DRAINING if seen.after.publication.count(*BUSY) else S.CLOSED
        case m.TaskMessage() if not seen.before.config.one_shot:
            found = was.state
    return found


def told_wrong(seen: Seen) -> bool:
    """init() and shutdown() return when it is decided, with what is so."""
    was, now = seen.before.session, seen.after.session
    init = [effect.outcome for effect in seen.resolved("init")]
    waited = "init" in seen.before.calls or (isinstance(seen.event, c.Called) and seen.event.call == "init")
    if not isinstance(seen.event, c.CallCancelled) and waited:
        decided = now.state not in OPENING
        wanted = [_init_outcome(seen)] if decided else []
        if init != wanted:
            return True
    left = [effect.outcome for effect in seen.resolved("shutdown")]
    leaves = isinstance(seen.event, c.Called) and seen.event.call == "shutdown"
    outcome = m.Outcome.DEFERRED if now.state is S.DRAINING else m.Outcome.OK
    return left != ([outcome] if leaves else []) or (was.state is S.CLOSED and now != was)


def _init_outcome(seen: Seen) -> m.Outcome:
    now = seen.after.session
    by_state = {S.READY: m.Outcome.OK, S.DRAINING: m.Outcome.OK, S.PASSIVE: m.Outcome.PASSIVE}
    if now.state in by_state:
        return by_state[now.state]
    if now.state is S.NEW:
        return m.Outcome.TIMEOUT if isinstance(seen.event, c.TimerFired) else m.Outcome.REFUSED
    if isinstance(seen.event, c.Called) and seen.event.call == "shutdown":
        return m.Outcome.CLOSED
    ends = {m.Verdict.STOPPED: m.Outcome.STOPPED, m.Verdict.ABORTED: m.Outcome.ABORTED, m.Verdict.LOST: m.Outcome.LOST}
    return ends.get(now.data.verdict, m.Outcome.CLOSED)


def resumed_wrong(seen: Seen) -> bool:
    """A session that is resumed is alive, and so is one that is heard; one that is superseded starts empty, with a fresh lease."""
    was, now = seen.before, seen.after
    other = isinstance(seen.message, m.HelloAccepted) and was.session.state in BOUND and not of_session(seen)
    if other and not seen.same(was, now):
        return True
    if was.lease.state not in WATCHING or now.session.state not in BOUND or not isinstance(seen.event, c.Received):
        return False
    opened = isinstance(seen.message, m.SessionOpen) and was.session.data != now.session.data
    if opened:
        empty = not now.ledger and not now.publication and now.intake.data.highest == 0
        return now.lease.state is not L.ARMED or not empty
    alive = _mine(seen) and not isinstance(seen.message, m.SessionConfirmed)
    if isinstance(seen.message, m.SessionOpen):
        alive = seen.message.instance == was.session.data.instance and alive
    return alive and now.lease.state is not L.ARMED


def lease_wrong(seen: Seen) -> bool:
    """Silence makes a peer suspect, a second one expires it; bytes that should move suspend it; life and progress arm it again."""
    was, now = seen.before.lease.state, seen.after.lease.state
    if was in WATCHING and now is L.UNARMED:
        return True
    if isinstance(seen.event, c.TransferProgressed):
        return now is not (L.ARMED if was in WATCHING else was)
    if not (isinstance(seen.event, c.TimerFired) and seen.event.timer == "lease"):
        return now is not was and now in (L.SUSPENDED, L.SUSPECT, L.UNRESPONSIVE, L.EXPIRED)
    view = seen.before
    patient = view.config.launched and not view.config.fail_unresponsive
    wanted = {
        L.ARMED: L.SUSPENDED if _moving(view) else L.SUSPECT,
        L.SUSPENDED: L.SUSPECT,
        L.SUSPECT: L.UNRESPONSIVE if patient else L.EXPIRED,
        L.UNRESPONSIVE: L.EXPIRED,
    }
    return now is not wanted.get(was)  # nobody else has such a timer


def _moving(view: Any) -> bool:
    return any(slot.state.name == "MOVING" for slot in view.source.values()) or any(
        s.state.name == "RESERVED" for s in view.ledger.values()
    )


# -- what is so in every state -----------------------------------------------------------------------------------------


def waits(now: Snapshot) -> bool:
    """P82: the handshake has its timers while it lasts, the lease and its beats while it is watched."""
    opening, watching = now.at("session", *OPENING), now.at("lease", *WATCHING)
    hello = now.runs("hello") == now.at("session", S.BINDING) or (now.at("session", S.JOINING) and now.runs("hello"))
    return now.runs("join") == opening and hello and now.runs("lease") == watching and now.runs("beat") == watching


def agrees(now: Snapshot) -> bool:
    """P99: state, verdict, epoch and lease say the same."""
    verdict, epoch = now.data("session", "verdict"), now.data("session", "epoch")
    known = {
        S.DRAINING: (m.Verdict.STOPPED,),
        S.ABORTED: (m.Verdict.ABORTED, m.Verdict.LOST),
        S.CLOSED: (m.Verdict.STOPPED, m.Verdict.ABORTED, m.Verdict.LOST),
    }
    if verdict not in known.get(S[now.name("session")], (m.Verdict.NONE,)):
        return False
    if now.at("session", S.NEW, S.PASSIVE, S.JOINING) and (epoch or not now.at("lease", L.UNARMED)):
        return False
    over = now.at("lease", L.UNARMED, L.RELEASED, L.EXPIRED)
    bound = now.at("lease", *WATCHING) and epoch > 0
    if now.at("session", *BOUND):
        return bound
    return over or (now.at("session", S.ABORTED) and bound and verdict is m.Verdict.ABORTED)


def one_shot_agrees(now: Snapshot) -> bool:
    """P85: a trainer that was launched for one task is not ready any more once it is done."""
    done = now.keys("publication", PublicationState.SETTLED, PublicationState.REJECTED)
    return not (now.at("session", S.READY) and done)


def linked(now: Snapshot, *, wanted: bool) -> bool:
    """P85: the link is wanted as long as there is a host to hear or to tell."""
    ending = now.at("session", S.ABORTED) and now.at("lease", *WATCHING)
    return wanted == (now.at("session", *OPENING, *BOUND) or ending)
