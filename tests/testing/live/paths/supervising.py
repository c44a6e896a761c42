"""Worlds of a backend: the real one, with its supervisor, its calls and its driver, and host sessions that are played by hand.

A host session meets its supervisor on a local link only, so there is no wire between them. What a real one is told, this one is told; what
it says, it says when the world does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from attrs import define, field

from tests.testing.live.paths.casting import cast, swapped
from tests.testing.live.paths.conducting import CannotPerform, Parties
from tests.testing.live.paths.holding import Held, due, longer
from tests.testing.live.paths.leading import counts
from tests.testing.live.paths.users import Unjudged
from troth.models.system import ActionKind, State, System
from troth.models.trace import TraceStep
from troth.models.worlds.protocol.backend import ARGUMENTS, HAPPENS, NUMBERS
from troth.runtime import backend as backends
from troth.runtime.errors import Misuse, RuntimeFault
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.party import Party
from troth.statemachines import HostConfig
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.supervisor.launches import HOSTS
from troth.testing.live.calling import Call
from troth.testing.live.stage import Setup


def at_once(_step: TraceStep) -> None:
    """Nothing comes with anything else."""


class Listening:
    """The core of a host session that only listens."""

    def __init__(self, limits: Limits) -> None:
        self.config = HostConfig(limits=limits)

    def handle(self, _event: c.Event) -> c.Step:
        """It is told something."""
        return c.Step()

    def state(self, _machine: str, _key: c.Key = None) -> HostSessionState:
        """For whoever asks how it is."""
        return HostSessionState.READY


@define(eq=False)
class Played:
    """A host session that is played."""

    setting: Any
    party: str
    launch: int
    driver: Any
    options: dict[str, Any]
    core: Listening = field(init=False)
    launch_id: bytes = b""
    moved: tuple[int, int] = (0, 0)
    gone: bool = False

    @classmethod
    def made(cls, *, setting: Any, party: str, launch: int, driver: Any, **options: Any) -> Played:
        """In the place of ``HostSession``."""
        return cls(setting, party, launch, driver, options)

    def __attrs_post_init__(self) -> None:
        self.core = Listening(self.setting.limits)
        self.driver.add(self.party, self.core, self)

    def perform(self, _effect: c.Effect) -> bool:
        """It has none."""
        return True

    def violated(self, event: c.Event, refusal: c.Refusal) -> None:
        """It refuses nothing."""
        raise AssertionError(event, refusal)

    def stepped(self) -> None:
        """Nothing follows."""

    def say(self, messages: Sequence[Any]) -> None:
        """It says that, one thing after the other."""
        for message in messages:
            self.driver.give("supervisor", c.Received(HOSTS, message))
            if isinstance(message, m.SessionEnded):
                self.leave()

    def leave(self) -> None:
        """It has ended."""
        self.gone = True
        self.driver.remove(self.party)

    def give_up(self) -> None:
        """There is no process to end."""

    async def how_it_ended(self) -> str:
        """Nobody wants to know."""
        return ""


@define(eq=False)
class Supervising:
    """See the module."""

    system: System
    party: Party = field(kw_only=True)
    parties: Parties = field(init=False)
    stage: Unjudged = field(init=False)
    calls: dict[str, Call] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.parties = Parties(self.system)
        config = self.parties.config("supervisor")
        setup = Setup(persistent=config.persistent, limits=longer(Limits(), **counts(config.limits)))
        with self._prepared():
            self.stage = Unjudged(setup, schedule=Held())  # type: ignore[arg-type]
        self.stage.backend._driver.on_step = self._note

    def _note(self, party: str, core: Any, event: c.Event, _step: c.Step) -> None:
        if party == "supervisor":
            self.parties.took(party, core, event)

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        with cast(self.party), swapped((backends, "HostSession", Played.made)):
            yield

    def perform(self, step: TraceStep, ahead: Sequence[TraceStep]) -> bool:
        """See ``Conductor``."""
        del ahead  # nothing here is done for what comes after it
        party, _, what = step.action.name.partition(".")
        with self._prepared():
            if step.action.kind is ActionKind.TIMER:
                self._fire(step.reactions[0].variant)
            elif party == "callers":
                self._call(what)
            elif party == "hosts":
                launch, _, what = what.partition(" ")
                self._host(int(launch)).say(HAPPENS[what][1](int(launch)))
            else:
                raise CannotPerform(step.action.name)
            self.stage.settle()
        return True

    def _host(self, launch: int) -> Any:
        found = self.stage.backend._hosts.get(launch)
        if found is None:
            raise CannotPerform(f"there is no session {launch}")
        return found

    def _fire(self, variant: Any) -> None:
        try:
            due(self.stage.backend._driver, "supervisor", variant[1], variant[2], self.stage.stepper.clock.now)
        except KeyError:
            raise CannotPerform(f"timer {variant[1]} does not run") from None

    def _call(self, what: str) -> None:
        stage = self.stage
        if what.startswith("give up "):
            call = self.calls.get(what.removeprefix("give up "))
            if call is None or call.done:
                raise CannotPerform("nobody waits")
            call.give_up()
            return
        if what == "start":
            self.calls[what] = stage.enter()
            stage.stepper.settle()
            return
        calls = stage.backend._calls
        if calls is None:
            raise CannotPerform("the backend was not entered")
        number, payload = NUMBERS[what], ARGUMENTS if what == "execute" else None
        made = stage.call(what, partial(calls.call, what, payload, number=number))
        stage.stepper.settle()
        if isinstance(made.error, Misuse):
            raise CannotPerform(f"{what}() is refused: {made.error}") from made.error
        self.calls[what] = made

    def differences(self, steps: Sequence[TraceStep], state: State) -> list[str]:
        """See ``Conductor``."""
        return self.parties.differences(steps, state)

    def close(self) -> None:
        """The hosts play no end: it is as if the runtime had broken down."""
        self.drop()

    def drop(self) -> None:
        """See ``Conductor``."""
        stage = self.stage
        if stage.stepper.over:
            return
        with self._prepared():
            stage.backend._break_down(RuntimeFault("the run is dropped"))
            if stage.entered is not None and stage.left is None:
                stage.leave(by_error=True)
            stage.stepper.finish(stage.stepper.clock.now)
            stage.close()
        stage.stepper.drop()
