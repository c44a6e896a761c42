"""Random walks over the live runtime: nothing is found in it, and what they do is what their seeds say."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from troth.cli.finding import find
from troth.models.worlds.protocol.watched import broken
from troth.testing.live import playing, programs
from troth.testing.live.choices import Listed
from troth.testing.live.choices import Walk as Drawn
from troth.testing.live.machine import LiveMachine
from troth.testing.live.playing import quietly
from troth.testing.live.programs import END, Move, Program
from troth.testing.live.reasons import UNREACHABLE
from troth.testing.live.recording import Recording
from troth.testing.live.target import Live
from troth.testing.live.telling import WORLDS, checked
from troth.testing.live.walking import Walk
from troth.testing.targets import BadToken
from troth.testing.traces.watching import watches

SESSIONS = 120
SAME = 100
"""Runs of one seed that are compared."""
SEED = 5
"""A session with tasks and faults."""


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


@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_the_program_of_a_walk_is_the_run(seed: int) -> None:
    """And so is its token: what the walk did, without the dice that it asked, gives the same trace."""
    first = Walk(Drawn(seed), Recording())
    first.run()
    target = Live()
    again = target.replay(programs.token(first.program), coverage=target.coverage())

    assert again.failure is None
    assert again.trace == first.trace
    assert again.steps == first.steps + first.play.more_steps


def test_a_program_that_lacks_some_of_its_moves_is_played_all_the_same() -> None:
    """What cannot be done is passed over, and the session comes to its end."""
    first = Walk(Drawn(SEED), Recording())
    first.run()
    opening, moves = first.program
    for at in range(0, len(moves), 3):
        assert playing.played(Program(opening, moves[:at] + moves[at + 5 :])).found is None


def test_a_program_comes_out_of_its_token() -> None:
    """With its zeros, and numbers of several bytes."""
    moves = (Move(0), Move(3, 2, 40_000, (0, 1, 1 << 30)), Move(END), Move(7, 0, 0, (0, 1)))
    program = Program((1, 0, 1 << 29), moves)

    assert programs.program(programs.token(program)) == program
    assert programs.program(programs.token(Program((), ()))) == Program((), ())


@pytest.mark.parametrize(
    "token", ["core.AQAB", "runtime", "runtime-3", "runtime.", "runtime.AQAD", "runtime.AQADAAUAcx5_", "runtime.%", ""]
)
def test_a_token_of_another_kind_or_version_is_refused(token: str) -> None:
    """With a word about why."""
    target = Live()
    with pytest.raises(BadToken, match=re.escape(repr(token))):
        target.replay(token, coverage=target.coverage())


def test_whatever_is_cut_off_a_token_is_missed() -> None:
    """And whatever is put in its place."""
    walk = Walk(Drawn(SEED), Recording())
    walk.run()
    token = programs.token(walk.program)
    for at in range(len(programs.PREFIX), len(token) - 1):
        with pytest.raises(BadToken):
            programs.program(token[:at])


def test_every_property_that_is_watched_is_claimed_where_the_checker_looks_for_it() -> None:
    """So a failure has the checker's trace, or its word that there is none."""
    watched = {watch.id for of in watches().values() for watch in of if broken(watch.id) in watch.observe}
    claimed = {claim.id for name in WORLDS for claim in find(name).build({}).properties}

    assert watched
    assert watched <= claimed


def test_the_checker_is_asked_for_its_own_trace() -> None:
    """What the model keeps it has none of, and says so; of what is no property of the model, too."""
    assert checked("P14") == [f"the checker finds none: the model keeps it, in all 10,488 states of {WORLDS[0]}"]
    assert checked("wire") == ["the checker has no trace to it: it is about the runtime beside the model, which only a run can show"]


def test_a_walk_can_be_broken_off() -> None:
    """A session that was broken off is not given."""
    target = Live()
    asked = iter([False, False, False, True])
    assert list(target.fuzz(seed=0, until=lambda: next(asked, True), coverage=target.coverage())) == []
