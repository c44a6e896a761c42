"""Campaigns: promises are asked before anything else, worlds come in stages, and a record of fates is taken up where it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.models.toys import stop_and_wait
from troth.models import Limits, World, check
from troth.models.errors import WorldError
from troth.models.handles import PartyHandle
from troth.models.mutants import Fate, Judged, Prepared, campaign, in_stages, judged, mutants, of_worlds, prepared
from troth.models.mutants.record import Record, heading
from troth.models.worlds.sizes import ABOUT, about
from troth.spec.properties import PROPERTIES, Role
from troth.statemachines import PARTIES

SMALL: dict[str, int] = {"SENDS": 1, "LOSS": 0, "LIVE": 0}
ONE = Limits(workers=1)


def ready(*worlds: World) -> list[Prepared]:
    """These worlds, checked."""
    return [prepared(world, check(world)) for world in worlds]


def retold(world: World) -> World:
    """``world``, where a second telling of its tables minds that Alice waits otherwise than with a timer."""
    alice = next(handle for handle in world.handles if isinstance(handle, PartyHandle) and handle.name == "alice")
    world.always("P89", PROPERTIES["P89"].statement, alice.has_timer("retry") == alice.waiting)
    return world


def test_every_claim_has_a_role() -> None:
    """A numbered one its property's, if it is of that property; what is to be reached is told apart."""
    world = retold(stop_and_wait())
    world.always("P88", "of the same number, and something else", ~~world.properties[0].expr)
    roles = {claim.id: claim.role for claim in world.properties}

    assert roles == {
        "ONCE": Role.PROMISE, "HEARD": Role.PROMISE, "ALL": Role.REACH, "DONE": Role.PROMISE, "QUIET": Role.PROMISE,
        "P89": Role.CONFORMANCE, "P88": Role.PROMISE,
    }  # fmt: skip


def test_a_promise_is_asked_before_conformance_though_that_minds_sooner() -> None:
    """An acknowledgement that leaves the timer running is told wrong at once; with liveness the promise is broken much later."""
    told = {one.name: one for one in campaign(of_worlds([retold(stop_and_wait())]), ready(retold(stop_and_wait())), ONE)}
    plain = {one.name: one for one in campaign(of_worlds([stop_and_wait()]), ready(stop_and_wait()), ONE)}
    promised = {name for name, one in plain.items() if one.role is Role.PROMISE}

    assert promised
    assert all(told[name].role is Role.PROMISE and told[name].property == plain[name].property for name in promised)


def test_what_only_conformance_minds_is_counted_apart() -> None:
    """The first message is not followed by a timer: without liveness no promise is broken."""
    worlds = ready(retold(stop_and_wait(LIVE=0)))
    silent = next(one for one in of_worlds([worlds[0].world]) if one.name == "alice.sender:S1:silent-2")
    found = judged(silent, worlds)

    assert (found.fate, found.role, found.property) == (Fate.KILLED, Role.CONFORMANCE, "P89")
    assert judged(silent, ready(stop_and_wait(LIVE=0))).fate is Fate.SURVIVED


def test_what_a_world_must_reach_is_counted_apart() -> None:
    """Nobody ever says anything: nothing is wrong, but nothing arrives."""
    worlds = ready(stop_and_wait(LIVE=0))
    found = {one.name: one for one in campaign(of_worlds([worlds[0].world]), worlds, ONE)}
    reached = [one for one in found.values() if one.role is Role.REACH]

    assert reached
    assert {one.property for one in reached} == {"ALL"}


def test_patience_says_how_long_a_promise_is_looked_for() -> None:
    """Conformance of the small world minds the mutant; the promise that it breaks is in the large one."""
    small, large = retold(stop_and_wait(**SMALL)), stop_and_wait(SENDS=2)
    worlds = ready(large, small)
    silent = next(one for one in of_worlds([large]) if one.name == "alice.sender:S1:silent-2")
    patient, hasty = judged(silent, worlds, patience=1_000_000), judged(silent, worlds, patience=0)

    assert (patient.role, patient.asked, patient.worlds) == (Role.PROMISE, 2, 2)
    assert (hasty.role, hasty.asked, hasty.worlds) == (Role.CONFORMANCE, 1, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_stages_change_no_fate(workers: int) -> None:
    """What small worlds decide is decided; the rest waits for larger ones, and says which killed it."""
    small, large = ready(stop_and_wait(**SMALL)), ready(stop_and_wait(SENDS=2))
    all_of = of_worlds([large[0].world])
    together = {one.name: one for one in campaign(all_of, [*small, *large], ONE)}
    seen: list[str] = []
    stages: list[Callable[[], Sequence[Prepared]]] = [lambda: small, lambda: large]
    found = in_stages(all_of, stages, Limits(workers=workers), lambda _done, _of, one: seen.append(one.name))

    assert [one.name for one in found] == [mutant.name for mutant in all_of]
    assert sorted(seen) == sorted(together)
    for one in found:
        other = together[one.name]
        assert (one.fate, one.property, one.depth, one.role) == (other.fate, other.property, other.depth, other.role)


# -- the record --------------------------------------------------------------------------------------------------------


def head(world: World) -> dict[str, Any]:
    """What a record of this world begins with."""
    return heading([world], {"max_states": None, "patience": 0})


def test_a_campaign_goes_on_where_its_record_ends(tmp_path: Path) -> None:
    """Every fate is taken from it, but for the line that was cut off; and what is judged anew is written too."""
    world, file = stop_and_wait(), tmp_path / "record.jsonl"
    worlds, all_of = ready(world), of_worlds([world])
    record = Record(file, head(world))
    first = in_stages(all_of, [lambda: worlds], Limits(workers=2), note=record.add)
    whole = file.read_text(encoding="utf-8")
    cut = whole.rstrip("\n").rsplit("\n", 1)
    file.write_text(cut[0] + "\n" + cut[1][:20], encoding="utf-8")

    again = Record(file, head(world))
    asked: list[Judged] = []

    def note(one: Judged) -> None:
        asked.append(one)
        again.add(one)

    second = in_stages(all_of, [lambda: worlds], ONE, known=again.known, note=note)

    assert len(whole.splitlines()) == 1 + len(all_of)
    assert second == first
    assert len(asked) == 1
    assert len(Record(file, head(world)).known) == len(all_of)


def test_a_record_of_something_else_is_refused(tmp_path: Path) -> None:
    """Of other bounds, for example: nothing is taken from it, and nothing is written to it."""
    file = tmp_path / "record.jsonl"
    Record(file, head(stop_and_wait()))
    before = file.read_bytes()

    with pytest.raises(WorldError, match="is of other sources, worlds or limits"):
        Record(file, head(stop_and_wait(SENDS=1)))
    assert file.read_bytes() == before


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_world_of_unknown_size_is_taken_for_the_largest() -> None:
    """So that what may be quick is done first."""
    assert about("mine.py:world") > max(ABOUT.values())


def test_names_of_mutants_are_unique() -> None:
    """Over all parties: a record, and a page, name them."""
    names = [mutant.name for party in PARTIES.values() for mutant in mutants(party)]

    assert len(set(names)) == len(names) > 2_000
