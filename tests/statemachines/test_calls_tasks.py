"""Which task a caller gets, and whose outcome a caller is told: receive(), take() and send() of several tasks and threads."""

from __future__ import annotations

from tests.statemachines.session_bench import TO_HOST, ready
from tests.statemachines.trainer_bench import NUMBER, called, given_up, handed, returned, working
from troth.spec import core
from troth.spec import messages as m


def test_a_task_that_was_handed_over_and_not_taken_goes_to_the_next_caller() -> None:
    """K39: the caller gave up between receive() and take(); the task was not begun, and is not lost."""
    made = handed()
    made.give("trainer", core.CallCancelled("receive", 2))

    assert made.where("trainer", "ledger", 1) == "queued"
    made.take(5)

    assert made.where("trainer", "ledger", 1) == "delivered"
    assert made.outcomes("trainer", "take") == ["task"]


def test_a_task_that_was_cancelled_between_receive_and_take_is_not_taken() -> None:
    """The thread is told that there is nothing, and receives again."""
    made = handed()
    made.order(m.StopTask(launch=1))
    made.run()
    made.call("trainer", "take", 2)

    assert made.outcomes("trainer", "take") == ["nothing"]
    assert made.where("trainer", "ledger", 1) == "cancelled"


def test_the_thread_that_waits_gets_the_task_that_another_one_gave_back() -> None:
    """One thread has been handed the task, a second waits; the first gives up, and the second has it."""
    made = handed()
    called(made, "receive")
    made.give("trainer", core.CallCancelled("receive", 2))

    assert returned(made) == ["task"]


def test_an_outcome_is_told_to_whoever_sent_that_task() -> None:
    """K12: send() of task 1 was given up; its late outcome is not told to the send() of task 2."""
    made = given_up()
    made.fire("trainer", "result", 1)
    made.order(m.StopTask(launch=1))
    made.run()
    made.working(5)
    made.send(NUMBER)
    made.lose(TO_HOST)
    made.give("trainer", core.Received("control", m.ResultRejected(epoch=1, seq=1, reason=m.RejectReason.CANCELLED)))

    assert returned(made) == []


def test_a_new_task_wins_over_the_one_that_the_user_holds() -> None:
    """D26, D27: task 1 was taken and never answered; the host gave it up, and the next receive() gives task 2."""
    made = working()
    made.order(m.StopTask(launch=1))
    made.execute()
    made.run()
    made.call("trainer", "receive", 5)
    made.call("trainer", "take", 5)

    assert [effect.value for name, effect in made.resolved if effect.call == "take"] == [1, 2]


def test_a_send_on_a_session_that_is_over_says_so() -> None:
    """D28: never in silence, and a second one not as if it had succeeded."""
    made = ready(one_shot=True)
    made.working()
    made.send(3)
    made.run()

    assert made.where("trainer", "session") == "closed"
    made.send(4)
    assert made.outcomes("trainer", "send") == ["accepted", "accepted"], "the same content, so the same outcome again"
    made.send(5, content=1)
    assert made.outcomes("trainer", "send")[-1] == "conflict"


def test_each_caller_takes_the_task_that_it_was_handed() -> None:
    """Two callers were handed a task each; whoever is first takes its own, and giving up puts back its own."""
    made = ready()
    for seq in (1, 2):
        message = m.TaskReady(epoch=1, seq=seq, attempt=1, floor=1, content=0, receivers=1, inline=True)
        made.give("trainer", core.Received("control", message))
        made.give("trainer", core.Received("receivers", m.PayloadArrived(epoch=1, seq=seq, receiver=0)))
        made.call("trainer", "receive", 10 + seq)
    made.give("trainer", core.CallCancelled("receive", 11))
    made.call("trainer", "take", 12)

    assert [effect.value for _, effect in made.resolved if effect.call == "take"] == [2]
    assert made.where("trainer", "ledger", 1) == "queued"
