"""Plays in which users call what they may not, or give up in the moment in which somebody else calls."""

from __future__ import annotations

from collections.abc import Callable

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene, small
from troth.spec.limits import Limits

ORDERS = 300
"""Orders of three tasks, and more, that are tried until the one comes that is wanted."""


@scenario("trainer: intake.idle.receive[~queued & ~open & ~begun] publication.absent.send[~held & ~over & ~revoked & ~superseded]")
def tasks_are_asked_for_and_answered_before_there_are_any(scene: Scene) -> None:
    scene.launch()
    assert scene.receive().done
    scene.init()
    scene.flow()
    assert scene.send().done


@scenario("trainer: calls.waiting.wait", "supervisor: calls.waiting.wait")
def calls_are_made_that_are_waited_for_already(scene: Scene) -> None:
    scene.join()
    scene.receive()
    assert scene.receive().done
    scene.held = {"TaskReady"}
    scene.execute()
    assert scene.execute().done


@scenario("supervisor: gate.starting.execute")
def a_task_comes_before_the_backend_has_started(scene: Scene) -> None:
    scene.enter()
    assert scene.execute().done


def _orders(scene: Scene, fired: str, moment: Callable[[], None]) -> None:
    """Let that happen with the tasks in another order each time, until it has fired."""
    for order in range(1, ORDERS):
        scene.stage.schedule.state = order
        moment()
        if fired in scene.fired:
            return


@scenario("trainer: calls.~same_call calls.waiting.cancel[~same_call]")
def a_reader_gives_up_as_another_begins(scene: Scene) -> None:
    scene.join()

    def moment() -> None:
        received, executed = scene.receive(), scene.execute()
        scene.stage.let(*scene.seek("TaskReady"))
        received.give_up()
        again = scene.receive()
        scene.give_up(again)
        scene.give_up(executed)
        scene.flow()

    _orders(scene, "trainer.calls.waiting.cancel[~same_call]", moment)


@scenario("supervisor: calls.~same_call gate.waited_for gate.running.cancel[waited_for]")
def a_caller_gives_up_as_another_has_a_task_done(scene: Scene) -> None:
    scene.join()

    def moment() -> None:
        executed = scene.hand()
        scene.send()
        scene.stage.let(*scene.seek("ResultReady"))
        executed.give_up()
        again = scene.execute(small(2))
        scene.flow()
        scene.give_up(again)
        scene.flow()

    _orders(scene, "supervisor.gate.running.cancel[waited_for]", moment)


@scenario("trainer: session.waited_for calls.~same_call", fickle=True, limits=Limits(launch_timeout_s=3000.0))
def a_join_is_given_up_as_another_begins(scene: Scene) -> None:
    scene.lost = {"HelloAccepted"}
    scene.launch()
    joined = scene.init()
    scene.flow()
    scene.give_up(joined)
    scene.says = 2

    def moment() -> None:
        joined = scene.init()
        scene.wait_for(lambda: scene.waits("Hello"))
        scene.deliver("Hello")
        scene.wait_for(lambda: scene.waits("HelloRejected"))
        scene.stage.let(*scene.seek("HelloRejected"))
        joined.give_up()
        again = scene.init()
        scene.give_up(again)
        scene.flow()

    _orders(scene, "trainer.session.waited_for", moment)
