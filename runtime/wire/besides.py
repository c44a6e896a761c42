"""What rides beside a message: the names, digests and small payloads that no core looks at.

Each is a frozen attrs class whose fields say how long they may be, and what they are on the wire: a flat array, so that nothing is named
twice and nothing can be added. The decoder checks types and bounds, and then the class checks again: a beside is valid wherever it comes
from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

import attrs
from attrs import field, frozen
from msgspec import Meta

from troth.runtime.wire import bounds

Scalar: TypeAlias = bool | int | float | str | None
LogValue: TypeAlias = "Scalar | tuple[Scalar, ...] | Mapping[str, Scalar]"

Check: TypeAlias = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _said(instance: Any, attribute: attrs.Attribute[Any], what: str) -> ValueError:
    return ValueError(f"{type(instance).__name__}.{attribute.name}: {what}")


def _text_check(longest: int, shortest: int) -> Check:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        # Printable, because these end up in logs and on terminals; it also keeps out what has no UTF-8.
        if type(value) is not str or not shortest <= len(value) <= longest or not value.isprintable():
            raise _said(instance, attribute, f"must be {shortest} to {longest} printable characters")

    return check


def _blob_check(longest: int, lengths: tuple[int, ...] | None) -> Check:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not bytes or len(value) > longest or (lengths is not None and len(value) not in lengths):
            wanted = f"at most {longest}" if lengths is None else " or ".join(map(str, lengths))
            raise _said(instance, attribute, f"must be {wanted} bytes")

    return check


def _whole_check(high: int) -> Check:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not int or not 0 <= value <= high:
            raise _said(instance, attribute, f"must be an int from 0 to {high}, got {value!r}")

    return check


def _seconds_check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if type(value) is not float or not math.isfinite(value) or not 0 < value <= bounds.MAX_SECONDS:
        raise _said(instance, attribute, f"must be a float above 0 and at most {bounds.MAX_SECONDS:g} seconds, got {value!r}")


def _text(longest: int = bounds.MAX_TEXT, shortest: int = 1, *, shown: bool = True) -> Any:
    wire = Annotated[str, Meta(min_length=shortest, max_length=longest)]
    return field(validator=_text_check(longest, shortest), repr=shown, metadata={"wire": wire, "bytes": 4 * longest + 5})


def _sized(value: bytes) -> str:
    # The bytes themselves are nobody's to read in a log.
    return f"<{len(value)} bytes>"


def _blob(longest: int, lengths: tuple[int, ...] | None = None) -> Any:
    wire = Annotated[bytes, Meta(max_length=longest)]
    return field(validator=_blob_check(longest, lengths), repr=_sized, metadata={"wire": wire, "bytes": longest + 5})


def _whole(high: int) -> Any:
    return field(validator=_whole_check(high), metadata={"wire": Annotated[int, Meta(ge=0, le=high)], "bytes": 9})


def _seconds() -> Any:
    return field(validator=_seconds_check, metadata={"wire": Annotated[float, Meta(gt=0, le=bounds.MAX_SECONDS)], "bytes": 9})


def _flag() -> Any:
    return field(validator=attrs.validators.instance_of(bool), metadata={"wire": bool, "bytes": 1})


def _of(inner: type[Any], *, optional: bool = False) -> Any:
    """A field that is itself such a class: an array inside the array."""
    wire: Any = tuple[tuple(f.metadata["wire"] for f in attrs.fields(inner))]  # type: ignore[misc]
    expected: Any = attrs.validators.instance_of(inner)
    size = 1 + sum(f.metadata["bytes"] for f in attrs.fields(inner))
    if optional:
        wire, expected = wire | None, attrs.validators.optional(expected)
    return field(validator=expected, metadata={"wire": wire, "bytes": size, "of": inner})


# -- the handshake -----------------------------------------------------------------------------------------------------


@frozen
class HelloBeside:
    """Who says HELLO."""

    version: int = _whole(bounds.MAX_PROTOCOL)
    job_id: str = _text()
    site_name: str = _text()
    rank: int = _whole(bounds.MAX_RANK)


@frozen
class Terms:
    """The durations that both sides of a session keep, in seconds; the host's."""

    heartbeat_interval_s: float = _seconds()
    lease_timeout_s: float = _seconds()
    unresponsive_limit_s: float = _seconds()

    def __attrs_post_init__(self) -> None:
        if not self.heartbeat_interval_s < self.lease_timeout_s:
            raise ValueError("Terms.lease_timeout_s: must be above heartbeat_interval_s")
        if not self.heartbeat_interval_s + self.lease_timeout_s < self.unresponsive_limit_s:
            raise ValueError("Terms.unresponsive_limit_s: must be above lease_timeout_s + heartbeat_interval_s")


@frozen
class Credentials:
    """What a trainer is lent in a secure session. Never shown."""

    token: str = _text(bounds.MAX_SECRET_TEXT, shown=False)
    signature: str = _text(bounds.MAX_SECRET_TEXT, shown=False)


@frozen
class HelloAcceptedBeside:
    """What the host grants."""

    terms: Terms = _of(Terms)  # noqa: RUF009
    secure: bool = _flag()
    credentials: Credentials | None = _of(Credentials, optional=True)  # noqa: RUF009

    def __attrs_post_init__(self) -> None:
        if self.secure != (self.credentials is not None):
            raise ValueError("HelloAcceptedBeside.credentials: must be there if the session is secure, and only then")


@frozen
class SessionReadyBeside:
    """``proof`` that the credentials arrived (``challenge.credentials_proof``); empty where none were lent."""

    proof: bytes = _blob(bounds.PROOF_BYTES, (0, bounds.PROOF_BYTES))


@frozen
class SessionOpenBeside:
    """Which host opens: its ``instance`` is another one after each start."""

    instance: str = _text(bounds.MAX_INSTANCE_TEXT)


# -- payloads ----------------------------------------------------------------------------------------------------------


@frozen
class TaskBeside:
    """A task's names and payload. ``payload`` is the whole of it if it rides along, else empty; ``nbytes`` is its size either way."""

    task_id: str = _text()
    name: str = _text()
    digest: bytes = _blob(bounds.DIGEST_BYTES, (bounds.DIGEST_BYTES,))
    manifest: bytes = _blob(bounds.MAX_MANIFEST_BYTES)
    payload: bytes = _blob(bounds.INLINE_BYTES)
    nbytes: int = _whole(bounds.MAX_PAYLOAD_BYTES)


@frozen
class ResultBeside:
    """A result's payload, as in ``TaskBeside``."""

    digest: bytes = _blob(bounds.DIGEST_BYTES, (bounds.DIGEST_BYTES,))
    manifest: bytes = _blob(bounds.MAX_MANIFEST_BYTES)
    payload: bytes = _blob(bounds.INLINE_BYTES)
    nbytes: int = _whole(bounds.MAX_PAYLOAD_BYTES)


# -- log records -------------------------------------------------------------------------------------------------------

_Whole: TypeAlias = Annotated[int, Meta(ge=-bounds.MAX_LOG_INT, le=bounds.MAX_LOG_INT)]
_Line: TypeAlias = Annotated[str, Meta(max_length=bounds.MAX_LOG_TEXT)]
_Name: TypeAlias = Annotated[str, Meta(max_length=bounds.MAX_TEXT)]
_Plain: TypeAlias = bool | _Whole | float | _Line | None
_List: TypeAlias = Annotated[list[_Plain], Meta(max_length=bounds.MAX_LOG_ITEMS)]
_Table: TypeAlias = Annotated[dict[_Name, _Plain], Meta(max_length=bounds.MAX_LOG_ITEMS)]

MAX_LOG_BYTES = 64 * 1024
"""The body of a LOG frame: well below what its items could add up to, so it is checked as a whole."""


def _plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= bounds.MAX_LOG_TEXT and _has_utf8(value)
    if type(value) is int:
        return abs(value) <= bounds.MAX_LOG_INT
    return value is None or type(value) in (bool, float)


def _has_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _table(value: Mapping[object, object]) -> bool:
    named = all(type(key) is str and len(key) <= bounds.MAX_TEXT and _has_utf8(key) for key in value)
    return len(value) <= bounds.MAX_LOG_ITEMS and named and all(map(_plain, value.values()))


def _log_value_check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, Mapping):
        good = _table(value)
    elif isinstance(value, tuple):
        good = len(value) <= bounds.MAX_LOG_ITEMS and all(map(_plain, value))
    else:
        good = _plain(value)
    if not good:
        raise _said(instance, attribute, "must be None, a bool, an int of 64 bits, a float, a text, or a short list or table of these")


def _extra_check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not _table(value):
        raise _said(instance, attribute, "must be a short table of plain values")


def _settled(value: Any) -> Any:
    """Lists and tables that nobody changes any more."""
    if isinstance(value, list):
        return tuple(value)
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value


def _open(value: Any) -> Any:
    """As the encoder takes it."""
    return dict(value) if isinstance(value, Mapping) else value


def _log_value() -> Any:
    metadata = {"wire": _Plain | _List | _Table, "bytes": MAX_LOG_BYTES, "pack": _open}
    return field(converter=_settled, validator=_log_value_check, metadata=metadata)


def _log_extra() -> Any:
    # Its bytes are within those of the value: the frame has one bound for both.
    return field(converter=_settled, factory=dict, validator=_extra_check, metadata={"wire": _Table, "bytes": 0, "pack": _open})


@frozen
class LogBeside:
    """A record for the host's log: a named value of some ``data_type``, and what was said beside it."""

    key: str = _text()
    value: LogValue = _log_value()  # noqa: RUF009
    data_type: str = _text()
    extra: Mapping[str, Scalar] = _log_extra()
