"""Every order of the things that end a task or a session, while a result is out: no call is left waiting, nothing is decided twice.

The races of the reference are about two or three of these at a time. Here every pair is played in both orders, from every stage of a
publication, and the same things must hold after each.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready
from troth.spec import core
from troth.spec import messages as m


def shutdown_delivered(made: Session) -> None:
    """R1-R4: SHUTDOWN reaches the trainer."""
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))


def abort_delivered(made: Session) -> None:
    """R6, R7: ABORT reaches the trainer."""
    made.give("trainer", core.Received("control", m.Abort(epoch=1)))


def cancel_delivered(made: Session) -> None:
    """R28: CANCEL_TASK reaches the trainer."""
    made.give("trainer", core.Received("control", m.CancelTask(epoch=1, seq=1)))


def result_decided(made: Session) -> None:
    """R2, R8: the host takes the result, and the trainer hears of it."""
    made.settle()


def acceptance_lost(made: Session) -> None:
    """R8-R10: the host takes the result, and the trainer does not hear of it."""
    while made.queues.get(TO_HOST):
        made.deliver(TO_HOST)
    made.lose(TO_TRAINER)


def lease_expired(made: Session) -> None:
    """R15-R17: silence, suspicion, and (the host's process is thought alive) the unresponsive limit."""
    while ("trainer", "lease", None) in made.armed:
        made.fire("trainer", "lease")


def redialled(made: Session) -> None:
    """The link is lost with what was on it, and comes up again."""
    made.give("trainer", core.LinkLost("control"))
    made.give("host", core.LinkLost("control"))
    made.lose(TO_TRAINER)
    made.lose(TO_HOST)
    made.give("trainer", core.LinkUp("control"))
    made.give("host", core.LinkUp("control"))


def owner_lost(made: Session) -> None:
    """R23, R24: the trainer's host is gone."""
    made.give("trainer", core.OwnerLost())


def process_exited(made: Session) -> None:
    """R22-R24: the host hears that the process is gone."""
    made.give("host", core.ProcessExited())


def user_leaves(made: Session) -> None:
    """R5: shutdown() from another thread."""
    made.call("trainer", "shutdown", 9)


Act = Callable[[Session], None]
ACTS: tuple[Act, ...] = (
    shutdown_delivered,
    abort_delivered,
    cancel_delivered,
    result_decided,
    acceptance_lost,
    lease_expired,
    redialled,
    owner_lost,
    process_exited,
    user_leaves,
)
ENDS = (abort_delivered, lease_expired, owner_lost)


def armed_at(made: Session, name: str) -> set[str]:
    """The timers that run there."""
    return {timer for who, timer, _ in made.armed if who == name}


def checked(made: Session) -> None:
    """What holds after every step, whatever came before."""
    session = made.where("trainer", "session")
    sends = made.outcomes("trainer", "send")
    busy = made.where("trainer", "publication", 1) in ("sending", "asking", "accepted", "settling")

    assert len(sends) <= 1
    assert len(made.ended) <= 1, "an outcome is told once"
    assert len(made.to_supervisor(m.ResultLost)) <= 1, "a loss is told once"
    assert sends or busy, "a send that waits is served by a publication"
    if session in ("aborted", "closed"):
        assert sends, "no call outlives the session"
        assert armed_at(made, "trainer") <= ({"lease", "beat"} if made.links["trainer", "control"] else set())
        assert not [where for where in made.offers if where[0] == "trainer"]
    if session == "closed":
        assert made.links["trainer", "control"] is False
    if sends in (["accepted"], ["undelivered"]):
        assert made.where("host", "acceptance", 1) in ("settled", "lost", "retired"), "accepted means taken"
    if sends == ["rejected"]:
        assert made.where("host", "acceptance", 1) == "rejected", "what was taken is never reported as rejected"
    if made.where("host", "session") == "closed":
        assert made.ended, "whoever asked for the task was told"
        assert len(made.to_supervisor(m.SessionEnded)) == 1
        assert armed_at(made, "host") == set()


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "offered"])
@pytest.mark.parametrize("acts", list(permutations(ACTS, 2)), ids=lambda acts: "_then_".join(act.__name__ for act in acts))
def test_every_order_of_two_leaves_nothing_undecided(acts: tuple[Act, ...], inline: bool) -> None:
    """R1-R10, R15-R17, R22-R24, R28: after each of the two, and after everything has been delivered, the same things hold."""
    made = ready()
    made.working()
    made.send(3, inline=inline)
    verdicts = []
    for act in acts:
        act(made)
        checked(made)
        verdicts.append(made.cores["trainer"].data("session").verdict)
    made.run()
    checked(made)

    assert made.refusals == []
    if acts[0] in ENDS:
        assert made.cores["trainer"].data("session").verdict is verdicts[0], "the first verdict stays"


@pytest.mark.parametrize("first", ACTS, ids=lambda act: act.__name__)
def test_every_order_of_three_leaves_nothing_undecided(first: Act) -> None:
    """The same for three, with a payload that waits at its source."""
    for second, third in permutations([act for act in ACTS if act is not first], 2):
        made = ready()
        made.working()
        made.send(3, inline=False)
        for act in (first, second, third):
            act(made)
            checked(made)
        made.run()
        checked(made)

        assert made.refusals == [], (second, third)
