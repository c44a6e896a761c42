"""What a world claims: its properties, as they are declared. ``World`` has these methods; here they are apart from its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from attrs import evolve

from troth.models.errors import WorldError
from troth.models.expressions import Const, Expr, Value, lift
from troth.models.handles import ActionHandle, LinkHandle, PartyHandle
from troth.models.places import caller
from troth.models.properties import Fairness, Property, PropertyKind
from troth.models.system import ActionKind, System
from troth.spec.core import RefusalKind

FairSelector: TypeAlias = "ActionKind | ActionHandle | LinkHandle | Strong | str"


class Strong:
    """``strong(x)`` in ``fair=``: strong fairness instead of weak."""

    def __init__(self, selector: ActionKind | ActionHandle | LinkHandle | str) -> None:
        self.selector = selector


strong = Strong


class Claims:
    """The properties of a world under construction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.properties: list[Property] = []
        self._fair: dict[str, tuple[FairSelector, ...]] = {}

    def _open(self, what: str, *given: object) -> None:
        """Refuse ``what`` if the world is closed, or if something given is not the world's own."""
        raise NotImplementedError

    def _own(self, what: str, *given: object) -> None:
        """Refuse ``what`` if something given is not the world's own."""
        raise NotImplementedError

    def _property(self, id: str, statement: str, kind: PropertyKind, expr: Expr | Value, then: Expr | None = None) -> None:  # noqa: A002
        if any(p.id == id for p in self.properties):
            raise WorldError(f"world {self.name}: there are two properties {id!r}; give one another id")
        condition = lift(expr)
        self._own(f"property {id}", condition, then)
        if condition.primed and kind is not PropertyKind.STEP:
            raise WorldError(f"property {id}: `.next` is for step properties; use world.step")
        self.properties.append(Property(id, statement, kind, condition, then, declared=caller()))

    def always(self, id: str, statement: str, expr: Expr | Value) -> None:  # noqa: A002
        """True in every reachable state."""
        self._property(id, statement, PropertyKind.ALWAYS, expr)

    def never(self, id: str, statement: str, expr: Expr | Value) -> None:  # noqa: A002
        """False in every reachable state."""
        self._property(id, statement, PropertyKind.ALWAYS, ~lift(expr))

    def step(self, id: str, statement: str, relation: Expr) -> None:  # noqa: A002
        """True of every step that changes a component it looks at: ``party.watermark.next >= party.watermark``."""
        self._property(id, statement, PropertyKind.STEP, relation)

    def sometimes(self, id: str, statement: str, expr: Expr) -> None:  # noqa: A002
        """True in some reachable state."""
        self._property(id, statement, PropertyKind.SOMETIMES, expr)

    def no_deadlock(self, id: str, statement: str, *, ends: Expr | Value = False) -> None:  # noqa: A002
        """Every reachable state has a step, but for those where ``ends`` holds."""
        self._property(id, statement, PropertyKind.NO_DEADLOCK, Const(value=True), lift(ends))

    def never_refused(
        self,
        id: str,  # noqa: A002
        statement: str,
        party: PartyHandle,
        kinds: Sequence[RefusalKind] = (RefusalKind.VIOLATION, RefusalKind.DRIVER),
    ) -> None:
        """``party`` never refuses an event for one of these reasons: with honest peers and a sound driver it must not.

        A party that refused goes on as it was, so other properties see the same runs with this one and without it. What it refused is
        remembered in its local state, which for ``step`` is a change of the party.
        """
        self._open(f"never_refused({id!r})", party)
        reasons = tuple(dict.fromkeys(kinds))
        if not reasons or not all(isinstance(kind, RefusalKind) for kind in reasons):
            raise WorldError(f"property {id}: kinds={kinds!r}; give one or more of {', '.join(str(kind) for kind in RefusalKind)}")
        self._property(id, statement, PropertyKind.ALWAYS, ~party.has_refused_as(reasons))
        party.party.never_refuses = frozenset(party.party.never_refuses) | frozenset(reasons)

    def always_eventually(self, id: str, statement: str, expr: Expr, *, fair: Iterable[FairSelector] = ()) -> None:  # noqa: A002
        """On every fair run, ``expr`` is true again and again."""
        selectors = self._selected(id, fair)
        self._property(id, statement, PropertyKind.ALWAYS_EVENTUALLY, expr)
        self._fair[id] = selectors

    def leads_to(self, id: str, statement: str, expr: Expr, then: Expr, *, fair: Iterable[FairSelector] = ()) -> None:  # noqa: A002
        """On every fair run, whenever ``expr`` is true, ``then`` is true at that moment or later."""
        selectors = self._selected(id, fair)
        self._property(id, statement, PropertyKind.LEADS_TO, expr, then)
        self._fair[id] = selectors

    def _selected(self, id: str, fair: Iterable[FairSelector]) -> tuple[FairSelector, ...]:  # noqa: A002
        if isinstance(fair, str):
            raise WorldError(f"property {id}: fair={fair!r} is one name; give a list of them")
        selectors = tuple(fair)
        self._open(f"property {id}", *(one.selector if isinstance(one, Strong) else one for one in selectors))
        return selectors

    def _resolved(self, claim: Property, system: System) -> Property:
        fair = tuple(self._fairness(claim.id, selector, system) for selector in self._fair.get(claim.id, ()))
        return evolve(claim, fair=fair)

    def _fairness(self, id: str, selector: FairSelector, system: System) -> Fairness:  # noqa: A002
        is_strong = isinstance(selector, Strong)
        plain = selector.selector if isinstance(selector, Strong) else selector
        actions = system.actions
        if isinstance(plain, ActionKind):
            found = frozenset(i for i, a in enumerate(actions) if a.kind is plain)
        elif isinstance(plain, LinkHandle):
            found = frozenset(i for i, a in enumerate(actions) if a.kind is ActionKind.DELIVER and a.items[0][0] == plain.index)
        else:
            wanted = plain.name if isinstance(plain, ActionHandle) else plain
            found = frozenset(i for i, a in enumerate(actions) if a.name == wanted)
        if not found:
            raise WorldError(
                f"property {id}: fair={plain!r} names no action of world {self.name}; it has {', '.join(a.name for a in actions)}"
            )
        return Fairness(found, strong=is_strong)
