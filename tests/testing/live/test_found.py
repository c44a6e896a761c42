"""Faults in the runtime are found: those that are put into its driver, and the defects of the reference that live on these ports."""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

import pytest
import trio
from hypothesis import seed as with_seed
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.testing.live import patches as p
from tests.testing.live.finding import first_failure
from tests.testing.live.patches import Patch
from troth.runtime.trainer import TrainerSession
from troth.testing import Violated, live_machine
from troth.testing.live import programs
from troth.testing.live.judging import Judge
from troth.testing.live.machine import SETTINGS
from troth.testing.live.target import Live

SEEDS = (0, 1, 2)


class Case(NamedTuple):
    """A fault, what finds it, and how long an example of it may be at most."""

    name: str
    patch: Patch
    properties: set[str]
    steps: int


CASES: list[Case] = [
    # The twentieth effect is of any kind, and each kind is missed by what compares that kind: a message on a link, one to a sibling, a
    # timer or its end, a signal, the answer to a call; or by the replay of the trace, where what it tells of comes to others too.
    Case("an effect is dropped", p.drop_an_effect, {"wire", "order", "timers", "processes", "calls", "fault", "trace"}, 14),
    # Two effects of one step that change places are two messages of one link, or two to siblings; what else there is has no order.
    Case("two effects change places", p.reorder_two_effects, {"wire", "order"}, 4),
    Case("a cancelled timer fires", p.fire_a_cancelled_timer, {"timers"}, 4),
    # Nobody has shown who he is.
    Case("D19", p.let_anybody_in, {"authentic"}, 4),
    # init() comes back although nothing was asked.
    Case("D21", p.remember_a_failed_init, {"calls"}, 14),
    # receive() comes back although nothing was asked: before anybody can see which payload it is.
    Case("D26", p.serve_the_cached_task, {"calls"}, 12),
    # What comes back is the right task with the wrong content.
    Case("D27", p.keep_the_cached_payload, {"payload"}, 20),
    # send() comes back although nothing was asked.
    Case("D28", p.return_silently, {"calls"}, 5),
    Case("D31", p.queue_without_bound, {"queues"}, 16),
    Case("a call waits before it asks", p.never_ask, {"calls"}, 4),
]


def _named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=_named)
def test_a_fault_is_found_and_shown_by_a_short_example(case: Case, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the budget, by what it breaks; and the token of the example breaks the same, each time that it is played."""
    case.patch(monkeypatch)
    failure = first_failure(seed)
    assert failure.property in case.properties, failure.told
    assert len(programs.program(failure.token).moves) <= case.steps, failure.told
    assert "the checker" in failure.told

    target = Live()
    again = target.replay(failure.token, coverage=target.coverage()).failure
    assert again is not None
    assert again.property == failure.property
    assert again.token == failure.token


def test_a_token_fails_no_more_once_the_fault_is_mended() -> None:
    """It is the program that fails, not the token."""
    with pytest.MonkeyPatch.context() as broken:
        p.fire_a_cancelled_timer(broken)
        failure = first_failure(0)

    target = Live()
    again = target.replay(failure.token, coverage=target.coverage())
    assert again.failure is None
    assert again.told
    assert again.trace


def test_a_failure_says_what_each_step_is_about_and_what_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who calls what with which payload, which frame arrives where, what was written and what returned; nothing is left out of it."""
    p.keep_the_cached_payload(monkeypatch)
    failure = first_failure(1)

    told = failure.told
    assert re.search(r"^the example, \d+ steps, shortened from \d+.*:$", told, re.MULTILINE)
    assert re.search(r"^ +\d+  execute +execute\('task-1', \{.*'n': 1\b.*\}\)$", told, re.MULTILINE)
    assert re.search(r"^ +\d+  deliver +connection 0 \(control\), up; Hello\(epoch=0\)$", told, re.MULTILINE)
    assert "connection 0 (control), down: HelloAccepted(epoch=1) was written" in told
    assert "trainer of host-1: receive() returned Task id-1 with {" in told
    assert "the process of host-1 runs" in told
    assert "the checker has no trace to it" in told


@pytest.mark.parametrize("case", [case for case in CASES if case.name in ("a cancelled timer fires", "D19", "D26")], ids=_named)
def test_the_test_that_a_failure_shows_fails_as_it_does(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands there, line by line."""
    case.patch(monkeypatch)
    failure = first_failure(0)

    _, _, lines = failure.told.partition("the example as a Hypothesis test, on its machine:\n")
    with pytest.raises(Violated) as caught:
        exec(textwrap.dedent(lines), {})
    assert caught.value.wrong.property == failure.property


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in ("D21", "D28", "D31")], ids=_named)
def test_hypothesis_finds_a_fault_and_shrinks_it_soon(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings that come along. What is raised has the example, and a token that fails in the same way. Those that are left out
    take more programs to be found than it makes up."""
    case.patch(monkeypatch)
    plays = 0

    class Counted(live_machine()):  # type: ignore[misc]
        """The same, counting."""

        def teardown(self) -> None:
            nonlocal plays
            plays += 1
            super().teardown()

    with pytest.raises(Violated) as caught:
        run_state_machine_as_test(with_seed(1)(Counted), settings=settings(SETTINGS, database=None))
    assert caught.value.wrong.property in case.properties
    assert plays <= 1_000

    said = str(caught.value)
    token = re.search(r"^replay: troth fuzz --target runtime --replay (\S+)$", said, re.MULTILINE)
    assert token is not None
    assert len(programs.program(token[1]).moves) <= case.steps, said
    target = Live()
    again = target.replay(token[1], coverage=target.coverage()).failure
    assert again is not None
    assert again.property == caught.value.wrong.property
    assert any("reproduce_failure" in note for note in caught.value.__notes__)


async def _spins(_session: TrainerSession, _tree: object) -> None:
    while True:
        await trio.lowlevel.checkpoint()


def _breaks(_judge: Judge) -> None:
    raise KeyError("a judge that does not know what it sees")


@pytest.mark.parametrize(
    ("owner", "name", "replaced", "found"), [(TrainerSession, "send", _spins, "hang"), (Judge, "look", _breaks, "error")]
)
def test_whatever_breaks_a_session_off_is_told_with_the_session_that_shows_it(
    owner: type, name: str, replaced: object, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that never lets go, and an error that nobody foresaw: each has a token, and what was done until then."""
    monkeypatch.setattr(owner, name, replaced)
    failure = first_failure(0)
    assert failure.property == found
    assert "the example, " in failure.told or "no step is needed" in failure.told

    target = Live()
    again = target.replay(failure.token, coverage=target.coverage())
    assert again.failure is not None
    assert again.failure.property == found
