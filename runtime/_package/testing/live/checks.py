"""What must be seen at the ports once everything has settled: frames, calls that have returned, timers that have fired, processes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from troth.runtime.sim.faults import DOWN, UP, Refused
from troth.runtime.trainer import REDIAL_LONGEST_S
from troth.runtime.wire.kinds import BY_CODE, HEARTBEAT, LOG, WhenFull
from troth.spec.core import ProcessSignal
from troth.statemachines.host.process import ProcessState
from troth.statemachines.trainer.states import TrainerSessionState
from troth.testing.live.lines import Line, Way, kind_code
from troth.testing.live.parties import Side, Wrong
from troth.testing.live.seats import Seat

if TYPE_CHECKING:
    from troth.runtime.sim.network import SimNetwork
    from troth.testing.live.judging import Judge

REDIAL_S = REDIAL_LONGEST_S + 0.5
"""How long a link that is wanted stays undialled at the most, while somebody listens."""
DRAIN_S = 1.0
"""How long the host of a process that has ended still reads what it said."""
BEST_EFFORT = (HEARTBEAT, LOG)
"""Of several that wait to be written the newest counts, or none."""


def check(judge: Judge, now: float) -> None:
    """Everything that can be told by now. Raises ``Wrong``."""
    wire(judge)
    asleep = [seat.side for seat in judge.seats.values() if let_go(seat)]
    for side in judge.sides():
        if side not in asleep:
            for shadow in side.parties.values():
                shadow.check_due(now)
        calls(side, now)
    processes(judge, now)


def let_go(seat: Seat) -> bool:
    """Whether its script's client lets nothing go on behind its calls any more. Raises ``Wrong`` if the session is not over."""
    if seat.gone or not seat.script.let_go:
        return False
    trainer = seat.side.parties["trainer"].core
    if trainer.state("session") is not TrainerSessionState.CLOSED:
        raise Wrong("calls", f"{seat.side.name}: its client has let go of a session that is {trainer.state('session').value}")
    return True


# -- the wire ----------------------------------------------------------------------------------------------------------


def wire(judge: Judge) -> None:
    """What was written is what had to be, on every connection."""
    for line in judge.lines:
        seat = judge.seats.get(line.sim.launch or b"")
        trainer = None if seat is None or seat.gone else seat.side.parties.get("trainer")
        if not line.shown and not line.authentic(UP) and not line.authentic(DOWN):
            _strange(line)
        elif line.sim.role == "control":
            _control(judge, line, lives=trainer is not None)
        elif line.sim.role == "data":
            judge.transfers.written(line, UP, trainer)
            judge.transfers.written(line, DOWN, None if seat is None else judge.host.parties.get(seat.host))
        line.steady = line.alive and line.authentic(UP) and line.authentic(DOWN)
    for side in judge.sides():
        for shadow in side.parties.values():
            judge.transfers.settle(shadow)
    _ended(judge)
    used = {id(shadow.line) for side in judge.sides() for shadow in side.parties.values()}
    judge.lines[:] = [line for line in judge.lines if id(line) in used or not _done(line)]


def _ended(judge: Judge) -> None:
    """What a party had to end it has ended, as soon as what it had said on it before is written."""
    left = []
    for name, line, way in judge.ending:
        if way.open and way.blocked and way.owed:
            left.append((name, line, way))
        elif way.open:
            raise Wrong("links", f"{name} had to end connection {line.sim.number}, and keeps it")
    judge.ending[:] = left


def dialled(judge: Judge, network: SimNetwork, now: float) -> None:
    """Who wants a link and has none dials it again soon, while somebody listens. Raises ``Wrong``."""
    journal = network.faults.journal
    again = any(isinstance(journal[at].fault, Refused) for at in range(judge.journalled, len(journal)))
    judge.journalled = len(journal)
    held = {(line.sim.launch, line.sim.role) for line in judge.lines if not line.sim.dialler._closed}
    held.update((line.sim.launch, line.sim.role) for line in judge.dials)
    judge.dials.clear()
    for seat in judge.seats.values():
        if seat.gone or let_go(seat):
            continue
        trainer = seat.side.parties["trainer"]
        for role, since_s in trainer.wanted.items():
            if again or (seat.launch, role) in held or seat.bootstrap.endpoint not in network._listeners:
                trainer.wanted[role] = now
            elif now > since_s + REDIAL_S:
                raise Wrong("links", f"{seat.side.name}: its {role} link is wanted since {since_s} s, and has not been dialled")


def _done(line: Line) -> bool:
    return not line.alive and not any(way.pipe.waiting or way.arrived for way in line.ways.values())


def _strange(line: Line) -> None:
    """Nothing is said to who has not shown who it is."""
    if line.ways[DOWN].fresh:
        said = line.ways[DOWN].fresh[0].name
        raise Wrong("authentic", f"connection {line.sim.number}: {said} was said to who did not show who it is")
    line.ways[UP].fresh.clear()


def _control(judge: Judge, line: Line, *, lives: bool) -> None:
    if lives:
        line.written(UP, BEST_EFFORT)
    else:
        line.ways[UP].fresh.clear()
    line.written(DOWN, BEST_EFFORT)
    for way in (UP, DOWN):
        _bounded(line, line.ways[way])
    _taken(judge, line)


def _bounded(line: Line, way: Way) -> None:
    """No more waits to be written than the kinds allow, or the connection is closed."""
    if not way.blocked or not way.open:
        return
    waiting = Counter(kind_code(owed.message) for owed in way.owed)
    for code, count in waiting.items():
        kind = BY_CODE[code]
        if (
            kind.when_full is WhenFull.CLOSE and count > 2 * kind.outstanding + 1
        ):  # as many may be in the bytes that are being written, and one may have begun
            raise Wrong(
                "queues", f"connection {line.sim.number}: {count} {kind.name} wait to be written, and at most {kind.outstanding} may"
            )


def _taken(judge: Judge, line: Line) -> None:
    """What was let through was taken by whoever has the connection; nobody keeps one that is over."""
    for side in judge.sides():
        for shadow in side.parties.values():
            if shadow.line is not line:
                continue
            way = line.ways[DOWN if shadow.kind == "trainer" else UP]
            if way.arrived and line.alive and not line.harmed and not shadow.closing and not judge.partial:
                raise Wrong("wire", f"{shadow.name} has not taken {way.arrived[0].name} from connection {line.sim.number}")
            if (way.pipe.ended or way.pipe.broken) and way.pipe.empty and not line.harmed:
                raise Wrong("links", f"{shadow.name} goes on with connection {line.sim.number}, which is over")


# -- calls -------------------------------------------------------------------------------------------------------------


def calls(side: Side, now: float) -> None:
    """Whoever must have returned has, with what had to come of it."""
    left = []
    for call in side.calls:
        if call.done:
            call.check()
        elif call.late(now):
            raise Wrong("calls", f"{side.name}: {call.kind}() was resolved with {call.outcome}, and has not returned")
        elif call.silent(now, side.calls):
            raise Wrong("calls", f"{side.name}: {call.kind}() was made, and has not asked for {call.pending[0]}")
        else:
            left.append(call)
    side.calls[:] = left


def owners(judge: Judge) -> None:
    """Whose owner's pipe has ended has noticed that. For when descriptors were looked at; raises ``Wrong``."""
    for seat in judge.seats.values():
        if seat.orphaned and not (seat.bereft or seat.gone or let_go(seat)):
            raise Wrong("processes", f"{seat.side.name}: the pipe to its owner has ended, and it has not noticed")


# -- processes ---------------------------------------------------------------------------------------------------------


def processes(judge: Judge, now: float) -> None:
    """What lives is what has to."""
    living = {entry.launch_id for entry in judge.table()}
    for seat in judge.seats.values():
        _process(judge, seat, now, lives=seat.launch.hex() in living)
    _given_up(judge, living, now)
    for name, signal in judge.signalled:
        found = next((seat for seat in judge.seats.values() if seat.host == name), None)
        if found is None or found.gone or found.process.stuck:
            continue
        if signal is ProcessSignal.KILL or not found.process.term.is_set():
            raise Wrong("processes", f"the process of {name} was to be sent {signal.name}, and lives")
    judge.signalled.clear()
    for name, due_s in list(judge.spawning.items()):
        if name not in judge.host.parties:
            del judge.spawning[name]
        elif now > due_s + judge.heard_delay_s:
            raise Wrong("processes", f"{name} asked for a process, and was not told what became of that")


def _process(judge: Judge, seat: Seat, now: float, *, lives: bool) -> None:
    if lives == seat.gone and not (lives and seat.process.stuck):
        raise Wrong("processes", f"the process of {seat.host} {'lives' if lives else 'is gone'}, and nothing made it so")
    host = judge.host.parties.get(seat.host)
    if host is None:
        return
    if lives and host.core.state("process") is ProcessState.EXITED:
        raise Wrong("processes", f"{seat.host} holds its process for gone, and it lives")
    if not lives and not seat.reported and now > seat.gone_s + DRAIN_S and not judge.deaf:
        raise Wrong("processes", f"{seat.host} was not told that its process is gone")


def _given_up(judge: Judge, living: set[str], now: float) -> None:
    """What lives has a host that knows of it, or is ended as soon as it is heard to have started."""
    kept = {seat.launch.hex() for seat in judge.seats.values() if seat.host in judge.host.parties or seat.process.stuck or seat.stuck}
    for launch in sorted(living - kept):
        if now > judge.alone.setdefault(launch, now) + judge.heard_delay_s:
            raise Wrong("processes", f"launch {launch} lives on, and has been given up")
