"""Who takes the steps of a trace, and whom each one meets: a core, replayed, with what must have brought its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field, frozen

from troth.runtime.session import session_epoch
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.trace import Record, limits_of
from troth.statemachines import HOST, PARTIES, RECEIVER, TRAINER
from troth.statemachines.receiver import OVER, PARTY
from troth.statemachines.shared import words
from troth.statemachines.supervisor.launches import HOSTS
from troth.testing.traces.causes import Causes
from troth.testing.traces.replica import Replayed, Replica, Taken
from troth.testing.traces.timing import TimerCheck
from troth.testing.traces.verdicts import Wrong
from troth.testing.traces.watching import Watcher

SUPERVISING = "supervisor"
"""What a driver calls its supervisor."""
TERMS = frozenset(("heartbeat_interval_s", "lease_timeout_s", "unresponsive_limit_s"))
"""Limits that a host grants its trainer."""
FETCHES = {HOST.name: "result", TRAINER.name: "task"}
"""What a party's receivers fetch."""
LOCAL = (words.SUPERVISOR, HOSTS, words.RECEIVERS, PARTY)


def no_epoch(_core: Replayed) -> None:
    """Of a party that has no session."""


@define(eq=False)
class Actor:
    """A party's core, from its first step to its last."""

    name: str
    core: str
    config: Any
    owner: str | None
    """Of a receiver: whose it is."""
    watching: bool
    replica: Replica = field(init=False)
    timers: TimerCheck = field(init=False)
    causes: Causes = field(factory=Causes, init=False)
    gone: bool = field(default=False, init=False)
    """It has left its driver: what is still said to it is dropped."""
    _watcher: Watcher | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        has_session = self.core in (HOST.name, TRAINER.name)
        epoch: Callable[[Replayed], int | None] = session_epoch if has_session else no_epoch
        self.replica = Replica(PARTIES[self.core], self.config, epoch)
        self.timers = TimerCheck(limits_of(self.config.limits))
        if self.watching:
            self._watcher = Watcher(self.replica.core)

    def before(self, record: Record) -> None:
        """A step is about to be replayed. Raises ``Wrong`` if nothing can have brought its event."""
        event = record.event
        if isinstance(event, c.TimerFired):
            self.timers.fired(event, record.t_ns)
        else:
            self.causes.happened(event, record.t_ns)

    def step(self, record: Record) -> Taken:
        """Replay a step, and what it does to timers and causes."""
        taken = self.replica.take(record)
        for effect in taken.step.effects:
            if isinstance(effect, c.SetTimer | c.CancelTimer):
                self.timers.did(effect, record.t_ns)
            else:
                self.causes.did(effect, record.t_ns)
        if self._watcher is not None:
            found = self._watcher.look(record.event, taken.step, taken.before, timers=taken.timers)
            if found is not None:
                raise Wrong(f"property {found.id} does not hold: {found.statement}")
        if self.core == RECEIVER.name:
            self.gone = self.replica.core.state("download") in OVER
        return taken


@frozen
class Mail:
    """What one party said to another of its driver, and which must be the next thing that is taken."""

    to: str
    event: c.Received
    said_by: str
    creates: bool = False
    """It makes its receiver."""


def receiver_name(owner: str, kind: str, seq: int) -> str:
    """What a driver calls a receiver."""
    return f"{owner}/{kind}/{seq}"


def addressed(actor: Actor, effect: c.Send, hosts: Mapping[int, str]) -> Mail | None:
    """Whom a party says something to on a local link; ``hosts`` are those of its launches. ``None`` if it is nobody's here."""
    message, said_by = effect.message, actor.name
    match effect.link:
        case words.SUPERVISOR:
            return Mail(SUPERVISING, c.Received(HOSTS, message), said_by)
        case _ if effect.link == HOSTS and isinstance(message, m.LaunchMessage):
            to = hosts.get(message.launch)
            return None if to is None else Mail(to, c.Received(words.SUPERVISOR, message), said_by)
        case words.RECEIVERS if isinstance(message, m.FetchPayload | m.DropPayload):
            to = receiver_name(actor.name, FETCHES[actor.core], message.seq)
            return Mail(to, c.Received(PARTY, message), said_by, creates=isinstance(message, m.FetchPayload))
        case _ if effect.link == PARTY and actor.owner is not None:
            return Mail(actor.owner, c.Received(words.RECEIVERS, message), said_by)
        case _:
            return None
