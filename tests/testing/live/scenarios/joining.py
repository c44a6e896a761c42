"""Plays about coming into a session."""

from __future__ import annotations

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene


@scenario("trainer: session.S2 session.S3")
def a_passive_rank_stays_passive(scene: Scene) -> None:
    scene.enter()
    scene.wait_for(lambda: scene.stage.seats)
    scene.init(passive=True)
    scene.init()


@scenario("host: session.H33", "trainer: session.S29")
def the_end_comes_before_the_beginning_is_heard_of(scene: Scene) -> None:
    scene.held = {"SessionConfirmed"}
    entered = scene.enter()
    scene.wait_for(lambda: scene.stage.seats)
    scene.init()
    scene.wait_for(lambda: entered.done)
    scene.leave()
    scene.deliver("Shutdown")


@scenario("host: session.H39", "trainer: session.S34", takes_term=True)
def an_abort_comes_before_the_beginning_is_heard_of(scene: Scene) -> None:
    scene.held = {"SessionConfirmed"}
    entered = scene.enter()
    scene.wait_for(lambda: scene.stage.seats)
    scene.init()
    scene.wait_for(lambda: entered.done)
    scene.abort()
    scene.deliver("Abort")


@scenario("host: session.H12 session.H13", fickle=True, secure=True)
def the_proof_is_wrong_when_it_is_given_again(scene: Scene) -> None:
    scene.held = {"SessionConfirmed"}
    entered = scene.enter()
    scene.wait_for(lambda: scene.stage.seats)
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
    scene.enter()
    scene.wait_for(lambda: scene.stage.seats)
    scene.init()
    scene.wait_for(lambda: scene.line().sim.down.free == 0)
    scene.says = 2
    scene.wait(2.5)
