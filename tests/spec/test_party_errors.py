"""What is wrong with a party is said when it is built, naming the row or route and the fix."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen

from tests.spec.toys import Config, Lamp, lamp, party, row
from troth.spec import (
    EACH,
    Family,
    Ignore,
    Machine,
    Party,
    To,
    always,
    atom,
    called,
    cancel_timer,
    deliver,
    happened,
    received,
    set_timer,
    signal,
    timer,
)
from troth.spec.core import Message, OwnerLost
from troth.spec.errors import BadGuard, BadRow, DeadRow, UnreadMachine

OFF, ON, BROKEN = Lamp.OFF, Lamp.ON, Lamp.BROKEN


def simple(name: str = "lamp", emit: Any = (), guard: Any = always, trigger: str = "push", **parts: Any) -> Machine:
    """A machine with two rows; the first has the parts that the test is about."""
    rows = [row("L1", OFF, trigger, ON, emit, guard=guard), row("L2", ON, trigger, BROKEN)]
    if guard is not always:
        rows.append(row("L3", OFF, trigger, OFF, guard=~guard))
    return lamp(*rows, name=name, **parts)


@pytest.mark.parametrize("answer", [1, None, "yes", [True]])
def test_an_atom_that_answers_with_a_non_bool_is_found_at_import(answer: Any) -> None:
    """``count`` where ``count > 0`` was meant would work until somebody compares it with True."""
    sloppy = atom("lit", of=lambda view, event: answer)
    with pytest.raises(BadGuard, match=r"atom lamp.lit answered .* to Called; a guard must answer with a real bool: compare"):
        party(simple(guard=sloppy))


def test_an_atom_that_reads_what_it_does_not_say_is_found_at_import() -> None:
    """The checker recomputes only what the declared reads touch."""
    nosy = atom("other_lit", of=lambda view, event: view.other.state is ON)
    with pytest.raises(UnreadMachine, match=r"atom lamp.other_lit looks at 'other' without saying so; add it to reads="):
        party(simple(guard=nosy), simple("other"))


def test_an_atom_that_says_what_it_reads_is_accepted() -> None:
    """The same atom, declared."""
    open_about_it = atom("other_lit", reads=["other"], of=lambda view, event: view.other.state is ON)

    assert party(simple(guard=open_about_it), simple("other")).by_name["lamp"].atoms == (open_about_it,)


def test_an_atom_cannot_read_a_machine_the_party_has_not() -> None:
    """The error lists the machines there are."""
    lost = atom("other_lit", reads=["other"], of=lambda view, event: True)
    with pytest.raises(UnreadMachine, match="atom lamp.other_lit reads 'other', which toy has not; it has lamp"):
        party(simple(guard=lost))


@pytest.mark.parametrize(
    ("emission", "says"),
    [
        (signal("bell", "ring"), "row lamp.L1: signal bell.ring: the party has no machine 'bell'; it has lamp"),
        (signal("lamp", "pull"), "row lamp.L1: signal lamp.pull: lamp has no trigger 'pull'; it has push"),
        (signal("lamp", "push", key=lambda firing: 1), "row lamp.L1: signal lamp.push: lamp is not a family; take the key away"),
    ],
)
def test_a_signal_finds_its_machine(emission: Any, says: str) -> None:
    """Names are checked before anything runs."""
    with pytest.raises(UnreadMachine, match=says):
        party(simple(emit=[emission]))


@pytest.mark.parametrize(
    ("to", "says"),
    [
        (To("bell", "ring"), "party toy: route of Called push: the party has no machine 'bell'; it has lamp"),
        (To("lamp", "pull"), "party toy: route of Called push: lamp has no trigger 'pull'; it has push"),
        (To("lamp", "push", lambda view, event: EACH), "party toy: route of Called push: lamp is not a family; take the key away"),
    ],
)
def test_a_route_finds_its_machine(to: To, says: str) -> None:
    """Names are checked before anything runs."""
    with pytest.raises(UnreadMachine, match=says):
        party(simple(), routes=[called("push", to)])


def test_a_family_needs_a_key_to_be_reached() -> None:
    """Which instance is a decision, so it is written down."""
    with pytest.raises(UnreadMachine, match="route of Called push: lamp is a family; give a key"):
        party(simple(family=Family("lamp", 2)), routes=[called("push", To("lamp", "push"))])


def test_a_trigger_that_nothing_fires_makes_its_rows_dead() -> None:
    """The error names the rows."""
    with pytest.raises(DeadRow, match=r"lamp: nothing fires 'push' \(rows: L1, L2\); add a route, or a signal from a fired row"):
        party(simple(), routes=[])


def test_two_machines_that_only_signal_each_other_are_dead() -> None:
    """A signal counts only if its own row can be fired."""
    here, there = simple("here", [signal("there", "push")]), simple("there", [signal("here", "push")])
    with pytest.raises(DeadRow, match="here: nothing fires 'push'"):
        party(here, there, routes=[])


def test_a_trigger_fired_only_by_a_signal_is_alive() -> None:
    """One route and one signal."""
    chain = party(simple("here", [signal("there", "push")]), simple("there"), routes=[called("push", To("here", "push"))])

    assert len(chain.machines) == 2


def test_a_timer_needs_a_route() -> None:
    """Else it would be set and never heard."""
    with pytest.raises(UnreadMachine, match=r"lamp: timer 'glow' has no route in party toy; add timer\('glow', ...\)"):
        party(simple(emit=[set_timer("glow", "WAIT_S")], timers=["glow"]))


def test_a_timer_has_one_owner() -> None:
    """Two machines that set one timer would withdraw each other's."""
    routes = [called("push", To("here", "push"), To("there", "push")), timer("glow", To("here", "push"))]
    with pytest.raises(BadRow, match="there: timer 'glow' is already here's; give each machine timers of its own"):
        party(simple("here", timers=["glow"]), simple("there", timers=["glow"]), routes=routes)


def test_a_limit_that_there_is_not_is_named() -> None:
    """The core knows durations by name only; a wrong name would fail in the driver."""
    glow = [set_timer("glow", "WAIT_LONG_S")]
    routes = [called("push", To("lamp", "push")), timer("glow", To("lamp", "push"))]
    with pytest.raises(BadRow, match="row lamp.L1: there is no limit 'WAIT_LONG_S'; add it to Limits"):
        party(simple(emit=glow, timers=["glow"]), routes=routes)


def test_two_machines_of_one_name_are_refused() -> None:
    """A view could show only one of them."""
    with pytest.raises(BadRow, match="party toy: two machines have the same name; rename one"):
        party(simple(), simple())


def test_two_routes_for_one_event_are_refused() -> None:
    """The order of destinations is part of the declaration, so they stand in one list."""
    with pytest.raises(BadRow, match="party toy: two routes take the same event; merge their destinations"):
        party(simple(), routes=[called("push", To("lamp", "push")), called("push", To("lamp", "push"))])


@frozen(kw_only=True)
class Ring(Message):
    """A message."""

    times: int = 1


def test_a_gate_that_never_delivers_is_dead() -> None:
    """What is behind it could not be reached."""
    routes = [received(Ring, To("lamp", "push"), link="wire", gate=To("door", "push"))]
    with pytest.raises(DeadRow, match="party toy: route of Received Ring wire: no row of door.push delivers; emit `deliver`"):
        party(simple(), simple("door"), routes=routes)


def test_a_delivery_without_a_gate_is_refused() -> None:
    """It would start the same route again, for ever."""
    with pytest.raises(BadRow, match="row lamp.L1: it delivers, but 'push' is the gate of no route; name it as gate= or remove `deliver`"):
        party(simple(emit=[deliver]))


def test_an_observation_answers_with_a_bool_or_an_int() -> None:
    """Properties are expressions over these."""
    with pytest.raises(BadRow, match="party toy: observation 'lit' answered None; it must be a bool or an int"):
        party(simple(), observe={"lit": lambda view: None})


def test_a_mutant_of_a_party_is_not_checked() -> None:
    """Its faults are what it is for."""
    whole = party(simple(emit=[signal("bell", "push")]), simple("bell"))
    dull = whole.replaced(simple("bell", trigger="pull"))

    assert [m.triggers for m in dull.machines] == [("push",), ("pull",)]


def test_any_event_can_be_routed_by_example() -> None:
    """``happened`` is for events that have no shorthand."""
    quiet = party(simple(), routes=[happened(OwnerLost(), To("lamp", "push"))])

    assert str(quiet.routes[0]) == "OwnerLost"


def test_a_timer_may_be_stopped_by_the_machine_that_owns_it() -> None:
    """The whole of it, declared as it should be."""
    machine = lamp(
        row("L1", OFF, "push", ON, [set_timer("glow", "WAIT_S")]),
        row("L2", ON, "push", OFF, [cancel_timer("glow")]),
        row("L3", ON, "late", BROKEN),
        timers=["glow"],
        ignore=[Ignore("late", (OFF, BROKEN), "nothing glows")],
    )
    glowing = Party(
        "toy",
        machines=[machine],
        routes=[called("push", To("lamp", "push")), timer("glow", To("lamp", "late"))],
        config=Config,
    )

    assert glowing.by_name["lamp"].timers == ("glow",)
