"""Small launched worlds for the counterexamples whose own worlds the runtime cannot be led along.

Each leaves out what the other cannot do without: an end that hangs up while messages are on their way, a second receiver elsewhere, a
pair that somebody else launched, a link that holds a step back.
"""

from __future__ import annotations

from typing import Any

from troth.models.bounds import Bound, Bounds, blueprint
from troth.models.world import World
from troth.models.worlds.protocol.configured import ALWAYS, FETCHED, NO_BEATS, configured
from troth.models.worlds.protocol.presence import answering
from troth.models.worlds.protocol.session import Deal
from troth.models.worlds.protocol.single import waiting
from troth.models.worlds.protocol.transfers import Way, claims, transfer
from troth.spec import core as c
from troth.statemachines.trainer.ledger import LedgerState

PATIENT = NO_BEATS | {"session"}
"""A host waits for ever for the answer to SHUTDOWN or ABORT, and does not hang up."""
ROOMY: dict[str, Any] = {"capacity": 9, "full": "truncates", "merges": True}
"""No step is held back, as none is by a link of the runtime."""


@blueprint("paths/cancels")
def cancels(_bounds: Bounds) -> World:
    """A launched trainer whose task may be cancelled at any time, however far its result has come."""
    return answering("paths/cancels", cancels.doc, (*ALWAYS, *FETCHED), launched=True, receivers=1, orders=("stop",)).world


@blueprint("paths/ends")
def ends(_bounds: Bounds) -> World:
    """A launched trainer whose host orders an end at any time and waits for it, and a lost message."""
    deal = Deal(launched=True, receivers=1, losses=1, orders=("stop", "close", "abort"), without=PATIENT, **ROOMY)
    return configured("paths/ends", ends.doc, deal, (*ALWAYS, *FETCHED), held_back=())


@blueprint("paths/beats")
def beats(_bounds: Bounds) -> World:
    """A launched trainer that beats, and a host that orders an end and waits for it."""
    deal = Deal(launched=True, orders=("close",), without=frozenset({"session"}), **ROOMY)
    return configured("paths/beats", beats.doc, deal, (*ALWAYS, "P75"), held_back=())


@blueprint("paths/bytes")
def arrive(_bounds: Bounds) -> World:
    """A launched trainer and the one receiver of its result, with a lost message between the two; nobody is given up who still fetches."""
    return claims(transfer("paths/bytes", arrive.doc, Way(receivers=1, losses=1, breaks=1, waits=True)), "settled")


@blueprint("paths/answers", loss=Bound(1, "messages that may be lost", 0, 3), cuts=Bound(1, "how often the link may be cut", 0, 2))
def answers(bounds: Bounds) -> World:
    """``external/answers``, but that only a caller who is in receive() gives it up, and not whoever might be."""
    made = answering(
        "paths/answers", answers.doc, (*ALWAYS, *FETCHED), launched=True, receivers=1, losses=bounds.loss, cuts=bounds.cuts, orders=(),
    )  # fmt: skip
    inside = waiting(made.trainer, "receive") | made.trainer.some("ledger", LedgerState.HANDED)
    made.world.may(made.trainer.handle, c.CallCancelled("receive", 2), when=inside, times=1, name="give up receive")
    return made.world


STAGED = (answers, cancels, ends, beats, arrive)
