"""What was stated of the reference protocol, or shown by a field report, and has no counterpart here."""

from __future__ import annotations

from troth.spec.properties.model import LeftOut

LEFT_OUT = (
    LeftOut(
        source="19",
        statement="only the transfers of attempts that are not canonical may be deleted before the canonical one is over",
        reason="a payload belongs to the result, not to an attempt: there are no transfers of other attempts (decision 0010)",
    ),
    LeftOut(
        source="34",
        statement="the runtime that the whole process shares is drained before the link is closed, and never by an attached trainer",
        reason="nothing is shared by a whole process; what the end leaves of a session's own sources and timers is P44",
    ),
    LeftOut(
        source="39",
        statement="an owner's process number that cannot be seen at first never causes a kill",
        reason="no process number is ever looked at: an owner's death is an end-of-file (P78)",
    ),
    LeftOut(
        source="I10",
        statement="what could not be checked, or was stopped early, is never reported as holding",
        reason="it is about checkers; Troth's own keeps it, and its tests say so, but no world of the protocol can",
    ),
)
