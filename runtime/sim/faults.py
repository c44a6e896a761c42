"""What goes wrong on a network in memory, said by a script, and what did go wrong, for the record.

A *direction* is UP from the side that dialled, DOWN to it. Byte positions count from the first byte of the connection, the challenge's
included. Frames are those after the challenge.

A script is rules, each for the connections, directions and kinds that it names, or a function that decides on every frame::

    faults = Faults()
    faults.frame(Drop(), code=30)                           # the next HEARTBEAT, wherever it is
    faults.frame(Delay(2.0), role="control", direction=UP, skip=3)
    faults.bytes(Cut(at=200), role="data", direction=DOWN)  # the next data connection breaks after 200 bytes
    faults.refuse_dials(2)
    network = SimNetwork(faults)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

from attrs import define, field, frozen

from troth.runtime.wire.kinds import Role


class Direction(Enum):
    """Which way bytes go."""

    UP = "up"
    """From the side that dialled."""
    DOWN = "down"
    """To it."""


UP: Final = Direction.UP
DOWN: Final = Direction.DOWN

# -- what can happen to a frame ----------------------------------------------------------------------------------------


@frozen
class Drop:
    """It never arrives."""


@frozen
class Duplicate:
    """It arrives once more, right behind itself, ``copies`` times."""

    copies: int = 1


@frozen
class Delay:
    """It arrives ``seconds`` later, and later frames pass it."""

    seconds: float


@frozen
class Behind:
    """It arrives after the next ``frames`` frames of its direction."""

    frames: int = 1


@frozen
class Hold:
    """It waits until it is let through by hand, and those that are held behind it too: see ``Pipe.let``."""


FrameFault: TypeAlias = Drop | Duplicate | Delay | Behind | Hold

# -- what can happen to bytes ------------------------------------------------------------------------------------------


@frozen
class Cut:
    """The connection breaks once ``at`` bytes have gone this way. They arrive; what was on its way back is lost."""

    at: int


@frozen
class End:
    """The direction ends once ``at`` bytes have gone this way, as if its sender had gone there; the sender notices when it writes again."""

    at: int


@frozen
class Slow:
    """Every byte takes ``seconds``; the order stays."""

    seconds: float


ByteFault: TypeAlias = Cut | End | Slow


@frozen
class Refused:
    """Nobody answered a dial."""


# -- what was seen, and what was done ----------------------------------------------------------------------------------


@frozen
class Seen:
    """A frame as its sender wrote it: the ``index``-th of its direction, from 0."""

    connection: int
    direction: Direction
    role: Role | None
    index: int
    code: int
    epoch: int
    length: int


@frozen
class Happened:
    """A fault that took place, at ``at_s`` of trio's clock."""

    at_s: float
    connection: int | None
    direction: Direction | None
    fault: FrameFault | ByteFault | Refused
    frame: Seen | None = None


Decide: TypeAlias = Callable[[Seen], FrameFault | None]


@define
class Rule:
    """One fault of a script, and where it strikes. ``struck`` says how often it did."""

    fault: FrameFault | ByteFault
    code: int | None = None
    direction: Direction | None = None
    role: Role | None = None
    connection: int | None = None
    skip: int = 0
    times: int | None = 1
    """``None`` for always."""
    struck: int = 0

    @property
    def spent(self) -> bool:
        """Whether it will not strike again."""
        return self.times is not None and self.struck >= self.times

    def strikes(self, *, connection: int, direction: Direction, role: Role | None, code: int | None = None) -> bool:
        """Whether this is what it waits for; it counts as met then."""
        here = (
            not self.spent
            and self.code in (None, code)
            and self.direction in (None, direction)
            and self.role in (None, role)
            and self.connection in (None, connection)
        )
        if not here:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.struck += 1
        return True


@define(eq=False)
class Faults:
    """The script, and the journal of what it did. ``decide``, if given, is asked about each frame that no rule is for."""

    decide: Decide | None = None
    journal: list[Happened] = field(factory=list)
    _frames: list[Rule] = field(factory=list)
    _bytes: list[Rule] = field(factory=list)
    _refusing: int = 0
    dial_s: float = 0.0
    """How long a dial takes."""

    def frame(
        self,
        fault: FrameFault,
        *,
        code: int | None = None,
        direction: Direction | None = None,
        role: Role | None = None,
        connection: int | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> Rule:
        """A fault for the next ``times`` frames that fit, after ``skip`` of them. Rules are asked in the order in which they were given."""
        rule = Rule(fault, code, direction, role, connection, skip, times)
        self._frames.append(rule)
        return rule

    def bytes(
        self,
        fault: ByteFault,
        *,
        direction: Direction,
        role: Role | None = None,
        connection: int | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> Rule:
        """A fault for the next ``times`` connections that fit. A role is known from the dialler's first bytes on, else the dial counts."""
        rule = Rule(fault, None, direction, role, connection, skip, times)
        self._bytes.append(rule)
        return rule

    def refuse_dials(self, times: int) -> None:
        """The next ``times`` dials find nobody."""
        self._refusing = times

    # -- asked by the network ------------------------------------------------------------------------------------------

    def dial_refused(self) -> bool:
        """Whether this dial finds nobody."""
        if self._refusing == 0:
            return False
        self._refusing -= 1
        return True

    def for_frame(self, seen: Seen) -> FrameFault | None:
        """What becomes of this frame."""
        for rule in self._frames:
            if rule.strikes(connection=seen.connection, direction=seen.direction, role=seen.role, code=seen.code):
                fault = rule.fault
                if isinstance(fault, Cut | End | Slow):
                    raise TypeError(f"{fault} is for bytes, not for a frame")
                return fault
        return self.decide(seen) if self.decide is not None else None

    def for_bytes(self, connection: int, direction: Direction, role: Role | None) -> list[ByteFault]:
        """What becomes of the bytes of this connection. Asked when it is dialled, with no role, and again once its role is known."""
        found: list[ByteFault] = []
        for rule in self._bytes:
            if (rule.role is None) is (role is None) and rule.strikes(connection=connection, direction=direction, role=role):
                fault = rule.fault
                if not isinstance(fault, Cut | End | Slow):
                    raise TypeError(f"{fault} is for a frame, not for bytes")
                found.append(fault)
        return found
