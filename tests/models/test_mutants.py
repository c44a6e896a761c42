"""Mutants: each kind does what it says, is killed where it should be, and nothing is claimed that was not decided."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from tests.models.toys import ALICE, BERT, RECEIVER, SENDER, stop_and_wait, wired
from tests.spec.toys import Lamp, call, lamp, party, row
from troth.models import Limits, Verdict, World, check
from troth.models.errors import WorldError
from troth.models.mutants import (
    CORE,
    Fate,
    Judged,
    campaign,
    judged,
    mutants,
    mutated,
    of_worlds,
    prepared,
)
from troth.models.vector import driver
from troth.models.worlds.protocol.watched import Watched, never
from troth.spec import (
    Atom,
    Called,
    Ignore,
    Machine,
    Party,
    PartyCore,
    Refuse,
    Table,
    To,
    Transitions,
    atom,
    called,
    cancel_timer,
    keep,
    set_timer,
    timer,
)
from troth.spec.machine import SAME, Kind
from troth.statemachines import PARTIES


def bit(name: str) -> Atom:
    """Reads the bit of that name from the payload of a call, which may have none."""
    return atom(name, of=lambda view, event: name in (event.payload or ()))


a, b = bit("a"), bit("b")


def ready(*worlds: World) -> list[Any]:
    """These worlds, checked."""
    return [prepared(world, check(world)) for world in worlds]


def fates(world: World, limits: Limits | None = None) -> dict[str, Judged]:
    """What becomes of every mutant in one world."""
    return {one.name: one for one in campaign(of_worlds([world]), ready(world), limits)}


def timed(machine: Machine) -> Party:
    """A party of one machine whose timer is `t` and rings."""
    routes = [called(name, To("lamp", name)) for name in ("press", "hit")]
    return party(machine, routes=[*routes, timer("t", To("lamp", "ring"))])


# -- what a mutant is --------------------------------------------------------------------------------------------------

LAMP = lamp(
    row("L1", Lamp.OFF, "press", Lamp.ON, guard=a & ~b, emit=[set_timer("t", "WAIT_S")], update=keep),
    row("L2", (Lamp.OFF, Lamp.ON), "hit", Lamp.BROKEN),
    row("L3", Lamp.ON, "press", SAME, guard=a),
    row("L4", Lamp.ON, "ring", Lamp.BROKEN),
    timers=["t"],
    ignore=[Ignore("press", Lamp.OFF, "no", ~(a & ~b)), Ignore("press", Lamp.ON, "no", ~a)],
)
"""A machine with a row of every kind."""


def test_every_way_in_which_a_row_could_be_wrong_has_a_mutant() -> None:
    """By name."""
    names = [m.name.removeprefix("toy.lamp:") for m in mutants(timed(LAMP))]

    assert names == [
        *("L1:drop", "L1:stay", "L1:to-BROKEN", "L1:not-a", "L1:not-b", "L1:unguarded", "L1:silent-1"),
        *("L2:drop", "L2:stay"),
        *("L3:drop", "L3:to-BROKEN", "L3:not-a", "L3:unguarded"),
        *("L4:drop", "L4:stay", "L4:to-OFF"),
    ]


@pytest.mark.parametrize(
    ("name", "state", "bits", "taken", "target"),
    [
        ("L1:drop", Lamp.OFF, "a", Kind.IGNORE, Lamp.OFF),
        ("L1:stay", Lamp.OFF, "a", Kind.ROW, Lamp.OFF),
        ("L1:to-BROKEN", Lamp.OFF, "a", Kind.ROW, Lamp.BROKEN),
        ("L1:not-a", Lamp.OFF, "a", Kind.IGNORE, Lamp.OFF),
        ("L1:not-a", Lamp.OFF, "", Kind.ROW, Lamp.ON),
        ("L1:not-b", Lamp.OFF, "ab", Kind.ROW, Lamp.ON),
        ("L1:unguarded", Lamp.OFF, "b", Kind.ROW, Lamp.ON),
        ("L3:not-a", Lamp.ON, "", Kind.ROW, Lamp.ON),
        ("L2:drop", Lamp.OFF, "", Kind.IGNORE, Lamp.OFF),
    ],
)
def test_both_interpreters_read_a_mutant_alike(name: str, state: Lamp, bits: str, taken: Kind, target: Lamp) -> None:
    """A case that two rows claim goes to the first; one that none claims any more is ignored."""
    (mutant,) = [m for m in mutants(timed(LAMP)) if m.name == f"toy.lamp:{name}"]
    (machine,) = mutant.of(timed(LAMP)).machines
    trigger = "hit" if name.startswith("L2") else "press"
    valuation = sum((atom.name in bits) << place for place, atom in enumerate(machine.table[state, trigger].atoms))
    for interpreter in (Table(machine), Transitions(machine)):
        entry, after = interpreter.fire(state, trigger, valuation)

        assert (entry.kind, after) == (taken, target)


def test_a_silent_mutant_still_does_everything_else() -> None:
    """One emission less."""
    (mutant,) = [m for m in mutants(timed(LAMP)) if m.name.endswith("L1:silent-1")]
    core = PartyCore(mutant.of(timed(LAMP)))
    step = core.handle(call("press", "a"))

    assert (step.rows, step.effects) == (("lamp.L1",), ())
    assert core.state("lamp") is Lamp.ON


def assert_read_alike(party: Party, every: int) -> None:
    """Both interpreters on every case of every so-many-th mutant."""
    for mutant in list(mutants(party))[::every]:
        mutated_party = mutant.of(party)
        for name in mutant.machines:
            machine = mutated_party.by_name[name]
            table, fired = Table(machine), Transitions(machine)
            for (state, trigger), cell in machine.table.items():
                for bits in range(1 << len(cell.atoms)):
                    assert table.fire(state, trigger, bits) == fired.fire(state, trigger, bits), mutant.name


@pytest.mark.parametrize("name", PARTIES)
def test_both_interpreters_read_mutants_of_the_protocol_alike(name: str) -> None:
    """Every thirtieth here."""
    assert_read_alike(PARTIES[name], 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTIES)
def test_both_interpreters_read_every_mutant_of_the_protocol_alike(name: str) -> None:
    """All of them."""
    assert_read_alike(PARTIES[name], 1)


@pytest.mark.parametrize("name", PARTIES)
def test_every_mutant_of_the_protocol_has_a_name_of_its_own(name: str) -> None:
    """Or one could not be asked for."""
    names = [mutant.name for mutant in mutants(PARTIES[name])]

    assert len(set(names)) == len(names)


# -- what becomes of them ----------------------------------------------------------------------------------------------

STOP_AND_WAIT = {
    "alice.sender:S1:drop": ("HEARD", 1),
    "alice.sender:S2:stay": ("DONE", 4),
    "alice.sender:S2:unguarded": ("HEARD", 7),
    "alice.sender:S2:no-update": ("HEARD", 6),
    "alice.sender:S3:to-IDLE": ("HEARD", 2),
    "alice.sender:S3:silent-1": ("DONE", 3),
    "bert.receiver:R1:unguarded": ("ONCE", 4),
    "bert.receiver:R2:drop": ("DONE", 5),
}


def test_each_kind_of_mutant_is_killed_by_the_property_that_it_breaks() -> None:
    """At the depth of the shortest counterexample; by liveness too."""
    found = fates(stop_and_wait())

    assert {name: (found[name].property, found[name].depth) for name in STOP_AND_WAIT} == STOP_AND_WAIT
    assert all(found[name].fate is Fate.KILLED for name in STOP_AND_WAIT)


def test_a_property_less_and_a_mutant_survives() -> None:
    """Without liveness nobody minds that a lost acknowledgement is never repeated."""
    found = fates(stop_and_wait(LIVE=0))

    assert found["bert.receiver:R2:drop"].fate is Fate.SURVIVED
    assert found["bert.receiver:R2:silent-1"].fate is Fate.SURVIVED


def test_an_equivalent_mutant_is_found_equivalent() -> None:
    """R1 takes every fresh frame first, so R2 may as well ask nothing."""
    assert fates(stop_and_wait())["bert.receiver:R2:unguarded"].fate is Fate.EQUIVALENT


def test_a_mutant_that_is_not_decided_within_its_limit_is_unknown() -> None:
    """Not killed; and the reason says why."""
    one = fates(stop_and_wait(LIVE=0), Limits(max_states=20))["alice.sender:S2:silent-1"]

    assert one.fate is Fate.UNKNOWN
    assert "the limit given" in one.reason


def test_a_limit_does_not_hide_a_kill_that_comes_before_it() -> None:
    """The first level decides."""
    assert fates(stop_and_wait(), Limits(max_states=20))["alice.sender:S1:drop"].fate is Fate.KILLED


def test_the_smallest_world_that_can_tell_is_asked_first() -> None:
    """And one that cannot tell does not speak for the others."""
    small, large = stop_and_wait(SENDS=1, LOSS=0, LIVE=0), stop_and_wait(SENDS=2, LIVE=0)
    by_name = {m.name: m for m in of_worlds([large])}
    only_small, both = ready(small), ready(large, small)
    gone, kept = by_name["alice.sender:S1:drop"], by_name["alice.sender:S2:no-update"]

    assert judged(gone, both).worlds == 2
    assert judged(gone, both).depth == judged(gone, only_small).depth
    assert judged(kept, both).fate is Fate.KILLED
    assert judged(kept, only_small).fate is not Fate.KILLED


def test_a_core_that_cannot_go_on_is_a_kill_of_its_own_kind() -> None:
    """A timer that nobody stops in a final state."""
    machine = lamp(
        row("L1", Lamp.OFF, "press", Lamp.ON, emit=[set_timer("t", "WAIT_S")]),
        row("L2", Lamp.ON, "hit", Lamp.BROKEN, emit=[cancel_timer("t")]),
        row("L3", Lamp.ON, "ring", Lamp.OFF),
        final={Lamp.BROKEN},
        timers=["t"],
    )
    world = World("lamp")
    one = world.party("toy", lambda: PartyCore(timed(machine)))
    world.may(one, "hit")
    world.may(one, "press")
    found = fates(world)["toy.lamp:L2:silent-1"]

    assert (found.fate, found.property) == (Fate.KILLED, CORE)
    assert "'t'" in found.reason


def test_a_watch_that_cannot_go_on_kills_nobody() -> None:
    """It has no word for a state that only the mutant reaches; of the mutant it has said nothing."""
    machine = lamp(row("L1", Lamp.OFF, "press", Lamp.ON), row("L2", (Lamp.OFF, Lamp.ON), "hit", Lamp.BROKEN))
    told = party(machine, routes=[called(name, To("lamp", name)) for name in ("press", "hit")])
    known = {Lamp.OFF: False, Lamp.ON: False}
    world = World("lamp")
    one = world.party("toy", lambda: Watched(told, [None], [never("P00", lambda seen: known[seen.after.lamp.state])]))
    world.may(one, "press")
    found = fates(world)["toy.lamp:L1:to-BROKEN"]

    assert found.fate is Fate.UNKNOWN
    assert "what is watched for P00 raised KeyError" in found.reason


def test_the_answer_depends_on_neither_the_order_nor_the_number_of_workers() -> None:
    """Two processes, one, and one after the mutants of the other party."""
    world = stop_and_wait(LIVE=0)
    mutants_, worlds = of_worlds([world]), ready(world)
    alone = campaign(mutants_, worlds, Limits(workers=1))

    assert campaign(mutants_, worlds, Limits(workers=2)) == alone
    assert campaign(mutants_[::-1], worlds, Limits(workers=1)) == alone[::-1]
    assert check(world).verdict is Verdict.HOLDS


def test_a_world_that_does_not_hold_judges_nobody() -> None:
    """There would be nothing to compare with."""
    world = stop_and_wait()
    world.properties[0] = evolve(world.properties[0], expr=~world.properties[0].expr)
    with pytest.raises(WorldError, match="stop-and-wait is violated; mutants are judged in worlds that hold"):
        prepared(world, check(world))


def test_a_world_that_several_processes_searched_judges_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which calls met which row is known only of those that were made here."""
    monkeypatch.setattr(driver, "FORK_FRONTIER", 1)
    monkeypatch.setattr(driver, "FORK_LEARNT", 1 << 30)
    world = stop_and_wait()
    with pytest.raises(WorldError, match=r"stop-and-wait was searched by several processes, .*; use Limits\(workers=1\)"):
        prepared(world, check(world, engine="vector", limits=Limits(workers=2)))


def test_without_a_declared_party_there_is_nothing_to_mutate() -> None:
    """A step function has no rows."""
    world = World("plain")
    one = world.party("a", lambda s, e: (s, []), initial=0)
    world.may(one, "go")
    with pytest.raises(WorldError, match="nothing to mutate in plain: no party is a declared one"):
        of_worlds([world])


def test_the_original_is_never_changed_by_its_mutants() -> None:
    """Machines, party and world: the same answer before and after."""
    world = stop_and_wait()
    before = check(world)
    fates(world)
    after = check(stop_and_wait())

    assert (before.states, before.edges, before.verdict) == (after.states, after.edges, after.verdict)
    assert (SENDER.rows, RECEIVER.rows) == (ALICE.machines[0].rows, BERT.machines[0].rows)


class Loud(PartyCore):
    """A core of its own class, as a user may have."""

    def __init__(self) -> None:
        super().__init__(ALICE)
        self.volume = 11


def test_a_mutated_core_keeps_its_class_and_what_it_has() -> None:
    """Only its party is another."""
    world = World("loud")
    one = world.party("alice", Loud)
    world.link(one, world.party("sink", lambda s, e: (s, []), initial=0), "wire", full="loses")
    world.may(one, "send", times=1)
    (mutant,) = [m for m in of_worlds([world]) if m.name == "alice.sender:S1:stay"]
    changed: Any = mutated(world, mutant).system().components[0].component

    assert isinstance(changed.behaviour.core, Loud)
    assert changed.behaviour.core.volume == 11
    assert changed.behaviour.core.party is not ALICE


def test_parties_that_share_a_name_are_mutated_together() -> None:
    """Two instances of one declaration have the same mutant."""
    world = wired({"LOSS": 0, "SENDS": 1, "LIVE": 0})
    again = world.system()

    assert [t.component.name for t in again.components[:2]] == ["alice", "bert"]
    assert len({m.name for m in of_worlds([world, stop_and_wait()])}) == len(of_worlds([world]))


def test_calls_that_were_refused_are_asked_again() -> None:
    """A blocked call records no rows; a mutant that unblocks it must be seen all the same."""
    machine = lamp(
        row("L1", Lamp.OFF, "press", Lamp.ON, guard=a),
        row("L2", Lamp.ON, "hit", Lamp.BROKEN),
        refuse=[Refuse("press", Lamp.OFF, "not now", ~a)],
    )
    world = World("refused")
    one = world.party("toy", lambda: PartyCore(party(machine, observe={"on": lambda view: view.lamp.state is Lamp.ON})))
    world.may(one, Called("press", payload=frozenset()), name="press")
    world.may(one, "hit")
    world.never("OFF", "never on", one.on)

    assert fates(world)["toy.lamp:L1:unguarded"].fate is Fate.KILLED
