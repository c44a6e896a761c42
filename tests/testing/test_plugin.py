"""The plugin for pytest: it does nothing until it is asked, and then it fuzzes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

HERE = Path(__file__)
TOYS = str(HERE.with_name("toys.py"))
MODULE = "troth.testing.plugin"


@pytest.fixture
def suite(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> pytest.Pytester:
    """A suite of one test, with the plugin in it."""
    pytester.makepyfile(test_one="def test_one(): pass")
    if not any(getattr(plugin, "__name__", "") == MODULE for plugin in request.config.pluginmanager.get_plugins()):
        pytester.plugins = [MODULE]
    return pytester


def ran(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    """The suite, run in a process of its own."""
    return suite.runpytest_subprocess("-p", "no:cacheprovider", *options)


def test_it_is_announced_under_its_name() -> None:
    """Pytest finds it wherever Troth is installed."""
    project = tomllib.loads((HERE.parents[2] / "pyproject.toml").read_text())

    assert project["project"]["entry-points"]["pytest11"] == {"troth": MODULE}


def test_it_loads_nothing_before_it_is_used() -> None:
    """Every pytest run of whoever has Troth installed pays for what it imports."""
    code = (
        f"import sys, {MODULE}; print([name for name in ('trio', 'hypothesis', 'numpy', 'attrs', 'troth.models') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before = subprocess.run([sys.executable, "-c", "import sys, pytest; print('attrs' in sys.modules)"], capture_output=True, check=True)

    assert before.stdout.strip() == b"False"
    assert done.stdout.strip() == "[]"


def test_without_the_option_it_does_nothing(suite: pytest.Pytester) -> None:
    """No test, no line."""
    done = ran(suite)

    done.assert_outcomes(passed=1)
    assert "troth: seed" not in done.stdout.str()


def test_with_it_there_is_one_more_test_and_the_seed_is_said(suite: pytest.Pytester) -> None:
    """In the header, before anything runs."""
    done = ran(suite, "--troth-seconds", "0.5", "--troth-seed", "7", "--troth-world", f"{TOYS}:sound")

    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["troth: seed 7, for 0.5 s; again with --troth-seed 7"])


def test_a_failure_says_how_to_play_it_again_and_is_tried_first_the_next_time(suite: pytest.Pytester) -> None:
    """The seed that found it, the line, and a file."""
    options = ("--troth-seconds", "60", "--troth-world", f"{TOYS}:world")
    first = ran(suite, *options, "--troth-seed", "1")

    first.assert_outcomes(passed=1, failed=1)
    text = first.stdout.str()
    assert re.search(r"replay: troth fuzz \S+toys.py:world --replay \S+core\.\S+", text)
    assert "seed 1" in text
    assert "the checker's shortest trace" in text
    again = ran(suite, *options, "--troth-seed", "2")
    again.assert_outcomes(passed=1, failed=1)
    assert "was kept, and it fails again" in again.stdout.str()


def test_a_kept_failure_that_cannot_be_played_any_more_is_a_warning(suite: pytest.Pytester) -> None:
    """It says where it is now; the test goes on."""
    kept = suite.mkdir("kept")
    said = {"target": "core", "worlds": [f"{TOYS}:sound"], "bounds": {}, "property": "ONCE", "token": "core.AAAA", "seed": 5}
    (kept / "core-ONCE.json").write_text(json.dumps(said))
    done = ran(suite, "--troth-seconds", "0.1", "--troth-seed", "1", "--troth-world", f"{TOYS}:sound", "--troth-keep", "kept")

    done.assert_outcomes(passed=2, warnings=1)
    assert "put aside as core-ONCE.stale.json: look for it with troth fuzz" in done.stdout.str().replace("\n", " ")
    assert [path.name for path in kept.iterdir()] == ["core-ONCE.stale.json"]


def test_a_world_that_there_is_not_is_an_error_of_its_test(suite: pytest.Pytester) -> None:
    """And no other test is touched."""
    done = ran(suite, "--troth-seconds", "1", "--troth-world", "no/such/world")

    done.assert_outcomes(passed=1, failed=1)
    assert "there is no world 'no/such/world'" in done.stdout.str()
    assert "Traceback" not in done.stdout.str()
    assert "def open" not in done.stdout.str()


def test_a_world_for_the_live_runtime_is_refused(suite: pytest.Pytester) -> None:
    """Before any test, since what was asked for does not go together."""
    done = ran(suite, "--troth-seconds", "1", "--troth-target", "runtime", "--troth-world", "ledger")

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --troth-target runtime runs sessions of the runtime itself, and takes no --troth-world" in done.stderr.str()
    assert "collected" not in done.stdout.str()


@pytest.mark.parametrize("options", [("--troth-seconds", "nan"), ("--troth-seconds", "-1"), ("--troth-seconds", "1", "--troth-seed", "-1")])
def test_a_time_or_a_seed_that_is_none_is_refused(suite: pytest.Pytester, options: tuple[str, ...]) -> None:
    """Before any test, instead of one that never ends."""
    done = ran(suite, *options)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "error: argument --troth-se" in done.stderr.str()


def test_a_failure_that_cannot_be_kept_is_told_all_the_same(suite: pytest.Pytester) -> None:
    """With the line that plays it again."""
    suite.makefile(".txt", way="in the")
    done = ran(suite, "--troth-seconds", "60", "--troth-seed", "1", "--troth-world", f"{TOYS}:world", "--troth-keep", "way.txt/kept")

    done.assert_outcomes(passed=1, failed=1)
    assert re.search(r"replay: troth fuzz \S+", done.stdout.str())
    assert "it could not be kept: " in done.stdout.str()
