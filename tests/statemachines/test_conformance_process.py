"""What the checklist says of processes: how they are asked to go, made to go, and given up."""

from __future__ import annotations

import pytest

from tests.statemachines.session_bench import Session, ready, session
from troth.spec import core
from troth.spec import messages as m

TERM = core.SignalProcess(core.ProcessSignal.TERM)
KILL = core.SignalProcess(core.ProcessSignal.KILL)


def signals(made: Session) -> list[str]:
    """What the process was sent, in order."""
    return [effect.signal.value for _, _, step in made.steps for effect in step.effects if isinstance(effect, core.SignalProcess)]


def limit(made: Session) -> str:
    """The limit that the process is waited for with."""
    return made.armed["host", "process", None][1]


def verdicts(made: Session) -> list[tuple[str, bool]]:
    """What the supervisor was told of the end."""
    return [(said.verdict.value, said.stuck) for said in made.to_supervisor(m.SessionEnded)]


def left() -> Session:
    """The session was closed in order; the process is still there."""
    made = ready()
    made.order(m.CloseSession(launch=1))
    made.run()
    return made


def aborted() -> Session:
    """The session was aborted, and the trainer has answered."""
    made = ready()
    made.order(m.AbortSession(launch=1))
    made.run()
    return made


def test_a_process_that_leaves_by_itself_is_not_signalled() -> None:
    """K56: the natural exit is preferred."""
    made = left()
    assert limit(made) == "natural_exit_s"
    made.give("host", core.ProcessExited(0, True))

    assert signals(made) == []
    assert verdicts(made) == [("stopped", False)]
    assert made.timers("host") == set()


def test_term_then_kill_then_given_up() -> None:
    """K56, K19: each wait is a limit of its own, and the last one too is bounded."""
    made = left()
    made.fire("host", "process")
    assert (signals(made), limit(made)) == (["term"], "term_grace_s")
    made.fire("host", "process")
    assert (signals(made), limit(made)) == (["term", "kill"], "kill_wait_s")
    assert verdicts(made) == []
    made.fire("host", "process")

    assert verdicts(made) == [("stopped", True)]
    assert made.timers("host") == set()


def test_an_abort_skips_the_natural_exit_but_not_the_grace() -> None:
    """K56: TERM at once, KILL only after its time."""
    made = aborted()

    assert (signals(made), limit(made)) == (["term"], "term_grace_s")
    assert KILL in made.fire("host", "process").effects


def test_an_abort_while_the_process_leaves_cuts_the_wait_short() -> None:
    """K56: no more waiting for the natural exit."""
    made = left()
    step = made.order(m.AbortSession(launch=1))

    assert TERM in step.effects
    assert limit(made) == "term_grace_s"
    made.give("host", core.ProcessExited())
    assert verdicts(made) == [("aborted", False)], "it was not over yet, so the abort is what ended it"


@pytest.mark.parametrize("fired", [0, 1, 2])
def test_an_exit_at_any_time_ends_the_wait(fired: int) -> None:
    """K56: whatever it was sent so far; one report, and no timer is left."""
    made = left()
    for _ in range(fired):
        made.fire("host", "process")
    made.give("host", core.ProcessExited())
    made.give("host", core.ProcessExited())

    assert verdicts(made) == [("stopped", False)]
    assert made.timers("host") == set()


def test_an_exit_after_it_was_given_up_says_nothing_more() -> None:
    """K56: the launch was over; the report had said that it was stuck."""
    made = left()
    for _ in range(3):
        made.fire("host", "process")
    made.give("host", core.ProcessExited())

    assert len(verdicts(made)) == 1
    assert made.where("host", "process") == "exited"


def test_a_process_that_cannot_be_started_fails_its_launch_at_once() -> None:
    """K46: there is nothing to wait for."""
    made = session()
    made.order(m.StartSession(launch=1))
    made.give("host", core.EffectFailed(core.Spawn()))

    assert verdicts(made) == [("lost", False)]
    assert made.timers("host") == set()


@pytest.mark.parametrize("at", ["starting", "joined", "leaving", "terminating"])
def test_without_its_guardian_a_process_is_killed_at_once(at: str) -> None:
    """K19, D24: nobody can be asked for its orderly end any more, and no new work is begun."""
    made = {"starting": session, "joined": ready, "leaving": left, "terminating": aborted}[at]()
    if at == "starting":
        made.order(m.StartSession(launch=1))
    step = made.give("host", core.OwnerLost())

    assert KILL in step.effects
    assert limit(made) == "kill_wait_s"
    made.fire("host", "process")
    assert len(verdicts(made)) == 1
    assert verdicts(made)[0][1] is True


@pytest.mark.parametrize("how", ["close", "abort", "owner", "lease"])
def test_an_attached_trainer_is_never_signalled(how: str) -> None:
    """K40, K62: it is somebody else's process; its session ends, and it lives on."""
    made = ready(launched=False)
    if how in ("close", "abort"):
        made.order(m.CloseSession(launch=1) if how == "close" else m.AbortSession(launch=1))
        made.run()
    elif how == "owner":
        made.give("host", core.OwnerLost())
    else:
        while ("host", "lease", None) in made.armed:
            made.fire("host", "lease")

    assert signals(made) == []
    assert made.process == {}
    assert len(verdicts(made)) == (0 if how == "owner" else 1)


@pytest.mark.parametrize("working", [True, False], ids=["with a task", "idle"])
def test_a_death_is_detected_by_its_report(working: bool) -> None:
    """K52, R22: the task is lost at once; without one, the script has simply ended."""
    made = ready()
    if working:
        made.working()
    made.give("host", core.ProcessExited())

    assert verdicts(made) == [("lost" if working else "ended", False)]
    assert made.ended == (["trainer lost"] if working else [])
    made.execute()
    assert made.ended[-1] == ("trainer lost" if working else "session over"), "nothing is begun any more"


def test_a_trainer_whose_owner_is_gone_drops_everything_by_itself() -> None:
    """K19, K40: it hears of its host's death from its own guardian; nobody waits, nothing is served, no link is dialled."""
    made = ready()
    made.working()
    made.send(3, inline=False)
    made.give("trainer", core.OwnerLost())

    assert made.outcomes("trainer", "send") == ["lost"]
    assert made.timers("trainer") == set()
    assert made.links["trainer", "control"] is False
    assert [where for where in made.offers if where[0] == "trainer"] == []
