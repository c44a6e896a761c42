"""Plays about backends: one that launches a trainer a task, and calls that come too late."""

from __future__ import annotations

from typing import Any

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene, large, small
from troth.spec.limits import Limits
from troth.testing.live.calling import Call

ONE = Limits(retained_limit=1)


def _launched(scene: Scene) -> Call:
    """A trainer was launched for a task, and its user holds it. The call that waits for the result."""
    before = len(scene.stage.seats)
    executed = scene.execute()
    scene.wait_for(lambda: len(scene.stage.seats) > before)
    scene.init()
    scene.flow()
    received = scene.receive()
    scene.wait_for(lambda: received.done)
    return executed


@scenario(
    "supervisor: gate.G2 gate.G11 gate.G14 gate.G17 launches.U3 gate.G12 gate.G13", "trainer: session.S38", persistent=False, limits=ONE
)
def a_trainer_is_kept_for_its_result_and_the_next_task_waits(scene: Scene) -> None:
    scene.enter()
    executed = _launched(scene)
    scene.held = {"ResultSourceSettled"}
    scene.send()
    scene.wait_for(lambda: executed.done)
    scene.execute()
    scene.held = set()
    scene.flow()
    scene.exit()


@scenario("supervisor: gate.G12 gate.G21", persistent=False, limits=ONE)
def a_task_that_waits_for_room_is_given_up(scene: Scene) -> None:
    scene.enter()
    executed = _launched(scene)
    scene.held = {"ResultSourceSettled"}
    scene.send()
    scene.wait_for(lambda: executed.done)
    scene.give_up(scene.execute())


@scenario("supervisor: gate.G15", "host: process.X3 session.H21", persistent=False)
def a_process_cannot_be_started(scene: Scene) -> None:
    scene.enter()
    scene.fail_spawn()
    executed = scene.execute()
    scene.wait_for(lambda: executed.done)


@scenario("supervisor: gate.G18", persistent=False)
def a_trainer_is_not_kept_for_a_task_that_was_given_up(scene: Scene) -> None:
    scene.enter()
    scene.give_up(_launched(scene))
    scene.flow()


@scenario("supervisor: gate.G22", "host: session.H35 process.X5 process.X6", persistent=False)
def a_task_is_given_up_while_its_trainer_starts(scene: Scene) -> None:
    scene.slow(spawn_s=3.0)
    scene.enter()
    executed = scene.execute()
    scene.wait(1.0)
    scene.give_up(executed)
    scene.wait(3.0)


@scenario("supervisor: gate.G10", "host: session.H50 acceptance.A17")
def a_task_comes_after_the_trainer_has_died(scene: Scene) -> None:
    scene.join()
    executed = scene.hand()
    scene.held = {"ResultSourceSettled"}
    scene.send()
    scene.wait_for(lambda: executed.done)
    scene.kill()
    scene.wait(2.0)
    scene.execute()


@scenario("host: session.H48 delivery.D27")
def a_trainer_dies_with_its_task(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.kill()
    scene.wait(2.0)


@scenario("supervisor: gate.G28 teardown.W6 teardown.W7")
def a_task_comes_after_an_abort(scene: Scene) -> None:
    scene.join()
    scene.abort()
    scene.abort()
    scene.execute()


@scenario("supervisor: teardown.W5 teardown.W9")
def everything_is_ended_more_than_once(scene: Scene) -> None:
    scene.join()
    finalized = scene.finalize()
    scene.flow()
    scene.exit()
    scene.wait_for(lambda: finalized.done)
    scene.abort()


@scenario("host: delivery.D3 session.H42")
def a_task_comes_after_the_trainer_has_left(scene: Scene) -> None:
    scene.join()
    scene.shutdown()
    scene.flow()
    scene.execute()


@scenario("host: session.H55")
def an_abort_comes_after_the_trainer_has_left(scene: Scene) -> None:
    scene.join()
    scene.shutdown()
    scene.flow()
    scene.abort()


def _lost(scene: Scene, tree: Any) -> None:
    """The first offer of a task is lost, and all goes well then."""
    scene.lost = {"TaskReady"}
    executed = scene.execute(tree)
    scene.wait(2.5)
    scene.lost = set()
    received = scene.receive()
    scene.wait_for(lambda: received.done)
    scene.send()
    scene.wait_for(lambda: executed.done)


@scenario("host: delivery.D7 delivery.D8")
def offers_are_lost(scene: Scene) -> None:
    scene.join()
    _lost(scene, small())
    _lost(scene, large())


@scenario("host: process.X16 session.H21")
def a_process_ends_before_anybody_has_heard_of_it(scene: Scene) -> None:
    scene.slow(heard_s=7.0)
    scene.launch()
    scene.kill()
    scene.wait(2.0)
