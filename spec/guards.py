"""Guards: boolean expressions over named atoms.

An *atom* is a question about the party as it was before the step and about the event at hand. It says which machines it reads, so
that a reader, and a tool that recomputes only what a change touches, need not look inside. A *guard* combines atoms with ``&``,
``|`` and ``~``; because it is an expression and not a function, whether the rows of a table overlap or leave a hole is decided
by truth table when the table is built, and not by luck at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NoReturn

from attrs import field, frozen

from troth.spec.errors import BadGuard

Valuation = Mapping[str, bool]


class Guard:
    """A boolean expression over atoms. Combine with ``&``, ``|``, ``~``; never with ``and``, ``or``, ``not``."""

    __slots__ = ()

    def holds(self, valuation: Valuation) -> bool:
        """Evaluate under an assignment of every atom's name to a bool."""
        raise NotImplementedError

    def atoms(self) -> tuple[Atom, ...]:
        """The atoms used, each once, in reading order."""
        raise NotImplementedError

    def __and__(self, other: Guard) -> Guard:
        return And(self, _guard(other))

    def __or__(self, other: Guard) -> Guard:
        return Or(self, _guard(other))

    def __invert__(self) -> Guard:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise BadGuard(f"guard {self} has no truth value of its own: combine guards with & | ~ instead of and, or, not")


def _guard(value: object) -> Guard:
    if not isinstance(value, Guard):
        raise BadGuard(f"{value!r} is not a guard: name it with atom(...) first")
    return value


@frozen
class Always(Guard):
    """The guard of a row that asks nothing."""

    def holds(self, valuation: Valuation) -> bool:  # noqa: ARG002
        return True

    def atoms(self) -> tuple[Atom, ...]:
        return ()

    def __str__(self) -> str:
        return "always"


always = Always()


@frozen
class Atom(Guard):
    """One named question. ``of(view, event)`` must return a real bool and may read only the machines named in ``reads``."""

    name: str
    reads: tuple[str, ...] = field(eq=False)
    of: Callable[[Any, Any], bool] = field(eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.name.isidentifier():
            raise BadGuard(f"atom {self.name!r}: the name must be an identifier")
        if not callable(self.of):
            raise BadGuard(f"atom {self.name!r}: of must be a function (view, event) -> bool, got {self.of!r}")

    def holds(self, valuation: Valuation) -> bool:
        return valuation[self.name]

    def atoms(self) -> tuple[Atom, ...]:
        return (self,)

    def __str__(self) -> str:
        return self.name


def atom(name: str, *, reads: Iterable[str] = (), of: Callable[[Any, Any], bool]) -> Atom:
    """Name a question. ``reads`` lists the machines it looks at; the row's own instance and the configuration are always readable."""
    if isinstance(reads, str):
        raise BadGuard(f"atom {name!r}: reads must list machines, got the string {reads!r}; write reads=[{reads!r}]")
    return Atom(name, tuple(reads), of)


@frozen
class Not(Guard):
    """Negation."""

    inner: Guard

    def holds(self, valuation: Valuation) -> bool:
        return not self.inner.holds(valuation)

    def atoms(self) -> tuple[Atom, ...]:
        return self.inner.atoms()

    def __str__(self) -> str:
        return f"~{_bracketed(self.inner)}"


@frozen
class And(Guard):
    """Conjunction."""

    left: Guard
    right: Guard

    def holds(self, valuation: Valuation) -> bool:
        return self.left.holds(valuation) and self.right.holds(valuation)

    def atoms(self) -> tuple[Atom, ...]:
        return _merged(self.left.atoms(), self.right.atoms())

    def __str__(self) -> str:
        return " & ".join(str(side) if isinstance(side, And) else _bracketed(side) for side in (self.left, self.right))


@frozen
class Or(Guard):
    """Disjunction."""

    left: Guard
    right: Guard

    def holds(self, valuation: Valuation) -> bool:
        return self.left.holds(valuation) or self.right.holds(valuation)

    def atoms(self) -> tuple[Atom, ...]:
        return _merged(self.left.atoms(), self.right.atoms())

    def __str__(self) -> str:
        return " | ".join(str(side) if isinstance(side, Or) else _bracketed(side) for side in (self.left, self.right))


def _bracketed(guard: Guard) -> str:
    return f"({guard})" if isinstance(guard, And | Or) else str(guard)


def _merged(left: tuple[Atom, ...], right: tuple[Atom, ...]) -> tuple[Atom, ...]:
    return left + tuple(a for a in right if a not in left)


def merged_atoms(guards: Iterable[Guard]) -> tuple[Atom, ...]:
    """Every atom of ``guards``, each once, in reading order."""
    found: tuple[Atom, ...] = ()
    for guard in guards:
        found = _merged(found, guard.atoms())
    return found


def valuations(atoms: Iterable[Atom]) -> Iterator[dict[str, bool]]:
    """Every assignment of the atoms, false first: the rows of a truth table."""
    names = [a.name for a in atoms]
    for bits in product((False, True), repeat=len(names)):
        yield dict(zip(names, bits, strict=True))


def satisfiable(guard: Guard) -> bool:
    """Whether any assignment of its atoms makes ``guard`` true."""
    return any(guard.holds(v) for v in valuations(guard.atoms()))


def spelled(valuation: Valuation) -> str:
    """A valuation as the guard that only it satisfies: ``a & ~b``, or ``always`` when there is nothing to ask."""
    return " & ".join(name if value else f"~{name}" for name, value in valuation.items()) or "always"
