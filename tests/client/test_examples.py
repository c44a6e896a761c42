"""What docstrings and pages show, run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import troth.client
from tests.client.doubles import MadeHost, MadeTask
from troth.client import aio
from troth.client.model import FLModel
from troth.spec.messages import Verdict

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "move-a-script.md"
MODULES = sorted(module.name for module in pkgutil.iter_modules(troth.client.__path__, "troth.client."))
SHOWN = re.compile(r"^```py\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def indented(text: str | None) -> str:
    """The block that a docstring shows after its ``::``."""
    assert text is not None
    block = re.search(r"::\n\n((?: {4}.*\n|\n)+)", text)
    assert block is not None
    return textwrap.dedent(block[1])


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


def test_some_docstrings_have_examples() -> None:
    """Or the test above would pass for nothing."""
    tried = sum(doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).attempted for name in MODULES)
    assert tried > 20


def test_the_script_of_the_package_runs(host: MadeHost) -> None:
    def settled() -> None:
        host.trainer.end(Verdict.STOPPED)

    host.reactions["send"] = settled
    offered = {"offer": lambda: host.offer("train", {"params": {"w": 1.0}}), "train": lambda params: (params, {"loss": 0.5})}
    exec(compile(indented(troth.client.__doc__).replace("flare.init()", "flare.init(); offer()"), "troth.client", "exec"), offered)

    assert host.trainer.sent == [{"params_type": "FULL", "params": {"w": 1.0}, "metrics": {"loss": 0.5}, "start_round": 0}]


def test_the_program_of_the_twin_runs(host: MadeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "connect", host.connect)
    host.reactions["send"] = lambda: host.trainer.end(Verdict.STOPPED)

    async def train(params: Any) -> Any:
        return params, {"loss": 0.5}

    names: dict[str, Any] = {"open_session": aio.open_session, "FLModel": FLModel, "train": train}
    exec(compile("async def main():\n" + textwrap.indent(indented(aio.__doc__), "    "), "aio", "exec"), names)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(names["main"])
            await wait_all_tasks_blocked()
            host.trainer.queue.append(MadeTask(1, "train", {"params": {"w": 1.0}}))
            host.trainer.change()

    trio.run(main)
    assert host.trainer.sent == [{"params_type": "FULL", "params": {"w": 1.0}, "metrics": {"loss": 0.5}, "start_round": 0}]


def test_the_scripts_of_the_page_run(tmp_path: Path) -> None:
    """The script, its host, and the handler."""
    script, hosting, handler = SHOWN.findall(PAGE.read_text())
    (tmp_path / "train.py").write_text(script.replace("flare.init()", handler + "flare.init()"))
    (tmp_path / "host.py").write_text(hosting)
    done = subprocess.run([sys.executable, "host.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.returncode) == ("[0.1 0.1 0.1]\n", 0), done.stderr
