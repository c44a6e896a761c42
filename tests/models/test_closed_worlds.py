"""What is declared too late, twice, or with the handles of another world is said at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from troth.models import World, check, deliver, jointly, strong
from troth.models.check import Verdict
from troth.models.errors import WorldError
from troth.spec.core import Pull


def idle(state: Any, event: Any) -> Any:
    """A step that takes anything and does nothing."""
    return state, ()


Made = tuple[World, Any, Any, Any, Any]


def pair(name: str = "w") -> Made:
    """A world with two parties, a link, and one action."""
    world = World(name)
    p = world.party("p", idle, initial=0, observe={"n": lambda s: s})
    q = world.party("q", idle, initial=0, observe={"n": lambda s: s})
    return world, p, q, world.link(p, q, "line"), world.may(p, "poke")


LATE: dict[str, Callable[[World, Any, Any, Any, Any], Any]] = {
    "party('new')": lambda w, p, q, line, poke: w.party("new", idle, initial=0),
    "budget('new')": lambda w, p, q, line, poke: w.budget("new", 1),
    "link('new')": lambda w, p, q, line, poke: w.link(q, p, "new"),
    "local('new')": lambda w, p, q, line, poke: w.local(q, p, "new"),
    "cut('p>q:line')": lambda w, p, q, line, poke: w.cut(line, times=None),
    "stopwatch('new')": lambda w, p, q, line, poke: w.stopwatch("new", p.n == 0, 2),
    "clock()": lambda w, p, q, line, poke: w.clock({"L": 1}),
    "takes('q')": lambda w, p, q, line, poke: w.takes(q, Pull, by=p),
    "ignores('p')": lambda w, p, q, line, poke: w.ignores(p, Pull),
    "may('p.new')": lambda w, p, q, line, poke: w.may(p, "new"),
    "crash('p')": lambda w, p, q, line, poke: w.crash(p),
    "never_refused('R')": lambda w, p, q, line, poke: w.never_refused("R", "", p),
    "property A": lambda w, p, q, line, poke: w.always_eventually("A", "", p.n == 0),
    "property L": lambda w, p, q, line, poke: w.leads_to("L", "", p.n == 0, p.n == 1, fair=["p.poke"]),
    "symmetric()": lambda w, p, q, line, poke: w.symmetric([p, q]),
}


@pytest.mark.parametrize("what", LATE)
def test_what_comes_after_the_world_was_closed_is_refused(what: str) -> None:
    made = pair()
    made[0].system()

    with pytest.raises(WorldError) as caught:
        LATE[what](*made)
    assert f"world w is closed, so {what} would change nothing; declare it before system() or check()" in str(caught.value)


def test_a_safety_property_may_still_be_added() -> None:
    world, p, *_ = pair()
    world.system()
    world.never("N", "p never counts", p.n == 1)

    assert check(world).verdict is Verdict.HOLDS


OTHERS: dict[str, Callable[[World, Any, Any, Any, Any, Made], Any]] = {
    "link": lambda w, p, q, line, poke, o: w.link(p, o[2], "new"),
    "lossy": lambda w, p, q, line, poke, o: w.link(q, p, "new", lossy=o[0].budget("b", 1)),
    "local": lambda w, p, q, line, poke, o: w.local(o[1], q, "new"),
    "cut": lambda w, p, q, line, poke, o: w.cut(o[3]),
    "stopwatch": lambda w, p, q, line, poke, o: w.stopwatch("new", o[1].n == 0, 2),
    "takes": lambda w, p, q, line, poke, o: w.takes(q, Pull, by=o[1]),
    "ignores": lambda w, p, q, line, poke, o: w.ignores(o[1], Pull),
    "may": lambda w, p, q, line, poke, o: w.may(o[1], "new"),
    "when": lambda w, p, q, line, poke, o: w.may(p, "new", when=o[1].n == 0),
    "times": lambda w, p, q, line, poke, o: w.may(p, "new", times=o[0].budget("b", 1)),
    "crash": lambda w, p, q, line, poke, o: w.crash(o[1]),
    "drops": lambda w, p, q, line, poke, o: w.crash(p, drops=[o[3]]),
    "always": lambda w, p, q, line, poke, o: w.always("A", "", (p.n == 0) & ~(o[1].n == 1)),
    "where": lambda w, p, q, line, poke, o: w.never("A", "", o[1].where(bool)),
    "step": lambda w, p, q, line, poke, o: w.step("A", "", o[1].n.next >= p.n),
    "link state": lambda w, p, q, line, poke, o: w.always("A", "", o[3].empty),
    "jointly": lambda w, p, q, line, poke, o: w.always("A", "", jointly(lambda a, b: a == b, p, o[1])),
    "ends": lambda w, p, q, line, poke, o: w.no_deadlock("A", "", ends=o[1].n == 0),
    "then": lambda w, p, q, line, poke, o: w.leads_to("A", "", p.n == 0, o[1].n == 0),
    "fair": lambda w, p, q, line, poke, o: w.always_eventually("A", "", p.n == 0, fair=[deliver, o[4]]),
    "strong": lambda w, p, q, line, poke, o: w.always_eventually("A", "", p.n == 0, fair=[strong(o[3])]),
    "refused": lambda w, p, q, line, poke, o: w.never_refused("A", "", o[1]),
    "symmetric": lambda w, p, q, line, poke, o: w.symmetric([p, o[1]]),
}


@pytest.mark.parametrize("where", OTHERS)
def test_a_handle_of_another_world_is_refused(where: str) -> None:
    with pytest.raises(WorldError, match=r"world w: .* which is of another world \(other\)"):
        OTHERS[where](*pair(), pair("other"))


@pytest.mark.parametrize("second", ["link", "local"])
def test_two_links_of_one_name_from_one_party_name_both_targets(second: str) -> None:
    world, p, q, *_ = pair()
    r = world.party("r", idle, initial=0)

    with pytest.raises(WorldError, match="two links 'line' leave p, to q and to r"):
        getattr(world, second)(p, r, "line")
    world.link(r, q, "line")


def test_two_parties_that_take_the_same_effect_are_both_named() -> None:
    world, p, q, *_ = pair()
    world.takes(q, Pull, by=p)

    with pytest.raises(WorldError, match="q and r both take Pull of p"):
        world.takes(world.party("r", idle, initial=0), Pull, by=p)


def test_an_unknown_name_in_fair_is_said_every_time() -> None:
    world, p, *_ = pair()
    world.always_eventually("A", "", p.n == 0, fair=["p.prod"])

    for _ in range(2):
        with pytest.raises(WorldError, match=r"fair='p\.prod' names no action"):
            check(world)


def test_one_name_is_no_list_of_names() -> None:
    world, p, *_ = pair()

    with pytest.raises(WorldError, match=r"fair='p\.poke' is one name; give a list"):
        world.always_eventually("A", "", p.n == 0, fair="p.poke")


def test_never_takes_a_constant() -> None:
    world, *_ = pair()
    world.never("N", "nothing", expr=False)
    world.never("T", "everything", expr=True)

    assert {p.property.id: p.verdict for p in check(world).properties} == {"N": Verdict.HOLDS, "T": Verdict.VIOLATED}
