"""The declaration of one party: machines that live together, and which event goes to which of them.

A *route* sends an event to an ordered list of destinations. Where a route has a *gate*, only the gate's machine sees the event
at first, and one of its rows has to ``deliver`` it: so that, for instance, whether a message belongs to this session is a row of
the session machine and not a test hidden in a loop.

Building a party checks it whole: that every signal, key and timer finds its machine, that every trigger can be fired, that every
atom answers with a real bool and reads only what it says it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from attrs import field, frozen

from troth.spec import core, party_checks, samples
from troth.spec.emits import Target
from troth.spec.machine import Machine
from troth.spec.views import View

Selector: TypeAlias = tuple[type | str, ...]


_TOLD_APART_BY: Mapping[type, Callable[[Any], Selector | str]] = {
    core.Received: lambda event: (type(event.message), event.link),
    core.TimerFired: attrgetter("timer"),
    core.Called: attrgetter("call"),
    core.CallCancelled: attrgetter("call"),
    core.LinkUp: attrgetter("link"),
    core.LinkLost: attrgetter("link"),
    core.TransferProgressed: attrgetter("kind"),
    core.TransferEnded: attrgetter("kind"),
    core.EffectFailed: lambda event: (type(event.effect),),
}


def selector(event: core.Event) -> Selector:
    """What routes are looked up by: the class of the event, and what in it tells one use from another.

    The link is part of it: a message that comes over another link than its route's has no route.
    """
    cls = type(event)
    apart = _TOLD_APART_BY.get(cls)
    if apart is None:
        return (cls,)
    told = apart(event)
    return (cls, told) if isinstance(told, str) else (cls, *told)


@frozen
class To:
    """One destination: ``trigger`` of ``machine``. ``key(view, event)`` chooses the instance of a family."""

    machine: str
    trigger: str
    key: Callable[[View, Any], Target] | None = field(default=None, eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.machine}.{self.trigger}"


def _destinations(value: Iterable[To]) -> tuple[To, ...]:
    return tuple(value)


@frozen
class Route:
    """Where the events of one selector go. ``sample`` is an event of that selector, for checks and generators."""

    selector: Selector
    sample: core.Event
    to: tuple[To, ...] = field(converter=_destinations)
    gate: To | None = None

    @property
    def destinations(self) -> tuple[To, ...]:
        """The gate, if there is one, and what is behind it."""
        return self.to if self.gate is None else (self.gate, *self.to)

    @property
    def subject(self) -> Any:
        """What atoms see of the sample."""
        return subject(self.sample)

    def __str__(self) -> str:
        return spelled_selector(self.selector)


def received(message: type[core.Message], *to: To, link: str, gate: To | None = None) -> Route:
    """A message that comes over ``link`` goes to ``to``, if ``gate`` delivers it."""
    return Route((core.Received, message, link), core.Received(link, samples.sample(message)), to, gate)


def called(call: str, *to: To, payload: type[Any] | None = None) -> Route:
    """A user's call; ``payload`` is the attrs class of its arguments."""
    return Route((core.Called, call), core.Called(call, 0, samples.sample(payload) if payload else None), to)


def call_cancelled(call: str, *to: To) -> Route:
    """A user gave up waiting."""
    return Route((core.CallCancelled, call), core.CallCancelled(call), to)


def timer(name: str, *to: To) -> Route:
    """A due timer. A stale firing never gets this far."""
    return Route((core.TimerFired, name), core.TimerFired(name), to)


def happened(event: core.Event, *to: To) -> Route:
    """Any other event, given by an example: every event with the same selector takes this route."""
    return Route(selector(event), event, to)


def subject(event: core.Event) -> Any:
    """What atoms, updates and emissions see: the message of a ``Received``, else the event itself."""
    return event.message if isinstance(event, core.Received) else event


def _machines(value: Iterable[Machine]) -> tuple[Machine, ...]:
    return tuple(value)


def _routes(value: Iterable[Route]) -> tuple[Route, ...]:
    return tuple(value)


@frozen(eq=False)
class Party:
    """A declared party. ``PartyCore`` runs it."""

    name: str
    machines: tuple[Machine, ...] = field(kw_only=True, converter=_machines)
    routes: tuple[Route, ...] = field(kw_only=True, converter=_routes)
    config: Callable[[], Any] = field(kw_only=True)
    """Makes the default configuration; a core may be given another of the same class."""
    observe: Mapping[str, Callable[[View], bool | int]] = field(kw_only=True, factory=dict)
    validate: bool = field(kw_only=True, default=True)
    by_name: Mapping[str, Machine] = field(init=False, repr=False)
    by_selector: Mapping[Selector, Route] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "by_name", {m.name: m for m in self.machines})
        object.__setattr__(self, "by_selector", {r.selector: r for r in self.routes})
        if self.validate:
            party_checks.check_party(self)

    def replaced(self, machine: Machine) -> Party:
        """This party with one machine exchanged for another of the same name: how a mutant is built. Not validated."""
        machines = tuple(machine if m.name == machine.name else m for m in self.machines)
        return Party(self.name, machines=machines, routes=self.routes, config=self.config, observe=self.observe, validate=False)


def spelled_selector(where: Selector) -> str:
    """A selector as people read it."""
    return " ".join(part.__name__ if isinstance(part, type) else str(part) for part in where)
