"""Fates of mutants in a file, one line each, written as soon as one is decided: a campaign that was interrupted goes on where it was.

The first line says of what the file is: of these sources, worlds and bounds. Of anything else nothing is taken from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import troth.models
import troth.spec
import troth.statemachines
from troth.models.errors import WorldError
from troth.models.mutants.campaign import Fate, Judged
from troth.models.world import World
from troth.spec.properties import Role


@cache
def sources() -> str:
    """What the fates depend on, apart from a caller's own worlds: a digest of the checker's, the worlds' and the tables' sources.

    As they were when this process first asked: later they may be others than those that it runs.
    """
    found = hashlib.sha256()
    for package in (troth.spec, troth.statemachines, troth.models):
        for root in package.__path__:
            for file in sorted(Path(root).rglob("*.py")):
                found.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def heading(worlds: Iterable[World], limits: Mapping[str, int | None]) -> dict[str, Any]:
    """The first line: what the fates in the file are of."""
    claimed = {world.name: {"bounds": dict(world.bounds), "properties": [claim.id for claim in world.properties]} for world in worlds}
    return {"sources": sources(), "worlds": claimed, "limits": dict(limits)}


def data(one: Judged) -> dict[str, Any]:
    """One fate, as JSON."""
    found: dict[str, Any] = {"name": one.name, "what": one.what, "fate": one.fate.value, "worlds": one.worlds, "asked": one.asked}
    if one.fate is Fate.KILLED:
        found |= {"property": one.property, "world": one.world, "depth": one.depth, "role": one.role.value if one.role else None}
    return found | ({"reason": one.reason} if one.reason else {})


def judged(found: Mapping[str, Any]) -> Judged:
    """And back."""
    role = Role(found["role"]) if found.get("role") else None
    return Judged(**{**found, "fate": Fate(found["fate"]), "role": role})


class Record:
    """The file of one campaign. Raises ``WorldError`` where there is one of something else, or of none."""

    def __init__(self, file: Path, head: Mapping[str, Any]) -> None:
        self.file = file
        self.known: dict[str, Judged] = {}
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if not lines:
            self._append(head)
            return
        told = [_parsed(line) for line in lines]
        if told[0] != json.loads(json.dumps(head)):
            raise WorldError(f"{file} is of other sources, worlds or limits; take another file, or delete it")
        # The last line may have been cut off when the run was: then that mutant is judged again.
        self.known = {one["name"]: judged(one) for one in told[1:] if one is not None}
        if told[-1] is None or not file.read_text(encoding="utf-8").endswith("\n"):
            self._rewrite(head)

    def add(self, one: Judged) -> None:
        """Note a fate. In one write at the end of the file, so that several processes may."""
        self._append(data(one))

    def _append(self, line: Mapping[str, Any]) -> None:
        there = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(there, (json.dumps(line, ensure_ascii=False) + "\n").encode())
        finally:
            os.close(there)

    def _rewrite(self, head: Mapping[str, Any]) -> None:
        lines: Sequence[Mapping[str, Any]] = [head, *map(data, self.known.values())]
        self.file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
