"""JOB.toml: a job as a file. Every key has one place in the tables below; what is not in them is refused, with the nearest that is.

Rule 1.  A wrong file is one error that names the file and the key. Nothing is started before the whole file is valid.
Rule 2.  Relative paths are relative to the file, wherever the command is called from.
Rule 3.  Nothing is converted: a number in quotes is no number, and ``true`` is none either.
"""

from __future__ import annotations

import difflib
import math
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from troth.jobs.errors import BadField, BadJob
from troth.jobs.job import Job
from troth.runtime.wire.besides import Credentials
from troth.runtime.wire.bounds import MAX_SECONDS
from troth.spec.limits import ORDER, Limits

FIELDS: Mapping[str, str] = {
    "job.name": "name",
    "job.trainers": "trainers",
    "job.rounds": "rounds",
    "job.seed": "seed",
    "job.on_trainer_lost": "on_trainer_lost",
    "job.min_trainers": "min_trainers",
    "job.model": "model",
    "job.save": "save",
    "job.evaluate_rounds": "evaluate_rounds",
    "trainer.command": "command",
    "trainer.directory": "directory",
    "trainer.environment": "environment",
    "trainer.inherit_environment": "inherit_environment",
    "trainer.transport": "transport",
    "trainer.persistent": "persistent",
    "trainer.on_unresponsive": "on_unresponsive",
    "trainer.credentials": "credentials",
    "trainer.logs": "logs",
    "tasks.train": "train_task",
    "tasks.evaluate": "evaluate_task",
    "tasks.submit_model": "submit_task",
    "averaging.weight": "weight",
    "averaging.score": "score",
    "averaging.finite": "finite",
}
"""Key to the field of ``Job``."""

PATHS = frozenset({"directory", "model", "save", "logs", "credentials"})

TIMES: Mapping[str, str] = {
    "trainer.launch_timeout_s": "launch_timeout_s",
    "trainer.heartbeat_interval_s": "heartbeat_interval_s",
    "trainer.heartbeat_timeout_s": "lease_timeout_s",
    "trainer.task_wait_timeout_s": "delivery_budget_s",
    "trainer.result_wait_timeout_s": "result_wait_s",
    "trainer.shutdown_timeout_s": "natural_exit_s",
    "trainer.stop_grace_period_s": "term_grace_s",
}
"""The timeouts that most jobs want to set, by their customary names, and the limit that each is."""

LIMITS: Mapping[str, str] = {**TIMES, **{f"limits.{attribute.name}": attribute.name for attribute in attrs.fields(Limits)}}
"""Key to the field of ``Limits``."""

OPEN = frozenset({"trainer.environment"})
"""Tables whose keys are the user's."""


def read(path: Path, **overrides: int) -> Job:
    """The job that a file describes, with some of its fields set otherwise. Raises ``BadJob``."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadJob(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadJob(f"{path}: is not TOML: {error}") from error
    try:
        return _job(table, path.absolute().parent, overrides)
    except BadField as error:
        raise BadField(f"{path}: {error.name}", error.why) from error


def _job(table: dict[str, Any], base: Path, overrides: Mapping[str, int]) -> Job:
    found = dict(_flat(table, ""))
    known = {**FIELDS, **LIMITS}
    for key in found:
        if key not in known:
            raise _unknown(key, known)
    if "trainer.command" not in found:
        raise BadField("trainer.command", "is missing: the program that each trainer runs, and its arguments")
    fields: dict[str, Any] = {"directory": base, "limits": _limits({key: found[key] for key in found if key in LIMITS})}
    for key, field in FIELDS.items():
        if key in found:
            fields[field] = _path(key, found[key], base) if field in PATHS else found[key]
    if "credentials" in fields:
        fields["credentials"] = _credentials(fields["credentials"])
    keys = {field: key for key, field in FIELDS.items()}
    try:
        return Job(**{**fields, **overrides})
    except BadField as error:
        raise BadField(keys[error.name], error.why) from error


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Every value with its dotted key."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in OPEN and not prefix:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _unknown(key: str, known: Iterable[str]) -> BadField:
    known = list(known)
    table, dot, name = key.rpartition(".")
    tables = {one.partition(".")[0] for one in known}
    if not dot and key in tables:
        return BadField(key, f"must be a table: write [{key}]")
    siblings = {one.rpartition(".")[2]: one for one in known if one.startswith(f"{table}.")}
    near = [siblings[one] for one in difflib.get_close_matches(name, siblings, n=1)]
    if table not in tables:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.7)
    elsewhere = [one for one in known if one.rpartition(".")[2] == name]
    hint = next(iter(elsewhere or near), None)
    if hint is None and table not in tables:
        return BadField(key, f"there is no such key; the tables are {', '.join(sorted(tables))}")
    return BadField(
        key, f"there is no such key; did you mean {hint}?" if hint else f"there is no such key; there are {', '.join(siblings)}"
    )


def _path(key: str, value: Any, base: Path) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise BadField(key, f"must be a path in quotes, got {value!r}")
    return base / value


def _credentials(path: Path) -> Credentials:
    """What a secure job lends its trainers: ``token`` and ``signature``, in a file that nobody else can read."""
    key = "trainer.credentials"
    try:
        mode = path.stat().st_mode
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadField(key, f"{path} cannot be read: {error.strerror}") from error
    except ValueError:  # what it says is not repeated: it may quote a secret
        raise BadField(key, f"{path} is not TOML") from None
    if stat.S_IMODE(mode) & 0o077:
        raise BadField(key, f"{path} can be read by others: chmod 600 {path}")
    if set(table) != {"token", "signature"}:
        raise BadField(key, f"{path} must have the keys token and signature, and no other")
    try:
        return Credentials(token=table["token"], signature=table["signature"])
    except ValueError as error:
        raise BadField(key, f"{path}: {error}") from None


# -- the limits --------------------------------------------------------------------------------------------------------


def _limits(found: Mapping[str, Any]) -> Limits:
    """The limits, with what the file says of them: each alone, then each against those around it."""
    said: dict[str, str] = {}
    for key, value in found.items():
        limit = LIMITS[key]
        if limit in said:
            raise BadField(key, f"is {said[limit]} by another name; say one of them")
        _check_alone(key, limit, value)
        said[limit] = key
    default = Limits()
    values = {a.name: found[said[a.name]] if a.name in said else getattr(default, a.name) for a in attrs.fields(Limits)}
    for inner, outer, _ in ORDER:
        total = sum(values[name] for name in inner)
        if total >= values[outer]:
            raise _misordered(inner, outer, values, said)
    return Limits(**values)


def _check_alone(key: str, limit: str, value: Any) -> None:
    attribute = getattr(attrs.fields(Limits), limit)
    if attribute.metadata["unit"] == "s" and isinstance(value, int | float) and MAX_SECONDS < value < math.inf:
        raise BadField(key, f"must be at most {MAX_SECONDS:g} seconds, got {str(value)[:20]}")
    try:
        attribute.validator(None, attribute, value)
    except ValueError as error:
        raise BadField(key, str(error).partition(": ")[2].replace(" or None for no limit", "")) from error


def _misordered(inner: tuple[str, ...], outer: str, values: Mapping[str, Any], said: Mapping[str, str]) -> BadField:
    """Names the outer limit where the file says it, else an inner one that it says."""

    def told(name: str) -> str:
        return f"{said[name].rpartition('.')[2] if name in said else name} ({values[name]})"

    if outer in said:
        return BadField(said[outer], f"must be greater than {' + '.join(map(told, inner))}, got {values[outer]}")
    name = next(one for one in inner if one in said)
    others = [told(one) for one in dict.fromkeys(inner) if one != name]
    times = inner.count(name)
    least = f"{times} times this" if times > 1 else "this"
    bound = f"must be less than {told(outer)}" if len(inner) == 1 else f"{' + '.join([least, *others])} must be less than {told(outer)}"
    return BadField(said[name], f"{bound}, got {values[name]}")
