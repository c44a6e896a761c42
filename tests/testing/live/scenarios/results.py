"""Plays about results, and what becomes of them."""

from __future__ import annotations

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene, large, small
from troth.spec.limits import Limits


@scenario("trainer: publication.N4")
def a_result_is_sent_of_a_task_that_was_given_up(scene: Scene) -> None:
    scene.join()
    executed = scene.hand()
    scene.give_up(executed)
    scene.flow()
    scene.send()


@scenario("trainer: publication.N6 publication.N7")
def another_result_is_sent_of_the_same_task(scene: Scene) -> None:
    scene.join()
    scene.hand()
    sent = scene.send(small(1))
    scene.give_up(sent)
    scene.send(small(2))
    scene.flow()
    scene.send(small(3))


@scenario("trainer: publication.N8 publication.N14", "host: acceptance.A9")
def a_result_is_published_again_and_sent_again(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.lost = {"ResultReady"}
    scene.send(small(1))
    scene.wait(5.0)
    scene.lost = set()
    scene.wait(6.0)
    scene.send(small(1))


@scenario("trainer: publication.N10 publication.N16", "host: acceptance.A10 delivery.D19", limits=Limits(result_attempts=1))
def a_result_that_was_rejected_is_sent_again(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.lost = {"ResultReady"}
    sent = scene.send(small(1))
    scene.wait_for(lambda: sent.done)
    scene.send(small(1))


@scenario("trainer: publication.N11 publication.N22")
def a_result_whose_task_was_cancelled_is_sent_again(scene: Scene) -> None:
    scene.join()
    executed = scene.hand()
    scene.lost = {"ResultReady"}
    scene.send(small(1))
    scene.flow()
    scene.give_up(executed)
    scene.flow()
    scene.send(small(1))


@scenario("trainer: publication.N12 publication.N23", takes_term=True)
def a_result_that_went_with_its_session_is_sent_again(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.lost = {"ResultReady", "AbortAccepted"}
    scene.send(small(1))
    scene.flow()
    scene.abort()
    scene.flow()
    scene.send(small(1))


def _unfetched(scene: Scene) -> None:
    """The host does not come to fetch a result that it has accepted."""
    scene.join()
    scene.hand()
    scene.held = {"Pull", "ResultSourceSettled"}
    scene.send(large(1))
    scene.wait_for(lambda: scene.waits("ResultSourceSettled"))


@scenario(
    "host: delivery.D18 acceptance.A18", "receiver: download.R9", "trainer: source.O13 publication.N18 publication.N21 publication.N9",
    limits=Limits(pull_attempts=1),
)  # fmt: skip
def a_result_that_its_receiver_gave_up_is_lost(scene: Scene) -> None:
    _unfetched(scene)
    scene.held = {"Pull"}
    scene.flow()
    scene.send(large(1))


@scenario("trainer: publication.N25", limits=Limits(pull_attempts=1), takes_term=True)
def an_abort_comes_before_a_loss_is_noted(scene: Scene) -> None:
    _unfetched(scene)
    scene.abort()
    scene.deliver("Abort")


@scenario("trainer: publication.N24", takes_term=True)
def an_abort_comes_before_a_settlement_is_noted(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"ResultSourceSettled"}
    scene.send(large(1))
    scene.flow()
    scene.abort()
    scene.deliver("Abort")


@scenario("trainer: source.O3 source.O12 source.O7 publication.N18", "receiver: download.R20")
def a_receiver_that_was_given_up_has_it_after_all(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"PayloadHeld", "ResultSourceSettled"}
    scene.send(large(1))
    scene.wait_for(lambda: "trainer.source.O12" in scene.fired)
    scene.deliver("PayloadHeld")


@scenario("trainer: source.O5 source.O8 publication.N20")
def a_receiver_says_again_what_is_forgotten(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"PayloadHeld"}
    scene.send(large(1))
    scene.flow()
    scene.copy("PayloadHeld")
    scene.flow()
    scene.deliver("PayloadHeld")


@scenario("host: source.O5 source.O6", "receiver: download.R20")
def a_trainer_says_again_that_it_has_a_task(scene: Scene) -> None:
    scene.join()
    scene.held, scene.lost = {"TaskAccepted"}, {"PayloadReleased"}
    scene.execute(large())
    scene.wait(12.0)


@scenario("host: acceptance.A20 session.H42", "receiver: download.R15", "trainer: session.S40")
def a_trainer_that_lost_its_owner_takes_its_result_with_it(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"Pull"}
    scene.send(large(1))
    scene.flow()
    scene.orphan()
    scene.flow()


@scenario("host: acceptance.A8", "trainer: publication.N16", limits=Limits(acceptance_limit=1))
def a_result_comes_that_was_forgotten(scene: Scene) -> None:
    scene.join()
    scene.lost, scene.held = {"CancelTask"}, {"ResultReady"}
    executed = scene.hand()
    scene.send()
    scene.give_up(executed)
    scene.execute()
    scene.deliver("ResultReady")
    scene.flow()


@scenario("host: acceptance.A7 acceptance.A12")
def a_result_comes_that_nobody_wants_any_more(scene: Scene) -> None:
    scene.join()
    scene.lost, scene.held = {"CancelTask", "ResultRejected"}, {"ResultReady"}
    executed = scene.hand()
    scene.send()
    scene.give_up(executed)
    scene.deliver("ResultReady")
    scene.wait(12.0)


@scenario("host: acceptance.A9 acceptance.A5 acceptance.A11", "trainer: publication.N13 publication.N14")
def a_result_comes_after_it_was_asked_about(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held, scene.lost = {"ResultReady"}, {"ResultAccepted"}
    scene.send()
    scene.wait(10.5)
    scene.deliver("ResultReady")
    scene.copy("ResultReady")
    scene.deliver("ResultReady")
    scene.wait(12.0)


@scenario("trainer: publication.N14")
def an_answer_about_an_earlier_attempt_is_late(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.lost, scene.held = {"ResultReady"}, {"ResultUnknown"}
    scene.send()
    scene.wait_for(lambda: scene.waits("ResultUnknown"))
    scene.copy("ResultUnknown")
    scene.held |= {"ResultStatus"}
    scene.wait_for(lambda: scene.waits("ResultStatus"))
    scene.deliver("ResultUnknown")


@scenario("trainer: source.O6", "receiver: download.R20")
def a_receiver_says_again_that_it_has_a_result(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held, scene.lost = {"ResultSourceSettled"}, {"PayloadReleased"}
    scene.send(large())
    scene.wait(12.0)


@scenario("trainer: publication.N3")
def a_result_is_sent_after_the_end(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.shutdown()
    scene.send()


@scenario("host: delivery.D25", "trainer: source.O12 ledger.K21 publication.N28",
          limits=Limits(ledger_limit=1, source_idle_s=30.0))  # fmt: skip
def a_result_is_forgotten_before_its_loss_is_noted(scene: Scene) -> None:
    scene.join()
    executed = scene.hand()
    scene.held = {"Pull", "ResultSourceSettled", "PayloadGone"}
    scene.send(large())
    scene.wait_for(lambda: scene.waits("ResultSourceSettled"))
    scene.give_up(executed)
    scene.flow()
    scene.execute()
    scene.flow()
