"""What can be done next on a stage: calls of its users, arrivals, faults, and time going on.

Each *rule* has a name, finds its possibilities on a stage, and does one of them. All that is drawn on the way comes from the source of
choices, and 0 is always the plainest. A call that may not be made is made all the same, now and then: it must be refused, and change
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from troth.runtime.errors import LinkDown, Misuse
from troth.runtime.sim.faults import DOWN, UP, Direction
from troth.runtime.wire.besides import LogBeside
from troth.runtime.wire.challenge import CALL, MAGIC, NONCE_BYTES, PROOF_BYTES, ROLES, VERSION
from troth.runtime.wire.codec import encode
from troth.runtime.wire.kinds import PayloadKind, Pull
from troth.spec import messages as m
from troth.spec.core import Message
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.states import TrainerSessionState
from troth.testing.live.choices import Choices
from troth.testing.live.lines import Line, heard
from troth.testing.live.parties import Wrong
from troth.testing.live.scripts import model_of
from troth.testing.live.seats import Seat
from troth.testing.live.stage import Stage

Option: TypeAlias = Any
NOT_JOINED = (TrainerSessionState.NEW, TrainerSessionState.JOINING, TrainerSessionState.BINDING)
LARGE_BYTES = 40_000
"""A payload that does not ride in its message."""
WIDE_BYTES = 4096
"""Connections that carry less at a time carry no large payloads."""
HUGE_BYTES = 600_000
"""One that takes several frames."""


@frozen
class Mood:
    """What a session is given to: how much oftener some rules are chosen, and how much goes wrong."""

    name: str
    oftener: Mapping[str, int] = field(factory=dict)
    faults: int = 6
    """The most faults that happen."""
    large: bool = False
    """No payload rides in its message."""


PLAIN = Mood("plain")


@define(eq=False)
class Play:
    """A stage with what has been done on it."""

    stage: Stage
    choices: Choices
    faults_left: int
    """How many faults may still happen."""
    faults: list[str] = field(factory=list)
    """Those that happened, by the names of their rules."""
    ending: bool = False
    """Nothing new is begun, and nothing goes wrong any more."""
    made: int = 0
    """Payloads that were made."""
    more_steps: int = 0
    """Steps that were taken within those of the rules."""
    mood: Mood = field(factory=lambda: PLAIN)

    @property
    def open(self) -> bool:
        """Whether the application is inside of its block."""
        entered = self.stage.entered
        return entered is not None and entered.done and entered.error is None and not entered.given_up and self.stage.left is None

    def tree(self) -> tuple[Any, bool]:
        """A payload, and whether it is large."""
        self.made += 1
        setup = self.stage.setup
        kind = 7 if self.mood.large else self.choices.choose(8)
        if min(setup.capacity, setup.most_at_once) < WIDE_BYTES:
            kind = min(kind, 6)  # in pieces of a few bytes it would take its time, and show nothing else
        if kind == 7:
            nbytes = HUGE_BYTES if self.mood.large and self.choices.choose(3) == 2 else LARGE_BYTES
            return model_of({"w": np.full(nbytes // 8, self.made, dtype=np.int64), "n": self.made}), True
        if kind == 6:
            return model_of({"w": np.full(3, self.made, dtype=np.float32), "names": ["a", None, True]}), False
        return model_of({"n": self.made}), False


@frozen
class Rule:
    """One thing that can be done. ``options`` finds where, ``act`` does it there, ``weight`` says how often it is chosen."""

    name: str
    options: Callable[[Play], Sequence[Option]]
    act: Callable[[Play, Option], None]
    weight: Callable[[Play, Sequence[Option]], int]
    fault: bool = False
    draws: bool = False
    """It draws more than where it is used."""


HERE = (None,)
NOWHERE: tuple[Any, ...] = ()


# -- the network -------------------------------------------------------------------------------------------------------


def waiting(play: Play, most: int = 1) -> list[tuple[Line, Direction]]:
    """Where frames wait, at least so many."""
    found = []
    for line in play.stage.judge.lines:
        pipes = line.sim.pipes
        if len(pipes[UP].waiting) >= most:
            found.append((line, UP))
        if len(pipes[DOWN].waiting) >= most:
            found.append((line, DOWN))
    return found


def lively(play: Play) -> list[tuple[Line, Direction]]:
    """Connections that bytes still go over."""
    return [(line, way) for line in play.stage.judge.lines if line.alive for way in (UP, DOWN)]


def deliver(play: Play, option: Option) -> None:
    """The frame that waits longest arrives."""
    play.stage.let(*option)


def burst(play: Play, option: Option) -> None:
    """Everything that waits on a connection arrives at once."""
    line, way = option
    while line.sim.pipes[way].waiting:
        play.stage.let(line, way)


def race(play: Play, option: Option) -> None:
    """A frame arrives in the moment in which a caller gives up."""
    play.stage.let(*option)
    calls = [call for seat in play.stage.living for call in seat.side.calls if not call.given_up and call.kind != "log"]
    calls += [call for call in play.stage.judge.host.calls if not call.given_up and call.kind in ("start", "execute")]
    if calls:
        calls[play.choices.choose(len(calls))].give_up()


def silence(play: Play, _option: Option) -> None:
    """Nothing arrives for a while."""
    stage = play.stage
    until = stage.stepper.clock.now + (12.0, 35.0, 130.0, 700.0)[play.choices.choose(4)]
    while stage.stepper.clock.now < until and not stage.over:
        if not stage.stepper.pass_time(until):
            return
        stage.judged()
        play.more_steps += 1


def overtake(play: Play, option: Option) -> None:
    """A frame arrives before one that was written earlier."""
    line, way = option
    play.stage.let(line, way, 1 + play.choices.choose(len(line.sim.pipes[way].waiting) - 1))


def copy(play: Play, option: Option) -> None:
    """A frame arrives, and will arrive once more."""
    play.stage.let(*option, stays=True)


def lose(_play: Play, option: Option) -> None:
    """A frame never arrives."""
    line, way = option
    line.sim.pipes[way].lose(0)


def cut(_play: Play, option: Option) -> None:
    """A connection breaks between two frames."""
    option[0].sim.cut()


def tear(play: Play, option: Option) -> None:
    """It breaks in the middle of one."""
    line, way = option
    pipe = line.sim.pipes[way]
    nbytes = 1 + play.choices.choose(len(pipe.waiting[0]) - 1) if len(pipe.waiting[0]) > 1 else 1
    if line.sim.role == "data" and heard(pipe.waiting[0]):
        play.stage.judge.transfers.torn(line, way, pipe.waiting[0])
    line.sim.cut_after(way, nbytes)
    if pipe.waiting:
        pipe.let()


def end(_play: Play, option: Option) -> None:
    """One direction ends, as if its writer had gone there."""
    line, way = option
    line.sim.end_after(way, 0)


def spoil(play: Play, option: Option) -> None:
    """Bytes arrive that nobody wrote."""
    line, way = option
    line.harmed = True
    size = 1 + play.choices.choose(40)
    line.sim.pipes[way].insert(bytes(0xA5 ^ play.choices.choose(256) if at > 1 else 0xA5 for at in range(size + 12)))


def refuse(play: Play, _option: Option) -> None:
    """The next dials find nobody."""
    play.stage.network.faults.refuse_dials(1 + play.choices.choose(3))


async def _intrude(stage: Stage, endpoint: str, said: bytes) -> None:
    try:
        stream = await stage.network.dial(endpoint)
        await stream.send_all(said)
    except LinkDown:
        return


def intrude(play: Play, seat: Seat) -> None:
    """Somebody dials who does not hold the token, claims to be a trainer's connection, and speaks at once."""
    code = 1 + play.choices.choose(len(ROLES))
    epoch = 1 if ROLES[code] == "data" else play.choices.choose(3)
    call = CALL.pack(MAGIC, VERSION, code, seat.launch, epoch, bytes(NONCE_BYTES))
    frame: Message = m.TaskAccepted(epoch=1, seq=1)
    if ROLES[code] == "data":
        frame = Pull(epoch=1, request=1, kind=PayloadKind.TASK, seq=1, receiver=0, offset=0)
    said = call + bytes([1]) * PROOF_BYTES + encode(frame)
    stage = play.stage
    stage.background(_intrude, stage, seat.bootstrap.endpoint, said)


# -- processes ---------------------------------------------------------------------------------------------------------


def kill(play: Play, seat: Seat) -> None:
    """A trainer is killed."""
    play.stage.kill(seat)


def orphan(play: Play, seat: Seat) -> None:
    """A trainer is told that its owner is gone."""
    play.stage.orphan(seat)


def lose_guardian(play: Play, _option: Option) -> None:
    """The guardian dies."""
    stage = play.stage
    stage.judge.orphaned = stage.judge.deaf = True
    stage.background(stage.processes.lose_guardian)


def fail_spawn(play: Play, _option: Option) -> None:
    """The next process cannot be started."""
    play.stage.judge.spawn_fails += 1
    play.stage.processes.fail_spawns("no such file")


def slow_spawn(play: Play, _option: Option) -> None:
    """A start takes a while from now on."""
    delay_s = (0.0, 0.5, 7.0, 12.0, 400.0)[play.choices.choose(5)]
    heard_s = (0.0, 0.5, 7.0, 12.0)[play.choices.choose(4)]
    processes, judge = play.stage.processes, play.stage.judge
    processes.spawn_delay_s, processes.heard_delay_s, judge.spawn_delay_s = delay_s, heard_s, delay_s
    judge.heard_delay_s = max(judge.heard_delay_s, heard_s)


def stick(play: Play, seat: Seat) -> None:
    """No signal ends a trainer any more, or it is over with that."""
    if seat.process.stuck:
        play.stage.processes.unstick(seat.launch.hex())
    else:
        seat.process.stuck = seat.stuck = True


def leave_process(play: Play, seat: Seat) -> None:
    """A trainer's program ends."""
    play.stage.exit(seat, play.choices.choose(2))


# -- the trainer's user ------------------------------------------------------------------------------------------------


def state_of(seat: Seat) -> Any:
    """Where its session is, by the model."""
    return seat.side.parties["trainer"].core.state("session")


def unsent(seat: Seat) -> bool:
    """Whether its user holds a task, by the model, and has sent no result of it."""
    core = seat.side.parties["trainer"].core
    return seat.current > 0 and core.state("ledger", seat.current) is LedgerState.DELIVERED


def init(play: Play, seat: Seat) -> None:
    """It joins."""
    passive = play.choices.choose(24) == 23
    play.stage.seat_call(seat, "init", partial(seat.script.init, control_rank=not passive), passive=passive)


def receive(play: Play, seat: Seat) -> None:
    """It waits for a task."""
    play.stage.seat_call(seat, "receive", seat.script.receive)


def send(play: Play, seat: Seat) -> None:
    """It sends a result; one that it has sent before, or another one, where there was one."""
    first = seat.first.get(seat.current)
    if first is not None and play.choices.choose(2) == 0:
        tree, large = first, isinstance(kept := first["params"].get("w"), np.ndarray) and kept.nbytes >= LARGE_BYTES
    else:
        tree, large = play.tree()
    play.stage.seat_call(seat, "send", partial(seat.script.send, tree), tree=tree, large=large)


def shutdown(play: Play, seat: Seat) -> None:
    """It ends its session."""
    play.stage.seat_call(seat, "shutdown", seat.script.shutdown)


def log(play: Play, seat: Seat) -> None:
    """It logs something."""
    play.stage.log(seat, LogBeside("loss", 0.5, "SCALAR", {}))


def give_up(_play: Play, option: Option) -> None:
    """A caller waits no more."""
    option.give_up()


# -- the application ---------------------------------------------------------------------------------------------------


def enter(play: Play, _option: Option) -> None:
    """It enters its block."""
    play.stage.enter()


def execute(play: Play, _option: Option) -> None:
    """It has a task done."""
    tree, large = play.tree()
    play.stage.execute(tree, large=large)


def abort(play: Play, _option: Option) -> None:
    """It aborts."""
    play.stage.call("abort", play.stage.backend.abort)


def finalize(play: Play, _option: Option) -> None:
    """It finalizes, inside of its block."""
    play.stage.call("finalize", play.stage.backend.finalize)


def leave(play: Play, _option: Option) -> None:
    """It leaves its block, in order or by an exception."""
    play.stage.leave(by_error=play.choices.choose(4) == 3)


def illegal(play: Play, _option: Option) -> None:
    """The application does what it may never do: it is refused, and nothing has changed."""
    stage = play.stage
    backend = stage.backend
    made: Any = backend.__aenter__() if stage.entered is not None else backend.execute("never", {})
    try:
        made.send(None)
    except Misuse:
        ours, theirs = stage.snapshots()
        if ours != theirs:
            raise Wrong("P22", "a call that was refused has changed something") from None
        return
    raise Wrong("calls", "what may never be called was not refused")


def pass_time(play: Play, _option: Option) -> None:
    """Time goes on to when something is due."""
    play.stage.stepper.pass_time()
