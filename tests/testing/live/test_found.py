"""Faults in the runtime are found: those that are put into its driver, and the defects of the reference that live on these ports."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import trio

from tests.testing.live import patches as p
from tests.testing.live.patches import Patch
from troth.runtime.trainer import TrainerSession
from troth.testing.live.judging import Judge
from troth.testing.live.target import Live
from troth.testing.targets import Failure

BUDGET = 30_000
"""Steps: what a standard walk of a minute takes at the least. Most faults are found within a few hundred."""

CASES: list[tuple[str, Patch, set[str]]] = [
    ("an effect is dropped", p.drop_an_effect, {"calls", "wire", "timers", "processes", "payload", "order"}),
    ("two effects change places", p.reorder_two_effects, {"wire", "order", "replay"}),
    ("a cancelled timer fires", p.fire_a_cancelled_timer, {"timers"}),
    ("D19", p.let_anybody_in, {"authentic"}),
    ("D21", p.remember_a_failed_init, {"calls"}),
    ("D26", p.serve_the_cached_task, {"calls", "payload"}),
    ("D27", p.keep_the_cached_payload, {"payload"}),
    ("D28", p.return_silently, {"calls"}),
    ("D31", p.queue_without_bound, {"queues"}),
    ("a call waits before it asks", p.never_ask, {"calls"}),
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What goes wrong here goes wrong on purpose."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


def _first(seed: int) -> tuple[Failure | None, int]:
    """The first failure of a walk, and after how many steps it came."""
    target = Live()
    steps = 0
    for found in target.fuzz(seed=seed, until=lambda: False, coverage=target.coverage()):
        steps += found.steps
        if found.failure is not None or steps > BUDGET:
            return found.failure, steps
    return None, steps


@pytest.mark.parametrize(("patch", "properties"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_fault_is_found(patch: Patch, properties: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the budget, by what it breaks."""
    patch(monkeypatch)
    failure, steps = _first(0)
    assert failure is not None, f"nothing was found in {steps} steps"
    assert failure.property in properties, failure.told
    assert steps <= BUDGET


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
    failure, _ = _first(0)
    assert failure is not None
    assert failure.property == found
    assert "after:" in failure.told

    target = Live()
    again = target.replay(failure.token, coverage=target.coverage())
    assert again.failure is not None
    assert again.failure.property == found
