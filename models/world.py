"""How a world is declared: parties, links between them, what the environment may do, and what must be true.

A world is closed: whatever can happen in it is declared here, and nothing else happens. ``world.system()`` closes it and gives the
form that the engines read.

Names of links. A core says ``Send(link="control", message)`` and later sees ``Received(link="control", message)``. A world's link
has the *name* its source sends by and ``arrives_as`` for its target (the same, unless said otherwise). Where only one link leaves a
party, every name means that link. An effect that nothing takes is an error that names it; say ``ignores`` where it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from troth.models.behaviours import Behaviour, CoreBehaviour, Observe, StepBehaviour, TransitionsBehaviour
from troth.models.claims import Claims, strong
from troth.models.closing import Closing, Crashing, Gate, LinkPlan
from troth.models.errors import WorldError
from troth.models.expressions import Expr
from troth.models.handles import ActionHandle, Handle, LinkHandle, PartyHandle, handles_in, owner_of
from troth.models.links import BudgetComponent, Full, LinkComponent, Loses, StopwatchComponent
from troth.models.parties import PartyComponent
from troth.models.system import Component, System
from troth.spec.core import Called, Core

__all__ = ["World", "strong"]

Times: TypeAlias = "int | Handle | None"


class World(Claims):
    """A closed world under construction. ``doc`` is one line for ``troth worlds``."""

    def __init__(self, name: str, doc: str = "") -> None:
        super().__init__(name)
        self.doc = doc
        self.bounds: Mapping[str, int] = {}
        self.handles: list[Handle] = []
        self.symmetries: list[tuple[tuple[tuple[PartyHandle, ...], ...], Mapping[int, Callable[[Any, Mapping[int, int]], Any]]]] = []
        self._closing = Closing(self.handles)
        self._system: System | None = None

    # -- components ----------------------------------------------------------------------------------------------------

    def _open(self, what: str, *given: object) -> None:
        """``what`` may still be declared, and what it is given is of this world."""
        if self._system is not None:
            raise WorldError(f"world {self.name} is closed, so {what} would change nothing; declare it before system() or check()")
        self._own(what, *given)

    def _own(self, what: str, *given: object) -> None:
        for one in given:
            for handle in handles_in(one) if isinstance(one, Expr) else (one,) if isinstance(one, Handle | ActionHandle) else ():
                owner = owner_of(handle)
                if isinstance(owner, World) and owner is not self:
                    raise WorldError(
                        f"world {self.name}: {what} is given {handle.name!r}, which is of another world ({owner.name}); "
                        "use what this world's own methods returned"
                    )

    def _index(self, component: Component) -> int:
        if any(h.name == component.name for h in self.handles):
            raise WorldError(f"world {self.name}: there are two components {component.name!r}; give one another name")
        return len(self.handles)

    def party(
        self, name: str, behaviour: Any, *, initial: Hashable = ..., observe: Observe | None = None, stale_timers: bool = True
    ) -> PartyHandle:
        """A party: a ``Core`` class or factory; a step function (with ``initial``, and ``observe``); or a transitions configuration.

        ``stale_timers=False`` leaves out the one late firing of a timer that was set again or cancelled.
        """
        self._open(f"party({name!r})")
        made: Behaviour
        if isinstance(behaviour, Mapping):
            made = TransitionsBehaviour(name, behaviour)
        elif initial is not ...:
            made = StepBehaviour(name, behaviour, initial, observe)
        else:
            made = self._core(name, behaviour)
        component = PartyComponent(name, made, stale=stale_timers)
        handle = PartyHandle(self._index(component), component, self)
        self.handles.append(handle)
        return handle

    def _core(self, name: str, factory: Any) -> CoreBehaviour:
        core = factory() if callable(factory) else factory
        if not isinstance(core, Core):
            raise WorldError(
                f"party {name}: {factory!r} makes no Core; give a Core class, a step function with initial=, or a configuration"
            )
        return CoreBehaviour(name, lambda: core)

    def budget(self, name: str, times: int) -> Handle:
        """A number of times, to be shared by several actions: give it as ``times=`` or ``lossy=``. Observation: ``left``."""
        self._open(f"budget({name!r})")
        if times < 0:
            raise WorldError(f"budget {name}: {times} times; give 0 or more")
        component = BudgetComponent(name, times)
        handle = Handle(self._index(component), component, self)
        self.handles.append(handle)
        return handle

    def link(
        self,
        source: PartyHandle,
        target: PartyHandle,
        name: str | None = None,
        *,
        arrives_as: str | None = None,
        ordered: bool = True,
        lossy: bool | int | Handle = False,
        duplicating: bool | int | Handle = False,
        capacity: int = 1,
        full: str = "loses",
        delay: int | None = None,
        loses: str = "any",
        merges: bool = False,
    ) -> LinkHandle:
        """One direction from ``source`` to ``target``.

        ``lossy`` and ``duplicating``: ``True`` without limit, a number of times, or a shared budget. ``full`` says what becomes of a
        message that finds no room: it is lost (``"loses"``), the whole step cannot happen (``"blocks"``), or the step is cut out,
        counted, and the verdict becomes unknown (``"truncates"``). ``delay``: in a timed world, ticks after which it has arrived.
        ``loses``: whether an ordered link that is ``lossy`` loses ``"any"`` one message or the ``"oldest"`` only. ``merges``: a message
        like one that is on its way already is not sent a second time, so repeating oneself does not fill the link.
        """
        called = name or target.name
        self._open(f"link({called!r})", source, target, lossy, duplicating)
        try:
            when_full = Full(full)
        except ValueError:
            raise WorldError(f"link {called}: full={full!r}; it is one of {', '.join(f.value for f in Full)}") from None
        if loses not in {one.value for one in Loses}:
            raise WorldError(f"link {called}: loses={loses!r}; it is one of {', '.join(one.value for one in Loses)}")
        if capacity < 1:
            raise WorldError(f"link {called}: capacity {capacity}; give at least 1")
        unique = f"{source.name}>{target.name}" + (f":{name}" if name else "")
        component = LinkComponent(
            unique,
            target=target.index,
            arrives_as=arrives_as or called,
            ordered=ordered,
            capacity=capacity,
            full=when_full,
            delay=delay,
            loses=Loses(loses),
            merges=merges,
        )
        handle = LinkHandle(self._index(component), component, self)
        self._only_one(source, target, called)
        self.handles.append(handle)
        lose, copy = self._fault(f"{unique} losses", lossy), self._fault(f"{unique} duplicates", duplicating)
        self._closing.links.append(LinkPlan(handle, source, target, called, lose, copy))
        return handle

    def _only_one(self, source: PartyHandle, target: PartyHandle, called: str) -> None:
        """No other link from ``source`` has this name: a send says the name, and nothing else."""
        closing = self._closing
        known = [*((p.source, p.target, p.called) for p in closing.links), *((a, b, name) for a, b, name, _ in closing.local)]
        for other, to, name in known:
            if other is source and name == called:
                raise WorldError(
                    f"world {self.name}: two links {called!r} leave {source.name}, to {to.name} and to {target.name}; a message would go "
                    "to one of them only, so give one another name= (arrives_as= is what its target calls it)"
                )

    def _fault(self, name: str, amount: bool | int | Handle) -> Handle | bool:
        if isinstance(amount, Handle | bool):
            return amount
        return self.budget(name, amount) if amount else False

    def duplex(
        self, a: PartyHandle, b: PartyHandle, name: str, *, cuts: Times = 0, reopens: bool = True, **options: Any
    ) -> tuple[LinkHandle, LinkHandle]:
        """Two directions that are cut and opened together: ``LinkLost`` and ``LinkUp`` at both ends. ``options`` as for ``link``."""
        there = self.link(a, b, name, **options)
        back = self.link(b, a, name, **options)
        if cuts != 0:
            self.cut(there, back, times=cuts, reopens=reopens)
        return there, back

    def cut(self, *links: LinkHandle, times: Times = 1, reopens: bool = True) -> None:
        """The network may cut these links together (what is in flight is lost, both ends are told) and, if ``reopens``, open them."""
        if not links:
            raise WorldError(f"world {self.name}: cut() is given no link; name those that are cut together")
        label = links[0].name
        self._open(f"cut({label!r})", *links, times)
        budget = self._budgeted(f"{label} cuts", times)
        self._closing.cuts.append((tuple(links), budget, reopens))

    def local(self, source: PartyHandle, target: PartyHandle, name: str | None = None, *, arrives_as: str | None = None) -> None:
        """An instantaneous link inside one process: what is sent is received within the same step."""
        called = name or target.name
        self._open(f"local({called!r})", source, target)
        self._only_one(source, target, called)
        self._closing.local.append((source, target, called, arrives_as or called))

    def stopwatch(self, name: str, running: Expr, most: int) -> Handle:
        """Counts ticks, up to ``most``, while ``running`` (of one party) holds without a break. Observation: ``ticks``."""
        self._open(f"stopwatch({name!r})", running)
        component = StopwatchComponent(name, most)
        handle = Handle(self._index(component), component, self)
        self.handles.append(handle)
        self._closing.stopwatches.append((handle, running))
        return handle

    def clock(self, ticks: Mapping[str, int]) -> None:
        """Make the world timed: each named limit in whole ticks. Time passes one tick at a time, for everybody at once.

        There is no tick where it would change nothing: no timer runs, nothing is on its way, and no stopwatch moves.
        """
        self._open("clock()")
        for limit, count in ticks.items():
            if count < 1:
                raise WorldError(f"limit {limit!r} is {count} ticks; a timer needs at least 1")
        self._closing.ticks = dict(ticks)

    def fires(self, party: PartyHandle, timer: str, *, when: Expr, key: Hashable = None) -> None:
        """``party``'s timers of that name fire only while ``when`` holds: a conjunction (``&``) of conditions of one other component each.

        For limits whose use is known: one that ends a wait for a peer may fire only while that peer is gone. With a ``key`` it is said of
        that one; others of the same name then fire only if something is said of them too.
        """
        self._open(f"fires({timer!r})", party, when)
        gate = Gate(party, timer, key, when)
        of_timer = [other for other in self._closing.gates if other.party is party and other.timer == timer]
        if any(None in (key, other.key) or key == other.key for other in of_timer):
            raise WorldError(f"world {self.name}: it is said twice when {gate.name} fires; join the conditions with &")
        self._closing.gates.append(gate)

    # -- wiring --------------------------------------------------------------------------------------------------------

    def takes(self, component: PartyHandle, *effects: type, by: PartyHandle) -> None:
        """``component`` takes ``by``'s effects of these classes, within the same step, as the event ``Asked(by, effect)``."""
        self._open(f"takes({component.name!r})", component, by)
        for effect in effects:
            known = self._closing.takers.setdefault((by.index, effect), component.index)
            if known != component.index:
                raise WorldError(
                    f"world {self.name}: {self.handles[known].name} and {component.name} both take {effect.__name__} of {by.name}; "
                    "let one take it and give it to the other"
                )

    def ignores(self, party: PartyHandle, *effects: type) -> None:
        """``party``'s effects of these classes matter to nobody in this world."""
        self._open(f"ignores({party.name!r})", party)
        for effect in effects:
            self._closing.ignored.add((party.index, effect))

    def _budgeted(self, name: str, times: Times) -> Handle | None:
        return times if isinstance(times, Handle) or times is None else self.budget(name, times)

    # -- the environment -----------------------------------------------------------------------------------------------

    def may(
        self,
        party: PartyHandle,
        event: Any,
        *,
        times: Times = None,
        when: Expr | None = None,
        payload: Any = None,
        number: int = 0,
        name: str | None = None,
    ) -> ActionHandle:
        """The environment may give ``event`` to ``party``: a call by name, or any event.

        ``times``: at most so often (a number or a shared budget; ``None``: without limit). ``when``: only while it holds; a
        conjunction (``&``) of conditions of one component each. The action is also blocked where the party cannot take the event.
        """
        given = Called(event, number, payload) if isinstance(event, str) else event
        label = name or (event if isinstance(event, str) else type(event).__name__)
        full = f"{party.name}.{label}"
        self._open(f"may({full!r})", party, times, when)
        if any(a[0] == full for a in self._closing.events):
            raise WorldError(f"world {self.name}: there are two actions {full!r}; give one another name=")
        self._closing.events.append((full, party, given, self._budgeted(f"{full} times", times), when))
        return ActionHandle(full, self)

    def crash(
        self,
        party: PartyHandle,
        times: int | Handle = 1,
        *,
        restarts: bool = True,
        keeps: Callable[[Any], Hashable] | None = None,
        restarted: Callable[[Any], Hashable] | None = None,
        within_steps: bool = True,
        drops: Iterable[LinkHandle] = (),
    ) -> None:
        """``party`` may crash, also between any two effects of a step, and (``restarts``) start again.

        ``keeps(state)`` is what survives, ``restarted(kept)`` the state after a restart; without them nothing survives and it starts
        as it did at first. ``drops``: links that a crash takes down and a restart opens.
        """
        drops = tuple(drops)
        self._open(f"crash({party.name!r})", party, times, *drops)
        if isinstance(times, int) and times < 1:
            return
        if any(c.party is party for c in self._closing.crashes):
            raise WorldError(f"party {party.name} already crashes; declare it once, with times=")
        budget = times if isinstance(times, Handle) else self.budget(f"{party.name} crashes", times)
        self._closing.crashes.append(Crashing(party, budget, restarts, keeps, restarted, within_steps, drops))

    def symmetric(
        self,
        members: Sequence[PartyHandle | Sequence[PartyHandle]],
        renames: Mapping[Handle, Callable[[Any, Mapping[int, int]], Any]] | None = None,
    ) -> None:
        """``members`` (parties, or several parties that move together) are interchangeable: exchanging them gives the same state.

        What belongs to one of them alone (its links, and the budgets of its links, actions and crashes) moves along. Any other
        component whose states tell them apart needs ``renames[handle](state, mapping)``: its state (a link's: one message) after the
        member at place i was moved to mapping[i]. That properties do not tell them apart is the author's to see to.
        """
        if len(members) < 2:
            raise WorldError(f"world {self.name}: symmetry is of two parties or more")
        parties = tuple((m,) if isinstance(m, PartyHandle) else tuple(m) for m in members)
        if len({len(member) for member in parties}) != 1:
            raise WorldError(f"world {self.name}: symmetric members are of different sizes; give each the same parties, in the same order")
        self._open("symmetric()", *(party for member in parties for party in member), *(renames or {}))
        self.symmetries.append((parties, {h.index: fn for h, fn in (renames or {}).items()}))

    def owned(self) -> list[tuple[int, tuple[int, ...]]]:
        """Links and budgets with the parties (indices) that they belong to or are used by: for symmetry."""
        users: dict[int, list[int]] = {}
        closing = self._closing
        for plan in closing.links:
            users.setdefault(plan.handle.index, []).extend([plan.source.index, plan.target.index])
            for budget in (plan.lossy, plan.duplicating):
                if isinstance(budget, Handle):
                    users.setdefault(budget.index, []).extend([plan.source.index, plan.target.index])
        for _, party, _, budget_, _ in closing.events:
            if budget_ is not None:
                users.setdefault(budget_.index, []).append(party.index)
        for crash in closing.crashes:
            users.setdefault(crash.budget.index, []).append(crash.party.index)
        return [(index, tuple(parties)) for index, parties in sorted(users.items())]

    def actions_of(self, parties: Sequence[PartyHandle]) -> frozenset[Hashable]:
        """What may be done to each of these parties, in terms that do not name them: for symmetry."""
        found: list[Hashable] = []
        for place, party in enumerate(parties):
            for _, to, event, budget, when in self._closing.events:
                if to is party:
                    found.append((place, event, budget is None, when is None))
            found += [(place, "crash", c.restarts, c.within_steps) for c in self._closing.crashes if c.party is party]
        return frozenset(found)

    # -- closing -------------------------------------------------------------------------------------------------------

    def system(self) -> System:
        """Close the world: its components and actions as the engines read them. The same object every time."""
        if self._system is None:
            system = self._closing.system()
            # Only a world without a fault is closed: a second attempt says again what is wrong.
            self.properties[:] = [self._resolved(p, system) for p in self.properties]
            self._system = system
        return self._system
