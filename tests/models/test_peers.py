"""The session protocol as it was written by hand for TLC agrees with the world `bench/session`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.benchmarks.contenders import PEERS, SIZES
from tests.models.tlc import require_tlc, tlc
from troth.models import Limits, check
from troth.models.worlds.bench.session import session


@pytest.mark.parametrize("size", ["S", pytest.param("M", marks=pytest.mark.slow)])
def test_the_handwritten_session_has_the_same_states(size: str, tmp_path: Path) -> None:
    """Distinct states, edges and depth; both say that the invariants hold."""
    require_tlc()
    shutil.copytree(PEERS / "tla", tmp_path, dirs_exist_ok=True)
    result = check(session(**dict(zip("TRAC", SIZES[size][:4], strict=True))), limits=Limits(workers=2))
    found = tlc(tmp_path, "Session", config=f"{size}.cfg", workers=2)

    assert found.holds, found.output
    assert (found.distinct, found.generated) == (result.states, result.edges + 1)
    assert (result.states, result.edges) == SIZES[size][4:]
    assert all(p.verdict.value == "holds" for p in result.properties)
