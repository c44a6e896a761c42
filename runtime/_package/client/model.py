"""What travels as a task and as a result: a model, and how it lies in a payload. Scripts, jobs and hosts all use this one module.

Rule 1.  A model is a handful of named fields. In a payload it is a dict of those that have a value, under their own names.
Rule 2.  Nothing is copied or converted: an array in a model is the very array of the payload, and the other way round. Whether the
         payload can carry a value is asked where it is encoded.
Rule 3.  A payload that is not such a dict is not a model, and the error says why. Unknown fields are not dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs
import numpy as np
from attrs import define, field, setters

from troth.runtime.errors import TrothError


class NotAModel(TrothError):
    """A payload that is not a model; says which field is wrong."""


class ParamsType(StrEnum):
    """What the parameters of a model are.

    >>> ParamsType("DIFF") is ParamsType.DIFF
    True
    """

    FULL = "FULL"
    """The parameters themselves."""
    DIFF = "DIFF"
    """What is to be added to the parameters that were received."""


def _params_type(value: Any) -> ParamsType | None:
    if value is None:
        return None
    try:
        return ParamsType(value)
    except ValueError:
        raise ValueError(f"params_type: must be FULL, DIFF or None, got {value!r}") from None


def _dict_if_none(value: Any) -> Any:
    return {} if value is None else value


def _round(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def _check_round(_model: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{attribute.name}: must be an int of at least 0 or None, got {value!r}")
    if value < 0:
        raise ValueError(f"{attribute.name}: must be an int of at least 0 or None, got {value!r}")


def _check_names(_model: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, dict):
        raise TypeError(f"{attribute.name}: must be a dict or None, got {type(value).__name__}")
    strange = next((key for key in value if not isinstance(key, str)), None)
    if strange is not None:
        raise TypeError(f"{attribute.name}: keys must be str, got {strange!r}")


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"<{len(value)} named>"
    return "None" if value is None else f"<{type(value).__name__}>"


@define(slots=True, eq=False)
class FLModel:
    """A model on its way: parameters, metrics, or both.

    Two models are equal only if they are one: arrays have no single truth value.

    >>> import numpy as np
    >>> model = FLModel(params={"w": np.zeros(3)}, metrics={"accuracy": 0.5}, current_round=2)
    >>> model.params_type is ParamsType.FULL, model.current_round, model.meta
    (True, 2, {})
    """

    params_type: ParamsType | None = field(default=None, converter=_params_type, on_setattr=setters.convert)
    """``FULL`` where nothing was said and there are parameters. A str is taken too."""
    params: Any = field(default=None, repr=_short)
    """Parameters by name; arrays of any shape, or dicts and lists of such. ``None``: there are none."""
    optimizer_params: Any = field(default=None, repr=_short)
    """State of the optimizer, like ``params``."""
    metrics: dict[str, Any] | None = field(default=None, validator=_check_names)
    """Numbers by name; numpy's scalars are welcome."""
    start_round: int | None = field(default=0, converter=_round, validator=_check_round)
    """The first round of this job."""
    current_round: int | None = field(default=None, converter=_round, validator=_check_round)
    """The round this model belongs to."""
    total_rounds: int | None = field(default=None, converter=_round, validator=_check_round)
    """How many rounds there will be."""
    meta: dict[str, Any] = field(factory=dict, converter=_dict_if_none, validator=_check_names)
    """Whatever else belongs to it, by name; what can be carried as a payload."""

    def __attrs_post_init__(self) -> None:
        if self.params_type is None and self.params is not None:
            self.params_type = ParamsType.FULL
        if self.params_type is not None and self.params is None:
            raise ValueError(f"params_type is {self.params_type.value}, but there are no params")


FIELDS = tuple(attribute.name for attribute in attrs.fields(FLModel))
"""What a model may have in a payload."""


def to_tree(model: FLModel) -> dict[str, Any]:
    """The payload of a model: a new dict around the model's own values (Rules 1 and 2).

    >>> to_tree(FLModel(metrics={"loss": 0.25}, current_round=1))
    {'metrics': {'loss': 0.25}, 'start_round': 0, 'current_round': 1}
    """
    if not isinstance(model, FLModel):
        raise TypeError(f"must be an FLModel, got {type(model).__name__}")
    found = {name: getattr(model, name) for name in FIELDS}
    if model.params_type is not None:
        found["params_type"] = model.params_type.value
    if not model.meta:
        found["meta"] = None
    if model.params is None:
        found["params_type"] = None
    return {name: value for name, value in found.items() if value is not None}


def from_tree(tree: Any) -> FLModel:
    """The model in a payload. Raises ``NotAModel`` (Rule 3).

    >>> from_tree({"params": {"w": 1.0}, "current_round": 3}).params
    {'w': 1.0}
    >>> from_tree({"w": 1.0})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    troth.client.model.NotAModel: not a model: unknown field 'w'; a model has params_type, params, optimizer_params, metrics, ...
    """
    if not isinstance(tree, dict):
        raise NotAModel(f"not a model: must be a dict, got {type(tree).__name__}")
    strange = sorted((key for key in tree if key not in FIELDS), key=str)
    if strange:
        raise NotAModel(f"not a model: unknown field {strange[0]!r}; a model has {', '.join(FIELDS)}")
    try:
        return FLModel(**tree)
    except (TypeError, ValueError) as wrong:
        raise NotAModel(f"not a model: {wrong}") from wrong
