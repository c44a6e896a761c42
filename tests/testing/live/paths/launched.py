"""Worlds of a launched session, on the whole runtime: the real backend with its supervisor and host, the real trainer and its process.

What drives a world's host by messages of a supervisor is here the application that uses the backend; its guardian, its network and its
scheduler are held in the conductor's hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import trio
from attrs import define, field

from tests.testing.live.paths.conducting import CannotPerform, Parties
from tests.testing.live.paths.effects import Effects
from tests.testing.live.paths.holding import Held, due, longer
from tests.testing.live.paths.leading import HUNG_UP, NUMBERS, OVER, at_once, counts
from tests.testing.live.paths.users import Receiving, Unjudged
from tests.testing.live.paths.wires import Wires
from troth.models.system import ActionKind, State, System
from troth.models.trace import Reaction, TraceStep
from troth.runtime.errors import RuntimeFault
from troth.spec import core as c
from troth.testing.live.calling import Call
from troth.testing.live.parties import Wrong
from troth.testing.live.seats import Seat
from troth.testing.live.stage import Setup, Stage

LARGE = {"w": np.arange(5000, dtype=np.int64)}
"""A payload that does not ride in its message, of one chunk."""
SMALL = {"n": 1}
OTHER = {"n": 2}
OTHER_LARGE = {"w": np.arange(1, 5001, dtype=np.int64)}
REDIALS_S = 10.0


@define(eq=False)
class Launched:
    """See the module. ``judged=False`` for a runtime whose tables were changed."""

    system: System
    judged: bool = True
    parties: Parties = field(init=False)
    stage: Stage = field(init=False)
    held: Held = field(factory=Held, init=False)
    heard: trio.Event = field(factory=trio.Event, init=False)
    """The guardian may say that the process has started."""
    exits: bool = field(default=False, init=False)
    """The process was told to end."""
    _together: bool = field(default=False, init=False)
    """The last action has brought the next one about, too."""
    thread: Receiving = field(init=False)
    wires: Wires = field(init=False)
    effects: Effects = field(init=False)
    calls: dict[str, Call] = field(factory=dict, init=False)
    large: bool = field(init=False)
    """Whether results are too large to ride in their messages."""

    def __attrs_post_init__(self) -> None:
        self.parties = Parties(self.system)
        self.large = any(name.startswith("receiver") for name in self.parties.indices)
        setup = self._setup()
        self.stage = (Stage if self.judged else Unjudged)(setup, schedule=self.held)  # type: ignore[arg-type]
        self.wires, self.thread = Wires(self.system, self.stage), Receiving(self.stage, self.held)
        self.effects = Effects(self.stage)
        self._listen(self.stage.backend._driver, self._host_party)
        processes = self.stage.processes
        spawn = processes.spawn

        async def spawned(launch: Any) -> int:
            pid = await spawn(launch)
            await self.heard.wait()
            return pid

        processes.spawn = spawned  # type: ignore[method-assign]
        self.stage.judge.heard_delay_s = 1e9

    def _setup(self) -> Setup:
        """A stage for the configurations of the world."""
        host, trainer = self.parties.config("host"), self.parties.config("trainer")
        if not host.launched:
            raise CannotPerform("an attached pair: the runtime launches its trainers")
        return Setup(
            persistent=not trainer.one_shot,
            fail_unresponsive=host.fail_unresponsive,
            limits=longer(type(host.limits)(), **counts(host.limits)),
            takes_term=True,
        )

    # -- who is who ----------------------------------------------------------------------------------------------------

    def _listen(self, driver: Any, name_of: Any, seat: Seat | None = None) -> None:
        noted = driver.on_step
        self.effects.listened(driver, seat)

        def note(party: str, core: Any, event: c.Event, step: c.Step) -> None:
            noted(party, core, event, step)
            self.effects.took(driver, party, event, step)
            name = name_of(party)
            if name in self.parties.indices:
                self.parties.took(name, core, event)

        driver.on_step = note

    def _host_party(self, party: str) -> str:
        head, *rest = party.split("/")
        if head == "supervisor":
            return "supervisor"
        return "host" if not rest else self._receiver(int(rest[1]))

    def _receiver(self, seq: int) -> str:
        return "receiver 0" if self.wires.wired else f"receiver {seq}.0"

    @property
    def seat(self) -> Seat:
        """The trainer's process."""
        return self.stage.seats[0]

    @property
    def _linked(self) -> bool:
        """Whether both sides have a control link."""
        seats = self.stage.seats
        latest = self.stage.backend._latest
        if not seats or latest is None:
            return False
        return seats[0].session._links.control.peer is not None and latest._links.control.peer is not None

    # -- performing ----------------------------------------------------------------------------------------------------

    def perform(self, step: TraceStep, ahead: Sequence[TraceStep]) -> bool:
        """See ``Conductor``."""
        self.thread.give_up_ahead(step, ahead)
        action = step.action
        match action.kind:
            case ActionKind.DELIVER:
                self.wires.deliver(action.name.removesuffix(" delivers"))
            case ActionKind.LOSE:
                self.wires.lose(action.name.removesuffix(" loses"), step.label.variants[-1])
            case ActionKind.CUT:
                line = self.wires.line("control")
                if line is None:
                    raise CannotPerform(f"{action.name}: there is no connection")
                line.sim.cut()
            case ActionKind.CONNECT:
                self._redial()
            case ActionKind.TIMER:
                self._fire(step.reactions[0])
            case ActionKind.CALL:
                party, _, what = action.name.rpartition(".") if "." in action.name else ("", "", action.name)
                self._call(party, what, step)
            case _:
                raise CannotPerform(f"{action.name}: {action.kind.value} of a party")
        self._settle()
        self._together = self._at_once(step) is not None
        return not self._together

    @staticmethod
    def _at_once(step: TraceStep) -> str | None:
        return at_once(step)

    def _settle(self) -> None:
        self.stage.settle()
        for seat in self.stage.seats:
            if seat.session._driver.on_step == seat.side.note:
                self._listen(seat.session._driver, lambda party: party, seat)
        for seat in self.stage.seats:
            seat.process.stuck = not seat.gone and not self.exits  # it ends when the path says so, whatever it is sent
            seat.stuck = True
        if self.thread.resolved():
            self.stage.settle()
        while self.wires.pump():
            self.stage.settle()
        self.wires.merge()

    def _redial(self) -> None:
        """The trainer dials again when its pause is over."""
        until = self.stage.stepper.clock.now + REDIALS_S
        while not self._linked:
            if self.stage.stepper.next_s > until or not self.stage.pass_time():
                raise CannotPerform("the link does not come back")

    def _fire(self, reaction: Reaction) -> None:
        variant: Any = reaction.variant
        _, timer, key = variant[:3]
        name = reaction.name
        if name == "trainer":
            driver, party, side = self.seat.session._driver, "trainer", self.seat.side
        else:
            driver, side = self.stage.backend._driver, self.stage.judge.host
            found = [party for party in driver if self._host_party(party) == name]
            if not found:
                raise CannotPerform(f"{name} is gone")
            party = found[-1]
        now = self.stage.stepper.clock.now
        try:
            generation = due(driver, party, timer, key, now)
        except KeyError:
            raise CannotPerform(f"{name}: timer {timer} {key} does not run") from None
        shadow = side.parties.get(party)
        if shadow is not None:
            shadow.timers[timer, key] = now, generation

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, party: str, what: str, step: TraceStep) -> None:
        if party.startswith("receiver") or party == "bytes":
            self.wires.transfer(party, what)
        elif party == "host":
            self._host_call(what)
        elif party == "trainer":
            self._trainer_call(what)
        else:
            raise CannotPerform(step.action.name)

    def _host_call(self, what: str) -> None:
        stage = self.stage
        match what:
            case "start":
                stage.enter()
                stage.stepper.settle()
            case "process starts":
                self.heard.set()
            case "process exits":
                self._exit()
            case "execute":
                self.calls["execute"] = stage.execute(SMALL)
            case "stop":
                self.calls["execute"].give_up()
            case "close":
                stage.leave(by_error=False)
            case "abort":
                stage.call("abort", stage.backend.abort)
            case _:
                raise CannotPerform(f"host.{what}")

    def _exit(self) -> None:
        """The process ends, and what it said is read for a moment."""
        self.exits = True
        self.stage.exit(self.seat, 0)
        self.stage.processes.unstick(self.seat.launch.hex())
        self._settle()
        while not any(isinstance(event, c.ProcessExited) for event in self.parties.events["host"]):
            if not self.stage.pass_time():
                raise CannotPerform("the end of the process is not reported")

    def _trainer_call(self, what: str) -> None:
        stage, seat = self.stage, self.seat
        session = seat.session
        if what in NUMBERS:
            session._calls._last = NUMBERS[what] - 1
        match what:
            case "init":
                self.calls["init"] = stage.seat_call(seat, "init", session.init)
            case "link up":
                pass  # it came with init(), in the same moment
            case "receive":
                self.thread.receive(seat)
            case "take":
                self.thread.take(taken=self._together)
            case "give up receive":
                self.thread.give_up()
            case "send" | "resend" | "other":
                self._send(other=what == "other")
            case "give up send" | "give up init":
                self.calls[what.removeprefix("give up ")].give_up()
            case "shutdown":
                stage.seat_call(seat, "shutdown", session.shutdown)
            case _:
                raise CannotPerform(f"trainer.{what}")

    def _send(self, *, other: bool) -> None:
        seat = self.seat
        tree = (LARGE, OTHER_LARGE)[other] if self.large else (SMALL, OTHER)[other]
        call = self.stage.seat_call(seat, "send", partial(seat.session.send, tree), tree=tree, large=self.large)
        if not other:
            self.calls["send"] = call

    # -- comparing -----------------------------------------------------------------------------------------------------

    def differences(self, steps: Sequence[TraceStep], state: State) -> list[str]:
        """See ``Conductor``."""
        here = {self._host_party(party) for party in self.stage.backend._driver}
        over = [name for name in self.parties.indices if name not in here and name.startswith("receiver")]
        found = self.parties.differences(steps, state, over)
        for link in ("trainer>host:control", "host>trainer:control"):
            found += self.wires.on_link(link, state, linked=self._linked)
        if found and self._hung_up():
            found.append(f"from here on the world may be no picture of the runtime: {HUNG_UP}")
        found += self.effects.differences()
        if self.judged:
            ours, theirs = self.stage.snapshots()
            if ours != theirs:
                found.append(f"the judge's cores are {ours}, and the runtime's {theirs}")
        return found

    def _hung_up(self) -> bool:
        """Whether a side whose session is over has closed the link."""
        return not self._linked and any(
            name in self.parties.cores and self.parties.cores[name].state("session").name in OVER for name in ("host", "trainer")
        )

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let everything happen that can, kill the trainer, and leave: nothing may be left behind."""
        self._end()
        found = self.effects.differences()
        if found:
            raise Wrong("effects", f"at the end: {'; '.join(found)}")

    def _end(self) -> None:
        stage = self.stage
        stage.network.faults.decide = None
        self.heard.set()
        for task in (*self.held.tasks, *self.held.waiting):
            self.held.let_go(task, stage.stepper)
        for seat in stage.seats:
            stage.processes.unstick(seat.launch.hex())
            stage.kill(seat)
        for connection in stage.network.connections:
            connection.cut()
        if stage.entered is not None and stage.left is None:
            stage.leave(by_error=True)
        stage.stepper.finish(stage.stepper.clock.now)
        while stage.entered is not None and not stage.over:
            if not stage.stepper.pass_time():
                raise Wrong("left behind", "the application does not come out of its block")
        stage.close()

    def drop(self) -> None:
        """See ``Conductor``. Nobody relies on tables any more that may be wrong: it ends as a runtime that has broken down."""
        if self.stage.stepper.over:
            return
        with suppress(Exception):
            self.stage.backend._break_down(RuntimeFault("the run is dropped"))
            self._end()
        self.stage.stepper.drop()
