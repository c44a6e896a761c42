"""Expressions over observations as TLA+: each observation is a finite function of a component's local state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from troth.models.errors import WorldError
from troth.models.expressions import BOOLEAN, Const, Expr, Implies, Joint, Leaf, Op, Value
from troth.models.properties import Property, PropertyKind
from troth.models.system import System
from troth.models.tla.names import Names, comment, defined, filled
from troth.models.tla.tables import ComponentTable, Tables

JOINT_LIMIT = 200_000
"""Combinations of local states up to which a condition on several components is written out."""


JointKey: TypeAlias = "tuple[Callable[..., Value], tuple[int, ...]]"


class NotExpressible(WorldError):
    """An expression that has no form in the exported module; the message says why."""


class Watching:
    """What a search has to note down for an export: the local states in global states, and what joint conditions said."""

    def __init__(self, system: System, exprs: Iterable[Expr]) -> None:
        self.resting: list[set[int]] = [set() for _ in system.components]
        self.joints: dict[JointKey, dict[tuple[int, ...], Value | Exception]] = {}
        noted: list[Expr] = [Leaf(i, self._noting(i), f"local state {i}") for i in range(len(system.components))]
        for expr in exprs:
            for joint in _joints(expr):
                if _key(joint) not in self.joints:
                    values = self.joints[_key(joint)] = {}
                    noted.append(_Noted(joint, values))
        # Always true, and evaluated in every state: so that the engines need to know nothing of exports.
        self.properties = [Property(f"noted {n}", "", PropertyKind.ALWAYS, Op("==", (expr, expr))) for n, expr in enumerate(noted)]

    def _noting(self, index: int) -> Callable[[System, int], Value]:
        def note(system: System, local: int) -> Value:  # noqa: ARG001
            self.resting[index].add(local)
            return local

        return note


class _Noted(Joint):
    """A joint condition that notes every combination it is asked for."""

    def __init__(self, joint: Joint, values: dict[tuple[int, ...], Value | Exception]) -> None:
        super().__init__(joint.fn, joint.where, joint.views, joint.text)
        self.noted = values

    def value(self, system: System, locals_: Sequence[int]) -> Value:
        """The value; 0 where there is none."""
        key = tuple(locals_)
        try:
            self.noted[key] = super().value(system, key)
        except Exception as error:  # it is for the export to say that such a property has no form
            self.noted[key] = error
        return 0


class Text(NamedTuple):
    """An expression in TLA+, and whether it is a bool or a number there."""

    text: str
    is_bool: bool


class Claims:
    """Turns expressions into TLA+ and collects the definitions that they need."""

    def __init__(self, system: System, tables: Tables, variables: Sequence[str], names: Names, watching: Watching) -> None:
        self.system = system
        self.tables = tables
        self.variables = tuple(variables)
        self.names = names
        self.watching = watching
        self.lines: list[str] = []
        """Definitions of functions, in the order in which they are needed."""
        self._functions: dict[tuple[int, str, tuple[str, ...]], str] = {}
        self._sets: dict[JointKey, str] = {}

    def condition(self, expr: Expr) -> str:
        """A boolean expression. Raises ``NotExpressible``."""
        return self._bool(expr)

    def value(self, expr: Expr) -> str:
        """A boolean or a number."""
        return self._text(expr).text

    def function(self, component: int, name: str, values: Sequence[Value]) -> str:
        """The name of the function with these values for local states 1, 2, ... of a component: defined once."""
        table, variable = self.tables.components[component], self.variables[component]
        rest = name.removeprefix(f"{table.name}.")
        written = tuple(_written(value) for value in values)
        found = self._functions.get((component, rest, written))
        if found is None:
            found = self._functions[component, rest, written] = self.names.given(f"{variable}_{rest}")
            self.lines += [comment(f"{table.name}: {rest}"), *defined(found, written)]
        return found

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _bool(self, expr: Expr) -> str:
        found = self._text(expr)
        if not found.is_bool:
            raise NotExpressible(f"`{expr}` is a number where a condition is needed")
        return found.text

    def _number(self, found: Text) -> str:
        return f"(IF {found.text} THEN 1 ELSE 0)" if found.is_bool else found.text

    def _text(self, expr: Expr) -> Text:
        match expr:
            case Const():
                return Text(_written(expr.value), isinstance(expr.value, bool))
            case Leaf():
                return self._leaf(expr)
            case Joint():
                return Text(self._joint(expr), is_bool=True)
            case Implies():
                return Text(f"({self._bool(expr.left)} => {self._bool(expr.right)})", is_bool=True)
            case Op():
                return self._operator(expr)
        raise NotExpressible(f"`{expr}` is a {type(expr).__name__}")

    def _operator(self, expr: Op) -> Text:
        if expr.name == "~":
            return Text(f"~{self._bool(expr.args[0])}", is_bool=True)
        if expr.name in BOOLEAN:
            left, right = (self._bool(arg) for arg in expr.args)
            return Text(f"({left} {CONNECTIVES[expr.name]} {right})", is_bool=True)
        first, second = (self._text(arg) for arg in expr.args)
        if expr.name in ("==", "!=") and first.is_bool and second.is_bool:
            return Text(f"({first.text} {COMPARISONS[expr.name]} {second.text})", is_bool=True)
        # In Python, True is 1.
        numbers = f"{self._number(first)} {COMPARISONS[expr.name]} {self._number(second)}"
        return Text(f"({numbers})", is_bool=expr.name not in ("+", "-"))

    def _variable(self, component: int, *, primed: bool) -> str:
        return self.variables[component] + ("'" if primed else "")

    def _leaf(self, leaf: Leaf) -> Text:
        table = self.tables.components[leaf.component]
        values: list[Value] = []
        for local, number in table.numbers.items():
            if number <= table.resting:
                values.append(self._valued(leaf, local))
        is_bool = all(isinstance(value, bool) for value in values)
        name = self.function(leaf.component, leaf.text, values if is_bool else [int(value) for value in values])
        return Text(f"{name}[{self._variable(leaf.component, primed=leaf.primed)}]", is_bool)

    def _valued(self, leaf: Leaf, local: int) -> Value:
        try:
            return leaf.value(self.system, local)
        except Exception as error:
            table = self.system.components[leaf.component]
            state = table.component.spelled(table.states[local])
            raise NotExpressible(f"`{leaf}` raises {type(error).__name__}: {error}, in state {state}") from error

    def _joint(self, joint: Joint) -> str:
        """As the set of combinations for which it is true, by the number of the first component."""
        values = self.watching.joints[_key(joint)]
        if len(values) > JOINT_LIMIT:
            raise NotExpressible(f"`{joint}` looks at {len(values):,} combinations of local states, more than {JOINT_LIMIT:,}")
        for value in values.values():
            if isinstance(value, Exception):
                raise NotExpressible(f"`{joint}` raises {type(value).__name__}: {value}")
            if not isinstance(value, bool):
                raise NotExpressible(f"`{joint}` gives numbers; only conditions on several components are written out")
        name = self._sets.get(_key(joint))
        if name is None:
            name = self._sets[_key(joint)] = self.names.given(joint.text.partition("(")[0])
            self.lines += self._set(name, joint, {key for key, value in values.items() if value is True})
        places = [self._variable(i, primed=joint.primed) for i in joint.where]
        if len(places) == 1:
            return f"{places[0]} \\in {name}"
        rest = places[1] if len(places) == 2 else f"<<{', '.join(places[1:])}>>"
        return f"({rest} \\in {name}[{places[0]}])"

    def _set(self, name: str, joint: Joint, true: set[tuple[int, ...]]) -> list[str]:
        tables = [self.tables.components[i] for i in joint.where]
        numbered = sorted(tuple(t.numbers[n] for t, n in zip(tables, key, strict=True)) for key in true)
        named = ", ".join(t.name for t in tables)
        lines = [comment(f"{joint.text}: the local states of {named} together for which it is true")]
        if len(tables) == 1:
            return [*lines, f"{name} == {_braces([str(key[0]) for key in numbered])}"]
        by_first: dict[int, list[str]] = {number: [] for number in range(1, tables[0].resting + 1)}
        for first, *others in numbered:
            by_first[first].append(str(others[0]) if len(others) == 1 else f"<<{', '.join(map(str, others))}>>")
        rows = [_braces(by_first[number]) for number in sorted(by_first)]
        return [*lines, f"{name} == <<", *_rows(rows), ">>"]


CONNECTIVES: Mapping[str, str] = {"&": "/\\", "|": "\\/", "^": "#"}
COMPARISONS: Mapping[str, str] = {"==": "=", "!=": "#", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "+": "+", "-": "-"}


def observations(claims: Claims, table: ComponentTable) -> None:
    """Define a function for each named observation of a component, whether a property needs it or not."""
    found = claims.system.components[table.index]
    seen = [found.observed(local) for local, number in table.numbers.items() if number <= table.resting]
    for name in sorted(seen[0]):
        claims.function(table.index, name, [values[name] for values in seen])


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(int(value))


def _braces(parts: Sequence[str]) -> str:
    lines = filled(parts, "")
    return "{" + "\n      ".join(lines) + "}"


def _rows(rows: Sequence[str]) -> list[str]:
    return [f"  {row}," for row in rows[:-1]] + [f"  {row}" for row in rows[-1:]]


def _joints(expr: Expr) -> list[Joint]:
    if isinstance(expr, Joint):
        return [expr]
    return [joint for arg in expr.args for joint in _joints(arg)] if isinstance(expr, Op) else []


def _key(joint: Joint) -> JointKey:
    """What is the same before and after a step."""
    return joint.fn, joint.where
