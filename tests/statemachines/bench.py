"""A perfect bench for cores: lossless ordered links, timers that fire when told to, and nothing decided here.

Cores are joined by queues; whatever a core sends waits in a queue until the test delivers it, except on local links, which are
drained before anything else happens. Timers, pulls and processes are kept as
plain sets of what is pending. Every step's effects are applied, and the bench asserts that none of them is one it does not know.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any

from attrs import define, field

from troth.spec import core
from troth.spec.engine import PartyCore

LOCAL = frozenset({"receivers", "party", "supervisor", "hosts"})
"""The links between cores of one process."""

Address = tuple[str, str]
"""A core's name and the name of its link."""


_PAIRS: tuple[tuple[Address, Address], ...] = (
    (("trainer", "control"), ("host", "control")),
    (("trainer", "receivers"), ("task receiver", "party")),
    (("task receiver", "data"), ("host", "data")),
    (("host", "receivers"), ("result receiver", "party")),
    (("result receiver", "data"), ("trainer", "data")),
)
WIRES: dict[Address, Address] = {**dict(_PAIRS), **{there: here for here, there in _PAIRS}}
"""How a trainer, a host and their receivers are joined, from each end of each link to the other."""


@define
class Bench:
    """Cores by name, wired link to link."""

    cores: dict[str, PartyCore]
    wires: dict[Address, Address]
    local: frozenset[str] = LOCAL
    queues: dict[Address, deque[core.Message]] = field(factory=dict)
    armed: dict[tuple[str, str, core.Key], tuple[int, str]] = field(factory=dict)
    pulls: dict[tuple[str, str, core.Key], None] = field(factory=dict)
    offers: dict[tuple[str, str, core.Key], None] = field(factory=dict)
    links: dict[Address, bool] = field(factory=dict)
    process: dict[str, str] = field(factory=dict)
    resolved: list[tuple[str, core.Resolve]] = field(factory=list)
    sent: list[tuple[str, core.Message]] = field(factory=list)
    steps: list[tuple[str, core.Event, core.Step]] = field(factory=list)
    refusals: list[tuple[str, core.Event, core.Refusal]] = field(factory=list)

    def give(self, name: str, event: core.Event) -> core.Step:
        """Let one core handle one event, and apply its effects."""
        step = self.cores[name].handle(event)
        self.steps.append((name, event, step))
        if step.refusal is not None:
            self.refusals.append((name, event, step.refusal))
        for effect in step.effects:
            self._apply(name, effect)
        self._drain()
        return step

    def _drain(self) -> None:
        for address in self.ready():
            while address[1] in self.local and self.queues[address]:
                self.deliver(address)

    def _apply(self, name: str, effect: core.Effect) -> None:
        match effect:
            case core.Send(link=link, message=message):
                self.sent.append((name, message))
                target = self.wires.get((name, link))
                if target is not None:
                    self.queues.setdefault(target, deque()).append(message)
            case core.Resolve():
                self.resolved.append((name, effect))
            case core.OpenLink(link=link) | core.CloseLink(link=link):
                self.links[name, link] = isinstance(effect, core.OpenLink)
            case core.Spawn():
                self.process[name] = "spawned"
            case core.SignalProcess(signal=signal):
                self.process[name] = signal.value
            case core.SetTimer() | core.CancelTimer():
                self._apply_timer(name, effect)
            case _:
                self._apply_transfer(name, effect)

    def _apply_timer(self, name: str, effect: core.SetTimer | core.CancelTimer) -> None:
        where = name, effect.timer, effect.key
        if isinstance(effect, core.SetTimer):
            self.armed[where] = effect.generation, effect.limit
        else:
            self.armed.pop(where, None)

    def _apply_transfer(self, name: str, effect: core.Pull | core.CancelTransfer | core.Offer | core.Release) -> None:
        where = name, effect.kind, effect.key
        match effect:
            case core.Pull():
                self.pulls[where] = None
            case core.CancelTransfer():
                self.pulls.pop(where, None)
            case core.Offer():
                self.offers[where] = None
            case core.Release():
                self.offers.pop(where, None)

    def ready(self) -> list[Address]:
        """Where a message waits."""
        return [address for address, queue in sorted(self.queues.items()) if queue]

    def deliver(self, address: Address) -> core.Step:
        """Hand the oldest message over."""
        name, link = address
        return self.give(name, core.Received(link, self.queues[address].popleft()))

    def run(self, limit: int = 10_000) -> None:
        """Deliver messages and finish pulls until nothing waits."""
        for _ in range(limit):
            waiting = self.ready()
            if waiting:
                self.deliver(waiting[0])
            elif self.pulls:
                self.finish(next(iter(self.pulls)))
            else:
                return
        raise AssertionError(f"still busy after {limit} deliveries")

    def finish(self, pull: tuple[str, str, core.Key], outcome: core.TransferOutcome = core.TransferOutcome.COMPLETE) -> core.Step:
        """End a transfer on the receiver's side."""
        del self.pulls[pull]
        name, kind, key = pull
        return self.give(name, core.TransferEnded(kind, key, outcome))

    def fire(self, name: str, timer: str, key: core.Key = None) -> core.Step:
        """Let an armed timer fire."""
        generation, _ = self.armed.pop((name, timer, key))
        return self.give(name, core.TimerFired(timer, key, generation))

    def call(self, name: str, call: str, number: int = 1, payload: Any = None) -> core.Step:
        """A user's call."""
        return self.give(name, core.Called(call, number, payload))

    def outcomes(self, name: str, call: str) -> list[str]:
        """How that core's calls of that kind returned, in order."""
        return [effect.outcome.value for who, effect in self.resolved if who == name and effect.call == call]

    def snapshot(self) -> Hashable:
        """The cores' states."""
        return tuple((name, held.snapshot()) for name, held in sorted(self.cores.items()))
