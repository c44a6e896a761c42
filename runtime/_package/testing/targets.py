"""What a target of ``troth fuzz`` is: something that runs whole sessions, drawn from a seed, and says what went wrong in them.

The command line, the plugin for pytest and the benchmark know a target by these few names, whatever runs behind them: the cores
(``troth.testing.cores.Cores``) or the live runtime (``troth.testing.live.target.Live``). Neither is imported before it is asked for:
``troth.testing.choosing`` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from attrs import frozen

from troth.testing.coverage import Coverage


@frozen(kw_only=True)
class Failure:
    """One way in which a session was not what it should be."""

    property: str
    """The id that the property has everywhere, or a name of what else is compared: ``replay``, ``wire``, ``snapshot``, ``ignored``."""
    token: str
    """What ``--replay`` takes: letters, digits, ``-``, ``_``, ``.`` and ``:`` only, the seed in it or the whole program of the session."""
    told: str
    """For a reader: the example, what it violates, and the checker's shortest trace where there is one. Several lines. Of a property that
    has failed before in the same run only what it was, and its token is of a program that was not made shorter."""


@frozen(kw_only=True)
class SessionResult:
    """One session: from its opening to its end, or to its first failure."""

    seed: int
    """What the session was drawn from."""
    steps: int
    """Rules and actions that were settled."""
    failure: Failure | None = None
    trace: tuple[str, ...] = ()
    """The lines of its trace, if they were asked for: the same for the same seed, byte for byte."""
    told: str = ""
    """Of a session that was replayed: its steps, for a reader."""
    interrupted: bool = False
    """An interrupt came while its failure was made shorter, or looked at more closely: the failure is what was known by then, and the run
    is over."""


class Fuzz(Protocol):
    """Runs one session after another until it is told to stop.

    ``seed`` decides everything: session number n of a seed is the same in every process. ``until`` is asked between sessions, and may
    be asked between steps; once it is true the generator ends, and a session that was broken off is not given. ``coverage`` is told of
    every step that the target's parties took. A failure ends its session, not the run: whoever iterates decides whether to go on.
    """

    def __call__(self, *, seed: int, until: Callable[[], bool], coverage: Coverage) -> Iterator[SessionResult]: ...


class Target(Protocol):
    """What ``troth fuzz --target NAME`` runs."""

    @property
    def name(self) -> str:
        """``core`` or ``runtime``."""
        ...

    def coverage(self) -> Coverage:
        """An empty collector that knows everything that could be covered."""
        ...

    def fuzz(self, *, seed: int, until: Callable[[], bool], coverage: Coverage) -> Iterator[SessionResult]:
        """See ``Fuzz``."""
        ...

    def replay(self, token: str, *, coverage: Coverage) -> SessionResult:
        """The session of a token, once more, with its trace. Raises ``BadToken`` for one that is of another target, or fits no more."""
        ...


class BadToken(ValueError):
    """A replay token that is none, or that is of another target, world or version."""
