"""What identifies a declaration and a state, in every process and on every machine alike.

Neither ``hash`` nor ``repr`` of a set may appear here: both change from process to process.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable
from enum import Enum
from functools import lru_cache
from typing import Any, cast

import attrs

from troth.spec.emits import Emission, Emit, Forward
from troth.spec.machine import Entry, Machine
from troth.spec.party import Party, Route, spelled_selector

DIGEST_HEX = 32
"""Hexadecimal digits of a digest: 128 bits, so that two states of one run never share one by chance."""
SPELLED_KEPT = 1 << 13
"""Machine instances whose text is remembered: a digest is taken after every step that is traced, and a step moves few of them."""


def state_digest(snapshot: Hashable) -> str:
    """The digest of a core's snapshot. Equal snapshots, equal digests: a bool counts as the int that it equals."""
    if type(snapshot) is not tuple:
        return _hashed(_spelled(snapshot))
    return _hashed(f"[{','.join([_part(part) for part in snapshot])}]")


def _part(part: Hashable) -> str:
    """A machine, or all instances of a family, of which few are new from one step to the next."""
    if type(part) is tuple and part and type(part[0]) is tuple:
        return f"[{','.join(map(_spelled, part))}]"
    return _spelled(part)


@lru_cache(SPELLED_KEPT)
def _spelled(value: Hashable) -> str:
    return _text(_plain(value))


def declaration_hash(parties: Iterable[Party], classes: Iterable[type] = ()) -> str:
    """The hash of the declarations: states, tables, routes, and the fields of ``classes`` (a codec's messages).

    It covers what the tables say by name and not the bodies of the functions that they name; that an update does something else now
    shows when the trace is replayed. Reasons (``why``) are prose, and may be bettered without making old traces foreign.
    """
    told = {
        "parties": {party.name: _party(party) for party in parties},
        "classes": {cls.__name__: _class(cls) for cls in classes},
    }
    return _digest(told)


def _digest(value: Any) -> str:
    return _hashed(_text(value))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_HEX]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset):
        return {"set": sorted(json.dumps(_plain(item)) for item in value)}
    if attrs.has(type(value)):
        return {type(value).__name__: [_plain(getattr(value, f.name)) for f in attrs.fields(type(value))]}
    if value is None or isinstance(value, int | str):
        return value
    raise TypeError(f"a snapshot may hold strings, ints, bools, enums and tuples of them, not {type(value).__name__}")


def _party(party: Party) -> dict[str, Any]:
    return {
        "machines": [_machine(machine) for machine in party.machines],
        "routes": sorted(_route(route) for route in party.routes),
        "observe": sorted(party.observe),
    }


def _route(route: Route) -> list[str]:
    return [spelled_selector(route.selector), str(route.gate), *(str(to) for to in route.to)]


def _machine(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "states": [state.name for state in machine.states],
        "initial": machine.initial.name,
        "final": sorted(state.name for state in machine.final),
        "data": [f.name for f in attrs.fields(machine.data)],
        "live": {state.name: list(kept) for state, kept in machine.live.items()},
        "family": [machine.family.key, machine.family.limit] if machine.family else None,
        "timers": list(machine.timers),
        "table": sorted(_entry(entry) for cell in machine.table.values() for entry in cell.entries),
    }


def _entry(entry: Entry) -> list[str]:
    told = [entry.state.name, entry.trigger, entry.kind.value, entry.id, str(entry.guard), entry.target.name]
    if entry.row is not None:
        told += [entry.row.update.__name__, *(_emission(emission) for emission in entry.row.emit)]
    return told


def _emission(emission: Emission) -> str:
    match emission:
        case Emit():
            return f"{emission.name} [{emission.timer}, {emission.limit}]"
        case Forward():
            return f"signal {emission} [{emission.key is not None}, {emission.event is not None}]"
        case _:
            return str(emission)


def _class(cls: type) -> list[str]:
    if issubclass(cls, Enum):
        return [member.name for member in cls]
    return [f.name for f in attrs.fields(cast("type[attrs.AttrsInstance]", cls))]
