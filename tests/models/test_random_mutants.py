"""Random small machines: whatever is kept from the original's tables, a mutant is judged as if nothing had been.

The judge here builds each mutated world anew, runs it on the other interpreter, and compares whole graphs by what their states say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

from tests.spec.test_random_machines import Part, S, machines
from troth.models import Verdict, World, check
from troth.models.mutants import Fate, Mutant, judged, mutants, of_worlds, prepared
from troth.models.system import System
from troth.spec import Called, Ignore, Machine, Message, Party, PartyCore, Refuse, Row, Table, To, Transitions, atom, called, effect, keep
from troth.spec.core import Send
from troth.spec.errors import DeclarationError
from troth.spec.guards import And, Atom, Guard, Not, Or


@frozen(kw_only=True)
class Ping(Message):
    """Something to send."""

    count: int = 0


@frozen
class Count:
    """A little data."""

    count: int = 0


def more(data: Count, event: Any) -> Count:
    """One more, of three."""
    return evolve(data, count=(data.count + 1) % 3)


ATOMS = {
    "a": atom("a", of=lambda view, event: "a" in (event.payload or ())),
    "b": atom("b", of=lambda view, event: view.own.data.count > 0),
    "c": atom("c", of=lambda view, event: view.own.data.count > 1),
}
PING = effect("ping", lambda firing: Send("sink", Ping(count=firing.data.count)))


def seen(guard: Guard) -> Guard:
    """The same guard over atoms of this test: one about the event, two about the data."""
    match guard:
        case Not():
            return Not(seen(guard.inner))
        case And():
            return And(seen(guard.left), seen(guard.right))
        case Or():
            return Or(seen(guard.left), seen(guard.right))
        case Atom():
            return ATOMS[guard.name]
        case _:
            return guard


def machine_of(parts: Sequence[Part], draws: Sequence[tuple[bool, bool]]) -> Machine:
    """The machine of these parts; the draws say which rows count and which ping."""
    rows = [
        Row(f"R{n}", p.state, p.trigger, seen(p.guard), p.target, more if counts else keep, [PING] if pings else [], "random")
        for n, (p, (counts, pings)) in enumerate(zip(parts, draws, strict=False))
        if p.target
    ]
    quiet = [p for p in parts if p.target is None]
    return Machine(
        "m",
        S,
        initial=S.P,
        data=Count,
        rows=rows,
        ignore=[Ignore(p.trigger, p.state, "random", seen(p.guard)) for p in quiet if p.ignore],
        refuse=[Refuse(p.trigger, p.state, "random", seen(p.guard)) for p in quiet if not p.ignore],
    )


def world_of(party: Party, interpreter: Any, forbidden: tuple[int, int]) -> World:
    """A world around it: calls with and without the bit, a sink at the end of a short link."""
    world = World("random")
    one = world.party("one", lambda: PartyCore(party, interpreter=interpreter))
    sink = world.party("sink", lambda s, e: ((s + e.message.count + 1) % 3, []), initial=0)
    world.link(one, sink, "sink", capacity=1, full="blocks")
    for trigger in sorted(party.machines[0].triggers):  # a mutant names them in another order
        for bits in ("", "a"):
            world.may(one, Called(trigger, payload=frozenset(bits)), name=f"{trigger} {bits}")
    state, count = forbidden
    world.never("P", "one state never comes", (one.place == state) & (one.count == count))
    return world


def unreached(party: Party, choice: int) -> tuple[int, int]:
    """A (place, count) that never comes; one that no mutant can reach either, where all of them come."""
    system = world_of(party, Table, (9, 9)).system()
    assert graph(system)
    come = {(o["place"], o["count"]) for o in (system.components[0].observed(n) for n in range(len(system.components[0].states)))}
    left = [(place, count) for place in range(3) for count in range(3) if (place, count) not in come]
    return left[choice % len(left)] if left else (9, 9)


def graph(system: System) -> dict[tuple[str, ...], Counter[Any]]:
    """The labelled graph, by what the states say."""
    level, found = [system.initial], {}
    while level:
        state = level.pop()
        name = tuple(system.spelled(state).values())
        if name in found:
            continue
        edges = system.successors(state, labelled=True)
        found[name] = Counter((tuple(system.spelled(target).values()), system.label_of(symbol)) for target, symbol in edges)
        level += [target for target, _ in edges]
    return found


def from_scratch(mutant: Mutant, party: Party, forbidden: tuple[int, int], original: dict[tuple[str, ...], Counter[Any]]) -> Fate:
    """The fate, with nothing kept."""
    world = world_of(mutant.of(party), Transitions, forbidden)
    if check(world, engine="scalar").verdict is Verdict.VIOLATED:
        return Fate.KILLED
    return Fate.EQUIVALENT if graph(world.system()) == original else Fate.SURVIVED


DRAWS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=30, max_size=30)


def assert_same_fates(parts: list[Part], draws: list[tuple[bool, bool]], choice: int) -> None:
    """Of every mutant of the machine that these make."""
    try:
        machine = machine_of(parts, draws)
        party = Party(
            "toy",
            machines=[machine],
            routes=[called(t, To("m", t)) for t in machine.triggers],
            config=dict,
            observe={"place": lambda view: list(S).index(view.m.state), "count": lambda view: view.m.data.count},
        )
    except DeclarationError:
        return
    forbidden = unreached(party, choice)
    world = world_of(party, None, forbidden)
    result = check(world, engine="scalar")
    assert result.verdict is Verdict.HOLDS
    original = graph(world.system())
    worlds = [prepared(world, result)]
    for mutant in of_worlds([world]):
        found = judged(mutant, worlds)
        event(found.fate.value)

        assert found.fate is from_scratch(mutant, party, forbidden, original), mutant.name


@settings(max_examples=10, phases=[Phase.generate])  # shrinking one of these takes minutes
@given(machines(), DRAWS, st.integers(0, 8))
def test_what_is_kept_from_the_original_changes_no_answer(parts: list[Part], draws: list[tuple[bool, bool]], choice: int) -> None:
    """Killed, equivalent or survived, mutant by mutant."""
    assert_same_fates(parts, draws, choice)


@pytest.mark.slow
@settings(max_examples=150, phases=[Phase.generate])
@given(machines(), DRAWS, st.integers(0, 8))
def test_what_is_kept_from_the_original_changes_no_answer_in_the_long_run(
    parts: list[Part], draws: list[tuple[bool, bool]], choice: int
) -> None:
    """The same, of many more machines."""
    assert_same_fates(parts, draws, choice)


@given(machines())
def test_both_interpreters_agree_on_every_mutant(parts: list[Part]) -> None:
    """Every case of every mutated table, overlaps and filled holes included."""
    try:
        party = Party("toy", machines=[machine_of(parts, [(True, True)] * 30)], routes=[], config=dict, validate=False)
    except DeclarationError:
        return
    for mutant in mutants(party):
        (machine,) = mutant.of(party).machines
        table, fired = Table(machine), Transitions(machine)
        for (state, trigger), cell in machine.table.items():
            assert len(cell.by_bits) == 1 << len(cell.atoms)
            for bits in range(1 << len(cell.atoms)):
                assert table.fire(state, trigger, bits) == fired.fire(state, trigger, bits)
