"""What a row may cause: effects for the world outside, signals for the sibling machines.

Every emission is unconditional and has a name. A choice between two emissions is a choice between two rows, where the truth table
can see it; a function that sometimes returned nothing would hide a decision, so the engine refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

import attrs
from attrs import define, field, frozen

from troth.spec import core
from troth.spec.data import written
from troth.spec.errors import BadRow


class Each(Enum):
    """A key that stands for every instance a family has, lowest key first."""

    EACH = "each"


EACH: Final = Each.EACH


@frozen
class Keys:
    """A key that stands for exactly these instances, in this order; an instance that does not exist yet is meant too."""

    keys: tuple[core.Key, ...]


Target: TypeAlias = core.Key | Each | Keys


@define(eq=False)
class Firing:
    """What an emission may look at while its row fires. Not to be changed; it is made too often to be frozen."""

    view: Any
    """The party before this micro-step."""
    event: Any
    """The message, call payload or other event being handled; inside a signal, what the signal carried."""
    key: core.Key
    """The instance the row fires in; ``None`` outside a family."""
    data: Any
    """The instance's data after the row's update."""


class Emission:
    """What a row may cause: an ``Emit``, a ``Forward`` or a ``Deliver``. Built by the functions below, never by itself."""

    __slots__ = ()


@frozen
class Emit(Emission):
    """One named effect. ``of(firing)`` returns it."""

    name: str
    of: Callable[[Firing], core.Effect] = field(eq=False, repr=False)
    timer: str | None = None
    """The timer it sets or stops, if it does."""
    limit: str | None = None
    """The limit that says for how long."""
    keyed: bool = False
    """Whether each instance of a family has that timer for itself."""
    message: type[core.Message] | None = None
    """The class of the message it sends, if it sends one."""
    outcome: Enum | None = None
    """The outcome it resolves a call with, if it does."""

    def __str__(self) -> str:
        return self.name


@frozen
class Forward(Emission):
    """A signal to a sibling machine. ``key`` chooses the instance of a family; ``event`` replaces what the signal carries."""

    machine: str
    trigger: str
    key: Callable[[Firing], Target] | None = field(default=None, eq=False, repr=False)
    event: Callable[[Firing], Any] | None = field(default=None, eq=False, repr=False)
    about: str = ""
    """What the key and the event come to, in words: two signals that differ must not read alike."""

    def __str__(self) -> str:
        return f"{self.machine}.{self.trigger}" + (f" {self.about}" if self.about else "")


@frozen
class Deliver(Emission):
    """Let the event through the gate: every destination of its route is triggered, in order."""

    def __str__(self) -> str:
        return "deliver"


deliver: Final = Deliver()


def send(link: str, message: type[core.Message], **fields: Callable[[Firing], Any]) -> Emit:
    """Send ``message`` over ``link``; each field is computed from the firing."""
    _check_fields(message, fields)

    values = [f"{name}={name}(firing)" for name in fields]
    make = written(message, values, "firing", **fields)

    def build(firing: Firing) -> core.Effect:
        return core.Send(link, make(firing))

    said = ", ".join(f"{name}={told}" for name, of in fields.items() if (told := constant(of)) is not None)
    return Emit(f"send {message.__name__}" + (f"({said})" if said else ""), build, message=message)


def fixed(value: Any) -> Callable[[Firing], Any]:
    """A field, number or key that is the same in every firing. The emission's name shows it."""

    def read(_firing: Firing) -> Any:
        return value

    setattr(read, _CONSTANT, value)
    return read


_CONSTANT = "troth_constant"


def constant(of: Callable[..., Any]) -> str | None:
    """What a function made by ``fixed`` gives, in words; ``None`` for any other function."""
    if not hasattr(of, _CONSTANT):
        return None
    value = getattr(of, _CONSTANT)
    return value.name.lower() if isinstance(value, Enum) else str(value)


def _check_fields(message: type[core.Message], given: Mapping[str, object]) -> None:
    known = {f.alias or f.name: f for f in attrs.fields(message) if f.init}
    if unknown := sorted(set(given) - set(known)):
        raise BadRow(f"send {message.__name__}: it has no field {', '.join(unknown)}; it has {', '.join(known) or 'none'}")
    if missing := sorted(name for name, f in known.items() if f.default is attrs.NOTHING and name not in given):
        raise BadRow(f"send {message.__name__}: nothing computes {', '.join(missing)}; give each a function of the firing")


def set_timer(timer: str, limit: str, *, keyed: bool = False) -> Emit:
    """(Re)start ``timer`` for the duration of the limit of that name; ``keyed`` gives each instance a timer of its own."""

    def build(firing: Firing) -> core.Effect:
        return core.SetTimer(timer, firing.key if keyed else None, 0, limit)  # the engine numbers the generations

    return Emit(f"set timer {timer} for {limit}", build, timer, limit, keyed)


def cancel_timer(timer: str, *, keyed: bool = False) -> Emit:
    """Stop ``timer``."""

    def build(firing: Firing) -> core.Effect:
        return core.CancelTimer(timer, firing.key if keyed else None)

    return Emit(f"cancel timer {timer}", build, timer, keyed=keyed)


def resolve(call: str, outcome: Enum, number: Callable[[Firing], int], value: Callable[[Firing], int] | None = None) -> Emit:
    """Return from ``call`` with ``outcome``."""

    def build(firing: Firing) -> core.Effect:
        return core.Resolve(call, number(firing), outcome, value(firing) if value else 0)

    return Emit(f"resolve {call} {outcome.name}", build, outcome=outcome)


def effect(name: str, of: Callable[[Firing], core.Effect]) -> Emit:
    """Any other effect, under a name of its own."""
    if not name:
        raise BadRow("an effect needs a name: it is what traces and mutants call it")
    return Emit(name, of)


def signal(
    machine: str,
    trigger: str,
    *,
    key: Callable[[Firing], Target] | None = None,
    event: Callable[[Firing], Any] | None = None,
    about: str = "",
) -> Forward:
    """Trigger a sibling machine after this row, before any other event.

    ``about`` says in words what key and event come to; without it, a key function that has a name says it.
    """
    if not about and key is not None and (name := constant(key) or key.__name__) != "<lambda>":
        about = f"@ {name}"
    return Forward(machine, trigger, key, event, about)


def same_key(firing: Firing) -> core.Key:
    """The key of the instance that signals: for siblings that share a key."""
    return firing.key


def each(firing: Firing) -> Each:  # noqa: ARG001
    """Every instance of the family."""
    return EACH
