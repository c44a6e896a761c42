"""Log records: named values of a kind, for the host's log and whatever it feeds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any

import numpy as np

from troth.runtime.wire.besides import LogBeside


class AnalyticsDataType(StrEnum):
    """What kind of value a log record carries."""

    SCALAR = "SCALAR"
    SCALARS = "SCALARS"
    METRIC = "METRIC"
    METRICS = "METRICS"
    PARAMETER = "PARAMETER"
    PARAMETERS = "PARAMETERS"
    TEXT = "TEXT"
    TAG = "TAG"
    TAGS = "TAGS"
    IMAGE = "IMAGE"
    LOG_RECORD = "LOG_RECORD"
    MODEL = "MODEL"
    INIT_DATA = "INIT_DATA"


T = AnalyticsDataType
_NUMBER = {T.SCALAR, T.METRIC}
_NUMBERS = {T.SCALARS, T.METRICS}
_TABLE = {T.PARAMETERS, T.TAGS}


def plain(value: Any) -> Any:
    """Numpy's scalars, 0-d arrays and enums as what they hold; inside dicts and lists too."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    return value


def is_number(value: Any) -> bool:
    """Whether it is a number, which a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(data_type: Any) -> AnalyticsDataType:
    try:
        return AnalyticsDataType(data_type.value if isinstance(data_type, Enum) else data_type)
    except ValueError:
        raise ValueError(f"data_type: must be one of {', '.join(T)}, got {data_type!r}") from None


def _check(kind: AnalyticsDataType, value: Any) -> None:
    if kind in _NUMBER and not is_number(value):
        raise TypeError(f"value: must be a number for {kind}, got {type(value).__name__}")
    if kind in _NUMBERS and not (isinstance(value, dict) and all(map(is_number, value.values()))):
        raise TypeError(f"value: must be a dict of numbers for {kind}, got {value!r}")
    if kind in _TABLE and not isinstance(value, dict):
        raise TypeError(f"value: must be a dict for {kind}, got {type(value).__name__}")
    if kind is T.TEXT and not isinstance(value, str):
        raise TypeError(f"value: must be a str for {kind}, got {type(value).__name__}")


def _check_step(extra: dict[str, Any]) -> None:
    step = extra.get("global_step")
    if step is not None and (not isinstance(step, int) or isinstance(step, bool) or step < 0):
        raise ValueError(f"global_step: must be an int of at least 0, got {step!r}")
    path = extra.get("path")
    if path is not None and not isinstance(path, str):
        raise TypeError(f"path: must be a str, got {type(path).__name__}")


def record(key: Any, value: Any, data_type: str | Enum, extra: Mapping[str, Any]) -> LogBeside:
    """A checked record, ready to send. Raises ``TypeError`` or ``ValueError`` that names the argument.

    >>> import numpy as np
    >>> found = record("loss", np.float64(0.5), "SCALAR", {"global_step": 3})
    >>> found.value, found.data_type, dict(found.extra)
    (0.5, 'SCALAR', {'global_step': 3})
    >>> record("loss", "low", "SCALAR", {})
    Traceback (most recent call last):
    TypeError: value: must be a number for SCALAR, got str
    """
    if not isinstance(key, str) or not key:
        raise TypeError(f"key: must be a str that is not empty, got {key!r}")
    kind, found, more = _kind(data_type), plain(value), plain(dict(extra))
    _check(kind, found)
    _check_step(more)
    try:
        return LogBeside(key, found, kind.value, more)
    except ValueError as wrong:
        raise ValueError(f"log({key!r}): cannot be carried: {wrong}") from None
