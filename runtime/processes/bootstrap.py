"""The bootstrap file: what a launched trainer needs to know to join its session, with the secret of its launch in it.

Rule 1.  The file is written readable by its user alone from its first byte on, under a name that nobody can guess, and then renamed into
         place (``Files.write_private``). It is never changed afterwards; in particular no resolved address is ever written back.
Rule 2.  What counts is the file that was opened, not the one that has its name a moment later: kind, owner, mode and size are read from
         the descriptor.
Rule 3.  The content is taken only if all of it is understood: an unknown key, a missing one, one given twice, or a value of another type
         is one error that names the file, the key and what to do.
Rule 4.  No error, repr or log shows the token, nor any text that may turn out to be it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import attrs
from attrs import field, frozen

from troth.runtime.errors import BootstrapError
from troth.runtime.ports import Files
from troth.runtime.wire.bounds import MAX_TEXT
from troth.runtime.wire.challenge import LAUNCH_BYTES, Token
from troth.spec.errors import LimitOrder
from troth.spec.limits import Limits

SCHEMA_VERSION = 1
EXTERNAL_PROCESS = "external_process"
BOOTSTRAP_VARIABLE = "TROTH_BOOTSTRAP"
"""The environment variable with the path of the bootstrap file."""
MAX_BOOTSTRAP_BYTES = 64 * 1024
SHOWN_KEY = 40
"""Characters of an unknown key that an error shows; a longer one may be a secret in the wrong place."""
DIGITS_LIMIT = 20
ENDPOINTS = ("unix:/", "tcp:")
FULL, DIFF = TRANSFER_TYPES = ("FULL", "DIFF")


def _text(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if type(value) is not str or not value.strip() or len(value) > MAX_TEXT or not value.isprintable():
        raise ValueError(f"{_place(instance, attribute)}: must be a text of 1 to {MAX_TEXT} printable characters, not {_kind(value)}")


def _endpoint(instance: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    if not value.startswith(ENDPOINTS):
        raise ValueError(f"{_place(instance, attribute)}: must be unix:/PATH or tcp:ADDRESS:PORT")


def _flag(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if type(value) is not bool:
        raise ValueError(f"{_place(instance, attribute)}: must be true or false, not {_kind(value)}")


def _transfer_type(_instance: Any, _attribute: attrs.Attribute[Any], value: Any) -> None:
    if value not in TRANSFER_TYPES:
        raise ValueError(f"transfer_type: must be one of {', '.join(TRANSFER_TYPES)}, not {_kind(value)}")


def _launch(_instance: Any, _attribute: attrs.Attribute[Any], value: Any) -> None:
    if type(value) is not bytes or len(value) != LAUNCH_BYTES:
        raise ValueError(f"launch_id: must be {LAUNCH_BYTES} bytes, as {2 * LAUNCH_BYTES} hexadecimal digits in the file")


def _place(instance: Any, attribute: attrs.Attribute[Any]) -> str:
    return f"tasks.{attribute.name}" if isinstance(instance, TaskNames) else attribute.name


def _kind(value: object) -> str:
    """What a value is, without the value."""
    names = {bool: "true or false", int: "a number", float: "a number", dict: "an object", list: "a list", type(None): "null"}
    if isinstance(value, str):
        return "a blank text" if not value.strip() else f"a text of {len(value)} characters"
    return names.get(type(value), type(value).__name__)


@frozen(kw_only=True)
class TaskNames:
    """What the host calls the three kinds of task that a script can ask for."""

    train: str = field(default="train", validator=_text)
    evaluate: str = field(default="validate", validator=_text)
    submit: str = field(default="submit_model", validator=_text)

    def __attrs_post_init__(self) -> None:
        if len({self.train, self.evaluate, self.submit}) < 3:
            raise ValueError("tasks: train, evaluate and submit must have different names")


@frozen(kw_only=True)
class Bootstrap:
    """What a launched trainer is given. Never changed: where a trainer really connected to is its own affair."""

    name: str = field(validator=_text)
    """The trainer, as logs and traces call it."""
    job_id: str = field(validator=_text)
    site_name: str = field(validator=_text)
    endpoint: str = field(validator=[_text, _endpoint])
    """Where the host listens."""
    launch: bytes = field(validator=_launch, repr=bytes.hex)
    """Names this launch; no secret. ``launch_id`` in the file, as hexadecimal digits."""
    token: Token = field(validator=attrs.validators.instance_of(Token), eq=Token.text)
    """The secret of this launch."""
    secure: bool = field(default=False, validator=_flag)
    """Whether the host will hand over credentials in the handshake, which both sides must agree on."""
    fail_unresponsive: bool = field(default=False, validator=_flag)
    """Whether silence of a host that lives ends the session before ``unresponsive_limit_s`` does."""
    one_shot: bool = field(default=False, validator=_flag)
    """Whether this launch is for one task."""
    transfer_type: str = field(default=FULL, validator=_transfer_type)
    """How a script's results travel: ``FULL``, as it made them, or ``DIFF``, as what they add to the model that it received."""
    tasks: TaskNames = field(factory=TaskNames, validator=attrs.validators.instance_of(TaskNames))
    limits: Limits = field(factory=Limits, validator=attrs.validators.instance_of(Limits))

    def write(self, files: Files, path: Path) -> None:
        """Create or replace the file, for this user alone, whole or not at all; a link of that name is replaced, not followed. Raises
        ``OSError``."""
        files.write_private(path, self._encoded())

    def _encoded(self) -> bytes:
        plain = {name: getattr(self, name) for name in _PLAIN}
        content = {
            "schema_version": SCHEMA_VERSION,
            "execution_mode": EXTERNAL_PROCESS,
            **plain,
            "launch_id": self.launch.hex(),
            "token": self.token.text(),
            "tasks": attrs.asdict(self.tasks),
            "limits": attrs.asdict(self.limits),
        }
        return json.dumps(content, indent=2, allow_nan=False).encode() + b"\n"


_PLAIN = ("name", "job_id", "site_name", "endpoint", "secure", "fail_unresponsive", "one_shot", "transfer_type")
"""Fields that are in the file as they are."""
_KEYS = ("schema_version", "execution_mode", *_PLAIN, "launch_id", "token", "tasks", "limits")
_LIMITS = tuple(attribute.name for attribute in attrs.fields(Limits))
_TASKS = tuple(attribute.name for attribute in attrs.fields(TaskNames))


def bootstrap_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the environment says that the bootstrap file is. Raises ``BootstrapError``."""
    path = environment.get(BOOTSTRAP_VARIABLE, "")
    if not path:
        raise BootstrapError(f"{BOOTSTRAP_VARIABLE} is not set; start the script through a host, or set it to the path of a bootstrap file")
    return Path(path)


def read(path: Path) -> Bootstrap:
    """Read and check a bootstrap file. Raises ``BootstrapError``."""
    try:
        data = _read_private(path)
    except OSError as error:
        raise BootstrapError(f"{path}: {error.strerror}") from None
    return parse(data, path)


def parse(data: bytes, path: Path) -> Bootstrap:
    """The bootstrap in the content of a file; ``path`` is what errors call it. Raises ``BootstrapError``."""
    try:
        return _decoded(data)
    except (ValueError, LimitOrder) as error:
        said = str(error)
    # Raised here, where the content is out of reach of whoever follows the chain of exceptions.
    raise BootstrapError(f"{path}: {said}")


def _read_private(path: Path) -> bytes:
    """The content of a regular file that is ours alone, judged by the descriptor. Raises ``OSError``, ``BootstrapError``."""
    # Without O_NONBLOCK a pipe of that name would hold us for ever before it can be refused.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BootstrapError(f"{path}: must be a regular file")
        if found.st_uid not in (os.geteuid(), 0):
            raise BootstrapError(f"{path}: belongs to user {found.st_uid}; it must belong to user {os.geteuid()}, who reads it, or to root")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise BootstrapError(f"{path}: has mode {stat.S_IMODE(found.st_mode):04o}, so others can open it; chmod 600 it")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BOOTSTRAP_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BOOTSTRAP_BYTES:
        raise BootstrapError(f"{path}: is longer than the {MAX_BOOTSTRAP_BYTES} bytes that a bootstrap file can have")
    return data


def _decoded(data: bytes) -> Bootstrap:
    """Raises ``ValueError``, ``LimitOrder``."""
    content = _parsed(data)
    _check_keys(content, _KEYS, "")
    version = content["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ValueError(f"schema_version: must be {SCHEMA_VERSION}; host and trainer need the same version of this package")
    if content["execution_mode"] != EXTERNAL_PROCESS:
        raise ValueError(f"execution_mode: must be {EXTERNAL_PROCESS!r}")
    tasks, limits = content["tasks"], content["limits"]
    _check_keys(tasks, _TASKS, "tasks")
    _check_keys(limits, _LIMITS, "limits")
    for key, value in limits.items():
        if type(value) not in (int, float, type(None)):
            raise ValueError(f"limits.{key}: must be a number, not {_kind(value)}")
    return Bootstrap(
        **{name: content[name] for name in _PLAIN},
        launch=_launch_of(content["launch_id"]),
        token=_token_of(content["token"]),
        tasks=TaskNames(**tasks),
        limits=_limits_of(limits),
    )


def _limits_of(values: dict[str, Any]) -> Limits:
    try:
        return Limits(**values)
    except (ValueError, LimitOrder) as error:
        raise ValueError(f"limits.{error}") from None


def _launch_of(text: object) -> bytes:
    # Only the one way to write it that we write: fromhex takes blanks, too.
    try:
        launch = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        launch = b""
    if launch.hex() != text or len(launch) != LAUNCH_BYTES:
        raise ValueError(f"launch_id: must be {2 * LAUNCH_BYTES} hexadecimal digits, 0 to 9 and a to f")
    return launch


def _token_of(text: object) -> Token:
    try:
        if isinstance(text, str):
            return Token.from_text(text)
    except ValueError:
        pass
    raise ValueError("token: is not the text of a token; have the host write the file anew")


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON, from line {error.lineno}, column {error.colno} on; have the host write the file anew") from None
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text; have the host write the file anew") from None
    except RecursionError:
        raise ValueError("is nested too deep for a bootstrap file") from None
    if not isinstance(content, dict):
        raise ValueError(f"must be a JSON object, not {_kind(content)}")  # noqa: TRY004
    return content


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{_shown(key)}: is there twice; keep one")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that can be used here; numbers must be finite")


def _whole(text: str) -> int:
    if len(text) > DIGITS_LIMIT:
        raise ValueError(f"a number of {len(text)} digits is more than can be used here")
    return int(text)


def _check_keys(content: object, wanted: tuple[str, ...], place: str) -> None:
    if not isinstance(content, dict):
        raise ValueError(f"{place}: must be an object, not {_kind(content)}")  # noqa: TRY004
    before = f"{place}." if place else ""
    missing = [key for key in wanted if key not in content]
    if missing:
        raise ValueError(f"{before}{missing[0]}: is missing; have the host write the file anew")
    unknown = [key for key in content if key not in wanted]
    if unknown:
        raise ValueError(f"{before}{_shown(unknown[0])}: is not a key of a bootstrap file; remove it")


def _shown(key: str) -> str:
    return key if len(key) <= SHOWN_KEY and key.isprintable() else f"a key of {len(key)} characters"
