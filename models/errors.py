"""What can go wrong while a world is built or explored, each with its own class and one sentence that says what to do."""

from __future__ import annotations

from troth.spec.errors import TrothError


class WorldError(TrothError):
    """A world is declared wrongly: an unknown name, an effect that nothing takes, a bound out of range."""


class NotDeterministic(TrothError):
    """The same step, taken twice from the same local state, gave two answers."""


class NotCanonical(TrothError):
    """``restore(snapshot())`` changed the snapshot, or a state is not made of plain values."""


class ComponentFailed(TrothError):
    """A component's own code raised. Carries the component, its state and the operation, so that it can be reproduced."""


class PropertyFailed(TrothError):
    """A property could not be evaluated in a reachable state. Never the same as "holds"."""


class TooWide(TrothError):
    """A global state does not fit the words that the engine has."""


class Exhausted(TrothError):
    """A limit on states or memory was reached. The answer is "unknown", never "holds"."""
