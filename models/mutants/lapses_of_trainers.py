"""Lapses in the tables of a trainer: for a property that no smaller change of a row breaks, the mistake that it is there to catch."""

from __future__ import annotations

from functools import partial

from attrs import evolve

from troth.models.mutants.patches import Patch, added, altered, unbounded, without
from troth.spec import Machine, Row
from troth.spec.emits import signal
from troth.spec.machine import SAME, keep
from troth.statemachines.shared.words import those
from troth.statemachines.trainer import ledger, publication, session
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import BUSY, OPEN, PublicationState
from troth.statemachines.trainer.states import TrainerSessionState, open_

S, K, N = TrainerSessionState, LedgerState, PublicationState


def taken_unbound(machine: Machine) -> Machine:
    """A task is taken in while the confirmation of its session is still on its way: rows S26 and K1."""
    if machine.name == "session":
        heard = machine.row("S26").emit
        return added(machine, Row("P01", S.BINDING, "message", session.current, SAME, keep, heard, "the host has said it"))
    return altered(machine, "K1", partial(evolve, guard=~ledger.mismatch & ledger.fresh & ledger.room))


def run_again(machine: Machine) -> Machine:
    """An offer that comes again for a task that the user holds queues it once more, as if it had not been taken: row K8."""
    queued = [ledger.ACCEPT, ledger.tell_intake("queued")]
    row = Row("P04", K.DELIVERED, "task_ready", ~ledger.mismatch, K.QUEUED, keep, queued, "it is offered, so it is to be run")
    return added(machine, row)


def never_full(machine: Machine) -> Machine:
    """Nobody asks whether there is room for another task, and nothing else bounds the ledger either: rows K1 to K3, and the family."""
    machine = altered(machine, "K1", partial(evolve, guard=open_ & ~ledger.mismatch & ledger.fresh))
    return unbounded(without(machine, "K2", "K3"))


def cancelled_by_shutdown(machine: Machine) -> Machine:
    """SHUTDOWN cancels the result that is being published, instead of waiting for it: row S31."""
    cancel = signal("publication", "cancel", key=those("publication", *BUSY))
    return altered(machine, "S31", lambda row: evolve(row, emit=[*row.emit, cancel]))


def passed_again(machine: Machine) -> Machine:
    """A task that was passed is taken as long as it is above what the host has given up: rows K1 to K4 ask nothing else."""
    asked, room, evictable = open_ & ~ledger.mismatch, ledger.room, ledger.evictable
    guards = {"K1": asked & room, "K2": asked & ~room & evictable, "K3": asked & ~room & ~evictable}
    for id_, guard in guards.items():
        machine = altered(machine, id_, partial(evolve, guard=guard))
    return without(machine, "K4")


def opened_after_the_end(machine: Machine) -> Machine:
    """A trainer that has closed takes a session that is opened to it, as one that is new would: row S13."""
    return altered(machine, "S13", partial(evolve, sources=(S.JOINING, S.CLOSED)))


def published_again(machine: Machine) -> Machine:
    """An answer that did not come is taken for a no: the result is sent again, and nobody asks what became of it: row N13."""
    again = [publication.READY, publication.wait]
    row = Row("P77", OPEN, "retry", publication.attempts_left, N.SENDING, publication.another, again, "no answer is an answer")
    return added(machine, row)


TRAINERS = (
    Patch("P01-unconfirmed", "a task taken in before its session is bound", "trainer", ("session", "ledger"), taken_unbound),
    Patch("P04-again", "an offer that comes again is run again", "trainer", ("ledger",), run_again),
    Patch("P06-unbounded", "a ledger without a bound", "trainer", ("ledger",), never_full),
    Patch("P13-impatient", "a SHUTDOWN that cancels what is being published", "trainer", ("session",), cancelled_by_shutdown),
    Patch("P30-passed", "a task that was passed runs after its successor", "trainer", ("ledger",), passed_again),
    Patch("P58-reopened", "a session taken after the end", "trainer", ("session",), opened_after_the_end),
    Patch("P77-unasked", "a result that is sent again without asking", "trainer", ("publication",), published_again),
)
