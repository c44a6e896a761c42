"""A process of its own for every test, as far as the client is concerned."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.doubles import MadeHost, make_bootstrap
from troth.client import process as processes
from troth.client import session

HANGS_S = 120
"""A test that takes that long hangs; where, is then printed."""


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(HANGS_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[processes.Process]:
    """The sessions of a process that has none yet."""
    monkeypatch.setattr(processes, "_process", processes.Process())
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("TROTH_BOOTSTRAP", raising=False)
    yield processes._process
    processes._process.at_exit()
    assert processes._process._loop is None or not processes._process._loop.running


@pytest.fixture
def host(process: processes.Process, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MadeHost:
    """A host in memory that answers the first ``init``, and the bootstrap file that names it."""
    made = MadeHost()

    def soon(function: object, *arguments: object) -> None:
        assert process._loop is not None
        process._loop.soon(function, *arguments)  # type: ignore[arg-type]

    made.soon = soon
    made.answers.append(None)
    monkeypatch.setattr(session, "connect", made.connect)
    make_bootstrap(tmp_path / "bootstrap.json")
    monkeypatch.setenv("TROTH_BOOTSTRAP", str(tmp_path / "bootstrap.json"))
    return made
