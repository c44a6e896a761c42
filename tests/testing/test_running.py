"""A process of a fuzz that runs in several."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from troth.testing import running
from troth.testing.choosing import Asked
from troth.testing.running import Budget

TOYS = Path(__file__).with_name("toys.py")


class Pipe:
    """Where it says what it has done."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def send(self, what: dict[str, Any]) -> None:
        """See ``Connection``."""
        self.said.append(what)


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A process of its own ignores interrupts; this one is that of the tests."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_a_process_heeds_its_share_however_often_it_says_what_it_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said is done all the same: with a long run, it says so every half second."""
    monkeypatch.setattr(running, "BATCH_S", 0.0)
    pipe: Any = Pipe()
    running._work(Asked(worlds=(f"{TOYS}:sound",), traced=True), 5, Budget(sessions=7, seconds=60), threading.Event(), pipe)

    assert [each.get("sessions") for each in pipe.said] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert all(each["traces"] for each in pipe.said[:-1])
    assert not pipe.said[-1]["traces"]
