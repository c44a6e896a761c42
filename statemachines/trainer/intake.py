"""The intake: which sequences may still come in, and which task the user holds.

Rule 1.  Sequences only move forward. A task whose sequence was passed, evicted or fenced is never executed.
Rule 2.  A reservation that failed may be made again, as long as nothing newer was reserved.
Rule 3.  What the host has given up (everything below its floor) is dropped before anything new is looked at; a result that is being
         published is not, because the host remembers what it decided about it and will say so.
Rule 4.  A new task always wins over the one that the user already holds; with nothing new, the same task may be read again.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.core import Key, Resolve
from troth.spec.data import evolve
from troth.spec.emits import Firing, Keys, effect, send, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Ignore, Machine, Refuse, Row
from troth.spec.machine import keep as same
from troth.spec.messages import Outcome, TaskCancelled
from troth.statemachines.shared.words import CONTROL, done, event_seq, session_epoch
from troth.statemachines.trainer.ledger import UNPUBLISHED, LedgerState
from troth.statemachines.trainer.session import OPENING
from troth.statemachines.trainer.states import TrainerSessionState, open_, verdict_outcome


class IntakeState(Enum):
    """Whether the user holds a task."""

    IDLE = "idle"
    WORKING = "working"


S = IntakeState
BOTH = (S.IDLE, S.WORKING)


@frozen
class IntakeData:
    """Sequences: 0 is none."""

    highest: int = 0
    """The highest one ever reserved."""
    evicted: int = 0
    """The highest one ever evicted."""
    floor: int = 0
    """The lowest one that the host has not given up."""
    retry: int = 0
    """The one whose reservation failed and may be made again."""
    current: int = 0
    """The one that the user holds."""
    superseded: bool = False
    """What the user holds is a task of a session that is gone."""


def raise_floor(data: IntakeData, event: Any) -> IntakeData:
    """Rule 3."""
    return evolve(data, floor=event.floor)


def raise_floor_to_it(data: IntakeData, event: Any) -> IntakeData:
    """Rule 3: a host has one task out, so below the one that it cancels nothing is wanted."""
    return evolve(data, floor=event.seq)


def pass_by(data: IntakeData, event: Any) -> IntakeData:
    """Rules 1 and 2: a newer sequence ends the second chance of an older one."""
    return evolve(data, highest=max(data.highest, event.seq), retry=0)


def offer_again(data: IntakeData, event: Any) -> IntakeData:
    """Rule 2."""
    return evolve(data, retry=event.seq)


def raise_evicted(data: IntakeData, event: Any) -> IntakeData:
    """Rule 1."""
    return evolve(data, evicted=max(data.evicted, event.seq))


def hold(data: IntakeData, event: Any) -> IntakeData:
    """The user has it now."""
    return evolve(data, current=event.seq, superseded=False)


def forget(data: IntakeData, event: Any) -> IntakeData:  # noqa: ARG001
    """A new session counts from the start; what the user still holds has no number in it."""
    return IntakeData(superseded=data.superseded or data.current > 0)


def below_floor(firing: Firing) -> Keys:
    """Every task that the host has given up and that is not published or over."""
    return Keys(tuple(seq for seq in firing.view.ledger.within(*UNPUBLISHED) if seq < firing.data.floor))


def oldest_queued(firing: Firing) -> Key:
    """The task that is handed over next."""
    found: Key = firing.view.ledger.first(LedgerState.QUEUED)
    return found


def handed_to_them(firing: Firing) -> Key:
    """The task that was handed to this caller, who has not taken it."""
    numbers = {firing.view.ledger[seq].data.number: seq for seq in firing.view.ledger.within(LedgerState.HANDED)}
    return int(numbers[firing.event.number])


not_passed = atom("not_passed", of=lambda view, event: event.seq >= view.own.data.highest)
above_floor = atom("above_floor", of=lambda view, event: event.seq > view.own.data.floor)
raises_floor = atom("raises_floor", of=lambda view, event: event.floor > view.own.data.floor)
queued = atom("queued", reads=["ledger"], of=lambda view, event: view.ledger.first(LedgerState.QUEUED) is not None)
begun = atom("begun", reads=["session"], of=lambda view, event: view.session.state not in (TrainerSessionState.NEW, *OPENING))
unsent = atom("unsent", reads=["ledger"], of=lambda view, event: view.ledger[view.own.data.current].state is LedgerState.DELIVERED)
awaited = atom("awaited", reads=["calls"], of=lambda view, event: "receive" in view.calls)
handed_to_caller = atom(
    "handed_to_caller",
    reads=["ledger"],
    of=lambda view, event: any(view.ledger[seq].data.number == event.number for seq in view.ledger.within(LedgerState.HANDED)),
)


@frozen
class Hand:
    """Hand the task to the caller ``number`` of receive()."""

    number: int


def caller(firing: Firing) -> Hand:
    """Who waits in receive()."""
    return Hand(firing.view.calls["receive"].data.number)


offer = signal("ledger", "task_ready", key=event_seq)
hand = signal("ledger", "hand", key=oldest_queued, event=caller)
stop_below = signal("ledger", "stop", key=below_floor)
cancel = signal("ledger", "cancel", key=event_seq)
take = signal("ledger", "take", key=handed_to_them)
put_back = signal("ledger", "put_back", key=handed_to_them)
nothing_to_take = effect("resolve take NOTHING", lambda f: Resolve("take", f.event.number, Outcome.NOTHING))
take_again = effect("resolve take TASK", lambda f: Resolve("take", f.event.number, Outcome.TASK, f.data.current))
task_cancelled = send(CONTROL, TaskCancelled, epoch=session_epoch, seq=event_seq)

# fmt: off
INTAKE = Machine(
    "intake", IntakeState, initial=S.IDLE, data=IntakeData,
    rows=[
    Row("I1",  BOTH, "offer", raises_floor,  SAME, raise_floor, [stop_below, offer], "Rule 3"),
    Row("I2",  BOTH, "offer", ~raises_floor, SAME, same, [offer], "nothing new is given up"),
    Row("I3",  BOTH, "reserved", always, SAME, pass_by, [], "Rule 1"),
    Row("I4",  BOTH, "skipped", not_passed, SAME, pass_by, [], "Rule 1: cancelled before it came, so it may not come any more"),
    Row("I5",  BOTH, "failed", not_passed, SAME, offer_again, [], "Rule 2"),
    Row("I6",  BOTH, "evicted", always,  SAME, raise_evicted, [], "Rule 1"),
    Row("I7",  BOTH, "receive", queued,  SAME, same, [hand], "Rule 4"),
    Row("I8",  S.WORKING, "receive", ~queued & open_ & unsent, SAME, same, [done("receive", Outcome.TASK, lambda f: f.data.current)], "Rule 4"),
    Row("I9",  BOTH, "receive", ~queued & ~open_ & begun, SAME, same, [done("receive", verdict_outcome)], "no task will come"),
    Row("I10", BOTH, "queued", awaited, SAME, same, [hand], "somebody is waiting for it"),
    Row("I11", BOTH, "take", handed_to_caller,  SAME, same, [take], "committed by the thread that uses it"),
    Row("I12", S.IDLE, "take", ~handed_to_caller, SAME, same, [nothing_to_take], "it was cancelled on the way: receive again"),
    Row("I13", S.WORKING, "take", ~handed_to_caller & ~unsent, SAME, same, [nothing_to_take], "it was cancelled on the way: receive again"),
    Row("I14", S.WORKING, "take", ~handed_to_caller & unsent, SAME, same, [take_again], "Rule 4: the task that the user holds already"),
    Row("I15", BOTH, "given_up", handed_to_caller, SAME, same, [put_back], "not taken, so not begun: the next caller gets it"),
    Row("I16", BOTH, "taken", always, S.WORKING, hold, [], "the user holds it"),
    Row("I17", BOTH, "cancel", above_floor,  SAME, raise_floor_to_it, [stop_below, cancel, task_cancelled], "Rule 3"),
    Row("I18", BOTH, "cancel", ~above_floor, SAME, same, [cancel, task_cancelled], "asked again, answered again"),
    Row("I19", BOTH, "forget", always, S.IDLE, forget, [], "a new session counts from the start"),
    ],
    ignore=[
    Ignore("receive", S.IDLE, "the caller waits", ~queued & open_),
    Ignore("receive", S.WORKING, "the caller waits", ~queued & open_ & ~unsent),
    Ignore(("skipped", "failed"), BOTH, "Rule 1: it is passed already", ~not_passed),
    Ignore("queued", BOTH, "it waits in the queue", ~awaited),
    Ignore("given_up", BOTH, "nothing had been handed to this caller", ~handed_to_caller),
    ],
    refuse=[Refuse("receive", BOTH, "there is no session yet; call init() first, and let it return", ~queued & ~open_ & ~begun)],
)
# fmt: on
