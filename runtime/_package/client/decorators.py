"""Decorators for scripts that are written as functions of a model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

import attrs

from troth.client.context import Context
from troth.client.model import FLModel
from troth.client.process import process
from troth.client.records import is_number, plain
from troth.runtime.errors import SessionClosed

P = ParamSpec("P")
R = TypeVar("R")

SINGLE_METRIC = "metric"
"""What a bare number that ``evaluate`` returns is called."""


@overload
def train(function: Callable[P, FLModel], /) -> Callable[..., FLModel]:
    """As ``@train``."""


@overload
def train(*, ctx: Context | None = None) -> Callable[[Callable[P, FLModel]], Callable[..., FLModel]]:
    """As ``@train(ctx=...)``."""


def train(function: Callable[..., FLModel] | None = None, /, *, ctx: Context | None = None) -> Callable[..., Any]:
    """Receive a model, hand it to the function as its first argument, and send what it returns.

    The function is called with whatever else is given by name. Metrics that a function decorated with ``evaluate`` has returned since
    the last result are sent along; where both name a metric, the returned model's counts. A passive rank's function gets ``None``, and
    nothing is sent. Raises ``SessionClosed`` if the session ended before a task came, and what ``receive`` and ``send`` raise.
    """

    def decorate(wrapped: Callable[..., FLModel]) -> Callable[..., FLModel]:
        @functools.wraps(wrapped)
        def call(**arguments: Any) -> FLModel:
            context = process().the(ctx)
            arguments.pop(_first_of(wrapped), None)
            made = wrapped(_received(context), **arguments)
            if not isinstance(made, FLModel):
                raise TypeError(f"{wrapped.__name__}(): must return an FLModel to be sent, returned {type(made).__name__}")
            metrics = {**context.pending_metrics, **(made.metrics or {})}
            context.send(attrs.evolve(made, metrics=metrics or None))
            context.pending_metrics = {}
            return made

        return call

    return decorate if function is None else decorate(function)


@overload
def evaluate(function: Callable[P, R], /) -> Callable[..., R]:
    """As ``@evaluate``."""


@overload
def evaluate(*, ctx: Context | None = None) -> Callable[[Callable[P, R]], Callable[..., R]]:
    """As ``@evaluate(ctx=...)``."""


def evaluate(function: Callable[..., Any] | None = None, /, *, ctx: Context | None = None) -> Callable[..., Any]:
    """Receive a model, hand it to the function as its first argument, and keep the metrics that it returns for the next ``train``.

    The function returns a dict of numbers by name, or a number, which is then called ``metric``. Nothing is sent. Raises what
    ``receive`` raises, and ``SessionClosed`` if the session ended before a task came.
    """

    def decorate(wrapped: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(wrapped)
        def call(**arguments: Any) -> Any:
            context = process().the(ctx)
            arguments.pop(_first_of(wrapped), None)
            made = wrapped(_received(context), **arguments)
            found = {SINGLE_METRIC: made} if is_number(plain(made)) else made
            if not isinstance(found, dict):
                raise TypeError(f"{wrapped.__name__}(): must return metrics, a dict of numbers or a number, returned {type(made).__name__}")
            context.pending_metrics = {**context.pending_metrics, **found}
            return made

        return call

    return decorate if function is None else decorate(function)


def _first_of(function: Callable[..., Any]) -> str:
    names = iter(inspect.signature(function).parameters)
    first = next(names, None)
    if first is None:
        raise TypeError(f"{function.__name__}(): must take the received model as its first argument")
    return first


def _received(context: Context) -> FLModel | None:
    model = context.receive()
    if model is None and not context.session.passive:
        raise SessionClosed("the session has ended; there is no task")
    return model
