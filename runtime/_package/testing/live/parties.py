"""A party as the model has it: a core of our own that is told what was observed, and what it says must have happened.

It reads its tables through another interpreter than the runtime does, keeps its timers itself, and every property that can be watched at
a single party is watched at it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import define, field

from troth.spec import Table
from troth.spec import core as c
from troth.spec.engine import PartyCore
from troth.spec.limits import Limits
from troth.spec.party import Party
from troth.statemachines import PARTIES, HostConfig, ReceiverConfig, SupervisorConfig, TrainerConfig
from troth.testing.traces.replica import Replayed
from troth.testing.traces.watching import Watcher

Config: TypeAlias = HostConfig | ReceiverConfig | SupervisorConfig | TrainerConfig
OF_CONFIG: Mapping[Any, Party] = {party.config: party for party in PARTIES.values()}


class Wrong(AssertionError):
    """The runtime did what the model does not allow. ``property`` is the name that it is reported under."""

    def __init__(self, property: str, what: str) -> None:  # noqa: A002
        super().__init__(f"{property}: {what}")
        self.property = property
        self.what = what


@define(eq=False)
class Shadow:
    """One party, as it must be."""

    name: str
    config: Config
    seat: Any = None
    """The process that it is in, for what is in a trainer's."""
    counted: bool = False
    """Whether any of its steps was counted."""
    notes: dict[int, bytes] = field(factory=dict)
    """The first content that was seen of each task or result, by digest."""
    core: Replayed = field(init=False)
    kind: str = field(init=False)
    limits: Limits = field(init=False)
    timers: dict[tuple[str, c.Key], tuple[float, int]] = field(factory=dict)
    """What runs: when it is due, and its generation."""
    line: Any = None
    """The connection that carries its control link."""
    closing: bool = False
    """It is closing that connection, so nothing more is said on it."""
    wanted: dict[str, float] = field(factory=dict)
    """The links that a trainer wants, and since when each has not been dialled."""
    owed: deque[Any] = field(factory=deque)
    """What it must say on its data link, or its receivers."""
    watcher: Watcher = field(init=False)

    def __attrs_post_init__(self) -> None:
        party = OF_CONFIG[type(self.config)]
        self.kind = party.name
        self.core = Replayed(party, self.config, interpreter=Table, strict=False)
        self.limits = self.config.limits
        self.watcher = Watcher(self.core)

    def take(self, event: c.Event, found: c.Step, now: float) -> c.Step:
        """Take a step that the runtime took too. Raises ``Wrong`` if it is another one, or one that a property forbids."""
        core = self.core
        before, running = core._store.view(), set(core._store.armed)
        step = core.handle(event)
        if step.rows != found.rows or step.effects != found.effects or step.refusal != found.refusal:
            told = f"{self.name} took {event} by {found.rows} with {found.effects}; it must be {step.rows} with {step.effects}"
            raise Wrong("replay", told)
        if step.refusal is None:
            broken = self.watcher.look(event, step, before, timers=running == set(core._store.armed))
            if broken is not None:
                raise Wrong(broken.id, f"{self.name} took {event} by {step.rows} with {step.effects}")
            for effect in step.effects:
                kind = type(effect)
                if kind is c.SetTimer:
                    self._set(effect, now)  # type: ignore[arg-type]
                elif kind is c.CancelTimer:
                    self.timers.pop((effect.timer, effect.key), None)  # type: ignore[union-attr]
        return step

    def _set(self, effect: c.SetTimer, now: float) -> None:
        duration_s = getattr(self.limits, effect.limit)
        if duration_s is None:
            self.timers.pop((effect.timer, effect.key), None)
        else:
            self.timers[effect.timer, effect.key] = now + duration_s, effect.generation

    def fired(self, event: c.TimerFired, now: float) -> None:
        """A timer was said to be due. Raises ``Wrong`` if it was not."""
        armed = self.timers.pop((event.timer, event.key), None)
        if armed is None:
            raise Wrong("timers", f"{self.name}: {event}, which does not run")
        if armed[1] != event.generation or armed[0] != now:  # late is as wrong as early: time goes on to what is due next
            raise Wrong("timers", f"{self.name}: {event} at {now} s, where generation {armed[1]} is due at {armed[0]} s")

    def check_due(self, now: float) -> None:
        """Raises ``Wrong`` if a timer was due and did not fire."""
        for (timer, key), (due, _) in self.timers.items():
            if due <= now:
                raise Wrong("timers", f"{self.name}: {timer} {'' if key is None else key} was due at {due} s, and has not fired at {now} s")


@define
class Told:
    """What a party of a process was told by another one of it."""

    party: str
    event: c.Event


@define(eq=False)
class Side:
    """The parties of one process, which one driver runs."""

    name: str
    parties: dict[str, Shadow] = field(factory=dict)
    local: deque[Told] = field(factory=deque)
    """What they have told each other and not heard yet, in its order."""
    records: list[tuple[str, c.Event, c.Step]] = field(factory=list)
    """What the driver did, and nobody has looked at yet."""
    calls: list[Any] = field(factory=list)
    """Calls of its user that have not returned."""
    numbers: dict[tuple[str, int], Any] = field(factory=dict)
    """Those calls by what their cores know them by."""

    def note(self, party: str, _core: PartyCore, event: c.Event, step: c.Step) -> None:
        """The driver took a step."""
        self.records.append((party, event, step))

    def remove(self, party: str) -> None:
        """A party left, and its receivers with it."""
        for name in [name for name in self.parties if name == party or name.startswith(f"{party}/")]:
            del self.parties[name]

    def heard(self, party: str, event: c.Event) -> bool:
        """Whether that is the next thing that one of the parties was told; what is told to nobody is gone. Raises ``Wrong`` if another
        one comes first."""
        while self.local and self.local[0].party not in self.parties:
            self.local.popleft()
        if not self.local:
            return False
        told = self.local.popleft()
        if told.party != party or told.event != event:
            raise Wrong("order", f"{party} took {event} before {told.party} was told {told.event}")
        return True
