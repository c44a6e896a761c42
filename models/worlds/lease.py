"""Leases against a clock: no healthy peer is given up, and a dead one is found in time.

Time passes one tick at a time for everybody. A message takes up to its delay and may come earlier; a timer fires in the tick in which it
is due, before or after the messages of that tick, as the scheduler likes. In ``lease`` nothing fails, so no lease may expire; in
``lease/silence`` either side may die at any moment, and ``lease/patience`` is a launched pair that waits for whom it knows to live.

What nobody can promise is that a network is quicker than a lease. A trainer hears its host's answer to every beat: an answer that came
at once may be followed by one whose beat and answer both took the whole delay, so there may be silence for an interval and two delays. The
lease expires after the timeout and an interval. So P45 is a promise of pairs whose message, there and back, takes less than the timeout;
the worlds that claim it refuse to be built with more. Where the edge is, is tested on both of its sides.
"""

from __future__ import annotations

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.errors import WorldError
from troth.models.world import World
from troth.models.worlds.protocol.promises import promise
from troth.models.worlds.protocol.session import Deal, Session, session
from troth.spec.properties import PROPERTIES
from troth.statemachines.host.session import LIVE
from troth.statemachines.shared.lease import WATCHING, LeaseState
from troth.statemachines.trainer.session import BOUND
from troth.statemachines.trainer.states import TrainerSessionState

INTERVAL, TIMEOUT, DELAY = 2, 5, 2
"""Ticks. A healthy pair bears a delay of less than half the timeout, so this one is the longest."""

PROMISES = ("P12", "P14", "P17", "P18", "P23", "P25", "P40", "P44", "P75")
FOREVER = frozenset({"session", "join", "again", "hello", "task", "budget", "result", "source", "stall"})
"""Timers of everything else. Nothing is lost here, so nothing need be repeated; and a receiver may take for ever, so a drain may too."""


def deal(bounds: Bounds, *, crashes: bool = False, launched: bool = False) -> Deal:
    """What the worlds of leases have."""
    return Deal(
        launched=launched, fail_unresponsive=not launched, receivers=1, host_receives=False, orders=("close",), capacity=4,
        delay=bounds.delay, without=FOREVER, trainer_crashes=int(crashes), host_crashes=int(crashes),
    )  # fmt: skip


def timed(world: World, bounds: Bounds, interval: int = INTERVAL) -> int:
    """Set the clock; how many ticks the loss of a peer may go unnoticed."""
    patience = bounds.timeout + interval + 1
    world.clock({"heartbeat_interval_s": interval, "lease_timeout_s": bounds.timeout, "unresponsive_limit_s": patience, **PROCESS})
    return bounds.timeout + 2 * interval + bounds.delay


PROCESS = {"natural_exit_s": 2, "term_grace_s": 2, "kill_wait_s": 1}


def bears(bounds: Bounds) -> None:
    """Raises ``WorldError`` where messages are so slow that a healthy peer may be given up, so that P45 says nothing."""
    if 2 * bounds.delay >= bounds.timeout:
        raise WorldError(
            f"delay={bounds.delay} with timeout={bounds.timeout}: a beat and its answer take up to {2 * bounds.delay} ticks, and a lease "
            f"bears only less than its timeout; choose --bound timeout={2 * bounds.delay + 1} or more, or a shorter delay"
        )


def nobody_given_up(made: Session) -> None:
    """P45. A host that has hung up before its trainer knew of the session is not in it, and is given up rightly."""
    trainer, host, world = made.trainer, made.host, made.world
    wrongly = (trainer.at("lease", LeaseState.EXPIRED) & host.at("session", *LIVE)) | (
        host.at("lease", LeaseState.EXPIRED) & trainer.at("session", *BOUND)
    )
    world.never("P45", PROPERTIES["P45"].statement, wrongly)
    watching = trainer.at("lease", *WATCHING) & host.at("lease", *WATCHING)
    world.sometimes(
        "draining", "both sides can be watching while they drain", watching & trainer.at("session", TrainerSessionState.DRAINING)
    )


def _found_in_time(made: Session, most: int) -> None:
    """P46, of both sides. The stopwatch of each runs while the other is down."""
    world = made.world
    late = []
    for one, other, states in ((made.trainer, made.host, BOUND), (made.host, made.trainer, LIVE)):
        watch = world.stopwatch(f"{other.handle.name} down", other.handle.is_down, most + 1)
        late.append((watch.ticks > most) & one.at("session", *states))
        world.sometimes(f"{one.handle.name} finds out", f"the {one.handle.name}'s lease can expire", one.at("lease", LeaseState.EXPIRED))
    world.never("P46", PROPERTIES["P46"].statement, late[0] | late[1])


BOUNDS = {
    "delay": Bound(DELAY, "ticks that a message may take", 1, 4),
    "timeout": Bound(TIMEOUT, "ticks of silence after which a peer is suspect", INTERVAL + 1, 9),
}


@blueprint("lease", **BOUNDS)
def healthy(bounds: Bounds) -> World:
    """Two healthy sides with a delay: no lease ever expires, draining included."""
    bears(bounds)
    world = World("lease", healthy.doc)
    made = session(world, deal(bounds), PROMISES)
    timed(world, bounds)
    promise(made, PROMISES)
    nobody_given_up(made)
    return world


@blueprint("lease/silence", **BOUNDS)
def silence(bounds: Bounds) -> World:
    """Either side dies at any moment, and the other finds out within the stated time."""
    world = World("lease/silence", silence.doc)
    made = session(world, deal(bounds, crashes=True), PROMISES)
    most = timed(world, bounds)
    promise(made, PROMISES)
    _found_in_time(made, most)
    return world


@blueprint("lease/patience", **BOUNDS)
def patience(bounds: Bounds) -> World:
    """A launched pair: a peer whose process lives is unresponsive, and waited for up to the limit."""
    bears(bounds)
    world = World("lease/patience", patience.doc)
    made = session(world, deal(bounds, launched=True), PROMISES)
    timed(world, bounds)
    promise(made, PROMISES)
    nobody_given_up(made)
    return world
