"""Answers alone: nobody is given up who is there, and yet every call returns, every task has its outcome and every end comes to its end.

Elsewhere a timer that is armed fires in the end, also that of a lease whose peer is about to answer. Here a limit on the wait for somebody
is over only once that one is gone, and what else may take its time has no limit; so whatever returns returns because it was answered, and
what was lost on the way was asked for again. Fairness is weak. With ``expiry=0`` not even those who are gone are given up, which shows
what the limits are needed for: a peer that died, and a farewell that was lost.
"""

from __future__ import annotations

from collections.abc import Callable

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.claims import FairSelector
from troth.models.expressions import every
from troth.models.world import World
from troth.models.worlds.protocol.backend import Hosts
from troth.models.worlds.protocol.configured import ALWAYS, FETCHED
from troth.models.worlds.protocol.presence import answering, fair
from troth.models.worlds.protocol.session import Session
from troth.models.worlds.protocol.transfers import TOLD, Way, claims, transfer
from troth.models.worlds.supervisor import Backend, told
from troth.spec.messages import Outcome
from troth.spec.properties import PROPERTIES
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.receiver import DownloadState
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.trainer.states import TrainerSessionState

A, D, T, H = AcceptanceState, DownloadState, TrainerSessionState, HostSessionState

KEPT = tuple(id_ for id_ in ALWAYS if id_ != "P41")
"""Of every session, but for what is said of cancelled tasks: nothing is cancelled in some."""
RETURNS = ("P48", "P50", "P51", "P54", "P59", "P74")
ENDS = ("P49", "P61", "P63")
LOSS = Bound(1, "messages that may be lost", 0, 3)
CUTS = Bound(1, "how often the link may be cut", 0, 2)
EXPIRY = Bound(1, "0: not even who is gone is given up", 0, 1)


@blueprint("answers", loss=LOSS, cuts=CUTS)
def answers(bounds: Bounds) -> World:
    """An attached trainer, a lost message and a link that is cut: every call is answered."""
    return answering(
        "answers", answers.doc, (*ALWAYS, *FETCHED, *RETURNS), receivers=1, losses=bounds.loss, cuts=bounds.cuts, orders=()
    ).world


@blueprint("answers/tasks", loss=LOSS, cuts=CUTS)
def tasks(bounds: Bounds) -> World:
    """Two tasks, one after the other, over such a link: both are answered."""
    promises = (*ALWAYS, *FETCHED, *RETURNS)
    return answering("answers/tasks", tasks.doc, promises, tasks=2, receivers=1, losses=bounds.loss, cuts=bounds.cuts, orders=()).world


@blueprint("answers/ends", loss=LOSS, expiry=EXPIRY)
def ends(bounds: Bounds) -> World:
    """An attached trainer that is told to stop, to end or to drop everything, at any time: it says so, and the session is closed."""
    made = answering(
        "answers/ends", ends.doc, (*ALWAYS, *FETCHED, *RETURNS, *ENDS), expiry=bool(bounds.expiry), receivers=1, losses=bounds.loss,
    )  # fmt: skip
    return _ended(made)


@blueprint("answers/lossy")
def lossy(_bounds: Bounds) -> World:
    """A link that loses messages for ever, but not every copy of one: whoever says it again gets through, and every end closes."""
    promises = (*KEPT, *FETCHED, *RETURNS, *ENDS)
    return answering("answers/lossy", lossy.doc, promises, unreliable=True, receivers=1, orders=("close", "abort")).world


@blueprint("answers/promptly")
def promptly(_bounds: Bounds) -> World:
    """Nothing is lost and no limit is ever over: an attached trainer's end, in order or not, is over because the trainer says so."""
    promises = (*ALWAYS, *FETCHED, "P50", "P54", "P59", "P61", "P63")
    return answering("answers/promptly", promptly.doc, promises, expiry=False, receivers=1).world


@blueprint("answers/process", loss=LOSS, expiry=EXPIRY)
def process(bounds: Bounds) -> World:
    """A launched trainer that is told to end or to drop everything: it says so, its process ends by itself, and the session is closed."""
    made = answering(
        "answers/process", process.doc, (*ALWAYS, *FETCHED, *RETURNS, *ENDS, "P70"), expiry=bool(bounds.expiry), launched=True,
        receivers=1, losses=bounds.loss, orders=("close", "abort"),
    )  # fmt: skip
    return _ended(made)


@blueprint("answers/receivers", loss=LOSS)
def receivers(bounds: Bounds) -> World:
    """A trainer launched for one task, and two receivers that may fail: the result is settled, or each of them hears of its loss."""
    made = answering(
        "answers/receivers", receivers.doc, (*ALWAYS, *FETCHED, "P43", *RETURNS), launched=True, one_shot=True, receivers=2,
        losses=bounds.loss, orders=(),
    )  # fmt: skip
    _told(made)
    return made.world


@blueprint("answers/bytes", loss=LOSS)
def arrive(bounds: Bounds) -> World:
    """A result whose sources give up nobody who is still fetching, and two receivers that say what they hold until they are heard."""
    made = transfer("answers/bytes", arrive.doc, Way(losses=bounds.loss, breaks=1, waits=True))
    return claims(made, "settled", "lost", "one of two", "resumed")


@blueprint("answers/gone", expiry=EXPIRY)
def gone(bounds: Bounds) -> World:
    """Either side of an attached pair dies: a lease or a limit ends what waits for it, and nothing else could."""
    made = answering(
        "answers/gone", gone.doc, (*KEPT, *FETCHED, *RETURNS, "P49", "P61", "P71"), expiry=bool(bounds.expiry), receivers=1,
        trainer_crashes=1, host_crashes=1, orders=("close",),
    )  # fmt: skip
    _told(made)
    for one in (made.trainer, made.host):
        name = one.handle.name
        made.world.sometimes(f"{name} expires", f"the {name}'s lease ends", one.at("lease", LeaseState.EXPIRED))
    return made.world


@blueprint("answers/orphan")
def orphan(_bounds: Bounds) -> World:
    """The host of a launched trainer dies, and no lease ends: its trainer hears of it, and every call returns."""
    promises = (*KEPT, *FETCHED, "P48", "P49", "P50", "P71")
    return answering("answers/orphan", orphan.doc, promises, expiry=False, launched=True, receivers=1, host_crashes=1, orders=()).world


@blueprint("answers/backend")
def backend(_bounds: Bounds) -> World:
    """A backend whose host sessions do their part and end when they are told, or have no task left: its calls return without a budget."""
    made = Backend("answers/backend", backend.doc, persistent=False, launches=2, without=frozenset({"teardown"}))
    world, callers = made.world, made.callers
    obeys: list[FairSelector] = []
    for launch in range(1, made.launches + 1):
        done = made.hosts.where(_is_done(launch), f"{launch} is done")
        obeys += [f"hosts.{launch} is ready", f"hosts.{launch} has no result"]
        obeys.append(world.may(made.hosts, "ends", number=launch, when=done, name=f"{launch} ends as it should"))
    for id_, call in (("P52", callers.in_finalize), ("P83", callers.in_start | callers.in_execute)):
        world.leads_to(id_, PROPERTIES[id_].statement, call, ~call, fair=obeys)
    world.always("P19", PROPERTIES["P19"].statement, made.supervisor.launches <= made.launches)
    world.sometimes("OK", "finalize() returns because nothing is left", told(callers, "finalize", Outcome.OK))
    return world


def _is_done(launch: int) -> Callable[[Hosts], bool]:
    """Whether a host session was told to end, or has no task left."""

    def done(hosts: Hosts) -> bool:
        session = hosts.each[launch - 1]
        return bool(session.told) or session.kept

    return done


def _ended(made: Session) -> World:
    """What it came to: an end that was answered, and one whose farewell was lost."""
    world, trainer, host = made.world, made.trainer, made.host
    drained = host.at("session", H.DRAINING) & trainer.at("session", T.CLOSED)
    heard = trainer.at("session", T.CLOSED) | ~host.at("session", H.DRAINING)
    statement = "a trainer whose session is to end closes it, however often SHUTDOWN was lost"
    world.leads_to("P61 heard", statement, host.at("session", H.DRAINING), heard, fair=fair(made))
    world.sometimes("farewell", "the trainer's last word was lost", drained & made.to_host.empty)
    return world


def _told(made: Session) -> None:
    """Everybody who is to have a lost result hears of it, unless he has it already."""
    over = every(*(one.at("download", D.HELD, D.DONE, D.LOST) for one in made.receivers.of.values()))
    lost = made.host.some("acceptance", A.LOST)
    made.world.leads_to("P59 told", TOLD, lost, over, fair=fair(made))
