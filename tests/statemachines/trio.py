"""A trainer, a host and their receivers on a bench, and everything that may happen to them next.

``Trio.enabled`` lists what can happen, in an order that does not depend on anything but the state, frequent things several times; a
walk is a list of numbers that choose. Each core is watched: see ``watch``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field, frozen

from tests.statemachines.alphabet import SMALL
from tests.statemachines.bench import LOCAL, WIRES, Address, Bench
from tests.statemachines.watch import Watch
from troth.spec import core
from troth.spec import messages as m
from troth.spec.engine import PartyCore
from troth.statemachines import Host, HostConfig, Receiver, ReceiverConfig, Trainer, TrainerConfig
from troth.statemachines.shared.calls import kind_of
from troth.statemachines.trainer.ledger import LedgerState

FINAL_TIMERS = ("join", "session", "budget", "lease", "process")
TASKS = 4


@frozen(kw_only=True)
class Deal:
    """How a walk is set up."""

    launched: bool = True
    one_shot: bool = False
    fail_unresponsive: bool = False
    receives: bool = True


@frozen
class Move:
    """One thing that may happen. ``weight`` is how often it is offered."""

    name: str
    do: Callable[[], Any]
    weight: int = 1


@define
class Trio:
    """The bench of one walk."""

    deal: Deal
    bench: Bench = field(init=False)
    watches: dict[str, Watch] = field(factory=dict)
    number: int = 10
    up: bool = False

    def __attrs_post_init__(self) -> None:
        deal = self.deal
        trainer = TrainerConfig(limits=SMALL, launched=deal.launched, fail_unresponsive=deal.fail_unresponsive, one_shot=deal.one_shot)
        host = HostConfig(limits=SMALL, launched=deal.launched, fail_unresponsive=deal.fail_unresponsive, receives=deal.receives)
        cores: dict[str, PartyCore] = {
            "trainer": Trainer(trainer),
            "host": Host(host),
            "task receiver": Receiver(ReceiverConfig(limits=SMALL)),
            "result receiver": Receiver(ReceiverConfig(limits=SMALL)),
        }
        self.bench = Bench(cores, WIRES, local=frozenset())
        for name in cores:
            self._watch(name)
        self.give("host", core.Received("supervisor", m.StartSession(launch=1)))
        if self.deal.launched:
            self.give("host", core.ProcessStarted())
        self.call("init", m.InitArguments(control_rank=True))

    def _watch(self, name: str) -> None:
        held = self.bench.cores[name]
        before = type(held)(held.config)
        before.restore(held.snapshot())
        self.watches[name] = Watch(held, before)

    def _looked(self, name: str, event: core.Event, step: core.Step) -> None:
        self.watches[name].look(event, step)
        for effect in step.effects:
            if isinstance(effect, core.Resolve) and effect.call == "send" and effect.outcome in (m.Outcome.ACCEPTED, m.Outcome.UNDELIVERED):
                self._check_accepted(effect.value)
        refusal = step.refusal
        ordered = isinstance(event, core.Received) and event.link == "supervisor"
        assert refusal is None or ordered or refusal.kind is core.RefusalKind.MISUSE, f"P23 {name} refused {event}: {refusal}"

    def _check_accepted(self, seq: int) -> None:
        canonical = self.watches["host"].canonical
        epoch = self.bench.cores["trainer"].data("session").epoch
        assert (epoch, seq) in canonical, f"P10 send() of task {seq} returned, but the host never accepted it"

    def give(self, name: str, event: core.Event) -> None:
        """Let a core handle an event, and watch."""
        step = self.bench.give(name, event)
        self._looked(name, event, step)
        for address in self.bench.ready():
            while address[1] in LOCAL and self.bench.queues[address]:
                self.deliver(address)

    def call(self, call: str, payload: Any = None, number: int | None = None) -> None:
        """A call of the trainer's user."""
        self.number += 1
        self.give("trainer", core.Called(call, self.number if number is None else number, payload))

    def deliver(self, address: Address) -> None:
        """The oldest message of a wire arrives. A fetch is a new receiver's."""
        name, link = address
        message = self.bench.queues[address].popleft()
        if isinstance(message, m.FetchPayload):
            self._renew(name)
        self.give(name, core.Received(link, message))

    def _renew(self, name: str) -> None:
        self.bench.cores[name] = Receiver(ReceiverConfig(limits=SMALL))
        self._watch(name)
        for pending in (self.bench.armed, self.bench.pulls):
            for key in [key for key in pending if key[0] == name]:
                del pending[key]

    def fire(self, name: str, timer: str, key: core.Key) -> None:
        """An armed timer fires."""
        generation, _ = self.bench.armed.pop((name, timer, key))
        self.give(name, core.TimerFired(timer, key, generation))

    def finish(self, pull: tuple[str, str, core.Key], outcome: core.TransferOutcome) -> None:
        """A transfer ends on its receiver's side."""
        del self.bench.pulls[pull]
        self.give(pull[0], core.TransferEnded(pull[1], pull[2], outcome))

    def cut(self) -> None:
        """The control link is lost, with everything on it."""
        self.up = False
        for name in ("trainer", "host"):
            self.bench.queues.get((name, "control"), deque()).clear()
            self.give(name, core.LinkLost("control"))

    def connect(self) -> None:
        """The control link is there."""
        self.up = True
        for name in ("trainer", "host"):
            self.give(name, core.LinkUp("control"))

    def order(self, order: type[m.LaunchMessage], **fields: Any) -> None:
        """The supervisor's order to the host."""
        self.give("host", core.Received("supervisor", order(launch=1, **fields)))

    # -- what may happen next ------------------------------------------------------------------------------------------

    def enabled(self) -> list[Move]:
        """Every move, the same list in the same state."""
        return [*self._network(), *self._time(), *self._user(), *self._job(), *self._world()]

    def _network(self) -> list[Move]:
        moves = [Move(f"deliver to {address}", partial(self.deliver, address), 90) for address in self.bench.ready()]
        for pull in self.bench.pulls:
            moves += [Move(f"{outcome.value} {pull}", partial(self.finish, pull, outcome), 20) for outcome in core.TransferOutcome]
        both = self.bench.links.get(("trainer", "control")) and self.bench.links.get(("host", "control"))
        if self.up:
            moves.append(Move("cut", self.cut, 2))
        elif both:
            moves.append(Move("connect", self.connect, 200))
        return moves

    def _time(self) -> list[Move]:
        # The timers that end things come last, so that a walk of small numbers is a long one.
        armed = sorted(self.bench.armed, key=lambda key: (key[1] in FINAL_TIMERS, repr(key)))
        return [Move(f"fire {key}", partial(self.fire, *key), 1 if key[1] in FINAL_TIMERS else 15) for key in armed]

    def _user(self) -> list[Move]:
        trainer = self.bench.cores["trainer"]
        handed = [k for k in trainer.members("ledger") if trainer.state("ledger", k) is LedgerState.HANDED]
        moves = [Move("receive", partial(self.call, "receive"), 60), Move("log", partial(self.call, "log"))]
        for key in handed:
            number = trainer.data("ledger", key).number
            moves.append(Move("take", partial(self.call, "take", None, number), 150))
            moves.append(Move("give up taking", partial(self.give, "trainer", core.CallCancelled("receive", number)), 10))
        for call in trainer.members("calls"):
            number = trainer.data("calls", call).number
            moves.append(Move(f"give up {call}", partial(self.give, "trainer", core.CallCancelled(kind_of(call), number)), 4))
        for content, inline, weight in ((0, True, 40), (0, False, 60), (1, False, 10)):
            arguments = m.SendArguments(content=content, inline=inline)
            moves.append(Move(f"send {arguments}", partial(self.call, "send", arguments), weight))
        moves.append(Move("shutdown", partial(self.call, "shutdown")))
        moves.append(Move("init", partial(self.call, "init", m.InitArguments(control_rank=True))))
        return moves

    def _job(self) -> list[Move]:
        weights = {m.StopTask: 6, m.CloseSession: 2, m.AbortSession: 1}
        moves = [Move(order.__name__, partial(self.order, order), weight) for order, weight in weights.items()]
        if self.bench.cores["host"].data("delivery").seq < TASKS:
            moves += [
                Move(f"execute {inline}", partial(self.order, m.ExecuteTask, receivers=1, inline=inline), 40) for inline in (False, True)
            ]
        return moves

    def _world(self) -> list[Move]:
        trainer = self.bench.cores["trainer"]
        moves = [
            Move(f"bytes of {key} move", partial(self.give, "trainer", core.TransferProgressed("result", key)), 10)
            for key in trainer.members("source")
        ]
        if self.deal.launched and self.bench.process.get("host") in ("term", "kill"):
            moves.append(Move("process exits", partial(self.give, "host", core.ProcessExited()), 20))
        return moves


def walk(deal: Deal, choices: list[int]) -> Trio:
    """Take the moves that the numbers choose."""
    trio = Trio(deal)
    for choice in choices:
        moves = trio.enabled()
        place = choice % sum(move.weight for move in moves)
        for move in moves:
            place -= move.weight
            if place < 0:
                move.do()
                break
    return trio
