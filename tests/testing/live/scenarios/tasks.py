"""Plays about tasks on their way to a trainer."""

from __future__ import annotations

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene, large, small
from troth.spec.limits import Limits


@scenario("trainer: intake.I12 ledger.K20")
def a_task_is_cancelled_in_the_moment_in_which_it_is_handed_over(scene: Scene) -> None:
    scene.join()
    scene.receive()
    executed = scene.execute()
    scene.give_up(executed)
    scene.together("TaskReady", "CancelTask")


@scenario("trainer: intake.I13")
def the_second_task_is_cancelled_in_that_moment(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.send()
    scene.flow()
    scene.receive()
    scene.give_up(scene.execute())
    scene.together("TaskReady", "CancelTask")


@scenario("trainer: ledger.K7 ledger.K28")
def a_task_is_offered_twice_while_its_payload_comes(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull"}
    scene.execute(large())
    scene.copy("TaskReady")
    scene.flow()
    scene.wait(2.0)


@scenario("trainer: ledger.K9 ledger.K20")
def a_cancelled_task_is_offered_once_more(scene: Scene) -> None:
    scene.join()
    executed = scene.execute()
    scene.copy("TaskReady")
    scene.give_up(executed)
    scene.deliver("CancelTask", "TaskReady")


@scenario("trainer: ledger.K30")
def a_cancelled_task_is_asked_about(scene: Scene) -> None:
    scene.join()
    scene.lost, scene.held = {"TaskAccepted"}, {"TaskStatus"}
    executed = scene.execute()
    scene.wait(2.5)
    scene.give_up(executed)
    scene.deliver("CancelTask", "TaskStatus")


@scenario("trainer: ledger.K4")
def a_task_comes_after_the_next_one(scene: Scene) -> None:
    scene.join()
    scene.held, scene.lost = {"TaskReady"}, {"CancelTask"}
    executed = scene.execute(small(1))
    scene.give_up(executed)
    scene.flow()
    scene.execute(small(2))
    first, second = (place for place, name, _ in scene.waiting() if name == "TaskReady")
    scene.stage.let(*second)
    scene.settle()
    scene.stage.let(*first)
    scene.settle()


@scenario("host: delivery.D13 delivery.D21", "trainer: ledger.K3 ledger.K21", limits=Limits(ledger_limit=1))
def a_trainer_that_is_full_has_room_later(scene: Scene) -> None:
    scene.join()
    scene.held, scene.lost = {"CancelTask"}, {"ResultReady"}
    executed = scene.hand()
    scene.send()
    scene.flow()
    scene.give_up(executed)
    scene.execute()
    scene.wait(2.5)
    scene.held = set()
    scene.wait(2.5)


@scenario("host: delivery.D24", limits=Limits(result_wait_s=40.0))
def a_result_is_late(scene: Scene) -> None:
    scene.join()
    executed = scene.hand()
    scene.wait_for(lambda: executed.done)


@scenario("host: delivery.D9", "trainer: ledger.K27", limits=Limits(task_attempts=1))
def a_task_is_offered_often_enough(scene: Scene) -> None:
    scene.join()
    scene.lost = {"TaskReady"}
    executed = scene.execute()
    scene.wait_for(lambda: executed.done)


@scenario("host: delivery.D11 delivery.D6 delivery.D20 source.O1", "trainer: ledger.K12 intake.I5", "receiver: download.R9",
          limits=Limits(pull_attempts=1))  # fmt: skip
def a_payload_that_did_not_come_is_offered_again(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull"}
    scene.execute(large())
    scene.wait_for(lambda: "host.delivery.D11" in scene.fired)
    scene.held = set()


@scenario("host: delivery.D12", limits=Limits(pull_attempts=1, task_attempts=1))
def a_payload_does_not_come_at_all(scene: Scene) -> None:
    scene.join()
    scene.lost = {"Pull"}
    executed = scene.execute(large())
    scene.wait_for(lambda: executed.done)


@scenario("host: acceptance.A22 acceptance.A13", "trainer: publication.N16", limits=Limits(acceptance_limit=1))
def a_result_is_asked_about_that_was_forgotten(scene: Scene) -> None:
    scene.join()
    scene.lost = {"CancelTask", "ResultReady"}
    executed = scene.hand()
    scene.send()
    scene.flow()
    scene.give_up(executed)
    scene.execute()
    scene.wait(12.0)


@scenario("host: delivery.D23 delivery.D22", limits=Limits(delivery_budget_s=9.0))
def a_task_is_not_answered_for_in_time(scene: Scene) -> None:
    scene.join()
    scene.lost = {"TaskReady", "CancelTask", "TaskUnknown"}
    executed = scene.execute()
    scene.wait_for(lambda: executed.done)
    scene.wait(3.0)


@scenario("host: delivery.D4", limits=Limits(acceptance_limit=1))
def a_host_that_remembers_enough_takes_no_task(scene: Scene) -> None:
    scene.join()
    executed = scene.hand()
    scene.held = {"ResultSourceSettled"}
    scene.send()
    scene.wait_for(lambda: executed.done)
    scene.execute()


@scenario("trainer: intake.I8 intake.I14")
def the_task_that_its_user_holds_is_read_again(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.receive()


@scenario("trainer: intake.I7 intake.I9")
def tasks_are_waited_for_too_late(scene: Scene) -> None:
    scene.join()
    scene.execute()
    scene.flow()
    scene.receive()
    scene.shutdown()
    scene.receive()


@scenario("trainer: ledger.K22")
def a_trainer_leaves_while_a_task_comes(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull"}
    scene.execute(large())
    scene.flow()
    scene.shutdown()


@scenario("trainer: ledger.K8")
def a_task_that_is_there_is_offered_again(scene: Scene) -> None:
    scene.join()
    scene.execute()
    scene.copy("TaskReady")
    scene.flow()


@scenario("trainer: ledger.K12 ledger.K1")
def an_answer_about_an_earlier_offer_is_late(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull", "TaskFailed"}
    scene.execute(large())
    scene.wait_for(lambda: scene.waits("TaskFailed"))
    scene.copy("TaskFailed")
    scene.deliver("TaskFailed")


@scenario("trainer: ledger.K18 ledger.K24", limits=Limits(ledger_limit=1))
def a_cancel_comes_for_a_task_that_was_forgotten(scene: Scene) -> None:
    scene.join()
    executed = scene.hand()
    scene.give_up(executed)
    scene.copy("CancelTask")
    scene.held = {"CancelTask"}
    scene.execute()
    scene.flow()
    scene.deliver("CancelTask")


@scenario("trainer: ledger.K6")
def a_task_comes_to_a_trainer_that_drains(scene: Scene) -> None:
    scene.join()
    scene.lost = {"ResultReady", "CancelTask"}
    executed = scene.hand()
    scene.send()
    scene.shutdown()
    scene.give_up(executed)
    scene.execute()
    scene.flow()


@scenario("trainer: intake.I15 ledger.K15")
def whoever_waits_for_a_task_gives_up_in_the_moment_in_which_it_comes(scene: Scene) -> None:
    scene.join()
    for order in range(50):
        received, executed = scene.receive(), scene.execute()
        scene.stage.schedule.state = order
        received.give_up()
        scene.deliver("TaskReady")
        if "trainer.intake.I15" in scene.fired:
            break
        scene.give_up(executed)
        scene.flow()
