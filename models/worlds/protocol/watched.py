"""A core that is watched: the real one, with a memory beside it of what it did.

Most properties can be read off a state. Some speak of a step ("SESSION_CLOSED is said only when ..."), and a few of the past ("was
ever accepted"). For those a *watch* looks at every step of a core, as the runtime's tracing would, and keeps a small memory in the
party's local state. A watch decides nothing: the core does not see it, and a memory survives the crash of its party.

Two liberties are taken with time, each said by the world that takes it. ``without`` names timers that never fire there, as if their
limit had no value. And the generations of timers, which tell a late firing from the one that counts, are left out, together with late
firings: a core drops those before any row sees them, which the tests of the engine show.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from troth.models.errors import PropertyFailed
from troth.spec import Table
from troth.spec import core as c
from troth.spec.engine import PartyCore
from troth.spec.party import Party
from troth.spec.views import View
from troth.statemachines.shared.words import CONTROL, DATA

NETWORKS = frozenset({CONTROL, DATA})
"""Links that leave the machine's own world: what comes over them may come twice, and late."""


def answers(effect: c.Effect) -> bool:
    """Whether an effect concerns only the peer at the other end of a network, and timers that run already."""
    return isinstance(effect, c.SetTimer) or (isinstance(effect, c.Send) and effect.link in NETWORKS)


@frozen
class Again:
    """The step that came of the same event once more, and what there was after it."""

    step: c.Step
    after: View
    timers: bool
    """Whether the same timers run as after the first time."""


@frozen
class Seen:
    """One step that was taken, with the party's machines before and after it."""

    event: c.Event
    effects: tuple[c.Effect, ...]
    before: View
    after: View
    machines: tuple[str, ...]
    timers: bool
    """Whether the same timers run as before."""
    again: Callable[[], Again] = field(repr=False)
    """What comes of the same event, once more. It is not taken."""

    @property
    def message(self) -> c.Message | None:
        """The message that was received, if it was one."""
        return self.event.message if isinstance(self.event, c.Received) else None

    def sent(self, *kinds: type[c.Message]) -> list[Any]:
        """The messages of these kinds that the step sent."""
        return [e.message for e in self.effects if isinstance(e, c.Send) and isinstance(e.message, kinds)]

    def resolved(self, *calls: str) -> list[c.Resolve]:
        """The calls of these kinds that the step lets return."""
        return [e for e in self.effects if isinstance(e, c.Resolve) and e.call in calls]

    def became(self, machine: str, *states: Any) -> list[Any]:
        """The family's instances that are newly in one of these states."""
        old, new = getattr(self.before, machine), getattr(self.after, machine)
        return [key for key, slot in new.items() if slot.state in states and old[key].state not in states]

    @property
    def from_outside(self) -> bool:
        """Whether it came over a network, which may repeat it and may be late."""
        return isinstance(self.event, c.Received) and self.event.link in NETWORKS

    def twice_is_more(self, moved: Callable[[View, View], bool] | None = None) -> bool:
        """Whether the same event, once more, does anything but be answered: it is refused, moves a machine, has other timers run, or
        somebody else is told of it. A timer that runs may begin anew: a message that was repeated is a sign of life, too. ``moved``
        says of two moments whether the second is another one; by default any machine that is elsewhere makes it one."""
        again = self.again()
        elsewhere = moved(self.after, again.after) if moved else not self.same(self.after, again.after)
        return again.step.refusal is not None or not again.timers or elsewhere or not all(answers(effect) for effect in again.step.effects)

    def same(self, one: View, other: View) -> bool:
        """Whether no machine is elsewhere. Timers are not looked at."""
        return all(getattr(one, name) == getattr(other, name) for name in self.machines)


@frozen
class Watch:
    """What is remembered of a party's steps. ``observe`` names what can be seen of the memory."""

    id: str
    start: Hashable
    after: Callable[[Any, Seen], Hashable] = field(repr=False)
    observe: Mapping[str, Callable[[Any], bool | int]] = field(factory=dict, repr=False)
    lasts: bool = True
    """It is remembered across a crash; else it is about one life of the party."""


def broken(id_: str) -> str:
    """The name of the observation that the property of that id was broken by a step of this party."""
    return f"broke {id_}"


LIVES = Watch("lives", 0, lambda memory, _seen: memory)
"""How often the party was started again. Always the first part of the memory."""


def never(id_: str, wrong: Callable[[Seen], bool]) -> Watch:
    """A watch for steps that break a property."""
    return Watch(id_, False, lambda memory, seen: memory or wrong(seen), {broken(id_): bool})


@frozen
class Kept:
    """What a crash leaves of a watched party: what was seen of it."""

    memory: tuple[Hashable, ...]


class Watched(PartyCore):
    """A core of a declared party, watched. ``configs``: of its first life, its second, ...; the last one stays."""

    def __init__(self, party: Party, configs: Sequence[Any], watches: Sequence[Watch] = (), without: frozenset[str] = frozenset()) -> None:
        super().__init__(party, configs[0], interpreter=Table)
        self.configs = tuple(configs)
        self.watches = (LIVES, *watches)
        self.without = without
        self._remembers: tuple[object, tuple[Hashable, ...]] = (None, ())

    @property
    def memory(self) -> tuple[Hashable, ...]:
        """What was seen, a part a watch. A core that was made anew, for a mutant say, has seen nothing."""
        store, memory = self._remembers
        return memory if store is self._store else tuple(watch.start for watch in self.watches)

    @memory.setter
    def memory(self, memory: tuple[Hashable, ...]) -> None:
        self._remembers = (self._store, memory)

    def handle(self, event: c.Event) -> c.Step:
        """The core's own step; then every watch looks at it."""
        before, running = self._store.view(), set(self._store.armed)
        step = super().handle(event)
        if step.refusal is not None:
            return step
        met: list[c.Step] = []
        after, same = self._store.view(), running == set(self._store.armed)
        failed: list[Exception] = []
        seen = Seen(event, step.effects, before, after, tuple(self.party.by_name), same, lambda: self._again(event, met, failed))
        self.memory = tuple(_looked(watch, part, seen, failed) for watch, part in zip(self.watches, self.memory, strict=True))
        store = self._store
        store.armed = {where: 0 for where in store.armed if where[0] not in self.without}
        store.stale = {}
        effects = tuple(kept for effect in step.effects if (kept := self._timed(effect)) is not None)
        # What was seen depends on the rows that were met on the way, so a mutant of one of them must have this step asked again.
        rows = (*step.rows, *(row for again in met for row in again.rows if row not in step.rows))
        guards = (*step.guards, *(guard for again in met for guard in again.guards if guard not in step.guards))
        return evolve(step, effects=effects, rows=rows, guards=guards)

    def _again(self, event: c.Event, met: list[c.Step], failed: list[Exception]) -> Again:
        saved, running = self._store.save(), set(self._store.armed)
        try:
            met.append(step := super().handle(event))
            return Again(step, self._store.view(), running == set(self._store.armed))
        except Exception as error:
            failed.append(error)
            raise
        finally:
            self._store.undo(saved)

    def _timed(self, effect: c.Effect) -> c.Effect | None:
        if isinstance(effect, c.SetTimer):
            return None if effect.timer in self.without else evolve(effect, generation=0)
        return None if isinstance(effect, c.CancelTimer) and effect.timer in self.without else effect

    def snapshot(self) -> Hashable:
        """The core's own, and what was seen."""
        return super().snapshot(), self.memory

    def restore(self, snapshot: Hashable) -> None:
        """Both."""
        if not isinstance(snapshot, tuple):
            raise TypeError(f"{snapshot!r} is not a snapshot of a watched core")
        own, memory = snapshot
        super().restore(own)
        self.memory = memory
        self.config = self._store.config = self.configs[min(memory[0], len(self.configs) - 1)]

    def observe(self) -> Mapping[str, bool | int]:
        """What the party shows of itself, and what the watches show."""
        found = dict(super().observe())
        for watch, part in zip(self.watches, self.memory, strict=True):
            found.update({name: of(part) for name, of in watch.observe.items()})
        return found


def _looked(watch: Watch, part: Hashable, seen: Seen, failed: list[Exception]) -> Hashable:
    """What a watch remembers then. Raises ``PropertyFailed`` where it cannot say: that is its fault, and none of the core's.

    ``failed``: what the core raised when a watch had the event come once more. That is the core's own.
    """
    try:
        return watch.after(part, seen)
    except Exception as error:
        if any(error is one for one in failed):
            raise
        raise PropertyFailed(f"what is watched for {watch.id} raised {type(error).__name__}: {error}") from error


def keeps(snapshot: Any) -> Kept:
    """What a crash leaves."""
    return Kept(snapshot[1])


def restarts(core: Watched) -> Callable[[Any], Hashable]:
    """How a party starts again: as new, with the next configuration if there is one, and what was seen was seen."""
    fresh = PartyCore(core.party, core.configs[0], interpreter=Table).snapshot()

    def made(kept: Any) -> Hashable:
        life = min(kept.memory[0] + 1, len(core.configs) - 1)
        rest = (part if watch.lasts else watch.start for watch, part in zip(core.watches[1:], kept.memory[1:], strict=True))
        return fresh, (life, *rest)

    return made
