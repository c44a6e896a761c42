"""The automata beside the cores: links between processes, timers, and what must have come before an event that comes from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.sessions import stage as stages
from tests.runtime.sessions.stage import run, staged
from tests.testing.traces.recorded import recorded
from tests.testing.traces.test_tampering import renumber
from troth.runtime.trainer import TrainerSession
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.trace import End, Header, Record
from troth.testing.traces import Checked, Network, Rejected, RunCheck
from troth.testing.traces.causes import Causes
from troth.testing.traces.timing import SLACK_NS, TimerCheck
from troth.testing.traces.verdicts import Wrong
from troth.testing.traces.wires import Control, Data

HELLO = m.Hello(epoch=0, claim=m.Claim.MATCHING)
BEAT = m.Heartbeat(epoch=1)
READY = m.SessionReady(epoch=1, proven=True)
DRAINING = m.SessionDraining(epoch=1)
S = 1_000_000_000


def up(link: Control, *sides: Any) -> None:
    """Each of these sides has a new connection."""
    for side in sides:
        link.up(side)


# -- the control link --------------------------------------------------------------------------------------------------


def test_a_connection_carries_messages_in_order_and_loses_none_in_between() -> None:
    """Nor does anything come twice, or that was not sent."""
    link = Control(Network.SOUND, late=False)
    up(link, link.one, link.other)
    for message in (READY, DRAINING):
        link.send(link.other, message)

    assert not link.explains(link.one, DRAINING)
    assert link.explains(link.one, READY)
    link.receive(link.one, READY)
    assert not link.explains(link.one, READY)
    assert link.coming(link.one) == (DRAINING,)
    assert not link.explains(link.other, READY)


def test_what_the_receiver_derives_is_not_compared() -> None:
    """A claim is its own verdict on what came beside the message."""
    link = Control(Network.SOUND, late=False)
    up(link, link.one, link.other)
    link.send(link.other, HELLO)

    assert link.explains(link.one, m.Hello(epoch=0, claim=m.Claim.WRONG_RANK))
    assert not link.explains(link.one, m.Hello(epoch=1, claim=m.Claim.MATCHING))


def test_a_beat_may_be_missing_anywhere_and_nothing_else() -> None:
    """The writer merges those that wait."""
    link = Control(Network.SOUND, late=False)
    up(link, link.one, link.other)
    for message in (BEAT, BEAT, READY, BEAT, DRAINING):
        link.send(link.other, message)

    assert link.explains(link.one, READY)
    link.receive(link.one, READY)
    assert link.explains(link.one, DRAINING)
    link.receive(link.one, DRAINING)
    assert not link.explains(link.one, BEAT)


def test_what_was_under_way_on_a_lost_connection_never_comes() -> None:
    """A new connection begins with what is said on it."""
    link = Control(Network.SOUND, late=False)
    up(link, link.one, link.other)
    link.send(link.one, READY)
    link.receive(link.other, READY)
    link.send(link.other, HELLO)
    link.receive(link.one, HELLO)
    link.send(link.other, DRAINING)
    for side in (link.one, link.other):
        link.down(side)
    link.send(link.other, READY)
    up(link, link.one, link.other)

    assert not link.explains(link.one, DRAINING)
    assert not link.explains(link.one, READY)
    link.send(link.other, BEAT)
    assert link.explains(link.one, BEAT)


def test_a_connection_that_only_one_side_had_is_nobodys() -> None:
    """The trainer dialled twice; the host took the second one first."""
    link = Control(Network.SOUND, late=False)
    up(link, link.other)
    link.send(link.other, HELLO)
    link.down(link.other)
    up(link, link.other, link.one)
    link.send(link.other, HELLO)
    link.receive(link.one, HELLO)
    link.send(link.other, READY)

    assert link.explains(link.one, READY)
    link.receive(link.one, READY)
    assert not link.explains(link.one, HELLO)


def test_in_files_a_connection_may_turn_out_to_be_a_later_one() -> None:
    """The host's file is read first, and its first message fits a connection that was lost before it was heard."""
    link = Control(Network.SOUND, late=True)
    up(link, link.other)
    link.send(link.other, HELLO)
    up(link, link.one)
    link.receive(link.one, HELLO)
    link.down(link.other)
    up(link, link.other)

    link.send(link.other, HELLO)
    link.send(link.other, DRAINING)
    assert link.explains(link.one, DRAINING)
    link.receive(link.one, DRAINING)
    assert link.unexplained(link.one) is None


def test_a_faulty_network_may_lose_copy_and_reorder_and_not_invent() -> None:
    """Each only of what was sent over a connection that it can be."""
    link = Control(Network.FAULTY, late=False)
    up(link, link.one, link.other)
    for message in (READY, DRAINING):
        link.send(link.other, message)
    for message in (DRAINING, DRAINING, READY):
        assert link.explains(link.one, message)
        link.receive(link.one, message)

    assert not link.explains(link.one, BEAT)


def test_data_messages_come_in_order_once_and_may_be_lost() -> None:
    """Their connections are in no trace."""
    link = Data(Network.SOUND)
    held = [m.PayloadHeld(epoch=1, seq=seq, receiver=0) for seq in (1, 2, 3)]
    for message in held:
        link.send(message)

    assert link.explains(held[1])
    link.receive(held[1])
    assert [link.explains(message) for message in held] == [False, False, True]


# -- timers ------------------------------------------------------------------------------------------------------------


def armed() -> TimerCheck:
    """A timer of five seconds, set at ten."""
    timers = TimerCheck({"wait_s": 5.0, "never_s": None})
    timers.did(c.SetTimer("wait", 1, 0, "wait_s"), 10 * S)
    return timers


def test_a_timer_fires_once_when_it_is_due() -> None:
    """Or at any time later."""
    timers = armed()
    timers.fired(c.TimerFired("wait", 1, 0), 17 * S)
    with pytest.raises(Wrong, match=r"timer wait\[1\] fired, but had fired already"):
        timers.fired(c.TimerFired("wait", 1, 0), 18 * S)


@pytest.mark.parametrize(
    ("effect", "event", "t_ns", "says"),
    [
        (None, c.TimerFired("wait", 1, 0), 15 * S - 2 * SLACK_NS, r"timer wait\[1\] fired 2e-06 s before it was due"),
        (None, c.TimerFired("wait", 2, 0), 15 * S, r"timer wait\[2\] fired, but was never armed"),
        (None, c.TimerFired("wait", 1, 1), 15 * S, "fired as generation 1, but it was armed as 0"),
        (c.CancelTimer("wait", 1), c.TimerFired("wait", 1, 0), 15 * S, r"timer wait\[1\] fired, but was cancelled"),
        (c.SetTimer("wait", 1, 1, "wait_s"), c.TimerFired("wait", 1, 0), 17 * S, "fired as generation 0, but it was armed as 1"),
        (c.SetTimer("wait", 1, 1, "wait_s"), c.TimerFired("wait", 1, 1), 16 * S, "fired 1 s before it was due"),
        (c.SetTimer("wait", 1, 1, "never_s"), c.TimerFired("wait", 1, 1), 99 * S, "has no end: never_s has no value"),
    ],
)
def test_a_timer_that_fires_otherwise_is_told_why_not(effect: c.Effect | None, event: c.TimerFired, t_ns: int, says: str) -> None:
    """Early, never armed, of another generation, cancelled, set again since, or without an end."""
    timers = armed()
    if effect is not None:
        timers.did(effect, 12 * S)
    with pytest.raises(Wrong, match=says):
        timers.fired(event, t_ns)


def test_a_duration_that_only_the_peer_knew_is_believed() -> None:
    """It granted it, and its file is not here."""
    timers = TimerCheck({"wait_s": 5.0}, unknown=frozenset(["wait_s"]))
    timers.did(c.SetTimer("wait", None, 0, "wait_s"), 0)
    timers.fired(c.TimerFired("wait", None, 0), 1)


# -- causes ------------------------------------------------------------------------------------------------------------

UNCAUSED: dict[str, c.Event] = {
    "nobody had called it": c.CallCancelled("receive", 1),
    "process 0 has started, but nobody had asked for it": c.ProcessStarted(),
    "process 0 has ended, but nobody had asked for it": c.ProcessExited(),
    "process 0 could not be started, but nobody": c.EffectFailed(c.Spawn()),
    "no step of this reaction had that effect": c.EffectFailed(c.Send("control", BEAT)),
    "nobody had opened it": c.LinkUp("control"),
    "it was not up": c.LinkLost("control"),
    r"the transfer result \(1, 0\) moved, but nothing had offered it": c.TransferProgressed("result", (1, 0)),
}


@pytest.mark.parametrize(("says", "event"), UNCAUSED.items(), ids=[type(event).__name__ for event in UNCAUSED.values()])
def test_what_nothing_has_asked_for_cannot_happen(says: str, event: c.Event) -> None:
    """To a party that has done nothing yet."""
    with pytest.raises(Wrong, match=says):
        Causes().happened(event, 0)


def test_what_was_asked_for_happens_once() -> None:
    """A start and an end a process, a failure an effect, an end a pull, one giving up a call."""
    causes = Causes()
    effects = (c.Spawn(), c.OpenLink("control"), c.Pull("payload", (1, 0)), c.Send("control", BEAT))
    for effect in effects:
        causes.did(effect, 0)
    once = (
        c.ProcessStarted(),
        c.ProcessExited(),
        c.EffectFailed(c.Send("control", BEAT)),
        c.LinkUp("control"),
        c.TransferEnded("payload", (1, 0), c.TransferOutcome.COMPLETE),
    )
    causes.happened(c.Called("receive", 1), 0)
    for event in (*once, c.CallCancelled("receive", 1)):
        causes.happened(event, 0)
        with pytest.raises(Wrong):
            causes.happened(event, 0)


def test_an_effect_fails_in_its_own_reaction_or_not_at_all() -> None:
    """A process is started in its own time."""
    causes = Causes()
    causes.did(c.Pull("payload", (1, 0)), 0)
    causes.did(c.Spawn(), 0)
    causes.happened(c.EffectFailed(c.Spawn()), 7 * S)
    with pytest.raises(Wrong, match="no step of this reaction"):
        causes.happened(c.EffectFailed(c.Pull("payload", (1, 0))), 7 * S)


# -- while a run goes on -----------------------------------------------------------------------------------------------


class Checking:
    """Takes traces as they come; may lose one kind of effect on the way, as a driver with a fault would."""

    def __init__(self, forget: str = "") -> None:
        self.run = RunCheck(punctual=True)
        self.forget = forget
        self.first: Rejected | None = None

    def begin(self, name: str, header: Header) -> Any:
        """See ``Recorder``."""
        party = self.run.open(name, header)

        def note(said: Record | End) -> None:
            if isinstance(said, End):
                party.close(said)
            elif not (self.forget and isinstance(said.event, c.TimerFired) and said.event.timer == self.forget):
                try:
                    party.add(said)
                except Rejected as rejected:
                    self.first = self.first or rejected
                    raise

        return note


def checked_while_it_runs(monkeypatch: pytest.MonkeyPatch, checking: Checking) -> None:
    """A task that takes forty seconds, with both processes' traces given to the check."""

    def tracing(bootstrap: Any, network: Any, **options: Any) -> Any:
        return TrainerSession(bootstrap, network, **{**options, "trace": (checking, "site-1.trainer-1")})

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(slow)
            async with stage.backend(trace=checking, name="site-1") as trainer:
                await trainer.execute("train", {"x": 1})

    async def slow(session: Any, _process: Any) -> None:
        import trio

        await session.init()
        while (task := await session.receive()) is not None:
            await trio.sleep(40)
            await session.send(task.payload)

    monkeypatch.setattr(stages, "TrainerSession", tracing)
    run(main)


def test_a_run_is_checked_while_it_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Both processes write to the check instead of to files; nothing is missing at the end."""
    checking = Checking()
    checked_while_it_runs(monkeypatch, checking)
    found = checking.run.finish()

    assert found == Checked(found.steps)
    assert found.steps > 40
    assert not list(tmp_path.iterdir())


def test_a_timer_that_was_forgotten_is_missed_where_time_stands_still() -> None:
    """The trainer's second beat does not come: with a clock of its own it might be late, in virtual time it is not."""
    run = recorded("cancelled").copy()
    file, place = run.find(".trainer", lambda line: line["event"].get("timer") == "beat" and line["t_ns"] == 10 * S)
    answer = next(n for n in range(place, len(run.files[file])) if run.files[file][n]["link"] == "control")
    del run.files[file][place : answer + 1]
    renumber(run, file)
    with pytest.raises(Rejected, match=r"timer beat of trainer was due .* ago and has not fired|has not sent it"):
        run.check_live()


def test_the_first_step_that_is_wrong_ends_a_run_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised into whoever took the step."""
    checking = Checking(forget="beat")
    with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever the runtime makes of a tracer that raises
        checked_while_it_runs(monkeypatch, checking)
    assert checking.first is not None
    assert "the trainer has not sent it" in checking.first.reason
