"""What surrounds a supervisor: its host sessions, its callers, and its job.

The host sessions are small step functions, all of them in one party, since they share one local link. They do what they are told in
their own time, and may end at any moment. Callers are one party as well: their calls go through it, and their outcomes come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, frozen

from troth.models.closing import Asked, Give
from troth.spec import messages as m
from troth.spec.core import CallCancelled, Called, Message, Received, Resolve

# -- the hosts: small step functions, all in one party -----------------------------------------------------------------


@frozen
class Session:
    """One host session, as its supervisor knows it."""

    at: str = "none"
    """none, starting, ready, or busy: whether it has a task out."""
    told: str = ""
    """"", close or abort: how it was told to end."""
    kept: bool = False
    """It has given a result."""
    lost: bool = False
    """It has lost that result."""
    stop: bool = False
    """It was told to cancel its task."""


@frozen
class Hosts:
    """All of them, and what the supervisor should not have asked."""

    each: tuple[Session, ...]
    persistent: bool
    fault: bool = False


def hosts_step(hosts: Hosts, event: Any) -> Any:
    """Orders come at once; what becomes of them comes when it comes."""
    if isinstance(event, Called):
        return _happens(hosts, event.call, event.number)
    message = event.message
    session = hosts.each[message.launch - 1] if message.launch <= len(hosts.each) else None
    if session is None:
        return evolve(hosts, fault=True), ()
    after, right = _ordered(session, message)
    return evolve(_with(hosts, message.launch, after), fault=hosts.fault or not right), ()


def _with(hosts: Hosts, launch: int, session: Session) -> Hosts:
    return evolve(hosts, each=tuple(session if n == launch else old for n, old in enumerate(hosts.each, 1)))


def _ordered(session: Session, message: Message) -> tuple[Session, bool]:
    """The session after an order, and whether the order was one that it can take."""
    match message:
        case m.StartSession():
            return Session("starting"), session.at == "none"
        case m.ExecuteTask():
            return evolve(session, at="busy"), session.at == "ready" and not session.told and message == TASK(message.launch)
        case m.StopTask():
            return evolve(session, stop=True), session.at == "busy"
        case m.CloseSession():
            # A host whose task and session end in one step is told to close when it has closed already.
            return (evolve(session, told="close"), not session.told) if session.at != "none" else (session, True)
        case m.AbortSession():
            return evolve(session, told="abort"), session.at != "none" and session.told != "abort"
    raise AssertionError(message)


def TASK(launch: int) -> m.ExecuteTask:  # noqa: N802 - a constant but for its launch
    """The one task of this world."""
    return m.ExecuteTask(launch=launch, receivers=2, inline=False)


def _happens(hosts: Hosts, what: str, launch: int) -> Any:
    session = hosts.each[launch - 1]
    change, say = HAPPENS[what]
    after = change(session)
    if after is None:
        return None
    said = say(launch)
    return _with(hosts, launch, after), tuple(Give("supervisor", Received("hosts", message)) for message in said)


def _started(session: Session) -> Session | None:
    return evolve(session, at="ready") if session.at == "starting" and not session.told else None


def _result(session: Session) -> Session | None:
    return evolve(session, at="ready", kept=True, stop=False) if session.at == "busy" else None


def _no_result(session: Session) -> Session | None:
    return evolve(session, at="ready", stop=False) if session.at == "busy" else None


def _lost(session: Session) -> Session | None:
    return evolve(session, lost=True) if session.kept and not session.lost else None


def _ended(session: Session) -> Session | None:
    return Session() if session.at in ("starting", "ready") else None


def _dropped(session: Session) -> Session | None:
    return Session() if session.at == "busy" else None


def _task(outcome: m.TaskOutcome) -> Callable[[int], tuple[Message, ...]]:
    return lambda launch: (m.TaskEnded(launch=launch, outcome=outcome),)


def _over(launch: int) -> Message:
    return m.SessionEnded(launch=launch, verdict=m.Verdict.ENDED, stuck=False)


HAPPENS: Mapping[str, tuple[Callable[[Session], Session | None], Callable[[int], tuple[Message, ...]]]] = {
    "is ready": (_started, lambda launch: (m.SessionStarted(launch=launch),)),
    "has a result": (_result, _task(m.TaskOutcome.RESULT)),
    "has no result": (_no_result, _task(m.TaskOutcome.TIMEOUT)),
    "loses a result": (_lost, lambda launch: (m.ResultLost(launch=launch),)),
    "ends": (_ended, lambda launch: (_over(launch),)),
    "vanishes": (_dropped, lambda launch: (_over(launch),)),
    "ends with its task": (_dropped, lambda launch: (*_task(m.TaskOutcome.TRAINER_LOST)(launch), _over(launch))),
}

# -- the callers -------------------------------------------------------------------------------------------------------


@frozen
class Callers:
    """Who waits in which call, and how the last call of each kind returned."""

    waiting: tuple[str, ...] = ()
    last: tuple[tuple[str, m.Outcome], ...] = ()
    asked: bool = False
    """finalize() or abort() was called."""
    fault: bool = False
    """A call returned that nobody waited in."""

    def told(self, call: str) -> m.Outcome | None:
        """How the last call of that kind returned."""
        return dict(self.last).get(call)


def callers_step(callers: Callers, event: Any) -> Any:
    """Calls go through here, and come back here."""
    match event:
        case Asked(effect=Resolve() as done):
            left = tuple(call for call in callers.waiting if call != done.call)
            told: dict[str, Any] = {call: how for call, how in callers.last if call != done.call} | {done.call: done.outcome}
            wrong = done.call not in callers.waiting or done.number != NUMBERS[done.call]
            return evolve(callers, waiting=left, last=tuple(sorted(told.items())), fault=callers.fault or wrong), ()
        case Called(call="give up", payload=call):
            return (callers, (Give("supervisor", CallCancelled(call, NUMBERS[call])),)) if call in callers.waiting else None
        case Called(call=call):
            if call in callers.waiting:
                return None
            last = tuple(pair for pair in callers.last if pair[0] != call)
            after = evolve(
                callers, waiting=tuple(sorted((*callers.waiting, call))), last=last, asked=callers.asked or call in ("abort", "finalize")
            )
            return after, (Give("supervisor", Called(call, NUMBERS[call], ARGUMENTS if call == "execute" else None)),)
    raise AssertionError(event)


NUMBERS = {"start": 1, "execute": 2, "abort": 3, "finalize": 4}
ARGUMENTS = m.ExecuteArguments(receivers=2, inline=False)
