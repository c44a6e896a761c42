"""Order: what may happen to a session at the worst moment, and after what else.

Eight things can. *One < other* means, in one and the same run: the first has happened and has shown its effect; then the other *comes*:
its message is the first on the link to a trainer that lives, its timer may fire, its loss or its crash may be next; and it would *tell*:
whoever it comes to would go elsewhere for it, more than a sign of life would make him. Every ordered pair is one of three kinds:

- it is reached so, and a world claims that it is;
- the other comes, but always *too late* to tell, for a reason: a world claims both;
- it is *impossible*, for a reason.

Each telling is written down here as a condition of states; a test holds them against what the cores do.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

from attrs import frozen

from troth.models.expressions import Expr, any_of, lift
from troth.models.handles import Handle
from troth.models.worlds.protocol.reach import acceptance_lost, first, on_its_way
from troth.models.worlds.protocol.session import Session
from troth.spec import messages as m
from troth.statemachines.host.states import HostSessionState as H
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.trainer.ledger import LedgerState
from troth.statemachines.trainer.publication import OPEN
from troth.statemachines.trainer.publication import PublicationState as P
from troth.statemachines.trainer.session import BOUND
from troth.statemachines.trainer.states import TrainerSessionState as T

EIGHT = (
    "SHUTDOWN", "ABORT", "CANCEL_TASK", "ACCEPTED delivered", "ACCEPTED lost", "lease expiry", "trainer crash", "host crash",
)  # fmt: skip
"""SHUTDOWN, ABORT, CANCEL_TASK and RESULT_ACCEPTED as they come to the trainer, of a task that is number 1; the others on either side."""


@frozen
class Happening:
    """One of the eight, as conditions of a state: that it has happened, that it comes next, and that it would then tell."""

    happened: Expr
    comes: Expr
    tells: Expr


def happenings(s: Session) -> Mapping[str, Happening]:
    """All eight, in a session that watches ``acceptances``."""
    trainer, host = s.trainer, s.host
    up = ~trainer.handle.is_down
    ready, bound = trainer.at("session", T.READY), trainer.at("session", *BOUND)
    cancelled, waits = trainer.at("ledger", LedgerState.CANCELLED, key=1), trainer.at("publication", *OPEN, key=1)
    accepted = first(s.to_trainer, m.ResultAccepted, seq=1)
    losing = on_its_way(s.to_trainer, m.ResultAccepted, seq=1) & left(s.losses)
    doubts = [one.at("lease", LeaseState.SUSPECT) & one.armed("lease") for one in (trainer, host)]
    expired = trainer.at("lease", LeaseState.EXPIRED) | host.at("lease", LeaseState.EXPIRED)
    dying, host_dying = up & left(s.crashes.get("trainer")), ~host.handle.is_down & left(s.crashes.get("host"))
    joined = trainer.at("session", *BOUND, T.ABORTED)
    # What is absent and was seen before is passed already, unless it may come again.
    passed = trainer.at("ledger", LedgerState.ABSENT, key=1) & trainer.data("intake", "highest", 1) & ~trainer.data("intake", "retry", 1)
    stays = ~trainer.at("ledger", LedgerState.CANCELLED, LedgerState.COMPLETE, key=1) & ~passed
    return {
        "SHUTDOWN": Happening(trainer.data("session", "verdict", m.Verdict.STOPPED), up & first(s.to_trainer, m.Shutdown), ready),
        "ABORT": Happening(trainer.data("session", "verdict", m.Verdict.ABORTED), up & first(s.to_trainer, m.Abort), bound),
        # Not one that the end of the session has cancelled.
        "CANCEL_TASK": Happening(ready & cancelled, up & first(s.to_trainer, m.CancelTask, seq=1), joined & stays),
        "ACCEPTED delivered": Happening(trainer.at("publication", P.ACCEPTED, P.SETTLING, P.SETTLED, key=1), up & accepted, bound & waits),
        "ACCEPTED lost": Happening(acceptance_lost(s), losing, bound & waits),
        "lease expiry": Happening(expired, any_of(*doubts), lift(True)),
        "trainer crash": Happening(trainer.handle.is_down, dying, joined),
        "host crash": Happening(host.handle.is_down, host_dying, ~host.at("session", H.IDLE, H.CLOSED)),
    }


def left(budget: Handle | None) -> Expr:
    """It may still happen."""
    return lift(False) if budget is None else budget.left > 0


_OVER = "ABORT has ended everything at the trainer in one step; it stays only to say so"
_CANCELLED = "the result went with its task: nobody waits to hear that it was accepted"
_DEAD = "a dead trainer takes no message, and here none starts again: what was sent to it is nobody's"

TOO_LATE: Mapping[tuple[str, str], str] = {
    ("ABORT", "SHUTDOWN"): _OVER,
    ("ABORT", "CANCEL_TASK"): _OVER,
    ("ABORT", "ACCEPTED delivered"): _OVER,
    ("ABORT", "ACCEPTED lost"): _OVER,
    ("CANCEL_TASK", "ACCEPTED delivered"): _CANCELLED,
    ("CANCEL_TASK", "ACCEPTED lost"): _CANCELLED,
    ("ACCEPTED delivered", "ACCEPTED lost"): "the trainer has heard it: what is lost is another copy",
    ("trainer crash", "ACCEPTED lost"): "who waited to hear that it was accepted is dead",
}
"""Ordered pairs whose second comes, but never tells, and why."""

IMPOSSIBLE: Mapping[tuple[str, str], str] = {
    ("trainer crash", other): _DEAD for other in ("SHUTDOWN", "ABORT", "CANCEL_TASK", "ACCEPTED delivered")
}
"""Ordered pairs whose second does not come at all, and why."""


def pairs(s: Session) -> None:
    """Claim of every ordered pair that is possible what is true of it."""
    known = happenings(s)
    for one, other in permutations(EIGHT, 2):
        if (one, other) in IMPOSSIBLE:
            continue
        done, after = known[one].happened, known[other]
        in_time, said = done & after.comes & after.tells, f"{one} has happened, and {other} comes next"
        if (one, other) in TOO_LATE:
            s.world.sometimes(f"{one} < {other}", f"{said}, too late", done & after.comes)
            s.world.never(f"{one} < {other} in time", f"{other} never tells after {one}", in_time)
        else:
            s.world.sometimes(f"{one} < {other}", f"{said}, and tells", in_time)


__all__ = ["EIGHT", "IMPOSSIBLE", "TOO_LATE", "Happening", "happenings", "pairs"]
