"""Worlds of a launched session, on the whole runtime: the real backend with its supervisor and host, the real trainer and its process.

What drives a world's host by messages of a supervisor is here the application that uses the backend; its guardian, its network and its
scheduler are held in the conductor's hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import numpy as np
import trio
from attrs import define, field

from tests.testing.live.paths.conducting import CannotPerform, Parties, Unlike, messages_of
from tests.testing.live.paths.holding import Held, due, longer
from troth.models.links import LinkComponent, Status
from troth.models.system import ActionKind, State, System
from troth.models.trace import Reaction, TraceStep
from troth.models.worlds.protocol.reading import layout
from troth.runtime.errors import RuntimeFault
from troth.runtime.sim.faults import DOWN, UP, Direction
from troth.runtime.wire.kinds import CHUNK, Pull, PullEnd
from troth.spec import core as c
from troth.spec.limits import Limits
from troth.statemachines.host import HOST
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.trainer import TRAINER
from troth.statemachines.trainer.ledger import LedgerState
from troth.testing.live.calling import Call
from troth.testing.live.lines import Frame, Line, fields_of, same
from troth.testing.live.parties import Wrong
from troth.testing.live.seats import Seat
from troth.testing.live.stage import Setup, Stage
from troth.testing.paths import Bars

LARGE = {"w": np.arange(5000, dtype=np.int64)}
"""A payload that does not ride in its message, of one chunk."""
SMALL = {"n": 1}
OTHER = {"n": 2}
OTHER_LARGE = {"w": np.arange(1, 5001, dtype=np.int64)}
BYTES = (Pull, PullEnd)
REDIALS_S = 10.0


@define(eq=False)
class Patient(Call):
    """A call whose thread gets no turn, once it was called back, until the conductor says so."""

    task: Any = None

    def silent(self) -> bool:
        """It is held on purpose."""
        return False


class Unjudged(Stage):
    """A stage whose cores have other tables than the model that the judge goes by."""

    def judged(self) -> None:
        """Keep up with the connections, and with what died."""
        judge, found = self.judge, self.network.connections
        if self._crashed:
            raise Wrong("fault", repr(self._crashed[0]))
        judge.lines += map(Line, found[self._known :])
        self._known = len(found)
        for line in judge.lines:
            line.look()
        for side in judge.sides():
            side.records.clear()


NUMBERS = {"init": 1, "receive": 2, "send": 3, "resend": 4, "other": 4, "shutdown": 5}
"""What the worlds number the calls of a trainer's user. Which number a call has is all the same to it."""


USES = ("trainer.take", "trainer.receive", "trainer.give up receive")
"""What the script does about a task that was handed to it."""


def hands_over(step: TraceStep) -> bool:
    """Whether a task is handed to whoever waits in receive()."""
    found = [reaction for reaction in step.reactions if reaction.name == "trainer"]
    handed = LedgerState.HANDED.name
    return bool(found) and handed in str(found[-1].after) and handed not in str(found[0].before)


def at_once(step: TraceStep) -> str | None:
    """The action that comes in the same moment, so that nothing comes in between. A receive() that finds a task takes it; and init() has
    the trainer dial, whose link comes up."""
    if step.action.name == "trainer.init" and not any(isinstance(reaction.operation, c.LinkUp) for reaction in step.reactions):
        return "trainer.link up"
    return "trainer.take" if step.action.name == "trainer.receive" and hands_over(step) else None


NOBODY_WAITS = "CALL_CANCELLED of receive() comes of a caller that gives up, and nobody is in receive()"
DOOR_CLOSED = "the trainer dials a host that has hung up for good: it is refused at the door, and no link comes up"
HUNG_UP = "a side whose session is over has closed the link, and what is said on it afterwards does not arrive; in the world it does"
OVER = ("CLOSING", "CLOSED", "ABORTED")
NO_LINK = "a link is cut that nobody has opened yet: there is no connection to cut"


def bars(system: System) -> Bars:
    """What the runtime cannot be led along. Each of these is something that a world allows because it does no harm there."""
    places = {table.component.name: index for index, table in enumerate(system.components)}
    trainer, network = places["trainer"], places.get("network")

    def barred(state: State, step: TraceStep) -> str | None:
        local: Any = system.components[trainer].states[state[trainer]]
        if step.action.name == "trainer.give up receive" and not receiving(local):
            return NOBODY_WAITS
        if network is not None and step.action.kind is ActionKind.CUT:
            opened: Any = system.components[network].states[state[network]]
            if len(opened.state) < 2:
                return NO_LINK
        for reaction in step.reactions:
            before: Any = reaction.before
            if reaction.name == "host" and isinstance(reaction.operation, c.LinkUp) and hung_up(before):
                return DOOR_CLOSED
        return None

    return barred


def receiving(trainer: Any) -> bool:
    """Whether somebody is in receive(), by the state of a world's trainer."""
    slots = trainer.state[0]
    calls, ledger = (slots[layout(TRAINER).places[name]] for name in ("calls", "ledger"))
    return any(slot[0] == "receive" for slot in calls) or any(slot[1] == LedgerState.HANDED.name for slot in ledger)


def hung_up(host: Any) -> bool:
    """Whether a world's host has no session any more."""
    session = host.state[0][layout(HOST).places["session"]]
    return session[0] in (HostSessionState.CLOSING.name, HostSessionState.CLOSED.name)


def counts(limits: Limits) -> dict[str, int]:
    """Those of the limits that are no durations."""
    return {f.name: getattr(limits, f.name) for f in attrs.fields(Limits) if f.metadata["unit"] == "count"}


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
    receives: Patient | None = field(default=None, init=False)
    calls: dict[str, Call] = field(factory=dict, init=False)
    merges: bool = field(init=False)
    wired: bool = field(init=False)
    """Whether the world has the links between receivers and sources, and the bytes on them."""
    large: bool = field(init=False)
    """Whether results are too large to ride in their messages."""

    def __attrs_post_init__(self) -> None:
        self.parties = Parties(self.system)
        self.large = any(name.startswith("receiver") for name in self.parties.indices)
        setup = self._setup()
        self.stage = (Stage if self.judged else Unjudged)(setup, schedule=self.held)  # type: ignore[arg-type]
        self.merges = any(isinstance(t.component, LinkComponent) and t.component.merges for t in self.system.components)
        self.wired = any(t.component.name == "bytes" for t in self.system.components)
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

    def _listen(self, driver: Any, name_of: Any) -> None:
        noted = driver.on_step

        def note(party: str, core: Any, event: c.Event, step: c.Step) -> None:
            noted(party, core, event, step)
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
        return "receiver 0" if self.wired else f"receiver {seq}.0"

    @property
    def seat(self) -> Seat:
        """The trainer's process."""
        return self.stage.seats[0]

    def _lines(self, role: str) -> list[Line]:
        return [line for line in self.stage.judge.lines if line.sim.role == role and (line.alive or self._waits(line))]

    def _waits(self, line: Line) -> bool:
        return any(pipe.waiting for pipe in line.sim.pipes.values())

    def _line(self, role: str) -> Line | None:
        found = self._lines(role)
        return found[-1] if found else None

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
        self._give_up_ahead(step, ahead)
        action = step.action
        match action.kind:
            case ActionKind.DELIVER:
                self._deliver(action.name.removesuffix(" delivers"))
            case ActionKind.LOSE:
                self._lose(action.name.removesuffix(" loses"), step.label.variants[-1])
            case ActionKind.CUT:
                line = self._line("control")
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
                self._listen(seat.session._driver, lambda party: party)
        for seat in self.stage.seats:
            seat.process.stuck = seat.stuck = not seat.gone and not self.exits  # it ends when the path says so, whatever it is sent
        while self._pump():
            self.stage.settle()
        self._merge()

    def _pump(self) -> bool:
        """Let through what a world without data links has arrive within the same step."""
        if self.wired:
            return False
        moved = False
        for line in self._lines("data"):
            for way in (UP, DOWN):
                waiting = line.sim.pipes[way].waiting
                last = max((at for at, data in enumerate(waiting) if self._instant(data)), default=-1)
                for _ in range(last + 1):  # what was written before it comes before it
                    self.stage.let(line, way)
                    moved = True
        return moved

    def _instant(self, data: bytes) -> bool:
        frame = Frame.of(data)
        return frame.code != CHUNK and fields_of(frame)[0] not in BYTES

    def _merge(self) -> None:
        """What is said again while it is on its way is lost, where the world has it so."""
        if not self.merges:
            return
        for line in self._lines("control"):
            for pipe in line.sim.pipes.values():
                for at in range(len(pipe.waiting) - 1, -1, -1):
                    earlier = [fields_of(Frame.of(data)) for data in pipe.waiting[:at]]
                    if fields_of(Frame.of(pipe.waiting[at])) in earlier:
                        pipe.lose(at)

    def _way(self, link: str) -> tuple[str, Direction]:
        if link.startswith("receiver"):
            return "data", DOWN
        if link.startswith("exchange"):
            return "data", UP
        return "control", UP if link.startswith("trainer") else DOWN

    def _frames(self, link: str) -> tuple[Line, Direction, list[int]]:
        """Where the frames of a link wait, and which of those that wait there are its own. Raises ``CannotPerform``."""
        role, way = self._way(link)
        line = self._line(role)
        if line is None:
            raise CannotPerform(f"{link}: there is no connection")
        waiting = line.sim.pipes[way].waiting
        return line, way, [at for at, data in enumerate(waiting) if role == "control" or self._instant(data)]

    def _deliver(self, link: str) -> None:
        line, way, places = self._frames(link)
        if not places:
            raise CannotPerform(f"{link}: nothing is on its way")
        self.stage.let(line, way, places[0])

    def _lose(self, link: str, message: Any) -> None:
        line, way, places = self._frames(link)
        waiting = line.sim.pipes[way].waiting
        found = [at for at in places if same(message, fields_of(Frame.of(waiting[at])))]
        if not found:
            raise CannotPerform(f"{link}: {message} is not on its way")
        line.sim.pipes[way].lose(found[0])

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
            self._bytes(party, what)
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
        tree, other = (LARGE, OTHER_LARGE) if self.large else (SMALL, OTHER)
        match what:
            case "init":
                self.calls["init"] = stage.seat_call(seat, "init", session.init)
            case "link up":
                pass  # it came with init(), in the same moment
            case "receive":
                self._receive()
            case "take":
                self._take()
            case "give up receive":
                self._give_up_receive()
            case "send" | "resend":
                self.calls["send"] = stage.seat_call(seat, "send", partial(session.send, tree), tree=tree, large=self.large)
            case "other":
                stage.seat_call(seat, "send", partial(session.send, other), tree=other, large=self.large)
            case "give up send" | "give up init":
                self.calls[what.removeprefix("give up ")].give_up()
            case "shutdown":
                stage.seat_call(seat, "shutdown", session.shutdown)
            case _:
                raise CannotPerform(f"trainer.{what}")

    def _receive(self) -> None:
        seat = self.seat
        if self.receives is not None and self.receives.task in self.held.waiting:
            self._take()  # the task that was handed over was cancelled meanwhile: nothing is taken, and it waits on
            return

        async def receive() -> Any:
            call.task = trio.lowlevel.current_task()
            self.held.tasks.add(call.task)
            return await seat.session.receive()

        call = self.receives = Patient("receive", receive, ["receive"])
        seat.side.calls.append(call)
        if seat.nursery is None:
            raise CannotPerform("the trainer's process is gone")
        self.stage.stepper.start(call.run, nursery=seat.nursery)

    def _take(self) -> None:
        if self.receives is None:
            raise CannotPerform("nobody has received")
        if self.receives.done:
            if not self._together:
                raise CannotPerform("its receive() has returned")
            return  # it was there already, and taken at once
        if self.receives.task not in self.held.waiting:
            raise CannotPerform("its receive() was handed nothing")
        self.held.let_go(self.receives.task, self.stage.stepper)
        self.stage.settle()
        if not self.receives.done:
            self.held.tasks.add(self.receives.task)

    def _give_up_ahead(self, step: TraceStep, ahead: Sequence[TraceStep]) -> None:
        """A caller that gives up in the very moment in which a task is handed to it has given up before: else it would have the task.

        So where the path has that, it gives up now, and does not get its turn to say so before the path says so.
        """
        call = self.receives
        if call is None or call.done or call.given_up or step.action.name.startswith("trainer."):
            return
        uses = (later.action.name for later in ahead if later.action.name in USES)
        if next(uses, "") == "trainer.give up receive" and hands_over(step):
            call.give_up()

    def _give_up_receive(self) -> None:
        call = self.receives
        if call is None or call.done:
            raise CannotPerform("nobody waits in receive()")
        if not call.given_up:
            call.give_up()
        self.held.let_go(call.task, self.stage.stepper)

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def _bytes(self, party: str, what: str) -> None:
        if party == "bytes":
            number, _, what = what.partition(" ")
            if number != "0":
                raise CannotPerform("a receiver that is elsewhere")
        if what not in ("transfer complete", "transfer failed", "arrives", "breaks off"):
            raise CannotPerform(f"{party}.{what}")
        line = self._line("data")
        if line is None:
            raise CannotPerform("there is no data link")
        self._let_bytes(line, DOWN)
        self.stage.settle()
        if what in ("transfer failed", "breaks off"):
            self._corrupt(line)
        self._let_bytes(line, UP)

    def _let_bytes(self, line: Line, way: Direction) -> None:
        pipe = line.sim.pipes[way]
        while (at := next((at for at, data in enumerate(pipe.waiting) if not self._instant(data)), None)) is not None:
            self.stage.let(line, way, at)

    def _corrupt(self, line: Line) -> None:
        """The last byte of each chunk is another one: what came is not what was announced."""
        pipe = line.sim.pipes[UP]
        pipe.waiting[:] = [data if self._instant(data) else self._spoiled(data) for data in pipe.waiting]

    @staticmethod
    def _spoiled(data: bytes) -> bytes:
        return data[:-1] + bytes([data[-1] ^ 1]) if Frame.of(data).code == CHUNK else data

    # -- comparing -----------------------------------------------------------------------------------------------------

    def differences(self, steps: Sequence[TraceStep], state: State) -> list[str]:
        """See ``Conductor``."""
        here = {self._host_party(party) for party in self.stage.backend._driver}
        over = [name for name in self.parties.indices if name not in here and name.startswith("receiver")]
        found = self.parties.differences(steps, state, over)
        for link in ("trainer>host:control", "host>trainer:control"):
            found += self._on_link(link, state)
        if found and self._hung_up():
            raise Unlike(HUNG_UP)
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

    def _on_link(self, link: str, state: State) -> list[str]:
        status, wanted = messages_of(self.system, state, link)
        line = self._line("control")
        waiting = [] if line is None else line.sim.pipes[self._way(link)[1]].waiting
        here = [fields_of(Frame.of(data)) for data in waiting]
        found = []
        if len(here) != len(wanted) or not all(map(same, wanted, here)):
            found.append(f"{link} carries {[(kind.__name__, fields) for kind, fields in here]}, and in the model {list(wanted)}")
        if status is Status.DOWN and self._linked:
            found.append(f"{link} is up, and in the model it is down")
        return found

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let everything happen that can, kill the trainer, and leave: nothing may be left behind."""
        self._end()

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
        with suppress(Exception):
            self.stage.backend._break_down(RuntimeFault("the run is dropped"))
            self._end()
        self.stage.stepper.drop()
