"""What failed is kept, a file each, and tried before anything else the next time."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from attrs import frozen

from troth.testing.choosing import Asked
from troth.testing.coverage import Coverage
from troth.testing.targets import BadToken, Failure, SessionResult, Target

KEPT = Path(".troth") / "fuzz"
"""Where failures are kept, unless another folder is named."""
STALE = ".stale.json"
"""How the names of those end whose tokens fit nothing any more."""


@frozen
class Tried:
    """One that was kept, and what became of it."""

    told: str
    """In one line."""
    failure: Failure | None = None
    """How it fails again."""
    stale: bool = False
    """It could not be played."""
    interrupted: bool = False
    """An interrupt came while its failure was looked at."""


@frozen
class Kept:
    """Failures in a folder. What is in it is tried before anything else, and taken out once it does not fail any more.

    One whose token fits nothing any more is not played, and not taken out either: it may be all that anybody knows of a fault that is
    still there. Its file gets another name, under which it is not tried again.
    """

    folder: Path

    def files(self, asked: Asked) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Those of this target and these worlds, in order of their names; a file that is none is passed over."""
        for path in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            said = _read(path)
            if said is not None and _of(said, asked) and not path.name.endswith(STALE):
                yield path, said

    def hindrance(self) -> str | None:
        """Why nothing could be kept here, if that is so. Nothing is made for that: a folder that is not there yet is one that can be."""
        there = self.folder
        while not os.path.lexists(there) and there != there.parent:
            there = there.parent
        if not there.is_dir():
            return f"{there} is no folder"
        return None if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written to"

    def keep(self, asked: Asked, failure: Failure, seed: int) -> Path:
        """Write a failure down, over an earlier one of the same property. Its folder is made if need be."""
        self.folder.mkdir(parents=True, exist_ok=True)
        said = {
            "target": asked.target,
            "worlds": list(asked.worlds),
            "bounds": dict(asked.bounds),
            "property": failure.property,
            "token": failure.token,
            "seed": seed,
        }
        path = next(path for path in self._names(asked, failure) if not path.exists() or _same(_read(path), said))
        path.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        return path

    def _names(self, asked: Asked, failure: Failure) -> Iterator[Path]:
        """Different worlds may have one name in the letters of a file, and one world has many bounds."""
        name = re.sub(r"\W+", "-", f"{asked.target} {'-'.join(asked.worlds) or 'all'} {failure.property}").strip("-")
        for number in count(1):
            yield self.folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")

    def tried(self, asked: Asked, target: Target, coverage: Coverage) -> Iterator[Tried]:
        """Each of them, played again."""
        for path, said in self.files(asked):
            try:
                result: SessionResult = target.replay(said["token"], coverage=coverage)
            except BadToken as error:
                yield Tried(_put_aside(path, said, asked, error), stale=True)
                continue
            if result.failure is None:
                path.unlink()
                yield Tried(f"{path}: it does not fail any more ({asked.again(said['token'])}), and is not kept any longer")
            else:
                yield Tried(f"{path}: it was kept, and it fails again", result.failure, interrupted=result.interrupted)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return said if isinstance(said, dict) and isinstance(said.get("token"), str) else None


def _of(said: dict[str, Any], asked: Asked) -> bool:
    return (said.get("target"), said.get("worlds"), said.get("bounds")) == (asked.target, list(asked.worlds), dict(asked.bounds))


def _same(said: dict[str, Any] | None, other: dict[str, Any]) -> bool:
    return said is not None and all(said.get(name) == other[name] for name in ("target", "worlds", "bounds", "property"))


def _put_aside(path: Path, said: dict[str, Any], asked: Asked, error: BadToken) -> str:
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    aside = next(found for found in (path.with_name(f"{path.stem}{n}{STALE}") for n in numbers) if not found.exists())
    path.rename(aside)
    seed = said.get("seed")
    again = asked.line(f"--seed {seed}") if isinstance(seed, int) else asked.line()
    return f"{path}: it cannot be played any more ({error}), and was put aside as {aside.name}: look for it with {again}, or delete it"
