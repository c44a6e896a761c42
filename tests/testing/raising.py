"""Worlds whose own code raises once two coins have passed: a core, an observation, a property; or from the beginning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from troth.models import World
from troth.spec import Send


def _counts(passed: int, _event: object) -> tuple[int, list[Any]]:
    return min(passed + 1, 3), []


def _breaks(passed: int, _event: object) -> tuple[int, list[Any]]:
    if passed == 2:
        raise KeyError("a gate that counts to two")
    return passed + 1, []


def _itself(passed: int) -> int:
    return passed


def _blind(passed: int) -> int:
    if passed == 2:
        raise ValueError("an eye that sees no two")
    return passed


def _never(_passed: int) -> int:
    raise ValueError("an eye that sees nothing")


def _world(
    gate: Callable[[int, object], tuple[int, list[Any]]] = _counts, observe: Callable[[int], int] = _itself, *, divides: bool = False
) -> World:
    world = World("fare", "coins over a line")
    slot = world.party("slot", lambda state, _event: (state, [Send("line", "coin")]), initial="ready")  # type: ignore[arg-type]
    passage = world.party("gate", gate, initial=0, observe={"passed": observe})
    world.link(slot, passage, "line", duplicating=True, capacity=2)
    world.may(slot, "pay", times=3)
    claim = passage.passed <= 9
    if divides:
        claim = passage.where(lambda passed: 1 // (passed - 2) < 9)
    world.always("FEW", "few coins pass", claim)
    return world


def core() -> World:
    """A core that raises."""
    return _world(_breaks)


def observation() -> World:
    """An observation that raises."""
    return _world(observe=_blind)


def prop() -> World:
    """A property that raises."""
    return _world(divides=True)


def beginning() -> World:
    """One that raises at once."""
    return _world(observe=_never)


def building() -> World:
    """What makes the world raises."""
    raise RuntimeError("no world")
