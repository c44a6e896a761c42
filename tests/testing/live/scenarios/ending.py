"""Plays about ends: of sessions, of processes, of everything."""

from __future__ import annotations

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene
from troth.spec.limits import Limits

SHORT = Limits(natural_exit_s=2.0, term_grace_s=2.0)


@scenario("trainer: session.S33 session.S35 session.S36", "host: session.H40", takes_term=True)
def an_aborted_trainer_goes_on_answering(scene: Scene) -> None:
    scene.join()
    scene.held = {"AbortAccepted", "SessionClosed", "Shutdown"}
    scene.leave()
    scene.abort()
    scene.deliver("Abort", "Shutdown")
    scene.wait(2.5)
    assert scene.waits("AbortAccepted")


@scenario("trainer: session.S35 session.S42", takes_term=True)
def an_aborted_trainer_loses_its_owner(scene: Scene) -> None:
    scene.join()
    scene.held = {"AbortAccepted"}
    scene.abort()
    scene.deliver("Abort")
    scene.orphan()


@scenario("host: session.H43 session.H54", "supervisor: teardown.W8")
def an_abort_does_not_wait_for_a_natural_exit(scene: Scene) -> None:
    scene.join()
    scene.leave()
    scene.flow()
    scene.abort()


@scenario("host: process.X21 session.H47", limits=Limits(abort_limit_s=10.0))
def the_guardian_dies_during_an_abort(scene: Scene) -> None:
    scene.join()
    scene.stick()
    scene.held = {"Abort"}
    scene.abort()
    scene.lose_guardian()
    scene.wait(7.0)


@scenario("host: process.X5 process.X21 process.X4")
def a_start_fails_of_a_process_that_is_being_ended(scene: Scene) -> None:
    scene.slow(spawn_s=3.0)
    entered = scene.enter()
    scene.give_up(entered)
    scene.wait(1.0)
    scene.lose_guardian()
    scene.wait(3.0)


@scenario("host: process.X11 process.X13 process.X9", takes_term=True, limits=SHORT)
def a_start_is_heard_of_after_term(scene: Scene) -> None:
    scene.slow(heard_s=3.0)
    scene.join()
    scene.leave()
    scene.wait(4.5)


@scenario("host: process.X14 process.X10", limits=SHORT)
def a_start_is_heard_of_after_kill(scene: Scene) -> None:
    scene.slow(heard_s=6.0)
    scene.join()
    scene.stick()
    scene.leave()
    scene.wait(6.5)
    scene.unstick()


@scenario("host: process.X5 process.X17")
def a_process_that_nobody_has_heard_of_ends(scene: Scene) -> None:
    scene.slow(heard_s=7.0)
    entered = scene.launch()
    scene.give_up(entered)
    scene.kill()
    scene.wait(2.0)


@scenario("host: lease.L8 session.H46")
def nobody_has_heard_that_the_trainer_lives(scene: Scene) -> None:
    scene.slow(heard_s=60.0)
    scene.join()
    scene.held = {"Heartbeat"}
    scene.wait(36.0)


@scenario("supervisor: teardown.W11", "host: session.H43 process.X9", takes_term=True)
def the_end_does_not_fit_into_its_budget(scene: Scene) -> None:
    scene.slow(heard_s=79.5)
    scene.join()
    scene.held = {"Shutdown"}
    scene.leave()
    scene.wait(59.5)
    scene.deliver("Shutdown", "SessionClosed")
    scene.stick()
    scene.wait(31.0)
    scene.unstick()


@scenario(
    "supervisor: teardown.W8 teardown.W12", "host: process.X9", takes_term=True,
    limits=Limits(kill_wait_s=1.0, force_budget_s=13.0, abort_limit_s=4.0),
)  # fmt: skip
def the_forced_end_does_not_fit_into_its_budget(scene: Scene) -> None:
    scene.slow(heard_s=10.0)
    scene.join()
    scene.stick()
    scene.leave()
    scene.flow()
    scene.wait(0.5)
    scene.abort()
    scene.wait(14.0)
    scene.unstick()


@scenario("host: session.H24 session.H26", takes_term=True, fickle=True)
def a_trainer_comes_back_to_an_abort(scene: Scene) -> None:
    scene.join()
    scene.held = {"Abort"}
    scene.cut()
    scene.abort()
    scene.wait(1.0)
    scene.says = 2
    scene.cut()
    scene.wait(1.0)


@scenario("trainer: session.S48 session.S49 session.S37", "host: session.H42")
def a_trainer_drains(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"ResultSourceSettled"}
    scene.send()
    scene.flow()
    scene.shutdown()
    scene.shutdown()
    scene.held = set()
    scene.flow()


@scenario("trainer: session.S31 session.S32 session.S37", "host: session.H36 session.H43")
def a_trainer_that_is_told_to_end_drains(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"ResultSourceSettled"}
    scene.send()
    scene.flow()
    scene.leave()
    scene.wait(2.5)


@scenario("trainer: session.S50 session.S51", takes_term=True)
def an_aborted_trainer_leaves(scene: Scene) -> None:
    scene.join()
    scene.held = {"AbortAccepted"}
    scene.abort()
    scene.deliver("Abort")
    scene.shutdown()
    scene.shutdown()


@scenario("host: session.H44", takes_term=True)
def a_trainer_leaves_before_it_hears_of_the_abort(scene: Scene) -> None:
    scene.join()
    scene.held, scene.lost = {"SessionClosed"}, {"Abort"}
    scene.shutdown()
    scene.abort()
    scene.deliver("SessionClosed")


@scenario("host: session.H52 session.H36")
def a_trainer_does_not_drain_in_time(scene: Scene) -> None:
    scene.join()
    scene.lost = {"Shutdown"}
    scene.leave()
    scene.wait(61.0)


@scenario("host: session.H53", takes_term=True)
def a_trainer_does_not_answer_an_abort(scene: Scene) -> None:
    scene.join()
    scene.lost = {"Abort"}
    scene.abort()
    scene.wait(5.0)


@scenario("trainer: session.S39")
def a_trainer_loses_its_owner_while_it_joins(scene: Scene) -> None:
    scene.held = {"Hello"}
    scene.launch()
    scene.init()
    scene.orphan()


@scenario("trainer: session.S43")
def a_trainer_loses_its_owner_before_it_begins(scene: Scene) -> None:
    scene.launch()
    scene.orphan()
