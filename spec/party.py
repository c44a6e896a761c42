"""The declaration of one party: machines that live together, and which event goes to which of them.

A *route* sends an event to an ordered list of destinations. Where a route has a *gate*, only the gate's machine sees the event
at first, and one of its rows has to ``deliver`` it: so that, for instance, whether a message belongs to this session is a row of
the session machine and not a test hidden in a loop.

Building a party checks it whole: that every signal, key and timer finds its machine, that every trigger can be fired, that every
atom answers with a real bool and reads only what it says it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from attrs import field, frozen

from troth.spec import core, samples
from troth.spec.emits import Deliver, Emit, Forward, Target
from troth.spec.errors import BadGuard, BadRow, DeadRow, UnreadMachine
from troth.spec.guards import Atom
from troth.spec.machine import Entry, Machine
from troth.spec.views import Reader, View

Selector: TypeAlias = tuple[Hashable, ...]


def selector(event: core.Event) -> Selector:
    """What routes are looked up by: the class of the event, and the name in it that tells one use from another."""
    match event:
        case core.Received(message=message):
            return core.Received, type(message)
        case core.TimerFired(timer=name):
            return core.TimerFired, name
        case core.Called(call=name) | core.CallCancelled(call=name):
            return type(event), name
        case core.LinkUp(link=name) | core.LinkLost(link=name):
            return type(event), name
        case core.TransferProgressed(kind=name) | core.TransferEnded(kind=name):
            return type(event), name
        case core.EffectFailed(effect=effect):
            return core.EffectFailed, type(effect)
        case _:
            return (type(event),)


@frozen
class To:
    """One destination: ``trigger`` of ``machine``. ``key(view, event)`` chooses the instance of a family."""

    machine: str
    trigger: str
    key: Callable[[View, Any], Target] | None = field(default=None, eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.machine}.{self.trigger}"


@frozen
class Route:
    """Where the events of one selector go. ``sample`` is an event of that selector, for checks and generators."""

    selector: Selector
    sample: core.Event
    to: tuple[To, ...] = field(converter=tuple)
    gate: To | None = None


def received(message: type[core.Message], *to: To, link: str, gate: To | None = None) -> Route:
    """A message goes to ``to``, if ``gate`` delivers it."""
    return Route((core.Received, message), core.Received(link, samples.sample(message)), to, gate)


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


@frozen(eq=False)
class Party:
    """A declared party. ``PartyCore`` runs it."""

    name: str
    machines: tuple[Machine, ...] = field(kw_only=True, converter=tuple)
    routes: tuple[Route, ...] = field(kw_only=True, converter=tuple)
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
            _PartyChecks(self).run()

    def replaced(self, machine: Machine) -> Party:
        """This party with one machine exchanged for another of the same name: how a mutant is built. Not validated."""
        machines = tuple(machine if m.name == machine.name else m for m in self.machines)
        return Party(self.name, machines=machines, routes=self.routes, config=self.config, observe=self.observe, validate=False)


class _PartyChecks:
    """The checks of one party, each with the declaration it names and the fix."""

    def __init__(self, party: Party) -> None:
        self.party = party
        self.fed: dict[tuple[str, str], list[Any]] = {}

    def run(self) -> None:
        self._names()
        self._destinations()
        self._timers()
        self._reads()
        self._feeds()
        self._fired()
        self._atoms()

    def _names(self) -> None:
        party = self.party
        if len(party.by_name) != len(party.machines):
            raise BadRow(f"party {party.name}: two machines have the same name; rename one")
        if len(party.by_selector) != len(party.routes):
            raise BadRow(f"party {party.name}: two routes take the same event; merge their destinations")

    def _destination(self, where: str, to: To | Forward) -> None:
        machine = self.party.by_name.get(to.machine)
        if machine is None:
            raise UnreadMachine(f"{where}: the party has no machine {to.machine!r}; it has {', '.join(self.party.by_name)}")
        if to.trigger not in machine.triggers:
            raise UnreadMachine(f"{where}: {to.machine} has no trigger {to.trigger!r}; it has {', '.join(machine.triggers)}")
        if (machine.family is None) != (to.key is None):
            fix = "give a key" if machine.family else "take the key away"
            raise UnreadMachine(f"{where}: {to.machine} is {'' if machine.family else 'not '}a family; {fix}")

    def _emissions(self) -> list[tuple[Machine, Entry, Emit | Forward | Deliver]]:
        return [
            (machine, entry, emission)
            for machine in self.party.machines
            for cell in machine.table.values()
            for entry in cell.entries
            if entry.row
            for emission in entry.row.emit
        ]

    def _destinations(self) -> None:
        for route in self.party.routes:
            for to in (*route.to, *((route.gate,) if route.gate else ())):
                self._destination(f"party {self.party.name}: route of {spelled_selector(route.selector)}", to)
        for _, entry, emission in self._emissions():
            if isinstance(emission, Forward):
                self._destination(f"row {entry.id}: signal {emission}", emission)

    def _timers(self) -> None:
        known = {route.selector[1] for route in self.party.routes if route.selector[0] is core.TimerFired}
        limits = getattr(self.party.config(), "limits", None)
        for machine in self.party.machines:
            for name in machine.timers:
                if name not in known:
                    raise UnreadMachine(f"{machine.name}: timer {name!r} has no route in party {self.party.name}; add timer({name!r}, ...)")
        for _, entry, emission in self._emissions():
            if isinstance(emission, Emit) and emission.limit and limits is not None and not hasattr(limits, emission.limit):
                raise BadRow(f"row {entry.id}: there is no limit {emission.limit!r}; add it to {type(limits).__name__}")

    def _reads(self) -> None:
        for machine in self.party.machines:
            for atom in machine.atoms:
                for name in atom.reads:
                    if name not in self.party.by_name:
                        have = ", ".join(self.party.by_name)
                        raise UnreadMachine(
                            f"atom {machine.name}.{atom.name} reads {name!r}, which {self.party.name} has not; it has {have}"
                        )

    def _feeds(self) -> None:
        """Which sample events can reach which trigger: routes first, then along the signals until nothing new comes."""
        for route in self.party.routes:
            seen = subject(route.sample)
            for to in (*route.to, *((route.gate,) if route.gate else ())):
                self._feed(to.machine, to.trigger, seen)
        changed = True
        while changed:
            changed = False
            for machine, entry, emission in self._emissions():
                if not isinstance(emission, Forward) or emission.event is not None:
                    continue
                for sample in list(self.fed.get((machine.name, entry.trigger), ())):
                    changed |= self._feed(emission.machine, emission.trigger, sample)

    def _feed(self, machine: str, trigger: str, sample: Any) -> bool:
        samples_ = self.fed.setdefault((machine, trigger), [])
        if any(type(sample) is type(old) and sample == old for old in samples_):
            return False
        samples_.append(sample)
        return True

    def _fired(self) -> None:
        signalled = {(e.machine, e.trigger) for _, _, e in self._emissions() if isinstance(e, Forward)}
        for machine in self.party.machines:
            for trigger in machine.triggers:
                if (machine.name, trigger) not in self.fed and (machine.name, trigger) not in signalled:
                    raise DeadRow(f"{machine.name}: nothing fires {trigger!r}; add a route or a signal, or remove its rows")

    def _atoms(self) -> None:
        view = View.initial(self.party)
        for machine in self.party.machines:
            for (state, trigger), cell in machine.table.items():
                for sample in self.fed.get((machine.name, trigger), ()):
                    for atom in cell.atoms:
                        self._probe(view, machine, state, atom, sample)

    def _probe(self, view: View, machine: Machine, state: Enum, atom: Atom, sample: Any) -> None:
        key = samples.KEY if machine.family else None
        reader = Reader(view.at(machine.name, key, state, machine.data()), (*atom.reads, machine.name), f"{machine.name}.{atom.name}")
        answer = atom.of(reader, sample)
        if type(answer) is not bool:
            raise BadGuard(
                f"atom {machine.name}.{atom.name} answered {answer!r} ({type(answer).__name__}) to {type(sample).__name__}; "
                "a guard must answer with a real bool: compare, do not return the thing itself"
            )


def spelled_selector(where: Selector) -> str:
    """A selector as people read it."""
    return " ".join(part.__name__ if isinstance(part, type) else str(part) for part in where)
