"""Properties of endings: verdicts, drains, processes, and what is left afterwards."""

from __future__ import annotations

from troth.spec.properties.model import HOST, SUPERVISOR, TRAINER, By, Property

_BOTH = (By.WORLDS, By.WALKS)

# fmt: off
ENDS = (
    Property(
        id="P11", parties=(TRAINER, HOST), source="29, I3, R24", by=_BOTH,
        statement="a verdict is written once; only an abort or a loss overrides an orderly end, and only before it is over",
        why="late events must not rewrite history",
    ),
    Property(
        id="P12", parties=(TRAINER,), source="27, D15", by=_BOTH,
        statement="after an abort nobody waits in receive() or send(), and nothing is published or served",
        why="ABORT that leaves a thread hanging aborts nothing",
    ),
    Property(
        id="P13", parties=(TRAINER,), source="26, 28, 31, R2", by=_BOTH,
        statement="an orderly end never cancels a result that is being published or served, and closes only after it",
        why="the result is what the round was for",
    ),
    Property(
        id="P16", parties=(HOST,), source="29, 38, I8", by=_BOTH,
        statement="a process is killed only after TERM and its grace, or without its guardian; an attached trainer is never signalled",
        why="clean-up code deserves its seconds, and strangers' processes their lives",
    ),
    Property(
        id="P17", parties=(HOST,), source="49, 51", by=_BOTH,
        statement="SESSION_ENDED is said once, as soon as nothing of the process is left",
        why="a launch that is reported over must not hold the memory",
    ),
    Property(
        id="P19", parties=(SUPERVISOR,), source="43, D17", by=_BOTH,
        statement="a backend never has more launches than its limit",
        why="every retained trainer is a process with its memory",
    ),
    Property(
        id="P20", parties=(SUPERVISOR,), source="25, 29", by=_BOTH,
        statement="the first terminal intent of a run stays",
        why="an abort that was asked for is not a failure",
    ),
    Property(
        id="P39", parties=(SUPERVISOR,), source="26, D1",
        statement="a launch that fails fails itself only: the others are not ended for it",
        why="a round that came to nothing must not cost the result of another",
    ),
    Property(
        id="P44", parties=(TRAINER, HOST, SUPERVISOR), source="34, 49, 51",
        statement="after the end nothing is offered, nobody waits and no timer runs",
        why="what is left behind is found by the next run",
    ),
    Property(
        id="P67", parties=(SUPERVISOR,), source="24",
        statement="a run fails at most once, and only for a result that was lost",
        why="one loss is one failure",
    ),
    Property(
        id="P68", parties=(SUPERVISOR,), source="8, I4",
        statement="nothing is launched and no task is begun after the end began",
        why="a process that starts during teardown survives it",
    ),
    Property(
        id="P69", parties=(HOST,), source="51, R26",
        statement="a process that was given up before it ran is ended when it starts",
        why="a launch that was cancelled must not leave a process behind",
    ),
    Property(
        id="P73", parties=(TRAINER,), source="32, 33",
        statement="SESSION_CLOSED is said only when no result is published or served any more",
        why="a host that hears it ends the process",
    ),
    Property(
        id="P92", parties=(SUPERVISOR,), source="29, 46",
        statement="an abort reaches every launch in its own step, and leaves no drain behind",
        why="whoever aborts does not want to wait for the weakest trainer",
    ),
    Property(
        id="P93", parties=(HOST,), source="43, 45, I7",
        timed=True,
        statement="from the beginning of its end a session is over within the sum of its limits",
        why="a teardown that may last longer is one that is killed half way",
    ),
    Property(
        id="P94", parties=(HOST,), source="51, I8",
        timed=True,
        statement="a process is reported as stuck only when the wait after its last KILL is over",
        why="whoever reads stuck starts to look for it by hand",
    ),
)
# fmt: on
