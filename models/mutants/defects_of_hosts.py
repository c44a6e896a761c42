"""Defects of the reference that stand in the tables of a host and of a supervisor."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from attrs import evolve, frozen

from troth.models.mutants.patches import Patch, added, altered, unbounded, without
from troth.spec import Ignore, Machine, Row, always, atom
from troth.spec.emits import send, set_timer, signal
from troth.spec.machine import SAME, keep
from troth.spec.messages import Abort, Heartbeat, RejectReason, TaskOutcome, TaskReady
from troth.statemachines.host import acceptance, delivery, session
from troth.statemachines.host.acceptance import TAKEN
from troth.statemachines.host.delivery import UNANSWERED, DeliveryState
from troth.statemachines.host.session import BOUND
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.words import CONTROL, is_, own, session_epoch, then
from troth.statemachines.supervisor import gate, teardown
from troth.statemachines.supervisor.launches import LaunchState
from troth.statemachines.supervisor.teardown import TeardownData, TeardownState

S, D, W = HostSessionState, DeliveryState, TeardownState


def ignoring(machine: Machine, trigger: str, states: Iterable[Enum], why: str) -> Machine:
    """``machine`` with one case more that it ignores."""
    return evolve(machine, ignore=(*machine.ignore, Ignore(trigger, tuple(states), why)), validate=False)


@frozen
class Latched(TeardownData):
    """What the reference remembers besides."""

    latched: bool = False


def latch(data: Any, event: Any) -> Any:  # noqa: ARG001
    """The whole run counts as aborted."""
    return evolve(data, latched=True)


latched = atom("latched", of=lambda view, event: view.own.data.latched)
serving = atom("serving", reads=["launches"], of=lambda view, event: view.launches.count(LaunchState.RETAINED) > 0)


def d1(machine: Machine) -> Machine:
    """A task that failed marks the whole run as aborted, and END_RUN then kills at once the trainers that still serve other results.

    Only where a trainer is launched for every task: there the mark has no other meaning. P39: a launch that fails fails itself only.
    """
    if machine.name == "gate":
        for id_ in ("G15", "G18"):
            machine = altered(machine, id_, lambda row: evolve(row, emit=[*row.emit, signal("teardown", "latch")]))
        return machine
    machine = evolve(machine, data=Latched, validate=False)
    at_once = [teardown.shut, *teardown.force]
    rows = [
        Row("D1-latch", tuple(W), "latch", always, SAME, latch, [], "the run has failed"),
        Row(
            "D1-end",
            W.OPEN,
            "finalize",
            teardown.unclaimed & latched & serving,
            W.FORCING,
            teardown.claim_stopped,
            at_once,
            "so there is nothing to drain",
        ),
    ]
    return added(machine, *rows)


def d2(machine: Machine) -> Machine:
    """While the answer to the offer is out, a result that was accepted is not looked at; it is never looked at again.

    P51: every task gets an outcome; and with a budget P34, which says that an accepted result is not reported as undelivered.
    """
    for id_ in ("D15", "D16"):
        machine = altered(machine, id_, lambda row: evolve(row, sources=(D.WAITING,)))
    return ignoring(machine, "result", UNANSWERED, "the answer to the offer comes first")


def d3(machine: Machine) -> Machine:
    """A cancel of a task whose result was just accepted leaves the result accepted; the trainer drops it, and the run fails for it.

    P59: an accepted result is settled, given up by the host itself, or reported lost in the end.
    """
    return ignoring(without(machine, "A21"), "cancel", (acceptance.AcceptanceState.ACCEPTED,), "its task is cancelled, not its result")


beats = atom("beats", of=lambda view, event: isinstance(event, Heartbeat))


def d5(machine: Machine) -> Machine:
    """A host that drains refuses the heartbeats of the trainer that it waits for, and then declares it dead.

    P75: every beat is answered while the session lasts.
    """
    machine = altered(machine, "H32", lambda row: evolve(row, sources=(S.READY, S.ABORTING)))
    heard = altered(machine, "H32", lambda row: row).row("H32")
    return added(machine, evolve(heard, id="D5", sources=(S.DRAINING,), guard=session.current & ~beats))


ready = atom("ready", reads=["session"], of=lambda view, event: view.session.state is S.READY)


def d6(machine: Machine) -> Machine:
    """Whether the host is closing is asked before what it accepted: a result that it has is rejected.

    P09: what was accepted is never rejected.
    """
    closing = [acceptance.reject(RejectReason.CANCELLED)]
    for trigger in ("result_ready", "result_status"):
        machine = added(machine, Row(f"D6-{trigger}", TAKEN, trigger, ~ready, SAME, keep, closing, "the host is closing"))
    return machine


UNFENCED = send(
    CONTROL, TaskReady, epoch=session_epoch, seq=own("seq"), attempt=own("attempt"), floor=is_(1), content=is_(0),
    receivers=own("receivers"), inline=own("inline"),
)  # fmt: skip


def d11(machine: Machine) -> Machine:
    """A task whose delivery is given up is not cancelled, and later offers do not say that it is.

    So the trainer runs it, behind its successor or instead of it. P97: what is given up is cancelled, and fenced.
    """
    given_up = then(delivery.forsake, delivery.let_go, delivery.quiet, delivery.SAY[TaskOutcome.UNDELIVERED])
    for id_ in ("D9", "D12", "D23"):
        machine = altered(machine, id_, lambda row: evolve(row, target=D.IDLE, emit=given_up))
    for id_ in ("D1", "D2", "D7", "D8", "D10", "D11", "D21"):
        machine = altered(machine, id_, lambda row: evolve(row, emit=_exchanged(row, delivery.OFFER, UNFENCED)))
    return machine


ABORT = send(CONTROL, Abort, epoch=session_epoch)


def d12(machine: Machine) -> Machine:
    """A task is cancelled by ABORT, which has no task in it and is said once: the trainer ends, and the host keeps it for later tasks.

    P24: a cancel touches its own task only.
    """
    aborted = then(delivery.forsake, delivery.let_go, delivery.quiet, delivery.SAY[TaskOutcome.CANCELLED], ABORT)
    return altered(machine, "D25", lambda row: evolve(row, target=D.IDLE, emit=aborted))


def d13(machine: Machine) -> Machine:
    """A source that is settled is settled once: the notice, said again because its answer was lost, is not answered any more.

    P50: send() returns.
    """
    return ignoring(without(machine, "A19"), "settled", (acceptance.AcceptanceState.ABSENT, *acceptance.OVER), "there is no such source")


@frozen
class InTurn(TeardownData):
    """How many launches were forced so far."""

    forced: int = 0


def one_more(data: Any, event: Any) -> Any:  # noqa: ARG001
    """The next one's turn has come."""
    return evolve(data, forced=data.forced + 1)


more_left = atom("more_left", reads=["launches"], of=lambda view, event: view.own.data.forced < len(view.launches))
next_one = signal("launches", "abort", key=lambda f: sorted(f.view.launches)[f.view.own.data.forced])


def d17(machine: Machine) -> Machine:
    """A trainer whose result is still being fetched is kept, however many there are; and in the end they are forced one after the other.

    P19: a backend never has more launches than its limit. And P52: its end is bounded whatever their number; each has a budget here.
    """
    if machine.name == "launches":
        return unbounded(machine)
    if machine.name == "gate":
        return altered(without(machine, "G12"), "G11", lambda row: evolve(row, guard=~gate.persistent))
    machine = evolve(machine, data=InTurn, validate=False)
    turn = [next_one, set_timer("teardown", "force_budget_s")]
    machine = altered(machine, "W11", lambda row: evolve(row, update=one_more, emit=turn))
    return added(machine, Row("D17", W.FORCING, "silence", more_left, SAME, one_more, turn, "and the next one"))


def d20(machine: Machine) -> Machine:
    """Whether a trainer is alive is asked of a table that it never stands in: the host that drains it finds nobody, and gives it up.

    So long before its lease is over, and although it answers. Only one that somebody else started: over the reference's network no such
    trainer is connected directly. P98: only the lease, an order or the process's end ends a session.
    """
    lost = then(session.lose_all, session.stop_process, session.wind_up)
    gone = Row("D20", S.DRAINING, "retry", ~session.launched, S.CLOSING, session.verdict_lost, lost, "it is not in the table")
    return added(machine, gone)


unanswered = atom("unanswered", reads=["delivery"], of=lambda view, event: view.delivery.state in UNANSWERED)


def d23(machine: Machine) -> Machine:
    """A host that waits for the answer to an offer asks neither its lease nor a budget: a trainer that is stuck hangs it for ever.

    P51: every task gets an outcome; P40: a lease that has expired ends the session.
    """
    if machine.name == "delivery":
        return ignoring(without(machine, "D23"), "silence", UNANSWERED, "it waits for the answer, as long as that takes")
    machine = altered(machine, "H46", lambda row: evolve(row, guard=~unanswered))
    deaf = Ignore("lost", BOUND, "it waits for the answer, as long as that takes", unanswered)
    return evolve(machine, ignore=(*machine.ignore, deaf), validate=False)


def _exchanged(row: Row, old: Any, new: Any) -> list[Any]:
    found = [new if emission is old else emission for emission in row.emit]
    if all(one is other for one, other in zip(found, row.emit, strict=True)):
        raise ValueError(f"row {row.id} does not `{old}`, so there is nothing to exchange")
    return found


HOSTS = (
    Patch(
        "D1", "a task that failed spoils the drain of another's result", "supervisor", ("gate", "teardown"), d1, "P39", "supervisor/tasks"
    ),
    Patch("D2", "an accepted result is ignored while the offer is unanswered", "host", ("delivery",), d2, "P34", "external/returns"),
    Patch("D3", "a cancel after the acceptance fails the job", "host", ("acceptance",), d3, "P59", "transfer/sole"),
    Patch("D5", "a draining host refuses heartbeats", "host", ("session",), d5, "P75", "lease"),
    Patch("D6", "a closing host denies what it accepted", "host", ("acceptance",), d6, "P09", "external/returns"),
    Patch("D11", "a delivery that was given up is not cancelled", "host", ("delivery",), d11, "P97", "external/patient"),
    Patch("D12", "a task is cancelled by ABORT", "host", ("delivery",), d12, "P24", "external/patient"),
    Patch("D13", "a settlement is answered once", "host", ("acceptance",), d13, "P50", "external/answers"),
    Patch(
        "D17",
        "trainers are kept without a limit, and ended one by one",
        "supervisor",
        ("gate", "launches", "teardown"),
        d17,
        "P19",
        "supervisor/tasks",
    ),
    Patch("D20", "a trainer that is not connected directly is taken for lost", "host", ("session",), d20, "P98", "attach"),
    Patch("D23", "a wait for an answer asks no lease", "host", ("session", "delivery"), d23, "P40", "external/patient"),
)
