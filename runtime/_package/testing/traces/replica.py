"""One core of one party, replayed: whatever was recorded is what the real core does, from its first event on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import attrs
from attrs import define, field, frozen

from troth.spec import Table
from troth.spec.core import Effect, Event, Step
from troth.spec.engine import PartyCore
from troth.spec.errors import TrothError
from troth.spec.fingerprint import declaration_hash, state_digest
from troth.spec.limits import Limits
from troth.spec.party import Party
from troth.spec.trace import Header, Record
from troth.spec.views import View
from troth.statemachines import HOST, PARTIES, RECEIVER, SUPERVISOR, TRAINER
from troth.testing.traces.verdicts import Near, NoTrace, Wrong

PARTY_NAMES: Mapping[str, re.Pattern[str]] = {
    TRAINER.name: re.compile("trainer"),
    HOST.name: re.compile(r"host-[1-9]\d*"),
    RECEIVER.name: re.compile(r"trainer|host-[1-9]\d*"),
    SUPERVISOR.name: re.compile("supervisor"),
}
"""What drivers call their parties; of receivers, whose they are."""
NEAREST = 3
"""How many alternatives an error names."""


@lru_cache(1)
def declarations() -> str:
    """The hash of the declarations that are replayed here."""
    return declaration_hash(PARTIES.values())


def config_in(header: Header, file: str) -> Any:
    """The configuration of the core. Raises ``NoTrace`` if this is nothing that can be replayed here."""
    if header.core not in PARTIES:
        raise NoTrace(file, f"is of a core {header.core!r}; there are {', '.join(PARTIES)}, so this is not a trace of a session")
    if header.declarations != declarations():
        raise NoTrace(
            file,
            f"was recorded under other declarations ({header.declarations}; here they are {declarations()}): "
            "check it with the version of Troth that recorded it",
        )
    launched = header.core != SUPERVISOR.name
    if not PARTY_NAMES[header.core].fullmatch(header.party) or (header.launch is not None) is not launched or not header.driver:
        raise NoTrace(file, f"its header does not say which {header.core} of which driver and launch it is; record it again")
    config: Any = PARTIES[header.core].config
    wanted = {f.name: f for f in attrs.fields(config) if f.name != "limits"}
    for name in wanted.keys() ^ header.config.keys():
        raise NoTrace(file, f"its header {'lacks' if name in wanted else 'has'} the setting {name!r} of a {header.core}; record it again")
    for name, value in header.config.items():
        if type(value) is not type(wanted[name].default):
            raise NoTrace(file, f"its header says {name} = {value!r}, which is no {type(wanted[name].default).__name__}; record it again")
    try:
        return config(limits=Limits(**dict[str, Any](header.limits)), **header.config)
    except (TypeError, ValueError, TrothError) as error:
        raise NoTrace(file, f"its header has limits under which nothing runs ({error}); record it again") from error


class Replayed(PartyCore):
    """A core that can also be asked what it would do."""

    def view(self) -> View:
        """The party now. Later steps do not change it."""
        return self._store.view()

    def tried(self, event: Event) -> Step:
        """What an event would do, which is then undone."""
        step = self.handle(event)
        self.undo()
        return step

    def again(self, event: Event) -> tuple[Step, View, bool]:
        """What an event would do, the party after it, and whether the same timers ran then. It is undone."""
        before = set(self._store.armed)
        step = self.handle(event)
        found = step, self.view(), before == set(self._store.armed)
        self.undo()
        return found

    def handle(self, event: Event) -> Step:
        """The core's own step."""
        self._saved = self._store.slots
        return super().handle(event)

    def undo(self) -> None:
        """Be what it was before the last step."""
        self._store.undo(self._saved)


@frozen
class Taken:
    """A step that was replayed."""

    record: Record
    step: Step
    before: View
    after: View
    timers: bool
    """Whether the same timers run as before."""


@define(eq=False)
class Replica:
    """One core. A refusal that was recorded is a refusal that is replayed."""

    party: Party
    config: Any
    epoch: Callable[[Replayed], int | None]
    core: Replayed = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.core = Replayed(self.party, self.config, interpreter=Table, strict=False)

    def take(self, record: Record) -> Taken:
        """Replay a step. Raises ``Wrong`` where record and core part."""
        before, running = self.core.view(), self.core.armed.keys()
        try:
            step = self.core.handle(record.event)
        except TrothError as error:
            raise Wrong(f"the core cannot go on from here: {error}") from error
        if step.rows != record.rows:
            refused = "" if step.refusal is None else f", which refuses it: {step.refusal.why}"
            raise self._undone(f"its rows are {_listed(record.rows)}, but the core takes {_listed(step.rows)}{refused}", record)
        if step.effects != record.effects:
            raise self._undone(_differing(record.effects, step.effects), record)
        state = state_digest(self.core.snapshot())
        if state != record.state:
            raise self._undone(f"the state after it is said to be {record.state}, but is {state}", record)
        epoch = self.epoch(self.core)
        if epoch != record.epoch:
            raise self._undone(f"it is said to be of epoch {record.epoch}, but the core is in {epoch}", record)
        return Taken(record, step, before, self.core.view(), running == self.core.armed.keys())

    def _undone(self, reason: str, record: Record) -> Wrong:
        """The error, with the core as it was before the step, so that what is near can be tried."""
        self.core.undo()
        return Wrong(reason, ((record.event, "the event as it was recorded"),))

    def nearest(self, record: Record | None, expected: tuple[tuple[Event, str], ...]) -> tuple[Near, ...]:
        """What could have stood there: what was expected, then whatever else the core would take, the most alike first."""
        found: list[tuple[bool, int, Near]] = []
        seen: set[Event] = set()
        for event, whence in (*expected, *((route.sample, "") for route in self.party.routes)):
            if event in seen:
                continue
            seen.add(event)
            try:
                step = self.core.tried(event)
            except TrothError:  # a declaration that is broken there; it is reported where it is met
                continue
            if step.refusal is None and step.rows:
                alike = 0 if record is None else len(set(step.rows) & set(record.rows))
                found.append((not whence, -alike, Near(event, step.rows, whence or self._why(step.rows[-1]))))
        return tuple(near for *_, near in sorted(found, key=lambda each: each[:2])[:NEAREST])

    def _why(self, row: str) -> str:
        for machine in self.party.machines:
            for cell in machine.table.values():
                for entry in cell.entries:
                    if entry.id == row:
                        return entry.why
        return ""


def _listed(rows: tuple[str, ...]) -> str:
    return " ".join(rows) if rows else "none"


def _differing(recorded: tuple[Effect, ...], right: tuple[Effect, ...]) -> str:
    """The first effect in which they differ."""
    for place, (one, other) in enumerate(zip(recorded, right, strict=False)):
        if one != other:
            return f"effect {place} is {one}, but the core has {other}"
    if len(recorded) < len(right):
        return f"lacks the effect {right[len(recorded)]}"
    return f"has an effect {recorded[len(right)]} that the core does not have"
