"""Small words that the tables are written in: where an emission takes its fields from, and where an event goes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from attrs import frozen

from troth.spec.core import Key
from troth.spec.data import evolve
from troth.spec.emits import Emit, Firing, Forward, Keys, fixed, signal
from troth.spec.limits import Limits
from troth.spec.messages import Done, Outcome

CONTROL = "control"
"""The link between a trainer and its host."""
DATA = "data"
"""The links between a payload's source and its receivers."""
RECEIVERS = "receivers"
"""The local link from a party to the receivers of a payload: its own, or all that a task declares. Whoever drives the party makes one
``Receiver`` a FETCH_PAYLOAD and receiver."""
SUPERVISOR = "supervisor"
"""The local link between a host and its supervisor."""


def session_epoch(firing: Firing) -> int:
    """The epoch of the party's session."""
    return int(firing.view.session.data.epoch)


def own_epoch(firing: Firing) -> int:
    """The epoch as the session machine's own row leaves it."""
    return int(firing.data.epoch)


def event_epoch(firing: Firing) -> int:
    """The epoch that the message names."""
    return int(firing.event.epoch)


def event_seq(firing: Firing) -> int:
    """The sequence that the event names."""
    return int(firing.event.seq)


def event_attempt(firing: Firing) -> int:
    """The attempt that the event names."""
    return int(firing.event.attempt)


def event_inline(firing: Firing) -> bool:
    """Whether the payload came with the event."""
    return bool(firing.event.inline)


def own_launch(firing: Firing) -> int:
    """Which of its supervisor's launches the host is."""
    return int(firing.view.config.launch)


def own_key(firing: Firing) -> Any:
    """The key of the row's instance: a task's sequence, where the family is keyed by it."""
    return firing.key


def own(name: str) -> Callable[[Firing], Any]:
    """A field of the row's own data, after its update."""

    def read(firing: Firing) -> Any:
        return getattr(firing.data, name)

    return read


is_ = fixed
"""A constant field."""


def those(machine: str, *states: Enum) -> Callable[[Firing], Keys]:
    """The family's instances in one of ``states``, lowest key first: a signal to those to which it means something."""

    def found(firing: Firing) -> Keys:
        return Keys(getattr(firing.view, machine).within(*states))

    found.__name__ = "|".join(state.value for state in states)
    return found


def by_seq(_view: Any, event: Any) -> Key:
    """Route by the sequence that the message names."""
    return int(event.seq)


def by_receiver(_view: Any, event: Any) -> Key:
    """Route by the task and the receiver that the message names."""
    return int(event.seq), int(event.receiver)


def by_key(_view: Any, event: Any) -> Key:
    """Route by the key of the timer or transfer."""
    found: Key = event.key
    return found


def by_effect(_view: Any, event: Any) -> Key:
    """Route by the key of the effect that failed."""
    found: Key = event.effect.key
    return found


def to(key: Key) -> Callable[[Any, Any], Key]:
    """Route to one instance, always the same."""

    def chosen(_view: Any, _event: Any) -> Key:
        return key

    return chosen


def sets(name: str, **fields: Any) -> Callable[[Any, Any], Any]:
    """The update, of that name, that gives these fields these values and leaves the others."""

    def update(data: Any, event: Any) -> Any:  # noqa: ARG001
        return evolve(data, **fields)

    update.__name__ = name
    return update


def done(
    call: str,
    outcome: Outcome | Callable[[Firing], Outcome],
    value: Callable[[Firing], int] | None = None,
    *,
    key: Callable[[Firing], Key] | None = None,
) -> Forward:
    """Let whoever waits in ``call`` return; nothing happens where nobody waits. ``key`` where several may wait in calls of that kind."""

    def told(firing: Firing) -> Done:
        return Done(outcome if isinstance(outcome, Outcome) else outcome(firing), value(firing) if value else 0)

    about = f"{call}: {outcome.value if isinstance(outcome, Outcome) else outcome.__name__}"
    return signal("calls", "done", key=key or is_(call), event=told, about=about)


def then(*parts: Emit | Forward | list[Any]) -> list[Any]:
    """One list of emissions out of several, so that what several rows do alike is written once."""
    flat: list[Any] = []
    for part in parts:
        flat.extend(part if isinstance(part, list) else [part])
    return flat


@frozen(kw_only=True)
class Deployment:
    """What every party's configuration has."""

    limits: Limits = Limits()
    launched: bool = True
    """The host started the trainer's process, so each side has evidence of the other's life beside its messages."""
    fail_unresponsive: bool = False
    """A silent peer whose process lives ends the session at once, instead of being waited for."""
