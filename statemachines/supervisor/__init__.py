"""The supervisor: one backend, its launches, and the one task that may be out.

Machines: *gate* (start, execute, and back-pressure), *launches* (an entry a host session), *teardown* (finalize, abort, and who
ended it), *calls*. The cap on retained sources is the limit of the family of launches, asked by the gate: a machine of its own
would only count what that family knows.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from troth.spec import messages as m
from troth.spec.engine import PartyCore
from troth.spec.party import Party, To, call_cancelled, called, received, timer
from troth.spec.views import View
from troth.statemachines.shared.calls import CALLS
from troth.statemachines.shared.words import Deployment, to
from troth.statemachines.supervisor.gate import BUSY, GATE, GateState
from troth.statemachines.supervisor.launches import HOSTS, LAUNCHES, LaunchState
from troth.statemachines.supervisor.teardown import TEARDOWN, TeardownState


@frozen(kw_only=True)
class SupervisorConfig(Deployment):
    """How a backend is deployed."""

    persistent: bool = True
    """One trainer for all tasks, instead of one a task."""


def _by_launch(_view: View, event: Any) -> int:
    return int(event.launch)


SUPERVISOR = Party(
    "supervisor",
    config=SupervisorConfig,
    machines=[GATE, LAUNCHES, TEARDOWN, CALLS],
    routes=[
        called("start", To("calls", "wait", to("start")), To("gate", "start")),
        call_cancelled("start", To("calls", "cancel", to("start"))),
        called("execute", To("calls", "wait", to("execute")), To("gate", "execute"), payload=m.ExecuteArguments),
        call_cancelled("execute", To("calls", "cancel", to("execute")), To("gate", "cancel")),
        called("abort", To("calls", "wait", to("abort")), To("teardown", "abort")),
        called("finalize", To("calls", "wait", to("finalize")), To("teardown", "finalize")),
        call_cancelled("finalize", To("calls", "cancel", to("finalize"))),
        received(m.SessionStarted, To("launches", "started", _by_launch), link=HOSTS),
        received(m.TaskEnded, To("gate", "task_ended"), link=HOSTS),
        received(m.ResultLost, To("teardown", "result_lost"), link=HOSTS),
        received(m.SessionEnded, To("launches", "ended", _by_launch), link=HOSTS),
        timer("teardown", To("teardown", "silence")),
    ],
    observe={
        "busy": lambda view: view.gate.state in BUSY,
        "shut": lambda view: view.gate.state is GateState.SHUT,
        "launches": lambda view: len(view.launches),
        "retained": lambda view: view.launches.count(LaunchState.RETAINED),
        "done": lambda view: view.teardown.state is TeardownState.DONE,
        "waiting_calls": lambda view: len(view.calls),
    },
)


class Supervisor(PartyCore):
    """One backend's core."""

    def __init__(self, config: SupervisorConfig | None = None, **options: Any) -> None:
        super().__init__(SUPERVISOR, config, **options)
