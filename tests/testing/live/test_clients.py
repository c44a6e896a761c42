"""What scripts call is driven, too: faults in the client's own layer are found, and it lets go of its session when that is over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from tests.testing.live import patches_of_clients as p
from troth.testing.live.target import Live

BUDGET = 30_000
"""Steps: what a standard walk of a minute takes at the least."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What goes wrong here goes wrong on purpose."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


@pytest.mark.parametrize(
    ("patch", "property_"),
    [
        (p.swallow_an_error, "calls"),
        (p.keep_what_it_holds, "payload"),
        (p.join_in_any_case, "calls"),
        (p.let_go_early, "calls"),
    ],
)
def test_a_fault_in_the_client_is_found(
    patch: Callable[[pytest.MonkeyPatch], None], property_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the budget, by what it breaks."""
    patch(monkeypatch)
    target = Live()
    steps, failure = 0, None
    for found in target.fuzz(seed=0, until=lambda: False, coverage=target.coverage()):
        steps, failure = steps + found.steps, found.failure
        if failure is not None or steps > BUDGET:
            break

    assert failure is not None, f"nothing was found in {steps} steps"
    assert failure.property == property_, failure.told
