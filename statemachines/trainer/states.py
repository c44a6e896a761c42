"""The states of a trainer's session, and what they come to for a caller: what its sibling machines must know of it."""

from __future__ import annotations

from enum import Enum

from troth.spec.emits import Firing
from troth.spec.guards import atom
from troth.spec.messages import Outcome, Verdict


class TrainerSessionState(Enum):
    """Where the trainer is in the life of its session."""

    NEW = "new"
    PASSIVE = "passive"
    JOINING = "joining"
    BINDING = "binding"
    READY = "ready"
    DRAINING = "draining"
    ABORTED = "aborted"
    CLOSED = "closed"


ENDED = (TrainerSessionState.PASSIVE, TrainerSessionState.DRAINING, TrainerSessionState.ABORTED, TrainerSessionState.CLOSED)
"""Where no result can be published any more, or ever."""

open_ = atom("open", reads=["session"], of=lambda view, event: view.session.state is TrainerSessionState.READY)
"""Whether the session takes tasks."""

OUTCOMES = {
    Verdict.NONE: Outcome.CLOSED,
    Verdict.STOPPED: Outcome.STOPPED,
    Verdict.ABORTED: Outcome.ABORTED,
    Verdict.LOST: Outcome.LOST,
}


def verdict_outcome(firing: Firing) -> Outcome:
    """What a call is told when no session will serve it."""
    if firing.view.session.state is TrainerSessionState.PASSIVE:
        return Outcome.PASSIVE
    return OUTCOMES[firing.view.session.data.verdict]
