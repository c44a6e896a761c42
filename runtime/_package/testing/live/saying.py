"""What parties say to each other, and what has to come of it: a frame on the wire, or something that a sibling is told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.runtime.sim.faults import DOWN, UP, Direction
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines import HostConfig, ReceiverConfig
from troth.statemachines.receiver import PARTY
from troth.statemachines.shared.words import CONTROL, DATA, RECEIVERS, SUPERVISOR
from troth.statemachines.supervisor.launches import HOSTS
from troth.testing.live.lines import Owed
from troth.testing.live.parties import Shadow, Side, Told

if TYPE_CHECKING:
    from troth.testing.live.judging import Judge

LOCAL = (RECEIVERS, SUPERVISOR, HOSTS, PARTY)


def direction_of(shadow: Shadow) -> Direction:
    """Which way a party writes: the trainer dials."""
    return UP if shadow.kind == "trainer" else DOWN


def say(judge: Judge, side: Side, shadow: Shadow, link: str, message: Any) -> None:
    """``shadow`` says that on one of its links."""
    if link == CONTROL:
        if shadow.line is not None:
            shadow.line.ways[direction_of(shadow)].owed.append(Owed(message))
    elif link == DATA:
        judge.transfers.owe(side, shadow, message)
    elif link == RECEIVERS:
        _to_receiver(judge, side, shadow, message)
    elif link == PARTY:
        side.local.append(Told(shadow.name.partition("/")[0], c.Received(RECEIVERS, message)))
    elif link == HOSTS:
        _to_host(judge, side, shadow, message)
    elif link == SUPERVISOR:
        _to_supervisor(judge, side, shadow, message)
    elif isinstance(message, m.RunFailed):
        judge.failed = True


def _to_receiver(judge: Judge, side: Side, shadow: Shadow, message: Any) -> None:
    kind = "task" if shadow.kind == "trainer" else "result"
    receiver = f"{shadow.name}/{kind}/{message.seq}"
    if isinstance(message, m.FetchPayload):
        side.parties[receiver] = Shadow(receiver, ReceiverConfig(limits=shadow.config.limits), seat=shadow.seat)
        judge.transfers.begins(side.parties[receiver], message.inline)
    side.local.append(Told(receiver, c.Received(PARTY, message)))


def _to_host(judge: Judge, side: Side, shadow: Shadow, message: Any) -> None:
    launch = message.launch
    if isinstance(message, m.StartSession):
        judge.launches += 1
        name = judge.hosts[launch] = f"host-{judge.launches}"
        config = HostConfig(limits=shadow.config.limits, fail_unresponsive=judge.fail_unresponsive, launch=launch)
        side.parties[name] = Shadow(name, config)
    side.local.append(Told(judge.hosts[launch], c.Received(SUPERVISOR, message)))


def _to_supervisor(judge: Judge, side: Side, shadow: Shadow, message: Any) -> None:
    side.local.append(Told("supervisor", c.Received(HOSTS, message)))
    if isinstance(message, m.TaskEnded):
        judge.ended = shadow.name, shadow.core.data("delivery").seq
    elif isinstance(message, m.SessionEnded):
        side.remove(shadow.name)
