"""One session protocol, small enough to be written in any checker's language: for comparing tools, and for tests of this one.

A host gives T tasks to a trainer over two ordered links of capacity C that lose their oldest message and append copies of it. The
trainer publishes a result in up to A attempts; the host takes one of them as the canonical one and answers with its number; lost
answers are recovered by asking for the status. R receivers a task download, may fail, and settle; when all have settled the host
releases the source. A shutdown or an abort may come at any time; a lease may expire (while nobody downloads) and be renewed.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.expressions import Const, Expr, every
from troth.models.handles import LinkHandle, PartyHandle, jointly
from troth.models.world import World
from troth.spec.core import Called, Received, Send


class Msg(Enum):
    """Kinds of message."""

    TASK = 1
    ACC = 2
    REL = 3
    SHUT = 4
    ABORT = 5
    RESULT = 6
    STATUS = 7


class Letter(NamedTuple):
    """A message: about a task, and (for results and acceptances) an attempt; attempt 0 in an ACC means "none yet"."""

    kind: Msg
    task: int = 0
    attempt: int = 0


IDLE, SENT, DONE = 0, 1, 2
OPEN, SHUTTING, ABORTED = 0, 1, 2
RUNNING, DRAINING, DEAD = 0, 1, 2
NONE, WORKING, WAITING, ACKED, RELEASED = 0, 1, 2, 3, 4
RESTING, DOWNLOADING, DOWNLOADED, SETTLED = 0, 1, 2, 3


class Host(NamedTuple):
    """The host: its state, whether the lease lives, and for each task how far it is and its canonical attempt."""

    state: int
    lease: bool
    tasks: tuple[int, ...]
    canonical: tuple[int, ...]


class Trainer(NamedTuple):
    """The trainer: its state, and for each task its ledger entry and the attempts published."""

    state: int
    ledger: tuple[int, ...]
    attempts: tuple[int, ...]


def _put(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


def _to_trainer(kind: Msg, task: int = 0, attempt: int = 0) -> tuple[Send]:
    return (Send("trainer", Letter(kind, task, attempt)),)  # type: ignore[arg-type]


HostStep = tuple[Host, tuple[Send, ...]] | None


def _send_task(host: Host, task: int) -> HostStep:
    if host.state != OPEN or not host.lease or host.tasks[task] != IDLE or (task > 0 and host.tasks[task - 1] == IDLE):
        return None
    return host._replace(tasks=_put(host.tasks, task, SENT)), _to_trainer(Msg.TASK, task)


def _resend_task(host: Host, task: int) -> HostStep:
    return (host, _to_trainer(Msg.TASK, task)) if host.state == OPEN and host.lease and host.tasks[task] == SENT else None


def _shutdown(host: Host, _: int) -> HostStep:
    return (host._replace(state=SHUTTING), _to_trainer(Msg.SHUT)) if host.state == OPEN else None


def _repeat_shutdown(host: Host, _: int) -> HostStep:
    return (host, _to_trainer(Msg.SHUT)) if host.state == SHUTTING else None


def _abort(host: Host, _: int) -> HostStep:
    return (host._replace(state=ABORTED), _to_trainer(Msg.ABORT)) if host.state != ABORTED else None


def _repeat_abort(host: Host, _: int) -> HostStep:
    return (host, _to_trainer(Msg.ABORT)) if host.state == ABORTED else None


def _expire_lease(host: Host, _: int) -> HostStep:
    return (host._replace(lease=False, tasks=tuple(IDLE if t == SENT else t for t in host.tasks)), ()) if host.lease else None


def _renew_lease(host: Host, _: int) -> HostStep:
    return (host._replace(lease=True), ()) if not host.lease and host.state != ABORTED else None


def _release(host: Host, task: int) -> HostStep:
    return (host, _to_trainer(Msg.REL, task)) if host.state != ABORTED and host.tasks[task] == DONE else None


HOST_CALLS: dict[str, Callable[[Host, int], HostStep]] = {
    "send_task": _send_task,
    "resend_task": _resend_task,
    "shutdown": _shutdown,
    "repeat_shutdown": _repeat_shutdown,
    "abort": _abort,
    "repeat_abort": _repeat_abort,
    "expire_lease": _expire_lease,
    "renew_lease": _renew_lease,
    "release": _release,
}


def host_step(bug: int) -> Any:
    """The host's step function; ``bug`` 1 lets every result overwrite the canonical attempt."""

    def step(host: Host, event: Any) -> HostStep:
        if isinstance(event, Received):
            return _host_receives(host, event.message, bug)  # type: ignore[arg-type]
        return HOST_CALLS[event.call](host, event.number)

    return step


def _host_receives(host: Host, letter: Letter, bug: int) -> tuple[Host, tuple[Send, ...]]:
    if host.state == ABORTED:
        return host, ()
    task = letter.task
    if letter.kind is Msg.RESULT and (host.tasks[task] != DONE or bug == 1):
        host = host._replace(tasks=_put(host.tasks, task, DONE), canonical=_put(host.canonical, task, letter.attempt))
    return host, _to_trainer(Msg.ACC, task, host.canonical[task])


def trainer_step(attempts: int, bug: int) -> Any:
    """The trainer's step function; ``bug`` 3 lets a dead trainer admit a late task."""

    def step(trainer: Trainer, event: Any) -> tuple[Trainer, tuple[Send, ...]] | None:
        if isinstance(event, Received):
            return _trainer_receives(trainer, event.message, bug), ()  # type: ignore[arg-type]
        task = event.number
        entry = trainer.ledger[task]
        if event.call == "publish":
            if trainer.state == DEAD or entry != WORKING:
                return None
            number = min(trainer.attempts[task] + 1, attempts)
            moved = trainer._replace(ledger=_put(trainer.ledger, task, WAITING), attempts=_put(trainer.attempts, task, number))
            return moved, (Send("host", Letter(Msg.RESULT, task, number)),)  # type: ignore[arg-type]
        if entry != WAITING:
            return None
        return trainer, (Send("host", Letter(Msg.STATUS, task)),)  # type: ignore[arg-type]

    return step


def _ledger_after(entry: int, letter: Letter, *, admits: bool) -> int:
    """What a letter about a task does to its ledger entry."""
    match letter.kind:
        case Msg.TASK if entry == NONE and admits:
            return WORKING
        case Msg.ACC if letter.attempt == 0 and entry == WAITING:
            return WORKING
        case Msg.ACC if letter.attempt > 0 and entry in (WORKING, WAITING):
            return ACKED
        case Msg.REL if entry in (WORKING, WAITING, ACKED):
            return RELEASED
    return entry


def _trainer_receives(trainer: Trainer, letter: Letter, bug: int) -> Trainer:
    if letter.kind is Msg.SHUT:
        return trainer._replace(state=DRAINING) if trainer.state == RUNNING else trainer
    if letter.kind is Msg.ABORT:
        return Trainer(DEAD, (NONE,) * len(trainer.ledger), (0,) * len(trainer.ledger))
    entry = _ledger_after(trainer.ledger[letter.task], letter, admits=trainer.state == RUNNING or bug == 3)
    return trainer._replace(ledger=_put(trainer.ledger, letter.task, entry))


def receiver_step(state: int, event: Called) -> tuple[int, tuple[Send, ...]] | None:
    """A receiver: rest, download, (fail,) settle."""
    moves = {
        ("start", RESTING): DOWNLOADING,
        ("finish", DOWNLOADING): DOWNLOADED,
        ("settle", DOWNLOADED): SETTLED,
        ("fail", DOWNLOADING): RESTING,
    }
    found = moves.get((event.call, state))
    return None if found is None else (found, ())


def _offers(task: int, host: Host) -> bool:
    return host.state != ABORTED and host.lease and host.canonical[task] > 0


def _unaccepted(task: int, host: Host) -> bool:
    return host.canonical[task] == 0


def _holds(task: int, trainer: Trainer) -> bool:
    return trainer.ledger[task] in (WORKING, WAITING, ACKED)


def _host_may(world: World, host: PartyHandle, to_trainer: LinkHandle, receivers: list[list[PartyHandle]], bug: int) -> None:
    """The host's own actions; a repetition only goes out on an empty link."""
    resting = every(*(r.where(lambda s: s != DOWNLOADING, "not downloading") for group in receivers for r in group))
    enough = DOWNLOADED if bug == 2 else SETTLED
    for task, group in enumerate(receivers):
        world.may(host, "send_task", number=task, name=f"send_task {task}")
        world.may(host, "resend_task", number=task, name=f"resend_task {task}", when=to_trainer.empty)
        settled = every(*(r.where(lambda s: s >= enough, "done") for r in group))
        world.may(host, "release", number=task, name=f"release {task}", when=settled & to_trainer.empty)
    world.may(host, "shutdown")
    world.may(host, "repeat_shutdown", when=to_trainer.empty)
    world.may(host, "abort")
    world.may(host, "repeat_abort", when=to_trainer.empty)
    world.may(host, "expire_lease", when=resting)
    world.may(host, "renew_lease")


def _receivers_may(world: World, host: PartyHandle, receivers: list[list[PartyHandle]]) -> None:
    """Downloads start only under a live lease; a session that is aborted starts and finishes none."""
    in_session = host.where(lambda h: h.state != ABORTED, "not aborted")
    for task, group in enumerate(receivers):
        offered = host.where(partial(_offers, task), f"offers {task}")
        for receiver in group:
            world.may(receiver, "start", when=offered)
            world.may(receiver, "finish", when=in_session)
            world.may(receiver, "settle")
            world.may(receiver, "fail")


def _claims(world: World, host: PartyHandle, trainer: PartyHandle, to_trainer: LinkHandle, receivers: list[list[PartyHandle]]) -> None:
    def one_canonical(h: Host, letters: tuple[Letter, ...]) -> bool:
        return all(m.attempt == h.canonical[m.task] for m in letters if m.kind is Msg.ACC and m.attempt > 0)

    world.always("OneCanonical", "every acceptance in flight names the canonical attempt", jointly(one_canonical, host, to_trainer))
    live: list[Expr] = []
    for task, group in enumerate(receivers):
        unaccepted = host.where(partial(_unaccepted, task), f"no canonical attempt of {task}")
        held = trainer.where(partial(_holds, task), f"holds {task}")
        live.append(unaccepted | held | every(*(r.where(lambda s: s == SETTLED, "settled") for r in group)))
    aborted = host.where(lambda h: h.state == ABORTED, "aborted")
    world.always("SourceLive", "a source stays live until its receivers have settled, unless aborted", aborted | every(*live))
    clean = trainer.where(lambda s: s.state != DEAD or all(entry == NONE for entry in s.ledger), "admits nothing when dead")
    world.always("NoAdmissionAfterAbort", "a trainer that was aborted admits nothing", Const(value=True) & clean)


@blueprint(
    "bench/session",
    T=Bound(2, "tasks", 1, 4),
    R=Bound(1, "receivers a task", 1, 4),
    A=Bound(2, "attempts to publish a result", 1, 4),
    C=Bound(2, "capacity of each link", 1, 4),
    SYMMETRY=Bound(0, "1: receivers are interchangeable, all tasks alike", 0, 1),
    BUG=Bound(0, "a fault to inject: 1, 2 or 3 breaks the invariant of that number", 0, 3),
)
def session(bounds: Bounds) -> World:
    """A session between a host and a trainer, for comparing checkers."""
    tasks = bounds.T
    world = World("bench/session", "a session between a host and a trainer, for comparing checkers")
    host = world.party("host", host_step(bounds.BUG), initial=Host(OPEN, lease=True, tasks=(IDLE,) * tasks, canonical=(0,) * tasks))
    trainer = world.party("trainer", trainer_step(bounds.A, bounds.BUG), initial=Trainer(RUNNING, (NONE,) * tasks, (0,) * tasks))
    to_trainer = world.link(host, trainer, lossy=True, loses="oldest", duplicating=True, capacity=bounds.C, full="blocks")
    world.link(trainer, host, lossy=True, loses="oldest", duplicating=True, capacity=bounds.C, full="blocks")
    receivers = [[world.party(f"receiver {t}{r}", receiver_step, initial=RESTING) for r in range(bounds.R)] for t in range(tasks)]
    _host_may(world, host, to_trainer, receivers, bounds.BUG)
    for task in range(tasks):
        world.may(trainer, "publish", number=task, name=f"publish {task}")
        world.may(trainer, "status", number=task, name=f"status {task}")
    _receivers_may(world, host, receivers)
    _claims(world, host, trainer, to_trainer, receivers)
    if bounds.SYMMETRY and bounds.R > 1:
        world.symmetric([[group[r] for group in receivers] for r in range(bounds.R)])
    return world
