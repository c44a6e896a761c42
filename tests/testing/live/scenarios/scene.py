"""A scene: the live stage, with words for what a short play says of it.

Frames wait on their connections until they are let through. ``flow`` lets all of them through, one by one; those whose names are in
``held`` go on waiting, those in ``lost`` never arrive. A name may say which way, as ``"Heartbeat to host"``; ``"* to host"`` is any.
Time passes only in ``wait``. Everything that is done is settled and judged, as on a walk, and what comes to its end is closed and looked
after for what it left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from attrs import define, evolve, field

from troth.runtime.sim.faults import DOWN, UP, Direction
from troth.runtime.wire.codec import encode
from troth.spec.core import Message, Step
from troth.testing.coverage import guard_name
from troth.testing.live.actions import HUGE_BYTES, LARGE_BYTES
from troth.testing.live.calling import Call
from troth.testing.live.lines import Frame, Line, heard
from troth.testing.live.parties import Shadow
from troth.testing.live.recording import Recording
from troth.testing.live.seats import Seat
from troth.testing.live.stage import LIFE_S, Setup, Stage

Place: TypeAlias = tuple[Line, Direction, int]
WAYS = {UP: "host", DOWN: "trainer"}
"""Who reads what goes that way."""


def small(number: int = 0) -> Any:
    """A payload that rides in its message."""
    return {"n": number}


def large(number: int = 0) -> Any:
    """One that is fetched."""
    return {"w": np.full(LARGE_BYTES // 8, number, dtype=np.int64)}


def huge(number: int = 0) -> Any:
    """One that takes more room than a connection has."""
    return {"w": np.full(HUGE_BYTES // 8, number, dtype=np.int64)}


@define(eq=False)
class Scene:
    """See the module."""

    setup: Setup = field(factory=Setup)
    forged: bool = False
    """Frames are written in it that no party has sent: what checks traces would not believe it."""
    held: set[str] = field(factory=set)
    lost: set[str] = field(factory=set)
    stage: Stage = field(init=False)
    fired: set[str] = field(factory=set, init=False)
    """Rows, ignores and refusals that were taken, and the answers of guards, by name."""
    says: int = field(default=0, init=False)
    """What fickle trainers say; see ``Fickle``."""

    def __attrs_post_init__(self) -> None:
        self.stage = Stage(self.setup, recording=Recording(checked=not self.forged))
        self.stage.says = lambda bound: min(self.says, bound - 1)

    # -- who there is --------------------------------------------------------------------------------------------------

    @property
    def seat(self) -> Seat:
        """The trainer that came last."""
        return self.stage.seats[-1]

    @property
    def now(self) -> float:
        """Seconds since it began."""
        return self.stage.stepper.clock.now

    def state(self, party: str, machine: str, *key: Any) -> Any:
        """Where a machine is, by the model; ``trainer``, or a host by its name."""
        parties = self.seat.side.parties if party == "trainer" else self.stage.judge.host.parties
        return parties[party].core.state(machine, *key)

    # -- frames --------------------------------------------------------------------------------------------------------

    def waiting(self) -> Iterator[tuple[Place, str, str]]:
        """The frames that wait, with their names in both forms."""
        for line in list(self.stage.judge.lines):
            for way in (UP, DOWN):
                for index, data in enumerate(list(line.sim.pipes[way].waiting)):
                    name = Frame.of(data).name if heard(data) else "piece"
                    yield (line, way, index), name, f"{name} to {WAYS[way]}"

    def find(self, name: str) -> Place | None:
        """The first frame of that name that waits."""
        return next((place for place, *names in self.waiting() if name in names), None)

    def seek(self, name: str) -> Place:
        """The same; it must be there."""
        found = self.find(name)
        assert found is not None, f"no {name} waits, but {[names[1] for _, *names in self.waiting()]}"
        return found

    def waits(self, name: str) -> bool:
        """Whether such a frame waits."""
        return self.find(name) is not None

    def settle(self) -> None:
        """Let happen what can."""
        self.stage.settle()

    def deliver(self, *names: str) -> None:
        """These arrive, one after the other, whatever waits before them."""
        for name in names:
            self.stage.let(*self.seek(name))
            self.settle()

    def together(self, *names: str) -> None:
        """These arrive in one moment."""
        for name in names:
            self.stage.let(*self.seek(name))
        self.settle()

    def copy(self, name: str) -> None:
        """It arrives, and another one like it waits on."""
        self.stage.let(*self.seek(name), stays=True)
        self.settle()

    def lose(self, name: str) -> None:
        """It never arrives."""
        line, way, index = self.seek(name)
        line.sim.pipes[way].lose(index)
        self.settle()

    def flow(self, until: Callable[[], Any] = lambda: False) -> None:
        """Everything arrives but what is held or lost, until nothing waits, or ``until`` says so."""
        while not until():
            found = next((item for item in self.waiting() if not self.held.intersection((*item[1:], f"* to {WAYS[item[0][1]]}"))), None)
            if found is None:
                return
            (line, way, index), *names = found
            if self.lost.intersection(names):
                line.sim.pipes[way].lose(index)
            else:
                self.stage.let(line, way, index)
            self.settle()

    def wait(self, seconds: float, until: Callable[[], Any] = lambda: False) -> None:
        """Time passes, and frames flow, until then, or until ``until`` says so."""
        end = self.now + seconds
        self.flow(until)
        while self.now < end and not until() and self.stage.stepper.pass_time(end):
            self.stage.judged()
            self.flow(until)

    def wait_for(self, until: Callable[[], Any], seconds: float = LIFE_S) -> None:
        """The same; it must come to that."""
        self.wait(seconds, until)
        assert until(), "it has not come to that"

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def line(self, role: str = "control") -> Line:
        """The newest connection of that role that is up."""
        found = [line for line in self.stage.judge.lines if line.sim.role == role and line.alive]
        return found[-1]

    def forge(self, message: Message, *, to: str, role: str = "control", beside: Any = None) -> None:
        """A frame arrives that no party has sent: whoever holds the token can write it."""
        self.put(encode(message, beside), to=to, role=role)
        self.settle()

    def put(self, data: bytes, *, to: str, role: str = "control") -> None:
        """Its bytes come behind what was let through, and the judge knows of them as of any that arrive."""
        assert self.forged, "a scene in which frames are forged must say so"
        line, way = self.line(role), UP if to == "host" else DOWN
        line.sim.pipes[way].insert(data)
        if role == "data":
            self.stage.judge.transfers.arrived(line, way, Frame.of(data))
        else:
            line.ways[way].arrived.append(Frame.of(data))

    def cut(self, role: str = "control") -> None:
        """A connection breaks."""
        self.line(role).sim.cut()
        self.settle()

    def kill(self) -> None:
        """The trainer is killed."""
        self.stage.kill(self.seat)
        self.settle()

    def orphan(self) -> None:
        """The trainer is told that its owner is gone."""
        self.stage.orphan(self.seat)
        self.stage.settle(look=True)

    def stick(self) -> None:
        """No signal ends the trainer any more."""
        self.seat.process.stuck = self.seat.stuck = True

    def unstick(self) -> None:
        """Signals end it again."""
        self.stage.processes.unstick(self.seat.launch.hex())
        self.settle()

    def lose_guardian(self) -> None:
        """The guardian dies."""
        self.stage.judge.orphaned = self.stage.judge.deaf = True
        self.stage.background(self.stage.processes.lose_guardian)
        self.settle()

    def fail_spawn(self) -> None:
        """The next process cannot be started."""
        self.stage.judge.spawn_fails += 1
        self.stage.processes.fail_spawns("no such file")

    def slow(self, *, spawn_s: float = 0.0, heard_s: float = 0.0) -> None:
        """From now on a process takes so long to start, and so much longer to be heard of."""
        processes, judge = self.stage.processes, self.stage.judge
        processes.spawn_delay_s = judge.spawn_delay_s = spawn_s
        processes.heard_delay_s = judge.heard_delay_s = heard_s

    # -- users ---------------------------------------------------------------------------------------------------------

    def enter(self) -> Call:
        """The application enters its block."""
        return self._called(self.stage.enter())

    def launch(self) -> Call:
        """The same, until its trainer's process is there."""
        entered = self.enter()
        self.wait_for(lambda: self.stage.seats)
        return entered

    def leave(self, *, by_error: bool = False) -> Call:
        """It leaves it."""
        return self._called(self.stage.leave(by_error=by_error))

    def execute(self, tree: Any = None) -> Call:
        """It has a task done."""
        tree = small() if tree is None else tree
        return self._called(self.stage.execute(tree, large="w" in tree))

    def abort(self) -> Call:
        """It aborts."""
        return self._called(self.stage.call("abort", self.stage.backend.abort))

    def finalize(self) -> Call:
        """It finalizes, inside of its block."""
        return self._called(self.stage.call("finalize", self.stage.backend.finalize))

    def init(self, *, passive: bool = False) -> Call:
        """The trainer joins."""
        make = partial(self.seat.session.init, control_rank=not passive)
        return self._called(self.stage.seat_call(self.seat, "init", make, passive=passive))

    def receive(self) -> Call:
        """It waits for a task."""
        return self._called(self.stage.seat_call(self.seat, "receive", self.seat.session.receive))

    def send(self, tree: Any = None) -> Call:
        """It sends a result."""
        tree = small() if tree is None else tree
        make = partial(self.seat.session.send, tree)
        return self._called(self.stage.seat_call(self.seat, "send", make, tree=tree, large="w" in tree))

    def shutdown(self) -> Call:
        """It ends its session."""
        return self._called(self.stage.seat_call(self.seat, "shutdown", self.seat.session.shutdown))

    def exit(self, code: int = 0) -> None:
        """Its program ends."""
        self.stage.exit(self.seat, code)
        self.settle()

    def give_up(self, call: Call) -> None:
        """Whoever made that call waits no more."""
        call.give_up()
        self.settle()

    def _called(self, call: Call) -> Call:
        self.settle()
        return call

    # -- what plays begin and end with ---------------------------------------------------------------------------------

    def join(self) -> None:
        """There is a session."""
        entered = self.launch()
        self.init()
        self.wait_for(lambda: entered.done)
        self.flow()

    def hand(self, tree: Any = None) -> Call:
        """The trainer's user holds a task. The call that waits for its result."""
        executed = self.execute(tree)
        received = self.receive()
        self.wait_for(lambda: received.done)
        self.flow()
        return executed

    def finish(self) -> None:
        """All is brought to its end, and nothing may be left."""
        stage = self.stage
        self.held, self.lost = set(), set()
        self.flow()
        entered = stage.entered
        if entered is not None and entered.done and entered.error is None and not entered.given_up and stage.left is None:
            self.leave()
        end = self.now + LIFE_S
        while (not stage.over or stage.living) and self.now < end:
            self.flow()
            for seat in stage.living:
                if seat.process.stuck:
                    stage.processes.unstick(seat.launch.hex())
                if seat.session.over:
                    stage.exit(seat, 0)
            self.settle()
            self.flow()
            if not (stage.over and not stage.living) and not self.stage.stepper.pass_time(end):
                break
            stage.judged()
        stage.close()

    def note(self, shadow: Shadow, step: Step) -> None:
        """A party took a step."""
        self.fired.update(f"{shadow.kind}.{row}" for row in step.rows)
        self.fired.update(guard_name(shadow.kind, atom, value=value) for atom, value in step.guards)
        if step.refusal is not None:
            self.fired.add(f"{shadow.kind}.{step.refusal.row}")


def changed(frame: bytes, beside: dict[str, Any], **derived: Any) -> bytes:
    """A frame as it was written, but for that of what rides beside its message."""
    arrived = Frame.of(frame).decoded()
    return encode(arrived.message(**derived), evolve(arrived.beside, **beside))
