"""How slow a network may be before a lease ends a healthy session: exactly as slow as the properties and the limits say."""

from __future__ import annotations

import pytest

from troth.models import Limits, Verdict, check
from troth.models.bounds import Blueprint, Bounds
from troth.models.errors import WorldError
from troth.models.world import World
from troth.models.worlds.lease import BOUNDS, PROMISES, deal, healthy, nobody_given_up, patience, silence, timed
from troth.models.worlds.protocol.session import session
from troth.spec.properties import PROPERTIES


def given_up(interval: int, timeout: int, delay: int) -> Verdict:
    """Whether P45 is true of a healthy pair with this clock, however slow its messages are."""
    bounds = Bounds({"delay": delay, "timeout": timeout})
    world = World("pair", "two healthy sides")
    made = session(world, deal(bounds), PROMISES)
    timed(world, bounds, interval)
    nobody_given_up(made)
    return check(world, properties=["P45"], limits=Limits(workers=1, stop_at_violation=True)).verdict


@pytest.mark.parametrize(("interval", "timeout"), [(1, 3), (2, 4), (2, 5), (3, 4)])
def test_a_healthy_peer_is_kept_up_to_the_edge_and_given_up_beyond_it(interval: int, timeout: int) -> None:
    """The longest delay of which two are less than the timeout; and one tick more. The interval does not matter."""
    longest = (timeout - 1) // 2

    assert given_up(interval, timeout, longest) is Verdict.HOLDS
    assert given_up(interval, timeout, longest + 1) is Verdict.VIOLATED


@pytest.mark.parametrize("world", [healthy, patience], ids=lambda world: world.name)
def test_a_world_that_cannot_promise_it_is_refused(world: Blueprint) -> None:
    """In words that say what to choose instead; and what they say can be chosen."""
    with pytest.raises(WorldError, match=r"delay=3 with timeout=5: .* up to 6 ticks.*--bound timeout=7 or more"):
        world.build(delay=3)

    assert world.build(delay=3, timeout=7).bounds == {"delay": 3, "timeout": 7}


def test_every_delay_has_a_timeout_that_bears_it() -> None:
    """So that no bound of the worlds can only be refused."""
    assert 2 * BOUNDS["delay"].most < BOUNDS["timeout"].most
    assert 2 * BOUNDS["delay"].default < BOUNDS["timeout"].default


def test_the_property_says_on_what_it_depends() -> None:
    """The condition is part of the statement, not of the small print."""
    assert "there and back take less than the lease's timeout" in PROPERTIES["P45"].statement
    claimed = {claim.id for claim in silence.build(delay=3).properties}  # it finds the dead, and promises the living nothing
    assert "P46" in claimed
    assert "P45" not in claimed
