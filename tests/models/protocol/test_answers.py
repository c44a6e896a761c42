"""What ends a wait: an answer while the peer is there, and a limit once it is gone; and what that needs to be fair."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from troth.cli.finding import find
from troth.models import Limits, Verdict, World, check
from troth.models.mutants import mutants
from troth.models.mutants.campaign import mutated
from troth.models.properties import LIVENESS, deliver
from troth.models.worlds import STANDARD
from troth.statemachines import PARTIES

MUTANTS = {mutant.name: mutant for party in PARTIES.values() for mutant in mutants(party)}

ASKED_AGAIN = [
    # the row of the timer that asks again         where it is missed     what never comes then
    ("trainer.session:S7:drop", "external/answers", {"P48", "P74"}),  # HELLO
    ("trainer.session:S10:drop", "external/answers", {"P48", "P74"}),  # SESSION_READY
    ("host.session:H15:drop", "answers", {"P48", "P74"}),  # SESSION_OPEN
    ("host.delivery:D20:drop", "answers", {"P51", "P51 heard"}),  # TASK_STATUS
    ("trainer.publication:N13:drop", "answers", {"P50", "P51", "P59"}),  # RESULT_STATUS
    ("trainer.publication:N19:drop", "answers", {"P50", "P59"}),  # RESULT_SOURCE_SETTLED
    ("receiver.download:R20:drop", "answers/bytes", {"P50", "P59"}),  # PAYLOAD_HELD
    ("receiver.download:R8:drop", "answers/bytes", {"P50", "P54", "P59"}),  # a download that broke off
    ("host.session:H36:drop", "answers/ends", {"P61", "P61 heard"}),  # SHUTDOWN
    ("host.session:H40:drop", "answers/ends", {"P61", "P63"}),  # ABORT
    ("host.delivery:D22:drop", "answers/ends", {"P51 cancelled"}),  # CANCEL_TASK
]
ANSWERED = [
    # the row that answers, or its emission        where it is missed     what never comes then
    ("host.session:H7:drop", "external/answers", {"P48", "P74"}),  # HELLO, said again
    ("host.session:H12:silent-1", "external/answers", {"P48"}),  # SESSION_CONFIRMED, said again
    ("trainer.session:S20:silent-1", "answers", {"P74"}),  # SESSION_ACCEPTED, said again
    ("trainer.ledger:K27:drop", "answers", {"P51", "P51 heard"}),  # TASK_UNKNOWN
    ("trainer.ledger:K29:drop", "answers", {"P51 heard"}),  # TASK_ACCEPTED, to TASK_STATUS
    ("host.delivery:D7:drop", "answers", {"P51", "P51 heard"}),  # an unknown task is offered again
    ("trainer.publication:N14:drop", "answers", {"P50", "P51"}),  # an unknown result is sent again
    ("host.acceptance:A11:drop", "answers", {"P50", "P59"}),  # RESULT_ACCEPTED, to RESULT_STATUS
    ("host.acceptance:A19:drop", "answers", {"P50"}),  # RESULT_SOURCE_RELEASED, said again
    ("trainer.session:S36:drop", "answers/ends", {"P61", "P63"}),  # ABORT_ACCEPTED, said again
    ("trainer.intake:I18:silent-2", "answers/ends", {"P51 cancelled"}),  # TASK_CANCELLED, said again
    ("trainer.session:S37:silent-1", "answers/promptly", {"P61", "P63"}),  # SESSION_CLOSED, drained
    ("trainer.session:S30:silent-3", "answers/promptly", {"P61", "P63"}),  # SESSION_CLOSED, at once
    ("trainer.session:S38:drop", "answers/receivers", {"P43"}),  # it closes after its only task
    ("host.acceptance:A20:silent-1", "answers/gone", {"P54", "P59 told"}),  # PAYLOAD_DROPPED: the loss is told
    ("trainer.session:S40:drop", "answers/orphan", {"P49", "P50", "P71"}),  # the owner is gone
    ("supervisor.teardown:W1:silent-2", "answers/backend", {"P52"}),  # CLOSE_SESSION
    ("supervisor.teardown:W13:drop", "answers/backend", {"P52"}),  # nothing is left
]


def live(world: World) -> list[str]:
    """The ids of what is claimed of the future."""
    return [claim.id for claim in world.properties if claim.kind in LIVENESS]


def broken(world: World, properties: list[str] | None = None) -> set[str]:
    """Those of the future that do not hold."""
    result = check(world, properties=live(world) if properties is None else properties, limits=Limits(workers=1))
    assert all(one.verdict in (Verdict.HOLDS, Verdict.VIOLATED) for one in result.properties), result.reason
    return {one.property.id for one in result.properties if one.verdict is Verdict.VIOLATED}


def slow(world: str) -> list[Any]:
    """Some ten seconds a mutant."""
    return [pytest.mark.slow] if world in ("answers/ends", "answers/process") else []


@pytest.mark.parametrize(
    ("mutant", "world", "missed"), [pytest.param(*one, marks=slow(one[1]), id=one[0]) for one in (*ASKED_AGAIN, *ANSWERED)]
)
def test_what_is_not_asked_again_or_not_answered_is_missed(mutant: str, world: str, missed: set[str]) -> None:
    """Although limits are left to end the wait for whoever is gone."""
    assert broken(mutated(find(world).build({}), MUTANTS[mutant])) >= missed


@pytest.mark.parametrize(
    ("world", "bounds", "needed"),
    [
        pytest.param(
            "answers/gone", {}, {"P48", "P49", "P50", "P51", "P51 heard", "P54", "P59", "P61", "P71", "P74"}, id="a peer that died"
        ),
        pytest.param(
            "answers/ends",
            {},
            {"P48", "P49", "P51", "P51 cancelled", "P61", "P63", "P74"},
            id="a farewell that was lost",
            marks=pytest.mark.slow,
        ),
        pytest.param("answers/ends", {"loss": 0}, {"P48", "P49", "P74"}, id="a peer that never came, or was left before it knew"),
        pytest.param("answers/process", {}, {"P48", "P49", "P50", "P74"}, id="the same of a launched trainer", marks=pytest.mark.slow),
    ],
)
def test_a_limit_is_needed_for_whoever_is_gone_and_for_nobody_else(world: str, bounds: dict[str, int], needed: set[str]) -> None:
    """Without any, these waits do not end; every other one does. An exit needs no farewell: a launched trainer's end always closes."""
    assert broken(find(world).build({"expiry": 0, **bounds})) == needed


HELD_BACK = {
    "external/returns": {"P50"}, "external/receivers": {"P43", "P50"}, "external/calls": {"P49", "P50"}, "external/patient": {"P50"},
    "attach": {"P50"}, "attach/host_again": {"P50"}, "attach/trainer_again": {"P50"},
}  # fmt: skip
"""What needs more than weak fairness, because a full link holds the trainer's timers back now and then."""


def test_fairness_is_weak_but_for_what_a_full_link_holds_back() -> None:
    """And for a link that loses for ever, where whoever says a thing again and again gets through."""
    found = {}
    for name in STANDARD:
        if not name.startswith("published/"):
            strong = {claim.id for claim in find(name).build({}).properties if any(one.strong for one in claim.fair)}
            found.update({name: strong} if strong else {})

    lossy = find("answers/lossy").build({})
    assert found == HELD_BACK | {"answers/lossy": set(live(lossy))}
    assert {action for claim in lossy.properties for one in claim.fair if one.strong for action in one.actions} == {
        number for number, action in enumerate(lossy.system().actions) if action.kind is deliver
    }


@pytest.mark.parametrize(
    "name", ["external/patient", *(pytest.param(name, marks=pytest.mark.slow) for name in ("external/receivers", "external/calls"))]
)
def test_what_a_full_link_holds_back_needs_more_than_weak_fairness(name: str) -> None:
    """With weak fairness alone, a step that is possible only now and then need never happen."""
    world = find(name).build({})
    weakly = [evolve(claim, fair=tuple(evolve(one, strong=False) for one in claim.fair)) for claim in world.properties]
    world.properties[:] = weakly

    assert broken(world, sorted(HELD_BACK[name])) == HELD_BACK[name]


def test_who_is_heard_again_and_again_need_not_be_under_weak_fairness() -> None:
    """A network that loses every copy is weakly fair: each time it could have delivered it."""
    world = find("answers/lossy").build({})
    world.properties[:] = [evolve(claim, fair=tuple(evolve(one, strong=False) for one in claim.fair)) for claim in world.properties]

    assert broken(world, ["P50"]) == {"P50"}
