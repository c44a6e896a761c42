"""Hashes of declarations and states: the same everywhere, and different where it matters."""

from __future__ import annotations

import os
import subprocess
import sys

import attrs
import pytest

from tests.spec.test_trace import Colour, Rich
from tests.spec.toys import TURNSTILE, TURNSTILE_PARTY, Gate, party
from troth.spec import Refuse
from troth.spec.fingerprint import declaration_hash, state_digest


def test_the_hash_changes_with_the_tables_and_not_with_the_reasons() -> None:
    """A reworded reason does not make old traces foreign; a row does."""
    reworded = attrs.evolve(TURNSTILE, refuse=[Refuse("push", Gate.LOCKED, "insert a coin first")])
    dropped = attrs.evolve(TURNSTILE, rows=TURNSTILE.rows[:2], validate=False)
    routes = TURNSTILE_PARTY.routes
    was = declaration_hash([party(TURNSTILE, routes=routes)])

    assert was == declaration_hash([party(reworded, routes=routes)])
    assert was != declaration_hash([party(TURNSTILE, routes=routes).replaced(dropped)])
    assert was != declaration_hash([party(TURNSTILE, routes=routes)], [Rich])
    assert was != declaration_hash([party(TURNSTILE, routes=routes, name="other")])


def test_equal_snapshots_have_equal_digests() -> None:
    """Also where a True stands for a 1, which Python holds equal."""
    assert state_digest((("A", True, (1, None)), frozenset({2, 1}))) == state_digest((("A", 1, (1, None)), frozenset({1, 2})))
    assert state_digest(("A", 1)) != state_digest(("A", "1"))
    assert state_digest((Colour.RED,)) != state_digest((Colour.BLUE,))
    with pytest.raises(TypeError, match="a snapshot may hold strings, ints, bools, enums and tuples of them, not float"):
        state_digest((0.5,))


SCRIPT = """
from tests.spec.toys import TURNSTILE_PARTY
from tests.spec.test_trace import Rich
from tests.spec.test_timers import lease, TAKE
from troth.spec.fingerprint import declaration_hash, state_digest
subject = lease()
subject.handle(TAKE)
print(declaration_hash([TURNSTILE_PARTY, subject.party], [Rich]), state_digest(subject.snapshot()))
"""


def test_hashes_are_the_same_in_every_process() -> None:
    """Whatever the seed of Python's own hashes: a trace is checked in another process than it was written in."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    said = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }

    assert len(said) == 1
