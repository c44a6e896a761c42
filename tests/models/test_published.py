"""Our models of well-known protocols against the numbers that others have published for theirs.

TLC counts the states of the longest path, ``depth`` its steps, so it is one less; TLC's "states generated" count the initial state,
so ``edges`` is one less, wherever both split the model into the same steps.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.lassos import assert_fair_and_real
from troth.models import CheckResult, Verdict, check
from troth.models.worlds.published.die_hard import die_hard
from troth.models.worlds.published.dining_philosophers import dining_philosophers
from troth.models.worlds.published.paxos import paxos
from troth.models.worlds.published.peterson import peterson
from troth.models.worlds.published.two_phase_commit import two_phase_commit

ENGINES = ("scalar", "vector")


def counts(result: CheckResult) -> tuple[int, int, int]:
    return result.states, result.edges, result.depth


def steps_to(result: CheckResult, id_: str) -> int:
    trace = next(p.trace for p in result.properties if p.property.id == id_)
    assert trace is not None
    return len(trace.steps)


def violated(result: CheckResult) -> set[str]:
    return {p.property.id for p in result.properties if p.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize("engine", ENGINES)
class TestTwoPhaseCommit:
    """288 for three: tlaplus/Examples, specifications/transaction_commit/manifest.json (1,146 generated, depth 11). 8,832 for five:

    stateright/stateright, examples/2pc.rs (TLC: 58,146 generated, depth 17).
    """

    @pytest.mark.parametrize(("rms", "expected"), [(3, (288, 1_145, 10)), (5, (8_832, 58_145, 16))])
    def test_the_published_counts(self, rms: int, expected: tuple[int, int, int], engine: str) -> None:
        result = check(two_phase_commit(RMS=rms), engine=engine)

        assert counts(result) == expected
        assert result.verdict is Verdict.HOLDS


@pytest.mark.parametrize(("rms", "expected"), [(3, (80, 317, 10)), (5, (314, 2_047, 16))])
def test_two_phase_commit_under_exact_symmetry(rms: int, expected: tuple[int, int, int]) -> None:
    """TLC on TwoPhase.tla of tlaplus/Examples with ``SYMMETRY Permutations(RM)``: 80 of 318 generated, 314 of 2,048."""
    result = check(two_phase_commit(RMS=rms, SYMMETRY=1))

    assert counts(result) == expected
    assert result.verdict is Verdict.HOLDS


@pytest.mark.parametrize("engine", ENGINES)
class TestDieHard:
    """tlaplus/Examples, specifications/DieHard: 16 distinct states of 97 generated; its solution has six steps."""

    def test_the_published_counts(self, engine: str) -> None:
        result = check(die_hard(), engine=engine)

        assert counts(result) == (16, 96, 7)
        assert steps_to(result, "Solved") == 6


@pytest.mark.parametrize("engine", ENGINES)
class TestDiningPhilosophers:
    def test_chandy_and_misra_let_nobody_starve(self, engine: str) -> None:
        """tlaplus/Examples, specifications/DiningPhilosophers/manifest.json: 67 distinct states of 336 generated, depth 29."""
        result = check(dining_philosophers(), engine=engine)

        assert counts(result) == (67, 335, 28)
        assert result.verdict is Verdict.HOLDS

    @pytest.mark.parametrize(("size", "expected"), [(2, (11, 22, 10)), (3, (19, 57, 16))])
    def test_fewer_philosophers(self, size: int, expected: tuple[int, int, int], engine: str) -> None:
        """The same module run by TLC with NP = 2 and 3."""
        assert counts(check(dining_philosophers(N=size), engine=engine)) == expected

    @pytest.mark.parametrize("size", [2, 3, 5])
    def test_without_a_rule_each_ends_with_one_fork(self, size: int, engine: str) -> None:
        """A known deadlock: the shortest way is that each takes one fork."""
        result = check(dining_philosophers(N=size, RULE=1), engine=engine)

        assert violated(result) == {"Moves", "Meals"}
        assert steps_to(result, "Moves") == size
        assert_fair_and_real(result, "Meals")

    @pytest.mark.parametrize("size", [2, 3, 5, 8])
    def test_the_count_without_a_rule_is_that_of_the_transfer_matrix(self, size: int, engine: str) -> None:
        """Nothing, a left fork or both in hand; no left neighbour of somebody who holds a left fork holds both. So many rings there are."""
        may_follow = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 0]])
        rings = int(np.linalg.matrix_power(may_follow, size).trace())

        assert check(dining_philosophers(N=size, RULE=1), engine=engine).states == rings

    def test_one_who_starts_on_the_right_prevents_the_deadlock(self, engine: str) -> None:
        result = check(dining_philosophers(RULE=2), engine=engine)

        assert result.verdict is Verdict.HOLDS


@pytest.mark.parametrize("engine", ENGINES)
class TestPeterson:
    """tlaplus/tlapm, examples/Peterson.tla, run by TLC: 58 distinct states of 117 generated, depth 12, all its properties true."""

    def test_it_excludes_and_lets_in(self, engine: str) -> None:
        result = check(peterson(), engine=engine)

        assert counts(result) == (58, 116, 11)
        assert result.verdict is Verdict.HOLDS
        assert result.vacuous == ()

    def test_a_process_that_may_stop_need_not_get_in(self, engine: str) -> None:
        result = check(peterson(FAIR=0), engine=engine)

        assert violated(result) == {"Enters0", "Enters1", "Again0"}
        for id_ in violated(result):
            assert_fair_and_real(result, id_)


@pytest.mark.parametrize("engine", ENGINES)
class TestPaxos:
    """tlaplus/Examples, specifications/Paxos/manifest.json, model MCPaxos: 25 distinct states of 82 generated, depth 9. TLC on Paxos.tla

    with three acceptors and two ballots: 1,681 with one value, 3,921 with two, depth 17. (There TLC generates a proposal once a quorum.)
    """

    def test_the_published_counts(self, engine: str) -> None:
        assert counts(check(paxos(ACCEPTORS=1, VALUES=1), engine=engine)) == (25, 81, 8)

    def test_three_acceptors(self, engine: str) -> None:
        result = check(paxos(VALUES=1), engine=engine)

        assert (result.states, result.depth) == (1_681, 16)
        assert result.verdict is Verdict.HOLDS


def test_paxos_with_two_values_chooses_one() -> None:
    result = check(paxos())

    assert (result.states, result.depth) == (3_921, 16)
    assert result.verdict is Verdict.HOLDS
