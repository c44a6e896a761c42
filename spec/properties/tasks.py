"""Properties of tasks: what comes in, how often it runs, and what its asker is told."""

from __future__ import annotations

from troth.spec.properties.model import HOST, RECEIVER, SUPERVISOR, TRAINER, By, Property

_BOTH = (By.WORLDS, By.WALKS)

# fmt: off
TASKS = (
    Property(
        id="P02", parties=(TRAINER,), source="2, I4", by=_BOTH,
        statement="a task is queued only while the session is ready",
        why="work that is taken after the end began is work that is lost",
    ),
    Property(
        id="P03", parties=(TRAINER,), source="3, 13", by=_BOTH,
        statement="TASK_ACCEPTED is said only of a task that is queued or further",
        why="a host that believes it stops asking",
    ),
    Property(
        id="P04", parties=(TRAINER,), source="10", by=_BOTH,
        statement="within an epoch a sequence is delivered to the user at most once",
        why="a task that runs twice trains twice",
    ),
    Property(
        id="P05", parties=(TRAINER,), source="12, D9, D11, R20", by=_BOTH,
        statement="a task that was passed, fenced or evicted is never given to the user",
        why="an old task that runs late is the worst kind of duplicate",
    ),
    Property(
        id="P06", parties=(TRAINER, HOST), source="41, 42, D16", by=_BOTH,
        statement="what is remembered, and how often a task is offered, never exceeds its limit",
        why="a run of a million rounds must not end for lack of memory",
    ),
    Property(
        id="P07", parties=(HOST,), source="7", by=_BOTH,
        statement="a host has at most one task out, and sequences rise by one",
        why="the trainer's user runs one task at a time",
    ),
    Property(
        id="P24", parties=(HOST,), source="30, D3", by=_BOTH,
        statement="cancelling a task touches no other task and no result that was accepted before",
        why="one late round must not cost an earlier one",
    ),
    Property(
        id="P27", parties=(HOST,), source="6, 8, I4",
        statement="a task goes out only while the session is ready: after both sides know it, and before its end begins",
        why="work that is handed out at the wrong moment is work that nobody finishes",
    ),
    Property(
        id="P29", parties=(TRAINER,), source="11",
        statement="a sequence is one task: an offer of another content under it is refused and changes nothing",
        why="two tasks under one name would share a result",
    ),
    Property(
        id="P30", parties=(TRAINER,), source="14, D11",
        statement="tasks come to the user in rising order",
        why="a round that was given up must not be trained after its successor",
    ),
    Property(
        id="P31", parties=(TRAINER,), source="3",
        statement="an offer that is answered TASK_FAILED leaves nothing of itself to be run",
        why="a host that was told no gives the task to somebody else",
    ),
    Property(
        id="P34", parties=(HOST,), source="21, D2, R21",
        statement="a task whose result was accepted is never told undelivered, timed out or refused",
        why="the result is here, whatever became of the answers",
    ),
    Property(
        id="P41", parties=(TRAINER, HOST), source="30, D12, R28",
        statement="a trainer cancels a task only if its host gave it up or its session is ending",
        why="a late cancel of one task must not hit the next",
    ),
    Property(
        id="P53", parties=(HOST,), source="46",
        statement="whoever cancels a task is told its outcome at once",
        why="a cancel that waits for a dead peer cancels nothing",
    ),
    Property(
        id="P60", parties=(TRAINER,), source="D16, 41",
        statement="a task is refused as BUSY only while everything that is remembered is still needed",
        why="a memory that cannot be freed stops the run",
    ),
    Property(
        id="P66", parties=(SUPERVISOR,), source="7",
        statement="a second execute() is refused at once and disturbs nothing",
        why="two callers must not spoil each other's task",
    ),
    Property(
        id="P72", parties=(TRAINER,), source="I4",
        statement="a task whose caller gave up before taking it is queued again",
        why="a task that was handed to nobody would be lost until its deadline",
    ),
    Property(
        id="P79", parties=(TRAINER,), source="D26",
        statement="receive() gives a task that waits before one that the user has already",
        why="a cached model must not hide a new round",
    ),
    Property(
        id="P84", parties=(TRAINER, HOST, RECEIVER, SUPERVISOR), source="17, 21, I2",
        statement="whoever asked is told what happened, when it happened, once",
        why="a caller acts on what it is told",
    ),
    Property(
        id="P86", parties=(TRAINER,), source="12, D16",
        statement="no task and no result is forgotten before it is over, and no mark of what has passed goes back",
        why="what was forgotten could come again",
    ),
    Property(
        id="P87", parties=(TRAINER,), source="12, D9",
        statement="a task whose payload did not come may come again, as long as nothing newer came and nobody gave it up",
        why="one lost transfer must not cost the round",
    ),
    Property(
        id="P97", parties=(HOST,), source="14, D11",
        statement="a task that was offered and is given up is cancelled in the same step, and every later offer fences it",
        why="what nobody waits for any more must not be run",
    ),
)
# fmt: on
