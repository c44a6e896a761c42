"""Short scripts of events that a seeded fault does not survive: harmless on the tables as they are, each for one property."""

from __future__ import annotations

from typing import Any

from attrs import define, evolve, field

from tests.statemachines.trio import Trio
from tests.statemachines.watch import Watch
from troth.spec import core
from troth.spec import messages as m
from troth.spec.engine import PartyCore

ONE = m.ExecuteArguments(receivers=1, inline=True)


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
