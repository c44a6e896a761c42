"""Every watcher can fail: for each one a seeded fault, and a short script that it does not survive.

A watcher that never fails shows nothing. So each of them is given a core whose table was broken on purpose, in the one place that it is
there for, and must name its property; the same script must pass on the table as it is. The faults are rows with another guard, target,
update or emission. Two of them need more: a family that grows above its limit is stopped by the engine, so the limit goes too (P06,
P19); and no table can make a refusal change anything, so it is the engine that forgets to roll back (P22).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from attrs import define, evolve, field, frozen

from tests.statemachines import watch
from tests.statemachines.trio import Deal, Trio
from tests.statemachines.watch import WATCHERS, Watch
from troth.spec import core
from troth.spec import messages as m
from troth.spec.emits import Forward, each, signal
from troth.spec.engine import PartyCore
from troth.spec.guards import always
from troth.spec.limits import Limits
from troth.spec.machine import SAME, Family, Ignore, Machine, Refuse
from troth.spec.party import Party
from troth.spec.properties import PROPERTIES
from troth.statemachines import PARTIES, SupervisorConfig
from troth.statemachines.host import process
from troth.statemachines.host.acceptance import ACCEPTED, LOST, AcceptanceState, reject, take
from troth.statemachines.host.delivery import DeliveryState
from troth.statemachines.host.session import ENDED
from troth.statemachines.receiver import DownloadState
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.trainer import ledger, publication
from troth.statemachines.trainer.session import ABORT_ACCEPTED, lose
from troth.statemachines.trainer.states import TrainerSessionState

Change = Callable[[Machine], Machine]
ONE = m.ExecuteArguments(receivers=1, inline=True)


# -- faults ------------------------------------------------------------------------------------------------------------


def _row(id_: str, of: Callable[[Any], dict[str, Any]]) -> Change:
    def change(machine: Machine) -> Machine:
        rows = [evolve(row, **of(row)) if row.id == id_ else row for row in machine.rows]
        machine.row(id_)
        return _rebuilt(machine, rows=rows)

    return change


def _rebuilt(machine: Machine, **changes: Any) -> Machine:
    kept = {a.name: getattr(machine, a.name) for a in attrs.fields(Machine) if a.init}
    return Machine(**{**kept, **changes, "validate": False})


def row(id_: str, **changes: Any) -> Change:
    """The row with other parts. Rows come before ignores and refusals, so a wider guard takes what was ignored or refused."""
    return _row(id_, lambda _row: changes)


def unsaid(id_: str, machine: str, trigger: str) -> Change:
    """The row without one of its signals."""

    def kept(emission: Any) -> bool:
        return not (isinstance(emission, Forward) and (emission.machine, emission.trigger) == (machine, trigger))

    return _row(id_, lambda row: {"emit": [emission for emission in row.emit if kept(emission)]})


def said_too(id_: str, emission: Any) -> Change:
    """The row with one more emission."""
    return _row(id_, lambda row: {"emit": [emission, *row.emit]})


def as_row(id_: str, model: str, **changes: Any) -> Change:
    """The row with the emissions of another."""

    def change(machine: Machine) -> Machine:
        return row(id_, emit=machine.row(model).emit, **changes)(machine)

    return change


def unbounded(machine: Machine) -> Machine:
    """The family without its limit, so that it is the rows alone that keep it."""
    assert machine.family is not None
    return _rebuilt(machine, family=Family(machine.family.key, 100))


def both(first: Change, second: Change) -> Change:
    """Two faults of one machine."""
    return lambda machine: second(first(machine))


def refusing(trigger: str, states: tuple[Any, ...], *ids: str) -> Change:
    """Without these rows: what they took is refused."""

    def change(machine: Machine) -> Machine:
        rows = [row for row in machine.rows if row.id not in ids]
        return _rebuilt(machine, rows=rows, refuse=[*machine.refuse, Refuse(trigger, states, "seeded")])

    return change


def skip_one(data: Any, event: Any) -> Any:
    """A sequence that rises by two."""
    return evolve(data, seq=data.seq + 2, attempt=1, receivers=event.receivers, inline=event.inline)


def pass_by_only(data: Any, event: Any) -> Any:
    """D9: the sequence is noted, and an older one keeps its second chance."""
    return evolve(data, highest=max(data.highest, event.seq))


def deaf_when_suspect(machine: Machine) -> Machine:
    """A suspect cannot clear itself any more."""
    doubtful = (LeaseState.SUSPECT, LeaseState.UNRESPONSIVE)
    rows = [evolve(row, sources=(LeaseState.ARMED, LeaseState.SUSPENDED)) if row.id == "L2" else row for row in machine.rows]
    return _rebuilt(machine, rows=rows, ignore=[*machine.ignore, Ignore("life", doubtful, "seeded")])


# -- scripts -----------------------------------------------------------------------------------------------------------


def run(trio: Trio) -> None:
    """Deliver everything, and finish every transfer."""
    while True:
        if waiting := trio.bench.ready():
            trio.deliver(waiting[0])
        elif trio.bench.pulls:
            trio.finish(next(iter(trio.bench.pulls)), core.TransferOutcome.COMPLETE)
        else:
            return


def execute(trio: Trio, *, inline: bool = True) -> None:
    """A task goes out."""
    trio.order(m.ExecuteTask, receivers=1, inline=inline)


def working(trio: Trio) -> None:
    """A task goes out, and the user takes it."""
    execute(trio)
    run(trio)
    trio.call("receive")
    trio.call("take", None, trio.number)


def send(trio: Trio, *, inline: bool = True) -> None:
    """The user sends a result."""
    trio.call("send", m.SendArguments(content=0, inline=inline))


def hear(trio: Trio, name: str, message: core.Message, link: str = "control") -> None:
    """A message that nobody of these sent."""
    trio.give(name, core.Received(link, message))


def deliver_to(trio: Trio, name: str, link: str = "control") -> None:
    """Everything that waits there, and nothing else."""
    while trio.bench.queues.get((name, link)):
        trio.deliver((name, link))


def lost_with_a_task(trio: Trio) -> None:
    """P01: the session goes while a task is remembered."""
    execute(trio)
    run(trio)
    trio.give("trainer", core.OwnerLost())


def reserved_while_draining(trio: Trio) -> None:
    """P02: a payload arrives after SHUTDOWN, while the result of the task before is being settled."""
    working(trio)
    send(trio)
    deliver_to(trio, "host")
    execute(trio, inline=False)
    deliver_to(trio, "trainer")
    trio.order(m.CloseSession)
    deliver_to(trio, "trainer")
    for pull in list(trio.bench.pulls):
        trio.finish(pull, core.TransferOutcome.COMPLETE)


def asked_while_reserved(trio: Trio) -> None:
    """P03: the payload is on its way when the host asks."""
    execute(trio, inline=False)
    deliver_to(trio, "trainer")
    trio.fire("host", "task", None)
    deliver_to(trio, "trainer")


def sent_and_received_again(trio: Trio) -> None:
    """P04: the user answers a task and asks for the next."""
    working(trio)
    send(trio)
    run(trio)
    trio.call("receive")
    trio.call("take", None, trio.number)


def offered_after_its_cancel(trio: Trio) -> None:
    """P05: CANCEL_TASK overtakes the offer."""
    execute(trio)
    late = trio.bench.queues["trainer", "control"].popleft()
    trio.order(m.StopTask)
    deliver_to(trio, "trainer")
    hear(trio, "trainer", late)


def three_tasks(trio: Trio) -> None:
    """P06: one more than is remembered."""
    for _ in range(3):
        execute(trio)
        run(trio)
        trio.order(m.StopTask)
        run(trio)


def two_tasks(trio: Trio) -> None:
    """P07."""
    for _ in range(2):
        execute(trio)
        run(trio)
        trio.order(m.StopTask)
        run(trio)


def result_said_twice(trio: Trio) -> None:
    """P08: another attempt of a result that was taken."""
    working(trio)
    send(trio)
    deliver_to(trio, "host")
    hear(trio, "host", m.ResultReady(epoch=1, seq=1, attempt=2, content=0, inline=True))


def result_after_a_rejection(trio: Trio) -> None:
    """P09: the task is cancelled, a question is answered with REJECTED, and then the result comes."""
    working(trio)
    trio.order(m.StopTask)
    hear(trio, "host", m.ResultStatus(epoch=1, seq=1, attempt=1, last=False))
    hear(trio, "host", m.ResultReady(epoch=1, seq=1, attempt=1, content=0, inline=True))


def question_after_an_acceptance(trio: Trio) -> None:
    """P09, the other way round."""
    working(trio)
    send(trio)
    deliver_to(trio, "host")
    hear(trio, "host", m.ResultStatus(epoch=1, seq=1, attempt=1, last=False))


def exhausted(trio: Trio) -> None:
    """P10: every attempt is lost, and the host says REJECTED."""
    working(trio)
    send(trio)
    for _ in range(2):
        trio.bench.queues["host", "control"].clear()
        trio.fire("trainer", "result", 1)
        deliver_to(trio, "host")
        deliver_to(trio, "trainer")


def aborted_then_lost(trio: Trio) -> None:
    """P11, P20: an abort, and then the owner is gone."""
    trio.order(m.AbortSession)
    deliver_to(trio, "trainer")
    trio.give("trainer", core.OwnerLost())


def lost_then_aborted(trio: Trio) -> None:
    """P11: the guardian is gone, and then comes an abort."""
    trio.give("host", core.OwnerLost())
    trio.order(m.AbortSession)


def aborted_while_waiting(trio: Trio) -> None:
    """P12: a thread waits in receive()."""
    trio.call("receive")
    trio.order(m.AbortSession)
    deliver_to(trio, "trainer")


def aborted_while_sending(trio: Trio) -> None:
    """P12: a result is being published, and waits at its source."""
    working(trio)
    send(trio, inline=False)
    trio.order(m.AbortSession)
    deliver_to(trio, "trainer")


def shut_down_while_sending(trio: Trio) -> None:
    """P13."""
    working(trio)
    send(trio)
    trio.order(m.CloseSession)
    deliver_to(trio, "trainer")


def silent_trainer(trio: Trio) -> None:
    """P14: the host's lease is due."""
    trio.fire("host", "lease", None)


def silent_host(trio: Trio) -> None:
    """P14: the trainer's lease is due."""
    trio.fire("trainer", "lease", None)


def received_then_shut_down(trio: Trio) -> None:
    """P15: receive() returned with a task; then the session ends."""
    trio.call("receive")
    execute(trio)
    run(trio)
    trio.order(m.CloseSession)
    deliver_to(trio, "trainer")


def aborted(trio: Trio) -> None:
    """P16, P17: the session ends at once, and its process later."""
    trio.order(m.AbortSession)
    run(trio)


def old_cancel(trio: Trio) -> None:
    """P18: a message of another epoch, at the trainer."""
    hear(trio, "trainer", m.CancelTask(epoch=7, seq=1))


def old_beat(trio: Trio) -> None:
    """P18: a message of another epoch, at the host."""
    hear(trio, "host", m.Heartbeat(epoch=7))


def loss_said_twice(trio: Trio) -> None:
    """P21: a result that did not reach its receivers is settled, and the notice is repeated."""
    working(trio)
    send(trio, inline=False)
    deliver_to(trio, "host")
    for _ in range(2):
        hear(trio, "host", m.ResultSourceSettled(epoch=1, seq=1, delivered=False))


def loss_after_holding(trio: Trio) -> None:
    """P21: the receiver holds the payload when it hears that the source is gone."""
    hear(trio, "result receiver", m.FetchPayload(epoch=1, seq=1, inline=False), "party")
    trio.finish(("result receiver", "payload", (1, 0)), core.TransferOutcome.COMPLETE)
    hear(trio, "result receiver", m.DropPayload(epoch=1, seq=1, lost=True), "party")


def misuse(trio: Trio) -> None:
    """P22: a result without a task."""
    send(trio)


def lost_offer(trio: Trio) -> None:
    """P23: TASK_READY is lost, and the host asks."""
    execute(trio)
    trio.bench.queues["trainer", "control"].clear()
    trio.fire("host", "task", None)
    run(trio)


def second_task_stopped(trio: Trio) -> None:
    """P24: a result is still being served when the next task is cancelled."""
    working(trio)
    send(trio, inline=False)
    deliver_to(trio, "host")
    execute(trio)
    trio.order(m.StopTask)


def late_copy_of_a_failed_task(trio: Trio) -> None:
    """P05, D9: task 1 failed and might come again; task 2 came; then a late copy of task 1."""
    execute(trio, inline=False)
    first = trio.bench.queues["trainer", "control"][0]
    assert isinstance(first, m.TaskReady)
    deliver_to(trio, "trainer")
    hear(trio, "trainer", m.PayloadLost(epoch=1, seq=1, receiver=0), "receivers")
    hear(trio, "trainer", evolve(first, seq=2))
    hear(trio, "trainer", first)


def answered_by_a_beat(trio: Trio) -> None:
    """P14: the peer is suspect, and speaks; then the same timer again, from the start."""
    trio.fire("host", "lease", None)
    hear(trio, "host", m.Heartbeat(epoch=1))
    for _ in range(2):
        trio.fire("host", "lease", None)


def executed_twice(trio: Trio) -> None:
    """P07: a task is out when the next one is asked for."""
    for _ in range(2):
        execute(trio)


def died_while_serving(trio: Trio) -> None:
    """P21: the process ends while a receiver is fetching its result."""
    working(trio)
    send(trio, inline=False)
    deliver_to(trio, "host")
    trio.give("host", core.ProcessExited())


# -- the seeds ---------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Seed:
    """A watcher, a party with faults in its machines, and the script that shows them."""

    id: str
    party: str
    faults: dict[str, Change]
    script: Callable[[Any], None]
    watcher: Any
    deal: Deal

    def broken(self) -> Party:
        """The party with its faults."""
        found = PARTIES[self.party]
        for name, change in self.faults.items():
            found = found.replaced(change(found.by_name[name]))
        return found


def seed(watcher: Any, party: str, script: Callable[[Any], None], deal: Deal = Deal(), **faults: Change) -> Seed:  # noqa: B008 - frozen
    """A seed for a watcher of ``watch``."""
    return Seed(id=watcher.__name__.upper(), party=party, faults=faults, script=script, watcher=watcher, deal=deal)


def by_trio(id_: str, party: str, script: Callable[[Any], None], **faults: Change) -> Seed:
    """A seed for a property that the trio itself watches."""
    return Seed(id=id_, party=party, faults=faults, script=script, watcher=None, deal=Deal())


STAY = row("C2", target=SAME)
ANYWHERE = row("S24", guard=always)
AT_ONCE = as_row("L4", "L8", target=LeaseState.EXPIRED)
UNHEARD = Deal(receives=False)

SEEDS = (
    seed(watch.p01, "trainer", lost_with_a_task, session=row("S38", target=TrainerSessionState.NEW)),
    seed(watch.p02, "trainer", reserved_while_draining, session=unsaid("S29", "ledger", "stop")),
    seed(watch.p03, "trainer", asked_while_reserved, ledger=row("K28", emit=[ledger.ACCEPT])),
    seed(watch.p04, "trainer", sent_and_received_again, ledger=row("K17", target=ledger.LedgerState.QUEUED)),
    seed(watch.p05, "trainer", offered_after_its_cancel, ledger=row("K1", guard=always)),
    seed(watch.p05, "trainer", late_copy_of_a_failed_task, intake=row("I3", update=pass_by_only)),
    seed(watch.p06_trainer, "trainer", three_tasks, ledger=both(row("K1", guard=always), unbounded)),
    seed(watch.p06_host, "host", three_tasks, acceptance=both(row("A1", guard=always), unbounded)),
    seed(watch.p07, "host", two_tasks, delivery=row("D1", update=skip_one)),
    seed(watch.p08, "host", result_said_twice, acceptance=row("A5", update=take)),
    seed(watch.p09, "host", result_after_a_rejection, acceptance=row("A7", target=AcceptanceState.SAFE, update=take, emit=[ACCEPTED])),
    seed(watch.p09, "host", question_after_an_acceptance, acceptance=row("A11", emit=[reject(m.RejectReason.EXHAUSTED)])),
    by_trio("P10", "trainer", exhausted, publication=as_row("P15", "P19", target=publication.PublicationState.SETTLED)),
    seed(watch.p11_trainer, "trainer", aborted_then_lost, session=row("S50", update=lose)),
    seed(watch.p11_host, "host", lost_then_aborted, session=row("H47", guard=always)),
    seed(watch.p12, "trainer", aborted_while_waiting, session=unsaid("S33", "calls", "done")),
    seed(watch.p12, "trainer", aborted_while_sending, publication=unsaid("P21", "calls", "done")),
    seed(watch.p12, "trainer", aborted_while_sending, publication=unsaid("P21", "source", "release")),
    seed(watch.p13, "trainer", shut_down_while_sending, session=row("S28", guard=always)),
    seed(watch.p13, "trainer", shut_down_while_sending, session=said_too("S29", signal("publication", "cancel", key=each))),
    seed(watch.p14, "trainer", silent_host, lease=AT_ONCE),
    seed(watch.p14, "host", silent_trainer, lease=AT_ONCE),
    seed(watch.p14, "host", answered_by_a_beat, lease=deaf_when_suspect),
    seed(watch.p15, "trainer", received_then_shut_down, calls=STAY),
    seed(watch.p16, "host", aborted, process=row("X8", emit=process.kill)),
    seed(watch.p16, "host", aborted, Deal(launched=False), session=said_too("H34", process.term[0])),
    seed(watch.p17, "host", aborted, session=row("H48", guard=always)),
    seed(watch.p17, "host", aborted, session=said_too("H36", ENDED)),
    seed(watch.p18, "trainer", old_cancel, session=ANYWHERE),
    seed(watch.p18, "host", old_beat, session=row("H27", guard=always)),
    seed(watch.p21_host, "host", loss_said_twice, acceptance=row("A16", emit=[LOST])),
    seed(watch.p21_receiver, "receiver", loss_after_holding, download=row("R20", target=DownloadState.LOST)),
    seed(watch.p24, "host", second_task_stopped, UNHEARD, delivery=said_too("D21", signal("acceptance", "cancel", key=each))),
    by_trio("P23", "trainer", lost_offer, ledger=refusing("status", (ledger.LedgerState.ABSENT,), "K27")),
)  # fmt: skip


def _blind(seeded: Seed, why: str) -> Any:
    return pytest.param(seeded, marks=pytest.mark.xfail(raises=pytest.fail.Exception, reason=why))


BLIND = (
    _blind(
        seed(watch.p07, "host", executed_twice, delivery=row("D1", sources=tuple(DeliveryState))),
        "p07 sees that sequences rise by one, not that a task is out already",
    ),
    _blind(
        seed(watch.p12, "trainer", aborted_while_sending, session=row("S33", target=SAME, emit=[ABORT_ACCEPTED])),
        "p12 asks whether the session says that it is aborted, not whether an ABORT came",
    ),
    _blind(
        seed(watch.p16, "host", aborted, process=row("X8", emit=[*process.term, process.kill[0]])),
        "p16 sees that TERM came before KILL, not that there was a grace between them",
    ),
    _blind(
        seed(watch.p17, "host", aborted, process=row("X8", target=process.ProcessState.EXITED, emit=[process.term[0]])),
        "p17 believes the process machine that nothing is left, though no exit was reported",
    ),
    _blind(
        seed(watch.p21_host, "host", died_while_serving, acceptance=row("A17", emit=[])),
        "p21 sees that a loss is told twice, not that it is not told",
    ),
)
"""Faults that a watcher ought to see and does not."""


def _patched(party: Party) -> type[PartyCore]:
    class Patched(PartyCore):
        """The core of a broken party."""

        def __init__(self, config: Any = None, **options: Any) -> None:
            super().__init__(party, config, **options)

    return Patched


def _ready(deal: Deal) -> Trio:
    made = Trio(deal)
    made.connect()
    run(made)
    return made


@pytest.mark.parametrize("seeded", [*SEEDS, *BLIND], ids=lambda seeded: f"{seeded.id}-{seeded.party}-{seeded.script.__name__}")
def test_a_seeded_fault_is_seen(seeded: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the watcher of its property, and by no other before it; without the fault the script is harmless."""
    seeded.script(_ready(seeded.deal))
    monkeypatch.setattr(f"tests.statemachines.trio.{seeded.party.capitalize()}", _patched(seeded.broken()))

    with pytest.raises(AssertionError, match=rf"^{seeded.id} "):
        seeded.script(_ready(seeded.deal))


def test_an_engine_that_does_not_roll_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """P22: no table can break it, so the fault is in the engine."""
    made = _ready(Deal())
    misuse(made)
    assert made.bench.refusals, "the call is refused, and that is all"
    monkeypatch.setattr("troth.spec.store.Store.undo", lambda _self, _saved: None)

    with pytest.raises(AssertionError, match=r"^P22 "):
        misuse(_ready(Deal()))


# -- the supervisor ----------------------------------------------------------------------------------------------------


@define
class Backend:
    """A watched supervisor; its hosts are played by the script."""

    held: PartyCore
    watched: Watch = field(init=False)
    number: int = 0

    def __attrs_post_init__(self) -> None:
        self.watched = Watch(self.held, PartyCore(self.held.party, self.held.config))

    def give(self, event: core.Event) -> None:
        """Handle an event, and watch."""
        self.watched.look(event, self.held.handle(event))

    def call(self, call: str, payload: Any = None) -> None:
        """A user's call."""
        self.number += 1
        self.give(core.Called(call, self.number, payload))

    def hear(self, message: core.Message) -> None:
        """A host says something."""
        self.give(core.Received("hosts", message))


def aborted_after_a_start(backend: Backend) -> None:
    """P15: start() has returned when the run is aborted."""
    backend.call("start")
    backend.hear(m.SessionStarted(launch=1))
    backend.call("abort")


def two_retained(backend: Backend) -> None:
    """P19: one trainer more than may be kept."""
    backend.call("start")
    backend.call("execute", ONE)
    backend.hear(m.SessionStarted(launch=1))
    backend.hear(m.TaskEnded(launch=1, outcome=m.TaskOutcome.RESULT))
    backend.call("execute", ONE)


def aborted_after_a_loss(backend: Backend) -> None:
    """P20: the run has failed when it is aborted."""
    backend.call("start")
    backend.hear(m.ResultLost(launch=1))
    backend.call("abort")


BACKENDS = (
    seed(watch.p15, "supervisor", aborted_after_a_start, calls=STAY),
    seed(watch.p19, "supervisor", two_retained, gate=row("G9", guard=always), launches=unbounded),
    seed(watch.p20, "supervisor", aborted_after_a_loss, teardown=row("W4", guard=always)),
)


@pytest.mark.parametrize("seeded", BACKENDS, ids=lambda seeded: f"{seeded.id}-{seeded.script.__name__}")
def test_a_seeded_fault_of_a_backend_is_seen(seeded: Seed) -> None:
    """The same for the supervisor."""
    config = SupervisorConfig(persistent=seeded.script is not two_retained, limits=Limits(retained_limit=1))
    seeded.script(Backend(PartyCore(PARTIES["supervisor"], config)))

    with pytest.raises(AssertionError, match=rf"^{seeded.id} "):
        seeded.script(Backend(PartyCore(seeded.broken(), config)))


# -- nothing is left out -----------------------------------------------------------------------------------------------

BY_TRIO = {"P10", "P23"}
"""These are about two cores, so it is the trio that watches them."""


def test_every_property_has_a_watcher_for_every_party_that_it_is_about() -> None:
    """By the id of the property and the party's name."""
    missing = []
    for id_, found in PROPERTIES.items():
        for party in found.parties:
            names = {watcher.__name__.upper() for watcher in (*WATCHERS["any"], *WATCHERS[party])}
            if id_ not in names | BY_TRIO:
                missing.append((id_, party))

    assert missing == []


def test_every_watcher_has_a_seeded_fault() -> None:
    """Each watcher, at each party that it watches."""
    seeded = {(found.party, found.watcher) for found in (*SEEDS, *BACKENDS)}
    watched = {(party, watcher) for party, watchers in WATCHERS.items() if party != "any" for watcher in watchers}

    assert watched <= seeded
    assert {found.id for found in SEEDS} >= BY_TRIO
    assert WATCHERS["any"] == (watch.p22,), "P22 has a test of its own"
