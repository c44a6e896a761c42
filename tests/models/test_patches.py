"""Named patches: a defect brought back under its name, killed like any other mutant."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from tests.models.test_mutants import fates
from tests.models.toys import ALICE, Sending, stop_and_wait
from troth.models import Verdict, check
from troth.models.errors import WorldError
from troth.models.mutants import Fate, Patch, added, altered, mutated, of_worlds, register, registered, without
from troth.models.mutants import patches as patches_module
from troth.spec import Row, always, atom, keep
from troth.spec.errors import BadRow


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty registry for the test."""
    monkeypatch.setattr(patches_module, "_registry", {})


def impatient(machine: Any) -> Any:
    """The sender takes any acknowledgement for its own."""
    return altered(machine, "S2", lambda row: evolve(row, guard=always))


def deaf(machine: Any) -> Any:
    """The receiver answers a frame only once."""
    return without(machine, "R2")


def test_a_patch_brings_a_defect_back_under_its_name(registry: None) -> None:
    """First in the list, killed like any other, and to be run by its name."""
    register(Patch("impatient", "an old acknowledgement counts", "alice", ("sender",), impatient))
    register(Patch("deaf", "a lost acknowledgement is not repeated", "bert", ("receiver",), deaf))
    world = stop_and_wait()
    found = fates(world)

    assert list(found)[:2] == ["impatient", "deaf"]
    assert (found["impatient"].property, found["deaf"].property) == ("HEARD", "DONE")
    assert found["deaf"].what == "brings back: a lost acknowledgement is not repeated"
    (mutant,) = [m for m in of_worlds([world]) if m.name == "impatient"]
    assert check(mutated(stop_and_wait(), mutant)).verdict is Verdict.VIOLATED


def test_a_patch_may_change_more_than_rows(registry: None) -> None:
    """Another start is another graph; nothing that was known of the original is used."""
    register(Patch("eager", "begins in the middle", "alice", ("sender",), lambda m: evolve(m, initial=Sending.WAITING, validate=False)))
    found = fates(stop_and_wait(LIVE=0))

    assert found["eager"].fate is Fate.KILLED


def test_an_atom_that_means_something_else_is_a_change(registry: None) -> None:
    """Although atoms of the same name are equal."""
    wrong = atom("mine", of=lambda view, event: event.bit != view.own.data.bit)
    register(Patch("wrong", "reads the bit backwards", "alice", ("sender",), lambda m: altered(m, "S2", lambda r: evolve(r, guard=wrong))))

    assert fates(stop_and_wait())["wrong"].fate is Fate.KILLED


def test_a_patch_may_add_a_row_that_wins(registry: None) -> None:
    """In front of those it contradicts."""
    rush = Row("S0", Sending.WAITING, "due", always, Sending.IDLE, keep, [], "gives up")
    register(Patch("rush", "gives up on the first silence", "alice", ("sender",), lambda m: added(m, rush)))

    assert fates(stop_and_wait())["rush"].property == "HEARD"


def test_a_patch_that_is_declared_wrongly_is_refused(registry: None) -> None:
    """With what is wrong."""
    register(Patch("one", "x", "alice", ("nothing",), deaf))
    with pytest.raises(WorldError, match="patch one: party alice has no machine 'nothing'; it has sender"):
        list(registered(ALICE))
    with pytest.raises(WorldError, match="there are two patches 'one', of alice and of bert"):
        register(Patch("one", "y", "bert", ("receiver",), deaf))


def test_a_patch_names_rows_that_are_there_and_adds_rows_that_are_not() -> None:
    """Otherwise it would change nothing, and be called equivalent."""
    sender = ALICE.machines[0]
    with pytest.raises(BadRow, match="has no row 'S9'"):
        without(sender, "S9")
    with pytest.raises(BadRow, match="has no row 'S9'"):
        altered(sender, "S9", lambda row: row)
    with pytest.raises(BadRow, match="adds a row 'S1', which is there already; use altered"):
        added(sender, sender.row("S1"))
