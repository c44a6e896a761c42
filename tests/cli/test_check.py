"""``troth check`` and ``troth worlds``: what they print, how they exit, and what they say of a file that is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from troth import cli
from troth.cli import report, words
from troth.models import worlds as built_in
from troth.models.exploration import Progress

HEAVY = "{'numpy', 'scipy', 'trio', 'hypothesis', 'rich', 'transitions', 'multiprocessing', 'troth.models.render.text'}"
LOCK = "tests.models.toys:lock"
WAIT = "tests.models.toys:stop_and_wait"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = cli.run(["check", *arguments] if arguments[:1] != ("worlds",) else list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """What is printed with --json; nothing else may be."""
    _, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    found: dict[str, object] = json.loads(out)
    return found


def file_of(folder: Path, text: str) -> str:
    """A file of worlds, as a path."""
    path = folder / "mine.py"
    path.write_text("from troth.models import *\n" + dedent(text))
    return str(path)


# -- verdicts and exit codes -------------------------------------------------------------------------------------------


def test_a_world_that_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for the world, one for each property, one for the sum."""
    code, out, err = run(capsys, "published/peterson")
    lines = out.splitlines()

    assert (code, err) == (0, "")
    assert lines[0].startswith("published/peterson   FAIR=1   58 states   116 edges   depth 11   ")
    assert lines[1] == "  Exclusive  HOLDS      never are both in the critical section"
    assert lines[-1] == "4 hold, nothing vacuous   exit 0"


def test_a_world_that_is_violated_shows_the_steps_and_how_to_see_them_again(capsys: pytest.CaptureFixture[str]) -> None:
    """And the line that it prints does show them again."""
    code, out, _ = run(capsys, LOCK, "--bound", "LOSS=0", "--property", "MUTEX")
    (replay,) = [line for line in out.splitlines() if "replay:" in line]
    words = replay.split("replay: ")[1].split("   ")[0].split()

    assert code == 1
    assert "  MUTEX  VIOLATED   never do two hold the lock   8 steps" in out
    assert words[:7] == ["troth", "check", LOCK, "--bound", "LOSS=0", "--property", "MUTEX"]
    again, shown, _ = run(capsys, *words[2:])
    assert again == 1
    assert [line.strip() for line in shown.splitlines()[:-1]] == [
        line.strip() for line in out.splitlines()[3 : 3 + len(shown.splitlines()) - 1]
    ]
    assert shown.splitlines()[-1] == "VIOLATED  MUTEX  never do two hold the lock"


def test_what_was_not_looked_at_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3, with the reason."""
    code, out, _ = run(capsys, WAIT, "--max-states", "20")

    assert code == 3
    assert "ONCE   UNKNOWN    no frame is taken twice" in out
    assert "the limit given" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "there is no world 'nowhere'; perhaps answers"),
        (["zzzzz"], "there is no world 'zzzzz'; there are answers, "),
        (["publisched/paxos"], "there is no world 'publisched/paxos'; perhaps published/paxos"),
        (["nofile.py:x"], "there is no file nofile.py"),
        (["nomodule:x"], "there is no module 'nomodule'"),
        ([f"{LOCK}s"], f"{LOCK}s: there is no 'locks'; its worlds are lock, stop_and_wait"),
        (["tests.models.toys:Frame"], "tests.models.toys:Frame"),
        (["tests.models.toys:MESSAGE"], "there is no 'MESSAGE'"),
        ([LOCK, "--bound", "COINS=1"], "world lock has no bound 'COINS'; it has LOSS, CRASHES"),
        ([LOCK, "--bound", "LOSS=-1"], "world lock: LOSS = -1 is out of range; losses: 0 to 65536"),
        ([LOCK, "--bound", "LOSS"], "--bound LOSS: write NAME=VALUE with a whole number, like --bound T=2"),
        ([LOCK, "--bound", "LOSS=1.5"], "--bound LOSS=1.5: write NAME=VALUE"),
        ([LOCK, "--bound", "LOSS=1", "--bound", "LOSS=2"], "--bound LOSS was given twice"),
        ([LOCK, WAIT, "--bound", "COINS=1"], "no world here has a bound 'COINS'; they have CRASHES, LIVE, LOSS, SENDS"),
        ([LOCK, "--property", "P1"], "world lock has no property 'P1'; it has MUTEX, HELD, SERVED"),
        ([LOCK, WAIT, "--property", "P1"], "no world here has a property 'P1'; they have MUTEX"),
        ([LOCK, "--mutant", "x"], "there is nothing to mutate in lock: no party is a declared one"),
        ([WAIT, "--mutant", "alice.sender:S1:dorp"], "has no mutant 'alice.sender:S1:dorp'; it has 23, like alice.sender:S1:drop"),
        ([LOCK, "--replay", "nonsense!"], f"world {LOCK}: 'nonsense!' is no replay token; copy it whole"),
        (["--replay", "x"], "--replay needs the WORLD that the token is of, and only that one"),
        ([LOCK, "--mutants", "--property", "MUTEX"], "--mutants goes with none of --mutant, --property, --replay and --html"),
        ([LOCK, "--html", "/nowhere/at/all.html"], "--html /nowhere/at/all.html: there is no folder /nowhere/at"),
        ([LOCK, "--workers", "0"], "Invalid value for '--workers': 0 is not in the range x>=1."),
        ([LOCK, "--max-states", "no"], "Invalid value for '--max-states'"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    """Exit code 2, nothing on stdout, and what there is instead."""
    code, out, err = run(capsys, *arguments)

    assert (code, out) == (2, "")
    assert err.startswith("troth: ")
    assert says in err
    assert err.count("\n") == 1


# -- worlds of one's own -----------------------------------------------------------------------------------------------

GOOD = """
    @blueprint("mine", N=Bound(1, "steps"))
    def mine(bounds):
        world = World("mine")
        party = world.party("a", lambda s, e: (min(s + 1, bounds.N), []), initial=0)
        world.may(party, "go")
        world.always("P", "it is small", party.where(lambda s: s <= 2))
        return world

    def plain():
        return mine(N=2)

    made = plain()
"""


@pytest.mark.parametrize("attribute", ["", ":mine", ":plain", ":made"])
def test_a_world_may_be_a_blueprint_a_function_or_a_world(capsys: pytest.CaptureFixture[str], tmp_path: Path, attribute: str) -> None:
    """In a file; without a name where the file has only one."""
    path = file_of(tmp_path, GOOD if attribute else GOOD.replace("made", "_made"))

    assert run(capsys, path + attribute)[0] == 0


BROKEN = {
    "syntax": ("def mine(:\n    pass\n", "mine.py:2: SyntaxError: "),
    "import": ("import nothing_of_that_name\n", "mine.py:2: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    "raises": ('@blueprint("m")\ndef mine(bounds):\n    return 1 // 0\n', "mine.py:4: ZeroDivisionError: "),
    "bound": ('@blueprint("m", N=Bound(1, "n"))\ndef mine(bounds):\n    return World(str(bounds.M))\n', "mine.py:4: "),
    "two": (
        '@blueprint("m")\ndef mine(bounds):\n    w = World("m")\n    w.budget("b", 1)\n    w.budget("b", 1)\n    return w\n',
        "mine.py:6: world m: there are two components 'b'; give one another name",
    ),
    "nothing": ('@blueprint("m")\ndef mine(bounds):\n    World("m")\n', "mine.py:2: world m: its function returns nothing"),
    "empty": ('@blueprint("m")\ndef mine(bounds):\n    return World("m")\n', "mine.py:2: the world is empty; declare a party"),
    "effect": (
        '@blueprint("m")\ndef mine(bounds):\n    w = World("m")\n'
        '    w.may(w.party("a", lambda s, e: (s, ["odd"]), initial=0), "go")\n    return w\n',
        "mine.py:2: nothing in the world takes 'odd' of a",
    ),
    "no world": ("def mine():\n    return 3\n", "mine returned 3; it must return a World"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_named_with_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    """One line, exit code 2, no traceback."""
    text, says = BROKEN[kind]
    code, out, err = run(capsys, f"{file_of(tmp_path, text)}:mine")

    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


FAILING = {
    "raises": ("lambda s, e: (1 // (1 - s), [])", "a raised ZeroDivisionError"),
    "differs": ("lambda s, e, seen=[]: (seen.append(0) or len(seen), [])", "not deterministic"),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_party_that_cannot_step_is_an_error_and_never_a_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    """Exit code 3; with --json the object says so; the worlds after it are checked all the same."""
    step, says = FAILING[kind]
    path = file_of(
        tmp_path,
        f'@blueprint("m")\ndef mine(bounds):\n    w = World("m")\n    w.may(w.party("a", {step}, initial=0), "go")\n    return w\n',
    )
    code, out, err = run(capsys, f"{path}:mine", "published/die_hard", "--json")
    data = json.loads(out)

    assert code == 3
    assert says in err
    assert [w["verdict"] for w in data["worlds"]] == ["error", "holds"]
    assert data["verdict"] == "error"
    assert says in data["worlds"][0]["reason"]


# -- JSON, page, mutants -----------------------------------------------------------------------------------------------


def test_json_of_one_world_of_several_and_of_mutants(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys that the design fixes."""
    monkeypatch.setattr(built_in, "STANDARD", ("published/die_hard", "published/peterson"))
    alone, several = as_json(capsys, "published/die_hard"), as_json(capsys)
    mutants = as_json(capsys, WAIT, "--mutants", "--workers", "1")

    assert {"world", "bounds", "verdict", "states", "edges", "depth", "seconds", "tabulation_s", "components"} <= set(alone)
    assert {"truncated", "properties", "vacuous"} <= set(alone)
    assert set(several) == {"worlds", "verdict", "seconds"}
    assert {"killed", "equivalent", "survived", "unknown", "kills"} <= set(mutants)
    kills = mutants["kills"]
    assert isinstance(kills, dict)
    assert kills["bert.receiver:R1:unguarded"] == {"property": "ONCE", "world": "stop-and-wait", "depth": 4, "role": "promise"}
    assert mutants["killed_by"] == {"promise": len(mutants["killed"]), "conformance": 0, "reach": 0, "core": 0}  # type: ignore[arg-type]
    assert mutants["equivalent"] == ["bert.receiver:R2:unguarded"]


def test_mutants_exit_with_one_when_one_survives_and_three_when_one_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    """And say which."""
    code, out, _ = run(capsys, WAIT, "--mutants", "--workers", "1")
    assert code == 1
    assert "  survived    alice.sender:S1:silent-1" in out
    assert "  killed      alice.sender:S1:drop" in out
    assert out.splitlines()[-1].startswith("23 mutants: ")

    code, out, _ = run(capsys, WAIT, "--bound", "LIVE=0", "--mutants", "--workers", "1", "--max-states", "2")
    assert code == 3
    assert "unknown" in out


def test_a_single_mutant_is_checked_like_a_world(capsys: pytest.CaptureFixture[str]) -> None:
    """Its replay line names it."""
    code, out, _ = run(capsys, WAIT, "--mutant", "bert.receiver:R1:unguarded", "--property", "ONCE")

    assert code == 1
    assert "stop-and-wait   with bert.receiver:R1:unguarded" in out
    words = next(line for line in out.splitlines() if "replay:" in line).split("replay: ")[1].split("   ")[0].split()
    assert run(capsys, *words[2:])[0] == 1


def test_the_worlds_are_listed_with_all_that_can_be_asked_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Bounds with their defaults, parties, properties; the standard ones first."""
    code, out, err = run(capsys, "worlds")

    assert (code, err) == (0, "")
    assert out.startswith(f"{built_in.STANDARD[0]} *")
    assert "  --bound RMS=3   resource managers (1 to 6)" in out
    _, out, _ = run(capsys, "worlds", WAIT, "--mutants", "--json")
    (told,) = json.loads(out)["worlds"]
    assert told["bounds"]["SENDS"] == {"default": 2, "doc": "sends", "least": 1, "most": 3}
    assert told["parties"] == ["alice", "bert"]
    assert len(told["mutants"]) == 23


def test_every_standard_world_is_built_in_and_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is misspelt would be found only by whoever runs `troth check` alone."""
    _, out, _ = run(capsys, "worlds", "--json")
    told = {w["world"]: w for w in json.loads(out)["worlds"]}

    assert set(built_in.STANDARD) <= set(told)
    assert all(w["doc"] and w["properties"] for w in told.values())


# -- the terminal ------------------------------------------------------------------------------------------------------


def test_progress_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr, on one line that is taken away."""

    assert report.ProgressLine().reporter is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    line = report.ProgressLine()
    assert line.reporter is not None
    line.reporter(Progress("exploring", 1_204_551, 8_812_004, 40_000, 41, 612_000.0, 1.9, 3.4))
    line.clear()

    assert capsys.readouterr().err == (
        "\r\x1b[Kexploring   1,204,551 states   frontier 40,000   depth 41   612,000/s   1.9 s   about 3.4 s left\r\x1b[K"
    )


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR is honoured."""
    assert words.styled("x", fg="red") == "x"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert words.styled("x", fg="red") != "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert words.styled("x", fg="red") == "x"


# -- processes ---------------------------------------------------------------------------------------------------------


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, env=environment)


def test_a_small_world_is_checked_without_the_heavy_libraries() -> None:
    """It must feel instant: no array library, no terminal library, no processes."""
    script = f"import sys, troth.cli; troth.cli.run(['check', *sys.argv[1:]]); print(sorted({HEAVY} & set(sys.modules)))"
    done = python(script, "published/peterson", "bench/session", "--bound", "T=1")

    assert "10,584 states" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def interrupted(arguments: Sequence[str], until: str) -> tuple[int, str, list[str]]:
    """Interrupt `troth` once it has said ``until`` on stderr; exit code, stderr, and who is left of its session."""
    script = "import sys, troth.cli.report as r; r.sys.stderr.isatty = lambda: True; import troth.cli as c; sys.exit(c.run(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
    ) as process:
        assert process.stderr is not None
        said = ""
        while until not in said and (letter := process.stderr.read(1)):
            said += letter
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
        code = process.wait(timeout=60)
        left = [p.name for p in Path("/proc").glob("[0-9]*") if _session(p) == process.pid] if Path("/proc/self/stat").exists() else []
    return code, said, left


def _session(process: Path) -> int:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[3])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_ends_the_judging_of_mutants(workers: str) -> None:
    """The same, with the workers that judge."""
    code, said, left = interrupted(["check", WAIT, "--bound", "SENDS=3", "--mutants", "--workers", workers], "judging")

    assert code == 130
    assert "Traceback" not in said
    assert left == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_ends_everything(workers: str) -> None:
    """Exit code 130, one line, and no child left."""
    code, said, left = interrupted(
        ["check", "bench/session", "--bound", "T=4", "--bound", "A=4", "--bound", "C=4", "--workers", workers], "frontier"
    )

    assert code == 130
    assert said.splitlines()[-1].endswith("troth: interrupted")
    assert "Traceback" not in said
    assert left == []
