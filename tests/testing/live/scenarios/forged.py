"""Plays in which a peer that holds the token writes what no honest one would.

Nothing on the wire keeps it from that: it is whoever the bootstrap file was given to. The rows for it are there, and answer.
"""

from __future__ import annotations

import numpy as np

from tests.testing.live.scenarios.playing import scenario
from tests.testing.live.scenarios.scene import Scene, changed, large, small
from troth.runtime.session import CONTROL_RANK, PROTOCOL_VERSION
from troth.runtime.wire.besides import HelloBeside, SessionOpenBeside
from troth.runtime.wire.codec import encode
from troth.spec import messages as m
from troth.spec.limits import Limits

OTHER = bytes(16)
"""The digest of no payload."""


def _frame(scene: Scene, name: str) -> bytes:
    """The bytes of a frame that waits."""
    line, way, index = scene.seek(name)
    return line.sim.pipes[way].waiting[index]


@scenario("host: session.H6", forged=True)
def it_wants_back_into_a_session_that_never_was(scene: Scene) -> None:
    scene.held = {"Hello"}
    scene.launch()
    scene.init()
    given = scene.seat.bootstrap
    beside = HelloBeside(PROTOCOL_VERSION, given.job_id, given.site_name, CONTROL_RANK)
    scene.forge(m.Hello(epoch=3, claim=m.Claim.MATCHING), to="host", beside=beside)


@scenario("host: acceptance.A14", forged=True)
def it_says_that_all_receivers_have_what_they_are_still_fetching(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"Pull"}
    scene.send(large())
    scene.flow()
    scene.forge(m.ResultSourceSettled(epoch=1, seq=1, delivered=True), to="host")


@scenario("host: acceptance.A6", forged=True)
def it_publishes_another_content_of_what_was_taken(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.send(small(1))
    frame = _frame(scene, "ResultReady")
    scene.flow()
    scene.put(changed(frame, {"digest": OTHER}, content=1), to="host")
    scene.settle()


@scenario("trainer: ledger.K10", forged=True)
def it_offers_another_task_of_the_same_number(scene: Scene) -> None:
    scene.join()
    scene.execute(small(1))
    frame = _frame(scene, "TaskReady")
    scene.flow()
    scene.put(changed(frame, {"digest": OTHER}, content=1), to="trainer")
    scene.settle()


@scenario("trainer: ledger.K12 ledger.K5", "host: delivery.D14", forged=True, limits=Limits(pull_attempts=1))
def it_offers_another_task_in_place_of_one_that_did_not_come(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull", "TaskFailed"}
    scene.execute(large(1))
    frame = _frame(scene, "TaskReady")
    scene.wait_for(lambda: scene.waits("TaskFailed"))
    scene.put(changed(frame, {"digest": OTHER}, content=1), to="trainer")
    scene.settle()
    scene.lose("TaskFailed")


@scenario("receiver: download.R7", "trainer: ledger.K12", "host: delivery.D10", forged=True)
def a_payload_comes_that_is_not_the_one_that_was_announced(scene: Scene) -> None:
    scene.join()
    scene.execute({"v": np.ones(3)})
    frame = _frame(scene, "TaskReady")
    scene.lose("TaskReady")
    scene.put(changed(frame, {"payload": bytes(24)}, content=0), to="trainer")
    scene.settle()


@scenario("trainer: publication.N13", forged=True, limits=Limits(result_attempts=1))
def it_knows_nothing_of_the_last_attempt(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.lost = {"ResultReady", "ResultRejected"}
    scene.send()
    scene.wait(10.5)
    scene.forge(m.ResultUnknown(epoch=1, seq=1, attempt=1), to="trainer")


@scenario("receiver: download.R1", forged=True)
def it_lets_go_of_what_another_receiver_fetches(scene: Scene) -> None:
    scene.join()
    scene.held = {"Pull"}
    scene.execute(large())
    scene.flow()
    scene.forge(m.PayloadGone(epoch=1, seq=1, receiver=1), to="trainer", role="data")


@scenario("receiver: download.R4", forged=True)
def it_has_heard_another_receiver(scene: Scene) -> None:
    scene.join()
    scene.held = {"PayloadHeld"}
    scene.execute(large())
    scene.flow()
    scene.forge(m.PayloadReleased(epoch=1, seq=1, receiver=1), to="trainer", role="data")


@scenario("host: acceptance.awaiting.settled", forged=True)
def it_says_that_a_result_is_settled_that_nobody_has_taken(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.forge(m.ResultSourceSettled(epoch=1, seq=1, delivered=True), to="host")


@scenario("trainer: publication.rejected.accepted", forged=True, limits=Limits(result_attempts=1))
def it_accepts_a_result_that_it_has_rejected(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.lost = {"ResultReady"}
    sent = scene.send()
    scene.wait_for(lambda: sent.done)
    scene.forge(m.ResultAccepted(epoch=1, seq=1, attempt=1), to="trainer")


@scenario("host: session.H30 session.answers_this session.~answers_this session.retryable session.~retryable session.H31", forged=True)
def it_speaks_as_if_it_had_been_opened(scene: Scene) -> None:
    scene.join()
    scene.forge(m.SessionAccepted(epoch=1), to="host")
    scene.forge(m.SessionRejected(opened=2, epoch=1, retry=False), to="host")
    scene.forge(m.SessionRejected(opened=1, epoch=1, retry=True), to="host")
    scene.forge(m.SessionRejected(opened=1, epoch=1, retry=False), to="host")


@scenario("trainer: session.S18", forged=True)
def it_opens_a_trainer_that_it_has_launched(scene: Scene) -> None:
    scene.join()
    line = scene.line()
    line.harmed = True  # what comes is no frame for it, so nobody is told
    line.sim.down.insert(encode(m.SessionOpen(epoch=2, instance=1, resume=False), SessionOpenBeside("another")))
    scene.settle()
    assert not line.alive
    scene.wait(1.0)


@scenario("trainer: ledger.K21 publication.N27", forged=True, limits=Limits(ledger_limit=1))
def it_cancels_a_task_whose_result_it_has(scene: Scene) -> None:
    scene.join()
    scene.hand()
    scene.held = {"ResultSourceSettled"}
    scene.send()
    scene.flow()
    scene.forge(m.CancelTask(epoch=1, seq=1), to="trainer")
    scene.execute()
    scene.flow()
