"""Plays about coming into a session."""

from __future__ import annotations

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene
from troth.runtime.wire.besides import LogBeside


@scenario("trainer: session.S2 session.S3")
def a_passive_rank_stays_passive(scene: Scene) -> None:
    scene.launch()
    scene.init(passive=True)
    scene.init()


@scenario("host: session.H33", "trainer: session.S29")
def the_end_comes_before_the_beginning_is_heard_of(scene: Scene) -> None:
    scene.held = {"SessionConfirmed"}
    entered = scene.launch()
    scene.init()
    scene.wait_for(lambda: entered.done)
    scene.leave()
    scene.deliver("Shutdown")


@scenario("host: session.H39", "trainer: session.S34", takes_term=True)
def an_abort_comes_before_the_beginning_is_heard_of(scene: Scene) -> None:
    scene.held = {"SessionConfirmed"}
    entered = scene.launch()
    scene.init()
    scene.wait_for(lambda: entered.done)
    scene.abort()
    scene.deliver("Abort")


@scenario("host: session.H12 session.H13", fickle=True, secure=True)
def the_proof_is_wrong_when_it_is_given_again(scene: Scene) -> None:
    scene.held = {"SessionConfirmed"}
    entered = scene.launch()
    scene.init()
    scene.wait_for(lambda: entered.done)
    scene.wait(1.0)
    scene.says = 2
    scene.wait(1.0)


@scenario("host: session.H22 session.H25", "trainer: session.S18 session.S41", fickle=True)
def a_trainer_that_comes_back_as_another_is_refused(scene: Scene) -> None:
    scene.join()
    scene.cut()
    scene.wait(1.0)
    scene.says = 2
    scene.cut()
    scene.wait(2.0)


@scenario("host: session.H4 session.H5 session.H27", "trainer: session.S7", fickle=True, capacity=64, takes_term=True)
def a_hello_comes_to_a_host_that_cannot_say_its_last_word(scene: Scene) -> None:
    scene.says, scene.held = 1, {"HelloRejected"}
    scene.launch()
    scene.init()
    scene.wait_for(lambda: scene.line().sim.down.free == 0)
    scene.says = 2
    scene.wait(2.5)


@scenario("host: session.H7 session.H8 session.H9", fickle=True)
def a_host_that_has_its_trainer_hears_others(scene: Scene) -> None:
    scene.lost = {"HelloAccepted", "HelloRejected"}
    scene.launch()
    scene.init()
    scene.wait(1.5)
    for scene.says in (2, 1, 0):
        scene.wait(1.0)
    scene.lost = set()
    scene.wait(1.0)


@scenario("host: session.H11", fickle=True, secure=True)
def the_proof_is_wrong_at_once(scene: Scene) -> None:
    scene.held = {"HelloAccepted"}
    scene.launch()
    scene.init()
    scene.flow()
    scene.says = 2
    scene.deliver("HelloAccepted")


@scenario("host: session.H23", "trainer: session.S16")
def a_join_that_failed_is_tried_again(scene: Scene) -> None:
    scene.lost = {"SessionConfirmed"}
    scene.launch()
    joined = scene.init()
    scene.wait_for(lambda: joined.done)
    scene.lost = set()
    scene.init()
    scene.wait(1.0)


@scenario("host: session.H45")
def the_guardian_dies_before_anybody_has_joined(scene: Scene) -> None:
    scene.slow(heard_s=1.0)
    scene.launch()
    scene.stick()
    scene.lose_guardian()
    scene.wait(7.0)


@scenario("trainer: session.S4 session.S5")
def init_is_called_once_more(scene: Scene) -> None:
    scene.join()
    scene.init()
    scene.shutdown()
    scene.init()


@scenario("trainer: session.S11 session.S9")
def the_link_is_lost_in_the_middle_of_the_handshake(scene: Scene) -> None:
    scene.lost = {"SessionReady"}
    scene.launch()
    scene.init()
    scene.flow()
    scene.cut()
    scene.wait(0.5)


@scenario("trainer: session.S17")
def a_join_is_given_up(scene: Scene) -> None:
    scene.held = {"Hello"}
    scene.launch()
    scene.give_up(scene.init())


@scenario("trainer: session.S44 session.S51")
def a_trainer_leaves_before_it_joins(scene: Scene) -> None:
    scene.launch()
    scene.shutdown()
    scene.shutdown()


@scenario("trainer: session.S45")
def a_trainer_leaves_while_it_says_hello(scene: Scene) -> None:
    scene.held = {"Hello"}
    scene.launch()
    scene.init()
    scene.shutdown()


@scenario("trainer: session.binding.message intake.I11")
def a_task_is_cancelled_before_its_trainer_is_confirmed(scene: Scene) -> None:
    scene.held = {"SessionConfirmed", "TaskReady", "CancelTask"}
    scene.launch()
    scene.init()
    scene.flow()
    scene.give_up(scene.execute())
    scene.deliver("CancelTask", "SessionConfirmed")
    received = scene.receive()
    scene.deliver("TaskReady")
    scene.wait_for(lambda: received.done)


@scenario("trainer: session.S46")
def a_trainer_leaves_before_it_is_confirmed(scene: Scene) -> None:
    scene.held = {"SessionReady"}
    scene.launch()
    scene.init()
    scene.flow()
    scene.shutdown()


@scenario("trainer: session.S28")
def a_trainer_logs_something(scene: Scene) -> None:
    scene.join()
    scene.stage.log(scene.seat, LogBeside("loss", 0.5, "SCALAR", {}))
    scene.flow()
