"""Who plays: cores of other tables, or of another configuration, given to the real driver in the place of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from troth.runtime import backend, downloads, host, trainer
from troth.spec.engine import PartyCore
from troth.spec.party import Party

MAKERS: Mapping[str, tuple[Any, str]] = {
    "trainer": (trainer, "Trainer"),
    "host": (host, "Host"),
    "receiver": (downloads, "Receiver"),
    "supervisor": (backend, "Supervisor"),
}
"""Where the runtime makes the core of each party: a module, and the name that it calls."""
Configured = Callable[[Any], Any]


@contextmanager
def swapped(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Meanwhile these attributes are others: an owner, a name, and what it is now, each."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextmanager
def cast(party: Party, configured: Configured = lambda config: config) -> Iterator[None]:
    """Meanwhile the runtime makes cores of ``party`` where it makes its own of that name, configured as ``configured`` has it."""

    def made(config: Any, **_options: Any) -> PartyCore:
        return PartyCore(party, configured(config), strict=False)

    with swapped((*MAKERS[party.name], made)):
        yield
