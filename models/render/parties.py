"""What a party did in a step, in the words of its own declaration: rows fired, and what changed.

A declared party is shown machine by machine, a step function by the fields of its state, any other core by what it lets be observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from attrs import frozen

from troth.models.behaviours import CoreBehaviour
from troth.models.parties import Mode, PartyComponent, PartyLocal, Timer, timer_text
from troth.models.render.words import Change, changes, field_names, value
from troth.models.trace import Reaction
from troth.spec.engine import PartyCore
from troth.spec.machine import Entry, Kind
from troth.spec.party import Party


@frozen
class Fired:
    """A row, ignore or refusal that was taken. ``why`` is empty where no declaration says it."""

    id: str
    kind: str
    name: str
    why: str = ""


@frozen
class Part:
    """What one machine of a party (``machine`` is empty where it has none) did."""

    machine: str
    fired: tuple[Fired, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def text(self) -> str:
        """``session S9: ready → draining, attempts 0 → 1``; an ignored trigger with its reason."""
        rows = [f.name for f in self.fired if f.kind == "row"]
        head = " ".join([*([self.machine] if self.machine else []), *rows])
        said = [str(change) for change in self.changes]
        said += [f"{f.kind}s {f.name}" + (f" ({f.why})" if f.why else "") for f in self.fired if f.kind != "row"]
        return f"{head}: {', '.join(said)}" if head and said else head or ", ".join(said)


def parts(component: PartyComponent, reactions: list[Reaction]) -> Iterator[Part]:
    """What changed from before the first to after the last of one party's reactions in one step."""
    before, after = reactions[0].before, reactions[-1].after
    if not isinstance(before, PartyLocal) or not isinstance(after, PartyLocal):
        raise TypeError(f"{component.name} is a party without a party's state")
    rows = [row for reaction in reactions for row in reaction.rows]
    if before.mode is not after.mode:
        yield from _core_parts(component, rows, before.state, before.state)
        yield Part("", changes=(_moved(component, after),))
    else:
        yield from _core_parts(component, rows, before.state, after.state)
    timers = tuple(_timers(before, after))
    if timers and after.mode is Mode.UP:
        yield Part("timers", changes=timers)


def _moved(component: PartyComponent, after: PartyLocal) -> Change:
    if after.mode is Mode.UP:
        return Change("", "down", f"up, as {summary(component, after.state)}")
    kept = f", keeps {value(after.state)}" if after.state is not None and after.mode is Mode.DOWN else ""
    return Change("", "up", f"{after.mode.value}{kept}")


def _timers(before: PartyLocal, after: PartyLocal) -> Iterator[Change]:
    old = {timer_text(t._replace(left=-1)): _armed(t) for t in before.timers}
    new = {timer_text(t._replace(left=-1)): _armed(t) for t in after.timers}
    for name in dict.fromkeys([*new, *old]):
        if old.get(name) != new.get(name):
            yield Change(name, old.get(name, "off"), new.get(name, "off"))


def _armed(timer: Timer) -> str:
    return "armed" if timer.left < 0 else f"in {timer.left}"


def _core_parts(component: PartyComponent, rows: list[str], before: Any, after: Any) -> Iterator[Part]:
    behaviour = component.behaviour
    core = behaviour.core if isinstance(behaviour, CoreBehaviour) else None
    if isinstance(core, PartyCore):
        yield from _declared(core, rows, before, after)
        return
    found = tuple(_plain(component, before, after))
    fired = tuple(Fired(row, "row", row.removeprefix(f"{component.name}.")) for row in rows) if core is not None else ()
    if found or fired:
        yield Part("", fired, found)


def _plain(component: PartyComponent, before: Any, after: Any) -> Iterator[Change]:
    """Field by field where fields have names; else by the observations, which have; else by place."""
    if before == after:
        return
    if field_names(after) is None and isinstance(after, tuple):
        one, other = _observed(component, before), _observed(component, after)
        seen = [Change(name, value(one[name]), value(other[name])) for name in other if name in one and one[name] != other[name]]
        if seen:
            yield from seen
            return
    yield from changes(before, after)


def _observed(component: PartyComponent, state: Any) -> Mapping[str, bool | int]:
    try:
        return component.behaviour.observe(state)
    except Exception:  # an observation that raises is reported as a property's error; here it has just nothing to add
        return {}


def summary(component: PartyComponent, state: Any) -> str:
    """A whole state in a few words: states of machines, or the value."""
    behaviour = component.behaviour
    core = behaviour.core if isinstance(behaviour, CoreBehaviour) else None
    if isinstance(core, PartyCore):
        return ", ".join(f"{name} {_state(slot[0])}" for (name, _), slot in _slots(core, state).items())
    observed = _observed(component, state) if field_names(state) is None and isinstance(state, tuple) else {}
    return ", ".join(f"{name} {value(seen)}" for name, seen in observed.items()) if observed else value(state)


# -- declared parties --------------------------------------------------------------------------------------------------


def _slots(core: PartyCore, state: Any) -> dict[tuple[str, Any], tuple[Any, Any]]:
    core.restore(state)
    found: dict[tuple[str, Any], tuple[Any, Any]] = {}
    for machine in core.party.machines:
        keys = core.members(machine.name) if machine.family else (None,)
        for key in keys:
            found[machine.name, key] = core.state(machine.name, key), core.data(machine.name, key)
    return found


def _declared(core: PartyCore, rows: list[str], before: Any, after: Any) -> Iterator[Part]:
    fired: dict[str, list[Fired]] = {}
    for row in rows:
        name, one = _fired(core.party, row)
        fired.setdefault(name, []).append(one)
    moved: dict[str, list[Change]] = {}
    if before != after:
        old, new = _slots(core, before), _slots(core, after)
        for machine in core.party.machines:
            start = (machine.initial, machine.data())
            keys = [key for owner, key in {**old, **new} if owner == machine.name]
            for key in dict.fromkeys(keys):
                where = machine.name, key
                moved.setdefault(machine.name, []).extend(_slot(key, old.get(where, start), new.get(where, start)))
    for name in dict.fromkeys([*fired, *moved]):
        part = Part(name, tuple(fired.get(name, ())), tuple(moved.get(name, ())))
        if part.fired or part.changes:
            yield part


def _slot(key: Any, before: tuple[Any, Any], after: tuple[Any, Any]) -> Iterator[Change]:
    label = "" if key is None else f"[{value(key)}]"
    if before[0] is not after[0]:
        yield Change(label, _state(before[0]), _state(after[0]))
    for change in changes(before[1], after[1]):
        yield attrs.evolve(change, what=f"{label}.{change.what}" if label else change.what)


def _state(state: Any) -> str:
    return str(getattr(state, "value", state))


def _fired(party: Party, row: str) -> tuple[str, Fired]:
    machine, _, name = row.partition(".")
    declared = party.by_name.get(machine)
    if declared is None:
        return "timers", Fired(row, "ignore", name, "a late firing; it was withdrawn")
    entry = next((e for e in _entries(declared.table) if e.id == row), None)
    if entry is None:
        return machine, Fired(row, "row", name)
    if entry.kind is Kind.ROW:
        return machine, Fired(row, "row", name, entry.why)
    return machine, Fired(row, entry.kind.value, entry.trigger, entry.why)


def _entries(table: Mapping[Any, Any]) -> Iterator[Entry]:
    for cell in table.values():
        yield from cell.entries
