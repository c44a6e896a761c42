"""What can be claimed of a world. A property has one id everywhere it is named."""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from troth.models.expressions import Expr
from troth.models.system import ActionKind
from troth.spec.properties import PROPERTIES, Role


class PropertyKind(Enum):
    """The forms of claim."""

    ALWAYS = "always"
    """True in every reachable state."""
    STEP = "step"
    """True of every edge that changes a component the property looks at (``x`` before, ``x.next`` after)."""
    SOMETIMES = "sometimes"
    """True in some reachable state: a witness, against worlds in which nothing happens."""
    NO_DEADLOCK = "no deadlock"
    """Every reachable state has an edge, but for those where ``then`` says that it may end."""
    ALWAYS_EVENTUALLY = "always eventually"
    """On every fair run, true again and again."""
    LEADS_TO = "leads to"
    """On every fair run, whenever ``expr`` is true, ``then`` is true at the same time or later."""


LIVENESS = frozenset({PropertyKind.ALWAYS_EVENTUALLY, PropertyKind.LEADS_TO})


@frozen
class Fairness:
    """Every turn of these actions is treated fairly, each for itself: of a link, each message; of a party's timers, each timer.

    Weak: a turn that is possible from some point on without a break is taken. Strong: one that is possible again and again is taken.
    Which of several outcomes a turn has is nobody's to choose, so fairness does not force one; ``troth.models.fairness`` says more.
    """

    actions: frozenset[int]
    strong: bool = False


@frozen(eq=False)
class Property:
    """One claim. ``expr`` is the condition; ``then`` the consequence of ``LEADS_TO`` or the permitted ends of ``NO_DEADLOCK``."""

    id: str
    statement: str
    kind: PropertyKind
    expr: Expr
    then: Expr | None = None
    fair: tuple[Fairness, ...] = field(default=())
    declared: str = ""
    """Where: ``file:line``."""

    @property
    def role(self) -> Role:
        """What it means that it is broken. A claim of a numbered property has that one's role; any other claim is a promise."""
        if self.kind is PropertyKind.SOMETIMES:
            return Role.REACH
        numbered = PROPERTIES.get(self.id.partition(" ")[0])
        return numbered.role if numbered is not None and numbered.statement == self.statement else Role.PROMISE

    def not_a_bool(self, value: object) -> str:
        """What to say of a value that is neither true nor false."""
        place = f"{self.declared}: " if self.declared else ""
        return f"{place}`{self.expr}` gave {value!r}, not a bool"


deliver = ActionKind.DELIVER
"""For ``fair=``: every link delivers."""
timers = ActionKind.TIMER
"""For ``fair=``: every armed timer fires."""
restarts = ActionKind.RESTART
"""For ``fair=``: whoever is down comes back."""
connects = ActionKind.CONNECT
"""For ``fair=``: links that were cut are opened again."""
ticks = ActionKind.TICK
"""For ``fair=``: time passes."""
