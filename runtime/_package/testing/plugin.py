"""The plugin for pytest: ``pytest --troth-seconds 60`` adds one more test, which fuzzes for that long.

It is loaded wherever Troth is installed, so it imports neither trio nor Hypothesis nor numpy, nor anything else of Troth, before that test
runs. Without the option it does nothing at all.
"""

from __future__ import annotations

import argparse
import math
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from troth.testing.choosing import Asked

SEEDS = 1 << 32
NAME = "troth fuzz"


def _seconds(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is no finite number of seconds")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, in a group of their own."""
    group = parser.getgroup("troth", "troth: generated runs")
    group.addoption("--troth-seconds", type=_seconds, metavar="S", help="Fuzz for so many seconds, as one more test.")
    group.addoption("--troth-seed", type=_seed, metavar="N", help="What the runs are drawn from; another each time, unless it is said.")
    group.addoption("--troth-target", choices=["core", "runtime"], default="core", help="The cores, or the live runtime in memory.")
    group.addoption("--troth-world", action="append", default=[], metavar="WORLD", help="As for troth fuzz; repeatable.")
    group.addoption("--troth-keep", metavar="DIR", help="Where failures are kept, to be tried first next time. [.troth/fuzz]")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed, once for all processes of a run. Raises ``pytest.UsageError`` for options that do not go together."""
    if config.getoption("--troth-seconds") is None:
        return
    if config.getoption("--troth-target") == "runtime" and config.getoption("--troth-world"):
        raise pytest.UsageError("--troth-target runtime runs sessions of the runtime itself, and takes no --troth-world")
    given = getattr(config, "workerinput", {}).get("troth_seed")  # of pytest-xdist
    chosen = config.getoption("--troth-seed") if given is None else given
    config.stash[_SEED] = random.SystemRandom().randrange(SEEDS) if chosen is None else chosen


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist: its workers have the same seed."""
    if _SEED in node.config.stash:
        node.workerinput["troth_seed"] = node.config.stash[_SEED]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """The seed, before anything runs."""
    seed = config.stash.get(_SEED, None)
    return [] if seed is None else [f"troth: seed {seed}, for {config.getoption('--troth-seconds'):g} s; again with --troth-seed {seed}"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """One more test, after the others."""
    if _SEED in config.stash:
        items.append(FuzzItem.from_parent(session, name=NAME))


class FuzzFailed(Exception):
    """The run found something: what ``troth fuzz`` says of it."""


class TrothKeptWarning(pytest.PytestWarning):
    """A failure that was kept cannot be played any more: where it is now, and what to do about it."""


class FuzzItem(pytest.Item):
    """The test."""

    def runtest(self) -> None:
        """What was kept, first; then new runs until the time is up or something fails."""
        from troth.testing.choosing import Asked  # noqa: PLC0415 - nothing of it before it is needed

        seed = self.config.stash[_SEED]
        options = self.config.option
        asked = Asked(target=options.troth_target, worlds=tuple(options.troth_world))
        self.user_properties.append(("troth_seed", seed))
        for told in _failures(asked, seed, options.troth_seconds, options.troth_keep):
            raise FuzzFailed(told)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The example, and how to play it again, or what is wrong with a world; not the lines of Troth that found it."""
        from click import UsageError  # noqa: PLC0415

        if isinstance(excinfo.value, UsageError):
            return excinfo.value.format_message()
        return str(excinfo.value) if isinstance(excinfo.value, FuzzFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """It is in no file."""
        return self.config.rootpath, None, NAME


def _failures(asked: Asked, seed: int, seconds: float, keep: str | None) -> Iterator[str]:
    from troth.testing.keeping import KEPT, Kept  # noqa: PLC0415
    from troth.testing.running import Budget, run  # noqa: PLC0415

    kept = Kept(Path(keep) if keep else KEPT)
    target = asked.open()
    for tried in kept.tried(asked, target, target.coverage()):
        if tried.failure is not None:
            yield f"{tried.told}\n{_line(asked, tried.failure, seed)}"
        elif tried.stale:
            warnings.warn(TrothKeptWarning(tried.told), stacklevel=2)
    outcome = run(asked, seed, Budget(seconds=seconds), opened=target)
    for failure in outcome.failures.values():
        told = _line(asked, failure, seed)
        try:
            kept.keep(asked, failure, seed)
        except OSError as error:
            told = f"{told}\nit could not be kept: {error}"
        yield told
    if outcome.interrupted:
        raise KeyboardInterrupt


def _line(asked: Asked, failure: Any, seed: int) -> str:
    return f"{failure.told}\nseed {seed}\nreplay: {asked.again(failure.token)}"


_SEED: pytest.StashKey[int] = pytest.StashKey()
