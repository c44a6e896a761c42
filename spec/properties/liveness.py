"""Properties of progress: what happens in the end, given that every message, timer and restart has its turn and faults are finite.

A turn is due by *weak* fairness: what can happen from some point on without a break happens. That is enough wherever no step waits for
a link, as none does in the running system. Where a world's links have room for one message and hold steps back, three of these (P43, P49,
P50) need that a trainer's timer which can fire again and again does; the page of the worlds says where. Over a link that loses for ever,
delivery is strongly fair: whoever says a thing again and again gets through.

Nothing is assumed of users: no script has to make a call. Only where no limit ends the wait for a result (``answers``) does P51 need a
script that goes on.
"""

from __future__ import annotations

from troth.spec.properties.model import HOST, RECEIVER, SUPERVISOR, TRAINER, Property

# fmt: off
LIVENESS = (
    Property(
        id="P43", parties=(TRAINER,), source="33", live=True,
        statement="a trainer launched for one task closes by itself after it",
        why="its process is kept for the result only",
    ),
    Property(
        id="P48", parties=(TRAINER,), source="45", live=True,
        statement="init() returns",
        why="a script must not hang before it began",
    ),
    Property(
        id="P49", parties=(TRAINER, HOST), source="45, D15", live=True,
        statement="receive() returns once the host is gone or its session is over",
        why="a script that waits for tasks must be able to end",
    ),
    Property(
        id="P50", parties=(TRAINER,), source="45, D2, D15, R16", live=True,
        statement="send() returns",
        why="a script waits for it with its model in memory",
    ),
    Property(
        id="P51", parties=(HOST,), source="45, 46, D2", live=True,
        statement="every task that goes out gets an outcome",
        why="the job waits for it",
    ),
    Property(
        id="P52", parties=(SUPERVISOR,), source="43, 45, D17", live=True,
        statement="finalize() returns, in two budgets whatever the number of launches",
        why="the end of a run must not wait for its weakest trainer",
    ),
    Property(
        id="P54", parties=(RECEIVER,), source="47, R17", live=True,
        statement="every download ends",
        why="a receiver must not wait for a dead source",
    ),
    Property(
        id="P59", parties=(HOST,), source="23, 24, 45, R23", live=True,
        statement="an accepted result is settled, given up by the host, or reported lost in the end",
        why="a result that is neither here nor lost blocks the round",
    ),
    Property(
        id="P61", parties=(HOST,), source="45, R5", live=True,
        statement="an orderly end always ends in closed",
        why="shutting down is the one thing that must work",
    ),
    Property(
        id="P63", parties=(HOST,), source="27, 46", live=True,
        statement="an abort always ends in closed",
        why="and so is giving up",
    ),
    Property(
        id="P70", parties=(HOST,), source="51, R22, R25", live=True,
        statement="every process that is being ended is gone in the end, or reported as stuck",
        why="nobody wants to find it tomorrow",
    ),
    Property(
        id="P71", parties=(TRAINER,), source="36, D24", live=True,
        statement="a trainer whose host is gone for good ends",
        why="an orphan holds a GPU",
    ),
    Property(
        id="P74", parties=(HOST,), source="4, D4, R29, R30", live=True,
        statement="opening a session ends, in a session or with a verdict",
        why="a trainer that is still in an older session must not block its host for ever",
    ),
    Property(
        id="P83", parties=(SUPERVISOR,), source="45, D2", live=True,
        statement="start() and execute() return",
        why="the job waits in them",
    ),
)
# fmt: on
