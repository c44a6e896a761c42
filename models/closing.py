"""From a world's declarations to components and actions: routing of effects, and the items of every action."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from attrs import define, field, frozen

from troth.models.canonical import spelled
from troth.models.errors import WorldError
from troth.models.expressions import Expr, Op, boolean
from troth.models.handles import Handle, LinkHandle, PartyHandle
from troth.models.links import BudgetOp, LinkOp, StopwatchOp
from troth.models.parties import Crash, Fire, PartyOp, Push
from troth.models.system import Action, ActionKind, Check, Item, System
from troth.spec.core import CloseLink, OpenLink, Received, Send


@frozen
class Asked:
    """What a component sees of an effect that it takes (``World.takes``): who asked, and for what."""

    by: str
    effect: Any


@frozen
class Give:
    """An effect of a step function: ``to`` (a party's name) gets ``event`` within the same step."""

    to: str
    event: Any


@frozen
class LinkPlan:
    """A declared link."""

    handle: LinkHandle
    source: PartyHandle
    target: PartyHandle
    called: str
    lossy: Handle | bool
    duplicating: Handle | bool


@frozen
class Crashing:
    """A declared crash."""

    party: PartyHandle
    budget: Handle
    restarts: bool
    keeps: Callable[[Any], Hashable] | None
    restarted: Callable[[Any], Hashable] | None
    within_steps: bool
    drops: tuple[LinkHandle, ...]


@frozen
class Gate:
    """When ``party``'s timers of that name and key may fire; without a key, of any."""

    party: PartyHandle
    timer: str
    key: Hashable
    when: Expr

    @property
    def name(self) -> str:
        """What it is called in a world."""
        return f"{self.party.name} timer {self.timer}" + ("" if self.key is None else f"[{spelled(self.key)}]")


@frozen
class Router:
    """Where one party's effects go. ``sends``: link name to (component, ``None``), or to (party, name of arrival) for a local link."""

    name: str
    sends: Mapping[str, tuple[int, str | None]]
    parties: Mapping[str, int]
    takers: Mapping[type, int]
    ignored: frozenset[type]

    def route(self, effect: Any) -> tuple[Item, ...]:
        """The items of one effect."""
        kind = type(effect)
        if kind in self.takers:
            return ((self.takers[kind], Asked(self.name, effect)),)
        if kind in self.ignored or isinstance(effect, OpenLink):
            return ()
        if isinstance(effect, Send):
            return (self._sent(effect),)
        if isinstance(effect, Give) and effect.to in self.parties:
            return ((self.parties[effect.to], effect.event),)
        if isinstance(effect, CloseLink) and self.sends.get(effect.link, (0, ""))[1] is None:
            return ((self.sends[effect.link][0], LinkOp.CLOSE),)
        raise WorldError(
            f"nothing in the world takes {effect!r} of {self.name}; add world.takes(component, {kind.__name__}, by={self.name}), "
            f"or world.ignores({self.name}, {kind.__name__}) if it matters to nobody here"
        )

    def _sent(self, effect: Send) -> Item:
        found = self.sends.get(effect.link)
        if found is None and len(self.sends) == 1:
            found = next(iter(self.sends.values()))
        if found is None:
            have = ", ".join(self.sends) or "none"
            raise WorldError(f"{self.name} sends {effect.message!r} to link {effect.link!r}; the world's links from it are {have}")
        index, arrives = found
        return (index, Push((effect.message,))) if arrives is None else (index, Received(arrives, effect.message))


@define(eq=False)
class Closing:
    """Everything declared so far, and how it becomes a ``System``."""

    handles: list[Handle]
    links: list[LinkPlan] = field(factory=list)
    local: list[tuple[PartyHandle, PartyHandle, str, str]] = field(factory=list)
    cuts: list[tuple[tuple[LinkHandle, ...], Handle | None, bool]] = field(factory=list)
    stopwatches: list[tuple[Handle, Expr]] = field(factory=list)
    takers: dict[tuple[int, type], int] = field(factory=dict)
    ignored: set[tuple[int, type]] = field(factory=set)
    events: list[tuple[str, PartyHandle, Any, Handle | None, Expr | None]] = field(factory=list)
    crashes: list[Crashing] = field(factory=list)
    gates: list[Gate] = field(factory=list)
    ticks: dict[str, int] | None = None

    def system(self) -> System:
        """The closed system."""
        if not self.handles:
            raise WorldError("the world is empty; declare a party")
        for handle in self.handles:
            if isinstance(handle, PartyHandle):
                handle.party.ticks = self.ticks
                handle.party.route = self._router(handle)
                handle.party.punctual = self._punctual(handle)
                handle.party.gated = frozenset(gate.timer for gate in self.gates if gate.party is handle)
        for plan in self.crashes:
            plan.party.party.crash = self._crash(plan)
        actions = [*self._calls(), *self._network(), *self._timers(), *self._time(), *self._faults()]
        if not actions:
            raise WorldError("nothing can happen in this world; declare an action with may() or a timer")
        return System([h.component for h in self.handles], actions)

    # -- effects -------------------------------------------------------------------------------------------------------

    def _router(self, party: PartyHandle) -> Callable[[Any], tuple[Item, ...]]:
        sends: dict[str, tuple[int, str | None]] = {}
        for plan in self.links:
            if plan.source is party:
                sends[plan.called] = (plan.handle.index, None)
        for source, target, called, arrives in self.local:
            if source is party:
                sends[called] = (target.index, arrives)
        names = {h.name: h.index for h in self.handles}
        takers = {effect: taker for (index, effect), taker in self.takers.items() if index == party.index}
        ignored = frozenset(effect for index, effect in self.ignored if index == party.index)
        return Router(party.name, sends, names, takers, ignored).route

    def _punctual(self, party: PartyHandle) -> frozenset[str]:
        """Links, by the name at their target, whose messages must be taken before the clock ticks again."""
        links = [(plan.handle.link, plan.target) for plan in self.links]
        return frozenset(link.arrives_as for link, target in links if target is party and link.delay is not None)

    def _about(self, party: PartyHandle) -> tuple[int, ...]:
        """The party, then the links that leave it."""
        return (party.index, *(plan.handle.index for plan in self.links if plan.source is party))

    # -- actions -------------------------------------------------------------------------------------------------------

    def _calls(self) -> list[Action]:
        found = []
        for name, party, event, budget, when in self.events:
            spend = [_spend(budget)] if budget else []
            checks = self._checks(name, when)
            items = (*spend, *checks, (party.index, event))
            about = (*(i for i, _ in (*spend, *checks)), *self._about(party))
            found.append(Action(name, ActionKind.CALL, "environment", items, about))
        return found

    def _checks(self, name: str, when: Expr | None) -> list[Item]:
        """One check for each component that a conjunction speaks of."""
        if when is None:
            return []
        by_component: dict[int, Expr] = {}
        for part in _conjuncts(when):
            if len(part.components) != 1 or part.primed:
                raise WorldError(
                    f"action {name}: when=`{part}` looks at {len(part.components)} components; join conditions of one component each with &"
                )
            (index,) = part.components
            by_component[index] = by_component[index] & part if index in by_component else part
        return [(index, _check(index, expr)) for index, expr in by_component.items()]

    def _network(self) -> list[Action]:
        found = []
        for plan in self.links:
            link, name = plan.handle.index, plan.handle.name
            about = (link, *self._about(plan.target))
            found.append(Action(f"{name} delivers", ActionKind.DELIVER, "network", ((link, LinkOp.DELIVER),), about))
            for kind, verb, operation, fault in (
                (ActionKind.LOSE, "loses", LinkOp.LOSE, plan.lossy),
                (ActionKind.DUPLICATE, "duplicates", LinkOp.DUPLICATE, plan.duplicating),
            ):
                if fault is False:
                    continue
                spend = () if fault is True else (_spend(fault),)
                # The budget comes first: a copy that can no longer be made must not count as one for which there was no room.
                found.append(Action(f"{name} {verb}", kind, "network", (*spend, (link, operation)), (link, *(i for i, _ in spend))))
        for links, budget, reopens in self.cuts:
            name = links[0].name
            about = tuple(link.index for link in links)
            spend = (_spend(budget),) if budget else ()
            found.append(Action(f"{name} is cut", ActionKind.CUT, "network", (*spend, *((i, LinkOp.CUT) for i in about)), about))
            if reopens:
                found.append(Action(f"{name} is opened", ActionKind.CONNECT, "network", tuple((i, LinkOp.OPEN) for i in about), about))
        return found

    def _timers(self) -> list[Action]:
        free = [
            Action(f"{h.name} timer", ActionKind.TIMER, "clock", ((h.index, PartyOp.FIRE),), self._about(h))
            for h in self.handles
            if isinstance(h, PartyHandle)
        ]
        return [*free, *(self._gated(gate) for gate in self.gates)]

    def _gated(self, gate: Gate) -> Action:
        party, name = gate.party, gate.name
        if self.ticks is not None:
            raise WorldError(
                f"timer {gate.timer!r} of {party.name} waits for a condition, but the world has a clock, which says when it fires"
            )
        checks = self._checks(name, gate.when)
        if any(index == party.index for index, _ in checks):
            raise WorldError(
                f"timer {gate.timer!r} of {party.name}: when=`{gate.when}` looks at {party.name} itself; its own rows say that"
            )
        # The timer comes first, so that a trace says whose step it is; what comes of it waits for the checks.
        about = (*self._about(party), *(index for index, _ in checks))
        return Action(name, ActionKind.TIMER, "clock", ((party.index, Fire(gate.timer, gate.key)), *checks), about)

    def _time(self) -> list[Action]:
        if self.ticks is None:
            for handle in self.handles:
                if isinstance(handle, LinkHandle) and handle.link.delay is not None:
                    raise WorldError(f"link {handle.name} has a delay but the world has no clock; add world.clock(...)")
            if self.stopwatches:
                raise WorldError(f"stopwatch {self.stopwatches[0][0].name} needs a clock; add world.clock(...)")
            return []
        items: list[Item] = [(h.index, PartyOp.TICK) for h in self.handles if isinstance(h, PartyHandle)]
        items += [(h.index, LinkOp.TICK) for h in self.handles if isinstance(h, LinkHandle) and h.link.delay is not None]
        for watch, running in self.stopwatches:
            if len(running.components) != 1:
                raise WorldError(f"stopwatch {watch.name}: `{running}` must look at exactly one component")
            (index,) = running.components
            items.append((index, _Read(_check(index, running), watch.index)))
        about = tuple(i for i, _ in items)
        return [Action("tick", ActionKind.TICK, "clock", (self._passes(tuple(items)),), about)]

    def _passes(self, items: tuple[Item, ...]) -> Item:
        """What begins a tick: each component in turn is asked whether a tick changes it; the first that says so lets ``items`` happen."""
        rest: Item | None = None
        for index, operation in reversed(items):
            name = self.handles[index].name
            if isinstance(operation, _Read):
                watch = operation.watch
                run, stop = (
                    (watch, _Moves(self.handles[watch].name, watch, op, items, rest)) for op in (StopwatchOp.RUN, StopwatchOp.STOP)
                )
                rest = (index, _Either(self.handles[watch].name, operation, run, stop))
            else:
                rest = (index, _Moves(name, index, operation, items, rest))
        if rest is None:
            raise WorldError("the world has a clock and nobody for whom time could pass; declare a party")
        return rest

    def _faults(self) -> list[Action]:
        found = []
        for plan in self.crashes:
            party = plan.party
            found.append(Action(f"{party.name} crashes", ActionKind.CRASH, "environment", ((party.index, PartyOp.CRASH),), (party.index,)))
            if plan.restarts:
                items = ((party.index, PartyOp.RESTART),)
                found.append(Action(f"{party.name} restarts", ActionKind.RESTART, "environment", items, (party.index,)))
        return found

    def _crash(self, plan: Crashing) -> Crash:
        return Crash(
            spend=_spend(plan.budget),
            keeps=plan.keeps,
            restarts=plan.restarted,
            within_steps=plan.within_steps,
            cuts=tuple((link.index, LinkOp.DROP) for link in plan.drops),
            opens=tuple((link.index, LinkOp.OPEN) for link in plan.drops),
        )


@define(init=False, eq=False, slots=False)
class _Read(Check):
    """A check that never blocks: it starts or stops a stopwatch."""

    text: str
    watch: int

    def __init__(self, check: Check, watch: int) -> None:
        super().__init__(check.text, check.holds)
        self.watch = watch

    def emits(self, system: System, local: int) -> tuple[Item, ...] | None:
        """One item for the stopwatch."""
        return ((self.watch, StopwatchOp.RUN if self.holds(system, local) else StopwatchOp.STOP),)


@define(init=False, eq=False, slots=False)
class _Moves(Check):
    """A tick changes this component, and so ``tick`` happens; or else ``rest`` is asked. Where a tick changes nothing there is none.

    Otherwise a world in which nothing can happen any more would seem to go on, because time still passes.
    """

    text: str

    def __init__(self, name: str, index: int, operation: Hashable, tick: tuple[Item, ...], rest: Item | None) -> None:
        how = f" ({operation.value})" if isinstance(operation, StopwatchOp) else ""
        super().__init__(f"time passes for {name}{how}", self._moves)
        self.index = index
        self.operation = operation
        self.tick = tick
        self.rest = rest

    def _moves(self, system: System, local: int) -> bool:
        table = system.components[self.index]
        before = table.states[local]
        return any(outcome.state != before for outcome in table.component.react(before, self.operation))

    def emits(self, system: System, local: int) -> tuple[Item, ...] | None:
        """The tick, or who else is asked."""
        if self.holds(system, local):
            return self.tick
        return None if self.rest is None else (self.rest,)


@define(init=False, eq=False, slots=False)
class _Either(Check):
    """Asks a stopwatch whether it moves, which depends on whether it runs."""

    text: str

    def __init__(self, name: str, running: Check, run: Item, stop: Item) -> None:
        super().__init__(f"{name} runs: {running.text}", running.holds)
        self.run = run
        self.stop = stop

    def emits(self, system: System, local: int) -> tuple[Item, ...] | None:
        """One question."""
        return (self.run if self.holds(system, local) else self.stop,)


def _check(index: int, expr: Expr) -> Check:
    def holds(system: System, local: int) -> bool:
        state = tuple(local if i == index else 0 for i in range(len(system.components)))
        return boolean(expr.compiled(system)(state, state), expr)

    return Check(str(expr), holds)


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, Op) and expr.name == "&":
        return [part for arg in expr.args for part in _conjuncts(arg)]
    return [expr]


def _spend(budget: Handle) -> Item:
    return budget.index, BudgetOp.SPEND
