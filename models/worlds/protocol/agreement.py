"""What a party's machines must agree on: one fact is kept in one place, and whatever two of them say of it is the same.

Each function looks at one snapshot and says whether it is so. ``waits`` is about timers: whoever waits has one that ends the wait, and
no other runs.
"""

from __future__ import annotations

from troth.models.worlds.protocol.inside import Snapshot
from troth.statemachines.shared.calls import CallState
from troth.statemachines.shared.lease import WATCHING, LeaseState
from troth.statemachines.shared.source import DONE, SourceState
from troth.statemachines.trainer.intake import IntakeState
from troth.statemachines.trainer.ledger import PRESENT, UNPUBLISHED, WAITING, LedgerState
from troth.statemachines.trainer.publication import BUSY, OPEN, PublicationState
from troth.statemachines.trainer.session import BOUND, OPENING
from troth.statemachines.trainer.states import TrainerSessionState

T, K, N, O = TrainerSessionState, LedgerState, PublicationState, SourceState  # noqa: E741 - as the rows are named

PAIRS: dict[PublicationState, tuple[LedgerState, ...]] = {
    N.SENDING: (K.PUBLISHING,),
    N.ASKING: (K.PUBLISHING,),
    N.ACCEPTED: (K.PUBLISHING,),
    N.SETTLING: (K.PUBLISHING, K.CANCELLED),
    N.SETTLED: (K.COMPLETE, K.CANCELLED),
    N.REJECTED: (K.COMPLETE,),
    N.CANCELLED: (K.CANCELLED,),
}
"""Where a result is, and where its task can be then."""


def ledger_agrees(now: Snapshot) -> bool:
    """Every result has its task, and every task that has a result has it."""
    for state, entries in PAIRS.items():
        if not all(now.at("ledger", *entries, key=key) for key in now.keys("publication", state)):
            return False
    with_result = now.keys("ledger", K.PUBLISHING)
    return all(now.at("publication", *BUSY, key=key) for key in with_result) and all(
        now.at("publication", N.SETTLED, N.REJECTED, key=key) for key in now.keys("ledger", K.COMPLETE)
    )


def intake_agrees(now: Snapshot) -> bool:
    """The intake's marks are those of the ledger's entries."""
    highest, evicted, floor, retry, current = (now.data("intake", n) for n in ("highest", "evicted", "floor", "retry", "current"))
    entries = now.keys("ledger")
    if any(key > highest for key in entries) or any(key < floor or key <= evicted for key in now.keys("ledger", *UNPUBLISHED)):
        return False
    if retry and (retry != highest or retry in entries):
        return False
    if any(key > current for key in now.keys("ledger", K.DELIVERED, K.PUBLISHING, K.COMPLETE)):
        return False
    if current and not (current <= evicted or now.at("ledger", K.DELIVERED, K.PUBLISHING, K.COMPLETE, K.CANCELLED, key=current)):
        return False
    return now.at("intake", IntakeState.WORKING) == (current > 0) and not (current > 0 and now.data("intake", "superseded"))


def sources_agree(now: Snapshot) -> bool:
    """A result that is offered has a source for every receiver, and no other result has any."""
    for key in now.keys("publication"):
        mine = tuple(k for k in now.keys("source") if k[0] == key)
        done = all(now.at("source", *DONE, key=k) for k in mine)
        held = all(now.at("source", O.HELD, key=k) for k in mine)
        if now.at("publication", *OPEN, key=key):
            inline = now.data("publication", "inline", key=key)
            wanted = 0 if inline else now.data("ledger", "receivers", key=key) or 0
            if mine != tuple((key, n) for n in range(wanted)):
                return False
        elif now.at("publication", N.ACCEPTED, key=key):
            if done:
                return False
        elif now.at("publication", N.SETTLING, key=key):
            if not done or (now.data("publication", "delivered", key=key) and not held):
                return False
        elif mine:
            return False
    return all(key[0] in now.keys("publication") for key in now.keys("source"))


def calls_agree(now: Snapshot) -> bool:
    """Whoever waits, waits for something that is still to come."""
    waiting = {str(key) for key in now.keys("calls", CallState.WAITING)}
    if "receive" in waiting and (not now.at("session", T.READY) or now.keys("ledger", K.QUEUED)):
        return False
    if "init" in waiting and not now.at("session", *OPENING):
        return False
    senders = {key for key in waiting if key.startswith("send/")}
    return senders <= {f"send/{key}" for key in now.keys("publication", *BUSY)} and "shutdown" not in waiting and "take" not in waiting


def reads_again(now: Snapshot) -> bool:
    """A thread that is the only one does not wait in receive() while it has a task whose result is not sent."""
    unsent = now.at("ledger", K.DELIVERED, key=now.data("intake", "current"))
    return not (unsent and now.at("calls", CallState.WAITING, key="receive"))


def session_agrees(now: Snapshot) -> bool:
    """What the session has is what its state says."""
    busy = bool(now.keys("publication", *BUSY))
    if now.at("session", T.DRAINING) and not busy:
        return False
    if now.at("session", T.DRAINING, T.ABORTED, T.CLOSED) and now.keys("ledger", *UNPUBLISHED):
        return False
    if now.at("session", T.ABORTED, T.CLOSED) and (busy or now.keys("source", O.OFFERED, O.MOVING)):
        return False
    if now.at("session", *BOUND) and not now.at("lease", *WATCHING):
        return False
    return not now.at("session", T.CLOSED) or now.at("lease", LeaseState.UNARMED, LeaseState.RELEASED, LeaseState.EXPIRED)


def trainer_waits(now: Snapshot) -> bool:
    """A question that is unanswered is asked again; a receiver that is expected is given up in the end."""
    if now.timers("result") != set(now.keys("publication", N.SENDING, N.ASKING, N.SETTLING)):
        return False
    expected = set(now.keys("source", O.MOVING))
    accepted = now.keys("publication", N.ACCEPTED)
    expected |= {key for key in now.keys("source", O.OFFERED) if key[0] in accepted}
    may = expected | set(now.keys("source", O.OFFERED))
    return expected <= now.timers("source") <= may


TRAINER_BELIEVES = (sources_agree, calls_agree, session_agrees)
"""P85: what its receivers, its callers and its host can tell."""
TRAINER_AGREES = (ledger_agrees, intake_agrees)
"""P99: what nobody outside can tell, as long as it is right."""

__all__ = ["PRESENT", "TRAINER_AGREES", "TRAINER_BELIEVES", "WAITING", "trainer_waits"]
