"""Paths over every edge of small worlds, performed on the live runtime and compared with the model after every action."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import get_args

import pytest

from tests.testing.live import patches
from tests.testing.live.paths.conducting import Diverged, lead
from tests.testing.live.paths.leading import DOOR_CLOSED, NO_LINK, NOBODY_WAITS
from tests.testing.live.paths.staging import LAUNCHED
from tests.testing.live.paths.worlds import answers, cancels
from troth.cli.finding import find
from troth.models import World
from troth.models.mutants.machines import mutants
from troth.models.system import System
from troth.runtime.driver import Driver, Hosted
from troth.spec import core as c
from troth.spec.party import Party
from troth.statemachines import HOST, TRAINER
from troth.testing.live.parties import Wrong
from troth.testing.paths import NO_WAY, Graph, TooLarge


def performed(graph: Graph) -> tuple[set[int], int, int]:
    """Perform paths over all edges; which ones were, how many paths that took, and how many steps. Raises what went wrong."""
    done: set[int] = set()
    paths = steps = 0
    for path in graph.cover():
        with LAUNCHED.conductor(graph.system, TRAINER) as conductor:
            lead(conductor, [edge.step for edge in path])
        done |= {edge.number for edge in path}
        paths += 1
        steps += len(path)
    return done, paths, steps


def check_all(world: World, barred: Mapping[str, int], edges: int, paths: int, steps: int) -> None:
    """Every edge that is not barred is performed; as many are barred as is said, for these reasons."""
    graph = LAUNCHED.graph(world.system())
    found = performed(graph)

    assert Counter(graph.barred().values()) == barred
    assert found == ({edge.number for edge in graph} - graph.barred().keys(), paths, steps)
    assert len(found[0]) == edges


def test_every_edge_of_a_small_world_is_performed_on_the_live_runtime() -> None:
    """The whole of it: the application, the backend and its supervisor, the host, the wire, the transfers, the trainer and its user."""
    check_all(answers.build(loss=0, cuts=0), {DOOR_CLOSED: 2, NO_WAY: 56}, edges=1428, paths=230, steps=5465)


def test_every_edge_of_a_world_of_cancels_is_performed_on_the_live_runtime() -> None:
    """A caller of execute() gives up at every moment, and all that can come of that comes."""
    check_all(cancels.build(), {DOOR_CLOSED: 2, NO_WAY: 56}, edges=2601, paths=436, steps=10546)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "barred", "edges", "paths", "steps"),
    [
        ({"loss": 1, "cuts": 0}, {DOOR_CLOSED: 2, NO_WAY: 144}, 7759, 1752, 41185),
        ({"loss": 0, "cuts": 1}, {DOOR_CLOSED: 17, NO_WAY: 164, NO_LINK: 8}, 8892, 1492, 40106),
        ({"loss": 1, "cuts": 1}, {DOOR_CLOSED: 23, NO_WAY: 374, NO_LINK: 8}, 39841, 10735, 274024),
    ],
    ids=["a lost message", "a cut", "both"],
)
def test_every_edge_is_performed_with_a_fault(bounds: dict[str, int], barred: dict[str, int], edges: int, paths: int, steps: int) -> None:
    """The same with a message that is lost, whichever it is, and with a link that is cut, whenever that is."""
    check_all(answers.build(**bounds), barred, edges, paths, steps)


def test_what_is_barred_of_the_standard_world_is_only_what_it_is_lax_about() -> None:
    """In ``external/answers`` receive() may be given up by who is not in it. Without that it has the edges that are performed above."""
    graph = LAUNCHED.graph(find("external/answers").build({"loss": 0, "cuts": 0}).system())

    assert Counter(graph.barred().values()) == {NOBODY_WAITS: 165, DOOR_CLOSED: 2, NO_WAY: 168}
    assert len(graph.possible()) == 1428


def test_a_graph_that_is_too_large_is_refused() -> None:
    """Rather than looked at for hours."""
    with pytest.raises(TooLarge, match="more than 10 states"):
        Graph.of(answers.build().system(), most=10)


# -- that it would be seen ---------------------------------------------------------------------------------------------


def first(system: System, party: Party) -> Exception | None:
    """What is found first on a runtime with these tables."""
    for path in LAUNCHED.graph(system).cover():
        try:
            with LAUNCHED.conductor(system, party) as conductor:
                lead(conductor, [edge.step for edge in path])
        except (Diverged, Wrong) as found:
            return found
    return None


def drop_every(kind: type[c.Effect], patch: pytest.MonkeyPatch) -> None:
    """No effect of this kind is performed."""
    perform = Driver._perform

    def forgetful(driver: Driver, party: str, hosted: Hosted, effect: c.Effect) -> None:
        if not isinstance(effect, kind):
            perform(driver, party, hosted, effect)

    patch.setattr(Driver, "_perform", forgetful)


@pytest.mark.parametrize("kind", get_args(c.Effect), ids=lambda kind: kind.__name__)
def test_an_effect_that_the_driver_never_performs_is_found_on_the_way(monkeypatch: pytest.MonkeyPatch, kind: type[c.Effect]) -> None:
    """Whichever kind it is. A transfer is cancelled only where its task is."""
    drop_every(kind, monkeypatch)
    world = cancels.build() if kind is c.CancelTransfer else answers.build(loss=0, cuts=0)

    assert first(world.system(), TRAINER) is not None


def test_a_timer_that_is_never_cancelled_is_found_though_it_is_never_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs, and is not armed."""
    patches.fire_a_cancelled_timer(monkeypatch)
    found = first(answers.build(loss=0, cuts=0).system(), TRAINER)

    assert isinstance(found, Diverged)
    assert any("the timers that run are not those that are armed" in difference for difference in found.differences)


@pytest.mark.parametrize("name", ["trainer.publication:N13:drop", "host.acceptance:A4:silent-1"])
def test_a_changed_row_is_found_at_the_action_that_takes_it(name: str) -> None:
    """And said by the path that led there, and by what differs."""
    party = {"trainer": TRAINER, "host": HOST}[name.partition(".")[0]]
    mutant = next(mutant for mutant in mutants(party) if mutant.name == name)
    found = first(answers.build(loss=0, cuts=0).system(), mutant.of(party))

    assert isinstance(found, Diverged)
    assert found.done[0] == "host.start"
    assert any(party.name in difference for difference in found.differences)
