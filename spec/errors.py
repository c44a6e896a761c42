"""What can be wrong with a declaration, each with its own class, so that a test or a tool can tell them apart."""

from __future__ import annotations


class TrothError(Exception):
    """Base of every error that Troth raises on purpose."""


class DeclarationError(TrothError):
    """A declaration is wrong. Raised at import, naming the row and the fix."""


class Hole(DeclarationError):
    """Some (state, trigger, guard valuation) has no row, ignore or refusal."""


class Overlap(DeclarationError):
    """Two entries claim the same (state, trigger, guard valuation)."""


class UnknownState(DeclarationError):
    """An entry names a state that its machine does not have."""


class UnreachableState(DeclarationError):
    """No path of rows leads to a state."""


class DeadRow(DeclarationError):
    """An entry can never be taken."""


class BadGuard(DeclarationError):
    """A guard is not made of atoms, or an atom does not answer with a real bool."""


class UnreadMachine(DeclarationError):
    """A guard, signal, key or route uses a machine that the party has not, or that the atom did not say it reads."""


class BadRow(DeclarationError):
    """A row's own parts are wrong: no reason, a duplicate id, an update without a name."""


class LimitOrder(DeclarationError):
    """An inner limit is not below the outer one."""


class CoreError(TrothError):
    """A core was driven or declared so that it cannot go on: a full family, endless signals, a timer left behind."""


class UnknownMachine(TrothError):
    """A machine was asked for by a name that none has."""


class CodecError(TrothError):
    """A value cannot be written to a trace, or not be read from one."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class TraceError(TrothError):
    """A line of a trace is not what the format says."""

    def __init__(self, line: int, field: str, reason: str) -> None:
        super().__init__(f"line {line}: {field}: {reason}")
        self.line = line
        self.field = field
        self.reason = reason
