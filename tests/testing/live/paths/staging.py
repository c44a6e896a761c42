"""How a world is staged: which of its parties are live, and what of it the runtime can be led along."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import frozen

from tests.testing.live.paths import alone, leading, supervising
from tests.testing.live.paths.alone import Alone
from tests.testing.live.paths.casting import cast
from tests.testing.live.paths.conducting import Conductor, Parties
from tests.testing.live.paths.following import AtOnce
from tests.testing.live.paths.launched import Launched
from tests.testing.live.paths.supervising import Supervising
from troth.models.system import System
from troth.spec.party import Party
from troth.statemachines import PARTIES
from troth.testing.paths import Bars, Graph, nothing_barred

ELSEWHERE = ("receiver 1", "receiver 1.1", "receiver 2.1")
"""Receivers that are in neither of the two processes."""


@frozen
class Staging:
    """The rules by which worlds of one kind are staged."""

    name: str
    """Which parties are live, for a reader."""
    at_once: AtOnce
    """By an edge: the action that comes in the same moment, so that nothing comes in between; ``None`` if there is none."""
    bars: Callable[[System], Bars]
    """By a world: what of it the runtime cannot be led along, and why."""
    make: Callable[[System, Party], Conductor]
    """A conductor for a runtime with these tables, which are the party's own or a mutant's."""

    def graph(self, system: System) -> Graph:
        """The world's graph, with what the runtime can be led along."""
        return Graph.of(system, forces=self.at_once, bars=self.bars(system))

    @contextmanager
    def conductor(self, system: System, party: Party) -> Iterator[Conductor]:
        """A run. Whoever takes it closes it; it is dropped if that does not come."""
        with cast(party):
            made = self.make(system, party)
            try:
                yield made
            finally:
                made.drop()


def _launched(system: System, party: Party) -> Conductor:
    return Launched(system, judged=party is PARTIES[party.name])


def _alone(system: System, party: Party) -> Conductor:
    return Alone(system, party=party)


def _supervising(system: System, party: Party) -> Conductor:
    return Supervising(system, party=party)


def _unbarred(_system: System) -> Bars:
    return nothing_barred


LAUNCHED = Staging("a launched pair", leading.at_once, leading.bars, _launched)
ALONE = Staging("one party and a peer by hand", alone.at_once, alone.bars, _alone)
SUPERVISING = Staging("a backend and host sessions by hand", supervising.at_once, _unbarred, _supervising)


def staging(system: System) -> Staging | None:
    """How a world is staged; ``None`` if the runtime has not all of its parties, or another pair than the world's."""
    parties = Parties(system)
    names = frozenset(parties.indices)
    if "supervisor" in names:
        return SUPERVISING
    if names & {"trainer", "host"} in ({"trainer"}, {"host"}) and len(names) == 1:
        return ALONE
    if not {"trainer", "host"} <= names or names & set(ELSEWHERE) or not parties.config("host").launched:
        return None
    return LAUNCHED
