"""A party as a component: its behaviour, its timers, and what a crash leaves of it.

A local state is ``(mode, state, timers)``. Timers live beside the state, because no core stores them: setting one adds it, firing,
cancelling or setting it again takes it away. In an untimed world a timer may fire whenever it is armed. A timer that is set again
or cancelled may already have fired towards the driver, so exactly one stale firing, of the generation that was withdrawn last, may
still come. In a timed world a timer fires when its ticks are used up and before the clock ticks again, never earlier.

A crash loses the state but for what ``keeps`` says, and may fall between any two effects of a step: then the effects before it are
performed and the others are not.

A party that refuses an event stays up, as it was: that is what a refusal is. Where a property ``never_refused`` looks at the kind of
the refusal, the local state remembers it from then on, across crashes too. The memory has no influence on what happens: a world goes
through the same steps with such a property and without it, so that no other property can hold only because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from attrs import frozen

from troth.models.behaviours import Behaviour, Taken
from troth.models.canonical import spelled
from troth.models.errors import WorldError
from troth.models.system import Component, Item, Outcome
from troth.spec.core import CallCancelled, Called, CancelTimer, Received, RefusalKind, SetTimer, TimerFired


class Mode(Enum):
    """Whether a party lives."""

    UP = "up"
    DOWN = "down"


class PartyOp(Enum):
    """What a world does to a party besides giving it events."""

    FIRE = "fire"
    TICK = "tick"
    CRASH = "crash"
    RESTART = "restart"


@frozen
class Fire:
    """A timer of that name fires, of this key or, without one, of any: for those that fire only when something else is so."""

    timer: str
    key: Hashable = None

    def means(self, timer: Timer) -> bool:
        """Whether it is this one."""
        return timer.timer == self.timer and self.key in (None, timer.key)


class Timer(NamedTuple):
    """An armed timer, or one stale firing. ``left`` is in ticks; -1 in an untimed world."""

    timer: str
    key: Hashable
    generation: int
    stale: bool = False
    left: int = -1


class PartyLocal(NamedTuple):
    """A party's local state."""

    mode: Mode
    state: Hashable
    timers: tuple[Timer, ...] = ()

    @property
    def refused(self) -> tuple[RefusalKind, ...]:
        """What it refused so far, of the kinds that some property ``never_refused`` looks at; in the order of their names."""
        return ()


class RefusedLocal(PartyLocal):
    """The local state of a party that refused. Most never do, so it is this one that is longer."""

    __slots__ = ()

    def __new__(cls, mode: Mode, state: Hashable, timers: tuple[Timer, ...], refused: tuple[RefusalKind, ...]) -> RefusedLocal:
        """The refusals come after the other parts."""
        return tuple.__new__(cls, (mode, state, timers, refused))

    @property
    def refused(self) -> tuple[RefusalKind, ...]:
        """The last part."""
        last: Any = tuple(self)[3]
        return tuple(last)

    def _replace(self, /, **parts: Any) -> RefusedLocal:  # pyright: ignore[reportIncompatibleMethodOverride] - callers hold a PartyLocal, and keep its class
        return RefusedLocal(*PartyLocal(*self[:3])._replace(**parts), self.refused)


def _local(mode: Mode, state: Hashable, timers: tuple[Timer, ...], refused: tuple[RefusalKind, ...]) -> PartyLocal:
    return RefusedLocal(mode, state, timers, refused) if refused else PartyLocal(mode, state, timers)


Router = Callable[[Any], tuple[Item, ...]]


@frozen(kw_only=True)
class Crash:
    """How a party crashes. ``spend`` is the item that takes one crash from the budget; ``cuts`` follow a crash, ``opens`` a restart."""

    spend: Item
    keeps: Callable[[Any], Hashable] | None = None
    restarts: Callable[[Any], Hashable] | None = None
    within_steps: bool = True
    cuts: tuple[Item, ...] = ()
    opens: tuple[Item, ...] = ()


class PartyComponent(Component):
    """One party. The world sets ``route`` (effects to items) when it is closed."""

    kind = "party"

    def __init__(self, name: str, behaviour: Behaviour, *, ticks: Mapping[str, int] | None = None, stale: bool = True) -> None:
        super().__init__(name, PartyLocal(Mode.UP, behaviour.initial))
        self.behaviour = behaviour
        self.ticks = ticks
        self.stale = stale
        self.route: Router = _unrouted
        self.crash: Crash | None = None
        self.never_refuses: Collection[RefusalKind] = ()
        self.punctual: Collection[str] = ()
        self.gated: Collection[str] = ()
        """Timers that ``PartyOp.FIRE`` leaves out: they have an operation of their own."""
        """Links whose messages may not wait: they come at a certain tick."""

    # -- reactions -----------------------------------------------------------------------------------------------------

    def react(self, state: Hashable, operation: Hashable) -> tuple[Outcome, ...]:
        """Take an event, fire a timer, tick, crash or restart."""
        if not isinstance(state, PartyLocal):
            raise TypeError(f"{state!r} is not a party's state")
        if operation is PartyOp.TICK:
            return self._tick(state)
        if operation is PartyOp.CRASH:
            return self._crashed(state)
        if operation is PartyOp.RESTART:
            return self._restarted(state)
        if operation is PartyOp.FIRE:
            return self._fire(state)
        if isinstance(operation, Fire):
            return self._fire(state, operation)
        return self._event(state, operation)

    def _event(self, local: PartyLocal, event: Any) -> tuple[Outcome, ...]:
        if local.mode is not Mode.UP:
            return () if isinstance(event, Called | CallCancelled) else (Outcome(local, note=f"{self.name} is {local.mode.value}, lost"),)
        taken = self.behaviour.take(local.state, event)
        if not taken:
            if isinstance(event, Received) and event.link in self.punctual:
                raise self._stopped(local, f"{spelled(event.message)}, which has arrived over {event.link!r}")
            return ()
        if len(taken) == 1:
            return tuple(self._outcomes(local, taken[0], None))
        return tuple(outcome for index, one in enumerate(taken) for outcome in self._outcomes(local, one, index))

    def _outcomes(self, local: PartyLocal, taken: Taken, variant: Hashable) -> list[Outcome]:
        refused = local.refused if taken.refused is None else self._refusals(local.refused, taken.refused)
        if not taken.effects:  # most steps of most parties, and this is where the checker spends its time
            return [Outcome(_local(Mode.UP, taken.state, local.timers, refused), (), variant, taken.rows, taken.guards, taken.note)]
        timers = self._retimed(local.timers, taken.effects)
        sent = [e for e in taken.effects if not isinstance(e, SetTimer | CancelTimer)]
        after = _local(Mode.UP, taken.state, timers, refused)
        found = [Outcome(after, self._items(sent), variant, taken.rows, taken.guards, taken.note)]
        if self.crash is not None and self.crash.within_steps:
            for count in range(len(sent)):
                emits = (self.crash.spend, *self._items(sent[:count]), *self.crash.cuts)
                note = f"{self.name} crashes after {count} of {len(sent)} effects"
                found.append(Outcome(self._down(taken.state, refused), emits, ("crash", count, variant), taken.rows, taken.guards, note))
        return found

    def _refusals(self, before: tuple[RefusalKind, ...], kind: RefusalKind) -> tuple[RefusalKind, ...]:
        if kind not in self.never_refuses or kind in before:
            return before
        return tuple(sorted((*before, kind), key=lambda k: k.name))

    def _items(self, effects: Sequence[Any]) -> tuple[Item, ...]:
        items: list[Item] = []
        for effect in effects:
            for index, operation in self.route(effect):
                last = items[-1] if items else None
                if isinstance(operation, Push) and last is not None and last[0] == index and isinstance(last[1], Push):
                    items[-1] = (index, Push((*last[1].messages, *operation.messages)))
                else:
                    items.append((index, operation))
        return tuple(items)

    # -- timers --------------------------------------------------------------------------------------------------------

    def _retimed(self, timers: tuple[Timer, ...], effects: Sequence[Any]) -> tuple[Timer, ...]:
        if not any(isinstance(e, SetTimer | CancelTimer) for e in effects):
            return timers
        found = {(t.timer, t.key, t.stale): t for t in timers}
        for effect in effects:
            if not isinstance(effect, SetTimer | CancelTimer):
                continue
            old = found.pop((effect.timer, effect.key, False), None)
            if old is not None and self.stale and old.left <= 0:
                found[effect.timer, effect.key, True] = old._replace(stale=True)
            if isinstance(effect, SetTimer):
                found[effect.timer, effect.key, False] = Timer(effect.timer, effect.key, effect.generation, False, self._ticks(effect))
        return tuple(sorted(found.values(), key=spelled))

    def _ticks(self, effect: SetTimer) -> int:
        if self.ticks is None:
            return -1
        if effect.limit not in self.ticks:
            have = ", ".join(self.ticks)
            raise WorldError(
                f"{self.name} sets timer {effect.timer!r} for {effect.limit!r}, for which world.clock gives no ticks; it has {have}"
            )
        return self.ticks[effect.limit]

    def _fire(self, local: PartyLocal, only: Fire | None = None) -> tuple[Outcome, ...]:
        found: list[Outcome] = []
        for timer in local.timers:
            if timer.left > 0 or (timer.timer in self.gated if only is None else not only.means(timer)):
                continue
            rest = local._replace(timers=tuple(t for t in local.timers if t is not timer))
            named = ("stale" if timer.stale else "timer", timer.timer, timer.key)
            taken = self.behaviour.take(rest.state, TimerFired(timer.timer, timer.key, timer.generation))  # type: ignore[arg-type]
            if not taken and self.ticks is not None:
                raise self._stopped(local, f"timer {timer_text(timer)}, which is due")
            for index, one in enumerate(taken or ()):
                for outcome in self._outcomes(rest, one, index if taken and len(taken) > 1 else None):
                    extra = () if outcome.variant is None else (outcome.variant,)
                    found.append(outcome._replace(variant=(*named, *extra)))
        return tuple(found)

    def _stopped(self, local: PartyLocal, what: str) -> WorldError:
        return WorldError(
            f"{self.name} does not take {what}, in state {spelled(local.state)}; in a timed world the clock would stand still, "
            "so its step function must give (state, ()) where nothing comes of an event, not None"
        )

    def _tick(self, local: PartyLocal) -> tuple[Outcome, ...]:
        if any(t.left == 0 for t in local.timers):
            return ()
        return (Outcome(local._replace(timers=tuple(t._replace(left=t.left - 1) for t in local.timers))),)

    # -- crashes -------------------------------------------------------------------------------------------------------

    def _down(self, state: Hashable, refused: tuple[RefusalKind, ...]) -> PartyLocal:
        keeps = self.crash.keeps if self.crash else None
        return _local(Mode.DOWN, keeps(state) if keeps else None, (), refused)

    def _crashed(self, local: PartyLocal) -> tuple[Outcome, ...]:
        if local.mode is not Mode.UP or self.crash is None:
            return ()
        return (Outcome(self._down(local.state, local.refused), (self.crash.spend, *self.crash.cuts)),)

    def _restarted(self, local: PartyLocal) -> tuple[Outcome, ...]:
        if local.mode is not Mode.DOWN or self.crash is None:
            return ()
        return (Outcome(_local(Mode.UP, self._fresh(local.state), (), local.refused), self.crash.opens),)

    def _fresh(self, kept: Hashable) -> Hashable:
        restarts = self.crash.restarts if self.crash else None
        return restarts(kept) if restarts else self.behaviour.initial

    # -- reading -------------------------------------------------------------------------------------------------------

    def observe(self, state: Hashable) -> Mapping[str, bool | int]:
        """The behaviour's observations; while it is down, those that it would have after a restart."""
        if not isinstance(state, PartyLocal):
            raise TypeError(f"{state!r} is not a party's state")
        if state.mode is Mode.DOWN:
            return self.behaviour.observe(self._fresh(state.state))
        return self.behaviour.observe(state.state)

    def spelled(self, state: Hashable) -> str:
        """Mode, state and timers, leaving out what is usual."""
        if not isinstance(state, PartyLocal):
            raise TypeError(f"{state!r} is not a party's state")
        parts = [] if state.mode is Mode.UP else [state.mode.value]
        parts.append(spelled(state.state))
        if state.timers:
            parts.append("timers " + " ".join(timer_text(t) for t in state.timers))
        if state.refused:
            parts.append("has refused: " + " ".join(kind.name.lower() for kind in state.refused))
        return " ".join(parts)


def timer_text(timer: Timer) -> str:
    """One timer for a reader."""
    key = "" if timer.key is None else f"[{spelled(timer.key)}]"
    left = "" if timer.left < 0 else f" in {timer.left}"
    return f"{timer.timer}{key}{left}{' (stale)' if timer.stale else ''}"


@frozen
class Push:
    """Put messages on a link, in order."""

    messages: tuple[Hashable, ...]


def _unrouted(effect: Any) -> tuple[Item, ...]:
    raise WorldError(f"the world is not closed yet, so nothing takes {effect!r}; use World.system()")
