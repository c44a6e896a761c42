"""What a protocol says: the declaration language, the core interface, messages, limits, properties, traces.

Everything a reader needs to declare a protocol of their own is importable from here. A name is looked up in its module when it is first
used: whoever needs the core interface alone, as the checker does, does not wait for the interpreters of the declaration language.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.spec.core import (
        CallCancelled,
        Called,
        CancelTimer,
        CancelTransfer,
        CloseLink,
        Core,
        Effect,
        EffectFailed,
        Event,
        Key,
        LinkLost,
        LinkUp,
        Message,
        Offer,
        OpenLink,
        OwnerLost,
        ProcessExited,
        ProcessSignal,
        ProcessStarted,
        Pull,
        Received,
        Refusal,
        RefusalKind,
        Release,
        Resolve,
        Send,
        SetTimer,
        SignalProcess,
        Spawn,
        Step,
        TimerFired,
        TransferEnded,
        TransferOutcome,
        TransferProgressed,
    )
    from troth.spec.emits import EACH, Keys, cancel_timer, deliver, each, effect, resolve, same_key, send, set_timer, signal
    from troth.spec.engine import PartyCore
    from troth.spec.guards import Atom, Guard, always, atom
    from troth.spec.interpreters import Table, Transitions
    from troth.spec.machine import SAME, Family, Ignore, Machine, Refuse, Row, keep
    from troth.spec.party import Party, Route, To, call_cancelled, called, happened, received, timer

__all__ = [
    "EACH",
    "SAME",
    "Atom",
    "CallCancelled",
    "Called",
    "CancelTimer",
    "CancelTransfer",
    "CloseLink",
    "Core",
    "Effect",
    "EffectFailed",
    "Event",
    "Family",
    "Guard",
    "Ignore",
    "Key",
    "Keys",
    "LinkLost",
    "LinkUp",
    "Machine",
    "Message",
    "Offer",
    "OpenLink",
    "OwnerLost",
    "Party",
    "PartyCore",
    "ProcessExited",
    "ProcessSignal",
    "ProcessStarted",
    "Pull",
    "Received",
    "Refusal",
    "RefusalKind",
    "Refuse",
    "Release",
    "Resolve",
    "Route",
    "Row",
    "Send",
    "SetTimer",
    "SignalProcess",
    "Spawn",
    "Step",
    "Table",
    "TimerFired",
    "To",
    "TransferEnded",
    "TransferOutcome",
    "TransferProgressed",
    "Transitions",
    "always",
    "atom",
    "call_cancelled",
    "called",
    "cancel_timer",
    "deliver",
    "each",
    "effect",
    "happened",
    "keep",
    "received",
    "resolve",
    "same_key",
    "send",
    "set_timer",
    "signal",
    "timer",
]

_HOMES = {  # the same imports as above, for when a program runs; a test compares them
    "core": (
        "CallCancelled Called CancelTimer CancelTransfer CloseLink Core Effect EffectFailed Event Key LinkLost LinkUp Message "
        "Offer OpenLink OwnerLost ProcessExited ProcessSignal ProcessStarted Pull Received Refusal RefusalKind Release Resolve "
        "Send SetTimer SignalProcess Spawn Step TimerFired TransferEnded TransferOutcome TransferProgressed"
    ),
    "emits": "EACH Keys cancel_timer deliver each effect resolve same_key send set_timer signal",
    "engine": "PartyCore",
    "guards": "Atom Guard always atom",
    "interpreters": "Table Transitions",
    "machine": "SAME Family Ignore Machine Refuse Row keep",
    "party": "Party Route To call_cancelled called happened received timer",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
