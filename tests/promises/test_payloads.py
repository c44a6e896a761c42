"""P80, in simulated sessions: a model arrives as it was, to the bit; what cannot is refused by its path before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.runtime.payloads.trees import differs
from tests.runtime.sessions.stage import run, staged
from troth.runtime.errors import PayloadRefused
from troth.runtime.payloads import tree
from troth.runtime.payloads.tree import Taker
from troth.runtime.sim.faults import UP, Faults, Seen
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession

FAITHFUL: dict[str, Any] = {
    "layers": [np.array([np.nan, np.inf, -np.inf, -0.0], ">f4"), np.arange(6).reshape(2, 3).T],
    "loss": float("nan"),
    "best": float("-inf"),
    "large": np.full(100_000, np.nan),
    "steps": 2**63 - 1,
    "name": "\N{SNOWMAN}",
}
UNFAITHFUL: dict[str, Any] = {"objects": np.array([1, None]), "too large an int": 2**63, "a set": {1.0}, "a key": {3: 1.0}}
RESULTS = (20, 81)
"""The codes of the frames that carry a result, or a part of it."""


class Upwards:
    """What a trainer sent of its results."""

    def __init__(self) -> None:
        self.frames = 0

    def note(self, seen: Seen) -> None:
        """One more frame; nothing happens to it."""
        self.frames += seen.direction == UP and seen.code in RESULTS


async def carried_or_refused(bad: Any) -> None:
    """Down and up again, a faithful model is what it was; one with ``bad`` in it is refused where it is, and no frame of it goes out."""
    sent = Upwards()
    heard: list[tuple[str, int]] = []

    async def script(session: TrainerSession, _process: SimProcess) -> None:
        await session.init()
        task = await session.receive()
        assert task is not None
        try:
            await session.send({"layers": [np.zeros(3), {"w": bad}]})
        except PayloadRefused as refusal:
            heard.append((str(refusal), sent.frames))
        await session.send(task.payload)

    async with staged(Faults(decide=sent.note)) as stage:
        stage.trainer(script)
        async with stage.backend() as trainer:
            result = await trainer.execute("train", FAITHFUL)
    assert heard != [], "P80: what cannot be carried was not refused"
    assert "['layers'][1]['w']" in heard[0][0], f"P80: the refusal does not say where: {heard[0][0]}"
    assert heard[0][1] == 0, "P80: something had been sent of a result that was refused then"
    difference = differs(FAITHFUL, result.payload)
    assert difference is None, f"P80: a model arrived changed: {difference}"


@pytest.mark.parametrize("bad", UNFAITHFUL.values(), ids=UNFAITHFUL)
def test_p80_holds_in_sessions(bad: Any) -> None:
    """Not-a-number and infinity are carried like any other value."""
    run(partial(carried_or_refused, bad))


Patch = Callable[[pytest.MonkeyPatch], None]


def convert_what_is_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set becomes a list, which is not what it was."""
    real = Taker._other
    monkeypatch.setattr(Taker, "_other", lambda taker, value: tree.ListNode(list(value)) if type(value) is set else real(taker, value))


def drop_what_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON has no word for it."""
    real = tree.build
    monkeypatch.setattr(tree, "_list_of", lambda node, supply: [_zeroed(real(value, supply)) for value in node.values])


def _zeroed(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and not np.isfinite(value) else value


def refuse_without_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """That something cannot be carried is said, and not what."""
    real = Taker.nodes

    def nodes(taker: Taker, given: Any, name: str) -> Any:
        try:
            return real(taker, given, name)
        except PayloadRefused:
            raise PayloadRefused(f"{name}: something in it cannot be carried") from None

    monkeypatch.setattr(Taker, "nodes", nodes)


def announce_before_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result is announced, and then looked at."""
    real = TrainerSession.send

    async def send(session: TrainerSession, payload: Any, *arguments: Any, **given: Any) -> Any:
        if "large" in payload:
            return await real(session, payload, *arguments, **given)
        await real(session, {}, *arguments, **given)
        raise PayloadRefused("payload['layers'][1]['w']: cannot be carried")

    monkeypatch.setattr(TrainerSession, "send", send)


PATCHES: dict[Patch, str] = {
    convert_what_is_no_tree: "was not refused",
    drop_what_is_not_a_number: "arrived changed",
    refuse_without_a_place: "does not say where",
    announce_before_looking: "had been sent of a result that was refused",
}


@pytest.mark.parametrize(("patch", "finds"), PATCHES.items(), ids=lambda part: getattr(part, "__name__", ""))
def test_p80_is_violated_by_a_runtime_that(patch: Patch, finds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its four parts, broken alone."""
    patch(monkeypatch)

    with pytest.raises(AssertionError, match=f"P80: .*{finds}"):
        run(partial(carried_or_refused, {1.0}))
