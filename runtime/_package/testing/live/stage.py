"""The real host and its real trainers, over the ports in memory, run by hand, with a judge that looks after every step.

A stage is one life of a backend: it is entered, has its trainers do tasks, and is left. What its users do, what the network and the
processes do to it and in which order its tasks run is said from outside, one step at a time.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any

import trio
from attrs import define, evolve, field, fields, frozen

from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import alone
from troth.runtime.processes.bootstrap import BOOTSTRAP_VARIABLE, parse
from troth.runtime.randomness import RANDOM_SOURCE
from troth.runtime.sim.faults import Direction, Faults, Hold, Seen
from troth.runtime.sim.files import SimFiles
from troth.runtime.sim.network import CAPACITY_BYTES, SimNetwork
from troth.runtime.sim.processes import SimProcess, SimProcesses
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.besides import Credentials, LogBeside, Terms
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import SupervisorConfig, TrainerConfig
from troth.testing.live.calling import Call
from troth.testing.live.checks import dialled, owners
from troth.testing.live.fickle import Fickle
from troth.testing.live.judging import Judge
from troth.testing.live.lines import Frame, Line, heard
from troth.testing.live.parties import Shadow, Side, Wrong
from troth.testing.live.recording import Recording
from troth.testing.live.seats import Seat
from troth.testing.live.stepping import Shuffled, Stepper

HOLD = Hold()
CREDENTIALS = Credentials("token", "signature")
LIFE_S = 4000.0
"""What a life may take to end, in virtual seconds, before it is said to hang. Above the sum of all limits."""


class Left(Exception):
    """An application that leaves its block by an exception."""


@frozen
class Setup:
    """How a stage is set."""

    persistent: bool = True
    fail_unresponsive: bool = False
    limits: Limits = field(factory=Limits)
    capacity: int = CAPACITY_BYTES
    """Bytes that a direction of a connection holds."""
    most_at_once: int = 2**63
    """Bytes that a read gives at most."""
    takes_term: bool = False
    """Trainers do not die of TERM."""
    fickle: bool = False
    """Trainers are not always what their launch expects."""
    secure: bool = False
    """Trainers are lent credentials."""
    bytes_seed: int = 0
    """What ids, tokens and nonces are made of."""

    @property
    def disagrees(self) -> bool:
        """Whether trainers begin with other terms than their host grants them, which then must not matter. One seed in four says so."""
        return self.bytes_seed % 4 == 3

    def begins_with(self, limits: Limits) -> Limits:
        """What a trainer begins with that was given those limits."""
        if not self.disagrees:
            return limits
        return evolve(limits, **{field.name: 2 * getattr(limits, field.name) for field in fields(Terms)})


def _hold(_seen: Seen) -> Hold:
    return HOLD


@define(eq=False)
class Stage:
    """See the module."""

    setup: Setup = field(factory=Setup)
    schedule: Shuffled = field(factory=Shuffled)
    recording: Recording | None = None
    """What takes its trace, if somebody wants that."""
    network: SimNetwork = field(init=False)
    files: SimFiles = field(factory=SimFiles, init=False)
    processes: SimProcesses = field(init=False)
    stepper: Stepper = field(init=False)
    backend: ExternalProcess = field(init=False)
    judge: Judge = field(init=False)
    says: Callable[[int], int] = field(default=lambda bound: 0, init=False)
    """What fickle trainers say."""
    seats: list[Seat] = field(factory=list, init=False)
    entered: Call | None = field(default=None, init=False)
    left: Call | None = field(default=None, init=False)
    tasks: int = field(default=0, init=False)
    _nursery: trio.Nursery = field(init=False)
    _over: trio.Event = field(init=False, factory=trio.Event)
    _leaving: trio.Event = field(init=False, factory=trio.Event)
    _known: int = field(default=0, init=False)
    _crashed: list[BaseException] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        setup = self.setup
        self.network = SimNetwork(Faults(decide=_hold), capacity=setup.capacity, most_at_once=setup.most_at_once)
        context = copy_context()
        context.run(RANDOM_SOURCE.set, Random(setup.bytes_seed).randbytes)  # noqa: S311 - a test's ids, no secrets
        self.stepper = Stepper(self._main, self.schedule, context)
        host = Side("host")
        self.judge = Judge(lambda: self.stepper.clock.now, lambda: self.processes.snapshot(), host)  # noqa: PLW0108 - not there yet
        self.judge.credentials = CREDENTIALS if setup.secure else None
        self.judge.fail_unresponsive = setup.fail_unresponsive
        self.judge.partial = setup.most_at_once < CAPACITY_BYTES
        config = SupervisorConfig(limits=setup.limits, persistent=setup.persistent)
        host.parties["supervisor"] = Shadow("supervisor", config)
        self.backend._driver.on_step = host.note

    async def _main(self) -> None:
        self.processes = SimProcesses(self.files)
        self.processes.program("trainer", self._play, takes_term=self.setup.takes_term)
        self.backend = ExternalProcess(
            ["trainer"],
            name="trainer",
            persistent=self.setup.persistent,
            limits=self.setup.limits,
            credentials=CREDENTIALS if self.setup.secure else None,
            on_unresponsive="fail" if self.setup.fail_unresponsive else "wait",
            processes=self.processes,
            network=self.network,
            files=self.files,
            environment={},
            trace=self.recording,
            directory=Path("/"),
        )
        async with self.processes, trio.open_nursery() as self._nursery:
            await self._over.wait()
            self._nursery.cancel_scope.cancel()

    # -- trainers ------------------------------------------------------------------------------------------------------

    async def _play(self, process: SimProcess) -> int:
        path = Path(process.launch.environment[BOOTSTRAP_VARIABLE])
        if path not in self.files.contents:
            await trio.sleep_forever()  # its launch was given up meanwhile; a command need not care
        bootstrap = parse(self.files.contents[path], path)
        bootstrap = evolve(bootstrap, limits=self.setup.begins_with(bootstrap.limits))
        owner = os.pipe()
        trace = None if self.recording is None else (self.recording, f"trainer.{path.stem.replace('host', 'trainer')}")
        if self.setup.fickle:
            session: TrainerSession = Fickle(bootstrap, self.network, owner_fd=owner[0], trace=trace, says=self.says)
        else:
            session = TrainerSession(bootstrap, self.network, owner_fd=owner[0], trace=trace)
        side = Side(f"trainer of {path.stem}")
        secret = bootstrap.token._secret
        seat = Seat(len(self.seats), path.stem, bootstrap.launch, secret, process, bootstrap, session, side, owner=owner)
        config = TrainerConfig(limits=bootstrap.limits, fail_unresponsive=bootstrap.fail_unresponsive, one_shot=not self.setup.persistent)
        side.parties["trainer"] = Shadow("trainer", config, seat=seat)
        session._driver.on_step = side.note
        self.seats.append(seat)
        self.judge.seats[seat.launch] = seat
        code: int | None = None
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(seat.script.live)
                seat.nursery = nursery
                await seat.ends.wait()
                code = seat.code
                nursery.cancel_scope.cancel()
        except Exception as error:
            self._crashed.append(error)
        finally:
            seat.gone, seat.gone_s, seat.nursery, seat.code = True, trio.current_time(), None, code
            for fd in owner:
                with suppress(OSError):
                    os.close(fd)
        return code or 0

    @property
    def living(self) -> list[Seat]:
        """The trainers that live."""
        return [seat for seat in self.seats if seat.nursery is not None and not seat.gone]

    def snapshots(self) -> tuple[list[Hashable], list[Hashable]]:
        """The state of every party: by the model, and by the runtime's own cores."""
        ours: list[Hashable] = []
        theirs: list[Hashable] = []
        for side in self.judge.sides():
            seat = next((seat for seat in self.seats if seat.side is side), None)
            driver = self.backend._driver if seat is None else seat.session._driver
            for name, shadow in side.parties.items():
                if name in driver:
                    ours.append(shadow.core.snapshot())
                    theirs.append(driver.core(name).snapshot())
        return ours, theirs

    # -- the host's user -----------------------------------------------------------------------------------------------

    async def _block(self, entered: Call) -> None:
        try:
            with entered.scope:
                async with self.backend:
                    entered.done = True
                    await self._leaving.wait()
                    if self.left is not None and self.left.name:
                        raise Left  # noqa: TRY301 - it leaves the block of the backend
        except Left:
            pass
        except Exception as error:
            if entered.done and self.left is not None:
                self.left.error = error
            else:
                entered.error = error
        entered.done = True
        if self.left is not None:
            self.left.done = True

    def enter(self) -> Call:
        """The application enters its block."""
        self.entered = call = Call("start", _never, ["start"])
        self.judge.host.calls.append(call)
        self.stepper.start(self._block, call, nursery=self._nursery)
        return call

    def leave(self, *, by_error: bool) -> Call:
        """It leaves, in order or by an exception."""
        self.left = call = Call("leave", _never, ["abort", "finalize"] if by_error else ["finalize"], name="error" if by_error else "")
        self.judge.host.calls.append(call)
        self._leaving.set()
        return call

    def call(self, kind: str, make: Callable[[], Awaitable[Any]], **more: Any) -> Call:
        """The application makes a call."""
        call = Call(kind, make, [kind], **more)
        self.judge.host.calls.append(call)
        self.stepper.start(call.run, nursery=self._nursery)
        return call

    def execute(self, tree: Any, *, large: bool = False) -> Call:
        """It has a task done."""
        self.tasks += 1
        name, task_id = f"task-{self.tasks}", f"id-{self.tasks}"
        make = partial(self.backend.execute, name, tree, task_id=task_id)
        return self.call("execute", make, tree=tree, large=large, name=name, task_id=task_id)

    def seat_call(self, seat: Seat, kind: str, make: Callable[[], Awaitable[Any]], **more: Any) -> Call:
        """A trainer's user makes a call."""
        call = Call(kind, make, [kind], **more)
        seat.side.calls.append(call)
        if seat.nursery is not None:
            self.stepper.start(call.run, nursery=seat.nursery)
        return call

    def log(self, seat: Seat, record: LogBeside) -> None:
        """A trainer's user logs something, which waits for nothing."""
        call = Call("log", _never, ["log"], done=True, outcome=m.Outcome.OK)
        seat.side.calls.append(call)
        seat.script.log(record)

    def background(self, function: Callable[..., Awaitable[object]], *arguments: object) -> None:
        """Something goes on that is nobody's call."""
        self.stepper.start(function, *arguments, nursery=self._nursery)

    # -- the world -----------------------------------------------------------------------------------------------------

    def let(self, line: Line, way: Direction, index: int = 0, *, stays: bool = False) -> None:
        """A frame arrives; one that ``stays`` may arrive again."""
        pipe = line.sim.pipes[way]
        whole = line.ways[way].pipe.let(index, stays=stays)
        if pipe.deaf or pipe.broken or not heard(whole):
            return
        frame = Frame.of(whole)
        if line.sim.role == "data":
            self.judge.transfers.arrived(line, way, frame)
        else:
            line.ways[way].arrived.append(frame)

    def kill(self, seat: Seat) -> None:
        """A trainer is killed, by whomever."""
        seat.process.deliver(SIGKILL)

    def exit(self, seat: Seat, code: int) -> None:
        """Its program ends."""
        seat.code = code
        seat.ends.set()

    def orphan(self, seat: Seat) -> None:
        """A trainer sees the end of its owner's pipe."""
        if seat.owner is not None and not seat.orphaned:
            seat.orphaned = True
            os.close(seat.owner[1])

    # -- stepping ------------------------------------------------------------------------------------------------------

    def settle(self, *, look: bool = False) -> None:
        """Let everything happen that can, and judge it. Raises ``Wrong``."""
        self.stepper.settle(look=look)
        self.judged()
        if look:
            owners(self.judge)

    def pass_time(self) -> bool:
        """Let time go on to what is due next, and judge what comes. False if nothing is."""
        passed = self.stepper.pass_time()
        self.judged()
        return passed

    def judged(self) -> None:
        """Look. Raises ``Wrong``."""
        if self._crashed:
            raise Wrong("fault", f"what goes on behind a trainer's calls has died of {alone(self._crashed[0])!r}")
        if self.stepper.over:
            self.stepper.finish()
        found = self.network.connections
        while self._known < len(found):
            self.judge.lines.append(Line(found[self._known]))
            self.judge.dials.append(self.judge.lines[-1])
            self._known += 1
        self.judge.look()
        dialled(self.judge, self.network, self.stepper.clock.now)
        if self.recording is not None and self.recording.rejected is not None:
            raise Wrong("trace", str(self.recording.rejected))
        if self.backend.failed.is_set() != self.judge.failed:
            raise Wrong("failed", f"the run {'has failed' if self.backend.failed.is_set() else 'goes on'}, and the model says otherwise")

    @property
    def over(self) -> bool:
        """Whether the application has left its block, or never came into it."""
        entered = self.entered
        return (
            entered is not None
            and entered.done
            and (entered.error is not None or entered.given_up or (self.left is not None and self.left.done))
        )

    def close(self) -> None:
        """The end: everything is let go. Raises ``Wrong`` if something is left."""
        if self.stepper.strays:
            raise Wrong("left behind", f"{', '.join(self.stepper.strays)} runs on as a task of nobody")
        self._over.set()
        if not self.stepper.finish(self.stepper.clock.now + LIFE_S):
            raise Wrong("left behind", "something still runs")
        left = [*map(str, self.files.contents), *map(str, self.files.directories), *map(str, self.processes.registered)]
        if left:
            raise Wrong("left behind", f"{', '.join(left)} outlived the host")

    def drop(self) -> None:
        """Let go of a stage on which something went wrong."""
        with suppress(BaseException):
            self._over.set()
            self.stepper.finish(self.stepper.clock.now + LIFE_S)
        self.stepper.drop(self.stepper.clock.now + LIFE_S)


async def _never() -> None:
    raise AssertionError("the block of a backend is entered and left, not called")
