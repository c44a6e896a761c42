"""The core that runs a declared party.

One ``handle`` is one atomic step. The event's destinations, and every signal that a row raises, are taken first in, first out,
until none is left; guards see the party as it was before their own micro-step. A refusal anywhere rolls the whole step back.

Timers are numbered here. A machine says "set the lease timer"; the engine gives it a generation, and a firing of an older
generation is dropped before any row sees it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Any, TypeAlias, get_args
from weakref import WeakKeyDictionary

from attrs import frozen

from troth.spec import core
from troth.spec.core import Event, Key, Refusal, RefusalKind, Step
from troth.spec.emits import Deliver, Each, Emit, Firing, Forward, Keys, Target
from troth.spec.errors import BadGuard, CoreError
from troth.spec.interpreters import Interpreter, Transitions
from troth.spec.machine import Entry, Kind, Machine, keep
from troth.spec.party import Party, Route, To, selector, spelled_selector, subject
from troth.spec.store import Compiled, Question, Store, TimerId
from troth.spec.views import Members, Reader, View

MICRO_STEPS_LIMIT = 32
"""Micro-steps in one chain of causes, before the core says that its signals never end. A signal to a whole family is one link of the
chain, however many instances the family has."""

MICRO_STEPS_AN_INSTANCE = 32
"""Micro-steps of one event, for every machine instance of the party, before the core says that they never end: a signal that doubles
itself would be long before its chain is."""


class PartyCore:
    """A ``Core`` for a declared party."""

    def __init__(
        self, party: Party, config: Any = None, *, interpreter: Callable[[Machine], Interpreter] | None = None, strict: bool = True
    ) -> None:
        """``config`` overrides the party's default; ``interpreter`` its way of reading tables (default: ``Transitions``). A core that is
        not ``strict`` does not watch that an atom looks at nothing but what it said: a runtime leaves that to the checker and the tests.
        """
        self.party = party
        self.config = party.config() if config is None else config
        self._store = Store(party, self.config, interpreter or shared_transitions)
        self._strict = strict

    def handle(self, event: Event) -> Step:
        """Take one event. Raises ``CoreError`` or ``BadGuard`` only where the declaration itself is broken."""
        where = selector(event)
        route = self.party.by_selector.get(where)
        if route is None:
            why = f"{self.party.name} has no route for {spelled_selector(where)}"
            return Step(refusal=Refusal(_fault(event), f"{self.party.name}.unrouted", why))
        saved = self._store.save()
        if isinstance(event, core.TimerFired) and not self._store.fired(event):
            return Step(rows=(f"timer.{event.timer}.stale",))
        try:
            step = _Run(self._store, route, self._strict).run(event)
        except BaseException:
            self._store.undo(saved)
            raise
        if step.refusal is not None:
            self._store.undo(saved)
        return step

    def snapshot(self) -> Hashable:
        """Machine by machine in declared order, then the timers: plain tuples of strings, ints, bools and enums."""
        return self._store.snapshot()

    def restore(self, snapshot: Hashable) -> None:
        """Become the core that gave ``snapshot``. The party and the configuration must be the same."""
        self._store.restore(snapshot)

    def observe(self) -> Mapping[str, bool | int]:
        """The party's named observations."""
        view = self._store.view()
        return {name: of(view) for name, of in self.party.observe.items()}

    def state(self, machine: str, key: Key = None) -> Enum:
        """The state of one machine instance, for tests and tools."""
        return self._store.slot(machine, key).state

    def data(self, machine: str, key: Key = None) -> Any:
        """The data of one machine instance, for tests and tools."""
        return self._store.slot(machine, key).data

    def members(self, machine: str) -> tuple[Key, ...]:
        """The keys of a family's instances, lowest first."""
        return self._store.members(machine)

    @property
    def armed(self) -> Mapping[TimerId, int]:
        """The timers that run, with their generations."""
        return dict(self._store.armed)


_Micro: TypeAlias = tuple[str, str, Key, Any, int]
"""One pending micro-step: machine, trigger, key, event, and how long its chain of causes is."""

_ONE = frozenset((int, str, tuple))
"""The types of a key that means one instance."""
_TIMED = (core.SetTimer, core.CancelTimer)
_EFFECTS = frozenset(get_args(core.Effect))


class _Run:
    """One ``handle`` under way."""

    def __init__(self, store: Store, route: Route, strict: bool) -> None:
        self.store = store
        self.strict = strict
        self.route = route
        self.queue: deque[_Micro] = deque()
        self.effects: list[core.Effect] = []
        self.rows: list[str] = []
        self.guards: list[tuple[str, bool]] = []

    def run(self, event: Event) -> Step:
        self._open(subject(event), (self.route.gate,) if self.route.gate else self.route.to, 1)
        queue, rows = self.queue, self.rows
        most = MICRO_STEPS_AN_INSTANCE  # of one instance: how many there are is counted only once it matters
        while queue:
            micro = queue.popleft()
            if micro[4] > MICRO_STEPS_LIMIT or len(rows) > most:
                most = max(most, MICRO_STEPS_AN_INSTANCE * self._instances())
                if micro[4] > MICRO_STEPS_LIMIT or len(rows) > most:
                    last = " ".join(rows[-6:])
                    raise CoreError(f"{self.store.party.name}: signals do not end after {MICRO_STEPS_LIMIT} micro-steps: ... {last}")
            refused = self._micro(micro)
            if refused is not None:
                refusal = Refusal(_fault(event), refused.id, refused.why)
                return Step((), tuple(rows), tuple(self.guards), refusal)
        return Step(tuple(self.effects), tuple(rows), tuple(self.guards))

    def _instances(self) -> int:
        return sum(max(1, len(slot)) if type(slot) is Members else 1 for slot in self.store.slots.values())

    def _open(self, seen: Any, destinations: tuple[To, ...], depth: int) -> None:
        view: View | None = None
        for to in destinations:
            if to.key is None:
                self.queue.append((to.machine, to.trigger, None, seen, depth))
                continue
            if view is None:
                view = self.store.view()
            self._enqueue(to.machine, to.trigger, to.key(view, seen), seen, depth)

    def _enqueue(self, machine: str, trigger: str, target: Target, event: Any, depth: int) -> None:
        if target is None or type(target) in _ONE:
            self.queue.append((machine, trigger, target, event, depth))  # type: ignore[arg-type]
            return
        keys = target.keys if isinstance(target, Keys) else self.store.members(machine) if isinstance(target, Each) else (target,)
        for key in keys:
            self.queue.append((machine, trigger, key, event, depth))

    def _micro(self, micro: _Micro) -> Entry | None:
        """Take a micro-step; the entry that refuses it, if one does."""
        machine, trigger, key, event, _ = micro
        store = self.store
        compiled = store.compiled[machine]
        own: Any = store.slots[machine]
        if type(own) is Members:
            own = own[key]
        view = View(store.slots, store.config, key, own)
        place = compiled.places[id(own.state)][trigger]
        bits = self._valuation(place.questions, event, view) if place.questions else 0
        known = place.known.get(bits)
        if known is None:
            entry, target = compiled.interpreter.fire(own.state, trigger, bits)
            known = place.known[bits] = entry, target, _plan(compiled.machine, entry)
        entry = known[0]
        self.rows.append(entry.id)
        if entry.kind is Kind.ROW:
            self._take(compiled, entry, known[1:], micro, view)
        elif entry.kind is Kind.REFUSE:
            return entry
        return None

    def _valuation(self, questions: tuple[Question, ...], event: Any, view: View) -> int:
        bits = 0
        guards = self.guards
        reader: Any = Reader(view, (), "") if self.strict else view
        for place, question in enumerate(questions):
            if self.strict:
                reader.asks(question.may_read, question.name)
            answer = question.of(reader, event)
            if answer is True:
                bits |= 1 << place
                guards.append(question.yes)
            elif answer is False:
                guards.append(question.no)
            else:
                raise BadGuard(f"atom {question.name} answered {answer!r}; a guard must answer with a real bool")
        return bits

    def _take(self, compiled: Compiled, entry: Entry, known: tuple[Enum, Any], micro: _Micro, view: View) -> None:
        target, plan = known
        _, _, key, event, depth = micro
        own, store, machine = view.own, self.store, compiled.machine
        data = own.data
        if plan.update is not None:
            data = plan.update(data, event)
            if type(data) is not machine.data:
                raise CoreError(f"row {entry.id}: update {plan.update.__name__} gave {data!r}, not {machine.data.__name__}")
        if target is not own.state or data is not own.data:
            store.put(compiled, key, target, data)
        if plan.emissions:
            firing = Firing(view, event, key, data)
            for emission, timer, signal in plan.emissions:
                if signal is not None:
                    told = signal.event(firing) if signal.event else event
                    self._enqueue(signal.machine, signal.trigger, signal.key(firing) if signal.key else None, told, depth + 1)
                elif timer is not None:
                    self.effects.append(store.changed_timer(timer, key))
                elif emission is not None:
                    self.effects.append(self._effect(machine, entry, emission, firing))
                else:
                    self._deliver(entry, event, depth)
        if id(target) in compiled.over:
            store.check_timers(compiled, key, target)

    def _deliver(self, entry: Entry, event: Any, depth: int) -> None:
        if self.route.gate is None:
            raise CoreError(f"row {entry.id}: it delivers, but the route of {self.route} has no gate to let it through")
        self._open(event, self.route.to, depth + 1)

    def _effect(self, machine: Machine, entry: Entry, emission: Emit, firing: Firing) -> core.Effect:
        effect = emission.of(firing)
        if type(effect) not in _EFFECTS:
            raise CoreError(
                f"row {entry.id}: `{emission}` gave {effect!r}, not an effect; an emission is unconditional, a choice needs two rows"
            )
        if isinstance(effect, _TIMED):
            _check_owned(machine, entry, effect.timer)
            return self.store.timed(effect)
        return effect


@frozen
class _Plan:
    """A row as it is taken: its emissions, each an ``Emit``, a timer, a ``Forward``, or none of them, which delivers."""

    update: Callable[[Any, Any], Any] | None
    """``None`` where the data stays."""
    emissions: tuple[tuple[Emit | None, Emit | None, Forward | None], ...]


def _plan(machine: Machine, entry: Entry) -> _Plan | None:
    if entry.row is None:
        return None
    found: list[tuple[Emit | None, Emit | None, Forward | None]] = []
    for emission in entry.row.emit:
        if isinstance(emission, Forward):
            found.append((None, None, emission))
        elif isinstance(emission, Deliver):
            found.append((None, None, None))
        elif isinstance(emission, Emit) and emission.timer is not None:
            _check_owned(machine, entry, emission.timer)
            found.append((None, emission, None))
        elif isinstance(emission, Emit):
            found.append((emission, None, None))
    return _Plan(None if entry.row.update is keep else entry.row.update, tuple(found))


def _check_owned(machine: Machine, entry: Entry, timer: str) -> None:
    if timer not in machine.timers:
        raise CoreError(f"row {entry.id}: timer {timer!r} is not owned by {machine.name}; add it to timers=")


_shared: WeakKeyDictionary[Machine, Transitions] = WeakKeyDictionary()


def shared_transitions(machine: Machine) -> Transitions:
    """One ``transitions.Machine`` a declaration, however many cores run it."""
    found = _shared.get(machine)
    if found is None:
        found = _shared[machine] = Transitions(machine)
    return found


def _fault(event: Event) -> RefusalKind:
    match event:
        case core.Received():
            return RefusalKind.VIOLATION
        case core.Called() | core.CallCancelled():
            return RefusalKind.MISUSE
        case _:
            return RefusalKind.DRIVER
