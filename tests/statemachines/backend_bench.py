"""A backend alone, at every stage of its life; its hosts are played by the test."""

from __future__ import annotations

from tests.statemachines.bench import Bench
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import Supervisor, SupervisorConfig

CALLS = ("start", "execute", "abort", "finalize")
NUMBER = 99
"""The call under test. The calls that led to its stage have small numbers."""
ARGUMENTS = m.ExecuteArguments(receivers=1, inline=True)


def backend(*, persistent: bool = True, retained: int = 4) -> Bench:
    """A backend alone; its hosts are played by the test."""
    config = SupervisorConfig(persistent=persistent, limits=Limits(retained_limit=retained))
    return Bench({"backend": Supervisor(config)}, {})


def per_task() -> Bench:
    """One trainer a task."""
    return backend(persistent=False)


def hear(made: Bench, message: core.Message) -> core.Step:
    """A host says something."""
    return made.give("backend", core.Received("hosts", message))


def started(made: Bench, launch: int = 1) -> None:
    """The launch's trainer is ready."""
    hear(made, m.SessionStarted(launch=launch))


def done(made: Bench, outcome: m.TaskOutcome = m.TaskOutcome.RESULT, launch: int = 1) -> None:
    """The launch's task is over."""
    hear(made, m.TaskEnded(launch=launch, outcome=outcome))


def ended(made: Bench, verdict: m.Verdict = m.Verdict.ENDED, launch: int = 1) -> None:
    """Nothing is left of the launch."""
    hear(made, m.SessionEnded(launch=launch, verdict=verdict, stuck=False))


def called(made: Bench, call: str, number: int = NUMBER) -> core.Step:
    """A call."""
    return made.call("backend", call, number, ARGUMENTS if call == "execute" else None)


def returned(made: Bench, number: int = NUMBER) -> list[str]:
    """How the call of that number returned."""
    return [effect.outcome.value for _, effect in made.resolved if effect.number == number]


def said(made: Bench, kind: type[core.Message]) -> list[core.Message]:
    """What the hosts were told, of one kind."""
    return [message for _, message in made.sent if isinstance(message, kind)]


def starting() -> Bench:
    """start() was called; its trainer is not ready."""
    made = backend()
    called(made, "start", 1)
    return made


def idle() -> Bench:
    """Started, with its trainer, and nothing to do."""
    made = starting()
    started(made)
    return made


def running() -> Bench:
    """A task is out."""
    made = idle()
    called(made, "execute", 2)
    return made


def lost() -> Bench:
    """Its only trainer is gone."""
    made = idle()
    ended(made, m.Verdict.LOST)
    return made


def opened() -> Bench:
    """Started, a trainer a task, and nothing to do."""
    made = per_task()
    called(made, "start", 1)
    return made


def launching() -> Bench:
    """A trainer is being got for a task."""
    made = opened()
    called(made, "execute", 2)
    return made


def launched() -> Bench:
    """The trainer has the task."""
    made = launching()
    started(made)
    return made


def retained() -> Bench:
    """The one trainer that may be kept is kept for its result."""
    made = backend(persistent=False, retained=1)
    called(made, "start", 1)
    called(made, "execute", 2)
    started(made)
    done(made)
    return made


def queued() -> Bench:
    """The next task waits for room."""
    made = retained()
    called(made, "execute", 3)
    return made


def draining() -> Bench:
    """finalize() was called."""
    made = idle()
    called(made, "finalize", 4)
    return made


def draining_with_a_task() -> Bench:
    """finalize() was called while a task is out."""
    made = running()
    called(made, "finalize", 4)
    return made


def forcing() -> Bench:
    """The budget of finalize() is spent."""
    made = draining()
    made.fire("backend", "teardown")
    return made


def over() -> Bench:
    """finalize() has returned."""
    made = draining()
    ended(made)
    return made


def forced() -> Bench:
    """The forced budget is spent too."""
    made = forcing()
    made.fire("backend", "teardown")
    return made


def aborted() -> Bench:
    """abort() was called."""
    made = idle()
    called(made, "abort", 5)
    return made
