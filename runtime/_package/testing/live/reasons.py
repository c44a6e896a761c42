"""Rows that cannot fire on the live runtime over the ports in memory, and guards that cannot answer, each with its reason.

What is not here can, and scenarios and walks come to it. Each reason has a proof, and each proof is a test that can fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Proof(Enum):
    """How it is shown that nothing can fire it."""

    TABLES = "under what the runtime promises nothing in the tables comes to it, whatever is sent; sessions are watched for those promises"
    WORLDS = "the checker has gone through all of a world in which it would fire if it could, and it does not, or its state is never taken"
    WATCHED = "the runtime is made so that it answers in one way only; every session is watched for that"


ATTACHED = "the runtime launches its trainers; attached ones are in the tables and in the worlds only"
ONE_EPOCH = "a launched trainer has one session in its life"
KNOWN = "a result is forgotten while its session lasts only with its task, which is over no sooner than it is accepted"
ENTERED = "a backend is entered once, and starts then; nothing calls start() again"
AT_ONCE = "the supervisor starts a host in the step that makes it, so nothing comes before that"
INLINE = "a payload that rode in its message is decoded within the step that asks for it"
FETCHED = "a receiver is made by FETCH_PAYLOAD, and told to fetch before anything else"
ARRIVED = "whoever has its payload is not told to drop it: its party has heard of that before anything else"
LEFT = "a host that gave its process up as stuck has left, and the runtime ends what still starts"
KEPT = "the runtime can always keep a payload that it was given"
TOLD = "a host says TASK_ENDED before SESSION_ENDED"
SOLE = "a task has one receiver of its result, which is the host itself"
ADDRESSED = "what comes for a receiver is given to it by its number, over a connection of its session"

PROOFS: Mapping[str, Proof] = {
    ATTACHED: Proof.TABLES,
    ONE_EPOCH: Proof.TABLES,
    KNOWN: Proof.WORLDS,
    ENTERED: Proof.TABLES,
    AT_ONCE: Proof.TABLES,
    INLINE: Proof.TABLES,
    FETCHED: Proof.TABLES,
    ARRIVED: Proof.WORLDS,
    LEFT: Proof.WORLDS,
    KEPT: Proof.TABLES,
    TOLD: Proof.WORLDS,
    SOLE: Proof.WATCHED,
    ADDRESSED: Proof.WATCHED,
}
"""By reason: how it is shown."""


def _all(party: str, names: str, why: str) -> dict[str, str]:
    return {f"{party}.{name}": why for name in names.split()}


UNREACHABLE: Mapping[str, str] = {
    **_all("host.session", "H2 H14 H15 H16 H17 H18 H19 H28 H29", ATTACHED),
    **_all("trainer.session", "S13 S14 S20 S21 S22 S23 S24 S25", ATTACHED),
    **_all("trainer", "intake.I19 ledger.K25 ledger.K26 publication.N5", ONE_EPOCH),
    **_all("trainer.publication", "N26", KNOWN),
    **_all("host.session", "H34 H37", AT_ONCE),
    **_all("host.process", "X8 X20", LEFT),
    **_all("receiver.download", "R10 R13 R17", INLINE),
    **_all("receiver.download", "R18 R19", FETCHED),
    **_all("receiver.download", "R24", ARRIVED),
    **_all("host.source", "O7 O9", KEPT),
    **_all("trainer.source", "O9", KEPT),
    **_all("supervisor.gate", "G3 G4 G5 G27", ENTERED),
    **_all("supervisor.gate", "G19", TOLD),
}
"""By row: why."""

UNANSWERED: Mapping[str, str] = {
    **_all("host.session", "~launched above ~above", ATTACHED),
    **_all("trainer.session", "~launched newer ~newer resumes ~resumes same_session ~same_session", ATTACHED),
    **_all("trainer.lease", "~peer_alive", ATTACHED),
    **_all("trainer.publication", "superseded", ONE_EPOCH),
    **_all("host.acceptance", "~sole", SOLE),
    **_all("host.delivery", "~own_receiver", SOLE),
    **_all("receiver.download", "~mine", ADDRESSED),
}
"""By guard and answer: why."""
