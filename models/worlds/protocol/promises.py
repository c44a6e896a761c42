"""The numbered properties as claims of a world: one function a property, so that a world only lists ids.

What a watch remembers is claimed here as ``broke P..`` never being true; the rest is said of states, of one party or of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from troth.models.claims import FairSelector, strong
from troth.models.expressions import Expr, any_of, every
from troth.models.properties import connects, deliver, restarts, timers
from troth.models.worlds.protocol import single
from troth.models.worlds.protocol.session import Session
from troth.models.worlds.protocol.single import waiting
from troth.models.worlds.protocol.watched import broken
from troth.models.worlds.protocol.watching_host import accepted_of
from troth.models.worlds.protocol.watching_trainer import refused_of, told_of
from troth.spec.core import RefusalKind
from troth.spec.messages import Verdict
from troth.spec.properties import PROPERTIES
from troth.statemachines.host.acceptance import AcceptanceState
from troth.statemachines.host.delivery import ACTIVE, DeliveryState
from troth.statemachines.host.process import GONE, ProcessState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.receiver import DownloadState
from troth.statemachines.shared.source import SourceState
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import PublicationState
from troth.statemachines.trainer.session import BOUND
from troth.statemachines.trainer.states import TrainerSessionState

T, H = TrainerSessionState, HostSessionState

State = Callable[[Session], Expr]
"""What must be true in every state."""


def unbound_is_empty(s: Session) -> Expr:
    """P01."""
    return single.unbound_is_empty(s.trainer)


def bounded(s: Session) -> Expr:
    """P06."""
    return (s.trainer.handle.ledger_size <= s.deal.limits.ledger_limit) & (s.host.handle.remembered <= s.deal.limits.acceptance_limit)


def aborted_is_idle(s: Session) -> Expr:
    """P12, beside what is watched: ABORT was heard."""
    return single.aborted_is_idle(s.trainer)


def told_is_accepted(s: Session) -> Expr:
    """P10."""
    pairs = [s.trainer.handle.see(told_of(*one)) >> s.host.handle.see(accepted_of(*one)) for one in s.results()]
    return pairs[0] if len(pairs) == 1 else every(*pairs)


def cancel_spares_the_session(s: Session) -> Expr:
    """P24, beside what is watched: no host goes on with a trainer that it aborted. One that was started anew may open it, in vain."""
    aborted = s.trainer.at("session", T.ABORTED) & s.trainer.data("session", "verdict", Verdict.ABORTED)
    return aborted >> ~s.host.at("session", H.READY, H.DRAINING)


def rejected_is_not_accepted(s: Session) -> Expr:
    """P96. A host that was started anew never heard of it."""
    pairs = [~(s.trainer.handle.see(refused_of(*one)) & s.host.handle.see(accepted_of(*one))) for one in s.results()]
    return pairs[0] if len(pairs) == 1 else every(*pairs)


def served_while_up(s: Session) -> Expr:
    """P35, beside what is watched: no source goes away."""
    return single.served_while_up(s.trainer)


def settled_is_held(s: Session) -> Expr:
    """P37."""
    found = []
    for seq, _ in s.receivers.of:
        held = [one.at("download", DownloadState.HELD, DownloadState.DONE) for (q, _), one in s.receivers.of.items() if q == seq]
        found.append(s.host.at("acceptance", AcceptanceState.SETTLED, key=seq) >> every(*held))
    return found[0] if len(found) == 1 else every(*found)


def watched_while_bound(s: Session) -> Expr:
    """P40."""
    return single.watched_while_bound(s.trainer) & single.host_watches_while_live(s.host)


def cancelled_is_given_up(s: Session) -> Expr:
    """P41: what the trainer cancelled in a session that both are ready in is not out at the host."""
    found = []
    for epoch, seq in s.pairs():
        both = s.trainer.at("session", T.READY) & s.trainer.data("session", "epoch", epoch)
        both = both & s.host.at("session", H.READY) & s.host.data("session", "epoch", epoch)
        out = s.host.at("delivery", *ACTIVE) & s.host.data("delivery", "seq", seq)
        found.append((both & s.trainer.at("ledger", LedgerState.CANCELLED, key=seq)) >> ~out)
    return found[0] if len(found) == 1 else every(*found)


def nothing_left(s: Session) -> Expr:
    """P44."""
    return single.nothing_left(s.trainer) & single.host_leaves_nothing(s.host)


def never_in_shutdown(s: Session) -> Expr:
    """P55."""
    return single.never_in_shutdown(s.trainer)


def new_is_new(s: Session) -> Expr:
    """P56."""
    return single.new_is_new(s.trainer)


def held_at_source_is_held(s: Session) -> Expr:
    """P62."""
    found = [
        s.trainer.at("source", SourceState.HELD, key=key) >> one.at("download", DownloadState.HELD, DownloadState.DONE)
        for key, one in s.receivers.of.items()
    ]
    return found[0] if len(found) == 1 else every(*found)


STATES: dict[str, State] = {
    "P01": unbound_is_empty, "P06": bounded, "P10": told_is_accepted, "P12": aborted_is_idle, "P24": cancel_spares_the_session,
    "P35": served_while_up, "P37": settled_is_held, "P40": watched_while_bound, "P41": cancelled_is_given_up, "P44": nothing_left,
    "P55": never_in_shutdown, "P56": new_is_new, "P62": held_at_source_is_held, "P96": rejected_is_not_accepted,
}  # fmt: skip
"""What is said of states. Where a watch has the same id, both are claimed."""


# -- progress ----------------------------------------------------------------------------------------------------------

Progress = Callable[[Session], tuple[Expr, Expr]]
"""When it is claimed, and what then comes in the end."""


def shot_is_over(s: Session) -> tuple[Expr, Expr]:
    """P43."""
    shot = s.trainer.at("session", *BOUND) & s.trainer.some("publication", PublicationState.ACCEPTED, PublicationState.SETTLING)
    return shot, ~s.trainer.at("session", *BOUND)


def init_returns(s: Session) -> tuple[Expr, Expr]:
    """P48."""
    return waiting(s.trainer, "init"), ~waiting(s.trainer, "init")


def receive_returns(s: Session) -> tuple[Expr, Expr]:
    """P49."""
    gone = s.host.handle.is_down | s.host.at("session", H.CLOSED)
    return waiting(s.trainer, "receive") & gone, ~waiting(s.trainer, "receive")


def send_returns(s: Session) -> tuple[Expr, Expr]:
    """P50."""
    return waiting(s.trainer, "send"), ~waiting(s.trainer, "send")


def tasks_end(s: Session) -> tuple[Expr, Expr]:
    """P51. The wait for a result has a limit here; without ``result_wait_s`` only the end of the session bounds the script's own time."""
    out = s.host.at("delivery", *ACTIVE)
    return out, ~out


def downloads_end(s: Session) -> tuple[Expr, Expr]:
    """P54."""
    pulling = any_of(*(one.at("download", DownloadState.PULLING) for one in s.receivers.of.values()))
    return pulling, ~pulling


def results_are_decided(s: Session) -> tuple[Expr, Expr]:
    """P59. A result that is *safe* is with the host already."""
    undecided = s.host.some("acceptance", AcceptanceState.ACCEPTED)
    return undecided, ~undecided


def draining_closes(s: Session) -> tuple[Expr, Expr]:
    """P61."""
    return s.host.at("session", H.DRAINING), s.host.at("session", H.CLOSED) | s.host.handle.is_down


def aborting_closes(s: Session) -> tuple[Expr, Expr]:
    """P63."""
    return s.host.at("session", H.ABORTING), s.host.at("session", H.CLOSED) | s.host.handle.is_down


def processes_go(s: Session) -> tuple[Expr, Expr]:
    """P70."""
    ending = s.host.at("process", ProcessState.DOOMED, ProcessState.LEAVING, ProcessState.TERMINATING, ProcessState.KILLING)
    return ending, s.host.at("process", *GONE) | s.host.handle.is_down


def orphans_end(s: Session) -> tuple[Expr, Expr]:
    """P71."""
    orphan = s.host.handle.is_down & s.trainer.at("session", *BOUND)
    return orphan, ~s.trainer.at("session", *BOUND)


def opening_ends(s: Session) -> tuple[Expr, Expr]:
    """P74."""
    opening = s.host.at("session", H.LAUNCHING, H.GREETED, H.OPENING)
    return opening, ~opening


IN_THE_END: dict[str, Progress] = {
    "P43": shot_is_over, "P48": init_returns, "P49": receive_returns, "P50": send_returns, "P51": tasks_end, "P54": downloads_end,
    "P59": results_are_decided, "P61": draining_closes, "P63": aborting_closes, "P70": processes_go, "P71": orphans_end,
    "P74": opening_ends,
}  # fmt: skip
"""What is said of the future."""


# -- claiming ----------------------------------------------------------------------------------------------------------


def never_refused(s: Session) -> Expr:
    """P23, of every core in the world. It is remembered in a party's state, so that other properties see what comes after."""
    kinds = (RefusalKind.VIOLATION, RefusalKind.DRIVER)
    handles = [s.trainer.handle, s.host.handle, *(one.handle for one in s.receivers.of.values())]
    for handle in handles:
        handle.party.never_refuses = frozenset(kinds)
    return every(*(~handle.has_refused_as(kinds) for handle in handles))


def promise(s: Session, ids: Iterable[str], held_back: Iterable[str] = ()) -> None:
    """Claim these properties of the world.

    Fairness is weak: what can happen from some point on without a break happens. In the running system no step waits for a link; where
    a full link of a world holds the trainer's steps back now and then, though, its timers cannot fire without a break, and what relies
    on them (``held_back``) needs that they fire if they can again and again.
    """
    fair: list[FairSelector] = [deliver, timers]
    if s.deal.trainer_crashes and s.deal.trainer_restarts:
        fair.append(restarts)
    if s.deal.cuts:
        fair.append(connects)
    over = s.host.at("session", H.IDLE, H.CLOSED) | s.host.handle.is_down | s.trainer.handle.is_down
    if not s.deal.orders:  # nobody ends the session, so it may rest in the end
        over = over | (s.host.at("delivery", DeliveryState.IDLE) & ~waiting(s.trainer, "init") & ~waiting(s.trainer, "send"))
    s.world.no_deadlock("goes on", "something can happen until the session is over: no full link holds it up for ever", ends=over)
    for id_ in ids:
        statement = PROPERTIES[id_].statement
        if id_ in IN_THE_END:
            when, then = IN_THE_END[id_](s)
            s.world.leads_to(id_, statement, when, then, fair=[*fair, strong("trainer timer")] if id_ in held_back else fair)
        elif id_ == "P23":
            s.world.always(id_, statement, never_refused(s))
        else:
            s.world.always(id_, statement, _safe(s, id_))


def _safe(s: Session, id_: str) -> Expr:
    parts = [STATES[id_](s)] if id_ in STATES else []
    if id_ not in ("P10", "P96"):  # what is watched for it are facts, not faults
        parts += [~one.handle.see(broken(id_)) for one in (s.trainer, s.host) if id_ in s.watches[one.handle.name]]
        if id_ == "P21":
            parts += [~one.handle.see(broken(id_)) for one in s.receivers.of.values()]
    if not parts:
        raise KeyError(f"{id_} is not claimed of sessions")
    return parts[0] if len(parts) == 1 else every(*parts)
