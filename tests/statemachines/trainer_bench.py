"""A session at every stage that a call of the trainer's user may meet."""

from __future__ import annotations

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready, session
from troth.spec import core
from troth.spec import messages as m

CALLS = ("init", "receive", "take", "send", "shutdown", "log")
NUMBER = 99
"""The call under test. The calls that led to its stage have small numbers."""


def joining() -> Session:
    """HELLO was said."""
    made = session()
    made.order(m.StartSession(launch=1))
    made.call("trainer", "init", 1, m.InitArguments(control_rank=True))
    made.give("trainer", core.LinkUp("control"))
    return made


def binding() -> Session:
    """HELLO was accepted; that READY was heard is not known."""
    made = joining()
    made.deliver(TO_HOST)
    made.deliver(TO_TRAINER)
    made.lose(TO_HOST)
    return made


def passive() -> Session:
    """Not the rank that speaks."""
    made = session()
    made.call("trainer", "init", 1, m.InitArguments(control_rank=False))
    return made


def queued() -> Session:
    """A task waits for a caller."""
    made = ready()
    made.execute()
    made.run()
    return made


def handed() -> Session:
    """A caller was handed the task, and has not taken it."""
    made = queued()
    made.call("trainer", "receive", 2)
    return made


def working() -> Session:
    """The user holds a task."""
    made = ready()
    made.working()
    return made


def revoked() -> Session:
    """The user holds a task that the host gave up."""
    made = working()
    made.order(m.StopTask(launch=1))
    made.run()
    return made


def sending() -> Session:
    """send() waits, and its message was lost."""
    made = working()
    made.send(3)
    made.lose(TO_HOST)
    return made


def given_up() -> Session:
    """The same, and the caller gave up."""
    made = sending()
    made.give("trainer", core.CallCancelled("send", 3))
    return made


def settled() -> Session:
    """send() has returned."""
    made = working()
    made.send(3)
    made.run()
    return made


def draining() -> Session:
    """SHUTDOWN came while send() waits."""
    made = sending()
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    made.lose(TO_HOST)
    return made


def aborted() -> Session:
    """ABORT came while the user held a task."""
    made = working()
    made.give("trainer", core.Received("control", m.Abort(epoch=1)))
    return made


def stopped() -> Session:
    """SHUTDOWN came."""
    made = ready()
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    return made


def left() -> Session:
    """shutdown() was called after an ABORT."""
    made = aborted()
    made.call("trainer", "shutdown", 4)
    return made


def lost() -> Session:
    """The owner is gone."""
    made = working()
    made.give("trainer", core.OwnerLost())
    return made


def superseded() -> Session:
    """The host opened above the session in which the user holds a task."""
    made = ready(launched=False)
    made.working()
    made.give("trainer", core.Received("control", m.SessionOpen(epoch=2, instance=0, resume=False)))
    return made


PAYLOADS = {"init": m.InitArguments(control_rank=True), "send": m.SendArguments(content=0, inline=True)}


def called(made: Session, call: str, number: int = NUMBER) -> core.Step:
    """The call under test."""
    return made.call("trainer", call, number, PAYLOADS.get(call))


def returned(made: Session, number: int = NUMBER) -> list[str]:
    """How the call of that number returned."""
    return [effect.outcome.value for name, effect in made.resolved if name == "trainer" and effect.number == number]
