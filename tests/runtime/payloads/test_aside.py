"""A large tree is encoded beside the event loop, a small one at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trio

from troth.runtime.errors import PayloadRefused
from troth.runtime.payloads import encode, encode_aside
from troth.runtime.payloads.aside import HEAVY_BYTES, HEAVY_NODES, heavy

BIG = np.zeros(HEAVY_BYTES + 1, np.uint8)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({}, False),
        ({"a": [1, (2.0, None)], "w": np.zeros(10)}, False),
        ({"a": {"b": [BIG]}}, True),
        ([BIG[: HEAVY_BYTES // 2], BIG[: HEAVY_BYTES // 2 + 1]], True),
        (b"x" * (HEAVY_BYTES + 1), True),
        ([0] * HEAVY_NODES, True),
    ],
    ids=["empty", "small", "large", "large together", "bytes", "many"],
)
def test_what_is_large_is_heavy(tree: Any, expected: bool) -> None:
    assert heavy(tree) is expected


@pytest.mark.parametrize("tree", [{"w": 1}, {"w": BIG}], ids=["small", "large"])
def test_it_is_what_encode_gives(tree: Any) -> None:
    assert trio.run(encode_aside, tree).digest == encode(tree).digest


def test_the_loop_goes_on_while_a_large_tree_is_read() -> None:
    """Another task runs before it is done; with a small one there is nothing to wait for."""

    async def main() -> None:
        turns: list[str] = []

        async def work(name: str, tree: Any) -> None:
            await encode_aside(tree)
            turns.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "large", {"w": BIG})
            nursery.start_soon(work, "small", {})
        assert turns == ["small", "large"]

    trio.run(main)


@pytest.mark.parametrize("value", [object(), BIG.view([("a", "u1")])], ids=["small", "large"])
def test_a_refusal_is_raised_as_it_is(value: Any) -> None:
    with pytest.raises(PayloadRefused, match=r"payload\['w'\]"):
        trio.run(encode_aside, {"w": value})
