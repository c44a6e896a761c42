"""What a party has to do about its connections, it has to do at once: a link that it keeps, or an end that it overlooks, is noticed."""

from __future__ import annotations

import pytest

from tests.testing.live import patches as p
from tests.testing.live.finding import first_failure
from tests.testing.live.patches import Patch
from tests.testing.live.scenarios import SCENARIOS, played
from troth.testing.live.parties import Wrong
from troth.testing.live.target import Live


@pytest.mark.parametrize(
    ("name", "who"),
    [("it_knows_nothing_of_the_last_attempt", "trainer"), ("it_says_that_a_result_is_settled_that_nobody_has_taken", "host-1")],
)
def test_who_says_what_he_may_not_say_has_to_be_hung_up_on(name: str, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but a forger does, so no walk comes to it; the plays in which frames are forged do."""
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    p.overlook_a_violation(monkeypatch)

    with pytest.raises(Wrong, match=rf"^links: {who} had to end connection 0, and keeps it$"):
        played(scenario, Live().coverage())


@pytest.mark.parametrize(
    ("patch", "property", "told"),
    [
        (p.keep_what_a_trainer_closes, "links", "trainer had to end connection"),
        (p.keep_what_a_host_closes, "links", "links: host-2 had to end connection"),
        (p.outlive_the_owner, "processes", "the pipe to its owner has ended, and it has not noticed"),
    ],
)
def test_what_is_not_ended_is_noticed(patch: Patch, property: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: A002
    """A link that its core has closed, and a session whose owner is gone."""
    patch(monkeypatch)
    failure = first_failure()

    assert failure.property == property
    assert told in failure.told.splitlines()[0]


@pytest.mark.parametrize(
    ("patch", "property", "told"),
    [
        (p.grant_other_terms, "claim", "trainer is granted lease_timeout_s"),
        (p.keep_the_own_terms, "timers", "trainer: TimerFired(timer='beat'"),
    ],
)
def test_what_a_host_grants_is_what_both_sides_keep(patch: Patch, property: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: A002
    """Some trainers begin with other terms than their host's, so that it shows which ones they keep."""
    patch(monkeypatch)
    failure = first_failure()

    assert failure.property == property
    assert told in failure.told.splitlines()[0]


@pytest.mark.parametrize("role", ["control", "data"])
def test_a_link_that_is_wanted_is_dialled_again(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is lost, and somebody listens."""
    p.dial_once(role)(monkeypatch)
    failure = first_failure()

    assert failure.property == "links"
    assert f"its {role} link is wanted since" in failure.told.splitlines()[0]
