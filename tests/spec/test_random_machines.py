"""Random small machines: the checks agree with brute force, and the interpreters with each other.

Guards are judged here by other means than the checks use: each atom is the bit mask of the valuations that make it true, and the
guard's own text, read as Python, computes the mask of the whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from enum import Enum
from itertools import combinations, product
from typing import Any

import pytest
import transitions
from attrs import evolve, frozen
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from tests.spec.toys import asks
from troth.spec import Guard, Ignore, Machine, Refuse, Row, Table, Transitions, always, keep
from troth.spec.engine import shared_transitions
from troth.spec.errors import DeadRow, DeclarationError, Hole, Overlap, UnreachableState

FULL = 0xFF
MASKS = {"a": 0b11110000, "b": 0b11001100, "c": 0b10101010, "always": FULL}
"""Which of the eight valuations of (a, b, c) make an atom true; valuation n is the binary digits of n."""


class S(Enum):
    """The states."""

    P = "p"
    Q = "q"
    R = "r"


TRIGGERS = ("s", "t")
LITERALS = [guard for atom in "abc" for guard in (asks(atom), ~asks(atom))]
PAIRS = [guard for one, two in combinations(LITERALS, 2) for guard in (one & two, one | two)]
GUARDS = [always, *LITERALS, *PAIRS, *(~pair & one for pair, one in product(PAIRS[::5], LITERALS))]
"""Guards of every shape that matters, contradictions and tautologies among them; drawing from a list is fast."""


@frozen
class Part:
    """One entry of a machine under test: a row if it has a target, else an ignore or a refusal."""

    state: S
    trigger: str
    guard: Guard
    target: S | None
    ignore: bool


def mask(guard: Guard | str) -> int:
    """The valuations that make ``guard`` true."""
    return int(eval(str(guard), {}, MASKS)) & FULL


def build(parts: Sequence[Part]) -> Machine:
    """The machine of these parts."""
    rows = [Row(f"R{n}", p.state, p.trigger, p.guard, p.target, keep, (), "random") for n, p in enumerate(parts) if p.target]
    quiet = [p for p in parts if p.target is None]
    return Machine(
        "m",
        S,
        initial=S.P,
        rows=rows,
        ignore=[Ignore(p.trigger, p.state, "random", p.guard) for p in quiet if p.ignore],
        refuse=[Refuse(p.trigger, p.state, "random", p.guard) for p in quiet if not p.ignore],
    )


@st.composite
def cells(draw: st.DrawFn, state: S, trigger: str) -> list[Part]:
    """The entries of one case, split by a guard and perhaps once more, so that they are total and disjoint."""
    first, second = draw(st.sampled_from(GUARDS)), draw(st.sampled_from(GUARDS))
    splits: list[list[Guard]] = [[always], [first, ~first], [first & second, first & ~second, ~first]]
    wanted = [guard for guard in draw(st.sampled_from(splits)) if mask(guard)]
    targets = st.sampled_from([S.P, S.Q, S.R, None])
    return [Part(state, trigger, guard, draw(targets), draw(st.booleans())) for guard in wanted]


@st.composite
def machines(draw: st.DrawFn) -> list[Part]:
    """The parts of a machine of three states and two triggers."""
    return [part for state, trigger in product(S, TRIGGERS) for part in draw(cells(state, trigger))]


@st.composite
def perhaps_broken(draw: st.DrawFn) -> list[Part]:
    """The same, with an entry left out, put in or changed in every second one."""
    parts = draw(machines())
    place = draw(st.integers(0, len(parts) - 1))
    guard = draw(st.sampled_from(GUARDS))
    how = draw(st.sampled_from(["whole", "whole", "whole", "less", "more", "other"]))
    if how == "less":
        del parts[place]
    elif how == "more":
        parts.insert(place, evolve(parts[place], guard=guard))
    elif how == "other":
        parts[place] = evolve(parts[place], guard=guard)
    return parts


def by_case(parts: Sequence[Part]) -> dict[tuple[S, str], list[int]]:
    """The masks of each case's guards."""
    found: dict[tuple[S, str], list[int]] = defaultdict(list)
    for part in parts:
        found[part.state, part.trigger].append(mask(part.guard))
    return found


def reached(parts: Sequence[Part]) -> set[S]:
    """Where rows that can fire lead."""
    found = {S.P}
    for _ in S:
        found |= {p.target for p in parts if p.target and p.state in found and mask(p.guard)}
    return found


@settings(max_examples=500)
@given(perhaps_broken())
def test_the_checks_accept_a_machine_exactly_when_brute_force_does(parts: list[Part]) -> None:
    """Accepted: every case under every valuation has one entry. Rejected: there is a witness, and the error names it."""
    used = dict.fromkeys(p.trigger for p in parts)
    try:
        machine = build(parts)
    except DeclarationError as error:
        event(type(error).__name__)
        assert_witness(error, parts)
        return
    event("accepted")
    cases = by_case(parts)
    for state, trigger in product(S, used):
        masks = cases[state, trigger]
        assert sum(masks) == FULL, "disjoint masks that cover everything add up to it"
        assert all(one & two == 0 for n, one in enumerate(masks) for two in masks[:n])
        assert len(machine.table[state, trigger].by_bits) == 1 << len(machine.table[state, trigger].atoms)
    assert reached(parts) == set(S)


@pytest.mark.slow
@settings(max_examples=4_000)
@given(perhaps_broken())
def test_the_checks_and_brute_force_agree_in_a_long_run(parts: list[Part]) -> None:
    """The same question, asked more often than a person wants to wait for."""
    try:
        build(parts)
    except DeclarationError as error:
        assert_witness(error, parts)
    else:
        assert all(sum(masks) == FULL for masks in by_case(parts).values())
        assert reached(parts) == set(S)


def assert_witness(error: DeclarationError, parts: Sequence[Part]) -> None:
    """The error is right about what it names."""
    text = str(error)
    if isinstance(error, Hole | Overlap):
        found = re.search(r"state (\w), trigger '(\w)'.* when (.+?)[:;]", text)
        assert found is not None, text
        witness = mask(found[3])
        claims = [m for m in by_case(parts)[S[found[1]], found[2]] if m & witness]
        assert witness
        assert (len(claims) == 0) if isinstance(error, Hole) else (len(claims) > 1)
    elif isinstance(error, DeadRow):
        guard = re.search(r"its guard `(.+)` never holds", text)
        assert guard is not None, text
        assert mask(guard[1]) == 0
    else:
        lost = re.search(r"no row leads to (\w);", text)
        assert isinstance(error, UnreachableState)
        assert lost is not None, text
        assert S[lost[1]] not in reached(parts)


@given(machines())
def test_the_two_interpreters_agree_on_the_whole_product(parts: list[Part]) -> None:
    """Every state, trigger and valuation, in both: the same entry, the same state after it."""
    try:
        machine = build(parts)
    except UnreachableState:
        reject()
    table, fired = Table(machine), Transitions(machine)
    for (state, trigger), there in machine.table.items():
        for bits in range(1 << len(there.atoms)):
            entry, after = table.fire(state, trigger, bits)
            again, after_again = fired.fire(state, trigger, bits)

            assert entry is again
            assert after is after_again is entry.target
            assert entry.guard.holds({atom.name: bool(bits >> n & 1) for n, atom in enumerate(there.atoms)})
    assert fired.machine.models == []


def test_one_transitions_machine_serves_every_core_of_a_declaration() -> None:
    """They are slow to build; and nothing that fires is ever registered in one."""
    parts = [Part(s, "s", always, t, ignore=True) for s, t in zip(S, (S.Q, S.R, S.P), strict=True)]
    machine = build(parts)
    shared = shared_transitions(machine)

    assert shared is shared_transitions(machine)
    assert shared is not shared_transitions(build(parts))
    assert isinstance(shared.machine, transitions.Machine)
    assert shared.fire(S.P, "s", 0)[1] is S.Q
    assert shared.machine.models == []


@pytest.mark.parametrize("interpreter", [Table, Transitions])
def test_a_mutant_with_a_hole_shows_it_where_it_is_met(interpreter: Any) -> None:
    """Whichever interpreter falls into it."""
    whole = build([Part(s, "s", always, t, ignore=True) for s, t in zip(S, (S.Q, S.R, S.P), strict=True)])
    broken = evolve(whole, rows=whole.rows[1:], validate=False)

    assert interpreter(broken).fire(S.Q, "s", 0)[1] is S.R
    with pytest.raises(Hole, match="S.P has no entry for 's' under valuation 0"):
        interpreter(broken).fire(S.P, "s", 0)


def test_a_trigger_may_be_called_anything() -> None:
    """``transitions`` refuses a trigger called like the attribute it keeps the state in, which is ours to choose."""
    parts = [Part(s, "state", always, t, ignore=True) for s, t in zip(S, (S.Q, S.R, S.P), strict=True)]

    assert Transitions(build(parts)).fire(S.P, "state", 0)[1] is S.Q
