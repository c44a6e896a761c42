"""Plays about silence: transfers that stall, and leases that run out."""

from __future__ import annotations

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene, huge, large
from troth.spec.limits import Limits
from troth.statemachines.trainer.ledger import LedgerState


@scenario("trainer: lease.L5 lease.L6 lease.L7 lease.L9", "receiver: download.R8 download.R9",
          limits=Limits(unresponsive_limit_s=60.0))  # fmt: skip
def a_trainer_hears_nothing_more_in_the_middle_of_a_task(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull"}
    scene.execute(large())
    scene.flow()
    scene.held = {"Pull", "* to trainer"}
    scene.wait(130.0)


@scenario("host: lease.L5 lease.L6 lease.L7 delivery.D16", "receiver: download.R8")
def a_host_hears_nothing_more_in_the_middle_of_a_result(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"Pull"}
    scene.send(large())
    scene.flow()
    scene.held = {"* to host", "* to trainer"}
    scene.wait(60.0)


@scenario("host: source.O2 source.O4", "receiver: download.R8", limits=Limits(transfer_stall_s=10.0))
def a_task_stalls_on_its_way(scene: Scene) -> None:
    scene.join()
    scene.held = {"Chunk", "PullStopped"}
    scene.execute(huge())
    scene.flow()
    scene.held |= {"Pull"}
    scene.wait(12.0)


@scenario("trainer: source.O2 source.O4", "receiver: download.R8", limits=Limits(transfer_stall_s=10.0))
def a_result_stalls_on_its_way(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"Chunk", "PullStopped"}
    scene.send(huge())
    scene.flow()
    scene.held |= {"Pull"}
    scene.wait(12.0)


@scenario("host: source.O2")
def a_question_for_a_task_is_heard_again_while_its_answer_is_written(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull"}
    scene.execute(huge())
    scene.flow()
    scene.copy("Pull")
    scene.deliver("Pull", "Chunk")
    scene.held = set()
    scene.flow()
    assert scene.state("trainer", "ledger", 1) is LedgerState.QUEUED


@scenario("host: source.O2")
def a_question_for_a_task_is_heard_three_times(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull", "Chunk"}
    scene.execute(huge())
    scene.flow()
    scene.copy("Pull")
    scene.copy("Pull")
    scene.deliver("Pull")
    scene.held = set()
    scene.flow()
    scene.wait_for(lambda: scene.state("trainer", "ledger", 1) is LedgerState.QUEUED)


@scenario("host: lease.L9 session.H46", limits=Limits(unresponsive_limit_s=60.0))
def a_host_hears_nothing_more_of_a_trainer_that_lives(scene: Scene) -> None:
    scene.join()
    scene.held = {"* to host", "* to trainer"}
    scene.wait(100.0)


def _goes_unnoticed(scene: Scene) -> None:
    """The host has closed its data connection, which is full, and the trainer has not seen that yet."""
    scene.join()
    scene.held = {"Chunk", "PullStopped"}
    scene.execute(huge())
    scene.flow()
    scene.held |= {"Pull"}
    scene.wait(22.0)


@scenario("receiver: download.R8 download.R11")
def a_payload_is_asked_for_over_a_connection_that_is_gone(scene: Scene) -> None:
    _goes_unnoticed(scene)


@scenario("receiver: download.R8 download.R12", "trainer: ledger.K12", limits=Limits(pull_attempts=2))
def a_payload_is_asked_for_over_it_for_the_last_time(scene: Scene) -> None:
    _goes_unnoticed(scene)


@scenario("trainer: lease.L8 session.S40", fail_unresponsive=True)
def a_trainer_that_may_not_wait_hears_nothing_more(scene: Scene) -> None:
    scene.join()
    scene.held = {"* to trainer"}
    scene.wait(36.0)


@scenario("receiver: download.R5")
def a_payload_breaks_off(scene: Scene) -> None:
    scene.join()
    scene.held = {"Chunk"}
    scene.execute(large())
    scene.flow()
    scene.cut("data")


@scenario("receiver: download.R6", "trainer: ledger.K12", limits=Limits(pull_attempts=1))
def a_payload_breaks_off_for_the_last_time(scene: Scene) -> None:
    scene.join()
    scene.held = {"Chunk"}
    scene.execute(large())
    scene.flow()
    scene.cut("data")


@scenario("receiver: download.R14", "host: source.O10")
def a_payload_is_let_go_while_it_is_fetched(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull", "CancelTask"}
    executed = scene.execute(large())
    scene.flow()
    scene.give_up(executed)
    scene.flow()


@scenario("receiver: download.R16", "trainer: ledger.K19")
def a_task_is_cancelled_while_it_is_fetched(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull", "PayloadGone"}
    executed = scene.execute(large())
    scene.flow()
    scene.give_up(executed)
    scene.flow()


@scenario("host: lease.~patient lease.L8 session.H46", fail_unresponsive=True)
def a_host_that_may_not_wait_hears_nothing_more(scene: Scene) -> None:
    scene.join()
    scene.held = {"* to host"}
    scene.wait(36.0)
