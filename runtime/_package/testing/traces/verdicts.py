"""What a check of traces says: where it went wrong and what would have been right, or how far the traces go."""

from __future__ import annotations

from attrs import field, frozen

from troth.spec.core import Event
from troth.spec.errors import TrothError


@frozen
class Near:
    """Something that could have stood there: an event that the party could have taken, and the rows that it takes then."""

    event: Event
    rows: tuple[str, ...]
    why: str
    """Where the event would have come from, or what the rows are for."""


class Rejected(TrothError):
    """The traces are not of a run that can have happened. ``line`` counts from 1, the header's."""

    def __init__(self, file: str, line: int, reason: str, nearest: tuple[Near, ...] = (), steps: int = 0) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason
        self.nearest = nearest
        self.steps = steps
        """Steps of the run that were accepted before."""


class NoTrace(TrothError):
    """A file that cannot be checked at all: no trace, of another version or other declarations, or of another run. Says what to do."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


@frozen
class Checked:
    """Traces of a run that can have happened."""

    steps: int
    partial: tuple[str, ...] = field(default=())
    """What is missing of the run, one reason an entry; nothing if every party is here from its beginning to its end."""


class Wrong(Exception):
    """Inside the check: what is wrong with a record. Whoever knows the file and the line makes it ``Rejected``."""

    def __init__(self, reason: str, expected: tuple[tuple[Event, str], ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.expected = expected
        """Events that could have come instead, and where they would have come from."""
