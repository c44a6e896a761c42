"""The host: gets one trainer, gives it tasks, takes results, and ends it. One core a session; two hosts share nothing mutable.

Machines: *session* (launched or attached), *delivery* (the task that is out), *acceptance* (an entry a task: what was decided about
its result), *source* (task payloads), *lease*, *process*.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from troth.spec import core
from troth.spec import messages as m
from troth.spec.engine import PartyCore
from troth.spec.party import Party, To, happened, received, timer
from troth.statemachines.host.acceptance import ACCEPTANCE, AcceptanceState
from troth.statemachines.host.delivery import ACTIVE, DELIVERY, DeliveryState
from troth.statemachines.host.process import ALIVE, PROCESS, ProcessState
from troth.statemachines.host.session import SESSION
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.lease import LeaseState, lease
from troth.statemachines.shared.source import SourceState, source
from troth.statemachines.shared.words import CONTROL, DATA, RECEIVERS, SUPERVISOR, Deployment, by_effect, by_key, by_receiver, by_seq


@frozen(kw_only=True)
class HostConfig(Deployment):
    """How a host is deployed."""

    launch: int = 1
    """Which of its supervisor's launches this host is."""
    instance: int = 0
    """Which host instance this is, for a trainer that meets several: 0 for the first one it meets, n for the nth other one."""
    receives: bool = True
    """The host is itself a receiver of results: number 0."""


def _moving(view: Any, _event: Any) -> bool:
    return bool(view.source.count(SourceState.MOVING) or view.delivery.state is DeliveryState.FETCHING)


def _trainer_lives(view: Any, _event: Any) -> bool:
    return bool(view.process.state is ProcessState.RUNNING)


LEASE = lease(
    beats=False,
    moving_reads=("source", "delivery"),
    moving=_moving,
    alive_reads=("process",),
    alive=_trainer_lives,
)
SOURCE = source("task", "task_sources_limit", report=[], watched=False)

_gate = To("session", "message")
_life = To("lease", "life")


def _message(message: type[core.Message], *destinations: To) -> Any:
    return received(message, _life, *destinations, link=CONTROL, gate=_gate)


def _order(message: type[core.Message], *destinations: To) -> Any:
    return received(message, *destinations, link=SUPERVISOR)


HOST = Party(
    "host",
    config=HostConfig,
    machines=[SESSION, DELIVERY, ACCEPTANCE, SOURCE, LEASE, PROCESS],
    routes=[
        # the supervisor
        _order(m.StartSession, To("session", "start")),
        _order(m.ExecuteTask, To("delivery", "execute")),
        _order(m.StopTask, To("delivery", "stop")),
        _order(m.CloseSession, To("session", "close")),
        _order(m.AbortSession, To("session", "abort")),
        # the trainer, while there is no session yet
        received(m.Hello, To("session", "hello"), link=CONTROL),
        received(m.SessionReady, To("session", "ready"), link=CONTROL),
        received(m.SessionAccepted, To("session", "accepted"), link=CONTROL),
        received(m.SessionRejected, To("session", "rejected"), link=CONTROL),
        # the trainer, in a session
        _message(m.TaskAccepted, To("delivery", "accepted")),
        _message(m.TaskReserved, To("delivery", "reserved")),
        _message(m.TaskUnknown, To("delivery", "unknown")),
        _message(m.TaskFailed, To("delivery", "failed")),
        _message(m.TaskCancelled, To("delivery", "cancelled")),
        _message(m.ResultReady, To("acceptance", "result_ready", by_seq)),
        _message(m.ResultStatus, To("acceptance", "result_status", by_seq)),
        _message(m.ResultSourceSettled, To("acceptance", "settled", by_seq)),
        _message(m.Heartbeat, To("lease", "beat")),
        _message(m.Log),
        _message(m.SessionDraining, To("session", "draining")),
        received(m.SessionClosed, To("session", "ended"), link=CONTROL, gate=_gate),
        received(m.AbortAccepted, To("session", "aborted"), link=CONTROL, gate=_gate),
        # the trainer's receiver of task payloads, and the host's own of results
        received(m.PayloadHeld, To("source", "held", by_receiver), link=DATA, gate=_gate),
        received(m.PayloadAbandoned, To("source", "abandoned", by_receiver), link=DATA, gate=_gate),
        received(m.PayloadArrived, To("delivery", "arrived"), link=RECEIVERS, gate=_gate),
        received(m.PayloadLost, To("delivery", "missing"), link=RECEIVERS, gate=_gate),
        happened(core.TransferProgressed("task", (1, 0)), To("source", "progress", by_key), To("lease", "progress")),
        happened(core.TransferProgressed("result", (1, 0)), To("lease", "progress")),
        happened(core.TransferEnded("task", (1, 0), core.TransferOutcome.COMPLETE), To("source", "ended", by_key)),
        # the process
        happened(core.ProcessStarted(), To("process", "started")),
        happened(core.ProcessExited(), To("process", "exited")),
        happened(core.OwnerLost(), To("process", "orphaned")),
        # time and the link
        timer("session", To("session", "silence")),
        timer("again", To("session", "retry")),
        timer("task", To("delivery", "retry")),
        timer("budget", To("delivery", "silence")),
        timer("source", To("source", "silence", by_key)),
        timer("lease", To("lease", "silence")),
        timer("process", To("process", "silence")),
        happened(core.LinkUp(CONTROL), To("session", "link_up")),
        happened(core.LinkLost(CONTROL), To("session", "link_lost")),
        # effects that failed: what was not sent is as good as lost on the way
        happened(core.EffectFailed(core.Spawn()), To("process", "unable")),
        happened(core.EffectFailed(core.SignalProcess(core.ProcessSignal.TERM)), To("process", "unsignalled")),
        happened(core.EffectFailed(core.Offer("task", (1, 0))), To("source", "unable", by_effect)),
        happened(core.EffectFailed(core.Send(CONTROL, m.Heartbeat(epoch=1))), To("session", "link_lost")),
        happened(core.EffectFailed(core.OpenLink(CONTROL)), To("session", "link_lost")),
    ],
    observe={
        "session_ready": lambda view: view.session.state is HostSessionState.READY,
        "draining": lambda view: view.session.state is HostSessionState.DRAINING,
        "closed": lambda view: view.session.state is HostSessionState.CLOSED,
        "epoch": lambda view: view.session.data.epoch,
        "seq": lambda view: view.delivery.data.seq,
        "task_out": lambda view: view.delivery.state in ACTIVE,
        "awaiting": lambda view: view.acceptance.count(AcceptanceState.AWAITING),
        "sources_live": lambda view: view.acceptance.count(AcceptanceState.ACCEPTED),
        "settled": lambda view: view.acceptance.count(AcceptanceState.SETTLED),
        "lost": lambda view: view.acceptance.count(AcceptanceState.LOST),
        "remembered": lambda view: len(view.acceptance),
        "lease_expired": lambda view: view.lease.state is LeaseState.EXPIRED,
        "process_alive": lambda view: view.process.state in (*ALIVE, ProcessState.SPAWNING, ProcessState.DOOMED, ProcessState.STUCK),
        "process_stuck": lambda view: view.process.state is ProcessState.STUCK,
    },
)


class Host(PartyCore):
    """One host session's core."""

    def __init__(self, config: HostConfig | None = None, **options: Any) -> None:
        super().__init__(HOST, config, **options)
