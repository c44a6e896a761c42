"""One ``handle``: order, atomicity, refusals."""

from __future__ import annotations

from enum import Enum
from typing import Any

import attrs
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.toys import TURNSTILE_PARTY, Coins, Lamp, add, asks, call, core, everything, lamp, row
from troth.spec import (
    Called,
    Core,
    LinkLost,
    PartyCore,
    Received,
    Refuse,
    Resolve,
    Send,
    Table,
    To,
    always,
    atom,
    called,
    effect,
    happened,
    received,
    resolve,
    send,
    signal,
)
from troth.spec.core import CallCancelled, Message, OwnerLost, Refusal, RefusalKind
from troth.spec.engine import MICRO_STEPS_LIMIT
from troth.spec.errors import BadGuard, CoreError

OFF, ON, BROKEN = Lamp.OFF, Lamp.ON, Lamp.BROKEN


class One(Enum):
    """A single state, for machines that only pass signals on."""

    HERE = "here"


class Done(Enum):
    """The outcome of a toy's call."""

    FINE = "fine"


@frozen(kw_only=True)
class Ring(Message):
    """A message with a number in it."""

    times: int = 1


def here(name: str, *triggers_and_emissions: tuple[str, list[Any]]) -> Any:
    """A machine that stays where it is and emits."""
    rows = [row(f"{name}{n}", One.HERE, t, One.HERE, emit) for n, (t, emit) in enumerate(triggers_and_emissions)]
    return lamp(*rows, name=name, states=One, initial=One.HERE)


def note(name: str) -> Any:
    """An effect that can be told from others."""
    return resolve(name, Done.FINE, lambda firing: 0)


def noted(step: Any) -> list[str]:
    """The notes a step left."""
    return [e.call for e in step.effects]


def test_a_party_core_is_a_core() -> None:
    """What the runtime, the checker and the tests all hold."""
    assert isinstance(PartyCore(TURNSTILE_PARTY), Core)


def test_a_step_says_which_rows_and_guards_it_took() -> None:
    """In order, under the names that traces use."""
    gate = PartyCore(TURNSTILE_PARTY)
    gate.handle(Called("coin"))
    gate.handle(Called("coin"))

    step = gate.handle(Called("push"))

    assert step.rows == ("gate.G2",)
    assert step.guards == (("gate.more_than_one", True),)
    assert step.refusal is None
    assert gate.observe() == {"open": True, "coins": 1}


def test_destinations_are_taken_in_the_order_of_the_route() -> None:
    """Not in the order of the machines."""
    second, first = here("second", ("go", [note("2")])), here("first", ("go", [note("1")]))
    subject = core(second, first, routes=[called("go", To("first", "go"), To("second", "go"))])

    assert noted(subject.handle(Called("go"))) == ["1", "2"]


def test_signals_are_taken_first_in_first_out() -> None:
    """A signal waits for the destinations and signals that were there before it: breadth first, never depth first."""
    a = here("a", ("go", [note("a"), signal("b", "go"), signal("c", "go")]))
    b = here("b", ("go", [note("b"), signal("d", "go")]))
    c = here("c", ("go", [note("c"), signal("d", "go")]))
    d = here("d", ("go", [note("d")]))
    e = here("e", ("go", [note("e")]))
    subject = core(a, b, c, d, e, routes=[called("go", To("a", "go"), To("e", "go"))])

    step = subject.handle(Called("go"))

    assert noted(step) == ["a", "e", "b", "c", "d", "d"]
    assert step.rows == ("a.a0", "e.e0", "b.b0", "c.c0", "d.d0", "d.d0")


def test_guards_see_the_state_before_their_own_micro_step() -> None:
    """The second destination sees what the first one did; the first does not see what it is about to do."""
    first_is_on = atom("first_is_on", reads=["first"], of=lambda view, event: view.first.state is ON)
    rows = [row("L1", OFF, "push", ON), row("L2", ON, "push", BROKEN)]
    watching = lamp(
        row("W1", OFF, "push", ON, guard=first_is_on),
        row("W2", OFF, "push", BROKEN, guard=~first_is_on),
        name="watching",
    )
    early = core(lamp(*rows, name="first"), watching, routes=[called("push", To("watching", "push"), To("first", "push"))])
    late = core(lamp(*rows, name="first"), watching, routes=[called("push", To("first", "push"), To("watching", "push"))])

    assert early.handle(Called("push")).guards == (("watching.first_is_on", False),)
    assert late.handle(Called("push")).guards == (("watching.first_is_on", True),)


def test_an_emission_sees_the_party_before_and_its_own_data_after() -> None:
    """So that "send the sequence I just counted" needs no second row."""
    seen = []

    def look(firing: Any) -> Any:
        seen.append((firing.view.lamp.state, firing.view.lamp.data.coins, firing.data.coins, firing.key))
        return Resolve("look", 0, Done.FINE)

    subject = core(lamp(row("L1", OFF, "push", ON, [effect("look", look)], update=add), row("L2", ON, "push", BROKEN), data=Coins))
    subject.handle(Called("push"))

    assert seen == [(OFF, 0, 1, None)]


def test_a_signal_carries_the_event_or_what_replaces_it() -> None:
    """``event=`` is for a sibling that should see less, or something else."""
    plain = atom("plain", of=lambda view, event: isinstance(event, Called))
    ears = lamp(row("E1", OFF, "hear", ON, guard=plain), row("E2", OFF, "hear", BROKEN, guard=~plain), name="ears")
    mouth = here("mouth", ("say", [signal("ears", "hear")]), ("hum", [signal("ears", "hear", event=lambda firing: "hm")]))

    said, hummed = core(mouth, ears), core(mouth, ears)
    said.handle(Called("say"))
    hummed.handle(Called("hum"))

    assert said.state("ears") is ON
    assert hummed.state("ears") is BROKEN


def test_signals_that_do_not_end_are_stopped_and_leave_nothing() -> None:
    """The error shows the last rows, which is where the circle is."""
    subject = core(here("a", ("go", [signal("b", "go")])), here("b", ("go", [signal("a", "go")])), routes=[called("go", To("a", "go"))])
    before = everything(subject)
    with pytest.raises(CoreError, match=rf"toy: signals do not end after {MICRO_STEPS_LIMIT} micro-steps: ... a.a0 b.b0 a.a0 b.b0"):
        subject.handle(Called("go"))

    assert everything(subject) == before


def test_as_many_micro_steps_as_the_limit_are_taken() -> None:
    """The bound itself is allowed."""
    fan = [signal("b", "go")] * (MICRO_STEPS_LIMIT - 1)
    subject = core(here("a", ("go", fan)), here("b", ("go", [])), routes=[called("go", To("a", "go"))])

    assert len(subject.handle(Called("go")).rows) == MICRO_STEPS_LIMIT


def test_an_ignored_event_changes_nothing_and_says_so() -> None:
    """The ignore's own name is in the rows."""
    subject = core(lamp(row("L1", OFF, "push", ON), row("L2", ON, "push", BROKEN)))
    subject.handle(Called("push"))
    subject.handle(Called("push"))
    before = everything(subject)

    step = subject.handle(Called("push"))

    assert step.rows == ("lamp.broken.push",)
    assert step.effects == ()
    assert step.refusal is None
    assert everything(subject) == before


def refusing() -> PartyCore:
    """Two machines behind each event: the first takes a row, with an effect and a signal; the last refuses."""
    eager = lamp(
        row("A1", OFF, "push", ON, [note("lit"), signal("count", "more")], update=add),
        row("A2", ON, "push", BROKEN),
        name="eager",
        data=Coins,
    )
    count = here("count", ("more", []))
    never = lamp(row("N1", OFF, "start", ON), row("N2", ON, "start", BROKEN), name="never", refuse=[Refuse("push", Lamp, "not at all")])
    destinations = To("eager", "push"), To("never", "push")
    routes = [
        called("push", *destinations),
        called("start", To("never", "start")),
        received(Ring, *destinations, link="wire"),
        happened(OwnerLost(), *destinations),
    ]
    return core(eager, count, never, routes=routes)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (Called("push"), RefusalKind.MISUSE),
        (Received("wire", Ring()), RefusalKind.VIOLATION),
        (OwnerLost(), RefusalKind.DRIVER),
    ],
)
def test_a_refusal_anywhere_rolls_the_whole_step_back(event: Any, kind: RefusalKind) -> None:
    """And says whose fault it was. The rows up to the refusal are told, the effects are not."""
    subject = refusing()
    before = everything(subject)

    step = subject.handle(event)

    assert step.refusal == Refusal(kind, "never.off.push", "not at all")
    assert step.rows == ("eager.A1", "never.off.push")
    assert step.effects == ()
    assert everything(subject) == before


@pytest.mark.parametrize(
    ("event", "kind", "spelled"),
    [
        (Called("sing"), RefusalKind.MISUSE, "Called sing"),
        (CallCancelled("push"), RefusalKind.MISUSE, "CallCancelled push"),
        (Received("wire", Ring()), RefusalKind.VIOLATION, "Received Ring wire"),
        (LinkLost("wire"), RefusalKind.DRIVER, "LinkLost wire"),
        (OwnerLost(), RefusalKind.DRIVER, "OwnerLost"),
    ],
)
def test_an_event_without_a_route_is_refused(event: Any, kind: RefusalKind, spelled: str) -> None:
    """Not an exception: a peer can cause it at will."""
    gate = PartyCore(TURNSTILE_PARTY)
    before = everything(gate)

    step = gate.handle(event)

    assert step.refusal == Refusal(kind, "turnstile.unrouted", f"turnstile has no route for {spelled}")
    assert step.rows == ()
    assert everything(gate) == before


def test_a_message_is_sent_with_what_the_firing_says() -> None:
    """Fields are computed from event and data."""
    bell = lamp(
        row("B1", OFF, "ring", ON, [send("wire", Ring, times=lambda firing: firing.event.times + firing.data.coins)], update=add),
        row("B2", ON, "ring", BROKEN, [send("wire", Ring)]),
        name="bell",
        data=Coins,
    )
    subject = core(bell, routes=[received(Ring, To("bell", "ring"), link="wire")])

    assert subject.handle(Received("wire", Ring(times=2))).effects == (Send("wire", Ring(times=3)),)
    assert subject.handle(Received("wire", Ring(times=2))).effects == (Send("wire", Ring(times=1)),)


def test_an_emission_that_gives_no_effect_is_an_error_and_changes_nothing() -> None:
    """A choice between emitting and not is a choice between two rows."""
    nothing: Any = effect("maybe", lambda firing: attrs.NOTHING)  # type: ignore[arg-type, return-value]
    subject = core(lamp(row("L1", OFF, "push", ON, [nothing]), row("L2", ON, "push", BROKEN)))
    before = everything(subject)
    with pytest.raises(CoreError, match=r"row lamp.L1: `maybe` gave NOTHING, not an effect; an emission is unconditional"):
        subject.handle(Called("push"))

    assert everything(subject) == before


def test_an_atom_that_turns_non_bool_later_is_an_error_and_changes_nothing() -> None:
    """The samples at import cannot cover every event."""
    odd = atom("odd", of=lambda view, event: view.own.data.coins % 2 if view.own.data.coins else False)
    subject = core(
        lamp(
            row("L1", OFF, "push", ON, update=add),
            row("L2", ON, "push", BROKEN, guard=odd),
            row("L3", ON, "push", ON, guard=~odd),
            data=Coins,
        )
    )
    subject.handle(Called("push"))
    before = everything(subject)
    with pytest.raises(BadGuard, match="atom lamp.odd answered 1; a guard must answer with a real bool"):
        subject.handle(Called("push"))

    assert everything(subject) == before


@frozen
class Memory:
    """Data of which one field matters only while the lamp is on."""

    pushes: int = 0
    while_on: int = 0


def remember(data: Memory, event: Any) -> Memory:
    """Count in both."""
    return Memory(data.pushes + 1, data.while_on + 1)


def test_fields_that_no_longer_matter_are_reset_on_entry() -> None:
    """Equal futures, equal snapshots."""
    rows = [row("L1", (OFF, BROKEN), "push", ON, update=remember), row("L2", ON, "push", BROKEN, update=remember)]
    subject = core(lamp(*rows, data=Memory, live={BROKEN: ("pushes",), OFF: ()}))

    subject.handle(Called("push"))
    assert subject.data("lamp") == Memory(1, 1)
    subject.handle(Called("push"))
    assert subject.data("lamp") == Memory(2, 0)


@given(st.lists(st.sampled_from(["coin", "push"]), max_size=12))
def test_both_interpreters_run_a_core_alike(calls: list[str]) -> None:
    """Not only entry by entry, but through the engine."""
    fired, looked_up = PartyCore(TURNSTILE_PARTY), PartyCore(TURNSTILE_PARTY, interpreter=Table)
    for name in calls:
        assert fired.handle(Called(name)) == looked_up.handle(Called(name))
        assert everything(fired) == everything(looked_up)


def test_a_core_takes_another_configuration_than_the_default() -> None:
    """Atoms read it; the party's own is only the default."""
    lit = asks("lit")
    strict = atom("strict", of=lambda view, event: view.config.strict)
    machine = lamp(
        row("L1", OFF, "push", ON, guard=strict & lit),
        row("L2", OFF, "push", BROKEN, guard=~strict & lit),
        row("L3", OFF, "push", OFF, guard=~lit),
    )
    default = core(machine, routes=[called("push", To("lamp", "push"), payload=Bits)])
    other = PartyCore(default.party, attrs.evolve(default.config, strict=True))
    default.handle(call("push", "lit"))
    other.handle(call("push", "lit"))

    assert default.state("lamp") is BROKEN
    assert other.state("lamp") is ON
    assert always.holds({})


@frozen
class Bits:
    """A payload that answers every ``asks`` with no."""

    def __contains__(self, name: str) -> bool:
        return False
