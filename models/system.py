"""The closed list of components and actions that both search engines read.

A *component* is anything with local states and a ``react``. A global state is one local state of each. An *action* is a list of
*items*, and an item is an operation put to one component. Taking an action means working through the items in order: each
component reacts to its operation with a new local state and, possibly, further items, which go to the end of the list; an item
that has no outcome blocks the whole action. So "the network delivers the head of this link" is one item for the link; the link
reacts by giving an item to the party; the party's step gives items to other links; and all of it is one atomic edge.

What is left of the list at any moment is a *symbol*. A symbol and the local state of the component that its first item is for
decide everything that can happen next: that pair is what is tabulated, once, by calling the real core. Local states, items and
symbols are interned, so that after the tabulation a search handles small integers only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from time import perf_counter
from typing import NamedTuple, TypeAlias

from attrs import frozen

from troth.models.canonical import admit, alike, digest, not_alike, spelled
from troth.models.errors import NotCanonical, WorldError
from troth.models.steadiness import ask, compare, twice

State: TypeAlias = tuple[int, ...]
"""A global state: the number of each component's local state, in the order of the components."""

Item: TypeAlias = tuple[int, Hashable]
"""(component index, operation)."""

ITEMS_LIMIT = 64
"""Items that may be pending in one action before it is said that its components answer each other for ever."""
CHAIN_LIMIT = 256
"""Reactions that one action may take."""

DONE = 0
"""The symbol of an action with nothing left to do (unlabelled)."""
TRUNCATED = 1
"""The symbol of an action that a bound of the world cut short: counted, not taken, and the verdict is no better than "unknown"."""
NOWHERE = -1


class Outcome(NamedTuple):
    """One thing that may come of an operation."""

    state: Hashable
    emits: tuple[Item, ...] = ()
    variant: Hashable = None
    """Tells this outcome from the others of the same action, in traces and for fairness: a message, a timer."""
    rows: tuple[str, ...] = ()
    guards: tuple[tuple[str, bool], ...] = ()
    note: str = ""
    """What to tell a reader, where the rows do not: ``full, lost`` or ``refused: ...``."""
    truncated: bool = False


class Component:
    """Base of everything that has local states. ``initial`` and all states are hashable canonical values."""

    kind = "component"

    def __init__(self, name: str, initial: Hashable) -> None:
        self.name = name
        self.initial = initial

    def react(self, state: Hashable, operation: Hashable) -> tuple[Outcome, ...]:
        """Everything that may come of ``operation`` in ``state``; nothing means that the action is blocked. Pure."""
        raise NotImplementedError

    def observe(self, state: Hashable) -> Mapping[str, bool | int]:  # noqa: ARG002
        """Named observations of a local state, for properties."""
        return {}

    def spelled(self, state: Hashable) -> str:
        """A local state for a reader."""
        return spelled(state)


class Check:
    """An operation that any component takes: it changes nothing, and blocks unless ``holds(system, local)``."""

    def __init__(self, text: str, holds: Callable[[System, int], bool]) -> None:
        self.text = text
        self.holds = holds

    def emits(self, system: System, local: int) -> tuple[Item, ...] | None:
        """What follows; ``None`` blocks."""
        return () if self.holds(system, local) else None

    def __str__(self) -> str:
        return f"check {self.text}"


class ActionKind(Enum):
    """What an action is, for fairness and for the words of a trace."""

    CALL = "call"
    DELIVER = "deliver"
    LOSE = "lose"
    DUPLICATE = "duplicate"
    TIMER = "timer"
    TICK = "tick"
    CRASH = "crash"
    RESTART = "restart"
    CUT = "cut"
    CONNECT = "connect"


@frozen
class Action:
    """Something that may happen: ``items`` in order, all or nothing. ``who`` acts (``network``, ``clock``, a party's name)."""

    name: str
    kind: ActionKind
    who: str
    items: tuple[Item, ...]
    about: tuple[int, ...] = ()
    """The components that the action is likely to touch, the first item's first: a hint for the vector engine, nothing more."""


class Label(NamedTuple):
    """What an edge is called: the action's index and the variants its components chose, in order."""

    action: int
    variants: tuple[Hashable, ...] = ()


class Branch(NamedTuple):
    """A tabulated ``Outcome``: interned."""

    target: int
    emits: tuple[int, ...]
    variant: Hashable
    rows: tuple[str, ...]
    guards: tuple[tuple[str, bool], ...]
    note: str
    truncated: bool


class Tabulated:
    """One component with everything that was learnt about it: local states by number, and reactions by (state, item)."""

    def __init__(self, component: Component, index: int) -> None:
        self.component = component
        self.index = index
        self.states: list[Hashable] = []
        self.numbers: dict[Hashable, int] = {}
        self.calls: dict[tuple[int, int], tuple[Branch, ...]] = {}
        self.seconds = 0.0
        self.frozen = False
        """While several processes search, none of them may number a state on its own: ``number`` then gives ``NOWHERE`` for a new one."""
        self._observed: dict[int, Mapping[str, bool | int]] = {}
        self._digests: dict[int, int] = {}
        self.number(component.initial)

    def number(self, state: Hashable) -> int:
        """The number of a local state, given on first sight."""
        try:
            found = self.numbers.get(state)
        except TypeError as error:
            raise _no_key(f"{self.component.name} is in state", state, error) from error
        if found is None:
            if self.frozen:
                return NOWHERE
            self._admit(state)
            found = self.numbers[state] = len(self.states)
            self.states.append(state)
        elif not alike(known := self.states[found], state):
            raise not_alike(self.component.name, known, state)
        return found

    def _admit(self, state: Hashable) -> None:
        try:
            admit(state)
        except NotCanonical as error:
            raise NotCanonical(f"{self.component.name}: {error}") from error

    def observed(self, local: int) -> Mapping[str, bool | int]:
        """The observations of local state number ``local``."""
        found = self._observed.get(local)
        if found is None:
            found = self._observed[local] = self.component.observe(self.states[local])
        return found

    def digest(self, local: int) -> int:
        """A 64-bit name of a local state that does not depend on the numbering."""
        found = self._digests.get(local)
        if found is None:
            found = self._digests[local] = digest(self.component.name, self.states[local])
        return found


def _no_key(what: str, value: object, error: TypeError) -> WorldError:
    return WorldError(f"{what} {value!r}, which cannot be numbered ({error}); make it of tuples, frozensets and frozen values")


class System:
    """Components and actions, with their tabulation. Both engines and every export work on this."""

    def __init__(self, components: Sequence[Component], actions: Sequence[Action]) -> None:
        self.components = tuple(Tabulated(c, i) for i, c in enumerate(components))
        self.actions = tuple(actions)
        names = [c.name for c in components]
        for name in names:
            if names.count(name) > 1:
                raise WorldError(f"two components are called {name!r}; rename one")
        self.items: list[Item] = []
        self._item_numbers: dict[Item, int] = {}
        self.labels: list[Label] = []
        self._label_numbers: dict[Label, int] = {}
        self.symbols: list[tuple[int, tuple[int, ...]]] = []
        self.heads: list[int] = []
        self._symbol_numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._resolved: defaultdict[int, dict[int, tuple[tuple[int, int], ...]]] = defaultdict(dict)
        """For each symbol: what it becomes, by the local state of its head."""
        self._symbol(NOWHERE, ())
        self.symbols.append((NOWHERE, (NOWHERE,)))
        self.heads.append(NOWHERE)
        self.initial: State = (0,) * len(self.components)
        self.doubts = True
        """Whether some answers are asked for twice, to see that they agree. A mutant's are not: its original's were."""
        self.roots = tuple(self._root(i, labelled=False) for i in range(len(self.actions)))
        self.labelled_roots = tuple(self._root(i, labelled=True) for i in range(len(self.actions)))

    # -- interning -----------------------------------------------------------------------------------------------------

    def item(self, item: Item) -> int:
        """The number of an item."""
        try:
            found = self._item_numbers.get(item)
        except TypeError as error:
            raise _no_key(f"{self.name(item[0])} is given", item[1], error) from error
        if found is None:
            found = self._item_numbers[item] = len(self.items)
            self.items.append(item)
        elif not alike(known := self.items[found][1], item[1]):
            raise not_alike(f"what is given to {self.name(item[0])}", known, item[1])
        return found

    def _label(self, label: Label) -> int:
        found = self._label_numbers.get(label)
        if found is None:
            found = self._label_numbers[label] = len(self.labels)
            self.labels.append(label)
        return found

    def _symbol(self, label: int, items: tuple[int, ...]) -> int:
        key = label, items
        found = self._symbol_numbers.get(key)
        if found is None:
            if len(items) > ITEMS_LIMIT:
                where = self.components[self.items[items[0]][0]].component.name
                raise WorldError(
                    f"more than {ITEMS_LIMIT} things are pending in one action, the first for {where}; components answer each other"
                )
            found = self._symbol_numbers[key] = len(self.symbols)
            self.symbols.append(key)
            self.heads.append(self.items[items[0]][0] if items else NOWHERE)
        return found

    def _root(self, action: int, *, labelled: bool) -> int:
        items = self.actions[action].items
        if not items:
            raise WorldError(f"action {self.actions[action].name!r} does nothing; give it at least one item")
        label = self._label(Label(action)) if labelled else NOWHERE
        return self._symbol(label, tuple(self.item(item) for item in items))

    def label_of(self, symbol: int) -> Label:
        """The label of a labelled symbol."""
        return self.labels[self.symbols[symbol][0]]

    # -- tabulation ----------------------------------------------------------------------------------------------------

    def call(self, component: int, local: int, item: int) -> tuple[Branch, ...]:
        """What an item does in a local state, from the table or by asking the component."""
        table = self.components[component]
        found = table.calls.get((local, item))
        if found is None:
            found = self._tabulate(table, local, item)
            if not table.frozen or all(branch.target != NOWHERE for branch in found):
                table.calls[local, item] = found
        return found

    def _tabulate(self, table: Tabulated, local: int, item: int) -> tuple[Branch, ...]:
        started = perf_counter()
        operation = self.items[item][1]
        branches = self.answered(table, local, operation)
        if self.doubts and twice(len(table.calls)) and not isinstance(operation, Check):
            compare(self, table, local, operation, branches)
        table.seconds += perf_counter() - started
        return branches

    def answered(self, table: Tabulated, local: int, operation: Hashable) -> tuple[Branch, ...]:
        """What a component answers now, whatever the table says."""
        if isinstance(operation, Check):
            emits = operation.emits(self, local)
            return () if emits is None else (Branch(local, tuple(self.item(e) for e in emits), None, (), (), "", truncated=False),)
        return tuple(
            Branch(table.number(o.state), tuple(self.item(e) for e in o.emits), o.variant, o.rows, o.guards, o.note, o.truncated)
            for o in ask(table.component, table.states[local], operation)
        )

    def resolve(self, symbol: int, local: int) -> tuple[tuple[int, int], ...]:
        """What a symbol may become in a local state of its head: pairs (new local state, new symbol)."""
        known = self._resolved[symbol]
        found = known.get(local)
        if found is None:
            found = self._resolve(symbol, local)
            if all(target != NOWHERE for target, _ in found):
                known[local] = found
        return found

    def _resolve(self, symbol: int, local: int) -> tuple[tuple[int, int], ...]:
        label, items = self.symbols[symbol]
        result = []
        for branch in self.call(self.heads[symbol], local, items[0]):
            if branch.truncated:
                result.append((local, TRUNCATED))
                continue
            named = label
            if label != NOWHERE and branch.variant is not None:
                known = self.labels[label]
                named = self._label(Label(known.action, (*known.variants, branch.variant)))
            result.append((branch.target, self._symbol(named, items[1:] + branch.emits)))
        return tuple(result)

    # -- edges ---------------------------------------------------------------------------------------------------------

    def successors(self, state: State, *, labelled: bool = False) -> list[tuple[State, int]]:
        """Every edge out of ``state`` as (target, symbol): ``DONE`` or ``TRUNCATED``, or a labelled symbol for ``label_of``.

        In the order of the actions and of the components' answers, which does not depend on any numbering.
        """
        edges: list[tuple[State, int]] = []
        heads, resolved = self.heads, self._resolved
        for root in self.labelled_roots if labelled else self.roots:
            # The first item of an action, here rather than in `_follow`: most actions are blocked by it.
            head = heads[root]
            local = state[head]
            found = resolved[root].get(local)
            if found is None:
                found = self.resolve(root, local)
            for target, after in found:
                moved = state if target == local else (*state[:head], target, *state[head + 1 :])
                if heads[after] < 0:
                    edges.append((moved, after))
                else:
                    self._follow(moved, after, edges, 1)
        return edges

    def _follow(self, state: State, symbol: int, edges: list[tuple[State, int]], steps: int) -> None:
        head = self.heads[symbol]
        if head < 0:
            edges.append((state, symbol))
            return
        if steps > CHAIN_LIMIT:
            raise WorldError(
                f"an action takes more than {CHAIN_LIMIT} reactions; components answer each other, the last was {self.name(head)}"
            )
        local = state[head]
        for target, after in self.resolve(symbol, local):
            moved = state if target == local else (*state[:head], target, *state[head + 1 :])
            self._follow(moved, after, edges, steps + 1)

    # -- reading -------------------------------------------------------------------------------------------------------

    def name(self, component: int) -> str:
        """The name of a component."""
        return self.components[component].component.name

    def numbers(self, states: Sequence[Hashable]) -> State:
        """The global state with these local states."""
        return tuple(table.number(state) for table, state in zip(self.components, states, strict=True))

    def digest(self, state: State) -> int:
        """A 64-bit name of a global state that does not depend on any numbering."""
        mixed = 0
        for table, local in zip(self.components, state, strict=True):
            mixed += table.digest(local)
        return mixed & (1 << 64) - 1

    def spelled(self, state: State) -> dict[str, str]:
        """A global state for a reader: component name to local state."""
        return {t.component.name: t.component.spelled(t.states[n]) for t, n in zip(self.components, state, strict=True)}

    def freeze(self, *, frozen: bool) -> None:
        """Allow or forbid new local state numbers; see ``Tabulated.frozen``."""
        for table in self.components:
            table.frozen = frozen

    @property
    def tabulation_s(self) -> float:
        """Seconds spent in the components' own code."""
        return sum(table.seconds for table in self.components)
