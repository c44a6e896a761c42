"""Properties of results: acceptance, its source, and what both sides are told about it."""

from __future__ import annotations

from troth.spec.properties.model import HOST, RECEIVER, TRAINER, By, Property

_BOTH = (By.WORLDS, By.WALKS)

# fmt: off
RESULTS = (
    Property(
        id="P08", parties=(HOST,), source="15, I1, R11", by=_BOTH,
        statement="for one task the canonical attempt never changes",
        why="two accepted results of one task are one too many",
    ),
    Property(
        id="P09", parties=(HOST,), source="16, 18, D6, D7, D10", by=_BOTH,
        statement="a result that was accepted is never rejected, and one that was rejected is never accepted",
        why="whoever was told one thing has acted on it",
    ),
    Property(
        id="P10", parties=(TRAINER, HOST), source="17, D8, R9", by=_BOTH,
        statement="send() says accepted or undelivered only of a result that the host accepted",
        why="a script drops its model when send() returns",
    ),
    Property(
        id="P21", parties=(HOST, RECEIVER), source="24, I2, R23", by=_BOTH,
        statement="the loss of an accepted result is told to its receivers once, and to a receiver that holds it it means nothing",
        why="a receiver that waits for a dead source waits for ever",
    ),
    Property(
        id="P28", parties=(HOST,), source="8, R27",
        statement="after an abort, or after its end, a host accepts no result",
        why="an acceptance that nobody will act on is a lie",
    ),
    Property(
        id="P32", parties=(TRAINER, HOST), source="16, I1",
        statement="another content for a task that has a result is a conflict, and changes nothing",
        why="the second model must not silently replace the first, nor be silently dropped",
    ),
    Property(
        id="P33", parties=(TRAINER,), source="18, 20, D10, I2",
        statement="as long as a task is remembered, what send() said of its result stays true",
        why="whoever was told accepted has thrown its model away",
    ),
    Property(
        id="P35", parties=(TRAINER,), source="22, R2, R3",
        statement="from the acceptance of a result until its receivers are done the trainer's session is up, and serves it",
        why="an accepted result whose source is gone is no result",
    ),
    Property(
        id="P36", parties=(HOST,), source="23, D13, R12, R14",
        statement="what a host decided about a result only moves forward",
        why="a late message must not make a live source look settled, nor a settled one live",
    ),
    Property(
        id="P37", parties=(TRAINER, HOST, RECEIVER), source="D12, I2, R7",
        statement="a result is settled as delivered only if every receiver holds it",
        why="a settlement without the payload is a silent loss",
    ),
    Property(
        id="P38", parties=(HOST,), source="25, D3, I2, R6",
        statement="a result that is safe, settled or given up by the host itself is never reported lost",
        why="a cancelled round must not fail the run",
    ),
    Property(
        id="P42", parties=(TRAINER,), source="33",
        statement="the notice of settlement goes out only when every receiver is done",
        why="a host that hears it early lets the trainer go early",
    ),
    Property(
        id="P47", parties=(TRAINER,), source="44",
        statement="a result that was rejected or cancelled is offered to nobody any more",
        why="a source that nobody will come for holds its memory",
    ),
    Property(
        id="P62", parties=(TRAINER, RECEIVER), source="D18",
        statement="a source counts a receiver as done with success only if that receiver holds the payload",
        why="bytes that were served are not bytes that arrived",
    ),
    Property(
        id="P76", parties=(HOST,), source="D8, 18",
        statement="an attempt that was answered UNKNOWN is never accepted afterwards",
        why="its sender was told that it is not there, and has sent another",
    ),
    Property(
        id="P77", parties=(TRAINER,), source="D7, R8, R10",
        statement="a result is sent again only after the host has said that the attempt before is not there",
        why="an answer that was lost is not an answer no",
    ),
    Property(
        id="P80", parties=(), source="D26-D31", by=(By.SIMULATION,),
        statement="a model arrives as it was, to the bit, not-a-number too; what cannot is refused by its path before anything is sent",
        why="a model that arrives changed is worse than one that does not arrive",
    ),
    Property(
        id="P90", parties=(TRAINER, HOST, RECEIVER), source="D18, 24",
        statement="a transfer fails, or is done, by what becomes of itself: no receiver's failure is another's",
        why="one slow site must not cost the others their model",
    ),
    Property(
        id="P91", parties=(RECEIVER,), source="36, 47",
        timed=True,
        statement="a download stands still no longer than its stalls, and pauses no longer than its pause",
        why="a receiver that stops trying holds up the round",
    ),
    Property(
        id="P96", parties=(TRAINER, HOST), source="18, 21, D7, R10",
        statement="send() says rejected only of a result that the host has not accepted",
        why="a result that the host has must not be computed again",
    ),
)
# fmt: on
