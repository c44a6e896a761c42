"""One session on the perfect bench: a trainer and its host against each other, a fresh receiver for every payload.

The supervisor, the user and the world are played by the test. Messages are lost by clearing a queue, repeated by appending to it, and
reordered by hand; timers fire when the test says so.
"""

from __future__ import annotations

from typing import Any

from attrs import define

from tests.statemachines.bench import WIRES, Address, Bench
from troth.spec import core
from troth.spec import messages as m
from troth.spec.engine import PartyCore
from troth.spec.limits import Limits
from troth.statemachines import Host, HostConfig, Receiver, ReceiverConfig, Trainer, TrainerConfig

LIMITS = Limits()
TO_TRAINER: Address = ("trainer", "control")
TO_HOST: Address = ("host", "control")
DATA_TO_TRAINER: Address = ("trainer", "data")
DATA_TO_RECEIVER: Address = ("result receiver", "data")


@define
class Session(Bench):
    """A trainer, its host, and their receivers."""

    limits: Limits = LIMITS

    def deliver(self, address: Address) -> core.Step:
        """Hand the oldest message over; a payload to fetch gets a receiver of its own, and one that never began hears nothing."""
        name, link = address
        if name not in self.cores and link == "data":
            self.queues[address].popleft()
            return core.Step()
        if isinstance(self.queues[address][0], m.FetchPayload):
            self.cores[name] = Receiver(ReceiverConfig(limits=self.limits))
            for pending in [where for where in self.armed if where[0] == name]:
                del self.armed[pending]
        return Bench.deliver(self, address)

    def settle(self) -> None:
        """Deliver every message, but finish no transfer."""
        while waiting := self.ready():
            self.deliver(waiting[0])

    def lose(self, address: Address) -> list[core.Message]:
        """Lose what waits there."""
        lost = list(self.queues.get(address, ()))
        self.queues.pop(address, None)
        return lost

    def order(self, message: core.Message) -> core.Step:
        """The supervisor asks its host for something."""
        return self.give("host", core.Received("supervisor", message))

    def execute(self, *, inline: bool = True, receivers: int = 1) -> core.Step:
        """The supervisor gives its host a task."""
        return self.order(m.ExecuteTask(launch=1, receivers=receivers, inline=inline))

    def take(self, number: int) -> None:
        """The user receives a task and takes it."""
        self.call("trainer", "receive", number)
        self.call("trainer", "take", number)

        assert self.outcomes("trainer", "take")[-1] == "task"

    def send(self, number: int, *, inline: bool = True, content: int = 0) -> core.Step:
        """The user sends a result."""
        return self.call("trainer", "send", number, m.SendArguments(content=content, inline=inline))

    def working(self, number: int = 2, *, receivers: int = 1) -> None:
        """A task goes out, and the user holds it."""
        self.execute(receivers=receivers)
        self.run()
        self.take(number)

    def redial(self) -> None:
        """The control link comes up on both sides."""
        self.give("trainer", core.LinkUp("control"))
        self.give("host", core.LinkUp("control"))
        self.run()

    def anew(self, name: str, core_: PartyCore) -> None:
        """The process of a core is started anew: its timers and transfers are gone, and what was on its links with it."""
        self.cores[name] = core_
        for where in [where for where in self.armed if where[0] == name]:
            del self.armed[where]
        self.lose(TO_TRAINER)
        self.lose(TO_HOST)

    def trainer_anew(self, *, launched: bool = False) -> None:
        """The trainer's script is started again, and calls init()."""
        self.anew("trainer", Trainer(TrainerConfig(launched=launched, limits=self.limits)))
        self.call("trainer", "init", 1, m.InitArguments(control_rank=True))
        self.redial()

    def host_anew(self) -> None:
        """The host's process is started again, counts its epochs anew, and wants a trainer."""
        self.anew("host", Host(HostConfig(launched=False, instance=1, limits=self.limits)))
        self.order(m.StartSession(launch=1))
        self.redial()

    def timers(self, name: str) -> set[str]:
        """The timers that run there."""
        return {timer for who, timer, _ in self.armed if who == name}

    def to_supervisor(self, kind: type[core.Message]) -> list[Any]:
        """What the host told its supervisor, of one kind."""
        return [message for name, message in self.sent if name == "host" and isinstance(message, kind)]

    @property
    def ended(self) -> list[str]:
        """The outcomes of the tasks, in order."""
        return [said.outcome.value for said in self.to_supervisor(m.TaskEnded)]

    def said(self, name: str, kind: type[core.Message]) -> list[Any]:
        """What one core sent, of one kind."""
        return [message for who, message in self.sent if who == name and isinstance(message, kind)]

    def where(self, name: str, machine: str, key: core.Key = None) -> str:
        """The state of a machine, in words."""
        return str(self.cores[name].state(machine, key).value)


def session(*, launched: bool = True, one_shot: bool = False, limits: Limits = LIMITS) -> Session:
    """Before anything has happened."""
    cores: dict[str, PartyCore] = {
        "trainer": Trainer(TrainerConfig(launched=launched, one_shot=one_shot, limits=limits)),
        "host": Host(HostConfig(launched=launched, limits=limits)),
    }
    return Session(cores, dict(WIRES), limits=limits)


def ready(*, launched: bool = True, one_shot: bool = False, limits: Limits = LIMITS) -> Session:
    """Both sides are READY."""
    made = session(launched=launched, one_shot=one_shot, limits=limits)
    made.order(m.StartSession(launch=1))
    if launched:
        made.give("host", core.ProcessStarted())
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.redial()

    assert made.outcomes("trainer", "init") == ["ok"]
    return made
