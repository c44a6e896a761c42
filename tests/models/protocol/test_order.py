"""Every ordered pair of the eight is of one kind, and what is said to tell is what makes a core go elsewhere."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from troth.cli.finding import find
from troth.models import Limits, World, check
from troth.models.bounds import Bounds
from troth.models.parties import PartyOp
from troth.models.properties import PropertyKind
from troth.models.system import System
from troth.models.worlds.protocol.inside import Snapshot, snapshot
from troth.models.worlds.protocol.order import EIGHT, IMPOSSIBLE, TOO_LATE, happenings
from troth.models.worlds.protocol.reach import acceptances
from troth.models.worlds.protocol.session import Session, session
from troth.models.worlds.races import deal
from troth.spec import Party
from troth.spec import messages as m
from troth.spec.core import Received

PAIRS = list(permutations(EIGHT, 2))
MESSAGES = {
    "SHUTDOWN": m.Shutdown, "ABORT": m.Abort, "CANCEL_TASK": m.CancelTask, "ACCEPTED delivered": m.ResultAccepted,
    "ACCEPTED lost": m.ResultAccepted,
}  # fmt: skip
"""What comes to a trainer, and is then heard, or would have been."""


@pytest.fixture(scope="module")
def explored() -> tuple[System, Session]:
    """A session like that of ``races``, with fewer faults, and everything that its cores were asked."""
    world = World("order", "one task, and its end")
    made = session(world, deal(Bounds({"loss": 1, "duplication": 0, "crashes": 0, "room": 1})), [], [acceptances()])
    world.always("P00", "nothing", made.trainer.handle.is_down | ~made.trainer.handle.is_down)
    check(world, limits=Limits(workers=1))
    return world.system(), made


def test_the_eight_are_those_that_the_page_names() -> None:
    """As on the page of the worlds, and in what the worlds are for."""
    assert EIGHT == (
        "SHUTDOWN", "ABORT", "CANCEL_TASK", "ACCEPTED delivered", "ACCEPTED lost", "lease expiry", "trainer crash", "host crash",
    )  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{one} < {other}" for one, other in PAIRS])
def test_a_pair_is_reached_or_comes_too_late_or_is_impossible(one: str, other: str) -> None:
    """Never neither, and never two of these. Of what comes too late both is claimed: that it comes, and that it never tells."""
    claims = {claim.id: claim for claim in find("races").build({}).properties if claim.id.startswith(f"{one} < {other}")}
    reached, late = claims.get(f"{one} < {other}"), claims.get(f"{one} < {other} in time")

    if (one, other) in IMPOSSIBLE:
        assert IMPOSSIBLE[one, other]
        assert (one, other) not in TOO_LATE
        assert claims == {}
        return
    assert reached is not None
    assert reached.kind is PropertyKind.SOMETIMES
    assert (late is not None) == ((one, other) in TOO_LATE)
    assert reached.statement.endswith("too late" if late is not None else "and tells")
    assert late is None or (late.kind is PropertyKind.ALWAYS and TOO_LATE[one, other])


def test_only_pairs_are_listed() -> None:
    """A reason for what is no pair would be a typing error."""
    assert {*TOO_LATE, *IMPOSSIBLE} <= set(PAIRS)


@pytest.mark.parametrize("what", MESSAGES)
def test_a_message_is_said_to_tell_where_the_core_goes_elsewhere_for_it(what: str, explored: tuple[System, Session]) -> None:
    """In every state in which some run delivers it; the lease, for which every message is a sign of life, apart."""
    system, made = explored
    table = system.components[made.trainer.handle.index]
    tells = happenings(made)[what].tells.compiled(system)
    seen = set()
    for (local, item), branches in table.calls.items():
        operation = system.items[item][1]
        if isinstance(operation, Received) and isinstance(operation.message, MESSAGES[what]):
            state = tuple(local if place == table.index else 0 for place in range(len(system.components)))
            moved = any(elsewhere(made, table.states[local], table.states[branch.target]) for branch in branches)
            assert tells(state, state) is moved, (operation, table.component.spelled(table.states[local]))
            seen.add(moved)

    assert seen == {True, False}


def elsewhere(made: Session, before: Any, after: Any) -> bool:
    """Whether a machine of the trainer, but its lease, is elsewhere."""
    party = made.trainer.party
    one, other = (_of(party, state) for state in (before, after))
    names = [machine.name for machine in party.machines if machine.name != "lease"]
    return any(one.slots[name] != other.slots[name] for name in names)


def _of(party: Party, local: Any) -> Snapshot:
    found = snapshot(party, local.state)
    assert found is not None
    return found


@pytest.mark.parametrize("side", ["trainer", "host"])
def test_a_lease_that_expires_always_tells(side: str, explored: tuple[System, Session]) -> None:
    """Whoever doubts its peer and hears nothing gives it up: the session goes elsewhere, or was over."""
    system, made = explored
    reading = made.trainer if side == "trainer" else made.host
    table = system.components[reading.handle.index]
    expired = 0
    for (local, item), branches in table.calls.items():
        for branch in branches if system.items[item][1] is PartyOp.FIRE else ():
            before, after = (_of(reading.party, table.states[n]) for n in (local, branch.target))
            if before.name("lease") == "SUSPECT" and after.name("lease") == "EXPIRED":
                expired += 1
                assert before.name("session") != after.name("session") or before.name("session") == "ABORTED"

    assert expired
