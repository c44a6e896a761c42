"""Events, effects and messages as JSON, in both directions, strictly.

An object becomes ``{"is": NAME, field: value, ...}`` with exactly its fields, an enum member ``"CLASS.MEMBER"``, a tuple a list.
Classes are found by name among those that were registered, so a line of a trace can never make anything else; a field is decoded by
its annotation, so nothing is converted and nothing is guessed. Whatever does not fit is one ``CodecError`` that names the field.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import ModuleType
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import attrs

from troth.spec import core
from troth.spec.errors import CodecError
from troth.spec.party import Party

T = TypeVar("T")
Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

TAG = "is"
MAX_INT = 2**63 - 1
"""Larger integers, in either direction, are somebody's mistake: every int of the protocol has a bound far below."""

EVENTS: tuple[type, ...] = get_args(core.Event)
EFFECTS: tuple[type, ...] = get_args(core.Effect)


def classes_in(module: ModuleType) -> Iterator[type]:
    """The attrs classes and enums that ``module`` defines: everything that its messages can be made of."""
    for found in vars(module).values():
        if isinstance(found, type) and found.__module__ == module.__name__ and (attrs.has(found) or issubclass(found, Enum)):
            yield found


def classes_of(parties: Iterable[Party]) -> Iterator[type]:
    """The messages, payloads and outcomes that the declarations name. What an ``effect`` builds inside is not seen."""
    for party in parties:
        for route in party.routes:
            event = route.sample
            if isinstance(event, core.Received):
                yield type(event.message)
            elif isinstance(event, core.Called) and event.payload is not None:
                yield type(event.payload)
        for machine in party.machines:
            for emission in (emission for row in machine.rows for emission in row.emit):
                message, outcome = getattr(emission, "message", None), getattr(emission, "outcome", None)
                if message is not None:
                    yield message
                if outcome is not None:
                    yield type(outcome)


class Codec:
    """Encodes and decodes the events and effects of a protocol whose classes it was given."""

    def __init__(self, classes: Iterable[type]) -> None:
        """``classes`` are messages, call payloads and outcome enums; the enums and classes of their fields come along."""
        self._objects: dict[str, type] = {}
        self._enums: dict[str, type[Enum]] = {}
        self._events = {cls.__name__: cls for cls in EVENTS}
        self._effects = {cls.__name__: cls for cls in EFFECTS}
        self._fields: dict[type, dict[str, Any]] = {}
        for cls in (core.TransferOutcome, core.ProcessSignal, *classes):
            self._register(cls)
        for cls in (*EVENTS, *EFFECTS):
            self._fields[cls] = _hints(cls)

    @classmethod
    def of(cls, parties: Iterable[Party], *more: type | ModuleType) -> Codec:
        """For these parties; ``more`` are classes, or modules of classes, that the declarations do not name."""
        found = list(classes_of(parties))
        for extra in more:
            found += classes_in(extra) if isinstance(extra, ModuleType) else [extra]
        return cls(found)

    @property
    def classes(self) -> Mapping[str, type]:
        """Every registered class by name."""
        return {**self._objects, **self._enums}

    def encode_event(self, event: core.Event) -> dict[str, Json]:
        """An event as JSON."""
        return self._object(event, self._events, "event")

    def encode_effect(self, effect: core.Effect) -> dict[str, Json]:
        """An effect as JSON."""
        return self._object(effect, self._effects, "effect")

    def decode_event(self, value: object, field: str = "event") -> core.Event:
        """An event from JSON; ``field`` is what an error calls it."""
        return cast("core.Event", self._made(self._events, value, field, object))

    def decode_effect(self, value: object, field: str = "effect") -> core.Effect:
        """An effect from JSON; ``field`` is what an error calls it."""
        return cast("core.Effect", self._made(self._effects, value, field, object))

    def _register(self, cls: type) -> None:
        registry: dict[str, Any] = self._enums if issubclass(cls, Enum) else self._objects
        known = registry.setdefault(cls.__name__, cls)
        if known is not cls:
            raise CodecError(cls.__name__, f"two classes have this name, in {known.__module__} and {cls.__module__}; rename one")
        if issubclass(cls, Enum) or cls in self._fields:
            return
        if not attrs.has(cls):
            raise CodecError(cls.__name__, "only attrs classes and enums can be in a trace")
        self._fields[cls] = _hints(cls)
        for hint in self._fields[cls].values():
            for part in _parts(hint):
                if isinstance(part, type) and part is not Enum and (attrs.has(part) or issubclass(part, Enum)):
                    self._register(part)

    # -- encoding ------------------------------------------------------------------------------------------------------

    def _object(self, value: Any, registry: Mapping[str, type], field: str) -> dict[str, Json]:
        cls = type(value)
        if registry.get(cls.__name__) is not cls:
            raise CodecError(field, f"{cls.__module__}.{cls.__qualname__} is not registered; give it to the codec")
        encoded: dict[str, Json] = {TAG: cls.__name__}
        for name in self._fields[cls]:
            encoded[name] = self._value(getattr(value, name), f"{field}.{name}")
        return encoded

    def _value(self, value: Any, field: str) -> Json:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            cls = type(value)
            if self._enums.get(cls.__name__) is not cls:
                raise CodecError(field, f"{cls.__module__}.{cls.__qualname__} is not registered; give it to the codec")
            return f"{cls.__name__}.{value.name}"
        if isinstance(value, int | str):
            return value
        if isinstance(value, tuple):
            return [self._value(item, f"{field}[{n}]") for n, item in enumerate(value)]
        return self._object(value, self._effects if isinstance(value, EFFECTS) else self._objects, field)

    # -- decoding ------------------------------------------------------------------------------------------------------

    def _made(self, registry: Mapping[str, type], value: object, field: str, base: type) -> Any:
        if not isinstance(value, dict):
            raise CodecError(field, f"must be an object, got {_short(value)}")
        name = value.get(TAG)
        cls = registry.get(name) if isinstance(name, str) else None
        if cls is None or not issubclass(cls, base):
            raise CodecError(f"{field}.{TAG}", f"{_short(name)} is not a known {'class' if base is object else base.__name__} here")
        hints = self._fields[cls]
        for missing in hints.keys() - value.keys():
            raise CodecError(f"{field}.{missing}", f"is missing from this {name}")
        for unknown in sorted(value.keys() - hints.keys() - {TAG}):
            raise CodecError(f"{field}.{unknown}", f"{name} has no such field; it has {', '.join(hints) or 'none'}")
        fields = {key: self._decoded(hint, value[key], f"{field}.{key}") for key, hint in hints.items()}
        try:
            return cls(**fields)
        except (TypeError, ValueError) as error:
            raise CodecError(field, f"no {name} can be so: {error}") from error

    def _decoded(self, hint: Any, value: object, field: str) -> Any:
        if get_origin(hint) in (Union, types.UnionType):
            return self._one_of(get_args(hint), value, field)
        if get_origin(hint) is tuple:
            return self._tuple(get_args(hint), value, field)
        if hint is Any:
            return None if value is None else self._made(self._objects, value, field, object)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._member(hint, value, field)
        if hint in (int, bool, str, types.NoneType):
            return _plain(hint, value, field)
        if isinstance(hint, type) and attrs.has(hint):
            return self._made(self._objects, value, field, hint)
        raise CodecError(field, f"the annotation {hint!r} is not one that a trace can carry; use int, bool, str, an enum or an attrs class")

    def _one_of(self, hints: tuple[Any, ...], value: object, field: str) -> Any:
        if set(hints) == set(EFFECTS):
            return self.decode_effect(value, field)
        reasons = []
        for hint in hints:
            try:
                return self._decoded(hint, value, field)
            except CodecError as error:
                reasons.append(error.reason)
        raise CodecError(field, "; or ".join(reasons))

    def _tuple(self, hints: tuple[Any, ...], value: object, field: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise CodecError(field, f"must be a list, got {_short(value)}")
        wanted = hints[:1] * len(value) if hints[1:] == (...,) else hints
        if len(wanted) != len(value):
            raise CodecError(field, f"must be a list of {len(wanted)}, got {len(value)}")
        return tuple(self._decoded(hint, item, f"{field}[{n}]") for n, (hint, item) in enumerate(zip(wanted, value, strict=True)))

    def _member(self, hint: type[Enum], value: object, field: str) -> Enum:
        name, _, member = value.partition(".") if isinstance(value, str) else ("", "", "")
        cls = self._enums.get(name)
        if cls is None or not issubclass(cls, hint) or member not in cls.__members__:
            wanted = "a member of a registered enum" if hint is Enum else f"a member of {hint.__name__}"
            raise CodecError(field, f"must be {wanted} as CLASS.MEMBER, got {_short(value)}")
        return cls[member]


def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in attrs.fields(cast("type[attrs.AttrsInstance]", cls)) if f.init}


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


def _plain(hint: type[T], value: object, field: str) -> T:
    if type(value) is not hint:
        raise CodecError(field, f"must be {'null' if hint is types.NoneType else hint.__name__}, got {_short(value)}")
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise CodecError(field, "is beyond 63 bits")
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
