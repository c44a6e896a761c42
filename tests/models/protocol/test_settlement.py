"""``spec/tla/Settlement.tla``: TLC checks it, checks that the session of ``races`` refines it, and tells a wrong one from a right one."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from attrs import frozen

from tests.models.tlc import TIMEOUT_S, TlcRun, require_tlc, tlc
from troth.models.bounds import Bounds
from troth.models.mutants import Mutant, mutated, of_worlds
from troth.models.tla import Exported, exported
from troth.models.world import World
from troth.models.worlds.protocol.session import Deal, session
from troth.models.worlds.protocol.settlement import MODULE, WATCHED, refined
from troth.models.worlds.races import build, deal

TLA = files("troth.spec") / "tla"
TEXT = (TLA / f"{MODULE}.tla").read_text(encoding="ascii")
CONFIG = (TLA / f"{MODULE}.cfg").read_text(encoding="ascii")
ONE_TASK = CONFIG.replace("Tasks = {1, 2}", "Tasks = {1}")
CONFIGURED = 97_884
"""States of the module as it is configured, with two tasks."""


def checked(folder: Path, text: str = TEXT, config: str = ONE_TASK, *, most_s: float = TIMEOUT_S) -> TlcRun:
    """TLC on a version of the module."""
    (folder / f"{MODULE}.tla").write_text(text, encoding="ascii")
    (folder / f"{MODULE}.cfg").write_text(config, encoding="ascii")
    return tlc(folder, MODULE, most_s=most_s)


NEXT = TEXT[TEXT.index("\nNext ==") + len("\nNext ==") : TEXT.index("\nSafety ==")]
ACTIONS: tuple[tuple[str, str], ...] = tuple(
    (name, given) for name, given in re.findall(r"\b([A-Z]\w+)(?:\(([^)]*)\))?", NEXT) if name not in ("Tasks", "Receivers", "SUBSET")
)
"""The disjuncts of the module's ``Next``, with their parameters."""


@frozen
class Refining:
    """What TLC said of a refinement."""

    run: TlcRun
    export: Exported
    taken: frozenset[str]
    """Actions of the module that some step of the world is."""
    alone: frozenset[str]
    """Actions that are the only one that some step can be."""


def against(folder: Path, has: Deal, mutant: str = "", *, most_s: float = TIMEOUT_S) -> Refining:
    """TLC on the exported session of ``has``, which is said to implement the module; it says which actions were taken on the way."""
    world = World("refined", "a session, to be seen as Settlement")
    mapping = refined(session(world, has, WATCHED))
    if mutant:
        world = mutated(world, _named(world, mutant))
    export = exported(world, definitions=mapping.definitions, refines=[mapping.refinement])
    export.write(folder)
    (folder / f"{MODULE}.tla").write_text(TEXT, encoding="ascii")
    (folder / "Taken.tla").write_text(told(export.module, has), encoding="ascii")
    (folder / "Taken.cfg").write_text(export.config + "Taken\n", encoding="ascii")
    found = tlc(folder, "Taken", most_s=most_s)
    if found.holds:
        assert (found.distinct, found.generated, found.depth) == (export.states, export.edges + 1, export.depth + 1)
    said = {word: frozenset(re.findall(rf'<<"{word}", "(\w+)">>', found.output)) for word in ("taken", "alone")}
    return Refining(found, export, said["taken"], said["alone"])


def told(module: str, has: Deal) -> str:
    """A module that prints each action when it is taken for the first time, and when it is for the first time all that a step can be."""
    tasks, receivers = f"1 .. {has.tasks}", "{" + ", ".join(map(str, range(has.receivers))) + "}"
    over = {
        "": "", "t": f"\\E t \\in {tasks} : ", "t, r": f"\\E t \\in {tasks}, r \\in {receivers} : ",
        "dropped": f"\\E dropped \\in SUBSET ({tasks}) : ",
    }  # fmt: skip
    cases = [
        f"n = {n} -> {over[given]}{MODULE}_instance!{name}" + (f"({given})" if given else "") for n, (name, given) in enumerate(ACTIONS, 1)
    ]
    names = ", ".join(f'"{name}"' for name, _ in ACTIONS)
    return f"""---- MODULE Taken ----
EXTENDS {module}, TLC, FiniteSets
ASSUME \\A n \\in 1 .. {2 * len(ACTIONS)} : TLCSet(n, FALSE)
Names == <<{names}>>
Is(n) == CASE {f"{chr(10)}  [] ".join(cases)}
First(n, what, name) == TLCGet(n) \\/ (TLCSet(n, TRUE) /\\ PrintT(<<what, name>>))
Tell ==
  LET these == {{n \\in 1 .. {len(ACTIONS)} : Is(n)}}
  IN  /\\ \\A n \\in these : First(n, "taken", Names[n])
      /\\ Cardinality(these) = 1 => \\A n \\in these : First({len(ACTIONS)} + n, "alone", Names[n])
Taken == [][({MODULE}_instance!vars)' # {MODULE}_instance!vars => Tell]_vars
====
"""


def _named(world: World, name: str) -> Mutant:
    return next(mutant for mutant in of_worlds([world]) if mutant.name == name)


def test_the_module_holds_for_one_task(tmp_path: Path) -> None:
    """Every invariant, every property of steps, and everything that must happen in the end."""
    require_tlc()
    found = checked(tmp_path)

    assert found.holds, found.output
    assert found.distinct == 1_563


@pytest.mark.slow
@pytest.mark.parametrize("in_the_end", [False, True], ids=["at every moment", "and in the end"])
def test_the_module_holds_as_configured(in_the_end: bool, tmp_path: Path) -> None:
    """Two tasks, so that one can be passed. What must happen in the end takes TLC many times as long as everything else."""
    require_tlc()
    safety = re.sub(r"^  (AcceptedIsDecided|SettlingIsNoted|AbortIsHeard)\n", "", CONFIG, flags=re.MULTILINE)
    found = checked(
        tmp_path, config=CONFIG if in_the_end else safety.replace("SPECIFICATION Spec", "SPECIFICATION Safety"), most_s=4 * 3600
    )

    assert found.holds, found.output
    assert found.distinct == CONFIGURED


def test_everything_that_is_named_is_checked() -> None:
    """An invariant that the configuration forgets is a comment."""
    section = TEXT[TEXT.index("What users rely on, in every state.") : TEXT.index("THEOREM")]
    named = set(re.findall(r"^(\w+) *==", section, re.MULTILINE)) - {"Decided"}
    listed = set(re.findall(r"^  (\w+)$", CONFIG, re.MULTILINE)) - {"TypeOK"}

    assert named == listed
    for name in named:
        assert re.search(rf"THEOREM .*\b{name}\b", TEXT), name


@pytest.mark.parametrize(
    ("old", "new", "violated"),
    [
        (r"/\ \E a \in 1 .. Attempts : /\ a > fenced[t]", r"/\ \E a \in 1 .. Attempts : /\ a > 0", "action property"),
        (r"  /\ word[t] = " + '"open"\n' + r"  /\ decision[t] \in Taken", r"  /\ word[t] = " + '"open"', "AcceptedIsTrue"),
        (r"trainer' = IF \E t \in Tasks : word[t] \in Busy THEN", "trainer' = IF FALSE THEN", "SourceIsServed"),
        (r'[] word[t] = "settling"             -> "settled"', '[] word[t] = "settling"             -> "settling"', "AbortIsTotal"),
        (r"\/ decision[t] = " + '"accepted"' + r" /\ holders[t] = Receivers", r"\/ decision[t] = " + '"accepted"', "SettledIsHeld"),
    ],
    ids=[
        "a promise that is broken",
        "belief without a decision",
        "a shutdown that does not wait",
        "an abort that spares",
        "settled unheld",
    ],
)
def test_a_module_that_is_wrong_is_told_from_a_right_one(old: str, new: str, violated: str, tmp_path: Path) -> None:
    """Each of these lines is there for a reason; without it, the property of that reason is violated."""
    require_tlc()
    assert old in TEXT
    found = checked(tmp_path, TEXT.replace(old, new, 1))

    assert violated in found.violated, found.output


BASE = deal(Bounds({"loss": 1, "duplication": 0, "crashes": 1, "room": 1}))
AT_LEISURE = Deal(
    receivers=1, task_payload_fails=1, task_payload_waits=True, orders=("stop", "abort"), calls=("receive", "take", "send", "shutdown"),
    without=frozenset({"beat"}),
)  # fmt: skip
"""A task whose payload takes its time, or is lost, and a user who shuts down: what ``races`` leaves out."""
ONLY_AT_LEISURE = {"Queue", "Miss", "TrainerCloses"}
ONLY_WITH_FAULTS = {"Promise", "HearRejected", "HostStops", "HostDies", "TrainerDies"}


def test_the_actions_are_read_off_the_module() -> None:
    """So that one that is added there is asked about here."""
    assert len(ACTIONS) == 28
    assert {name for name, _ in ACTIONS} <= set(re.findall(r"^(\w+)(?:\([^)]*\))? *==", TEXT, re.MULTILINE))
    assert {name for name, _ in ACTIONS} > ONLY_AT_LEISURE | ONLY_WITH_FAULTS


def test_the_races_refine_the_module(tmp_path: Path) -> None:
    """With a lost message and a crash of each side, at any moment: every step of the real cores is a step of the abstraction, or none.

    And not because everything is: but for three, each action is taken, and is all that some step can be; without it, that step would
    be none of the abstraction's.
    """
    require_tlc()
    found = against(tmp_path, BASE)

    assert found.run.holds, found.run.output
    assert found.run.distinct == 46_353
    assert found.taken == found.alone == {name for name, _ in ACTIONS} - ONLY_AT_LEISURE


def test_a_session_at_leisure_refines_the_module(tmp_path: Path) -> None:
    """The other three actions are taken where the payload of a task may be long in coming, and the user may shut down."""
    require_tlc()
    found = against(tmp_path, AT_LEISURE)

    assert found.run.holds, found.run.output
    assert found.run.distinct == 7_953
    assert found.taken == found.alone == {name for name, _ in ACTIONS} - ONLY_WITH_FAULTS


@pytest.mark.parametrize("world", ["two tasks", "races with a repeated message", "races"])
@pytest.mark.slow
def test_larger_worlds_refine_the_module(world: str, tmp_path: Path) -> None:
    """Two tasks of a launched trainer; ``races`` with a message that is lost and one that is repeated; and at its standard bounds."""
    require_tlc()
    has, states, edges = LARGER[world]
    found = against(tmp_path, has, most_s=3 * 3600)

    assert found.run.holds, found.run.output
    assert (found.run.distinct, found.run.generated) == (states, edges + 1)


LARGER = {
    "two tasks": (Deal(tasks=2, receivers=1, launched=True, without=frozenset({"beat"})), 67_746, 217_856),
    "races with a repeated message": (deal(Bounds({"loss": 1, "duplication": 1, "crashes": 0, "room": 1})), 750_919, 2_995_116),
    "races": (deal(Bounds({name: bound.default for name, bound in build.bounds.items()})), 1_540_942, 13_956_028),
}
"""What they have, and how many states and edges: as many as our own engines count. There are fewer than in ``troth check races``,
because less is watched here; what can happen is the same."""


@pytest.mark.parametrize("mutant", ["D8", "D15"])
def test_a_defect_breaks_the_refinement(mutant: str, tmp_path: Path) -> None:
    """A trainer that takes delivery for acceptance does what the abstraction forbids, and so does one that outlives its ABORT."""
    require_tlc()
    found = against(tmp_path, Deal(losses=1, orders=("stop", "abort"), without=frozenset({"beat"})), mutant)

    assert not found.run.holds
    assert "action property" in found.run.violated, found.run.output
