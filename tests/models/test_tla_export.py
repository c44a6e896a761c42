"""Exported worlds, run by TLC: the same states, edges and depth, and the same verdicts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest

from tests.models.random_worlds import random_world
from tests.models.tlc import TlcRun, require_tlc, tlc
from troth.cli.finding import find
from troth.models import Verdict, World, check, deliver, jointly, scalar
from troth.models.errors import Exhausted, WorldError
from troth.models.exploration import Limits
from troth.models.properties import PropertyKind
from troth.models.tla import Exported, Refinement, exported
from troth.models.vector import driver
from troth.models.worlds.bench.session import session
from troth.spec import core, messages
from troth.spec.core import CancelTimer, CancelTransfer, LinkLost, LinkUp, Pull, Received, Send, SetTimer, TimerFired, TransferOutcome

# -- worlds ------------------------------------------------------------------------------------------------------------


def send(link: str, message: Any) -> Send:
    """An effect of a toy, whose messages are words."""
    return Send(link, message)


class Beacon(NamedTuple):
    """A party of the toy: counts what it heard, up to 2."""

    heard: int = 0
    waiting: bool = False


def beacon(state: Beacon, event: Any) -> Any:
    """Calls, a timer that repeats a call, and messages that are answered once."""
    match event:
        case core.Called(call="call"):
            return None if state.waiting else (state._replace(waiting=True), (send("air", "hello"), SetTimer("again", None, 0, "patience")))
        case TimerFired():
            return state, (send("air", "hello"), SetTimer("again", None, 0, "patience")) if state.waiting else ()
        case Received(message="hello"):
            return state._replace(heard=min(2, state.heard + 1)), (send("air", "heard"),)
        case Received(message="heard"):
            return state._replace(waiting=False), (CancelTimer("again", None),)
        case LinkUp() | LinkLost():
            return state, ()
    return None


def toy() -> World:
    """Unordered, lossy and duplicating links, a timer, a crash between effects, a link that is cut, a shared budget."""
    world = World("toy", "two beacons (* and a comment \\* in its name *)")
    parties = [world.party(n, beacon, initial=Beacon(), observe={"heard": lambda s: s.heard}) for n in ("north", "WITH")]
    faults = world.budget("faults", 1)
    there = world.link(parties[0], parties[1], "air", ordered=False, lossy=faults, duplicating=faults, capacity=2)
    back = world.link(parties[1], parties[0], "air", ordered=True, lossy=faults, capacity=1)
    world.cut(there, back, times=1)
    world.may(parties[0], "call", times=1)
    world.may(parties[1], "call", times=1, when=there.empty & (parties[0].heard == 0))
    world.crash(parties[1], times=1, keeps=lambda s: s.heard, restarted=Beacon)
    world.always("bounded", "at most two are counted", parties[0].heard + parties[1].heard <= 4)
    world.step("grows", "what was heard stays heard", parties[1].heard.next >= parties[1].heard)
    few = jointly(lambda one, letters: one.heard + len(letters) < 5, parties[0], there)
    world.step("few", "a condition on two components, before and after", few >> few.next)
    world.sometimes("both", "both hear", (parties[0].heard > 0) & (parties[1].heard > 0))
    world.leads_to("answered", "a call is answered", parties[0].heard == 0, parties[0].heard > 0, fair=[deliver])
    return world


def timed() -> World:
    """A clock, a delay and a stopwatch."""

    def step(state: int, event: Any) -> Any:
        match event:
            case core.Called():
                return (1, (send("line", "ping"), SetTimer("late", None, 0, "limit"))) if state == 0 else None
            case Received():
                return (2, (CancelTimer("late", None),)) if state == 1 else (state, ())
            case TimerFired():
                return 3, ()
        return state, ()

    world = World("timed")
    one = world.party("one", step, initial=0, observe={"state": lambda s: s})
    two = world.party("two", lambda s, e: (s, (send("line", "pong"),)), initial=0)
    world.clock({"limit": 3})
    world.duplex(one, two, "line", delay=1, capacity=1)
    world.may(one, "ask")
    watch = world.stopwatch("waiting", one.state == 1, most=5)
    world.always("in time", "an answer takes two ticks", watch.ticks <= 2)
    world.no_deadlock("goes on", "time passes")
    return world


def made(kind: type[Any]) -> Any:
    """A message about the one task there is."""
    return kind(**{f.name: MESSAGE.get(f.name, False) for f in attrs.fields(kind)})


MESSAGE = {"epoch": 1, "seq": 1, "receiver": 0}


def download() -> World:
    """One of our own cores: a receiver, its party, and a source that answers, drops or has nothing."""

    def party(state: int, event: Any) -> Any:
        if isinstance(event, Received):
            return 2, ()
        ask, drop = made(messages.FetchPayload), made(messages.DropPayload)
        return (1, (Send("party", ask),)) if state == 0 else (3, (Send("party", drop),)) if state == 1 else None

    def source(state: int, event: Any) -> Any:
        match event:
            case Received(message=messages.PayloadHeld()):
                return 2, (Send("data", made(messages.PayloadReleased)),)
            case Received():
                return 3, ()
        return None

    def bytes_(state: int, event: Any) -> Any:
        match event:
            case core.Called(call="end", number=number):
                outcome = TransferOutcome.COMPLETE if number else TransferOutcome.FAILED
                return (0, (_give(core.TransferEnded("payload", (1, 0), outcome)),)) if state else None
            case core.Called(call="move"):
                return (1, (_give(core.TransferProgressed("payload", (1, 0))),)) if state else None
        return (1, ()) if isinstance(event.effect, Pull) else (0, ())

    from troth.statemachines.receiver import Receiver

    world = World("download", "a receiver with everything around it")
    receiver = world.party("receiver", Receiver)
    asker = world.party("asker", party, initial=0)
    holder = world.party("source", source, initial=0)
    transfer = world.party("transfer", bytes_, initial=0)
    world.local(asker, receiver, "party")
    world.local(receiver, asker, "party")
    world.duplex(receiver, holder, "data", lossy=1, capacity=2)
    world.takes(transfer, Pull, CancelTransfer, by=receiver)
    world.may(asker, "fetch")
    for number in (0, 1):
        world.may(transfer, "end", number=number, name=f"end {number}")
    world.may(transfer, "move")
    world.always("one end", "what is held is not lost", ~(receiver.holds & receiver.lost))
    world.never("still", "nothing is pulled once it is over", receiver.over & receiver.pulling)
    return world


def _give(event: Any) -> Any:
    from troth.models import Give

    return Give("receiver", event)


SESSIONS = {f"session {' '.join(map(str, size))}": size for size in ((1, 1, 1, 1), (1, 1, 2, 2))}
BUILT_IN = (
    "published/die_hard", "published/dining_philosophers", "published/peterson", "published/two_phase_commit", "answers/receivers",
)  # fmt: skip
"""The last for its links that merge, and timers that wait for a condition."""
WORLDS: dict[str, Any] = {
    **{name: lambda size=size: session(**dict(zip("TRAC", size, strict=True))) for name, size in SESSIONS.items()},
    "toy": toy,
    "timed": timed,
    "download": download,
    **{name: lambda name=name: find(name).build({}) for name in BUILT_IN},
    **{f"random {seed}": lambda seed=seed: random_world(seed, truncates=seed % 3 == 0) for seed in range(6)},
}


# -- agreement ---------------------------------------------------------------------------------------------------------


def run(export: Exported, folder: Path, ids: list[str] | None = None) -> TlcRun:
    """TLC on an export, checking these properties (default: all)."""
    require_tlc()
    export.write(folder)
    if ids is not None:
        (folder / f"{export.module}.cfg").write_text(export.configured(ids))
    return tlc(folder, export.module)


@pytest.mark.parametrize("name", WORLDS)
def test_tlc_counts_the_same_states_and_edges(name: str, tmp_path: Path) -> None:
    """Exactly; and what Troth says holds, TLC says holds."""
    result = check(WORLDS[name](), engine="scalar")
    verdicts = {p.property.id: p.verdict for p in result.properties}
    export = exported(WORLDS[name]())
    broken = [i for i in (*export.invariants, *export.temporal) if verdicts[i] is Verdict.VIOLATED]
    found = run(export, tmp_path, [i for i in verdicts if i not in broken])

    assert found.holds, found.output
    assert (found.distinct, found.generated, found.depth) == (result.states, result.edges + 1, result.depth + 1)
    assert (export.states, export.edges, export.depth) == (result.states, result.edges, result.depth)


@pytest.mark.parametrize("seed", range(4))
def test_tlc_finds_the_same_violations_by_traces_as_short(seed: int, tmp_path: Path) -> None:
    """One run for each violated property: TLC stops at the first."""
    result = check(random_world(seed), engine="scalar")
    export = exported(random_world(seed))
    for one in result.properties:
        if one.verdict is not Verdict.VIOLATED or one.property.id in export.left_out:
            continue
        found = run(export, tmp_path, [one.property.id])

        assert one.trace is not None
        assert not found.holds
        assert found.trace == len(one.trace.steps) + 1
        expected = "action property" if one.property.kind is PropertyKind.STEP else export.invariants[one.property.id]
        assert found.violated == (expected,)


def test_an_injected_fault_is_a_violation_for_tlc_too(tmp_path: Path) -> None:
    """A source that is let go when its receivers have not settled yet."""
    world = session(T=1, R=1, A=1, C=1, BUG=2)
    broken = next(p for p in check(world, engine="scalar").properties if p.verdict is Verdict.VIOLATED)
    found = run(exported(world), tmp_path, [broken.property.id])

    assert broken.property.id == "SourceLive"
    assert broken.trace is not None
    assert (found.violated, found.trace) == (("SourceLive",), len(broken.trace.steps) + 1)


LARGER = {"session 1 2 2 2": lambda: session(T=1, R=2, A=2, C=2), "published/paxos": lambda: find("published/paxos").build({})}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_tlc_counts_a_larger_world_alike(name: str, tmp_path: Path) -> None:
    """27,522 states; and a component of 3,921 local states, whose table is cut into pieces."""
    export = exported(LARGER[name]())
    found = run(export, tmp_path)

    assert found.holds, found.output
    assert (found.distinct, found.generated, found.depth) == (export.states, export.edges + 1, export.depth + 1)


# -- refinement --------------------------------------------------------------------------------------------------------

COUNTER = """---- MODULE Counter ----
EXTENDS Integers
CONSTANT Most
VARIABLE count
Init == count = 0
Next == count < Most /\\ count' = count + 1
Spec == Init /\\ [][Next]_count
====
"""


@pytest.mark.parametrize(("most", "holds"), [(2, True), (1, False)])
def test_an_abstract_module_is_checked_against_the_world(most: int, holds: bool, tmp_path: Path) -> None:
    """The abstraction sees the world through a mapping of observations."""
    world = timed()
    export = exported(world, refines=[Refinement("Counter", {"Most": str(most), "count": world.handles[0].see("state")})])
    (tmp_path / "Counter.tla").write_text(COUNTER)

    assert run(export, tmp_path, ["Counter"]).holds is holds


# -- the text ----------------------------------------------------------------------------------------------------------


def test_the_text_says_what_is_not_checked() -> None:
    """Witnesses and liveness, with the reason."""
    export = exported(toy())

    assert set(export.left_out) == {"both", "answered"}
    assert "\\* Not checked: answered, liveness, and fairness is not exported." in export.text.splitlines()


def test_variables_are_called_after_components_and_properties_after_their_ids() -> None:
    """As far as TLA+ lets them: a keyword gets a number."""
    export = exported(toy())

    assert "north," in export.text
    assert "WITH_2," in export.text
    assert "north_to_WITH_air," in export.text
    assert export.invariants == {"bounded": "bounded"}
    assert export.temporal == {"grows": "grows", "few": "few"}


def test_comments_tell_the_numbers_in_the_protocols_words() -> None:
    """Local states, items, actions."""
    lines = exported(session(T=1, R=1, A=1, C=1)).text.splitlines()

    assert "\\* 1 Host(state 0, lease, tasks (0), canonical (0))" in lines
    assert "\\* 40 trainer receives TASK(task 0, attempt 0) on trainer" in lines
    assert "\\* host.send_task 0 (call, by the environment)" in lines


def test_a_joint_condition_that_is_too_large_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is named."""
    monkeypatch.setattr("troth.models.tla.claims.JOINT_LIMIT", 10)
    reason = exported(session(T=1, R=1, A=1, C=1)).left_out["OneCanonical"]

    assert reason.endswith("combinations of local states, more than 10")


def test_a_property_that_raises_is_left_out_with_its_reason() -> None:
    """It is an error of the world, and never an operator."""
    world = toy()
    north, south, *_ = world.handles
    world.always("raises", "divides by zero", north.where(lambda s: 1 // (s.heard - 1) < 5))
    world.always("joint", "divides by zero", jointly(lambda a, b: 1 // (a.heard - 1) < 5, north, south))
    left_out = exported(world).left_out

    assert "raises ZeroDivisionError" in left_out["raises"]
    assert "raises ZeroDivisionError" in left_out["joint"]


def test_a_world_that_was_not_searched_completely_is_not_exported() -> None:
    """A table with holes would agree with nothing."""
    with pytest.raises(Exhausted, match="only a world that was searched completely is exported"):
        exported(session(T=1, R=1, A=1, C=1), limits=Limits(max_states=100))


def test_an_export_is_whole_where_a_search_would_have_used_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process asks a component, and notes of its states, stays there: tables from such a search have holes."""

    def world() -> World:
        tree = World("tree", "each state is one local state, so it is one process that asks what comes of it")
        walker = tree.party("walker", lambda n, event: (2 * n + (event.call == "right"), ()) if n < 512 else None, initial=1)
        tree.may(walker, "left")
        tree.may(walker, "right")
        return tree

    alone = exported(world(), limits=Limits(workers=1)).text
    monkeypatch.setattr(driver, "FORK_FRONTIER", 20)
    monkeypatch.setattr(driver, "FORK_LEARNT", 1 << 30)
    monkeypatch.setattr(scalar, "explore_if_small", lambda *_args, **_options: None)

    assert check(world(), limits=Limits(workers=2)).exploration.processes == 2
    assert exported(world()).text == alone
    assert exported(world(), limits=Limits(workers=2)).text == alone
    assert exported(searched := world()).text == alone
    assert check(searched, limits=Limits(workers=2)).exploration.processes == 2
    assert exported(searched).text == alone


def test_observations_and_definitions_are_written_when_asked_for() -> None:
    """For a mapping to an abstract module."""
    world = toy()
    north = world.handles[0]
    text = exported(world, observed=True, definitions={"enough": north.see("heard") >= 2}).text

    assert "\nWITH_2_heard == <<" in text
    assert "\nenough == (north_heard[north] >= 2)\n" in text


def test_a_definition_that_cannot_be_written_is_an_error_that_names_it() -> None:
    """Unlike a property, it was asked for."""
    world = toy()
    north = world.handles[0]
    with pytest.raises(WorldError, match="`north.heard` is a number where a condition is needed"):
        exported(world, definitions={"wrong": north.see("heard") & (north.see("heard") == 1)})


@pytest.mark.parametrize("make", ["session(T=1, R=1, A=2, C=2)", "test_tla_export.toy()"])
def test_the_same_bytes_whatever_the_hash_seed_and_the_engine(make: str) -> None:
    """The numbering is by text, not by discovery."""
    script = (
        "import sys, hashlib\n"
        "from tests.models import test_tla_export\n"
        "from troth.models import check\n"
        "from troth.models.tla import exported\n"
        "from troth.models.worlds.bench.session import session\n"
        f"world = {make}\n"
        "if sys.argv[1] != 'none': check(world, engine=sys.argv[1])\n"
        "print(hashlib.sha256(exported(world).text.encode()).hexdigest())"
    )
    root = str(Path(__file__).parents[2])
    texts = set()
    for seed, engine in (("1", "none"), ("2", "scalar"), ("3", "vector")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        done = subprocess.run([sys.executable, "-c", script, engine], capture_output=True, text=True, check=True, env=environment, cwd=root)
        texts.add(done.stdout)

    assert len(texts) == 1
