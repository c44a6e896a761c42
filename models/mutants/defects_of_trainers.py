"""Defects of the reference that stand in the tables of a trainer and of a receiver."""

from __future__ import annotations

from functools import partial
from typing import Any

from attrs import evolve

from troth.models.mutants.patches import Patch, added, altered, without
from troth.spec import Machine, Row, always, atom
from troth.spec.machine import SAME, keep
from troth.spec.messages import Outcome
from troth.statemachines.receiver import ARRIVED, HOLD, DownloadState, quiet
from troth.statemachines.trainer import ledger, publication, session
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import BUSY, OPEN, PublicationState
from troth.statemachines.trainer.states import TrainerSessionState, open_

S, N = TrainerSessionState, PublicationState

launched = atom("launched", of=lambda view, event: view.config.launched)


def d4(machine: Machine) -> Machine:
    """A trainer that is bound refuses its own host's next session, and does not say that a later try may succeed.

    So a host that was configured to reconnect gives up a trainer that lives. P95: a trainer that is ready takes
    the newer session.
    """
    refused = [session.REJECTED]
    machine = altered(machine, "S21", lambda row: evolve(row, target=SAME, update=keep, emit=refused))
    return altered(machine, "S22", lambda row: evolve(row, emit=refused))


def d7(machine: Machine) -> Machine:
    """A launched trainer publishes its result once. An answer that does not come in time is a failure: it lets go of the payload and
    forgets the result, which the host may have accepted.

    P96: send() says rejected only of what the host has not accepted.
    """
    failed = [publication.quiet, publication.let_go, publication.task_over, publication.answer(Outcome.REJECTED), publication.settled]
    return added(machine, Row("D7", OPEN, "retry", launched, N.REJECTED, keep, failed, "no answer is an answer"))


def d8(machine: Machine) -> Machine:
    """That an attempt was delivered is taken as proof that it was accepted, against the host's own word that none was.

    In the reference the word is UNKNOWN, because it remembers no rejection; here it is REJECTED. P10: send()
    says accepted only of what the host accepted.
    """
    believed = [publication.let_go, publication.SETTLED, publication.wait]
    row = Row("D8", N.ASKING, "rejected", always, N.SETTLING, publication.deliver_all, believed, "it was delivered, after all")
    return added(machine, row)


def _pass_by_only(data: Any, event: Any) -> Any:
    return evolve(data, highest=max(data.highest, event.seq))


def _unfenced(view: Any, event: Any) -> bool:
    known = view.intake.data
    return bool(event.seq > known.evicted and (event.seq > known.highest or event.seq == known.retry))


unfenced = atom("fresh", reads=["intake"], of=_unfenced)


def d9(machine: Machine) -> Machine:
    """A failed reservation keeps its second chance when a newer task is reserved.

    So a late copy of the old offer brings the old task in behind the new one, and it is executed. The reference has no fence either,
    which would keep it out. P05: a task that was passed is never given to the user.
    """
    if machine.name == "intake":
        return altered(machine, "I3", lambda row: evolve(row, update=_pass_by_only))
    asked, room, evictable = open_ & ~ledger.mismatch, ledger.room, ledger.evictable
    guards = {
        "K1": asked & unfenced & room,
        "K2": asked & unfenced & ~room & evictable,
        "K3": asked & unfenced & ~room & ~evictable,
        "K4": asked & ~unfenced,
    }
    for id_, guard in guards.items():
        machine = altered(machine, id_, partial(evolve, guard=guard))
    return machine


def d10(machine: Machine) -> Machine:
    """Attempts belong to one call of send(): a second one cannot learn what became of the first, and fails for ever.

    P96: send() says rejected only of what the host has not accepted.
    """
    for id_ in ("N8", "N9"):
        machine = altered(machine, id_, lambda row: evolve(row, emit=[publication.answer(Outcome.REJECTED)]))
    stranger = [publication.answer(Outcome.REJECTED)]
    return added(machine, Row("D10", BUSY, "send", publication.same_content, SAME, keep, stranger, "its attempts are another call's"))


def d14(machine: Machine) -> Machine:
    """A trainer that drains does not expire: any reason to end masks the lease, so a dead host is not noticed.

    P40: while a side depends on the other its lease is armed, draining included.
    """
    for id_ in ("S31", "S48"):
        machine = altered(machine, id_, lambda row: evolve(row, emit=[*row.emit, session.release]))
    return machine


def d15(machine: Machine) -> Machine:
    """ABORT does not end the notice that a source is settled: send() goes on asking a host that may be gone.

    P12: after an abort nobody waits in send().
    """
    return without(machine, "N24", "N25")


oldest_is_complete = atom(
    "evictable",
    of=lambda view, event: bool(view.ledger) and next(slot for _, slot in sorted(view.ledger.items())).state is LedgerState.COMPLETE,
)


def d16(machine: Machine) -> Machine:
    """Nothing is forgotten behind an entry that is not complete, such as a task that was cancelled.

    The reference then grows without a bound; here the bound holds, so the trainer is full for ever. P60: BUSY is said only when every
    entry is live.
    """
    fresh = open_ & ~ledger.mismatch & ledger.fresh & ~ledger.room
    machine = altered(machine, "K2", lambda row: evolve(row, guard=fresh & oldest_is_complete))
    return altered(machine, "K3", lambda row: evolve(row, guard=fresh & ~oldest_is_complete))


def d18(machine: Machine) -> Machine:
    """A receiver says once that it holds the payload. If that is lost, its source gives it up, and fails a transfer that has succeeded.

    P90: a transfer fails by what becomes of itself, not of a message.
    """
    once = [HOLD, ARRIVED]
    machine = altered(machine, "R4", lambda row: evolve(row, target=DownloadState.DONE, update=keep, emit=[quiet, *once]))
    return without(machine, "R20", "R21")


def d22(machine: Machine) -> Machine:
    """A trainer that is ending accepts a session that is opened to it, and then takes no task in it.

    P25: a trainer that is ending binds no session.
    """
    accepted = [session.ACCEPTED]
    machine = altered(machine, "S24", lambda row: evolve(row, update=session.bind_to_instance, emit=accepted))
    return altered(machine, "S25", lambda row: evolve(row, update=session.bind_to_instance, emit=accepted))


TRAINERS = (
    Patch("D4", "a bound trainer refuses its own host's next session for good", "trainer", ("session",), d4, "P95", "attach/host_again"),
    Patch(
        "D7",
        "a launched trainer publishes once, and takes silence for a failure",
        "trainer",
        ("publication",),
        d7,
        "P96",
        "external/patient",
    ),
    Patch("D8", "a result that was delivered is taken to be accepted", "trainer", ("publication",), d8, "P10", "external/returns"),
    Patch("D9", "a task that was passed keeps its second chance", "trainer", ("intake", "ledger"), d9, "P05", "ledger"),
    Patch("D10", "a second send() cannot mend the first", "trainer", ("publication",), d10, "P96", "external/calls"),
    Patch("D14", "a draining trainer has no lease", "trainer", ("session",), d14, "P40", "external/patient"),
    Patch("D15", "ABORT does not end the notice of a settled source", "trainer", ("publication",), d15, "P12", "external/patient"),
    Patch("D16", "nothing is forgotten behind a task that was cancelled", "trainer", ("ledger",), d16, "P60", "ledger/eviction"),
    Patch("D18", "a lost confirmation fails a delivered result", "receiver", ("download",), d18, "P90", "answers/bytes"),
    Patch("D22", "an ending trainer accepts a session", "trainer", ("session",), d22, "P25", "attach/host_again"),
)
