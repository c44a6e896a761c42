"""What cannot fire on the live runtime: each row and each answer of a guard has its reason, and each reason a proof, which is here."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve, frozen

from tests.testing.live.possible import Possible, Promise
from tests.testing.live.promises import PROMISES, derived
from troth.cli.finding import find
from troth.models.check import CheckResult, check
from troth.models.exploration import Ending, Limits
from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import JoinFailed, Misuse
from troth.runtime.payloads import DataLink, encode
from troth.runtime.sim.files import SimFiles
from troth.runtime.sim.network import SimNetwork
from troth.runtime.sim.processes import SimProcesses
from troth.spec.emits import Emit
from troth.spec.messages import TaskEnded
from troth.statemachines import HOST, PARTIES
from troth.statemachines.host.delivery import ACTIVE, DELIVERY
from troth.statemachines.trainer.intake import INTAKE, IntakeData, forget
from troth.testing.live.reasons import ARRIVED, KNOWN, LEFT, PROOFS, TOLD, UNANSWERED, UNREACHABLE, Proof
from troth.testing.live.target import Live

KNOWN_NAMES = Live().coverage().known
ALL = {**UNREACHABLE, **UNANSWERED}


def by(proof: Proof) -> set[str]:
    """What is shown that way."""
    return {name for name, why in ALL.items() if PROOFS[why] is proof}


# -- the lists ---------------------------------------------------------------------------------------------------------


def test_the_lists_name_what_there_is_and_each_reason_has_its_proof() -> None:
    """None for nothing, none without a proof, no proof of what nobody claims."""
    assert set(UNREACHABLE) <= KNOWN_NAMES["rows"]
    assert set(UNANSWERED) <= KNOWN_NAMES["guards"]
    assert set(ALL.values()) == set(PROOFS)
    assert {why for why, proof in PROOFS.items() if proof is Proof.WORLDS} == {case.why for case in NEVER} | {case.why for case in STATES}


# -- from the tables ---------------------------------------------------------------------------------------------------


def test_the_tables_come_to_nothing_of_what_is_shown_by_them() -> None:
    """Whatever is sent: under what the runtime promises there is no way to it. All other rows have one, as far as tables can say."""
    possible = derived()
    assert KNOWN_NAMES["rows"] - possible.rows == {name for name in by(Proof.TABLES) if name in UNREACHABLE}
    assert KNOWN_NAMES["guards"] - possible.guards == by(Proof.TABLES) - set(UNREACHABLE) | by(Proof.WATCHED)


@pytest.mark.parametrize(
    ("party", "case", "broken", "comes"),
    [
        ("host", 0, {"answers": {}}, "host.session.H16"),
        ("host", 0, {"first": ""}, "host.session.H34"),
        ("host", 0, {"never": frozenset()}, "host.source.O9"),
        ("trainer", 0, {"answers": {}}, "trainer.publication.N5"),
        ("trainer", 0, {"never": frozenset()}, "trainer.source.O9"),
        ("trainer", 0, {"answers": {}, "never": frozenset()}, "trainer.session.S21"),
        ("supervisor", 0, {"first": ""}, "supervisor.gate.G5"),
        ("receiver", 0, {"first": ""}, "receiver.download.R18"),
        ("receiver", 1, {"never": frozenset()}, "receiver.download.R10"),
    ],
)
def test_without_the_promise_it_would_be_possible(party: str, case: int, broken: dict[str, object], comes: str) -> None:
    """Each promise is needed: nothing is held for impossible that only the estimate does not see."""
    promise = PROMISES[party][case]
    assert comes not in Possible(PARTIES[party], promise).rows
    assert comes in Possible(PARTIES[party], evolve(promise, **broken)).rows  # type: ignore[arg-type]


def test_without_promises_everything_is_possible() -> None:
    """The estimate is one from above: it leaves out nothing that no promise rules out."""
    assert frozenset().union(*(Possible(party, Promise()).rows for party in PARTIES.values())) == KNOWN_NAMES["rows"]


def test_only_a_new_session_makes_what_the_user_holds_an_old_ones() -> None:
    """So where no session follows another, ``superseded`` is never said."""
    assert [row.id for row in INTAKE.rows if row.update is forget] == ["I19"]
    assert forget(IntakeData(current=1), None).superseded
    assert "trainer.intake.I19" in by(Proof.TABLES)


# -- what the runtime promises -----------------------------------------------------------------------------------------


def test_a_backend_is_entered_once() -> None:
    """It refuses before its core hears of it, after a start that failed, too."""

    async def main() -> None:
        async with SimProcesses(SimFiles()) as processes:
            backend = ExternalProcess(["nothing"], processes=processes, network=SimNetwork(), files=SimFiles())
            with pytest.raises(JoinFailed):
                async with backend:
                    pass
            before = backend._core.snapshot()
            with pytest.raises(Misuse, match="was entered before"):
                async with backend:
                    pass
            assert backend._core.snapshot() == before

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_payload_can_always_be_kept() -> None:
    """Whoever offers one is not told that it cannot be: without a connection neither."""
    link = DataLink(lambda event: None, lambda key, event: None, "result", "task", "somebody")
    assert not link.up
    assert all(link.offer("result", (seq, 0), encode({"n": seq})) for seq in range(1, 100))


# -- from the worlds ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Never:
    """Worlds in which a row never fires, although what comes before it does."""

    why: str
    worlds: tuple[str, ...]
    party: str
    row: str
    fires: tuple[str, ...]
    """What fires there: without it the world would say nothing."""


NEVER = (
    Never(
        why=ARRIVED, worlds=("transfer/sole",), party="receiver 0", row="download.R24",
        fires=("download.R4", "download.R15", "download.R16"),
    ),
    Never(why=ARRIVED, worlds=("transfer/task",), party="receiver 1", row="download.R24", fires=("download.R4", "download.R16")),
    Never(
        why=KNOWN, worlds=("ledger/eviction",), party="trainer", row="publication.N26",
        fires=("ledger.K24", "publication.N27", "publication.N29"),
    ),
)  # fmt: skip


@frozen(kw_only=True)
class States:
    """Worlds whose hosts are never in a state that it would take."""

    why: str
    machine: str
    """In one of ``states`` of this machine..."""
    states: frozenset[str]
    session: bool
    """...the session is closed always, or never."""


STATES = (
    States(why=LEFT, machine="process", states=frozenset({"STUCK"}), session=True),
    States(why=TOLD, machine="delivery", states=frozenset(state.name for state in ACTIVE), session=False),
)
HOSTS = ("process/clock", "transfer/sole", "transfer/task", "transfer/given_up", "external/answers")
"""Worlds of launched hosts, with processes that get stuck, and with tasks."""


@cache
def explored(name: str) -> CheckResult:
    """All of a world."""
    found = check(find(name).build({}), properties=[], limits=Limits(workers=1))
    assert found.ending is Ending.COMPLETE
    assert not found.truncated
    return found


def fired(world: str, party: str) -> set[str]:
    """Every row and ignore that was even considered in a step of that party."""
    component = next(one for one in explored(world).system.components if one.component.name == party)
    return {row for branches in component.calls.values() for branch in branches for row in branch.rows}


@pytest.mark.parametrize("case", NEVER, ids=[f"{case.row} in {case.worlds[0]}" for case in NEVER])
def test_the_checker_has_seen_that_it_never_fires(case: Never) -> None:
    """In all of a world."""
    for world in case.worlds:
        rows = fired(world, case.party)
        assert case.row not in rows
        assert set(case.fires) <= rows, world


def test_a_receiver_that_has_its_payload_is_told_to_drop_it_where_there_are_others() -> None:
    """The row is no dead one: it is for receivers besides the host's own."""
    assert "download.R24" in fired("transfer/given_up", "receiver 1")


@pytest.mark.parametrize("case", STATES, ids=[case.machine for case in STATES])
def test_the_checker_has_seen_that_a_host_is_never_in_that_state(case: States) -> None:
    """A host that gave its process up has ended its session in that step; one that ends has told what became of its task."""
    names = [machine.name for machine in HOST.machines]
    seen = 0
    for world in HOSTS:
        component = next(one for one in explored(world).system.components if one.component.name == "host")
        for local in component.states:
            at: Any = local
            core = at.state[0]  # beside it is what the watches remember
            states = dict(zip(names, (part[0] if part else None for part in core), strict=False))
            if states[case.machine] in case.states:
                seen += 1
                assert (states["session"] == "CLOSED") is case.session, world
    assert seen > 10


def test_a_host_says_that_a_task_has_ended_in_the_step_in_which_it_ends() -> None:
    """So whoever waits for one that is out was told, or it is out; and where the session is closed none is."""

    def says(emissions: object) -> bool:
        return any(isinstance(one, Emit) and one.message is TaskEnded for one in emissions)  # type: ignore[attr-defined]

    ends = [row for row in DELIVERY.rows for source in row.sources if source in ACTIVE and row.goes_to(source) not in ACTIVE]
    turned_away = [row for row in DELIVERY.rows if row.trigger == "execute" and row.goes_to(row.sources[0]) not in ACTIVE]
    assert len(ends) > 10
    assert [row.id for row in turned_away] == ["D3", "D4"]
    assert [row.id for row in (*ends, *turned_away) if not says(row.emit)] == []
