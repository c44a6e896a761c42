"""The algebra of guards."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.toys import asks
from troth.spec import Guard, always, atom
from troth.spec.errors import BadGuard
from troth.spec.guards import merged_atoms, satisfiable, spelled, valuations

a, b, c = asks("a"), asks("b"), asks("c")
untyped: Any = a
"""What a reader without a type checker has: mypy refuses the misuses below by itself."""


def truths(guard: Guard) -> list[bool]:
    """The truth table of ``guard`` over a, b and c, with a changing slowest."""
    return [guard.holds({"a": x, "b": y, "c": z}) for x, y, z in product((False, True), repeat=3)]


def guards() -> st.SearchStrategy[Guard]:
    """Any guard over a, b and c."""
    leaves: st.SearchStrategy[Guard] = st.sampled_from([always, a, b, c])

    def combined(inner: st.SearchStrategy[Guard]) -> st.SearchStrategy[Guard]:
        return st.one_of(
            st.builds(Guard.__and__, inner, inner),
            st.builds(Guard.__or__, inner, inner),
            st.builds(Guard.__invert__, inner),
        )

    return st.recursive(leaves, combined, max_leaves=8)


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        (always, "11111111"),
        (~always, "00000000"),
        (a, "00001111"),
        (~a, "11110000"),
        (a & b, "00000011"),
        (a | b, "00111111"),
        (a & ~b | c, "01011101"),
        (~(a | b) & c, "01000000"),
    ],
    ids=str,
)
def test_a_guard_has_the_truth_table_of_its_expression(guard: Guard, expected: str) -> None:
    """``&`` binds before ``|``, as Python has it."""
    assert expected == "".join("01"[t] for t in truths(guard))


@given(guards())
def test_a_guard_is_spelled_as_it_could_be_written(guard: Guard) -> None:
    """Error messages and diagrams print guards; read back as Python, the text means the same."""
    again: Any = eval(str(guard), {}, {"a": a, "b": b, "c": c, "always": always})

    assert truths(guard) == truths(again)


@given(guards(), guards())
def test_negation_turns_and_into_or(left: Guard, right: Guard) -> None:
    """De Morgan, as a check of all three operators at once."""
    assert truths(~(left & right)) == truths(~left | ~right)


@given(guards())
def test_a_guard_is_satisfiable_when_its_table_has_a_true(guard: Guard) -> None:
    """Dead rows are found by this."""
    assert any(truths(guard)) == satisfiable(guard)


@given(guards())
def test_a_guard_lists_each_atom_once(guard: Guard) -> None:
    """The order is that of reading, which is the order of bits in a cell."""
    names = [found.name for found in guard.atoms()]

    assert sorted(set(names)) == sorted(names)
    assert names == sorted(names, key=re.findall(r"\w+", str(guard)).index)


def test_a_truth_table_lists_every_valuation_false_first() -> None:
    """Two atoms, four rows."""
    assert [spelled(v) for v in valuations(merged_atoms([a & b, b]))] == ["~a & ~b", "~a & b", "a & ~b", "a & b"]
    assert [spelled(v) for v in valuations(())] == ["always"]


@pytest.mark.parametrize("misuse", [lambda: untyped and b, lambda: untyped or b, lambda: not untyped, lambda: 1 if untyped else 2])
def test_and_or_not_are_refused(misuse: Any) -> None:
    """Python would quietly drop half of the expression."""
    with pytest.raises(BadGuard, match=r"guard a has no truth value .* combine guards with & \| ~ instead of and, or, not"):
        misuse()


@pytest.mark.parametrize("misuse", [lambda: untyped & True, lambda: untyped | (lambda view, event: True)])
def test_a_guard_combines_with_guards_only(misuse: Any) -> None:
    """A bare bool or function has no name to appear under in a table."""
    with pytest.raises(BadGuard, match=r"is not a guard: name it with atom\(\.\.\.\) first"):
        misuse()


def test_an_atom_needs_an_identifier_for_a_name() -> None:
    """The name is used in expressions, traces and TLA+."""
    with pytest.raises(BadGuard, match="atom 'is it': the name must be an identifier"):
        atom("is it", of=lambda view, event: True)


def test_an_atom_needs_a_function() -> None:
    """A constant is not a question."""
    answer: Any = True
    with pytest.raises(BadGuard, match="atom 'yes': of must be a function"):
        atom("yes", of=answer)


def test_what_an_atom_reads_is_a_list() -> None:
    """A string is a list of letters to Python, so it is refused."""
    with pytest.raises(BadGuard, match=r"atom 'yes': reads must list machines, got the string 'lease'; write reads=\['lease'\]"):
        atom("yes", reads="lease", of=lambda view, event: True)
