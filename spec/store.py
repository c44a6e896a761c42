"""The mutable state of one party core: slots, timers, and the rules for changing them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias

import attrs
from attrs import define, field, frozen

from troth.spec import core
from troth.spec.core import Key
from troth.spec.data import keeping
from troth.spec.emits import Emit
from troth.spec.errors import CoreError
from troth.spec.interpreters import Interpreter
from troth.spec.machine import Entry, Machine
from troth.spec.party import Party
from troth.spec.views import Members, Slot, View

GENERATIONS = 2
"""Timer generations in use. One bit is enough: setting or cancelling a timer withdraws its pending expiry, so at most one stale
firing exists."""

TimerId: TypeAlias = tuple[str, Key]
Slots: TypeAlias = dict[str, "Slot | Members"]

THICKENED_LIMIT = 65_536
"""Instances of one machine that ``restore`` remembers how to build. A checker restores the same few thousand over and over."""

PREPARED_LIMIT = 256
"""Machines that are kept prepared. A run needs a few dozen; a search through mutants passes thousands by."""


@frozen
class Question:
    """An atom as one machine asks it."""

    of: Callable[[Any, Any], bool]
    may_read: frozenset[str]
    name: str
    yes: tuple[str, bool]
    no: tuple[str, bool]
    """The two answers, as a step lists them."""

    @classmethod
    def put(cls, of: Callable[[Any, Any], bool], may_read: frozenset[str], name: str) -> Question:
        """As it is asked."""
        return cls(of, may_read, name, (name, True), (name, False))


@define(eq=False)
class Place:
    """One (state, trigger) of a machine: what is asked there, and entry, target and plan of each valuation that was met."""

    questions: tuple[Question, ...]
    known: dict[int, tuple[Entry, Enum, Any]] = field(factory=dict)


@frozen(eq=False)
class Compiled:
    """A machine with what a core needs at hand."""

    machine: Machine
    interpreter: Interpreter
    limit: int | None
    fields: tuple[str, ...]
    start: Slot
    places: Mapping[int, Mapping[str, Place]]
    """By the identity of the state, then by trigger: a member of an enum is one object, and asking it for its hash is slow."""
    trims: Mapping[int, Callable[[Any, Any], Any]]
    """What resets the fields that do not matter in a state, by its identity, where some do not."""
    over: frozenset[int]
    """The states, by their identity, in which no timer may run."""
    thickened: dict[Any, Slot] = field(factory=dict)


class Store:
    """Where every machine of one party is, and which of its timers run."""

    def __init__(self, party: Party, config: Any, interpreter: Callable[[Machine], Interpreter]) -> None:
        self.party = party
        self.config = config
        self.compiled = {m.name: _compile(m, config, interpreter) for m in party.machines}
        # Never changed in place: a move makes a new mapping, so that a view or a saved state is just the old one.
        self.slots: Slots = {name: Members({}, c.start) if c.machine.family else c.start for name, c in self.compiled.items()}
        self.timers = {name for machine in party.machines for name in machine.timers}
        self.armed: dict[TimerId, int] = {}
        self.stale: dict[TimerId, int] = {}
        self._changed: list[tuple[dict[TimerId, int], TimerId, int | None]] = []
        """What became of the timers since ``save``: whose table, which, and what it was before."""

    def save(self) -> Slots:
        """Remember everything, to go back to after a refusal."""
        self._changed.clear()
        return self.slots

    def undo(self, saved: Slots) -> None:
        """Go back to what ``save`` remembered last."""
        self.slots = saved
        for table, where, before in reversed(self._changed):
            _put(table, where, before)
        self._changed.clear()

    def _note(self, table: dict[TimerId, int], where: TimerId, now: int | None) -> int | None:
        """Change a table of timers; what there was before."""
        before = table.get(where)
        if before != now:
            self._changed.append((table, where, before))
            _put(table, where, now)
        return before

    def snapshot(self) -> Hashable:
        """Machine by machine in declared order, then the timers."""
        parts: list[Hashable] = []
        for name, compiled in self.compiled.items():
            slot = self.slots[name]
            if isinstance(slot, Members):
                parts.append(tuple((key, *_flat(slot[key], compiled.fields)) for key in slot))
            else:
                parts.append(_flat(slot, compiled.fields))
        parts += (_in_order(self.armed), _in_order(self.stale))
        return tuple(parts)

    def restore(self, snapshot: Hashable) -> None:
        """Become what gave ``snapshot``; a value that no core of this party gives is refused, and changes nothing."""
        try:
            if not isinstance(snapshot, tuple):
                raise TypeError("it is not a tuple")  # noqa: TRY301 - one handler says it for every way of being foreign
            *parts, armed, stale = snapshot
            slots: dict[str, Slot | Members] = {}
            for (name, compiled), part in zip(self.compiled.items(), parts, strict=True):
                slots[name] = _members(compiled, part) if compiled.machine.family else _thick(compiled, part)
            running, late = self._timers(armed), self._timers(stale)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CoreError(f"this is not a snapshot of {self.party.name} ({error}): {snapshot!r}") from error
        self.slots, self.armed, self.stale = slots, running, late

    def _timers(self, part: Any) -> dict[TimerId, int]:
        if part == ():
            return {}
        timers = {(name, key): generation for (name, key), generation in part}
        for (name, _), generation in timers.items():
            if name not in self.timers or generation not in range(GENERATIONS):
                raise ValueError(f"no timer {name!r} of generation {generation!r}")
        return timers

    def slot(self, machine: str, key: Key) -> Slot:
        """One instance; an instance that does not exist reads as the initial one."""
        slot = self.slots[machine]
        return slot[key] if type(slot) is Members else slot  # isinstance is slow on an ABC

    def members(self, machine: str) -> tuple[Key, ...]:
        """The keys of a family's instances, lowest first."""
        slot = self.slots[machine]
        if not isinstance(slot, Members):
            raise CoreError(f"{machine} is not a family")
        return tuple(slot)

    def view(self, key: Key = None, own: Slot | None = None) -> View:
        """The party now, as guards see it."""
        return View(self.slots, self.config, key, own)

    def put(self, compiled: Compiled, key: Key, state: Enum, data: Any) -> None:
        """Move one instance, resetting the data that no longer matters."""
        machine = compiled.machine
        old = self.slots[machine.name]
        trim = compiled.trims.get(id(state))
        if trim is not None:
            data = trim(data, compiled.start.data)
        if type(old) is not Members:
            self.slots = {**self.slots, machine.name: Slot(state, data)}
            return
        if state is machine.initial:
            self.slots = {**self.slots, machine.name: old.without(key)}
            return
        new = old.having(key, Slot(state, data))
        self.slots = {**self.slots, machine.name: new}
        if compiled.limit is not None and len(new) > compiled.limit:
            raise CoreError(f"{machine.name}: {len(new)} instances, above its limit {compiled.limit}; its rows must make room first")

    def check_timers(self, compiled: Compiled, key: Key, state: Enum) -> None:
        """A machine that is over, in ``state``, has stopped its timers: one that fires into nothing is a decision nobody wrote down."""
        for name in compiled.machine.timers:
            if (name, key) in self.armed:
                raise CoreError(f"{compiled.machine.name} is over ({state.name}) but its timer {name!r} still runs; cancel it in the row")
            self._note(self.stale, (name, key), None)

    def timed(self, effect: core.SetTimer | core.CancelTimer) -> core.Effect:
        """Number a timer that is set, remember one that is cancelled."""
        if isinstance(effect, core.SetTimer):
            return self.set_timer(effect.timer, effect.key, effect.limit)
        return self.cancel_timer(effect.timer, effect.key)

    def changed_timer(self, emission: Emit, key: Key) -> core.Effect:
        """What a row's own timer emission does, in the instance of that key."""
        timer, where = str(emission.timer), key if emission.keyed else None
        return self.set_timer(timer, where, emission.limit) if emission.limit else self.cancel_timer(timer, where)

    def set_timer(self, timer: str, key: Key, limit: str) -> core.SetTimer:
        """Start a timer, under the generation that its last one did not have."""
        where = timer, key
        armed = self.armed
        last = armed.get(where)
        if last is None:
            last = self._note(self.stale, where, None)
            generation = 0 if last is None else (last + 1) % GENERATIONS
        else:
            generation = (last + 1) % GENERATIONS
        self._changed.append((armed, where, armed.get(where)))
        armed[where] = generation
        return core.SetTimer(timer, key, generation, limit)

    def cancel_timer(self, timer: str, key: Key) -> core.CancelTimer:
        """Stop a timer; its expiry may be under way."""
        running = self._note(self.armed, (timer, key), None)
        if running is not None:
            self._note(self.stale, (timer, key), running)
        return core.CancelTimer(timer, key)

    def fired(self, event: core.TimerFired) -> bool:
        """Take a firing; false if it is stale."""
        where = event.timer, event.key
        if self.armed.get(where) != event.generation:
            return False
        self._note(self.armed, where, None)
        return True


def _put(table: dict[TimerId, int], where: TimerId, value: int | None) -> None:
    if value is None:
        table.pop(where, None)
    else:
        table[where] = value


def _compile(machine: Machine, config: Any, interpreter: Callable[[Machine], Interpreter]) -> Compiled:
    """Prepare a machine; once for each way of reading its table, however many cores run it."""
    limit: int | None = None
    if machine.family:
        named = machine.family.limit
        limit = named if isinstance(named, int) else int(getattr(config.limits, named))
    known = _prepare(machine, interpreter)
    return known if known.limit == limit else attrs.evolve(known, limit=limit)


@lru_cache(maxsize=PREPARED_LIMIT)
def _prepare(machine: Machine, interpreter: Callable[[Machine], Interpreter]) -> Compiled:
    data: Any = machine.data
    fields = tuple(f.name for f in attrs.fields(data))
    places: dict[int, dict[str, Place]] = {}
    for (state, trigger), cell in machine.table.items():
        asked = tuple(Question.put(a.of, frozenset((*a.reads, machine.name)), f"{machine.name}.{a.name}") for a in cell.atoms)
        places.setdefault(id(state), {})[trigger] = Place(asked)
    trims = {id(state): keeping(data, tuple(f in kept for f in fields)) for state, kept in machine.live.items()}
    over = frozenset(id(state) for state in (*machine.final, *([machine.initial] if machine.family else [])))
    return Compiled(machine, interpreter(machine), None, fields, Slot(machine.initial, machine.data()), places, trims, over)


def _in_order(timers: Mapping[TimerId, int]) -> tuple[tuple[TimerId, int], ...]:
    return tuple(sorted(timers.items(), key=repr)) if len(timers) > 1 else tuple(timers.items())


def _flat(slot: Slot, fields: tuple[str, ...]) -> tuple[Hashable, ...]:
    data = slot.data
    return (slot.state.name, *[getattr(data, name) for name in fields])


def _members(compiled: Compiled, part: Any) -> Members:
    members = {key: _thick(compiled, rest) for key, *rest in part}
    if any(slot.state is compiled.machine.initial for slot in members.values()):
        raise ValueError(f"{compiled.machine.name} keeps an instance that is absent")
    return Members(members, compiled.start)


def _thick(compiled: Compiled, part: Any) -> Slot:
    part = tuple(part)
    found = compiled.thickened.get(part)
    if found is not None:
        return found
    state, *values = part
    if len(values) != len(compiled.fields):
        raise ValueError(f"{compiled.machine.name} has the fields {', '.join(compiled.fields) or '(none)'}")
    slot = Slot(compiled.machine.states[state], compiled.machine.data(*values))
    if len(compiled.thickened) < THICKENED_LIMIT:
        compiled.thickened[part] = slot
    return slot
