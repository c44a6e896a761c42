"""What the runtime can be led along: what comes in one moment with what, and what of a world never comes."""

from __future__ import annotations

from typing import Any

import attrs

from troth.models.system import ActionKind, State, System
from troth.models.trace import TraceStep
from troth.models.worlds.protocol.reading import layout
from troth.spec import core as c
from troth.spec.limits import Limits
from troth.statemachines.host import HOST
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.trainer import TRAINER
from troth.statemachines.trainer.ledger import LedgerState
from troth.testing.paths import Bars

NUMBERS = {"init": 1, "receive": 2, "send": 3, "resend": 4, "other": 4, "shutdown": 5}
"""What the worlds number the calls of a trainer's user. Which number a call has is all the same to it."""


USES = ("trainer.take", "trainer.receive", "trainer.give up receive")
"""What the script does about a task that was handed to it."""


def hands_over(step: TraceStep) -> bool:
    """Whether a task is handed to whoever waits in receive()."""
    found = [reaction for reaction in step.reactions if reaction.name == "trainer"]
    handed = LedgerState.HANDED.name
    return bool(found) and handed in str(found[-1].after) and handed not in str(found[0].before)


def at_once(step: TraceStep) -> str | None:
    """The action that comes in the same moment, so that nothing comes in between. A receive() that finds a task takes it; and init() has
    the trainer dial, whose link comes up."""
    if step.action.name == "trainer.init" and not any(isinstance(reaction.operation, c.LinkUp) for reaction in step.reactions):
        return "trainer.link up"
    return "trainer.take" if step.action.name == "trainer.receive" and hands_over(step) else None


NOBODY_WAITS = "CALL_CANCELLED of receive() comes of a caller that gives up, and nobody is in receive()"
DOOR_CLOSED = "the trainer dials a host that has hung up for good: it is refused at the door, and no link comes up"
HUNG_UP = "a side whose session is over has closed the link, and what is said on it afterwards does not arrive; in the world it does"
OVER = ("CLOSING", "CLOSED", "ABORTED")
NO_LINK = "a link is cut that nobody has opened yet: there is no connection to cut"


def bars(system: System) -> Bars:
    """What the runtime cannot be led along. Each of these is something that a world allows because it does no harm there."""
    places = {table.component.name: index for index, table in enumerate(system.components)}
    trainer, network = places["trainer"], places.get("network")

    def barred(state: State, step: TraceStep) -> str | None:
        local: Any = system.components[trainer].states[state[trainer]]
        if step.action.name == "trainer.give up receive" and not receiving(local):
            return NOBODY_WAITS
        if network is not None and step.action.kind is ActionKind.CUT:
            opened: Any = system.components[network].states[state[network]]
            if len(opened.state) < 2:
                return NO_LINK
        for reaction in step.reactions:
            before: Any = reaction.before
            if reaction.name == "host" and isinstance(reaction.operation, c.LinkUp) and hung_up(before):
                return DOOR_CLOSED
        return None

    return barred


def receiving(trainer: Any) -> bool:
    """Whether somebody is in receive(), by the state of a world's trainer."""
    slots = trainer.state[0]
    calls, ledger = (slots[layout(TRAINER).places[name]] for name in ("calls", "ledger"))
    return any(slot[0] == "receive" for slot in calls) or any(slot[1] == LedgerState.HANDED.name for slot in ledger)


def hung_up(host: Any) -> bool:
    """Whether a world's host has no session any more."""
    session = host.state[0][layout(HOST).places["session"]]
    return session[0] in (HostSessionState.CLOSING.name, HostSessionState.CLOSED.name)


def counts(limits: Limits) -> dict[str, int]:
    """Those of the limits that are no durations."""
    return {f.name: getattr(limits, f.name) for f in attrs.fields(Limits) if f.metadata["unit"] == "count"}
