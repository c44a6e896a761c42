"""How a party is given: as a real core, as a plain step function, or as a ``transitions`` configuration.

Whatever it is, the checker sees three functions of plain values: the initial state, what an event does in a state, and what can be
observed of a state. ``take`` returns the alternatives; ``None`` means that the event cannot be taken in this state at all, which
blocks the action that wanted it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from troth.models.errors import NotCanonical, WorldError
from troth.spec.core import CallCancelled, Called, Core, Received, RefusalKind

Observations: TypeAlias = Mapping[str, bool | int]
StepResult: TypeAlias = "tuple[Hashable, Sequence[Any]] | list[tuple[Hashable, Sequence[Any]]] | None"
StepFunction: TypeAlias = Callable[[Any, Any], StepResult]
"""``step(state, event)``: ``(new state, effects)``, a *list* of such pairs where several things may happen, or ``None``."""


class Taken(NamedTuple):
    """One way an event was taken."""

    state: Hashable
    effects: tuple[Any, ...] = ()
    rows: tuple[str, ...] = ()
    guards: tuple[tuple[str, bool], ...] = ()
    refused: RefusalKind | None = None
    note: str = ""


class Behaviour(Protocol):
    """What a party does, as functions of plain values."""

    initial: Hashable

    def take(self, state: Hashable, event: Any) -> Sequence[Taken] | None:
        """The ways to take ``event`` in ``state``; ``None`` if it cannot be taken."""
        ...

    def observe(self, state: Hashable) -> Observations:
        """The named observations of ``state``."""
        ...


class CoreBehaviour:
    """A real ``Core``: it is restored, asked, and its snapshot taken, once for each (state, event)."""

    def __init__(self, name: str, factory: Callable[[], Core]) -> None:
        self.name = name
        self.core = factory()
        self.initial = self.core.snapshot()
        self.core.restore(self.initial)
        if self.core.snapshot() != self.initial:
            raise NotCanonical(f"{name}: restore(snapshot()) changes the snapshot; equal futures must give equal snapshots")
        try:
            hash(self.initial)
        except TypeError as error:
            raise NotCanonical(f"{name}: its snapshot cannot be hashed ({error}); build it from tuples, not lists or dicts") from error

    def take(self, state: Hashable, event: Any) -> Sequence[Taken] | None:
        """One way, always: a core is deterministic. A misuse by the user cannot be taken; other refusals leave the state alone."""
        core = self.core
        core.restore(state)
        step = core.handle(event)
        if step.refusal is None:
            return (Taken(core.snapshot(), step.effects, step.rows, step.guards),)
        if isinstance(event, Called | CallCancelled) and step.refusal.kind is RefusalKind.MISUSE:
            return None
        after = core.snapshot()
        if after != state:
            raise WorldError(f"{self.name} refused {event!r} and yet changed its state; a refused event must leave the core as it was")
        return (Taken(state, (), step.rows, step.guards, step.refusal.kind, f"refused: {step.refusal.why}"),)

    def observe(self, state: Hashable) -> Observations:
        """What the core itself says of this state."""
        self.core.restore(state)
        return dict(self.core.observe())


class StepBehaviour:
    """A plain step function over states of the author's own making."""

    def __init__(self, name: str, step: StepFunction, initial: Hashable, observe: Observe | None) -> None:
        self.name = name
        self.step = step
        self.initial = initial
        self._observe = observe
        try:
            hash(initial)
        except TypeError as error:
            raise NotCanonical(
                f"{name}: its initial state {initial!r} cannot be hashed; use tuples, numbers, enums, frozen attrs"
            ) from error

    def take(self, state: Hashable, event: Any) -> Sequence[Taken] | None:
        """Whatever the function says; see ``StepFunction``."""
        result = self.step(state, event)
        if result is None:
            return None
        if isinstance(result, list):
            return tuple(self._pair(pair, event) for pair in result)
        return (self._pair(result, event),)

    def _pair(self, pair: Any, event: Any) -> Taken:
        if type(pair) is tuple and len(pair) == 2 and type(pair[1]) is tuple:
            return Taken(pair[0], pair[1])
        if not isinstance(pair, tuple) or len(pair) != 2 or isinstance(pair[1], str) or not isinstance(pair[1], Iterable):
            raise WorldError(f"{self.name}: step({event!r}) gave {pair!r}; it must give (new state, effects), a list of those, or None")
        return Taken(pair[0], tuple(pair[1]))

    def observe(self, state: Hashable) -> Observations:
        """A mapping of names to functions is applied one by one; a function gives the whole mapping."""
        if self._observe is None:
            return {}
        if callable(self._observe):
            return self._observe(state)
        return {name: of(state) for name, of in self._observe.items()}


Observe: TypeAlias = "Mapping[str, Callable[[Any], bool | int]] | Callable[[Any], Observations]"


class TransitionsBehaviour:
    """A ``transitions`` configuration: states, transitions, initial. Its triggers are events ``Called(trigger)``.

    A message fires the trigger that is its value (or, for enums, its ``value``); a trigger without a transition here blocks a user's
    action and ignores a message. Each transition may carry ``send``, a list of effects. Conditions and callbacks are refused: they
    would hide a decision from the checker. Every state is an observation ``at_STATE``.
    """

    def __init__(self, name: str, config: Mapping[str, Any]) -> None:
        self.name = name
        unknown = set(config) - {"states", "transitions", "initial"}
        if unknown:
            raise WorldError(f"{name}: a configuration has states, transitions and initial; take {', '.join(sorted(unknown))} out")
        for part in ("states", "transitions", "initial"):
            if part not in config:
                raise WorldError(f"{name}: the configuration lacks {part!r}; add it")
        self.states = tuple(s if isinstance(s, str) else s["name"] for s in config["states"])
        self.initial: Hashable = config["initial"]
        self.table: dict[tuple[str, str], tuple[str, tuple[Any, ...]]] = {}
        self.triggers: set[str] = set()
        if self.initial not in self.states:
            raise WorldError(f"{name}: the initial state {self.initial!r} is not among its states {', '.join(self.states)}")
        for row in config["transitions"]:
            self._add(row)

    def _add(self, row: Any) -> None:
        parts: dict[str, Any] = dict(zip(("trigger", "source", "dest"), row, strict=False)) if isinstance(row, list | tuple) else dict(row)
        extra = set(parts) - {"trigger", "source", "dest", "send"}
        if extra:
            which = ", ".join(sorted(extra))
            raise WorldError(f"{self.name}: transition {parts.get('trigger')!r} has {which}, which hides a decision; use a step function")
        sources = parts["source"]
        if sources == "*":
            sources = self.states
        for source in (sources,) if isinstance(sources, str) else sources:
            dest = source if parts["dest"] in (None, "=") else parts["dest"]
            for state in (source, dest):
                if state not in self.states:
                    raise WorldError(
                        f"{self.name}: transition {parts['trigger']!r} uses unknown state {state!r}; it has {', '.join(self.states)}"
                    )
            # transitions takes the first row that matches; a later one for the same pair would never fire.
            if (source, parts["trigger"]) in self.table:
                raise WorldError(
                    f"{self.name}: two transitions take {parts['trigger']!r} in {source!r}; without conditions the second is dead"
                )
            self.table[source, parts["trigger"]] = (dest, tuple(parts.get("send", ())))
        self.triggers.add(parts["trigger"])

    def take(self, state: Hashable, event: Any) -> Sequence[Taken] | None:
        """The one transition for this trigger in this state."""
        received = isinstance(event, Received)
        trigger: Any = event.message if isinstance(event, Received) else getattr(event, "call", event)
        trigger = getattr(trigger, "value", trigger)
        if not isinstance(trigger, str) or trigger not in self.triggers:
            raise WorldError(f"{self.name} has no trigger {trigger!r}; it has {', '.join(sorted(self.triggers))}")
        found = self.table.get((str(state), trigger))
        if found is None:
            return (Taken(state, note="ignored"),) if received else None
        return (Taken(found[0], found[1], rows=(f"{self.name}.{state}.{trigger}",)),)

    def observe(self, state: Hashable) -> Observations:
        """``at_STATE`` for each state."""
        return {f"at_{name}": name == state for name in self.states}
