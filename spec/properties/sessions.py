"""Properties of sessions and leases: who is in which session with whom, and when a peer is given up."""

from __future__ import annotations

from troth.spec.properties.model import HOST, RECEIVER, SUPERVISOR, TRAINER, By, Property, Role

_BOTH = (By.WORLDS, By.WALKS)

# fmt: off
SESSIONS = (
    Property(
        id="P01", parties=(TRAINER,), source="1", by=_BOTH,
        statement="no task is in the ledger before the session is bound",
        why="a task of nobody's session cannot be answered for",
    ),
    Property(
        id="P14", parties=(TRAINER, HOST), source="35, 37, I5, I6", by=_BOTH,
        statement="a lease expires only by a timer of its own that was not answered by a message of the epoch",
        why="a healthy peer must not be given up because the observer was busy",
    ),
    Property(
        id="P15", parties=(TRAINER, SUPERVISOR), source="47", by=_BOTH,
        statement="every call returns at most once, with one outcome",
        why="a call that returns twice has told two stories",
    ),
    Property(
        id="P18", parties=(TRAINER, HOST), source="37, 52", by=_BOTH,
        statement="a message of another epoch changes nothing",
        why="yesterday's session must not steer today's",
    ),
    Property(
        id="P22", parties=(TRAINER, HOST, RECEIVER, SUPERVISOR), source="7, 52", by=(By.WALKS,),
        statement="a refused event leaves the core as it was and causes nothing",
        why="a peer's mistake, or a user's, must cost nothing",
    ),
    Property(
        id="P23", parties=(TRAINER, HOST, RECEIVER), source="law 5", by=_BOTH,
        statement="two correct peers never refuse each other's messages",
        why="a violation must mean a broken peer, or it means nothing",
    ),
    Property(
        id="P25", parties=(TRAINER,), source="4, D22",
        statement="a trainer that is ending, or has ended, binds no session",
        why="a host that is let in by a trainer that is leaving gives its task to nobody",
    ),
    Property(
        id="P26", parties=(HOST,), source="5",
        statement="a HELLO of another rank, or of another session, never fails a launch",
        why="a stray process must not cost the run the trainer that it waits for",
    ),
    Property(
        id="P40", parties=(TRAINER, HOST), source="36, 40, D5, D14",
        statement="a lease is watched as long as its side is in a session, draining included",
        why="a wait for a peer that nobody watches can last for ever",
    ),
    Property(
        id="P45", parties=(TRAINER, HOST), source="35, I5, I6", timed=True,
        statement="while none is lost and messages there and back take less than the lease's timeout, "
        "nobody gives up a peer that is in the session",
        why="a healthy run must not end because of a lease",
    ),
    Property(
        id="P46", parties=(TRAINER, HOST), source="36, D14", timed=True,
        statement="the loss of a peer is detected within the timeout, two intervals and one delay",
        why="the wait for a dead peer is bounded, and the bound is one that a user can compute",
    ),
    Property(
        id="P55", parties=(TRAINER,), source="48, D23",
        statement="nobody ever waits in shutdown()",
        why="it is called from signal handlers, where a wait is a hang",
    ),
    Property(
        id="P56", parties=(TRAINER,), source="49, D21",
        statement="an init() that failed leaves nothing behind: no epoch, no timer, no caller, no task",
        why="a script may try again",
    ),
    Property(
        id="P57", parties=(TRAINER, HOST), source="50, D13, R13",
        statement="a message that comes twice does no more than if it had come once: its sender may be answered, or asked, again; "
        "nobody else is told",
        why="every network that resends also repeats",
    ),
    Property(
        id="P58", parties=(TRAINER, HOST), source="52",
        statement="what still arrives after the session's end changes nothing",
        why="late messages must not rewrite how it ended",
    ),
    Property(
        id="P64", parties=(), source="9, D19, I9", by=(By.SIMULATION,),
        statement="nothing is decoded before its sender is authenticated for this session's epoch",
        why="a decoder is the first thing that an intruder reaches",
    ),
    Property(
        id="P65", parties=(), source="I7", by=(By.LIMITS,),
        statement="budgets inside another one sum to less than it",
        why="an inner clean-up that outlasts the outer wait never runs",
    ),
    Property(
        id="P75", parties=(HOST,), source="40, D5, D20",
        statement="a host answers every beat of its session, draining and aborting included",
        why="a trainer that is not answered gives its host up, and its result with it",
    ),
    Property(
        id="P78", parties=(), source="D24, D25", by=(By.SIMULATION,),
        statement="the death of an owner is seen by an end-of-file, never by a process number, and a probe takes no lock of the owner's",
        why="process numbers are used again, and a lock that is probed is a lock that is lost",
    ),
    Property(
        id="P81", parties=(TRAINER, HOST, RECEIVER), source="3, 13, 50",
        statement="a question, an offer, an order or a notice has one answer, in the step that takes it, and the answer is true",
        why="an answer that is put off is an answer that is lost, and one that is wrong is worse",
    ),
    Property(
        id="P82", parties=(TRAINER, HOST, RECEIVER, SUPERVISOR), source="45, 47",
        statement="whoever waits has a timer that ends the wait or asks again, and no other timer runs",
        why="a wait without an end is a hang, and a timer without a wait is one later",
    ),
    Property(
        id="P85", parties=(TRAINER, HOST, RECEIVER, SUPERVISOR), source="I2, I3",
        statement="what a party believes of its peers, its process, its link and its callers is what it was told of them, and what it did",
        why="whoever acts on a belief that is wrong serves nobody, or waits for nobody",
    ),
    Property(
        id="P88", parties=(TRAINER, HOST), source="50, D15", role=Role.CONFORMANCE,
        statement="a party says what its tables, told a second time, have it say, once for every reason to say it",
        why="a slip in a row is found where it is made, also where only a rare run would show its harm",
    ),
    Property(
        id="P89", parties=(TRAINER, HOST, RECEIVER, SUPERVISOR), source="52, D2", role=Role.CONFORMANCE,
        statement="a party goes where its tables, told a second time, have it go, and notes what they have it note",
        why="a slip in a row is found where it is made, also where only a rare run would show its harm",
    ),
    Property(
        id="P95", parties=(TRAINER,), source="4, D4, R30",
        statement="a trainer that is ready takes the newer session that its host opens, and refuses an older one only for now",
        why="a host that lost a session must be able to get its trainer back",
    ),
    Property(
        id="P98", parties=(TRAINER, HOST), source="D20, I5, I6",
        statement="losing the link ends nothing: only the lease, an order or the process's end does",
        why="a cable that was pulled for a second must not cost a day of training",
    ),
    Property(
        id="P99", parties=(TRAINER, HOST), source="I2, I3", role=Role.CONFORMANCE,
        statement="what two machines of a party note of one fact is the same",
        why="two records of one fact end up saying two things; a slip is found before they are told apart from outside",
    ),
    Property(
        id="P100", parties=(TRAINER,), source="40, I5",
        statement="a trainer in a session says at every interval that it lives, and passes every log record on",
        why="a peer that is not heard is given up",
    ),
    Property(
        id="P101", parties=(TRAINER, HOST), source="49, 50",
        statement="what is not answered is said again, at every interval and on every new link",
        why="every network loses messages",
    ),
    Property(
        id="P102", parties=(TRAINER, HOST), source="35, 36, I5, I6",
        statement="a peer is given up at its second silence, one later where bytes should have moved, one more where its process lives: "
        "never sooner, never later; a message, or a byte that moves, begins anew",
        why="the wait for a dead peer is bounded, and a live one is not given up",
    ),
    Property(
        id="P103", parties=(TRAINER, HOST, RECEIVER), source="3, 13, 18, 23",
        statement="what was answered is not asked again",
        why="an answer that is not taken in keeps two sides busy until a limit ends it",
    ),
    Property(
        id="P104", parties=(TRAINER,), source="27, 32, 49",
        statement="a trainer that leaves its session says so in the step in which it does, unless its host has refused it",
        why="a host that is not told waits until the lease is over",
    ),
    Property(
        id="P105", parties=(TRAINER, HOST), source="29, 47, I3",
        statement="an end has a verdict from its beginning on, and the verdict is what brought it",
        why="whoever is told lost looks for a crash, and whoever is told aborted does not",
    ),
)
# fmt: on
