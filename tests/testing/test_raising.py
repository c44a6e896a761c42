"""A core, an observation or a property that raises is a failure like any other; code that makes the world is not."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.testing import raising
from tests.testing.test_machine import QUICK
from troth import cli
from troth.testing import Violated, state_machine

WORLDS = Path(raising.__file__)
RAISED = {
    "core": ("core", "KeyError", 4, "_breaks"),
    "observation": ("error", "ValueError", 4, "_blind"),
    "prop": ("error", "ZeroDivisionError", 4, "<lambda>"),
    "beginning": ("error", "ValueError", 0, "_never"),
}
"""By world: what it is reported as, what was raised, in how many steps at least, and by which function."""


def fuzzed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the object."""
    code = cli.run(["fuzz", *arguments, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


@pytest.mark.parametrize("name", RAISED)
def test_what_raises_is_a_failure_with_its_example_and_a_line_that_plays_it_again(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """1, with the traceback down to the function that raised."""
    kind, error, steps, function = RAISED[name]
    code, found = fuzzed(capsys, f"{WORLDS}:{name}", "--sessions", "300", "--seed", "1", "--no-keep")
    assert (code, [one["property"] for one in found["failures"]]) == (1, [kind])

    (failure,) = found["failures"]
    told = failure["told"]
    assert error in told.splitlines()[0]
    assert f"in {function}" in told
    assert ("no step is needed" if steps == 0 else f"the example, {steps} step") in told or steps == 4
    assert "the checker has no trace to it: what raises ends its search, too" in told

    code, again = fuzzed(capsys, *shlex.split(failure["replay"])[2:])
    assert (code, [one["property"] for one in again["failures"]]) == (1, [kind])


def test_a_world_that_cannot_be_made_is_a_mistake_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """2: there is nothing that could fail."""
    assert cli.run(["fuzz", f"{WORLDS}:building", "--sessions", "1", "--no-keep"]) == 2
    assert "RuntimeError: no world" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["core", "observation", "prop"])
def test_what_raises_fails_a_hypothesis_test_with_its_story(name: str) -> None:
    """As the rule that it is raised in."""
    machine = state_machine(getattr(raising, name), name=f"raising.py:{name}")
    with pytest.raises(Violated) as caught:
        run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=100, stateful_step_count=20))

    kind, error, _, function = RAISED[name]
    assert caught.value.wrong.property == kind
    assert error in str(caught.value)
    assert f"in {function}" in str(caught.value)
    assert f"replay: troth fuzz raising.py:{name} --replay core." in str(caught.value)
