"""What scripts call is driven, too: faults in the client's own layer are found, and it lets go of its session when that is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.testing.live import patches_of_clients as p
from tests.testing.live.finding import first_failure


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
    failure = first_failure()

    assert failure.property == property_, failure.told
