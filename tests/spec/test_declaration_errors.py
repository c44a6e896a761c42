"""What is wrong with a machine is said when it is built, naming the row and the fix."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

import pytest
from attrs import define, frozen

from tests.spec.toys import Coins, Lamp, add, asks, lamp, row
from troth.spec import Ignore, Machine, Refuse, Row, always, atom, cancel_timer, keep, send, set_timer
from troth.spec.core import Message
from troth.spec.errors import BadGuard, BadRow, DeadRow, DeclarationError, Hole, Overlap, UnknownState, UnreachableState

OFF, ON, BROKEN = Lamp.OFF, Lamp.ON, Lamp.BROKEN
a, b = asks("a"), asks("b")


class Two(Enum):
    """Two states."""

    X = "x"
    Y = "y"


def two(*rows: Row, **parts: Any) -> Machine:
    """A machine over ``Two`` exactly as given."""
    return Machine("two", Two, initial=Two.X, rows=rows, **parts)


def test_a_hole_names_the_state_the_trigger_and_the_valuation() -> None:
    """Every case is answered, or the table cannot be imported."""
    there = row("T1", Two.X, "go", Two.Y, guard=a)
    with pytest.raises(Hole) as caught:
        two(there, row("T2", Two.Y, "go", Two.X))

    assert "two: state X, trigger 'go' has no entry when ~a: add a Row, an Ignore or a Refuse (compare two.T1)" in str(caught.value)


def test_a_case_that_nobody_mentions_is_a_hole() -> None:
    """A state that a trigger's rows leave out altogether."""
    with pytest.raises(Hole, match="two: state Y, trigger 'go' has no entry when always"):
        two(row("T1", Two.X, "go", Two.Y))


def test_an_overlap_names_both_entries_and_the_valuation() -> None:
    """Order never decides."""
    with pytest.raises(Overlap, match=r"two: state X, trigger 'go': two.T1 and two.T2 both hold when a & b; make their guards exclusive"):
        two(
            row("T1", Two.X, "go", Two.Y, guard=a),
            row("T2", Two.X, "go", Two.X, guard=b),
            refuse=[Refuse("go", Two.X, "neither", ~a & ~b), Refuse("go", Two.Y, "there already")],
        )


def test_an_ignore_and_a_row_can_overlap_too() -> None:
    """An ignore is an entry like any other."""
    with pytest.raises(Overlap, match="two.T1 and two.x.go both hold when always"):
        two(row("T1", Two.X, "go", Two.Y), ignore=[Ignore("go", (Two.X, Two.Y), "no")])


def test_an_unreachable_state_is_named() -> None:
    """A state no row leads to is a thought that was not finished."""
    with pytest.raises(UnreachableState, match="lamp: no row leads to BROKEN; add the row that does, or remove the state"):
        lamp(row("L1", OFF, "push", ON), row("L2", ON, "push", OFF))


def test_a_row_whose_guard_never_holds_does_not_make_a_state_reachable() -> None:
    """Reachability asks the guards as well."""
    with pytest.raises(UnreachableState, match="BROKEN"):
        lamp(
            row("L1", OFF, "push", ON),
            row("L2", ON, "push", OFF),
            row("L3", ON, "drop", BROKEN, guard=a & ~a),
            ignore=[Ignore("drop", Lamp, "for the test")],
        )


def test_a_row_whose_guard_never_holds_is_dead() -> None:
    """It reads as protection and is none."""
    with pytest.raises(DeadRow, match=r"row two.T2: its guard `a & ~a` never holds; correct it or remove it"):
        two(row("T1", Two.X, "go", Two.Y), row("T2", Two.X, "go", Two.X, guard=a & ~a), row("T3", Two.Y, "go", Two.X))


def test_a_refusal_whose_guard_never_holds_is_dead() -> None:
    """The same for what has no id."""
    with pytest.raises(DeadRow, match=r"two: refuse of go: its guard `~always` never holds"):
        two(row("T1", Two.X, "go", Two.Y), row("T2", Two.Y, "go", Two.X), refuse=[Refuse("go", Two.X, "never", ~always)])


@pytest.mark.parametrize(("triggers", "states", "missing"), [((), Two.X, "trigger"), ("go", (), "state")])
def test_an_ignore_of_nothing_is_dead(triggers: Any, states: Any, missing: str) -> None:
    """An empty list is a slip, not a decision."""
    with pytest.raises(DeadRow, match=f"it names no {missing} and so no case"):
        two(row("T1", Two.X, "go", Two.Y), row("T2", Two.Y, "go", Two.X), ignore=[Ignore(triggers, states, "no")])


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        ({"rows": [row("L1", Two.X, "push", ON)]}, "row lamp.L1: source"),
        ({"rows": [row("L1", OFF, "push", Two.X)]}, "row lamp.L1: target"),
        ({"ignore": [Ignore("push", Two.X, "no")]}, "lamp: ignore of push"),
        ({"refuse": [Refuse("push", Two.X, "no")]}, "lamp: refuse of push"),
        ({"initial": Two.X}, "lamp: initial"),
        ({"final": {Two.X}}, "lamp: final"),
        ({"live": {Two.X: ()}}, "lamp: live"),
    ],
)
def test_an_unknown_state_is_named_with_those_there_are(parts: dict[str, Any], where: str) -> None:
    """Wherever a state is written."""
    given: dict[str, Any] = {"initial": OFF, "rows": [], **parts}
    with pytest.raises(UnknownState, match=rf"{where}: <Two.X: 'x'> is not a state of lamp; use one of OFF, ON, BROKEN"):
        Machine("lamp", Lamp, **given)


def test_a_row_needs_a_source() -> None:
    """No source, no case."""
    with pytest.raises(UnknownState, match="row lamp.L1: no source state is given"):
        lamp(row("L1", (), "push", ON))


@pytest.mark.parametrize("guard", [True, None, lambda view, event: True])
def test_a_guard_that_is_not_made_of_atoms_is_refused(guard: Any) -> None:
    """A function has no name, and its holes cannot be seen."""
    with pytest.raises(BadGuard, match=r"row lamp.L1: the guard must be built from atoms .* name the question with atom\(...\)"):
        lamp(row("L1", OFF, "push", ON, guard=guard))


def test_two_atoms_of_one_name_are_refused() -> None:
    """One name, one question: a truth table would take them for the same."""
    other_a = atom("a", of=lambda view, event: True)
    with pytest.raises(BadGuard, match="lamp: two atoms are called 'a'; one name, one question"):
        lamp(row("L1", OFF, "push", ON, guard=a), row("L2", OFF, "push", BROKEN, guard=~other_a))


def test_a_cell_that_nobody_could_review_is_refused_before_its_table_is_written_out() -> None:
    """Forty atoms would be a truth table of 2 ** 40 lines."""
    wide = asks("a0")
    guard = wide & wide
    for n in range(1, 40):
        guard = guard & asks(f"a{n}")
    with pytest.raises(BadGuard, match="lamp: state OFF, trigger 'push': 40 atoms decide here, more than 10; split the machine"):
        lamp(row("L1", OFF, "push", ON, guard=guard))


def test_an_id_is_used_once() -> None:
    """Traces and mutants go by it."""
    with pytest.raises(BadRow, match="row lamp.L1: the id is used twice; give each row its own"):
        lamp(row("L1", OFF, "push", ON), row("L1", ON, "push", OFF))


def test_a_row_says_why() -> None:
    """Blank is not a reason."""
    with pytest.raises(BadRow, match="row lamp.L1: no reason is given; say why in one sentence"):
        lamp(row("L1", OFF, "push", ON, why=" "))


@pytest.mark.parametrize("rule", [Ignore, Refuse])
def test_an_ignore_and_a_refusal_say_why(rule: Any) -> None:
    """They are decisions as much as rows are."""
    kind = rule.__name__.lower()
    parts: dict[str, Any] = {kind: [rule("push", ON, "")]}
    with pytest.raises(BadRow, match=f"lamp: {kind} of push: no reason is given"):
        lamp(row("L1", OFF, "push", ON), **parts)


@pytest.mark.parametrize("update", [lambda data, event: data, partial(keep), None])
def test_an_update_has_a_name(update: Any) -> None:
    """Mutants and reference pages call it by name."""
    with pytest.raises(BadRow, match=r"row lamp.L1: the update must be a named function \(data, event\) -> data, got .* use def"):
        lamp(row("L1", OFF, "push", ON, update=update))


def test_an_emission_is_built_by_its_function() -> None:
    """A string would be an effect that nobody performs."""
    with pytest.raises(BadRow, match="row lamp.L1: 'light' is not an emission; build it with send, set_timer, resolve, effect or signal"):
        lamp(row("L1", OFF, "push", ON, ["light"]))


@pytest.mark.parametrize("emission", [set_timer("glow", "WAIT_S"), cancel_timer("glow")])
def test_a_timer_belongs_to_the_machine_that_sets_it(emission: Any) -> None:
    """So that a machine that is over can be asked whether it stopped its own."""
    with pytest.raises(BadRow, match="row lamp.L1: timer 'glow' is not owned by lamp; add it to timers="):
        lamp(row("L1", OFF, "push", ON, [emission]))


@pytest.mark.parametrize(("target", "update"), [(OFF, keep), (BROKEN, add)])
def test_a_final_state_is_never_left(target: Lamp, update: Any) -> None:
    """Nor is what it remembers changed: a final state may only answer."""
    with pytest.raises(BadRow, match="row lamp.L2: BROKEN is final and the row changes it; a final state may only answer"):
        lamp(row("L1", OFF, "push", BROKEN), row("L2", BROKEN, "push", target, update=update), data=Coins, final={BROKEN})


def test_only_the_update_called_keep_by_troth_keeps() -> None:
    """Another function of that name would change a final state unseen."""

    def keep(data: Any, event: Any) -> Any:
        return add(data, event)

    with pytest.raises(BadRow, match="BROKEN is final and the row changes it"):
        lamp(row("L1", OFF, "push", BROKEN), row("L2", BROKEN, "push", BROKEN, update=keep), data=Coins, final={BROKEN})


@frozen
class NeedsWork:
    """Data without a default."""

    amount: int


@define
class Loose:
    """Data that can be assigned."""

    amount: int = 0


@frozen(kw_only=True)
class Named:
    """Data that cannot be restored by position."""

    amount: int = 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (NeedsWork, "lamp: data NeedsWork needs a default for every field"),
        (dict, "lamp: data dict must be a frozen attrs class"),
        (Loose, "lamp: data Loose must be a frozen attrs class; amount can be assigned"),
        (Named, "lamp: data Named.amount must be a positional field: snapshots are restored by position"),
    ],
)
def test_data_is_frozen_with_defaults(data: type[Any], says: str) -> None:
    """A snapshot must be able to hold it, and an absent instance must have a value."""
    with pytest.raises(BadRow, match=says):
        lamp(row("L1", OFF, "push", ON), data=data)


def test_live_names_fields_that_there_are() -> None:
    """A field that is kept by a wrong name would be reset."""
    with pytest.raises(BadRow, match=r"lamp: live\[ON\] names \['coin'\], which the data has not; it has \['coins'\]"):
        lamp(row("L1", OFF, "push", ON), data=Coins, live={ON: ("coin",)})


@pytest.mark.parametrize("name", ["two words", "own", "config"])
def test_a_machine_is_named_so_that_a_view_can_offer_it(name: str) -> None:
    """A view has attributes of its own, and the rest are machines."""
    with pytest.raises(BadRow, match=f"machine '{name}': a view must offer it as an attribute"):
        lamp(row("L1", OFF, "push", ON), name=name)


def test_a_row_can_be_had_by_id_and_a_wrong_id_is_told_the_right_ones() -> None:
    """Mutants and tests look rows up."""
    machine = two(row("T1", Two.X, "go", Two.Y), row("T2", Two.Y, "go", Two.X))

    assert machine.row("T2").target is Two.X
    with pytest.raises(BadRow, match="machine 'two' has no row 'T3'; it has T1, T2"):
        machine.row("T3")


@frozen(kw_only=True)
class Pay(Message):
    """A message with one field that must be given and one that need not."""

    amount: int
    tip: int = 0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "send Pay: nothing computes amount; give each a function of the firing"),
        ({"amount": Coins, "coin": Coins}, "send Pay: it has no field coin; it has amount, tip"),
    ],
)
def test_a_message_is_sent_with_the_fields_it_has(fields: dict[str, Any], says: str) -> None:
    """A slip here would otherwise wait for the one run that takes the row."""
    with pytest.raises(BadRow, match=says):
        send("wire", Pay, **fields)


def test_a_mutant_is_built_without_the_checks() -> None:
    """A broken table is what it is for; the hole shows where it is met."""
    broken = two(row("T1", Two.X, "go", Two.Y, guard=a), validate=False)

    assert [entry.id for entry in broken.table[Two.X, "go"].by_bits.values()] == ["two.T1"]
    assert broken.table[Two.Y, "go"].by_bits == {}


def test_every_declaration_error_can_be_caught_as_one() -> None:
    """A tool that loads other people's protocols needs one except."""
    for kind in (Hole, Overlap, UnknownState, UnreachableState, DeadRow, BadGuard, BadRow):
        assert issubclass(kind, DeclarationError)


def test_one_name_may_be_given_bare() -> None:
    """``timers="glow"`` is one timer, not four letters."""
    machine = lamp(row("L1", OFF, "push", ON, [set_timer("glow", "WAIT_S")]), row("L2", ON, "push", BROKEN), timers="glow")

    assert machine.timers == ("glow",)
