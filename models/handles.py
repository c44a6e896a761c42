"""What a world hands back for each thing declared in it: names to build properties from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

from attrs import field, frozen

from troth.models.expressions import Expr, Joint, Leaf, Op, Value, looked_at, observed
from troth.models.links import LinkComponent
from troth.models.parties import Mode, PartyComponent, PartyLocal
from troth.models.system import Component, System
from troth.spec.core import RefusalKind


@frozen(eq=False)
class Handle:
    """One component of a world. ``handle.NAME`` is its observation ``NAME``, as an expression."""

    index: int
    component: Component
    _world: object = field(default=None, repr=False)
    """The world that it was declared in."""

    @property
    def name(self) -> str:
        """The component's name."""
        return self.component.name

    def __getattr__(self, name: str) -> Leaf:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._own(observed(self.index, self.component.name, name))

    def _own(self, leaf: Leaf) -> Leaf:
        leaf.of = Seen(self, leaf.of)
        return leaf

    def _looked(self, fn: Callable[[Any], Value], text: str | None = None) -> Leaf:
        return self._own(looked_at(self.index, self.name, fn, text))

    def see(self, name: str) -> Leaf:
        """The observation ``name``, for names that are not identifiers or that a handle has already."""
        return self._own(observed(self.index, self.component.name, name))

    def where(self, fn: Callable[[Any], Value], text: str | None = None) -> Leaf:
        """``fn`` of the component's own state: for a party, of what its snapshot or step function's state is."""
        return self._looked(fn, text)

    def viewed(self, system: System, local: int) -> Any:
        """What ``where`` and ``jointly`` show of local state number ``local``."""
        return system.components[self.index].states[local]


class PartyHandle(Handle):
    """A party."""

    def where(self, fn: Callable[[Any], Value], text: str | None = None) -> Leaf:
        """``fn`` of the state of the party's behaviour, whether it is up or down."""

        def inner(local: Hashable) -> Value:
            return fn(local.state if isinstance(local, PartyLocal) else local)

        return self._looked(inner, text or f"{self.name}.where({getattr(fn, '__name__', 'predicate')})")

    def viewed(self, system: System, local: int) -> Any:
        """The state of the behaviour."""
        found = system.components[self.index].states[local]
        return found.state if isinstance(found, PartyLocal) else found

    @property
    def is_down(self) -> Leaf:
        """True between a crash and the restart."""
        return self._looked(lambda s: isinstance(s, PartyLocal) and s.mode is Mode.DOWN, f"{self.name}.is_down")

    @property
    def has_refused(self) -> Leaf:
        """True once it refused what some ``never_refused`` watches for."""
        return self._looked(lambda s: isinstance(s, PartyLocal) and bool(s.refused), f"{self.name}.has_refused")

    def has_refused_as(self, kinds: Collection[RefusalKind]) -> Leaf:
        """True once it refused for one of these reasons, which some ``never_refused`` must watch for."""

        def refused(local: Hashable) -> bool:
            return isinstance(local, PartyLocal) and any(kind in kinds for kind in local.refused)

        return self._looked(refused, f"{self.name}.has_refused({', '.join(k.name.lower() for k in kinds)})")

    def has_timer(self, timer: str, key: Hashable = None) -> Leaf:
        """True while the timer ``(timer, key)`` is armed."""

        def armed(local: Hashable) -> bool:
            return isinstance(local, PartyLocal) and any(t.timer == timer and t.key == key and not t.stale for t in local.timers)

        return self._looked(armed, f"{self.name}.has_timer({timer!r})")

    @property
    def party(self) -> PartyComponent:
        """The component."""
        if not isinstance(self.component, PartyComponent):
            raise TypeError(f"{self.name} is not a party")
        return self.component


class LinkHandle(Handle):
    """One direction of a link. Observations: ``empty``, ``length``, ``up``."""

    @property
    def link(self) -> LinkComponent:
        """The component."""
        if not isinstance(self.component, LinkComponent):
            raise TypeError(f"{self.name} is not a link")
        return self.component

    def count(self, of: Callable[[Any], bool], text: str | None = None) -> Leaf:
        """How many messages in flight satisfy ``of``."""
        link = self.link
        label = text or f"{self.name}.count({getattr(of, '__name__', 'predicate')})"
        return self._looked(lambda s: sum(1 for m in link.messages(s) if of(m)), label)

    def carries(self, of: Callable[[Any], bool], text: str | None = None) -> Leaf:
        """Whether some message in flight satisfies ``of``."""
        link = self.link
        label = text or f"{self.name}.carries({getattr(of, '__name__', 'predicate')})"
        return self._looked(lambda s: any(of(m) for m in link.messages(s)), label)

    def viewed(self, system: System, local: int) -> tuple[Any, ...]:
        """The messages in flight."""
        return self.link.messages(system.components[self.index].states[local])


@frozen
class ActionHandle:
    """An action that the world's author declared, for ``fair=``."""

    name: str
    _world: object = field(default=None, repr=False, eq=False)


class Seen:
    """What a leaf looks at. It knows the handle that it came from, so that a world can tell its own handles from another's."""

    def __init__(self, handle: Handle, of: Callable[[System, int], Value]) -> None:
        self.handle = handle
        self.of = of

    def __call__(self, system: System, local: int) -> Value:
        return self.of(system, local)


def handles_in(expr: Expr) -> Iterator[Handle]:
    """The handles that an expression was built from."""
    left, met = [expr], {id(expr)}
    while left:
        part = left.pop()
        if isinstance(part, Leaf) and isinstance(part.of, Seen):
            yield part.of.handle
        elif isinstance(part, Joint):
            yield from (owner for view in part.views if isinstance(owner := getattr(view, "__self__", None), Handle))
        elif isinstance(part, Op):
            left += [arg for arg in part.args if id(arg) not in met]
            met |= {id(arg) for arg in part.args}


def owner_of(handle: Handle | ActionHandle) -> object:
    """The world that a handle was declared in."""
    return handle._world  # noqa: SLF001 - `handle.world` is the observation of that name


def jointly(fn: Callable[..., Value], *handles: Handle, text: str | None = None) -> Expr:
    """``fn`` of the states of several components: a party's state, a link's messages in flight, a budget's number.

    For what no combination of single observations says. ``fn`` is called once for each combination that is reached.
    """
    names = ", ".join(h.name for h in handles)
    label = text or f"{getattr(fn, '__name__', 'predicate')}({names})"
    return Joint(fn, [h.index for h in handles], [h.viewed for h in handles], label)
