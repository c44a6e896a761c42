"""Worlds that can be built at several sizes: named bounds with defaults, settable from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from troth.models.errors import WorldError

if TYPE_CHECKING:
    from troth.models.world import World


@frozen
class Bound:
    """One bound: its default, what it bounds, and its range. All are small whole numbers."""

    default: int
    doc: str
    least: int = 0
    most: int = 1 << 16


class Bounds(Mapping[str, int]):
    """The values a world is built with: ``bounds.T`` or ``bounds["T"]``."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no bound {name!r}; declare it in @blueprint")
        return self._values[name]


@frozen(eq=False)
class Blueprint:
    """A world before its bounds are chosen. Made by ``@blueprint``; ``build`` gives the world."""

    name: str
    make: Callable[[Bounds], World]
    bounds: Mapping[str, Bound] = field(factory=dict)
    doc: str = ""

    def build(self, **chosen: int) -> World:
        """The world at these bounds, defaults for the rest. Raises ``WorldError`` for an unknown name or a value out of range."""
        for name, value in chosen.items():
            bound = self.bounds.get(name)
            if bound is None:
                raise WorldError(f"world {self.name} has no bound {name!r}; it has {', '.join(self.bounds) or 'none'}")
            if not bound.least <= value <= bound.most:
                raise WorldError(f"world {self.name}: {name} = {value} is out of range; {bound.doc}: {bound.least} to {bound.most}")
        values = {name: chosen.get(name, bound.default) for name, bound in self.bounds.items()}
        world: World | None = self.make(Bounds(values))
        if world is None:
            raise WorldError(f"world {self.name}: its function returns nothing; let it return the World")
        world.bounds = values
        return world

    def __call__(self, **chosen: int) -> World:
        """The same as ``build``."""
        return self.build(**chosen)


def blueprint(name: str, **bounds: Bound) -> Callable[[Callable[[Bounds], World]], Blueprint]:
    """Declare ``def build(bounds) -> World`` as a world of that name with these bounds. Its docstring's first line describes it."""

    def declare(make: Callable[[Bounds], World]) -> Blueprint:
        doc = (make.__doc__ or "").strip().splitlines()
        return Blueprint(name, make, bounds, doc[0] if doc else "")

    return declare
