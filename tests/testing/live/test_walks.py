"""Random walks over the live runtime: nothing is found in it, and what they do is what their seeds say."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from troth.testing.live.choices import Listed
from troth.testing.live.choices import Walk as Drawn
from troth.testing.live.machine import LiveMachine
from troth.testing.live.reasons import UNREACHABLE
from troth.testing.live.recording import Recording
from troth.testing.live.target import Live, quietly
from troth.testing.live.walking import Walk
from troth.testing.targets import BadToken

SESSIONS = 120
SAME = 100
"""Runs of one seed that are compared."""
SEED = 5
"""A session with tasks and faults."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What is refused on purpose is not worth a line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


def test_walks_find_nothing() -> None:
    """Whole sessions, with faults: what was seen at the ports is what the model says, and nothing is left behind."""
    target = Live()
    coverage = target.coverage()
    walks = target.fuzz(seed=0, until=lambda: False, coverage=coverage)
    for _, found in zip(range(SESSIONS), walks, strict=False):
        assert found.failure is None, found.failure.told
    assert coverage.fraction("rows") > 0.5
    fired = set(coverage.fired("rows"))
    assert not fired & set(UNREACHABLE), "it fired, so it is no row that cannot"
    assert set(coverage.fired("faults")) >= {"lose", "copy", "cut", "tear", "kill"}


def test_each_row_that_cannot_fire_is_one_and_has_its_reason() -> None:
    """The list goes stale silently otherwise."""
    assert set(UNREACHABLE) <= Live().coverage().known["rows"]
    assert all(UNREACHABLE.values())


def test_what_hypothesis_draws_finds_nothing() -> None:
    """The same rules, chosen by Hypothesis, so that what it finds shrinks."""
    quick = settings(max_examples=15, stateful_step_count=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    run_state_machine_as_test(LiveMachine, settings=quick)


def test_traces_of_walks_are_those_of_runs_that_can_be() -> None:
    """Each step is checked by the replay on the cores, with automata of links and timers beside them, as it is taken."""
    for seed in range(12):
        recording = Recording()
        Walk(Drawn(seed), recording).run()
        assert recording.lines
        assert recording.rejected is None


def _fingerprint(seed: int) -> str:
    walk = Walk(Drawn(seed), Recording(checked=False))
    with quietly():
        walk.run()
    return hashlib.sha256("\n".join(walk.trace).encode()).hexdigest()


def test_one_seed_is_one_run() -> None:
    """A hundred runs of a seed have one trace, and one record of the wire, byte for byte."""
    assert len({_fingerprint(SEED) for _ in range(SAME)}) == 1


def test_one_seed_is_one_run_in_every_process() -> None:
    """Whatever the hashes of this process are, and whatever ran in it before."""
    script = (
        "from tests.testing.live.test_walks import _fingerprint\nimport sys; print(*[_fingerprint(int(seed)) for seed in sys.argv[1:]])"
    )
    seeds = [SEED, SEED + 1, SEED + 2]
    found = {" ".join(_fingerprint(seed) for seed in seeds)}
    for hashes in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", script, *map(str, seeds)]
        found.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip())
    assert len(found) == 1


def test_choices_that_were_taken_are_the_run() -> None:
    """A run can be played again from the list of its choices."""
    drawn = Drawn(SEED)
    first = Walk(drawn, Recording())
    first.run()
    again = Walk(Listed(drawn.taken), Recording())
    again.run()

    assert again.trace == first.trace


def test_a_token_plays_its_session_again() -> None:
    """The same steps, with its trace."""
    target = Live()
    found = next(target.fuzz(seed=3, until=lambda: False, coverage=target.coverage()))
    again = target.replay(f"runtime-{found.seed}", coverage=target.coverage())

    assert (again.seed, again.steps, again.failure) == (found.seed, found.steps, None)
    assert again.trace


@pytest.mark.parametrize("token", ["core-1", "runtime", "runtime-x", ""])
def test_a_token_of_another_kind_is_refused(token: str) -> None:
    """With a word about what one looks like."""
    target = Live()
    with pytest.raises(BadToken, match="runtime-NUMBER"):
        target.replay(token, coverage=target.coverage())


def test_a_walk_can_be_broken_off() -> None:
    """A session that was broken off is not given."""
    target = Live()
    asked = iter([False, False, False, True])
    assert list(target.fuzz(seed=0, until=lambda: next(asked, True), coverage=target.coverage())) == []
