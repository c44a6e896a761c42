"""The core interface: the one place where machines, runtime, checker and tests meet.

A *core* is one party of a protocol with every decision in it and no I/O around it. It is driven by one call, ``handle``: an
*event* goes in, a *step* comes out, and the step's *effects* say what the world must now do. The runtime performs the effects,
the checker interns them, a test compares them; none of the three decides anything.

Rule 1.  Time, the network, processes and callers reach a core as events only. A core never waits and never looks.
Rule 2.  A core keeps small integers, enums and bools. Names, digests and arrays stay in side tables under those numbers.
Rule 3.  Equal snapshots have equal futures: ``restore(snapshot())`` changes nothing, and the checker relies on it.
Rule 4.  A refused event leaves the core exactly as it was. Refusals are values, because a peer can cause them at will.
Rule 5.  An effect that fails comes back as ``EffectFailed``, and there is a row for it. What can fail is ``Send`` on a link to another
         process, ``OpenLink``, ``Offer``, ``Pull``, ``Spawn`` and ``SignalProcess``; stopping and letting go cannot.
Rule 6.  Cores of one process meet by messages on *local links*, ordered and lossless. What a step sends on a local link is delivered
         before any other event is handled, so nothing comes between a decision and what depends on it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

Key: TypeAlias = int | str | tuple[int, ...] | None
"""Which instance of a family, timer or transfer is meant; ``None`` where there is only one."""

RowId: TypeAlias = str
"""``machine.row`` for a row; ``machine.state.trigger`` for an ignore or a refusal; ``timer.NAME.stale`` for a late firing."""

AtomId: TypeAlias = str
"""``machine.atom``: which machine's row asked, and the atom's own name."""


@frozen(kw_only=True)
class Message:
    """Base of every message. Subclasses are frozen attrs classes whose fields are bounded ints, bools and enums."""


class TransferOutcome(Enum):
    """How a transfer of bytes ended, as its own side saw it."""

    COMPLETE = "complete"
    FAILED = "failed"


class ProcessSignal(Enum):
    """What may be sent to a process. Never anything else: no core asks for a group or a pid."""

    TERM = "term"
    KILL = "kill"


# -- events ------------------------------------------------------------------------------------------------------------


@frozen
class Received:
    """``message`` arrived over ``link``, from a sender already authenticated for it."""

    link: str
    message: Message


@frozen
class LinkUp:
    """``link`` is connected and authenticated."""

    link: str


@frozen
class LinkLost:
    """``link`` is down. Whatever was sent and not yet received is gone."""

    link: str


@frozen
class TimerFired:
    """The timer ``(timer, key)`` that was set as ``generation`` is due."""

    timer: str
    key: Key = None
    generation: int = 0


@frozen
class Called:
    """The user made call ``call``; ``number`` comes back in its ``Resolve``. ``payload`` is a frozen attrs object or ``None``."""

    call: str
    number: int = 0
    payload: Any = None


@frozen
class CallCancelled:
    """The user gave up waiting for call ``number``."""

    call: str
    number: int = 0


@frozen
class TransferProgressed:
    """Bytes of the transfer ``(kind, key)`` moved since the last such event."""

    kind: str
    key: Key


@frozen
class TransferEnded:
    """The transfer ``(kind, key)`` is over on this side."""

    kind: str
    key: Key
    outcome: TransferOutcome


@frozen
class ProcessStarted:
    """The process asked for by ``Spawn`` runs."""

    process: int = 0


@frozen
class ProcessExited:
    """The process and all its descendants are gone and reaped. ``clean`` is exit status 0 of the leader."""

    process: int = 0
    clean: bool = False


@frozen
class OwnerLost:
    """The process that stands for this party's lifetime is gone: a trainer's host, or a host's guardian."""


@frozen
class EffectFailed:
    """``effect`` could not be performed."""

    effect: Effect


Event: TypeAlias = (
    Received
    | LinkUp
    | LinkLost
    | TimerFired
    | Called
    | CallCancelled
    | TransferProgressed
    | TransferEnded
    | ProcessStarted
    | ProcessExited
    | OwnerLost
    | EffectFailed
)


# -- effects -----------------------------------------------------------------------------------------------------------


@frozen
class Send:
    """Hand ``message`` to ``link``. On a link that is down it is dropped, exactly as if the network had lost it."""

    link: str
    message: Message


@frozen
class SetTimer:
    """(Re)start the timer ``(timer, key)`` for the duration named ``limit``; a pending expiry of it is withdrawn.

    A limit without a value is no limit: that timer never fires.
    """

    timer: str
    key: Key
    generation: int
    limit: str


@frozen
class CancelTimer:
    """Stop the timer ``(timer, key)`` and withdraw its pending expiry."""

    timer: str
    key: Key


@frozen
class Resolve:
    """Return from call ``number`` with ``outcome`` (and, where the outcome has one, a small ``value`` such as a sequence)."""

    call: str
    number: int
    outcome: Enum
    value: int = 0


@frozen
class Offer:
    """Keep the payload ``(kind, key)`` available to its receiver until ``Release``."""

    kind: str
    key: Key


@frozen
class Pull:
    """Start to fetch (or decode, where it came inline) the payload ``(kind, key)``. Answered by ``TransferEnded``."""

    kind: str
    key: Key


@frozen
class CancelTransfer:
    """Stop moving ``(kind, key)``; no ``TransferEnded`` follows."""

    kind: str
    key: Key


@frozen
class Release:
    """The payload ``(kind, key)`` need no longer be kept."""

    kind: str
    key: Key


@frozen
class Spawn:
    """Start the process. Answered by ``ProcessStarted`` or ``EffectFailed``."""

    process: int = 0


@frozen
class SignalProcess:
    """Signal the process and its descendants."""

    signal: ProcessSignal
    process: int = 0


@frozen
class OpenLink:
    """Open ``link`` and reopen it whenever it is lost, until ``CloseLink``."""

    link: str


@frozen
class CloseLink:
    """Close ``link`` after what was already sent on it."""

    link: str


Effect: TypeAlias = (
    Send | SetTimer | CancelTimer | Resolve | Offer | Pull | CancelTransfer | Release | Spawn | SignalProcess | OpenLink | CloseLink
)


# -- the step ----------------------------------------------------------------------------------------------------------


class RefusalKind(Enum):
    """Whose fault a refusal is. The three are different errors to a user, so they are never mixed."""

    MISUSE = "misuse"
    """The local user called what may not be called now."""
    VIOLATION = "violation"
    """The peer sent what it may not send now."""
    DRIVER = "driver"
    """Whoever drives the core reported something that cannot have happened."""


@frozen
class Refusal:
    """Why an event was not taken. The core is unchanged."""

    kind: RefusalKind
    row: RowId
    why: str


@frozen
class Step:
    """What one ``handle`` did.

    ``rows`` are the rows and ignores taken, in order; ``guards`` every atom that was evaluated on the way, in order. A step with
    a refusal has no effects.
    """

    effects: tuple[Effect, ...] = ()
    rows: tuple[RowId, ...] = ()
    guards: tuple[tuple[AtomId, bool], ...] = ()
    refusal: Refusal | None = field(default=None)


@runtime_checkable
class Core(Protocol):
    """One party of a protocol: all of its decisions, none of its I/O."""

    def handle(self, event: Event) -> Step:
        """Take one event, change state, and say what to do. Atomic: no other event is seen in between."""
        ...

    def snapshot(self) -> Hashable:
        """The whole state as a canonical value: equal futures, equal snapshots."""
        ...

    def restore(self, snapshot: Hashable) -> None:
        """Become the core that gave ``snapshot``."""
        ...

    def observe(self) -> Mapping[str, bool | int]:
        """Named observations, for properties. Pure, and cheap enough to call after every step."""
        ...
