"""The trainer: takes tasks, runs each once, publishes its result, and serves the result until its receivers have it.

Machines: *session* (joining to closed), *intake* (which sequences may come in), *ledger* (an entry a task), *publication* (an entry
a result), *source* (an entry a result and receiver), *lease*, and *calls* (who waits in the API).
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from troth.spec import core
from troth.spec import messages as m
from troth.spec.emits import signal
from troth.spec.engine import PartyCore
from troth.spec.party import Party, To, call_cancelled, called, happened, received, timer
from troth.spec.views import View
from troth.statemachines.shared.calls import CALLS, kind_of
from troth.statemachines.shared.lease import LeaseState, lease
from troth.statemachines.shared.source import SourceState, source
from troth.statemachines.shared.words import CONTROL, DATA, RECEIVERS, Deployment, by_effect, by_key, by_receiver, by_seq, to
from troth.statemachines.trainer.intake import INTAKE
from troth.statemachines.trainer.ledger import LEDGER, LedgerState
from troth.statemachines.trainer.publication import BUSY, PUBLICATION, PublicationState
from troth.statemachines.trainer.session import SESSION
from troth.statemachines.trainer.states import TrainerSessionState


@frozen(kw_only=True)
class TrainerConfig(Deployment):
    """How a trainer is deployed."""

    one_shot: bool = False
    """The trainer was launched for one task and closes by itself after it."""


def _moving(view: Any, _event: Any) -> bool:
    return bool(view.source.count(SourceState.MOVING) or view.ledger.count(LedgerState.RESERVED))


def _host_lives(view: Any, _event: Any) -> bool:
    return bool(view.config.launched)


def _its_task(view: View, _event: Any) -> int:
    return int(view.intake.data.current)


def _sending(view: View, _event: Any) -> str:
    return f"send/{view.intake.data.current}"


def _sender(view: View, event: Any) -> str:
    """The send() of that number; of the task that the user holds, where there is none."""
    found = (str(key) for key, slot in view.calls.items() if kind_of(key) == "send" and slot.data.number == event.number)
    return next(found, _sending(view, event))


LEASE = lease(
    beats=True,
    moving_reads=("source", "ledger"),
    moving=_moving,
    alive_reads=(),
    alive=_host_lives,
)
SOURCE = source(
    "result",
    "result_sources_limit",
    report=[signal("publication", "check", key=lambda firing: firing.key[0])],  # type: ignore[index]
    watched=True,
)

_gate = To("session", "message")
_order = To("session", "order")
_life = To("lease", "life")


def _message(message: type[core.Message], *destinations: To) -> Any:
    return received(message, _life, *destinations, link=CONTROL, gate=_gate)


TRAINER = Party(
    "trainer",
    config=TrainerConfig,
    machines=[SESSION, INTAKE, LEDGER, PUBLICATION, SOURCE, LEASE, CALLS],
    routes=[
        # the user
        called("init", To("calls", "wait", to("init")), To("session", "init"), payload=m.InitArguments),
        call_cancelled("init", To("calls", "cancel", to("init")), To("session", "init_cancelled")),
        called("receive", To("calls", "wait", to("receive")), To("intake", "receive")),
        call_cancelled("receive", To("calls", "cancel", to("receive")), To("intake", "given_up")),
        called("take", To("intake", "take")),
        called("send", To("calls", "wait", _sending), To("publication", "send", _its_task), payload=m.SendArguments),
        call_cancelled("send", To("calls", "cancel", _sender)),
        called("shutdown", To("calls", "wait", to("shutdown")), To("session", "leave")),
        call_cancelled("shutdown", To("calls", "cancel", to("shutdown"))),
        called("log", To("session", "log")),
        # the host, while there is no session yet
        received(m.HelloAccepted, To("session", "hello_accepted"), link=CONTROL),
        received(m.HelloRejected, To("session", "hello_rejected"), link=CONTROL),
        received(m.SessionConfirmed, To("session", "confirmed"), link=CONTROL),
        received(m.SessionOpen, To("session", "opened"), link=CONTROL),
        # the host, in a session
        _message(m.TaskReady, To("intake", "offer")),
        _message(m.TaskStatus, To("ledger", "status", by_seq)),
        _message(m.CancelTask, To("intake", "cancel")),
        _message(m.ResultAccepted, To("publication", "accepted", by_seq)),
        _message(m.ResultRejected, To("publication", "rejected", by_seq)),
        _message(m.ResultUnknown, To("publication", "unknown", by_seq)),
        _message(m.ResultSourceReleased, To("publication", "noted", by_seq)),
        _message(m.Heartbeat),
        received(m.Shutdown, _life, To("session", "shutdown"), link=CONTROL, gate=_order),
        received(m.Abort, To("session", "abort"), link=CONTROL, gate=_order),
        # receivers of results, and its own receiver of task payloads
        received(m.PayloadHeld, To("source", "held", by_receiver), link=DATA, gate=_gate),
        received(m.PayloadAbandoned, To("source", "abandoned", by_receiver), link=DATA, gate=_gate),
        received(m.PayloadArrived, To("ledger", "arrived", by_seq), link=RECEIVERS, gate=_gate),
        received(m.PayloadLost, To("ledger", "missing", by_seq), link=RECEIVERS, gate=_gate),
        happened(core.TransferProgressed("result", (1, 0)), To("source", "progress", by_key), To("lease", "progress")),
        happened(core.TransferProgressed("task", (1, 0)), To("lease", "progress")),
        happened(core.TransferEnded("result", (1, 0), core.TransferOutcome.COMPLETE), To("source", "ended", by_key)),
        # time and the world
        timer("join", To("session", "silence")),
        timer("hello", To("session", "retry")),
        timer("result", To("publication", "retry", by_key)),
        timer("source", To("source", "silence", by_key)),
        timer("lease", To("lease", "silence")),
        timer("beat", To("lease", "beat")),
        happened(core.LinkUp(CONTROL), To("session", "link_up")),
        happened(core.LinkLost(CONTROL), To("session", "link_lost")),
        happened(core.OwnerLost(), To("session", "lost")),
        # effects that failed: what was not sent is as good as lost on the way
        happened(core.EffectFailed(core.Offer("result", (1, 0))), To("source", "unable", by_effect)),
        happened(core.EffectFailed(core.Send(CONTROL, m.Heartbeat(epoch=1))), To("session", "link_lost")),
        happened(core.EffectFailed(core.OpenLink(CONTROL)), To("session", "link_lost")),
    ],
    observe={
        "session_ready": lambda view: view.session.state is TrainerSessionState.READY,
        "session_over": lambda view: view.session.state in (TrainerSessionState.ABORTED, TrainerSessionState.CLOSED),
        "closed": lambda view: view.session.state is TrainerSessionState.CLOSED,
        "epoch": lambda view: view.session.data.epoch,
        "waiting_tasks": lambda view: view.ledger.count(LedgerState.QUEUED, LedgerState.HANDED),
        "held_tasks": lambda view: view.ledger.count(LedgerState.DELIVERED, LedgerState.PUBLISHING),
        "ledger_size": lambda view: len(view.ledger),
        "highest": lambda view: view.intake.data.highest,
        "publishing": lambda view: view.publication.count(*BUSY),
        "settled": lambda view: view.publication.count(PublicationState.SETTLED),
        "sources_live": lambda view: view.source.count(SourceState.OFFERED, SourceState.MOVING),
        "lease_expired": lambda view: view.lease.state is LeaseState.EXPIRED,
        "waiting_calls": lambda view: len(view.calls),
    },
)


class Trainer(PartyCore):
    """One trainer session's core."""

    def __init__(self, config: TrainerConfig | None = None, **options: Any) -> None:
        super().__init__(TRAINER, config, **options)
