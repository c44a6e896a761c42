"""What properties say: expressions over observations, which both engines can evaluate.

``gate.open & ~kiosk.paid`` builds an expression; nothing is evaluated until a search runs. Use ``& | ~ ^`` and ``>>`` (implies) on
booleans and the comparisons, ``+`` and ``-`` on numbers. Python's own ``and or not if`` cannot be overloaded and raise a
``TypeError`` that says so. ``x.next`` is the value of ``x`` after a step, for step properties only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeAlias

from troth.models.errors import WorldError
from troth.models.system import State, System

Value: TypeAlias = bool | int
Evaluator: TypeAlias = Callable[[State, State], Value]
"""Called with a state and, for step properties, the state after it (else the same state again)."""

OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
}
BOOLEAN: Final = frozenset({"&", "|", "^", "~"})
ARITHMETIC: Final = frozenset({"+", "-"})
LARGEST: Final = 1 << 53
"""The largest number, either side of 0, that a property may see or compute: both engines count alike up to it, with room to spare."""


class Expr:
    """An expression over a world's observations. Build them from handles; see the module."""

    def __and__(self, other: Expr | Value) -> Expr:
        return Op("&", (self, lift(other)))

    def __rand__(self, other: Value) -> Expr:
        return Op("&", (lift(other), self))

    def __or__(self, other: Expr | Value) -> Expr:
        return Op("|", (self, lift(other)))

    def __ror__(self, other: Value) -> Expr:
        return Op("|", (lift(other), self))

    def __xor__(self, other: Expr | Value) -> Expr:
        return Op("^", (self, lift(other)))

    def __invert__(self) -> Expr:
        return Op("~", (self,))

    def __rshift__(self, other: Expr | Value) -> Expr:
        """Implies. A property of this form whose left side is never true is reported as vacuous."""
        return Implies(self, lift(other))

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return Op("==", (self, lift(other)))

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return Op("!=", (self, lift(other)))

    def __lt__(self, other: Expr | Value) -> Expr:
        return Op("<", (self, lift(other)))

    def __le__(self, other: Expr | Value) -> Expr:
        return Op("<=", (self, lift(other)))

    def __gt__(self, other: Expr | Value) -> Expr:
        return Op(">", (self, lift(other)))

    def __ge__(self, other: Expr | Value) -> Expr:
        return Op(">=", (self, lift(other)))

    def __add__(self, other: Expr | Value) -> Expr:
        return Op("+", (self, lift(other)))

    def __radd__(self, other: Value) -> Expr:
        return Op("+", (lift(other), self))

    def __sub__(self, other: Expr | Value) -> Expr:
        return Op("-", (self, lift(other)))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self}` has no truth value before a search; combine expressions with & | ~ >> and compare with ==, not and/or/not/if"
        )

    @property
    def next(self) -> Expr:
        """The value after the step, in a step property."""
        raise NotImplementedError

    @property
    def components(self) -> frozenset[int]:
        """The components whose local states decide the value."""
        raise NotImplementedError

    @property
    def primed(self) -> bool:
        """Whether a ``next`` is in it."""
        raise NotImplementedError

    def compiled(self, system: System) -> Evaluator:
        """A function that evaluates the expression on numbered global states of ``system``."""
        raise NotImplementedError


def lift(value: object) -> Expr:
    """A constant as an expression."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool | int):
        return Const(_in_range(value, "a property says"))
    raise WorldError(f"{value!r} cannot be part of a property; observations are bools and ints, so compare with one of those")


class Const(Expr):
    """A bool or an int."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __str__(self) -> str:
        return str(self.value)

    @property
    def next(self) -> Expr:
        return self

    @property
    def components(self) -> frozenset[int]:
        return frozenset()

    @property
    def primed(self) -> bool:
        return False

    def compiled(self, system: System) -> Evaluator:  # noqa: ARG002
        value = self.value
        return lambda state, after: value


class Leaf(Expr):
    """A value that the local state of one component decides. ``of`` gets the component's index in a system and a local number."""

    def __init__(self, component: int, of: Callable[[System, int], Value], text: str, *, primed: bool = False) -> None:
        self.component = component
        self.of = of
        self.text = text
        self._primed = primed

    def __str__(self) -> str:
        return f"{self.text}'" if self._primed else self.text

    @property
    def next(self) -> Expr:
        return Leaf(self.component, self.of, self.text, primed=True)

    @property
    def components(self) -> frozenset[int]:
        return frozenset({self.component})

    @property
    def primed(self) -> bool:
        return self._primed

    def value(self, system: System, local: int) -> Value:
        """The value in local state number ``local``; a bool or an int, else ``WorldError``."""
        found = self.of(system, local)
        if not isinstance(found, bool | int):
            raise WorldError(f"{self.text} gave {found!r} ({type(found).__name__}); an observation must be a bool or an int")
        return _in_range(found, f"{self.text} gave")

    def compiled(self, system: System) -> Evaluator:
        memo: dict[int, Value] = {}
        component, primed = self.component, self._primed

        def evaluate(state: State, after: State) -> Value:
            local = (after if primed else state)[component]
            found = memo.get(local)
            if found is None:
                found = memo[local] = self.value(system, local)
            return found

        return evaluate


class Op(Expr):
    """An operator of ``OPERATORS``, or ``~``, applied to expressions."""

    def __init__(self, name: str, args: Sequence[Expr]) -> None:
        self.name = name
        self.args = tuple(args)

    def __str__(self) -> str:
        if self.name == "~":
            return f"~{_bracketed(self.args[0])}"
        return f" {self.name} ".join(_bracketed(arg) for arg in self.args)

    @property
    def next(self) -> Expr:
        return Op(self.name, [arg.next for arg in self.args])

    @property
    def components(self) -> frozenset[int]:
        return frozenset().union(*(arg.components for arg in self.args))

    @property
    def primed(self) -> bool:
        return any(arg.primed for arg in self.args)

    def compiled(self, system: System) -> Evaluator:
        parts = [arg.compiled(system) for arg in self.args]
        first = parts[0]
        if self.name == "~":
            return lambda state, after: not boolean(first(state, after), self)
        second = parts[1]
        if self.name == "&":
            return lambda state, after: _both(boolean(first(state, after), self), boolean(second(state, after), self))
        if self.name == "|":
            return lambda state, after: _either(boolean(first(state, after), self), boolean(second(state, after), self))
        if self.name == "^":
            return lambda state, after: boolean(first(state, after), self) is not boolean(second(state, after), self)
        apply = OPERATORS[self.name]
        if self.name in ARITHMETIC:
            text = str(self)
            return lambda state, after: _in_range(apply(first(state, after), second(state, after)), f"`{text}` gave")
        result: Evaluator = lambda state, after: apply(first(state, after), second(state, after))  # noqa: E731
        return result


class Implies(Op):
    """``left >> right``. Kept apart from ``~left | right`` so that vacuity can be seen."""

    def __init__(self, left: Expr, right: Expr) -> None:
        super().__init__("|", (Op("~", (left,)), right))
        self.left = left
        self.right = right

    def __str__(self) -> str:
        return f"{_bracketed(self.left)} >> {_bracketed(self.right)}"

    @property
    def next(self) -> Expr:
        return Implies(self.left.next, self.right.next)


class Joint(Expr):
    """A bool or int that a Python function computes from the states of several components, once for each combination seen.

    ``fn`` gets one argument per component, what ``views`` makes of its local state. It must be pure.
    """

    def __init__(
        self,
        fn: Callable[..., Value],
        where: Sequence[int],
        views: Sequence[Callable[[System, int], Any]],
        text: str,
        *,
        primed: bool = False,
    ) -> None:
        self.fn = fn
        self.where = tuple(where)
        self.views = tuple(views)
        self.text = text
        self._primed = primed

    def __str__(self) -> str:
        return f"{self.text}'" if self._primed else self.text

    @property
    def next(self) -> Expr:
        return Joint(self.fn, self.where, self.views, self.text, primed=True)

    @property
    def components(self) -> frozenset[int]:
        return frozenset(self.where)

    @property
    def primed(self) -> bool:
        return self._primed

    def value(self, system: System, locals_: Sequence[int]) -> Value:
        """The value for these local numbers, in the order of ``where``."""
        found = self.fn(*(view(system, local) for view, local in zip(self.views, locals_, strict=True)))
        if not isinstance(found, bool | int):
            raise WorldError(f"{self.text} gave {found!r} ({type(found).__name__}); it must give a bool or an int")
        return _in_range(found, f"{self.text} gave")

    def compiled(self, system: System) -> Evaluator:
        memo: dict[tuple[int, ...], Value] = {}
        where, primed = self.where, self._primed

        def evaluate(state: State, after: State) -> Value:
            source = after if primed else state
            key = tuple(source[i] for i in where)
            found = memo.get(key)
            if found is None:
                found = memo[key] = self.value(system, key)
            return found

        return evaluate


def _in_range(value: Value, what: str) -> Value:
    if not -LARGEST <= value <= LARGEST:
        raise WorldError(
            f"{what} {value}; numbers in properties go from -2**53 to 2**53, so let it be observed modulo something, or capped"
        )
    return value


def _both(left: bool, right: bool) -> bool:
    # Both sides are always evaluated: the vector engine cannot stop half way, and the two must agree on what raises.
    return left and right


def _either(left: bool, right: bool) -> bool:
    return left or right


def boolean(value: Value, where: Expr) -> bool:
    """``value``, which must be a real bool."""
    if type(value) is not bool:
        raise WorldError(f"`{where}` combines {value!r}, which is a number, as if it were true or false; compare it first")
    return value


def observed(component: int, owner: str, name: str) -> Leaf:
    """The observation ``name`` of a component."""

    def of(system: System, local: int) -> Value:
        found = system.components[component].observed(local)
        if name not in found:
            have = ", ".join(sorted(found)) or "none"
            raise WorldError(f"{owner} has no observation {name!r}; it has {have}")
        return found[name]

    return Leaf(component, of, f"{owner}.{name}")


def looked_at(component: int, owner: str, fn: Callable[[Hashable], Value], text: str | None = None) -> Leaf:
    """A predicate of a component's own state."""
    label = text or f"{owner}.where({getattr(fn, '__name__', 'predicate')})"
    return Leaf(component, lambda system, local: fn(system.components[component].states[local]), label)


def every(*parts: Expr | Value) -> Expr:
    """True when all parts are."""
    return _folded("&", parts, empty=True)


def any_of(*parts: Expr | Value) -> Expr:
    """True when some part is."""
    return _folded("|", parts, empty=False)


def _folded(name: str, parts: Sequence[Expr | Value], *, empty: bool) -> Expr:
    lifted = [lift(part) for part in parts]
    if not lifted:
        return Const(empty)
    result = lifted[0]
    for part in lifted[1:]:
        result = Op(name, (result, part))
    return result


def _bracketed(part: Expr) -> str:
    return f"({part})" if isinstance(part, Op) and part.name != "~" else str(part)
