"""The cores that run beside a world's tables, and what is compared with them at every step.

A world's tables were filled by asking each core once about a state and an event. A *twin* is a core that lives through a session as it
does in production: it is not restored between steps, reads its tables through ``transitions`` and not through our own short cut, and
counts the generations of its timers. What it does must be what the table says, at every step, whatever came before.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from troth.models.parties import Mode, PartyComponent, PartyLocal
from troth.models.system import Branch
from troth.models.worlds.protocol.watched import Watched
from troth.spec import core as c
from troth.spec.emits import Each, Keys
from troth.spec.engine import PartyCore
from troth.spec.machine import Kind
from troth.spec.party import selector, subject
from troth.spec.views import Members, Reader

ROUND_TRIP = 8
"""At every so many steps, a core is restored from its own snapshot, and goes on as what came of that."""


class Wrong(Exception):
    """Something that must be so at every step was not. ``property`` is the name that it is reported under."""

    def __init__(self, property: str, what: str) -> None:  # noqa: A002
        super().__init__(f"{property}: {what}")
        self.property = property
        self.what = what


@frozen
class Inert:
    """What a table says of an event that no row takes: these ignores, or the last of them a refusal."""

    rows: tuple[str, ...]
    refuses: bool


class Twin(PartyCore):
    """A core of a declared party that can also say, from the table alone, which events no row takes."""

    def inert(self, event: c.Event) -> Inert | None:
        """What the table says of ``event`` now, if no row takes it; else ``None``. Nothing of the engine is used for it."""
        route = self.party.by_selector.get(selector(event))
        if route is None:
            return Inert((f"{self.party.name}.unrouted",), refuses=True)
        if isinstance(event, c.TimerFired) and self.armed.get((event.timer, event.key)) != event.generation:
            return Inert((f"timer.{event.timer}.stale",), refuses=False)
        rows: list[str] = []
        seen, view = subject(event), self._store.view()
        for to in (route.gate,) if route.gate else route.to:
            machine = self.party.by_name[to.machine]
            for key in self._keys(to.machine, to.key(view, seen) if to.key else None):
                slots = self._store.slots[to.machine]
                slot = slots[key] if isinstance(slots, Members) else slots
                reader = Reader(self._store.view(key, slot), (), "")
                cell = machine.table[slot.state, to.trigger]
                valuation = {}
                for atom in cell.atoms:
                    reader.asks(frozenset((*atom.reads, machine.name)), atom.name)
                    valuation[atom.name] = bool(atom.of(reader, seen))
                entry = cell.under(valuation)
                if entry.kind is Kind.ROW:
                    return None
                rows.append(entry.id)
                if entry.kind is Kind.REFUSE:
                    return Inert(tuple(rows), refuses=True)
        return Inert(tuple(rows), refuses=False)

    def _keys(self, machine: str, target: Any) -> Sequence[Any]:
        if isinstance(target, Keys):
            return tuple(target.keys)
        return self.members(machine) if isinstance(target, Each) else (target,)


@define(eq=False)
class Life:
    """What one core went through, from its start to its end: enough to go through it again."""

    core: PartyCore
    config: Any
    start: Hashable
    custom: bool = False
    """It is replayed by the core itself: nobody knows how to make another."""
    events: list[tuple[c.Event, c.Step]] = field(factory=list)


class Beside:
    """One party of a world, as it lives through a session beside its table.

    A core of a class that has a ``handle`` of its own cannot be made anew from its declaration. It acts itself, restored to where it was
    whenever the table was asked in between; its ``twin`` says only what the declaration says.
    """

    def __init__(self, component: PartyComponent, core: PartyCore) -> None:
        self.name = component.name
        self.component = component
        self.core = core
        self.watched = isinstance(core, Watched)
        self.custom = type(core).handle not in (PartyCore.handle, Watched.handle)
        self.without = core.without if isinstance(core, Watched) else frozenset()
        self.lives: list[Life] = []
        self.count = 0
        self.early: set[tuple[str, Any]] = set()
        """Timers of which a late firing bore the number of the next one, and so counted: the world still has that one, the core not."""
        self.twin = self.born(component.initial)

    def born(self, local: Hashable) -> Twin:
        """A core that starts, or starts again, in this local state."""
        state = local.state if isinstance(local, PartyLocal) else local
        self.core.restore(state)
        # That atoms look at nothing but what they said is watched in the core of the table.
        self.twin = Twin(self.core.party, self.core.config, strict=False)
        self.twin.restore(self._own(state))
        self.early.clear()
        self.lives.append(Life(self.core, self.core.config, self._own(state), custom=self.custom))
        return self.twin

    def _handled(self, event: c.Event) -> c.Step:
        """The core's own step; the twin is then where the core is."""
        if not self.custom:
            return self.twin.handle(event)
        self.core.restore(self.twin.snapshot())
        step = self.core.handle(event)
        self.twin.restore(self.core.snapshot())
        return step

    def _own(self, state: Any) -> Hashable:
        own: Hashable = state[0] if self.watched else state
        return own

    def due(self, event: c.TimerFired) -> c.TimerFired:
        """A firing with the generation that this core gave the timer: a watched core's table does not count them."""
        return evolve(event, generation=self.twin.armed.get((event.timer, event.key), event.generation)) if self.watched else event

    def late(self, event: c.TimerFired) -> None:
        """A late firing comes. The numbers of a timer go round, so it may bear the one that counts: then it does count."""
        where = event.timer, event.key
        if self.twin.armed.get(where) == event.generation:
            self.early.add(where)

    def take(self, event: c.Event) -> c.Step:
        """The core's own step."""
        try:
            step = self._handled(event)
        except Exception as error:
            raise Wrong("core", f"{self.name} raised {type(error).__name__}: {error}, handling {event!r}") from error
        self.lives[-1].events.append((event, step))
        self.count += 1
        if self.count % ROUND_TRIP == 0:
            self.round_trip()
        return step

    def round_trip(self) -> None:
        """``restore(snapshot())`` changes nothing."""
        before = self.twin.snapshot()
        self.twin.restore(before)
        if self.twin.snapshot() != before:
            raise Wrong("snapshot", f"{self.name}: restore(snapshot()) changed {before!r} to {self.twin.snapshot()!r}")

    def agrees(self, step: c.Step, branch: Branch, after: Hashable, effects: tuple[Any, ...] | None) -> None:
        """What the core did is what its table says: rows, guards, effects (where they are known), refusal and state."""
        rows, guards = step.rows, step.guards
        if (step.refusal is not None) != branch.note.startswith("refused"):
            why = step.refusal.why if step.refusal else "nothing"
            raise Wrong("effects", f"{self.name} refused {why}; from an equal snapshot it did {' '.join(branch.rows)} {branch.note}")
        if branch.rows[: len(rows)] != rows or (not self.watched and branch.rows != rows):
            raise Wrong("effects", f"{self.name} took the rows {' '.join(rows)}; from an equal snapshot it took {' '.join(branch.rows)}")
        if branch.guards[: len(guards)] != guards:
            raise Wrong("effects", f"{self.name} answered {guards}; from an equal snapshot it answered {branch.guards}")
        if effects is not None and step.effects != effects and self._plain(step.effects) != effects:
            raise Wrong("effects", f"{self.name} caused {step.effects}; from an equal snapshot it caused {effects}")
        if isinstance(after, PartyLocal) and after.mode is Mode.UP:
            self.agrees_on(after)

    def agrees_on(self, after: PartyLocal) -> None:
        """The core is in the state that the table says, and its timers are those that its effects started and nothing stopped."""
        snapshot: Any = self.twin.snapshot()
        own: Any = self._own(after.state)
        same = snapshot[:-2] == own[:-2] if self.watched else snapshot == own
        if not same:
            raise Wrong("effects", f"{self.name} went to {snapshot!r}; from an equal snapshot it went to {own!r}")
        runs = {where for where in self.twin.armed if where[0] not in self.without}
        told = {(timer.timer, timer.key) for timer in after.timers if not timer.stale}
        if not runs <= told or not told - runs <= self.early:
            raise Wrong("timers", f"{self.name} has the timers {sorted(map(str, runs))}; its effects left {sorted(map(str, told))}")

    def _plain(self, effects: tuple[c.Effect, ...]) -> tuple[c.Effect, ...]:
        if not self.watched:
            return effects
        kept = (e for e in effects if not (isinstance(e, c.SetTimer | c.CancelTimer) and e.timer in self.without))
        return tuple(evolve(e, generation=0) if isinstance(e, c.SetTimer) else e for e in kept)

    def offered(self, event: c.Event) -> c.Step | None:
        """Give the core an event that no row takes: it must do what its table says, and stay as it was. ``None`` if a row takes it."""
        expected = self.twin.inert(event)
        if expected is None:
            return None
        before = self.twin.snapshot()
        step = self.take(event)
        wrong = _not_inert(step, expected)
        if wrong is None and self.twin.snapshot() != before:
            wrong = f"its state changed from {before!r} to {self.twin.snapshot()!r}"
        if wrong is not None:
            said = "refuses" if expected.refuses else "ignores"
            raise Wrong("ignored", f"{self.name} {said} {event!r} by its table ({' '.join(expected.rows)}), but {wrong}")
        return step


def _not_inert(step: c.Step, expected: Inert) -> str | None:
    if step.effects:
        return f"it caused {step.effects}"
    if (step.refusal is not None) != expected.refuses:
        return f"it {'refused: ' + step.refusal.why if step.refusal else 'did not refuse'}"
    rows = step.rows or ((step.refusal.row,) if step.refusal else ())
    return None if rows == expected.rows else f"it took {' '.join(rows) or 'nothing'}"


def replay(lives: Sequence[Life]) -> None:
    """Every life, lived again by a new core from its start: the same events must give the same steps."""
    for life in lives:
        core = life.core if life.custom else PartyCore(life.core.party, life.config, strict=False)
        name = life.core.party.name
        core.restore(life.start)
        for number, (event, step) in enumerate(life.events):
            again = core.handle(event)
            if again != step:
                raise Wrong("replay", f"{name} does not replay: event {number}, {event!r}, gave {step!r}, and once more {again!r}")
