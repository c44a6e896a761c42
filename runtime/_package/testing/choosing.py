"""From names on a command line to what is fuzzed: in this process, or in another that is given the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from shlex import quote
from typing import Any

import click
from attrs import evolve, frozen

from troth.testing.targets import Target
from troth.testing.walker import STEPS_LIMIT


@frozen(kw_only=True)
class Asked:
    """What to fuzz, in plain values."""

    target: str = "core"
    worlds: tuple[str, ...] = ()
    bounds: Mapping[str, int] = {}
    steps: int = STEPS_LIMIT
    """At most so many a session."""
    traced: bool = False

    def open(self) -> Target:
        """The target. Raises ``click.UsageError`` for a world that there is not, and for what the target does not heed."""
        self.checked()
        if self.target == "runtime":
            opened: Callable[..., Target] = import_module("troth.testing.live.target").Live
            return opened(traced=self.traced)
        from troth.testing.cores import Cores  # noqa: PLC0415 - the live runtime needs none of the checker
        from troth.testing.ours import PLAYS  # noqa: PLC0415

        plays = tuple(_play(name, self.bounds) for name in self.worlds) or tuple(PLAYS.values())
        return Cores(plays, most=self.steps, traced=self.traced)

    def checked(self) -> None:
        """Raise ``click.UsageError`` for what the target does not heed; nothing is opened for that."""
        if self.target == "runtime":
            if self.worlds:
                raise click.UsageError("--target runtime runs sessions of the runtime itself, and takes no WORLD")
            if self.bounds:
                raise click.UsageError("--target runtime has no worlds, and takes no --bound")
            if self.steps != STEPS_LIMIT:
                raise click.UsageError("--target runtime brings its sessions to an end by itself, and takes no --steps")
        elif self.bounds and not self.worlds:
            raise _unheeded("our own parties and sessions have", self.bounds)

    def line(self, *options: str) -> str:
        """The command that asks for the same."""
        target = () if self.target == "core" else ("--target", self.target)
        bounds = [f"--bound {quote(f'{name}={value}')}" for name, value in self.bounds.items()]
        steps = () if self.steps == STEPS_LIMIT else (f"--steps {self.steps}",)
        return " ".join(("troth fuzz", *map(quote, self.worlds), *target, *bounds, *steps, *options))

    def again(self, token: str) -> str:
        """The command that plays the session of a token: all of it, so it takes no steps."""
        return evolve(self, steps=STEPS_LIMIT).line(f"--replay {quote(token)}")


def _play(name: str, bounds: Mapping[str, int]) -> Any:
    """A world or party by its name: one of ours, a built-in world, or a user's own world, declaration or core."""
    from troth.cli.finding import find, value_of  # noqa: PLC0415
    from troth.spec import Party  # noqa: PLC0415
    from troth.spec.engine import PartyCore  # noqa: PLC0415
    from troth.testing.cores import Play  # noqa: PLC0415
    from troth.testing.ours import PLAYS  # noqa: PLC0415
    from troth.testing.single import alone  # noqa: PLC0415

    if name in PLAYS:
        if bounds:
            raise _unheeded(f"{name} has", bounds)
        return PLAYS[name]
    value = value_of(name)
    is_core = isinstance(value, Party | PartyCore) or (isinstance(value, type) and issubclass(value, PartyCore))
    if is_core and bounds:
        raise _unheeded(f"{name} is a party, which has", bounds)
    if isinstance(value, type) and issubclass(value, PartyCore):
        return Play(name, lambda: alone(value())[0])  # type: ignore[call-arg]
    if isinstance(value, Party | PartyCore):
        return Play(name, lambda: alone(value)[0])
    found = find(name)
    return Play(name, lambda: found.build(bounds))


def _unheeded(what: str, bounds: Mapping[str, int]) -> click.UsageError:
    name, value = next(iter(bounds.items()))
    return click.UsageError(f"--bound {name}={value}: {what} no bounds; name a WORLD that has (see troth worlds)")
