"""What the checklist says of the payloads of tasks, and of those who fetch them: served, held, failed, dropped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.statemachines.session_bench import TO_TRAINER, Session, ready
from troth.spec import core
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.statemachines import Receiver, ReceiverConfig


def hear(made: Session, name: str, message: core.Message, link: str = "control") -> core.Step:
    """A message, by hand."""
    return made.give(name, core.Received(link, message))


def test_a_tasks_payload_is_served_until_its_receiver_holds_it() -> None:
    """D18: bytes move, stall, go on, are all served; only the receiver's own word settles it, and is answered again."""
    made = ready()
    made.execute(inline=False)
    made.lose(TO_TRAINER)
    key = (1, 0)
    made.give("host", core.TransferProgressed("task", key))
    assert made.where("host", "source", key) == "moving"
    assert made.where("host", "lease") == "armed"
    made.fire("host", "source", key)
    assert made.where("host", "source", key) == "offered"
    made.give("host", core.TransferProgressed("task", key))
    made.give("host", core.TransferEnded("task", key, core.TransferOutcome.COMPLETE))
    assert made.where("host", "source", key) == "offered", "served is not held"
    for _ in range(2):
        hear(made, "host", m.PayloadHeld(epoch=1, seq=1, receiver=0), "data")

    assert made.where("host", "source", key) == "held"
    assert len(made.said("host", m.PayloadReleased)) == 2
    hear(made, "host", m.TaskAccepted(epoch=1, seq=1))
    assert made.cores["host"].members("source") == ()
    assert [where for where in made.offers if where[0] == "host"] == []


def test_a_tasks_payload_that_could_not_be_offered_counts_if_it_was_had_after_all() -> None:
    """Rule 5 of the core interface: the receiver is told that it is gone; if it holds the payload all the same, it does."""
    made = ready()
    made.execute(inline=False)
    made.lose(TO_TRAINER)
    made.give("host", core.EffectFailed(core.Offer("task", (1, 0))))
    assert made.said("host", m.PayloadGone) == [m.PayloadGone(epoch=1, seq=1, receiver=0)]
    hear(made, "host", m.PayloadHeld(epoch=1, seq=1, receiver=0), "data")

    assert made.where("host", "source", (1, 0)) == "held"


def test_bytes_that_move_clear_a_suspect() -> None:
    """K40: before any message does."""
    made = ready()
    made.execute(inline=False)
    made.fire("host", "lease")
    made.give("host", core.TransferProgressed("task", (1, 0)))

    assert made.where("host", "lease") == "armed"


def fetching(*, inline: bool = False, limits: Limits = Limits(pull_attempts=1)) -> Receiver:  # noqa: B008 - frozen
    """A receiver with one try."""
    made = Receiver(ReceiverConfig(limits=limits))
    made.handle(core.Received("party", m.FetchPayload(epoch=1, seq=1, inline=inline)))
    return made


FAILURES: dict[str, Callable[[Receiver], core.Step]] = {
    "failed": lambda made: made.handle(core.TransferEnded("payload", (1, 0), core.TransferOutcome.FAILED)),
    "stalled": lambda made: made.handle(core.TimerFired("stall", None, made.armed["stall", None])),
    "not begun": lambda made: made.handle(core.EffectFailed(core.Pull("payload", (1, 0)))),
}


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("how", FAILURES)
def test_a_download_that_failed_for_good_says_so(how: str, inline: bool) -> None:
    """K35: its party hears it, and its source too where there is one."""
    made = fetching(inline=inline)
    step = FAILURES[how](made)
    said = [type(effect.message) for effect in step.effects if isinstance(effect, core.Send)]

    assert said == ([m.PayloadLost] if inline else [m.PayloadAbandoned, m.PayloadLost])
    assert made.state("download").value == "lost"
    assert made.armed == {}


@pytest.mark.parametrize(("lost", "became"), [(True, "lost"), (False, "dropped")])
def test_a_download_that_is_dropped_before_it_was_begun_is_never_begun(lost: bool, became: str) -> None:
    """K54: the loss overtook the order to fetch."""
    made = Receiver(ReceiverConfig())
    made.handle(core.Received("party", m.DropPayload(epoch=1, seq=1, lost=lost)))
    step = made.handle(core.Received("party", m.FetchPayload(epoch=1, seq=1, inline=False)))

    assert step.effects == ()
    assert made.state("download").value == became


def test_a_loss_means_nothing_to_a_receiver_that_holds_the_payload() -> None:
    """P21, K54: it has what it needs."""
    made = fetching()
    made.handle(core.TransferEnded("payload", (1, 0), core.TransferOutcome.COMPLETE))
    made.handle(core.Received("party", m.DropPayload(epoch=1, seq=1, lost=True)))

    assert made.state("download").value == "done"
    assert made.observe()["holds"] is True
