"""What keeps two sides together while messages are lost: beats, saying again, and giving up a peer no sooner and no later than stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from troth.models.worlds.protocol.watched import Seen, Watch, broken
from troth.models.worlds.protocol.watching_trainer import HANDSHAKE, of_session
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines.host.delivery import OFFERED, UNANSWERED, DeliveryState
from troth.statemachines.host.process import GONE, ProcessState
from troth.statemachines.host.session import BOUND as HOST_BOUND
from troth.statemachines.host.session import OVER as HOST_OVER
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.receiver import DownloadState
from troth.statemachines.shared.lease import WATCHING, LeaseState
from troth.statemachines.shared.source import SourceState
from troth.statemachines.shared.words import CONTROL
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import OPEN, PublicationState
from troth.statemachines.trainer.session import BOUND, OPENING
from troth.statemachines.trainer.states import TrainerSessionState

T, H, N = TrainerSessionState, HostSessionState, PublicationState
BROKEN = "broken"


def quiet(seen: Seen) -> bool:
    """P100: a beat that was due was not sent, or a log record was not passed on."""
    due = isinstance(seen.event, c.TimerFired) and seen.event.timer == "beat" and seen.before.lease.state in WATCHING
    logged = isinstance(seen.event, c.Called) and seen.event.call == "log" and seen.before.session.state in BOUND
    return (due and len(seen.sent(m.Heartbeat)) != 1) or (logged and len(seen.sent(m.Log)) != 1)


def orphan_stays(seen: Seen) -> bool:
    """P71, as a step: the host's process is gone, and the trainer goes on."""
    return isinstance(seen.event, c.OwnerLost) and seen.after.session.state not in (T.ABORTED, T.CLOSED)


# -- P105: what a verdict says -----------------------------------------------------------------------------------------


def _expires(seen: Seen) -> bool:
    return seen.after.lease.state is LeaseState.EXPIRED and seen.before.lease.state is not LeaseState.EXPIRED


def trainer_misjudges(seen: Seen) -> bool:
    """An end without a verdict, or one that nothing brought: an abort, a loss."""
    was, now = seen.before.session, seen.after.session
    verdict = now.data.verdict
    if now.state in (T.DRAINING, T.ABORTED, T.CLOSED) and verdict is m.Verdict.NONE:
        return True
    lost = _expires(seen) or isinstance(seen.event, c.OwnerLost) or isinstance(seen.message, m.HelloRejected)
    brought = {m.Verdict.ABORTED: isinstance(seen.message, m.Abort), m.Verdict.LOST: lost}
    return verdict is not was.data.verdict and not brought.get(verdict, True)


def host_misjudges(seen: Seen) -> bool:
    """The same of a host, whose supervisor is told."""
    was, now = seen.before.session, seen.after.session
    verdict, said = now.data.verdict, seen.message
    if now.state in (H.DRAINING, H.ABORTING, *HOST_OVER) and verdict is m.Verdict.NONE:
        return True
    gone = seen.after.process.state in GONE and seen.before.process.state not in GONE
    answered = isinstance(said, m.Hello | m.SessionReady | m.SessionRejected)
    brought = {
        m.Verdict.STOPPED: isinstance(said, m.CloseSession),
        m.Verdict.ABORTED: isinstance(said, m.AbortSession),
        m.Verdict.TIMEOUT: isinstance(seen.event, c.TimerFired) and seen.event.timer == "session",
        m.Verdict.REFUSED: answered,
        m.Verdict.LOST: gone or answered or _expires(seen) or isinstance(seen.event, c.OwnerLost),
        m.Verdict.ENDED: gone or isinstance(said, m.SessionClosed),
    }
    return verdict is not was.data.verdict and not brought.get(verdict, True)


# -- P101: what is not answered is said again --------------------------------------------------------------------------


def trainer_gives_up(seen: Seen) -> bool:
    """A new link without HELLO; a silence after which what is unanswered was not said again."""
    state = seen.before.session.state
    match seen.event:
        case c.LinkUp() if seen.before.config.launched and state in (*OPENING, *BOUND):
            return len(seen.sent(m.Hello)) != 1
        case c.TimerFired(timer="hello") if state in OPENING:
            return len(seen.sent(m.Hello, m.SessionReady)) != 1
        case c.TimerFired(timer="result", key=key):
            kinds: dict[PublicationState, type[c.Message]] = {N.ASKING: m.ResultStatus, N.SETTLING: m.ResultSourceSettled}
            wanted = kinds.get(seen.after.publication[key].state)
            return wanted is not None and [one.seq for one in seen.sent(wanted)] != [key]
    return False


def host_gives_up(seen: Seen) -> bool:
    """The same, of SESSION_OPEN, SHUTDOWN and ABORT, and of a task that is out or is being cancelled."""
    state, out = seen.before.session.state, seen.before.delivery
    orders: dict[HostSessionState, type[c.Message]] = {H.OPENING: m.SessionOpen, H.DRAINING: m.Shutdown, H.ABORTING: m.Abort}
    match seen.event:
        case c.LinkUp() if not seen.before.config.launched and state in (H.OPENING, H.ABORTING, *HOST_BOUND):
            return len(seen.sent(m.Abort if state is H.ABORTING else m.SessionOpen)) != 1
        case c.TimerFired(timer="again") if state in orders:
            return len(seen.sent(orders[state])) != 1
        case c.TimerFired(timer="task") if out.state in (*OFFERED, DeliveryState.CANCELLING):
            wanted = m.CancelTask if out.state is DeliveryState.CANCELLING else m.TaskStatus
            return [one.seq for one in seen.sent(wanted)] != [out.data.seq]
    return False


# -- P103: what was answered is not asked again -----------------------------------------------------------------------


def trainer_asks_on(seen: Seen) -> bool:
    """An answer came to what the trainer asks or says again, and it goes on."""
    said, was, now = seen.message, seen.before.session, seen.after.session
    stays: tuple[TrainerSessionState, ...] = ()
    match said:
        case m.HelloAccepted():
            stays = (T.JOINING,)
        case m.SessionConfirmed() if of_session(seen):
            stays = (T.BINDING,)
        case m.HelloRejected(retry=False) if said.epoch == was.data.epoch:
            stays = (*OPENING, *BOUND)
        case m.TaskMessage() if of_session(seen):
            return _result_asks_on(seen, said)
    return was.state in stays and now.state in stays


def _result_asks_on(seen: Seen, said: Any) -> bool:
    was, now = (view.publication[said.seq] for view in (seen.before, seen.after))
    match said:
        case m.ResultAccepted() | m.ResultRejected():
            return was.state in OPEN and now.state in OPEN
        case m.ResultUnknown():
            this = was.state is N.ASKING and was.data.attempt == said.attempt
            return this and now.state is N.ASKING and now.data.attempt == said.attempt
        case m.ResultSourceReleased():
            return was.state is N.SETTLING and now.state is N.SETTLING
    return False


def host_asks_on(seen: Seen) -> bool:
    """The same of a host: of its session, and of the task that is out."""
    said, was, now = seen.message, seen.before.session, seen.after.session
    stays: tuple[HostSessionState, ...] = ()
    match said:
        case m.SessionAccepted() if of_session(seen):
            stays = (H.OPENING,)
        case m.SessionRejected() if said.opened == was.data.epoch == now.data.epoch:
            stays = (H.OPENING,)
        case m.SessionClosed() if of_session(seen):
            stays = (H.DRAINING, H.ABORTING)
        case m.AbortAccepted() if of_session(seen):
            stays = (H.ABORTING,)
        case m.TaskMessage() if of_session(seen) and said.seq == seen.before.delivery.data.seq:
            return _task_asks_on(seen, said)
    return was.state in stays and now.state in stays


def _task_asks_on(seen: Seen, said: Any) -> bool:
    was, now = seen.before.delivery, seen.after.delivery
    same = now.state is was.state and now.data.attempt == was.data.attempt
    match said:
        case m.TaskAccepted():
            return was.state in UNANSWERED and now.state in UNANSWERED
        case m.TaskUnknown():
            return was.state is DeliveryState.ASKING and same
        case m.TaskFailed():
            this = said.reason not in (m.FailReason.PAYLOAD, m.FailReason.BUSY) or said.attempt == was.data.attempt
            return this and was.state in OFFERED and same
        case m.TaskCancelled():
            return was.state is DeliveryState.CANCELLING and same
    return False


def receiver_asks_on(seen: Seen) -> bool:
    """A receiver was told that it may stop, and pulls, or says that it holds the payload, as before."""
    said, was, now = seen.message, seen.before.download, seen.after.download
    if not isinstance(said, m.PayloadReleased | m.PayloadGone | m.DropPayload) or not mine(seen):
        return False
    stops = was.state is DownloadState.HELD or (was.state is DownloadState.PULLING and not isinstance(said, m.PayloadReleased))
    return stops and now.state is was.state


def mine(seen: Seen) -> bool:
    """What was said is about this download."""
    said, data = seen.message, seen.before.download.data
    about = isinstance(said, m.TaskMessage) and (said.epoch, said.seq) == (data.epoch, data.seq)
    return about and getattr(said, "receiver", 0) == seen.before.config.receiver


def receiver_misled(seen: Seen) -> bool:
    """P90, of a receiver: what was said of another download moved this one."""
    was, now = seen.before.download, seen.after.download
    return was.state in (DownloadState.PULLING, DownloadState.HELD) and isinstance(seen.event, c.Received) and not mine(seen) and now != was


# -- P102: how long silence is borne -----------------------------------------------------------------------------------


def _trainer_waits_for_bytes(view: Any) -> bool:
    coming = any(slot.state is LedgerState.RESERVED for slot in view.ledger.values())
    return coming or any(slot.state is SourceState.MOVING for slot in view.source.values())


def _host_waits_for_bytes(view: Any) -> bool:
    return view.delivery.state is DeliveryState.FETCHING or any(slot.state is SourceState.MOVING for slot in view.source.values())


def _trainer_is_patient(view: Any) -> bool:
    return bool(view.config.launched and not view.config.fail_unresponsive)


def _host_is_patient(view: Any) -> bool:
    return bool(view.process.state is ProcessState.RUNNING and not view.config.fail_unresponsive)


def silences(bytes_move: Callable[[Any], bool], patient: Callable[[Any], bool]) -> Callable[[Any, Seen], Any]:
    """Counts the lease's own timers since the peer was last heard, and how many of them are borne: (silences, borne)."""

    def after(memory: Any, seen: Seen) -> Any:
        was, now = seen.before.lease.state, seen.after.lease.state
        if memory == BROKEN:
            return BROKEN
        if was not in WATCHING:
            return 0, 2
        count, borne = memory
        if isinstance(seen.event, c.TimerFired) and seen.event.timer == "lease":
            count += 1
            borne += int(count == 1 and bytes_move(seen.before))
            over = count >= borne + int(patient(seen.before))
            if (now is LeaseState.EXPIRED) != over:
                return BROKEN
        elif _heard(seen):
            if now in WATCHING and now is not LeaseState.ARMED:
                return BROKEN
            count, borne = 0, 2
        elif now is not was and now in WATCHING:
            if now is not LeaseState.ARMED:
                return BROKEN
            count, borne = 0, 2
        return (count, borne) if now in WATCHING else (0, 2)

    return after


def _heard(seen: Seen) -> bool:
    """A message of the session over its own link, or bytes that moved."""
    if isinstance(seen.event, c.TransferProgressed):
        return True
    mine = isinstance(seen.event, c.Received) and seen.event.link == CONTROL and of_session(seen)
    return mine and not isinstance(seen.message, HANDSHAKE)


def _lease(after: Callable[[Any, Seen], Any]) -> Watch:
    return Watch("P102", (0, 2), after, {broken("P102"): lambda memory: memory == BROKEN}, lasts=False)


TRAINER_LEASE = _lease(silences(_trainer_waits_for_bytes, _trainer_is_patient))
HOST_LEASE = _lease(silences(_host_waits_for_bytes, _host_is_patient))
