"""The numbered properties: what users may rely on.

A property has one name everywhere. ``P08`` is the same statement in a test, a world, a trace and a page of the docs. Here are the
statements; the predicates live with whatever evaluates them. Sources: *I1-I9* are invariants that field reports keep breaking,
a number is the statement of the reference protocol that a property restates for Troth.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


def _id(_instance: object, _attribute: object, value: str) -> None:
    if not (len(value) == 3 and value[0] == "P" and value[1:].isdigit()):
        raise ValueError(f"property id {value!r}: must be P and two digits")


@frozen(kw_only=True)
class Property:
    """One promise: its id, what is promised, why a user cares, where it comes from, and whose cores it is about."""

    id: str = field(validator=_id)
    statement: str
    why: str
    source: str
    parties: tuple[str, ...]


def _catalogue(*properties: Property) -> Mapping[str, Property]:
    found = {p.id: p for p in properties}
    if len(found) != len(properties):
        raise ValueError("two properties have the same id")
    return found


T, H, R, S = "trainer", "host", "receiver", "supervisor"

PROPERTIES = _catalogue(
    Property(
        id="P01", parties=(T,), source="reference 1",
        statement="no task is in the ledger before the session is bound",
        why="a task of nobody's session cannot be answered for",
    ),
    Property(
        id="P02", parties=(T,), source="reference 2, I4",
        statement="a task is queued only while the session is ready",
        why="work that is taken after the end began is work that is lost",
    ),
    Property(
        id="P03", parties=(T,), source="reference 3, 13",
        statement="TASK_ACCEPTED is said only of a task that is queued or further",
        why="a host that believes it stops asking",
    ),
    Property(
        id="P04", parties=(T,), source="reference 10",
        statement="within an epoch a sequence is delivered to the user at most once",
        why="a task that runs twice trains twice",
    ),
    Property(
        id="P05", parties=(T,), source="reference 12, D9, D11",
        statement="a sequence that was passed, fenced or evicted is never queued",
        why="an old task that runs late is the worst kind of duplicate",
    ),
    Property(
        id="P06", parties=(T, H), source="reference 41, 42, D16",
        statement="what is remembered never exceeds its limit",
        why="a run of a million rounds must not end for lack of memory",
    ),
    Property(
        id="P07", parties=(H,), source="reference 7",
        statement="a host has at most one task out, and sequences rise by one",
        why="the trainer's user runs one task at a time",
    ),
    Property(
        id="P08", parties=(H,), source="reference 15, I1",
        statement="for one task the canonical attempt never changes",
        why="two accepted results of one task are one too many",
    ),
    Property(
        id="P09", parties=(H,), source="reference 16, 18, D6, D7, D10",
        statement="a result that was accepted is never rejected, and one that was rejected is never accepted",
        why="whoever was told one thing has acted on it",
    ),
    Property(
        id="P10", parties=(T, H), source="reference 17, D8",
        statement="send() says accepted or undelivered only of a result that the host accepted",
        why="a script drops its model when send() returns",
    ),
    Property(
        id="P11", parties=(T, H), source="reference 29, I3",
        statement="a verdict is written once; only an abort or a loss overrides an orderly end, and only before it is over",
        why="late events must not rewrite history",
    ),
    Property(
        id="P12", parties=(T,), source="reference 27, D15",
        statement="after an abort nobody waits in receive() or send(), and nothing is published or served",
        why="ABORT that leaves a thread hanging aborts nothing",
    ),
    Property(
        id="P13", parties=(T,), source="reference 28, 31, 32",
        statement="an orderly end never cancels a result that is being published or served, and closes only after it",
        why="the result is what the round was for",
    ),
    Property(
        id="P14", parties=(T, H), source="reference 35, 37, I5, I6",
        statement="a lease expires only by a timer of its own that was not answered by a message of the epoch",
        why="a healthy peer must not be given up because the observer was busy",
    ),
    Property(
        id="P15", parties=(T, S), source="reference 47",
        statement="every call returns at most once, with one outcome",
        why="a call that returns twice has told two stories",
    ),
    Property(
        id="P16", parties=(H,), source="reference 38, I8",
        statement="a process is killed only after TERM and its grace, or without its guardian; an attached trainer is never signalled",
        why="clean-up code deserves its seconds, and strangers' processes their lives",
    ),
    Property(
        id="P17", parties=(H,), source="reference 49, 51",
        statement="SESSION_ENDED is said once, and nothing of the process is left then",
        why="a launch that is reported over must not hold the memory",
    ),
    Property(
        id="P18", parties=(T, H), source="reference 37, 52",
        statement="a message of another epoch changes nothing",
        why="yesterday's session must not steer today's",
    ),
    Property(
        id="P19", parties=(S,), source="reference 43, D17",
        statement="a backend never has more launches than its limit",
        why="every retained trainer is a process with its memory",
    ),
    Property(
        id="P20", parties=(S,), source="reference 25, 29",
        statement="the first terminal intent of a run stays",
        why="an abort that was asked for is not a failure",
    ),
    Property(
        id="P21", parties=(H, R), source="reference 24, I2",
        statement="the loss of an accepted result is told to its receivers once, and to a receiver that holds it it means nothing",
        why="a receiver that waits for a dead source waits for ever",
    ),
    Property(
        id="P22", parties=(T, H, R, S), source="reference 7, 52",
        statement="a refused event leaves the core as it was and causes nothing",
        why="a peer's mistake, or a user's, must cost nothing",
    ),
    Property(
        id="P23", parties=(T, H, R), source="law 5",
        statement="two correct peers never refuse each other's messages",
        why="a violation must mean a broken peer, or it means nothing",
    ),
    Property(
        id="P24", parties=(H,), source="reference 30, D3",
        statement="cancelling a task touches no other task and no result that was accepted before",
        why="one late round must not cost an earlier one",
    ),
)  # fmt: skip
"""Every numbered property, by id."""
