"""Rows that cannot fire on the live runtime over the ports in memory, each with its reason. What is not here can, and walks come to it."""

from __future__ import annotations

from collections.abc import Mapping

ATTACHED = "the runtime launches its trainers; attached ones are in the tables and in the worlds only"
ONE_EPOCH = "a launched trainer has one session in its life"
ENTERED = "a backend is entered once, and starts then; nothing calls start() again"
AT_ONCE = "the supervisor starts a host in the step that makes it, so nothing comes before that"
INLINE = "a payload that rode in its message is decoded within the step that asks for it"
FETCHED = "a receiver is made by FETCH_PAYLOAD, and told to fetch before anything else"
SOLE = "the host is the only receiver, and its payload arrives before anything is settled"
FORGED = "only bytes that somebody else has written on an authenticated connection would do it"
LEFT = "a host that gave its process up as stuck has left, and the runtime ends what still starts"
BUDGET = "the limits before it add up to less: their order is checked where they are made"
KEPT = "the runtime can always keep a payload that it was given"
TOLD = "a host says TASK_ENDED before SESSION_ENDED"


def _all(party: str, rows: str, why: str) -> dict[str, str]:
    return {f"{party}.{row}": why for row in rows.split()}


UNREACHABLE: Mapping[str, str] = {
    **_all("host.session", "H2 H14 H15 H16 H17 H18 H19 H28 H29 H30 H31", ATTACHED),
    **_all("trainer.session", "S13 S14 S20 S21 S22 S23 S24 S25", ATTACHED),
    **_all("trainer", "intake.I19 ledger.K25 ledger.K26 publication.N5 publication.N26 publication.N27 publication.N28", ONE_EPOCH),
    **_all("host.session", "H34 H37", AT_ONCE),
    **_all("host.session", "H6", ONE_EPOCH),
    **_all("host.process", "X8 X20", LEFT),
    **_all("host.acceptance", "A14", SOLE),
    **_all("host", "acceptance.A6 delivery.D10", FORGED),
    **_all("trainer.ledger", "K5 K10", FORGED),
    **_all("receiver.download", "R7", FORGED),
    **_all("receiver.download", "R10 R13 R17", INLINE),
    **_all("receiver.download", "R18 R19", FETCHED),
    **_all("receiver.download", "R24", SOLE),
    **_all("host.source", "O9", KEPT),
    **_all("trainer.source", "O9", KEPT),
    **_all("supervisor.gate", "G3 G4 G5 G27", ENTERED),
    **_all("supervisor.gate", "G19", TOLD),
    **_all("supervisor.teardown", "W11 W12", BUDGET),
}
"""By row: why."""
