"""What a backend is told wrongly is refused when it is made, by name, with what it must be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.sessions.stage import run, staged
from troth.jobs.errors import BadField
from troth.jobs.job import Job
from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import Misuse
from troth.runtime.ports import Launch

SECRET = "CANARY"

WRONG: dict[str, list[Any]] = {
    "command": ["python train.py", b"python", [], [""], ["python", 3], ["python", None], 5],
    "name": ["", " ", "a\nb", "x" * 257, "\ud800", 7, None],
    "job_id": ["", "a\0b"],
    "site_name": ["", "\x1b[1m"],
    "persistent": ["no", 1, None],
    "limits": [{}, None],
    "on_unresponsive": ["Fail", "", None, True],
    "environment": [{"A": 1}, {1: "a"}, ["A=1"], {"A": b"1"}],
    "directory": [5],
    "transport": ["tpc", "TCP", None],
    "credentials": [("a", "b")],
    "task_names": [None, {}],
    "transfer_type": ["diff", None],
    "on_log": [None, "print"],
    "trace": [5],
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option, values in WRONG.items() for value in values])
def test_a_wrong_option_is_refused_by_name(option: str, value: Any) -> None:
    given: dict[str, Any] = {"command": ["trainer"], option: value}
    with pytest.raises((TypeError, ValueError)) as raised:
        ExternalProcess(**given)
    if option != "directory":  # that is refused by Path
        assert str(raised.value).startswith(option)
        assert "must " in str(raised.value)


@pytest.mark.parametrize("value", [{"A": SECRET.encode()}, {"A": [SECRET]}])
def test_a_wrong_variable_is_refused_without_its_value(value: Any) -> None:
    with pytest.raises(TypeError, match="environment") as raised:
        ExternalProcess(["trainer"], environment=value)
    assert SECRET not in str(raised.value)


def test_a_command_may_have_paths_in_it() -> None:
    made = ExternalProcess([Path(sys.executable), "-c", "pass"], directory="/", trace="traces")
    assert made.command == (sys.executable, "-c", "pass")
    assert made.directory == Path("/")
    assert made.trace == Path("traces")


@pytest.mark.parametrize(
    ("name", "task_id", "said"),
    [
        ("", "1", "name: must"),
        ("x" * 257, "1", "name: must"),
        ("a\nb", None, "name: must"),
        ("\ud800", None, "name: must"),
        (None, None, "name: must"),
        ("train", "", "task_id: must"),
        ("train", 7, "task_id: must"),
        ("train", "y" * 300, "task_id: must"),
    ],
)
def test_a_task_that_cannot_be_named_is_refused_and_disturbs_nothing(name: Any, task_id: Any, said: str) -> None:
    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            async with stage.backend() as trainer:
                with pytest.raises((TypeError, ValueError), match=said):
                    await trainer.execute(name, {"x": 1}, task_id=task_id)
                assert (await trainer.execute("train", {"x": 2})).payload == {"x": 2}

    run(main)


@pytest.mark.parametrize("call", ["execute", "abort", "finalize"])
def test_a_backend_that_was_not_entered_says_so(call: str) -> None:
    async def main() -> None:
        async with staged() as stage:
            trainer = stage.backend()
            with pytest.raises(Misuse, match="was not entered; use it in 'async with'"):
                await getattr(trainer, call)(*(("train", {}) if call == "execute" else ()))
            assert trainer.status().state == "idle"

    run(main)


def test_a_backend_is_entered_once() -> None:
    """A second time is refused, and does not end the first."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            made = stage.backend()
            async with made as trainer:
                with pytest.raises(Misuse, match="was entered before"):
                    async with made:
                        pass
                assert (await trainer.execute("train", {"x": 2})).payload == {"x": 2}
            with pytest.raises(Misuse, match="was entered before"):
                async with made:
                    pass

    run(main)


def test_no_environment_is_in_a_repr_or_an_error() -> None:
    """Of what a job or a launch is made of: there are keys in environments."""
    shown = {"TOKEN": SECRET}
    made = (
        ExternalProcess(["trainer"], environment=shown),
        Launch("1", "site-1", ["trainer"], shown, Path("/")),
        Job(command=(sys.executable,), environment=shown),
    )
    assert not [one for one in made if SECRET in repr(one)]
    with pytest.raises(BadField, match="TOKEN: must be a text, and is list") as raised:
        Job(command=(sys.executable,), environment={"TOKEN": [SECRET]})  # type: ignore[dict-item]
    assert SECRET not in str(raised.value)
