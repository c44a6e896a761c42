"""What the parties of a live runtime did: every step is watched for the numbered properties, and can be replayed on fresh cores.

It is told of each step before any of its effects is started, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pytest
import trio
from attrs import define, field, frozen

from tests.runtime.sessions.stage import Stage
from tests.statemachines.watch import Watch
from troth.runtime.driver import Driver, Performer, no_epoch
from troth.runtime.tracing import Tracer
from troth.runtime.trainer import PARTY
from troth.spec.core import Event, RefusalKind, Resolve, Step
from troth.spec.engine import PartyCore
from troth.spec.messages import Outcome
from troth.statemachines.trainer.states import TrainerSessionState

TOLD = (Outcome.ACCEPTED, Outcome.UNDELIVERED)
"""What send() says of results that the host accepted."""


@frozen
class Taken:
    """A step that a core took, and its state afterwards."""

    event: Event
    step: Step
    after: Any


@define(eq=False)
class Overseen:
    """A party, for as long as it was hosted."""

    name: str
    core: PartyCore
    watch: Watch
    steps: list[Taken] = field(factory=list)

    @classmethod
    def of(cls, name: str, core: PartyCore) -> Overseen:
        before = type(core)(core.config, strict=False)
        return cls(name, core, Watch(core, before))

    def replay(self) -> None:
        """A core that knows nothing of the runtime takes the same events in the same way."""
        fresh = type(self.core)(self.core.config, strict=False)
        for place, taken in enumerate(self.steps):
            again = fresh.handle(taken.event)
            assert (again.rows, again.effects, again.refusal) == (taken.step.rows, taken.step.effects, taken.step.refusal), (
                f"{self.name}, step {place}: {taken.event} went another way"
            )
            assert fresh.snapshot() == taken.after, f"{self.name}, step {place}: {taken.event} led elsewhere"


@define(eq=False)
class Oversight:
    """Every party of every driver since it was installed."""

    parties: list[Overseen] = field(factory=list)
    drivers: list[Driver] = field(factory=list)
    broken: list[str] = field(factory=list)
    """Properties that did not hold, in words."""
    _now: dict[tuple[Driver, str], Overseen] = field(factory=dict)
    """Who has which name now: a receiver has that of the one before it."""

    @classmethod
    def installed(cls, monkeypatch: pytest.MonkeyPatch) -> Oversight:
        """Oversee every driver from now on."""
        found = cls()
        add = Driver.add

        def overseen(
            driver: Driver,
            party: str,
            core: PartyCore,
            performer: Performer,
            *,
            epoch: Callable[[PartyCore], int | None] = no_epoch,
            tracer: Tracer | None = None,
        ) -> None:
            found._begin(driver, party, core)
            add(driver, party, core, performer, epoch=epoch, tracer=tracer)

        monkeypatch.setattr(Driver, "add", overseen)
        return found

    def _begin(self, driver: Driver, party: str, core: PartyCore) -> None:
        if driver not in self.drivers:
            self.drivers.append(driver)
            driver.on_step = partial(self._stepped, driver)
        self.parties.append(Overseen.of(party, core))
        self._now[driver, party] = self.parties[-1]

    def _stepped(self, driver: Driver, party: str, _core: PartyCore, event: Event, step: Step) -> None:
        self.took(self._now[driver, party], event, step)

    def took(self, party: Overseen, event: Event, step: Step) -> None:
        """A party has taken a step."""
        party.steps.append(Taken(event, step, party.core.snapshot()))
        try:
            party.watch.look(event, step)
            self._look_across(step)
        except AssertionError as error:  # said at the end: raised here, it would pass for a fault of the runtime
            self.broken.append(f"{party.name}: {error}")
        if step.refusal is not None and step.refusal.kind is not RefusalKind.MISUSE:
            self.broken.append(f"P23 {party.name} refused {event}: {step.refusal}")

    def _look_across(self, step: Step) -> None:
        for effect in step.effects:
            if isinstance(effect, Resolve) and effect.call == "send" and effect.outcome in TOLD:
                accepted = {seq for party in self.parties for _, seq in party.watch.canonical}
                assert effect.value in accepted, f"P10 send() of task {effect.value} returned, but no host has accepted it"

    def check(self) -> None:
        """Every property held at every step, and every party replays."""
        assert not self.broken, self.broken[0]
        assert self.parties, "nothing was overseen"
        for party in self.parties:
            party.replay()


def check_nothing_is_left(stage: Stage, oversight: Oversight, tasks: int, killed: Collection[Driver] = ()) -> None:
    """No process, file, connection, listener, timer or task of the run is there any more. ``tasks`` is how many lived before it.

    A trainer whose script ends with an exception leaves its session as it was, and its timers to the end of its process; so does one
    that was ``killed``.
    """
    assert not stage.processes.snapshot(), "a process is left"
    assert not stage.processes.registered, "a path is still registered"
    assert not stage.files.directories, "a directory is left"
    assert not stage.files.contents, "a file is left"
    assert not [connection.number for connection in stage.network.connections if connection.alive], "a connection is left"
    assert not stage.network._listeners, "somebody listens"
    for driver in oversight.drivers:
        if driver in killed or (PARTY in driver and driver.core(PARTY).state("session") is not TrainerSessionState.CLOSED):
            continue
        assert driver.timers.running == 0, f"a timer of {list(driver)} runs: {list(driver.timers._running)}"
    assert trio.lowlevel.current_statistics().tasks_living == tasks, "a task is left"
