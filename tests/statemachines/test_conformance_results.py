"""What the checklist says of results: publication, sources, settlement, the end of a session, and the death of a trainer."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import TO_HOST, TO_TRAINER, Session, ready
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits


def serving(*, receivers: int = 1, one_shot: bool = False, launched: bool = True) -> Session:
    """A large result was accepted, both sides know, and the host's receiver is fetching it."""
    made = ready(one_shot=one_shot, launched=launched)
    made.working(receivers=receivers)
    made.send(3, inline=False)
    made.settle()

    assert made.where("trainer", "publication", 1) == "accepted"
    return made


def kinds(made: Session, name: str, *wanted: type[core.Message]) -> list[str]:
    """What one core sent of those kinds, in order."""
    return [type(message).__name__ for who, message in made.sent if who == name and isinstance(message, wanted)]


def test_a_second_send_of_a_settled_result_sends_nothing() -> None:
    """K15: it is told what the first one was told, and the host hears nothing."""
    made = ready()
    made.working()
    made.send(3)
    made.run()
    sent = list(made.sent)
    made.send(4)

    assert made.outcomes("trainer", "send") == ["accepted", "accepted"]
    assert made.sent == sent


def test_what_is_served_stays_while_every_answer_is_lost() -> None:
    """K14: the bytes were fetched, and the trainer still waits for the host's word before it lets go."""
    made = ready()
    made.working()
    made.send(3, inline=False)
    made.lose(TO_HOST)
    made.give("trainer", core.TransferProgressed("result", (1, 0)))
    made.give("trainer", core.TransferEnded("result", (1, 0), core.TransferOutcome.COMPLETE))
    for _ in range(5):
        made.fire("trainer", "result", 1)
        made.lose(TO_HOST)

    assert [where for where in made.offers if where[0] == "trainer"]
    assert made.outcomes("trainer", "send") == []
    made.fire("trainer", "result", 1)
    made.run()
    assert made.outcomes("trainer", "send") == ["accepted"], "one answer is enough"


def test_an_acceptance_that_was_lost_is_recovered_while_the_session_drains() -> None:
    """K12: SHUTDOWN came meanwhile; nothing is let go, send() succeeds, and then the session closes."""
    made = ready()
    made.working()
    made.send(3, inline=False)
    made.deliver(TO_HOST)
    made.lose(TO_TRAINER)
    made.order(m.CloseSession(launch=1))
    made.settle()
    assert made.where("trainer", "session") == "draining"
    assert [where for where in made.offers if where[0] == "trainer"]
    made.fire("trainer", "result", 1)
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.where("trainer", "session") == "closed"


@pytest.mark.parametrize("how", ["SHUTDOWN", "shutdown()"])
def test_a_session_with_a_live_source_is_closed_by_its_send(how: str) -> None:
    """K17, K33, K34: deferred while a receiver is fetching, closed exactly once when it is done."""
    made = serving()
    if how == "SHUTDOWN":
        made.order(m.CloseSession(launch=1))
        made.settle()
        assert made.said("trainer", m.SessionDraining)
    else:
        made.call("trainer", "shutdown", 9)
        assert made.outcomes("trainer", "shutdown") == ["deferred"]
    assert made.where("trainer", "session") == "draining"
    assert made.outcomes("trainer", "send") == []
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.said("trainer", m.SessionClosed) == [m.SessionClosed(epoch=1)]
    assert made.links["trainer", "control"] is False
    closings = [effect for who, _, step in made.steps if who == "trainer" for effect in step.effects if isinstance(effect, core.CloseLink)]
    assert len(closings) == 1


@pytest.mark.parametrize("one_shot", [True, False])
def test_a_trainer_for_one_task_closes_once_after_it_and_another_stays(one_shot: bool) -> None:
    """K30: and not before its receivers are done."""
    made = serving(one_shot=one_shot)
    assert made.where("trainer", "session") == "ready"
    made.run()

    assert made.where("trainer", "session") == ("closed" if one_shot else "ready")
    assert len(made.said("trainer", m.SessionClosed)) == int(one_shot)
    assert made.where("host", "process") == ("leaving" if one_shot else "running")


def test_a_result_is_announced_then_settled_then_the_session_is_closed() -> None:
    """K36: in this order, whatever was asked for meanwhile."""
    made = serving(one_shot=True)
    made.run()

    wanted = (m.ResultReady, m.ResultSourceSettled, m.SessionClosed)
    assert kinds(made, "trainer", *wanted) == ["ResultReady", "ResultSourceSettled", "SessionClosed"]


def test_a_shutdown_that_races_an_acceptance_lets_it_be_heard() -> None:
    """K37, R2, R3: SHUTDOWN overtakes RESULT_ACCEPTED; the trainer drains, and send() succeeds."""
    made = ready()
    made.working()
    made.send(3)
    made.give("trainer", core.Received("control", m.Shutdown(epoch=1)))
    assert made.outcomes("trainer", "send") == []
    made.run()

    assert made.outcomes("trainer", "send") == ["accepted"]
    assert made.where("trainer", "session") == "closed"


def test_a_shutdown_after_the_result_closes_at_once() -> None:
    """K37, R4: nothing is being published, so nothing is waited for."""
    made = ready()
    made.working()
    made.send(3)
    made.run()
    made.order(m.CloseSession(launch=1))
    made.run()

    assert made.said("trainer", m.SessionDraining) == []
    assert made.where("trainer", "session") == "closed"
    assert made.where("host", "process") == "leaving"


def test_a_shutdown_before_the_result_is_sent_ends_the_task_and_says_so() -> None:
    """R1: the session was stopped first; send() is told, and the host does not wait for what will not come."""
    made = ready()
    made.working()
    made.order(m.CloseSession(launch=1))
    made.run()
    made.send(3)

    assert made.outcomes("trainer", "send") == ["stopped"]
    assert made.ended == ["session over"]


def test_a_rejected_result_leaves_the_session_to_the_next_task() -> None:
    """K38: send() says so, and nothing else is lost."""
    made = ready()
    made.working()
    made.send(3)
    made.lose(TO_HOST)
    made.give("trainer", core.Received("control", m.ResultRejected(epoch=1, seq=1, reason=m.RejectReason.STALE)))

    assert made.outcomes("trainer", "send") == ["rejected"]
    assert made.where("trainer", "session") == "ready"
    made.order(m.StopTask(launch=1))
    made.run()
    made.working(5)
    made.send(6)
    made.run()
    assert made.ended == ["cancelled", "result"]


def test_many_rounds_and_then_the_end() -> None:
    """K39: receive, train, send, again and again; SHUTDOWN ends the receive() that waits, and closes once."""
    made = ready()
    for number in range(2, 22, 2):
        made.working(number)
        made.send(number + 1)
        made.run()
    made.call("trainer", "receive", 50)
    made.order(m.CloseSession(launch=1))
    made.run()
    made.call("trainer", "shutdown", 51)
    made.call("trainer", "shutdown", 52)

    assert made.ended == ["result"] * 10
    assert made.outcomes("trainer", "receive") == ["task"] * 10 + ["stopped"]
    assert made.outcomes("trainer", "shutdown") == ["ok", "ok"]
    assert len(made.said("trainer", m.SessionClosed)) == 1


def test_a_receiver_that_gives_up_makes_the_result_undelivered_and_settles_it() -> None:
    """K35: send() says that it was accepted but not delivered, the host is told, and the next task may come."""
    made = serving()
    for _ in range(made.limits.pull_attempts):
        made.finish(next(iter(made.pulls)), core.TransferOutcome.FAILED)
        if ("result receiver", "stall", None) in made.armed:
            made.fire("result receiver", "stall")
    made.run()

    assert made.said("trainer", m.ResultSourceSettled)[0].delivered is False
    assert made.outcomes("trainer", "send") == ["undelivered"]
    assert made.ended == ["result lost"]
    assert made.where("trainer", "session") == "ready"


def test_a_source_that_is_being_fetched_suspends_the_lease() -> None:
    """K40, R17: as long as bytes move; when they stall, the silence counts again."""
    made = serving(launched=False)
    made.give("trainer", core.TransferProgressed("result", (1, 0)))
    made.fire("trainer", "lease")
    assert made.where("trainer", "lease") == "suspended"
    assert made.armed["trainer", "lease", None][1] == "transfer_stall_s"
    made.fire("trainer", "lease")
    made.fire("trainer", "lease")

    assert made.where("trainer", "lease") == "expired"
    assert made.outcomes("trainer", "send") == ["lost"]


# -- the host, when its trainer goes -----------------------------------------------------------------------------------


def lost(made: Session) -> tuple[int, int]:
    """How often the receivers, and the supervisor, were told of a loss."""
    dropped = [message for message in made.said("host", m.DropPayload) if message.lost]
    return len(dropped), len(made.to_supervisor(m.ResultLost))


@pytest.mark.parametrize("clean", [True, False])
def test_the_death_of_an_accepted_source_is_told_once(clean: bool) -> None:
    """K54, R23: to its receivers and to the supervisor, and an exit status of 0 is no excuse."""
    made = serving(receivers=2)
    made.give("host", core.ProcessExited(0, clean))
    made.run()

    assert lost(made) == (1, 1)
    assert made.where("host", "acceptance", 1) == "lost"


def test_only_the_results_that_are_being_served_are_lost() -> None:
    """K54: what was settled before is safe."""
    made = ready()
    for number in (2, 4):
        made.working(number)
        made.send(number + 1)
        made.run()
    made.working(6, receivers=2)
    made.send(7, inline=False)
    made.settle()
    made.give("host", core.ProcessExited())

    assert [made.where("host", "acceptance", seq) for seq in (1, 2, 3)] == ["settled", "settled", "lost"]
    assert lost(made) == (1, 1)


def test_a_settlement_before_the_exit_is_no_loss() -> None:
    """K54: the trainer was done, and then it left."""
    made = serving()
    made.run()
    made.give("host", core.ProcessExited())

    assert lost(made) == (0, 0)


def test_an_abort_before_the_death_gives_the_source_up_itself() -> None:
    """K54, R24: the host retires the source first, so the death that follows is no loss."""
    made = serving(receivers=2)
    made.order(m.AbortSession(launch=1))
    made.give("host", core.ProcessExited())

    assert lost(made) == (0, 0)
    assert made.where("host", "acceptance", 1) == "retired"
    assert [said.verdict for said in made.to_supervisor(m.SessionEnded)] == [m.Verdict.ABORTED]


@pytest.mark.parametrize("launched", [True, False])
def test_silence_while_a_source_is_served_is_a_loss(launched: bool) -> None:
    """K54: heartbeats end; the receivers are told once."""
    made = serving(receivers=2, launched=launched)
    while ("host", "lease", None) in made.armed:
        made.fire("host", "lease")

    assert lost(made) == (1, 1)


def test_a_link_that_comes_back_is_no_evidence_of_death() -> None:
    """K56, K62: a transient loss, while a source is live, ends nothing."""
    made = serving(receivers=2)
    made.order(m.CloseSession(launch=1))
    for name in ("trainer", "host"):
        made.give(name, core.LinkLost("control"))
    made.lose(TO_HOST)
    made.lose(TO_TRAINER)
    for expected in ("suspended", "suspect"):
        made.fire("host", "lease")
        assert made.where("host", "lease") == expected
    made.give("trainer", core.LinkUp("control"))
    made.give("host", core.LinkUp("control"))
    made.settle()

    assert made.where("host", "lease") == "armed"
    assert lost(made) == (0, 0)
    assert made.where("host", "session") == "draining"


def test_a_draining_host_asks_again_and_is_bounded() -> None:
    """K56: SHUTDOWN is repeated until the trainer closes; a source that never ends is cut at the limit."""
    made = serving(receivers=2)
    made.order(m.CloseSession(launch=1))
    for _ in range(3):
        made.settle()
        made.fire("host", "again")
    assert len(made.said("host", m.Shutdown)) == 4
    assert made.armed["host", "session", None][1] == "drain_limit_s"
    made.fire("host", "session")

    assert made.process["host"] == "term"
    assert lost(made) == (1, 1)


def test_a_host_remembers_as_much_as_its_limit_says_and_no_live_source_is_forgotten() -> None:
    """K55: what is still being served keeps its place; a task too many is refused instead."""
    made = ready(limits=Limits(acceptance_limit=1, ledger_limit=4))
    made.working(receivers=2)
    made.send(3, inline=False)
    made.run()
    made.execute()

    assert made.ended == ["result", "refused"]
    assert made.where("host", "acceptance", 1) == "accepted"
